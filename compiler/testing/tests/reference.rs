//! The reference evaluator on frames composed by hand, with verdicts written by hand.

mod support;

use pktc_semantics::typed::Verdict;
use pktc_testing::engine::{Engine, Env};
use support::{Checked, Conditions, eth, extension, hex, ipv4, ipv6, tcp, udp, vlan};

/// Asserts which of `conditions` hold on `frame`.
#[track_caller]
fn holds(frame: &[u8], conditions: &[(&str, bool)]) {
    let texts: Vec<_> = conditions.iter().map(|(text, _)| *text).collect();
    let expected: Vec<_> = conditions.iter().filter(|(_, holds)| *holds).map(|(text, _)| *text).collect();
    assert_eq!(Conditions::new("", &texts).holding(frame), expected);
}

#[test]
fn a_plain_datagram() {
    let frame = eth(0x0800, &ipv4(17, &udp(53, b"abcd")));
    holds(
        &frame,
        &[
            ("eth", true),
            ("eth.type == ipv4", true),
            ("eth.type < 1536", false),
            ("eth.src == 02:00:00:00:00:01", true),
            ("vlan", false),
            ("ip", true),
            ("ipv4", true),
            ("ipv6", false),
            ("ip.src == 192.0.2.1", true),
            ("ip.src in 192.0.2.0/24", true),
            ("ip.src in { 2001:db8::/32, 192.0.2.1 }", true),
            ("ip.src in { 2001:db8::/32 }", false),
            ("ip.len == 32", true),
            ("ip.ttl == 64", true),
            ("ip.proto == udp", true),
            ("ip.fragment", false),
            ("udp", true),
            ("tcp", false),
            ("l4", true),
            ("l4.dport == 53", true),
            ("udp.dport in 50-53", true),
            ("udp.dport > 53", false),
            ("udp.payload.len == 4", true),
            ("udp.payload[1..3] == \"bc\"", true),
            ("udp.payload[0..1] & 0xf0 == 0x60", true),
            ("udp.payload[2..5] == \"cd\\x00\"", false),
            ("udp.payload == \"abcd\"", true),
            ("udp.payload == \"abc\"", false),
            ("pkt.len == 46", true),
            ("malformed", false),
            ("udp.malformed", false),
            ("ipv4.truncated", false),
        ],
    );
}

#[test]
fn what_is_absent_has_no_value() {
    let frame = eth(0x0806, &[0; 28]);
    holds(
        &frame,
        &[
            ("ip.src in { 0.0.0.0/0, ::/0 }", false),
            ("not (ip.src in { 0.0.0.0/0, ::/0 })", true),
            ("ip and ip.src not in { 192.0.2.1 }", false),
            ("tcp.dport < 65535", false),
            ("not tcp", true),
            ("not (tcp.syn)", true),
            ("vlan.vid default 7 == 7", true),
            ("udp.sport - udp.dport == 0", false),
            ("malformed", false),
        ],
    );
}

#[test]
fn arithmetic_is_in_64_bits() {
    let frame = eth(0x0800, &ipv4(17, &udp(53, b"")));
    holds(
        &frame,
        &[
            ("udp.dport - 54 < 100", false),
            ("udp.dport - 53 == 0", true),
            ("not (udp.dport - 54 == 0)", true),
            ("udp.dport * 65536 * 65536 == 53 << 32", true),
            ("udp.dport << 64 == 0", true),
            ("udp.dport << 63 == 1 << 63", true),
            ("udp.dport >> 64 == 0", true),
            ("udp.dport >> 2 == 13", true),
            ("udp.sport ^ udp.sport == 0", true),
            ("udp.sport | 1 == 40001", true),
        ],
    );
}

#[test]
fn tags_from_none_to_six() {
    let conditions = [
        "udp.dport == 53",
        "vlan",
        "vlan.vid == 1",
        "vlan[1].vid == 2",
        "vlan[3]",
        "vlan[last].vid == 4",
        "vlan[any].vid == 3",
        "malformed",
        "vlan.malformed",
        "ip",
        "eth.type == ipv4",
    ];
    let mut asked = Conditions::new("", &conditions);
    let datagram = ipv4(17, &udp(53, b"x"));
    // From inside out, so that the outermost has vid 1.
    let tagged = |tags: u16| {
        let next = |vid| if vid == tags { 0x0800 } else { 0x8100 };
        let rest = (1..=tags).rev().fold(datagram.clone(), |rest, vid| vlan(vid, next(vid), &rest));
        eth(if tags == 0 { 0x0800 } else { 0x8100 }, &rest)
    };
    let expected: [&[&str]; 7] = [
        &["udp.dport == 53", "ip", "eth.type == ipv4"],
        &["udp.dport == 53", "vlan", "vlan.vid == 1", "ip"],
        &["udp.dport == 53", "vlan", "vlan.vid == 1", "vlan[1].vid == 2", "ip"],
        &["udp.dport == 53", "vlan", "vlan.vid == 1", "vlan[1].vid == 2", "vlan[any].vid == 3", "ip"],
        &[
            "udp.dport == 53",
            "vlan",
            "vlan.vid == 1",
            "vlan[1].vid == 2",
            "vlan[3]",
            "vlan[last].vid == 4",
            "vlan[any].vid == 3",
            "ip",
        ],
        &[
            "vlan",
            "vlan.vid == 1",
            "vlan[1].vid == 2",
            "vlan[3]",
            "vlan[last].vid == 4",
            "vlan[any].vid == 3",
            "malformed",
            "vlan.malformed",
        ],
        &[
            "vlan",
            "vlan.vid == 1",
            "vlan[1].vid == 2",
            "vlan[3]",
            "vlan[last].vid == 4",
            "vlan[any].vid == 3",
            "malformed",
            "vlan.malformed",
        ],
    ];
    for (tags, expected) in expected.iter().enumerate() {
        assert_eq!(asked.holding(&tagged(tags as u16)), *expected, "{tags} tags");
    }
}

#[test]
fn fragments() {
    let conditions = [
        "ip.fragment",
        "ip.first_fragment",
        "ip.later_fragment",
        "ip.proto == udp",
        "udp.dport == 53",
        "udp.malformed",
        "malformed",
    ];
    let mut asked = Conditions::new("", &conditions);
    let v4 = |flags_and_offset: u16, rest: &[u8]| {
        let mut header = ipv4(17, rest);
        header[6..8].copy_from_slice(&flags_and_offset.to_be_bytes());
        eth(0x0800, &header)
    };
    let v6 = |offset_and_more: u16, rest: &[u8]| {
        let header = [&[17, 0][..], &offset_and_more.to_be_bytes(), &[0, 0, 0, 7], rest].concat();
        eth(0x86dd, &ipv6(44, &header))
    };
    let datagram = udp(53, b"12345678");
    let mut check = |frame: &[u8], expected: &[&str], what: &str| {
        assert_eq!(asked.holding(frame), expected, "{what}");
    };
    let first = ["ip.fragment", "ip.first_fragment", "ip.proto == udp", "udp.dport == 53"];
    let later = ["ip.fragment", "ip.later_fragment", "ip.proto == udp"];
    let short = ["ip.fragment", "ip.first_fragment", "ip.proto == udp", "udp.malformed", "malformed"];
    check(&v4(0x4000, &datagram), &["ip.proto == udp", "udp.dport == 53"], "IPv4, not to be fragmented");
    check(&v4(0x2000, &datagram), &first, "IPv4, first");
    check(&v4(0x2000, &datagram[..4]), &short, "IPv4, first, half a header");
    check(&v4(0x2001, &datagram), &later, "IPv4, middle, dressed as a datagram");
    check(&v4(0x00b9, &datagram), &later, "IPv4, last");
    check(&v4(0x00b9, b""), &later, "IPv4, last, empty");
    check(&v6(0x0000, &datagram), &["ip.proto == udp", "udp.dport == 53"], "IPv6, atomic");
    check(&v6(0x0001, &datagram), &first, "IPv6, first");
    check(&v6(0x0001, &datagram[..4]), &short, "IPv6, first, half a header");
    check(&v6(0x0009, &datagram), &later, "IPv6, middle");
    check(&v6(0x0048, &datagram), &later, "IPv6, last");
}

#[test]
fn chains_of_extension_headers() {
    let conditions = [
        "udp.dport == 53",
        "ip.proto == udp",
        "ip_ext",
        "ip_ext[7]",
        "ip_ext.malformed",
        "dstopts.malformed",
        "hopopts.malformed",
        "malformed",
        "hopopts",
        "dstopts[1]",
    ];
    let mut asked = Conditions::new("", &conditions);
    // Hop-by-hop options, then destination options.
    let chain = |headers: usize| {
        let kind = |at: usize| match at {
            at if at == headers => 17,
            0 => 0,
            _ => 60,
        };
        let rest = (0..headers).rev().fold(udp(53, b"x"), |rest, at| extension(kind(at + 1), &rest));
        eth(0x86dd, &ipv6(kind(0), &rest))
    };
    let whole = ["udp.dport == 53", "ip.proto == udp"];
    assert_eq!(asked.holding(&chain(0)), whole);
    for headers in 1..=8 {
        let mut expected = [&whole[..], &["ip_ext"]].concat();
        expected.extend((headers == 8).then_some("ip_ext[7]"));
        expected.push("hopopts");
        expected.extend((headers >= 3).then_some("dstopts[1]"));
        assert_eq!(asked.holding(&chain(headers)), expected, "{headers} headers");
    }
    let expected = [
        "ip_ext",
        "ip_ext[7]",
        "ip_ext.malformed",
        "dstopts.malformed",
        "malformed",
        "hopopts",
        "dstopts[1]",
    ];
    assert_eq!(asked.holding(&chain(9)), expected);
}

#[test]
fn an_extension_header_is_as_long_as_it_says() {
    let long = |units: u8, rest: &[u8]| {
        eth(0x86dd, &ipv6(60, &[&[17, units][..], &vec![0; usize::from(units) * 8 + 6], rest].concat()))
    };
    holds(&long(2, &udp(53, b"")), &[("udp.dport == 53", true), ("malformed", false)]);
    let mut beyond = long(0, &udp(53, b""));
    beyond[55] = 2; // 24 bytes, where 16 are
    holds(
        &beyond,
        &[
            ("udp", false),
            ("dstopts", false),
            ("dstopts.malformed", true),
            ("ip_ext.malformed", true),
            ("malformed", true),
            ("ip.proto == udp", false),
            ("ip.proto == dstopts", false),
            ("ipv6.next_header == dstopts", true),
        ],
    );
}

#[test]
fn authentication_headers_count_in_four_bytes() {
    let ah = |hdr_len: u8, size: usize, rest: &[u8]| {
        let mut header = vec![0; size];
        (header[0], header[1], header[7]) = (17, hdr_len, 9);
        [&header[..], rest].concat()
    };
    let conditions = ["udp.dport == 53", "ah", "ah.spi == 9", "ah.seq == 0", "ip.proto == udp", "malformed"];
    let mut asked = Conditions::new("", &conditions);
    let datagram = udp(53, b"");
    let whole = ["udp.dport == 53", "ah", "ah.spi == 9", "ah.seq == 0", "ip.proto == udp"];
    assert_eq!(asked.holding(&eth(0x0800, &ipv4(51, &ah(4, 24, &datagram)))), whole);
    assert_eq!(asked.holding(&eth(0x86dd, &ipv6(51, &ah(4, 24, &datagram)))), whole);
    let shortest = ["udp.dport == 53", "ah", "ah.spi == 9", "ip.proto == udp"];
    assert_eq!(asked.holding(&eth(0x0800, &ipv4(51, &ah(0, 8, &datagram)))), shortest, "no sequence number");
    assert_eq!(asked.holding(&eth(0x0800, &ipv4(51, &ah(9, 24, b"")))), ["malformed"]);
    // IPv4 has no options header behind protocol 0.
    assert_eq!(asked.holding(&eth(0x0800, &ipv4(0, &extension(17, &datagram)))), Vec::<&str>::new());
}

#[test]
fn truncated_at_every_byte() {
    let conditions = ["eth", "vlan", "ipv4", "udp", "malformed", "udp.payload.len < 6", "udp.truncated"];
    let mut asked = Conditions::new("", &conditions);
    let frame = eth(0x8100, &vlan(5, 0x0800, &ipv4(17, &udp(53, b"abcdef"))));
    assert_eq!(frame.len(), 14 + 4 + 20 + 8 + 6);
    for length in 0..=frame.len() {
        let expected: &[&str] = match length {
            0..14 => &["malformed"],
            14..18 => &["eth", "malformed"],
            18..38 => &["eth", "vlan", "malformed"],
            38..46 => &["eth", "vlan", "ipv4", "malformed"],
            46..52 => &["eth", "vlan", "ipv4", "udp", "udp.payload.len < 6", "udp.truncated"],
            _ => &["eth", "vlan", "ipv4", "udp"],
        };
        assert_eq!(asked.holding(&frame[..length]), expected, "{length} bytes");
    }
}

#[test]
fn a_short_icmp_message_is_there_but_not_its_later_fields() {
    let echo = [8, 0, 0, 0, 0, 7, 0, 1];
    let conditions =
        ["icmp", "icmp.type == echo_request", "icmp.id == 7", "icmp.seq == 1", "icmp.malformed", "malformed"];
    let mut asked = Conditions::new("", &conditions);
    for length in 0..=8 {
        let expected: &[&str] = match length {
            0..4 => &["icmp.malformed", "malformed"],
            4..6 => &["icmp", "icmp.type == echo_request"],
            6..8 => &["icmp", "icmp.type == echo_request", "icmp.id == 7"],
            _ => &["icmp", "icmp.type == echo_request", "icmp.id == 7", "icmp.seq == 1"],
        };
        let frame = eth(0x0800, &ipv4(1, &echo[..length]));
        assert_eq!(asked.holding(&frame), expected, "{length} bytes");
    }
}

#[test]
fn padding_is_neither_header_nor_payload() {
    // The datagram claims 24 bytes; what looks like the rest of a UDP header is padding.
    let mut claims = ipv4(17, &udp(53, b""));
    claims[3] = 24;
    holds(
        &eth(0x0800, &[&claims[..], &[0; 18]].concat()),
        &[("udp", false), ("udp.malformed", true), ("malformed", true), ("ip.len == 24", true)],
    );
    let padded = eth(0x0800, &[&ipv4(17, &udp(53, b"abc"))[..], &[0; 15]].concat());
    holds(
        &padded,
        &[
            ("udp.payload.len == 3", true),
            ("ipv4.payload.len == 11", true),
            ("eth.payload.len == 46", true),
            ("pkt.len == 60", true),
            ("udp.payload[0..4] == \"abc\\x00\"", false),
            ("ipv4.truncated", false),
        ],
    );
}

#[test]
fn claims_are_cut_where_what_encloses_them_ends() {
    let mut long = udp(53, b"abc");
    long[5] = 200;
    holds(
        &eth(0x0800, &ipv4(17, &long)),
        &[
            ("udp.payload.len == 3", true),
            ("udp.truncated", true),
            ("ipv4.truncated", false),
            ("malformed", false),
        ],
    );
    // Beyond the datagram, but within the frame, which padding makes longer.
    let mut longer = udp(53, b"abc");
    longer[5] = 20;
    holds(
        &eth(0x0800, &[&ipv4(17, &longer)[..], &[0; 15]].concat()),
        &[("udp.payload.len == 3", true), ("udp.truncated", false)],
    );
    let mut short = udp(53, b"abc");
    short[5] = 7;
    holds(
        &eth(0x0800, &ipv4(17, &short)),
        &[("udp", true), ("udp.payload.len == 0", true), ("malformed", false)],
    );
    let mut beyond = ipv4(17, &udp(53, b"abc"));
    beyond[2] = 4;
    holds(
        &eth(0x0800, &beyond),
        &[("udp.dport == 53", true), ("ipv4.truncated", true), ("ip.len > 1024", true), ("malformed", false)],
    );
}

#[test]
fn an_ipv6_length_of_zero() {
    let zeroed = |next_header, rest: &[u8]| {
        let mut header = ipv6(next_header, rest);
        (header[4], header[5]) = (0, 0);
        eth(0x86dd, &header)
    };
    // A jumbogram reaches to the frame's end; elsewhere zero is zero.
    let options = extension(17, &udp(53, b"abc"));
    holds(
        &zeroed(0, &options),
        &[("udp.payload.len == 3", true), ("ip.len == 40", true), ("malformed", false)],
    );
    holds(&zeroed(17, &udp(53, b"abc")), &[("udp", false), ("udp.malformed", true), ("malformed", true)]);
}

#[test]
fn header_lengths_that_lie() {
    let conditions = ["ipv4", "ipv4.malformed", "malformed", "udp.dport == 53"];
    let mut asked = Conditions::new("", &conditions);
    let with_ihl = |ihl: u8, options: &[u8]| {
        let mut header = ipv4(17, &[options, &udp(53, b"")].concat());
        header[0] = 0x40 | ihl;
        eth(0x0800, &header)
    };
    let malformed = ["ipv4.malformed", "malformed"];
    let valid = ["ipv4", "udp.dport == 53"];
    assert_eq!(asked.holding(&with_ihl(0, b"")), malformed);
    assert_eq!(asked.holding(&with_ihl(4, b"")), malformed);
    assert_eq!(asked.holding(&with_ihl(5, b"")), valid);
    assert_eq!(asked.holding(&with_ihl(6, &[1; 4])), valid);
    assert_eq!(asked.holding(&with_ihl(15, &[1; 40])), valid);
    assert_eq!(asked.holding(&with_ihl(15, &[1; 24])), malformed, "60 bytes, where 52 are");
    let mut version = ipv4(17, &udp(53, b""));
    version[0] = 0x65;
    assert_eq!(asked.holding(&eth(0x0800, &version)), malformed);
    let mut claims_less = ipv4(17, &udp(53, b""));
    claims_less[3] = 19;
    assert_eq!(asked.holding(&eth(0x0800, &claims_less)), malformed, "a length below the header's");
    let mut no_tcp = tcp(80, 2, b"");
    no_tcp[12] = 0x40;
    holds(
        &eth(0x0800, &ipv4(6, &no_tcp)),
        &[
            ("tcp", false),
            ("tcp.malformed", true),
            ("malformed", true),
            ("ipv4", true),
            ("ip.proto == tcp", true),
        ],
    );
}

#[test]
fn flags_one_by_one_and_together() {
    let frame = eth(0x86dd, &ipv6(6, &tcp(443, 0x12, b"hi")));
    holds(
        &frame,
        &[
            ("tcp.syn and tcp.ack", true),
            ("tcp.syn and not tcp.ack", false),
            ("tcp.flags & (syn | ack) == syn | ack", true),
            ("tcp.flags == 0x12", true),
            ("tcp.fin or tcp.rst", false),
            ("tcp.payload == \"hi\"", true),
            ("ip.src == 2001:db8::1", true),
            ("ip and ip.src != 192.0.2.1", true),
            ("ip.len == 62", true),
        ],
    );
}

#[test]
fn surroundings_other_than_the_device_change_nothing() {
    let checked = Checked::new("xdp t { default pass; rule m: udp.dport == 53 and pkt.len == 43 => drop; }");
    let mut engine = checked.engine();
    let frame = eth(0x0800, &ipv4(17, &udp(53, b"x")));
    for linear in [0, 14, 20, 42] {
        let env = Env { linear: Some(linear), fragment: 1, ..Env::default() };
        assert_eq!(engine.run(&frame, &env).unwrap().verdict, Verdict::Drop);
    }
}

#[test]
fn a_frame_of_any_length_is_taken() {
    holds(&[], &[("malformed", true), ("eth", false), ("pkt.len == 0", true), ("not eth", true)]);
    holds(&hex("02"), &[("malformed", true), ("eth.malformed", true)]);
}
