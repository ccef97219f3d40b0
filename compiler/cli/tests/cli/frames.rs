//! Frames and captures, composed byte by byte: what the tests feed to `pktc run`, independent of its own composer.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Destination and source of every frame.
const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

/// A frame without tags.
pub(crate) fn eth(ethertype: u16, content: &[u8]) -> Vec<u8> {
    [&MACS[..], &ethertype.to_be_bytes(), content].concat()
}

/// A frame with an 802.1Q tag.
pub(crate) fn tagged(vid: u16, ethertype: u16, content: &[u8]) -> Vec<u8> {
    eth(0x8100, &[&vid.to_be_bytes()[..], &ethertype.to_be_bytes(), content].concat())
}

/// An IPv4 packet (RFC 791); `fragment` is the word of flags and offset.
pub(crate) fn ipv4(from: &str, to: &str, protocol: u8, fragment: u16, content: &[u8]) -> Vec<u8> {
    let length = (20 + content.len() as u16).to_be_bytes();
    let fragment = fragment.to_be_bytes();
    let mut header =
        [0x45, 0, length[0], length[1], 0, 1, fragment[0], fragment[1], 64, protocol, 0, 0].to_vec();
    header.extend(from.parse::<Ipv4Addr>().expect("an address").octets());
    header.extend(to.parse::<Ipv4Addr>().expect("an address").octets());
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    [header, content.to_vec()].concat()
}

/// An IPv6 packet (RFC 8200).
pub(crate) fn ipv6(from: &str, to: &str, next_header: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    let mut header = [0x60, 0, 0, 0, length[0], length[1], next_header, 64].to_vec();
    header.extend(from.parse::<Ipv6Addr>().expect("an address").octets());
    header.extend(to.parse::<Ipv6Addr>().expect("an address").octets());
    [header, content.to_vec()].concat()
}

/// A UDP datagram without a checksum (RFC 768).
pub(crate) fn udp(sport: u16, dport: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let header = [sport, dport, length, 0].map(u16::to_be_bytes).concat();
    [header, payload.to_vec()].concat()
}

/// A TCP SYN without options (RFC 9293).
pub(crate) fn syn(sport: u16, dport: u16) -> Vec<u8> {
    [sport, dport, 0, 1, 0, 0, 0x5002, 0xffff, 0, 0].map(u16::to_be_bytes).concat()
}

/// A little-endian pcap in microseconds with one frame every 250 ms.
pub(crate) fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let word = u32::to_le_bytes;
    let version = [2, 0, 4, 0];
    let mut file = [word(0xa1b2_c3d4), version, word(0), word(0), word(65535), word(1)].concat();
    for (index, frame) in frames.iter().enumerate() {
        let index = index as u32;
        let (seconds, fraction) = (1_700_000_000 + index / 4, index % 4 * 250_000);
        let length = word(frame.len() as u32);
        file.extend([word(seconds), word(fraction), length, length].concat());
        file.extend(frame);
    }
    file
}

/// The packets of `examples/edge/edge.pcap`.
pub(crate) fn edge_example() -> Vec<u8> {
    let (site, site6) = ("192.0.2.80", "2001:db8::80");
    let answer = udp(53, 40000, &[0; 100]);
    let amplified = udp(53, 40000, &[0; 600]);
    let fragmented = udp(53, 40000, &[0; 800]);
    let echo = [8, 0, 0xf7, 0xff, 0, 0, 0, 0];
    let arp =
        [&[0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2][..], &[192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 80]];
    let broken = eth(0x0800, &ipv4("203.0.113.7", site, 6, 0, &syn(50001, 443)));
    pcap(&[
        eth(0x0806, &arp.concat()),
        eth(0x0800, &ipv4("203.0.113.5", site, 6, 0, &syn(50000, 443))),
        eth(0x86dd, &ipv6("2001:db8:1::5", site6, 6, &syn(50000, 80))),
        eth(0x0800, &ipv4("198.51.100.53", site, 17, 0, &answer)),
        eth(0x86dd, &ipv6("2001:db8:53::1", site6, 17, &answer)),
        eth(0x0800, &ipv4("203.0.113.9", site, 17, 0, &amplified)),
        tagged(7, 0x0800, &ipv4("203.0.113.9", site, 17, 0x2000, &fragmented[..608])),
        tagged(7, 0x0800, &ipv4("203.0.113.9", site, 17, 608 / 8, &fragmented[608..])),
        eth(0x0800, &ipv4("203.0.113.5", site, 1, 0, &echo)),
        broken[..40].to_vec(),
        eth(0x0800, &ipv4("203.0.113.5", site, 6, 0, &syn(50002, 23))),
        eth(0x0800, &ipv4("203.0.113.5", "192.0.2.81", 6, 0, &syn(50002, 23))),
    ])
}
