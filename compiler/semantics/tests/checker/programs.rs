//! Programs that compile, and what is made of them.

use pktc_semantics::typed::{ExprKind, Position, Program, Stmt, Subject};

use crate::support::{check, check_files, program};

/// The typed program as text, without the headers that it mentions.
fn rules(program: &Program) -> String {
    let dump = pktc_semantics::dump(program);
    let lines: Vec<&str> = dump.lines().collect();
    let first = lines
        .iter()
        .position(|line| ["set ", "counter ", "chain ", "xdp "].iter().any(|it| line.starts_with(it)));
    lines[first.expect("a program")..].join("\n")
}

#[test]
fn a_port_is_a_field_with_its_layout() {
    let program = program("xdp t { default pass; rule m: udp.dport == 53 => drop; }");
    insta::assert_snapshot!(pktc_semantics::dump(&program));
}

#[test]
fn everything_of_the_language_so_far() {
    let program = program(
        "const lowest = 1024;
        const home = 10.0.0.0/8;
        enum service: u16 { web = 80, dns = 53 }
        set bogons = { home, 192.0.2.1, 198.51.100.1-198.51.100.9, 2001:db8::/32 };
        set ports: service = { web, dns, lowest-2047 };
        def http(port: u16) = tcp and tcp.dport == port;
        def tagged = vlan[any].vid == 20;
        counter hits;
        chain clean {
            rule done: pkt.len < 60 => return;
            rule: ip.src in bogons => count hits, drop;
        }
        xdp t {
            default count hits, pass;
            apply clean;
            when http(lowest * 8 - 112) or tagged {
                rule syn: tcp.flags & (syn | ack) == syn and not (tcp.dport in ports) => tx;
                rule: true => apply clean;
            }
            rule bytes: udp.payload[0..2] == \"ab\" and udp.payload[2..4] & 0xf000 == 0x1000 => drop;
            rule tag: vlan.vid default 0 != 0 and eth.src in 02:00:00:00:00:00/24 => abort;
            rule last: vlan[last].pcp == 7 or ip.fragment or malformed or ip_ext.malformed or udp.truncated => drop;
        }",
    );
    insta::assert_snapshot!(rules(&program));
}

#[test]
fn tests_are_typed() {
    let program = program(
        "xdp t { default pass; rule web: tcp.dport == 80 => drop; apply c; }
        chain c { rule deep: udp.dport == 9 => drop; }
        test \"of the program\" {
            repeat 3 send pkt(ifindex: 3) / eth(dst: 02:00:00:00:00:09) / ipv4(ttl: 1, proto: tcp) / tcp(flags: syn | ack) / payload(\"hi\") / pad(2);
            expect 1 drop by web, 2 pass by default;
            send eth / ipv6(src: 2001:db8::9) / udp(dport: 9) / cut(20);
            expect drop by c.deep;
            replay \"captures/edge.pcap\" snapshot;
        }
        test \"of the chain\" of c { send eth; expect return; send eth; expect drop by deep; }",
    );
    insta::assert_snapshot!(rules(&program));
    assert!(matches!(program.tests[1].of, Subject::Chain(_)));
}

#[test]
fn captures_are_looked_up_beside_the_file() {
    let others =
        [("lib/x.pkt", "chain c { rule a: tcp => drop; } test \"r\" { replay \"../a.pcap\" snapshot; }")];
    let (program, messages) = check_files("use \"lib/x.pkt\"; xdp t { default pass; apply c; }", &others);
    let program = program.unwrap_or_else(|| panic!("{messages}"));
    assert!(rules(&program).contains("replay \"a.pcap\""), "{}", rules(&program));
}

#[test]
fn one_bit_is_a_condition() {
    let program = program(
        "xdp t { default pass; rule a: tcp.syn and not tcp.ack => drop; rule b: tcp.syn == true => drop; }",
    );
    let dump = rules(&program);
    assert!(dump.contains("rule a: (tcp.syn == 1 and not (tcp.ack == 1)) => drop"), "{dump}");
    assert!(dump.contains("rule b: tcp.syn == 1 => drop"), "{dump}");
}

#[test]
fn constants_are_folded() {
    let text = "const enabled = true; const size = 10 * 4 + 2; xdp t { default pass;
        rule a: enabled and pkt.len == size => drop;
        rule b: (1 == 2) or tcp => pass;
        rule c: not (enabled) => drop; }";
    let dump = rules(&program(text));
    assert!(dump.contains("rule a: pkt.len == 42 => drop"), "{dump}");
    assert!(dump.contains("rule b: tcp => pass"), "{dump}");
    assert!(dump.contains("rule c: false => drop"), "{dump}");
}

#[test]
fn conditional_fields_have_fixed_places_where_they_can() {
    let program = program(
        "header mine {
            kind: u8;
            a: u8 when kind == 1;
            b: u8 when kind in { 2, 3 };
            c: u16 when kind == 1;
            d: u8 when kind > 2;
            e: u8;
        }
        header tail { a: u8; rest: bytes; b: u16; c: u8; }
        header seen { a: u8; view low: u8 = a..a; b: u8 when low == 1; }
        bind udp.dport 11 => seen;
        bind udp.dport 9 => mine;
        bind udp.dport 10 => tail;
        xdp t { default pass; rule a: mine.e == 5 or tail.b == 5 => drop; }",
    );
    let header = |name| program.headers.values().find(|header| header.name == name).unwrap();
    let places: Vec<_> = header("mine").fields.iter().map(|field| field.position.clone()).collect();
    let start = |bits, plus: &[usize]| Position::Start { bits, plus: plus.to_vec() };
    // `a` is never there with `b`, `c` always with `a`; `d` may be there with `b`, and never with `a` or `c`.
    let expected = [
        start(0, &[]),
        start(8, &[]),
        start(8, &[]),
        start(16, &[]),
        start(8, &[2]),
        start(8, &[1, 2, 3, 4]),
    ];
    assert_eq!(places, expected);
    let tail: Vec<_> = header("tail").fields.iter().map(|field| field.position.clone()).collect();
    assert_eq!(tail, [start(0, &[]), start(8, &[]), Position::End { bits: 24 }, Position::End { bits: 8 }]);
}

#[test]
fn any_asks_all_instances() {
    let program = program("xdp t { default pass; rule a: vlan[any].vid == 20 => drop; }");
    let xdp = program.xdps.values().next().unwrap();
    let Stmt::Rule(rule) = &xdp.body[0] else { panic!("a rule") };
    let ExprKind::Or(parts) = &rule.condition.kind else { panic!("{:?}", rule.condition) };
    assert_eq!(parts.len(), 4);
}

#[test]
fn tunnels_can_be_declared_before_they_can_be_asked() {
    let program = program(
        "header outer { proto: ether_type; next inner by proto when proto != arp; }
        bind udp.dport 4000 => outer;
        bind ip_proto ipip => inner.ipv4;
        xdp t { default pass; rule a: outer => drop; }",
    );
    let dump = pktc_semantics::dump(&program);
    // The binds of `ether_type` lead into the tunnel here.
    assert!(dump.contains("2048 => inner.ipv4"), "{dump}");
}

#[test]
fn one_file_is_read_once_and_names_stay_apart() {
    let others = [
        ("a.pkt", "use \"lib/c.pkt\"; set s = { 1 }; chain web { rule x: tcp.dport in s => drop; }"),
        (
            "lib/b.pkt",
            "use \"c.pkt\" as c; set s = { 2 }; chain web { rule x: tcp.dport in c.deep => drop; }",
        ),
        ("lib/c.pkt", "set deep = { 3 };"),
    ];
    let text = "use \"a.pkt\" as a; use \"lib/b.pkt\" as b; set s = { 4 };
        xdp t { default pass; apply a.web; apply b.web; rule m: tcp.dport in s or tcp.dport in a.s => drop; }";
    let (program, messages) = check_files(text, &others);
    let program = program.unwrap_or_else(|| panic!("{messages}"));
    let named: Vec<_> = program.sets.values().filter_map(|set| set.name.as_deref()).collect();
    assert_eq!(named, ["deep", "a.s", "b.s", "s"]);
    let chains: Vec<_> = program.chains.values().map(|chain| chain.name.as_str()).collect();
    assert_eq!(chains, ["a.web", "web"]);
}

#[test]
fn names_do_not_pass_on() {
    let others = [("a.pkt", "use \"b.pkt\"; set own = { 1 };"), ("b.pkt", "set deep = { 3 };")];
    let text =
        "use \"a.pkt\"; xdp t { default pass; rule m: tcp.dport in own or tcp.dport in deep => drop; }";
    let (program, messages) = check_files(text, &others);
    assert!(program.is_none() && messages.contains("`deep`") && !messages.contains("`own`"), "{messages}");
}

#[test]
fn a_chain_may_be_called_as_a_header_is() {
    let text = "chain tcp { rule a: tcp.dport == 80 => drop; } xdp udp { default pass; apply tcp; }";
    assert_eq!(check(text).1, "");
}

#[test]
fn nesting_is_bounded() {
    let deep =
        format!("xdp t {{ default pass; rule a: {}tcp{} => drop; }}", "(".repeat(5000), ")".repeat(5000));
    let (program, messages) = check(&deep);
    assert!(program.is_none() && !messages.is_empty());
    let mut doubling = String::from("def d0 = tcp.dport == 1;\n");
    for n in 1..40 {
        doubling += &format!("def d{n} = d{0} and d{0};\n", n - 1);
    }
    let (program, messages) = check(&format!("{doubling}xdp t {{ default pass; rule a: d39 => drop; }}"));
    assert!(program.is_none() && messages.contains("E0311"), "{messages}");
}

/// What is half written must give messages, never a panic.
#[test]
fn every_beginning_of_a_file_is_survived() {
    let text = "use \"a.pkt\" as a; const c: u16 = 5; set s: ip_prefix = { 10.0.0.0/8 }; def d(p: u16) = tcp.dport == p;
        enum e: u8 { x = 1 } header h { a: u8; length a * 4; valid a == 5; next by a as sel { 1 => tcp } }
        union u = h | udp { v = h.a | udp.len + 2 when not h.malformed; } bind udp.port 9 => h; bind h.sel 2 => udp;
        chain k { rule a: u.v == 3 and vlan[any].vid in { 1, 2-3 } => return; }
        xdp t { default pass; when d(80) { rule r: ip.src not in s => drop; } apply k; }
        test \"x\" { send eth / h(a: 5) / payload(3); expect drop by r; }";
    for end in (0..=text.len()).step_by(3).filter(|&end| text.is_char_boundary(end)) {
        let (program, messages) = check(&text[..end]);
        assert!(program.is_some() || messages.contains("error"), "{}", &text[..end]);
    }
}
