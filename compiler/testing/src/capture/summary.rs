//! A packet in one line, for people: best effort, and never a claim about what rules see.
//!
//! It is total: bytes that break off are shown as far as they go. It follows tags, the fixed part of IP and the
//! common extension headers, and stops there; what the language means by a header is the checker's business.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pcap_file::Endianness;

use super::fields::Fields;

/// `vlan 6 203.0.113.9:53 > 192.0.2.80:40000 UDP 642`: tags, who to whom, what, and the frame's length in bytes.
#[must_use]
pub fn summary(data: &[u8]) -> String {
    let mut line = String::new();
    if ethernet(&mut line, data).is_none() {
        line.push_str("cut short");
    }
    // Writing to a string does not fail.
    let _ = write!(line, " {}", data.len());
    line
}

fn ethernet(line: &mut String, data: &[u8]) -> Option<()> {
    let mut fields = Fields::new(data, Endianness::Big);
    let to = fields.take(6)?;
    let from = fields.take(6)?;
    let mut ethertype = fields.u16()?;
    while matches!(ethertype, 0x8100 | 0x88a8 | 0x9100) {
        let tag = fields.u16()?;
        let _ = write!(line, "vlan {} ", tag & 0xfff);
        ethertype = fields.u16()?;
    }
    match ethertype {
        0x0800 => ipv4(line, fields),
        0x0806 => arp(line, fields),
        0x86dd => ipv6(line, fields),
        _ => {
            let _ = write!(line, "{} > {} ", mac(from), mac(to));
            // IEEE 802.3, 3.2.6: below 1536 it is a length.
            let _ = match ethertype {
                0..0x600 => write!(line, "LLC"),
                _ => write!(line, "ethertype {ethertype:#06x}"),
            };
            Some(())
        }
    }
}

fn mac(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// RFC 826, for IPv4 over Ethernet; others by their operation.
fn arp(line: &mut String, mut fields: Fields<'_>) -> Option<()> {
    line.push_str("ARP ");
    let kind = fields.take(6)?;
    let operation = fields.u16()?;
    if kind != [0, 1, 8, 0, 6, 4] {
        let _ = write!(line, "operation {operation}");
        return Some(());
    }
    let sender_mac = fields.take(6)?;
    let sender = ipv4_address(&mut fields)?;
    let _target_mac = fields.take(6)?;
    let target = ipv4_address(&mut fields)?;
    let _ = match operation {
        1 => write!(line, "who has {target}, tell {sender}"),
        2 => write!(line, "{sender} is at {}", mac(sender_mac)),
        _ => write!(line, "operation {operation}"),
    };
    Some(())
}

fn ipv4_address(fields: &mut Fields<'_>) -> Option<Ipv4Addr> {
    let bytes: [u8; 4] = fields.take(4)?.try_into().ok()?;
    Some(bytes.into())
}

fn ipv6_address(fields: &mut Fields<'_>) -> Option<Ipv6Addr> {
    let bytes: [u8; 16] = fields.take(16)?.try_into().ok()?;
    Some(bytes.into())
}

/// Where in a datagram a packet stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    First,
    /// From this byte on.
    Later(u32),
}

impl Part {
    /// From an offset in units of 8 bytes and "more fragments".
    fn new(offset: u16, more: bool) -> Part {
        match (offset, more) {
            (0, false) => Part::Whole,
            (0, true) => Part::First,
            (offset, _) => Part::Later(u32::from(offset) * 8),
        }
    }
}

/// RFC 791, section 3.1.
fn ipv4(line: &mut String, mut fields: Fields<'_>) -> Option<()> {
    line.push_str("IPv4 ");
    let header_length = usize::from(fields.take(1)?[0] & 0xf) * 4;
    fields.take(5)?;
    let fragment = fields.u16()?;
    fields.take(1)?;
    let protocol = fields.take(1)?[0];
    fields.take(2)?;
    let from = ipv4_address(&mut fields)?;
    let to = ipv4_address(&mut fields)?;
    line.truncate(line.len() - "IPv4 ".len());
    let Some(options) = header_length.checked_sub(20) else {
        let _ = write!(line, "{from} > {to} IPv4 header of {header_length} bytes");
        return Some(());
    };
    let part = Part::new(fragment & 0x1fff, fragment & 0x2000 != 0);
    let behind = fields.take(options).map(|_| fields);
    transport(line, (from.into(), to.into()), protocol, part, behind);
    Some(())
}

/// RFC 8200, sections 3 and 4; AH by RFC 4302, section 2.2.
fn ipv6(line: &mut String, mut fields: Fields<'_>) -> Option<()> {
    line.push_str("IPv6 ");
    fields.take(6)?;
    let mut protocol = fields.take(1)?[0];
    fields.take(1)?;
    let from = ipv6_address(&mut fields)?;
    let to = ipv6_address(&mut fields)?;
    line.truncate(line.len() - "IPv6 ".len());
    let mut part = Part::Whole;
    let mut behind = Some(fields);
    while let Some(mut header) = behind.clone() {
        if !matches!(protocol, 0 | 43 | 44 | 51 | 60) || matches!(part, Part::Later(_)) {
            break;
        }
        behind = (|| {
            let head = header.take(2)?;
            let mut length = usize::from(head[1]) * 8 + 8;
            match protocol {
                44 => {
                    let offset = header.clone().u16()?;
                    part = Part::new(offset >> 3, offset & 1 != 0);
                    length = 8;
                }
                51 => length = usize::from(head[1]) * 4 + 8,
                _ => {}
            }
            header.take(length - 2)?;
            protocol = head[0];
            Some(header)
        })();
    }
    transport(line, (from.into(), to.into()), protocol, part, behind);
    Some(())
}

/// What is in the IP packet; `fields` is `None` where the headers before it break off.
fn transport(
    line: &mut String,
    (from, to): (IpAddr, IpAddr),
    protocol: u8,
    part: Part,
    fields: Option<Fields<'_>>,
) {
    let mut fields = if matches!(part, Part::Later(_)) { None } else { fields };
    let ports = match protocol {
        6 | 17 | 132 => fields.as_mut().and_then(|fields| Some((fields.u16()?, fields.u16()?))),
        _ => None,
    };
    let _ = match ports {
        Some((source, target)) => write!(line, "{} > {}", endpoint(from, source), endpoint(to, target)),
        None => write!(line, "{from} > {to}"),
    };
    let _ = match protocol {
        1 => write!(line, " ICMP"),
        2 => write!(line, " IGMP"),
        6 => write!(line, " TCP"),
        17 => write!(line, " UDP"),
        47 => write!(line, " GRE"),
        50 => write!(line, " ESP"),
        58 => write!(line, " ICMPv6"),
        59 => write!(line, " no next header"),
        132 => write!(line, " SCTP"),
        other => write!(line, " protocol {other}"),
    };
    if let Some(detail) = fields.and_then(|fields| detail(protocol, fields)) {
        let _ = write!(line, " {detail}");
    }
    match part {
        Part::Whole => {}
        Part::First => line.push_str(" first fragment"),
        Part::Later(offset) => {
            let _ = write!(line, " fragment at {offset}");
        }
    }
}

/// `192.0.2.1:53`, `[2001:db8::1]:53`.
fn endpoint(address: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

/// TCP's flags, ICMP's type and code.
fn detail(protocol: u8, mut fields: Fields<'_>) -> Option<String> {
    match protocol {
        1 | 58 => {
            let head = fields.take(2)?;
            let echo = match (protocol, head[0]) {
                (1, 8) | (58, 128) => "echo request",
                (1, 0) | (58, 129) => "echo reply",
                _ => return Some(format!("type {} code {}", head[0], head[1])),
            };
            Some(echo.to_owned())
        }
        6 => {
            // Ports are read; sequence and acknowledgement numbers, then the data offset (RFC 9293, section 3.1).
            let flags = fields.take(10)?[9];
            let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
            let set = names.iter().enumerate().filter(|&(bit, _)| flags >> bit & 1 != 0);
            let set: Vec<&str> = set.map(|(_, &name)| name).collect();
            Some(if set.is_empty() { "no flags".to_owned() } else { set.join(",") })
        }
        _ => None,
    }
}
