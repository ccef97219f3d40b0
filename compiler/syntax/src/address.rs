//! IP and MAC addresses and their prefixes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use logos::Lexer;
use pktc_diagnostics::codes;

use crate::lexer::{error, mend, refuse};
use crate::token::Token;

/// Reads what has two colons at least: an IPv6 or a MAC address, or a prefix of one.
pub(crate) fn classify(lexer: &mut Lexer<Token>) -> Token {
    let text = lexer.slice();
    let (address, length) = split_prefix(text);
    if let Ok(address) = address.parse::<Ipv6Addr>() {
        return ip_token(lexer, IpAddr::V6(address), length.map(ToOwned::to_owned));
    }
    if let Some(mac) = parse_mac(address) {
        return mac_token(lexer, mac, length.map(ToOwned::to_owned));
    }
    let help = colon_advice(address);
    let title = format!("`{text}` is neither an IPv6 nor a MAC address");
    let diagnostic = error(lexer, codes::BAD_ADDRESS, title, "not an address").with_help(help);
    refuse(lexer, diagnostic)
}

/// Reads what has two dots at least, or a dot and a `/`.
pub(crate) fn ipv4(lexer: &mut Lexer<Token>) -> Token {
    let text = lexer.slice();
    let (address, length) = split_prefix(text);
    if let Ok(address) = address.parse::<Ipv4Addr>() {
        return ip_token(lexer, IpAddr::V4(address), length.map(ToOwned::to_owned));
    }
    let help = dotted_advice(address, length);
    let title = format!("`{text}` is not an IPv4 {}", if length.is_some() { "prefix" } else { "address" });
    let diagnostic = error(lexer, codes::BAD_ADDRESS, title, "not an address").with_help(help);
    refuse(lexer, diagnostic)
}

fn split_prefix(text: &str) -> (&str, Option<&str>) {
    text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)))
}

/// Six pairs of hexadecimal digits; the first byte becomes the highest of 48 bits.
fn parse_mac(text: &str) -> Option<u64> {
    let mut value = 0;
    let mut groups = 0;
    for group in text.split(':') {
        if group.len() != 2 {
            return None;
        }
        value = value << 8 | u64::from(u8::from_str_radix(group, 16).ok()?);
        groups += 1;
    }
    (groups == 6).then_some(value)
}

fn ip_token(lexer: &mut Lexer<Token>, address: IpAddr, length: Option<String>) -> Token {
    let Some(length) = length else { return Token::Address(address) };
    let width = if address.is_ipv4() { 32 } else { 128 };
    let Some(bits) = parse_length(&length, width) else {
        return bad_length(lexer, &length, width, netmask_length(&length));
    };
    let network = mask_ip(address, bits);
    if network == address {
        return Token::Prefix((address, bits));
    }
    report_host_bits(lexer, bits, &network.to_string(), &address.to_string(), Token::Prefix((address, bits)))
}

fn mac_token(lexer: &mut Lexer<Token>, mac: u64, length: Option<String>) -> Token {
    let Some(length) = length else { return Token::Mac(mac) };
    let Some(bits) = parse_length(&length, 48) else { return bad_length(lexer, &length, 48, None) };
    let network = mac & !(u64::MAX >> 16 >> bits) & (u64::MAX >> 16);
    if network == mac {
        return Token::MacPrefix((mac, bits));
    }
    report_host_bits(lexer, bits, &show_mac(network), &show_mac(mac), Token::MacPrefix((mac, bits)))
}

fn parse_length(length: &str, width: u8) -> Option<u8> {
    let plain =
        length.bytes().all(|byte| byte.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    length.parse().ok().filter(|&bits| plain && bits <= width)
}

fn mask_ip(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

fn show_mac(mac: u64) -> String {
    let bytes: Vec<String> = mac.to_be_bytes()[2..].iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// The prefix length that a netmask such as `255.255.0.0` stands for.
fn netmask_length(text: &str) -> Option<u32> {
    let mask = text.parse::<Ipv4Addr>().ok()?.to_bits();
    (mask.leading_ones() == mask.count_ones()).then(|| mask.leading_ones())
}

fn bad_length(lexer: &mut Lexer<Token>, length: &str, width: u8, netmask: Option<u32>) -> Token {
    let title = format!("`/{length}` is not the length of a prefix here");
    let help = match netmask {
        Some(bits) => format!("write the netmask as its number of ones: `/{bits}`"),
        None => {
            format!("these addresses have {width} bits: a length is 0 to {width}, without a leading zero")
        }
    };
    let diagnostic = error(lexer, codes::BAD_ADDRESS, title, "not a prefix").with_help(help);
    refuse(lexer, diagnostic)
}

fn report_host_bits(lexer: &mut Lexer<Token>, bits: u8, network: &str, address: &str, token: Token) -> Token {
    let title = format!("`{}` has bits set behind the first {bits}", lexer.slice());
    let label = format!("the prefix is {network}/{bits}");
    let diagnostic = error(lexer, codes::HOST_BITS, title, &label)
        .with_note("An address that is longer than its prefix is often a slip in one or the other.")
        .with_help(format!("write `{network}/{bits}` for the network, `{address}` for the one address"));
    mend(lexer, diagnostic, token)
}

fn colon_advice(text: &str) -> String {
    let groups: Vec<&str> = text.split(':').collect();
    let hex = groups.iter().all(|group| group.chars().all(|c| c.is_ascii_hexdigit()));
    if groups.len() == 6 && hex && groups.iter().all(|group| (1..=2).contains(&group.len())) {
        let padded: Vec<String> = groups.iter().map(|group| format!("{group:0>2}")).collect();
        return format!("a MAC address has two digits in each part: `{}`", padded.join(":"));
    }
    if text.starts_with("::") && !hex {
        return "parts of a path are joined with a dot: `lib.name`".to_owned();
    }
    if hex && groups.len() < 8 && !text.contains("::") {
        return format!(
            "an IPv6 address has eight parts, or `::` for those that are zero; a MAC address has six; these are {}",
            groups.len()
        );
    }
    "an IPv6 address reads `2001:db8::1`, a MAC address `02:00:00:00:00:01`".to_owned()
}

fn dotted_advice(address: &str, length: Option<&str>) -> String {
    let parts: Vec<&str> = address.split('.').collect();
    let numbers = parts.iter().all(|part| part.chars().all(|c| c.is_ascii_digit()));
    if !numbers {
        return "an IPv4 address is four numbers: `192.0.2.1`".to_owned();
    }
    if parts.len() < 4 {
        let zeros = ".0".repeat(4 - parts.len());
        return match length {
            Some(length) => format!("all four numbers are written: `{address}{zeros}/{length}`"),
            None => format!(
                "an IPv4 address is four numbers; a network is `{address}{zeros}/{}`",
                8 * parts.len()
            ),
        };
    }
    if parts.len() > 4 {
        return format!("an IPv4 address is four numbers; these are {}", parts.len());
    }
    match parts.iter().find(|part| part.len() > 1 && part.starts_with('0')) {
        Some(part) => {
            format!("`{part}` begins with a zero, which some programs read as octal; write it without")
        }
        None => "each of the four numbers is 0 to 255".to_owned(),
    }
}
