//! The standard library's headers, against the RFCs, by hand.

use pktc_semantics::typed::{Header, NextKind, Position, Program, Target};
use pktc_syntax::ast::Scope;

use crate::support::program;

fn empty() -> Program {
    program("xdp t { default pass; }")
}

fn header<'a>(program: &'a Program, name: &str) -> &'a Header {
    program.headers.values().find(|header| header.name == name).expect(name)
}

/// A field: name, first bit and width. `~` in front of a name: the field is conditional; reserved bits are `_`;
/// a width of 0 is what is left.
type Layout = &'static [(&'static str, u32, u32)];

#[track_caller]
fn assert_layout(name: &str, bytes: u32, expected: Layout) {
    let program = empty();
    let header = header(&program, name);
    let mut found = Vec::new();
    for field in &header.fields {
        let Position::Start { bits, plus } = &field.position else { panic!("{name}: counted from the end") };
        let before: u32 = plus.iter().map(|&other| header.fields[other].bits).sum();
        let name = field.name.as_deref().unwrap_or("_");
        let mark = if field.when.is_some() { "~" } else { "" };
        found.push((format!("{mark}{name}"), bits + before, field.bits));
    }
    let expected: Vec<_> = expected.iter().map(|&(name, at, bits)| (name.to_owned(), at, bits)).collect();
    assert_eq!(found, expected, "{name}");
    assert_eq!(header.fixed_bytes, bytes, "{name}");
}

#[test]
fn ethernet_and_vlan() {
    assert_layout("eth", 14, &[("dst", 0, 48), ("src", 48, 48), ("type", 96, 16)]);
    assert_layout("vlan", 4, &[("pcp", 0, 3), ("dei", 3, 1), ("vid", 4, 12), ("type", 16, 16)]);
}

/// RFC 826; the addresses' offsets are those of Ethernet and IPv4.
#[test]
fn arp() {
    assert_layout(
        "arp",
        8,
        &[
            ("htype", 0, 16),
            ("ptype", 16, 16),
            ("hlen", 32, 8),
            ("plen", 40, 8),
            ("op", 48, 16),
            ("~sha", 64, 48),
            ("~spa", 112, 32),
            ("~tha", 144, 48),
            ("~tpa", 192, 32),
        ],
    );
}

/// RFC 791, section 3.1.
#[test]
fn ipv4() {
    assert_layout(
        "ipv4",
        20,
        &[
            ("version", 0, 4),
            ("ihl", 4, 4),
            ("dscp", 8, 6),
            ("ecn", 14, 2),
            ("len", 16, 16),
            ("id", 32, 16),
            ("rf", 48, 1),
            ("df", 49, 1),
            ("mf", 50, 1),
            ("frag_off", 51, 13),
            ("ttl", 64, 8),
            ("proto", 72, 8),
            ("checksum", 80, 16),
            ("src", 96, 32),
            ("dst", 128, 32),
        ],
    );
}

/// RFC 8200, section 3.
#[test]
fn ipv6() {
    assert_layout(
        "ipv6",
        40,
        &[
            ("version", 0, 4),
            ("dscp", 4, 6),
            ("ecn", 10, 2),
            ("flow_label", 12, 20),
            ("payload_len", 32, 16),
            ("next_header", 48, 8),
            ("hop_limit", 56, 8),
            ("src", 64, 128),
            ("dst", 192, 128),
        ],
    );
}

/// RFC 8200, sections 4.3 to 4.6.
#[test]
fn extension_headers() {
    assert_layout("hopopts", 2, &[("next_header", 0, 8), ("hdr_len", 8, 8)]);
    assert_layout("dstopts", 2, &[("next_header", 0, 8), ("hdr_len", 8, 8)]);
    assert_layout(
        "routing",
        4,
        &[
            ("next_header", 0, 8),
            ("hdr_len", 8, 8),
            ("type", 16, 8),
            ("segments_left", 24, 8),
            ("data", 32, 0),
        ],
    );
    assert_layout(
        "fragment",
        8,
        &[
            ("next_header", 0, 8),
            ("_", 8, 8),
            ("frag_off", 16, 13),
            ("_", 29, 2),
            ("more", 31, 1),
            ("id", 32, 32),
        ],
    );
}

/// RFC 4302, section 2: 12 bytes and the ICV.
#[test]
fn authentication_header() {
    assert_layout(
        "ah",
        8,
        &[
            ("next_header", 0, 8),
            ("hdr_len", 8, 8),
            ("_", 16, 16),
            ("spi", 32, 32),
            ("~seq", 64, 32),
            ("icv", 96, 0),
        ],
    );
}

/// RFC 6275 section 6.1.1, RFC 7401 section 5.1, RFC 5533 section 5.3.
#[test]
fn extension_headers_that_are_stepped_over() {
    assert_layout(
        "mobility",
        6,
        &[
            ("next_header", 0, 8),
            ("hdr_len", 8, 8),
            ("type", 16, 8),
            ("_", 24, 8),
            ("checksum", 32, 16),
            ("data", 48, 0),
        ],
    );
    assert_layout(
        "hip",
        8,
        &[
            ("next_header", 0, 8),
            ("hdr_len", 8, 8),
            ("_", 16, 1),
            ("type", 17, 7),
            ("version", 24, 4),
            ("_", 28, 3),
            ("_", 31, 1),
            ("checksum", 32, 16),
            ("controls", 48, 16),
            ("~sender_hit", 64, 128),
            ("~receiver_hit", 192, 128),
            ("data", 320, 0),
        ],
    );
    assert_layout(
        "shim6",
        6,
        &[
            ("next_header", 0, 8),
            ("hdr_len", 8, 8),
            ("p", 16, 1),
            ("type", 17, 7),
            ("_", 24, 8),
            ("checksum", 32, 16),
            ("data", 48, 0),
        ],
    );
}

/// RFC 9293, section 3.1; `flags` are the eight bits from CWR to FIN.
#[test]
fn tcp() {
    assert_layout(
        "tcp",
        20,
        &[
            ("sport", 0, 16),
            ("dport", 16, 16),
            ("seq", 32, 32),
            ("ack_seq", 64, 32),
            ("data_off", 96, 4),
            ("reserved", 100, 3),
            ("ae", 103, 1),
            ("cwr", 104, 1),
            ("ece", 105, 1),
            ("urg", 106, 1),
            ("ack", 107, 1),
            ("psh", 108, 1),
            ("rst", 109, 1),
            ("syn", 110, 1),
            ("fin", 111, 1),
            ("window", 112, 16),
            ("checksum", 128, 16),
            ("urg_ptr", 144, 16),
            ("flags", 104, 8),
        ],
    );
}

/// RFC 768; RFC 9260, section 3.1.
#[test]
fn udp_and_sctp() {
    assert_layout("udp", 8, &[("sport", 0, 16), ("dport", 16, 16), ("len", 32, 16), ("checksum", 48, 16)]);
    assert_layout("sctp", 12, &[("sport", 0, 16), ("dport", 16, 16), ("vtag", 32, 32), ("checksum", 64, 32)]);
}

/// RFC 792 and RFC 1191; RFC 4443. What follows the checksum depends on the type, and starts at the same place.
#[test]
fn icmp_and_icmpv6() {
    assert_layout(
        "icmp",
        4,
        &[
            ("type", 0, 8),
            ("code", 8, 8),
            ("checksum", 16, 16),
            ("~id", 32, 16),
            ("~seq", 48, 16),
            ("~_", 32, 16),
            ("~mtu", 48, 16),
            ("~gateway", 32, 32),
            ("~pointer", 32, 8),
            ("~_", 40, 24),
            ("~_", 32, 32),
        ],
    );
    assert_layout(
        "icmpv6",
        4,
        &[
            ("type", 0, 8),
            ("code", 8, 8),
            ("checksum", 16, 16),
            ("~id", 32, 16),
            ("~seq", 48, 16),
            ("~mtu", 32, 32),
            ("~pointer", 32, 32),
            ("~_", 32, 32),
        ],
    );
    for name in ["icmp", "icmpv6"] {
        assert_eq!(header(&empty(), name).needs, Some(4), "{name}");
    }
}

/// Every header of the library is above; a new one needs its layout by hand, too.
/// RFC 2784, section 2; RFC 2890, section 2.
#[test]
fn generic_routing_encapsulation() {
    assert_layout(
        "gre",
        4,
        &[
            ("c", 0, 1),
            ("r", 1, 1),
            ("k", 2, 1),
            ("s", 3, 1),
            ("_", 4, 9),
            ("version", 13, 3),
            ("proto", 16, 16),
            ("~checksum", 32, 16),
            ("~_", 48, 16),
            ("~key", 64, 32),
            ("~seq", 96, 32),
        ],
    );
}

/// RFC 7348, section 5; RFC 8926, section 3.4; 3GPP TS 29.281, section 5.1.
#[test]
fn tunnels_over_udp() {
    assert_layout("vxlan", 8, &[("flags", 0, 8), ("_", 8, 24), ("vni", 32, 24), ("_", 56, 8)]);
    assert_layout(
        "geneve",
        8,
        &[
            ("version", 0, 2),
            ("opt_len", 2, 6),
            ("o", 8, 1),
            ("c", 9, 1),
            ("_", 10, 6),
            ("proto", 16, 16),
            ("vni", 32, 24),
            ("_", 56, 8),
            ("options", 64, 0),
        ],
    );
    assert_layout(
        "gtpu",
        8,
        &[
            ("version", 0, 3),
            ("pt", 3, 1),
            ("_", 4, 1),
            ("e", 5, 1),
            ("s", 6, 1),
            ("pn", 7, 1),
            ("type", 8, 8),
            ("len", 16, 16),
            ("teid", 32, 32),
            ("~seq", 64, 16),
            ("~npdu", 80, 8),
            ("~next_ext", 88, 8),
        ],
    );
}

/// RFC 1035, section 4.1.1; RFC 4035, section 3.
#[test]
fn domain_names() {
    assert_layout(
        "dns",
        12,
        &[
            ("id", 0, 16),
            ("qr", 16, 1),
            ("opcode", 17, 4),
            ("aa", 21, 1),
            ("tc", 22, 1),
            ("rd", 23, 1),
            ("ra", 24, 1),
            ("z", 25, 1),
            ("ad", 26, 1),
            ("cd", 27, 1),
            ("rcode", 28, 4),
            ("qdcount", 32, 16),
            ("ancount", 48, 16),
            ("nscount", 64, 16),
            ("arcount", 80, 16),
        ],
    );
}

#[test]
fn no_header_is_forgotten() {
    let program = empty();
    let names: Vec<_> = program.headers.values().map(|header| header.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ah",
            "arp",
            "dns",
            "dstopts",
            "erspan",
            "erspan_ii",
            "erspan_iii",
            "esp",
            "eth",
            "fragment",
            "geneve",
            "gre",
            "gtpu",
            "gtpu_ext",
            "hip",
            "hopopts",
            "icmp",
            "icmpv6",
            "igmp",
            "ipv4",
            "ipv6",
            "l2tp",
            "mobility",
            "ntp",
            "quic",
            "routing",
            "sctp",
            "shim6",
            "tcp",
            "teredo",
            "teredo_auth",
            "teredo_origin",
            "udp",
            "vlan",
            "vxlan",
            "wireguard"
        ]
    );
}

/// The targets of a header's first `next by`, by value, with the packet that they are in.
fn edges(program: &Program, name: &str) -> Vec<(u64, String)> {
    let NextKind::By { edges, .. } = &header(program, name).next[0].kind else {
        panic!("{name}: not by value")
    };
    let named = |target: &Target| {
        let scope = match target.scope {
            None => "",
            Some(Scope::Inner) => "inner.",
            Some(Scope::Quoted) => "quoted.",
        };
        format!("{scope}{}", program.headers[target.header].name)
    };
    edges.iter().map(|(&value, target)| (value, named(target))).collect()
}

#[test]
fn numbers_select_the_headers_of_their_registries() {
    let program = empty();
    let name = |value, name: &str| (value, name.to_owned());
    let ether_types = vec![
        name(0x0800, "ipv4"),
        name(0x0806, "arp"),
        name(0x8100, "vlan"),
        name(0x86dd, "ipv6"),
        name(0x88a8, "vlan"),
        name(0x9100, "vlan"),
    ];
    assert_eq!(edges(&program, "eth"), ether_types);
    assert_eq!(edges(&program, "vlan"), ether_types);
    let after_ipv4 = vec![
        name(1, "icmp"),
        name(2, "igmp"),
        name(4, "inner.ipv4"),
        name(6, "tcp"),
        name(17, "udp"),
        name(41, "inner.ipv6"),
        name(47, "gre"),
        name(50, "esp"),
        name(51, "ah"),
        name(58, "icmpv6"),
        name(132, "sctp"),
    ];
    assert_eq!(edges(&program, "ipv4"), after_ipv4);
    let mut after_ipv6 = after_ipv4;
    after_ipv6.extend([
        name(0, "hopopts"),
        name(43, "routing"),
        name(44, "fragment"),
        name(60, "dstopts"),
        name(135, "mobility"),
        name(139, "hip"),
        name(140, "shim6"),
    ]);
    after_ipv6.sort();
    for from in ["ipv6", "hopopts", "dstopts", "routing", "fragment", "ah", "mobility", "hip", "shim6"] {
        assert_eq!(edges(&program, from), after_ipv6, "{from}");
    }
    for from in ["udp", "tcp"] {
        assert_eq!(header(&program, from).next.len(), 2, "a branch for each port of {from}");
    }
    assert_eq!(edges(&program, "tcp"), []);
    for tunnel in ["gre", "geneve"] {
        let carried: Vec<_> = edges(&program, tunnel);
        assert!(
            carried.contains(&name(0x6558, "inner.eth")) && carried.contains(&name(0x0800, "inner.ipv4"))
        );
        assert!(carried.iter().all(|(_, name)| name.starts_with("inner.")), "{tunnel}");
    }
    let quoting = |name: &str| edges(&program, name).iter().map(|&(value, _)| value).collect::<Vec<_>>();
    assert_eq!(quoting("icmp"), [3, 4, 5, 11, 12]);
    assert_eq!(quoting("icmpv6"), [1, 2, 3, 4]);
    let ports = [
        name(53, "dns"),
        name(123, "ntp"),
        name(443, "quic"),
        name(1701, "l2tp"),
        name(2152, "gtpu"),
        name(3544, "teredo"),
        name(4789, "vxlan"),
        name(6081, "geneve"),
        name(51_820, "wireguard"),
    ];
    assert_eq!(edges(&program, "udp"), ports);
}

#[test]
fn repeats_are_bounded() {
    let program = empty();
    let repeats = |name| header(&program, name).repeats;
    assert_eq!(repeats("vlan"), 4);
    assert_eq!(repeats("ipv6"), 1);
    let union = program.unions.values().find(|union| union.name == "ip_ext").unwrap();
    assert_eq!(union.repeats, Some(8));
    for &member in &union.members {
        assert_eq!(program.headers[member].repeats, 8, "{}", program.headers[member].name);
    }
}

/// `malformed` asks what ether types and IP protocols select, and nothing behind a port.
#[test]
fn malformed_asks_the_packet_up_to_the_transport_headers() {
    let text = "header mine { a: u8; } bind udp.port 9 => mine; xdp t { default pass; }";
    let program = program(text);
    let names: Vec<_> = program.packet_headers.iter().map(|&id| program.headers[id].name.as_str()).collect();
    assert_eq!(names.first(), Some(&"eth"));
    assert_eq!(names.len(), 24);
    assert!(!names.contains(&"mine"));
    let at = |name| names.iter().position(|&it| it == name);
    assert!(at("vlan") < at("ipv4") && at("ipv4") < at("tcp") && at("ipv6") < at("udp"));
}

#[test]
fn union_fields_have_the_types_of_their_sources() {
    let program = program("xdp t { default pass; rule m: ip.len == 1 and l4.dport == 2 => drop; }");
    let dump = pktc_semantics::dump(&program);
    for line in [
        "    src: ip_addr = each",
        "    dscp: u6 = each",
        "    ttl: u8 = ipv4.ttl | ipv6.hop_limit",
        "    len: u32 = ipv4.len | (ipv6.payload_len + 40)",
        "    proto: ip_proto = ip_ext[last].next_header | ipv4.proto | ipv6.next_header when not (ip_ext.malformed)",
        "    later_fragment: bool = ipv4.frag_off != 0 | fragment.frag_off != 0",
        "    dport: u16 = each",
    ] {
        assert!(dump.lines().any(|it| it == line), "{line}\n{dump}");
    }
}
