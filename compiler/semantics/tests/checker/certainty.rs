//! What is certain: which conditions with `!=` and `not in` compile, by hand.

use crate::support::check;

/// Wraps a condition in a program.
fn compiles(condition: &str) -> bool {
    let text = format!(
        "header probe {{ a: u8; b: u8 when a == 1; needs 1; }}\n\
         bind udp.dport 9 => probe;\n\
         set s = {{ 10.0.0.0/8 }};\n\
         def far = ipv4.ttl != 64;\n\
         xdp t {{ default pass; rule m: {condition} => drop; }}"
    );
    let (program, messages) = check(&text);
    assert!(program.is_some() || messages.contains("error[E0401]"), "{condition}\n{messages}");
    program.is_some()
}

#[test]
fn what_makes_operands_certain() {
    for condition in [
        // A header, its parents, its unions.
        "ipv4 and ipv4.ttl != 64",
        "tcp and tcp.dport != 80",
        "tcp and ip.src not in s",
        "udp and ip.ttl != 1",
        "tcp and eth.type != 5",
        "eth.type != 0x0800 and eth",
        "ip and ip.src not in s",
        "l4 and l4.dport not in { 80, 443 }",
        "l4 and ip.len != 40",
        "arp and arp.op != 1",
        "vlan[1] and vlan.vid != vlan[1].vid",
        "vlan and vlan[last].vid != 5",
        "hopopts and ip.ttl != 255",
        "icmp and icmp.type != 8",
        "probe and probe.a != 3",
        "probe and udp.len != 9 and ip.ttl != 1",
        // A comparison makes its operands and their headers certain.
        "ip.src == 10.0.0.1 and ip.dst not in s",
        "tcp.syn and tcp.dport != 80",
        "ip.dst in s and ip.src not in s",
        "arp.spa == 10.0.0.1 and arp.spa != 10.0.0.2",
        "ip.proto == 89 and ip.proto != 1",
        "ip.fragment and ip.ttl != 5",
        "tcp.dport - 5 == 3 and tcp.dport - 5 != 4",
        // Headers that the protocol selects prove it.
        "tcp and ip.proto != 1",
        "l4 and ip.proto not in { 1, 58 }",
        // Payloads.
        "udp.payload.len >= 4 and udp.payload[0..4] != \"quic\"",
        "udp.payload.len > 3 and udp.payload[0..4] != \"quic\"",
        "udp.payload.len in 4-100 and udp.payload[0..4] != \"quic\"",
        "udp.payload[2..6] == \"abcd\" and udp.payload[0..4] != \"quic\"",
        "udp and udp.payload != \"abc\"",
        "udp and udp.payload.len != 5",
        // Order does not matter; both sides of `or`; double negation; nesting.
        "ip.src not in s and ip",
        "(tcp or udp) and ip.src not in s",
        "(tcp.dport == 80 or tcp.sport == 80) and tcp.seq != 0",
        "not (not (ip)) and ip.src not in s",
        "not (ip and ip.src not in s)",
        "tcp and (udp or tcp.dport != 80)",
        // A default.
        "vlan.vid default 0 != 4",
        // A definition is judged where it is used.
        "ipv4 and far",
        // The packet itself.
        "pkt.len != 60",
    ] {
        assert!(compiles(condition), "{condition}");
    }
}

#[test]
fn what_does_not() {
    for condition in [
        "ip.src not in s",
        "ipv4.ttl != 64",
        "far",
        "eth.type != 0x0800",
        "ip and ipv4.ttl != 64",
        "ip and ip.proto != 6",
        "ipv6 and ip.proto != 6",
        "ah and ip.proto != 6",
        "l4 and tcp.dport != 80",
        // An extension header may stand behind `ah`, and that behind IPv4.
        "hopopts and ipv6.hop_limit != 255",
        "vlan and vlan[1].vid != 5",
        "arp and arp.spa != 10.0.0.1",
        "icmp and icmp.id != 5",
        "probe and probe.b != 5",
        "udp and udp.payload[0..4] != \"quic\"",
        "udp.payload.len >= 3 and udp.payload[0..4] != \"quic\"",
        "udp.payload.len < 9 and udp.payload[0..4] != \"quic\"",
        "tcp and tcp.dport - 5 != 3",
        "vlan.vid default ipv4.id != 4",
        // A negated atom proves nothing, least of all another one.
        "ip.src != 10.0.0.1 and ip.src != 10.0.0.2",
        "not (ip.src == 10.0.0.1) and ip.src != 10.0.0.2",
        "not (arp) and ip.src not in s",
        "(ip or arp) and ip.src not in s",
        "ip or ip.src not in s",
        "ip.fragment or ip.src not in s",
    ] {
        assert!(!compiles(condition), "{condition}");
    }
}

#[test]
fn a_when_around_a_rule_makes_certain() {
    let (program, messages) = check(
        "xdp t { default pass; when tcp { rule a: ip.src != 10.0.0.1 => drop; when vlan { rule b: vlan.vid != 5 => drop; } } }",
    );
    assert!(program.is_some(), "{messages}");
    let (program, messages) =
        check("xdp t { default pass; rule a: ip => pass; rule b: ip.src != 10.0.0.1 => drop; }");
    assert!(program.is_none() && messages.contains("E0401"), "an earlier rule teaches nothing: {messages}");
    let (program, messages) =
        check("chain c { rule b: ip.src != 10.0.0.1 => drop; } xdp t { default pass; when ip { apply c; } }");
    assert!(program.is_none() && messages.contains("E0401"), "a chain stands by itself: {messages}");
}
