//! One-line summaries, of frames written out byte by byte.

use pktc_testing::capture::summary;

/// Bytes from hexadecimal digits; blanks separate them.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte =
        |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).expect("two hexadecimal digits");
    digits.chunks(2).map(byte).collect()
}

const MACS: &str = "02 00 00 00 00 01  02 00 00 00 00 02";
const IPV4_UDP: &str = "45 00 00 20 00 01 00 00 40 11 00 00 cb 00 71 09 c0 00 02 50";
const UDP: &str = "00 35 9c 40 00 0c 00 00 01 02 03 04";
const ADDRESSES_V6: &str =
    "20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01  20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 02";

#[track_caller]
fn assert_summary(frame: &str, expected: &str) {
    assert_eq!(summary(&hex(frame)), expected);
}

#[test]
fn udp_plain_and_tagged() {
    assert_summary(&format!("{MACS} 0800 {IPV4_UDP} {UDP}"), "203.0.113.9:53 > 192.0.2.80:40000 UDP 46");
    assert_summary(
        &format!("{MACS} 88a8 00c8 8100 67d1 0800 {IPV4_UDP} {UDP}"),
        "vlan 200 vlan 2001 203.0.113.9:53 > 192.0.2.80:40000 UDP 54",
    );
}

#[test]
fn tcp_shows_its_flags() {
    let ip = "45 00 00 28 00 01 00 00 40 06 00 00 0a 00 00 01 0a 00 00 02";
    let tcp = |flags| format!("04d2 0050 00000001 00000000 50 {flags} 0400 0000 0000");
    let frame = |flags| format!("{MACS} 0800 {ip} {}", tcp(flags));
    assert_summary(&frame("12"), "10.0.0.1:1234 > 10.0.0.2:80 TCP SYN,ACK 54");
    assert_summary(&frame("00"), "10.0.0.1:1234 > 10.0.0.2:80 TCP no flags 54");
}

#[test]
fn options_stand_between() {
    let ip = "46 00 00 24 00 01 00 00 40 11 00 00 cb 00 71 09 c0 00 02 50 94 04 00 00";
    assert_summary(&format!("{MACS} 0800 {ip} {UDP}"), "203.0.113.9:53 > 192.0.2.80:40000 UDP 50");
}

#[test]
fn fragments() {
    let ip = |fragment| format!("45 00 00 20 00 01 {fragment} 40 11 00 00 cb 00 71 09 c0 00 02 50");
    assert_summary(
        &format!("{MACS} 0800 {} {UDP}", ip("20 00")),
        "203.0.113.9:53 > 192.0.2.80:40000 UDP first fragment 46",
    );
    assert_summary(
        &format!("{MACS} 0800 {} {UDP}", ip("00 b9")),
        "203.0.113.9 > 192.0.2.80 UDP fragment at 1480 46",
    );
}

#[test]
fn ipv6_with_and_without_extension_headers() {
    let ip = |next| format!("60 00 00 00 00 0c {next} 40 {ADDRESSES_V6}");
    assert_summary(
        &format!("{MACS} 86dd {} {UDP}", ip("11")),
        "[2001:db8::1]:53 > [2001:db8::2]:40000 UDP 66",
    );
    // Hop-by-hop, 16 bytes of destination options, AH (length in words of four bytes).
    let chain = "3c 00 010400000000  33 01 010c000000000000 000000000000  11 01 0000 00000000 00000000";
    assert_summary(
        &format!("{MACS} 86dd {} {chain} {UDP}", ip("00")),
        "[2001:db8::1]:53 > [2001:db8::2]:40000 UDP 102",
    );
    assert_summary(
        &format!("{MACS} 86dd {} 11 00 00 01 00000001 {UDP}", ip("2c")),
        "[2001:db8::1]:53 > [2001:db8::2]:40000 UDP first fragment 74",
    );
    assert_summary(
        &format!("{MACS} 86dd {} 11 00 00 08 00000001 {UDP}", ip("2c")),
        "2001:db8::1 > 2001:db8::2 UDP fragment at 8 74",
    );
    assert_summary(
        &format!("{MACS} 86dd {} 87 00 0000 00000000", ip("3a")),
        "2001:db8::1 > 2001:db8::2 ICMPv6 type 135 code 0 62",
    );
}

#[test]
fn arp_and_others() {
    let arp = |operation| format!("0001 0800 06 04 {operation} 020000000002 0a000001 000000000000 0a000002");
    assert_summary(&format!("{MACS} 0806 {}", arp("0001")), "ARP who has 10.0.0.2, tell 10.0.0.1 42");
    assert_summary(&format!("{MACS} 0806 {}", arp("0002")), "ARP 10.0.0.1 is at 02:00:00:00:00:02 42");
    assert_summary(&format!("{MACS} 88cc 0207"), "02:00:00:00:00:02 > 02:00:00:00:00:01 ethertype 0x88cc 16");
    assert_summary(&format!("{MACS} 0026 4242"), "02:00:00:00:00:02 > 02:00:00:00:00:01 LLC 16");
    let echo = "45 00 00 1c 00 01 00 00 40 01 00 00 0a 00 00 01 0a 00 00 02 08 00 0000";
    assert_summary(&format!("{MACS} 0800 {echo}"), "10.0.0.1 > 10.0.0.2 ICMP echo request 38");
    let short = "44 00 00 1c 00 01 00 00 40 01 00 00 0a 00 00 01 0a 00 00 02";
    assert_summary(&format!("{MACS} 0800 {short}"), "10.0.0.1 > 10.0.0.2 IPv4 header of 16 bytes 34");
}

#[test]
fn whatever_breaks_off_is_shown_as_far_as_it_goes() {
    assert_summary("", "cut short 0");
    assert_summary(&format!("{MACS} 08"), "cut short 13");
    assert_summary(&format!("{MACS} 8100 00"), "cut short 15");
    assert_summary(&format!("{MACS} 8100 0006 0800 45"), "vlan 6 IPv4 cut short 19");
    assert_summary(&format!("{MACS} 0800 {IPV4_UDP} 00"), "203.0.113.9 > 192.0.2.80 UDP 35");
    let frames = [
        format!("{MACS} 88a8 00c8 8100 67d1 0800 {IPV4_UDP} {UDP}"),
        format!("{MACS} 86dd 60000000 000c 2c 40 {ADDRESSES_V6} 11 00 00 01 00000001 {UDP}"),
        format!("{MACS} 0806 0001 0800 06 04 0001 020000000002 0a000001 000000000000 0a000002"),
    ];
    for frame in frames {
        let bytes = hex(&frame);
        for length in 0..bytes.len() {
            assert!(summary(&bytes[..length]).ends_with(&format!(" {length}")));
        }
    }
}
