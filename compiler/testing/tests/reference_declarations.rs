//! The reference evaluator on what declarations can say: branches, variable lengths, tunnels; and on the order
//! and the counters of rules.

mod support;

use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::Verdict;
use pktc_testing::engine::Engine;
use support::{Checked, Conditions, eth, ipv4, ipv6, run, tcp, udp, vlan};

const BRANCHES: &str = "
    header left { magic: u8; next by magic { 1 => both, 2 => deep } }
    header right { magic: u8; rest: u8; valid magic == 1; next by magic { 1 => both } }
    header both { magic: u8; flagged: u1; _: u7; extra: u16 when flagged; tail: u8; }
    header deep { size: u8; content: bytes; last: u8; length size; repeats 2; next deep when last == 7; }
    bind udp.dport 1000 => left;
    bind udp.sport 1000 => left;
    bind udp.sport 40000 => right;
";

#[test]
fn each_selector_is_a_branch() {
    let conditions =
        ["left", "right", "both", "both.extra == 515", "both.tail == 9", "left.malformed", "malformed"];
    let mut asked = Conditions::new(BRANCHES, &conditions);
    let to = |dport, rest: &[u8]| eth(0x0800, &ipv4(17, &udp(dport, rest)));
    // Both ports select; each finds its own `both`, and the earlier line's is meant.
    let expected = ["left", "right", "both", "both.extra == 515", "both.tail == 9"];
    assert_eq!(asked.holding(&to(1000, &[1, 1, 0x80, 2, 3, 9])), expected);
    assert_eq!(asked.holding(&to(1000, &[1, 1, 0x00, 9, 3, 9])), ["left", "right", "both", "both.tail == 9"]);
    // One branch does not hide the other, nor does its being malformed.
    assert_eq!(asked.holding(&to(1000, &[5, 1, 0, 9])), ["left"]);
    assert_eq!(asked.holding(&to(1001, &[1, 1, 0, 0, 9])), ["right", "both", "both.tail == 9"]);
    assert_eq!(
        asked.holding(&to(1000, &[])),
        ["left.malformed"],
        "what a port selects is no bare `malformed`"
    );
}

#[test]
fn bytes_in_the_middle_take_what_is_left() {
    let conditions = ["deep", "deep.last == 7", "deep[1]", "deep[1].last == 6", "deep.malformed"];
    let mut asked = Conditions::new(BRANCHES, &conditions);
    let to = |rest: &[u8]| eth(0x0800, &ipv4(17, &udp(1000, rest)));
    let twice = ["deep", "deep.last == 7", "deep[1]", "deep[1].last == 6"];
    assert_eq!(asked.holding(&to(&[2, 4, b'a', b'b', 7, 2, 6])), twice);
    assert_eq!(asked.holding(&to(&[2, 2, 5])), ["deep"], "no content");
    assert_eq!(asked.holding(&to(&[2, 1, 7, 7])), ["deep.malformed"], "shorter than its fields");
    assert_eq!(asked.holding(&to(&[2, 5, 7, 7])), ["deep.malformed"], "longer than the packet");
    let third = ["deep", "deep.last == 7", "deep[1]", "deep.malformed"];
    assert_eq!(asked.holding(&to(&[2, 2, 7, 2, 7, 2, 6])), third, "one more than it repeats");
}

#[test]
fn rules_run_in_order_and_count() {
    let checked = Checked::new(
        "counter seen;
         chain web {
             rule other: not (tcp.dport in { 80, 443 }) => return;
             rule plain: tcp.dport == 80 => count seen, drop;
             rule: tcp.dport == 443 => count seen;
         }
         xdp t {
             default count seen, drop;
             rule tagged: vlan => count seen;
             when tcp {
                 apply web;
                 rule syn: tcp.syn => tx;
             }
             rule v6: ipv6 => pass;
             rule late: tcp => abort;
         }",
    );
    let mut engine = checked.engine();
    let names = |engine: &mut pktc_testing::reference::Reference, frame: &[u8]| {
        let outcome = run(engine, frame);
        let table = pktc_semantics::rules::RuleTable::new(&checked.program, &checked.sources, checked.xdp());
        let name = |rule: RuleId| table.info(rule).identity.clone();
        (
            outcome.verdict,
            name(outcome.rule),
            outcome.hits.into_iter().map(name).collect::<Vec<_>>().join(" "),
        )
    };
    let outcome = |verdict, rule: &str, hits: &str| (verdict, rule.to_owned(), hits.to_owned());
    let web = |port, flags| eth(0x0800, &ipv4(6, &tcp(port, flags, b"")));
    let plain = names(&mut engine, &web(80, 2));
    assert_eq!(plain, outcome(Verdict::Drop, "web.plain", "web.plain"));
    let returned = names(&mut engine, &web(22, 2));
    assert_eq!(returned, outcome(Verdict::Tx, "syn", "web.other syn"), "`return` goes on behind `apply`");
    let through = names(&mut engine, &web(443, 0));
    assert_eq!(through, outcome(Verdict::Abort, "late", "web.@1 late"));
    let tagged = names(&mut engine, &eth(0x8100, &vlan(1, 0x86dd, &ipv6(59, b""))));
    assert_eq!(tagged, outcome(Verdict::Pass, "v6", "tagged v6"));
    let arp = names(&mut engine, &eth(0x0806, b""));
    assert_eq!(arp, outcome(Verdict::Drop, "default", "default"));
    // default, tagged, web.other, web.plain, web.@1, syn, v6, late
    let counted = [(1, 14), (1, 58), (1, 54), (1, 54), (1, 54), (1, 54), (1, 58), (1, 54)];
    assert_eq!(engine.counters().unwrap(), counted);
    let seen = checked.program.counters.keys().next().unwrap();
    assert_eq!(engine.counter(seen), (4, 54 + 54 + 58 + 14));
}

#[test]
fn tunnels_are_scopes_of_their_own() {
    let holds = |inner: u8, condition: &str, frame: &[u8]| {
        let tunnels = "bind udp.dport 7 => inner.eth; bind udp.sport 7 => inner.ipv4;";
        let scope = "inner.".repeat(usize::from(inner));
        let text = format!("{tunnels} xdp t {{ default pass; rule m: {scope}{condition} => drop; }}");
        run(&mut Checked::new(&text).engine(), frame).verdict == Verdict::Drop
    };
    let nested = |tunnels: u8| {
        let datagram = ipv4(17, &udp(53, b"x"));
        let mut frame = eth(0x0800, &(0..tunnels).fold(datagram, |rest, _| ipv4(4, &rest)));
        frame[22] = 9; // the outermost time to live
        frame
    };
    for tunnels in 0..=3 {
        for inner in 0..=3 {
            let here = holds(inner, "udp.dport == 53", &nested(tunnels));
            assert_eq!(here, inner == tunnels, "asked {inner} deep, it lies {tunnels} deep");
            let ttl = holds(inner, "ip.ttl == 64", &nested(tunnels));
            assert_eq!(ttl, (1..=tunnels).contains(&inner), "{inner} of {tunnels}");
        }
    }
    assert!(!holds(3, "udp", &nested(4)), "what lies deeper has no name");
    // Both ports open a tunnel: the first line's header counts, unless it is malformed.
    let mut both = eth(0x0800, &ipv4(17, &udp(7, &eth(0x0800, &ipv4(17, b"")))));
    (both[34], both[35]) = (0, 7);
    assert!(holds(1, "eth", &both) && !holds(1, "ipv4.malformed", &both));
    let mut short = eth(0x0800, &ipv4(17, &udp(7, &[0x45; 13])));
    (short[34], short[35]) = (0, 7);
    assert!(holds(1, "eth.malformed", &short) && holds(1, "ipv4.malformed", &short));
    assert!(!holds(0, "malformed", &short));
}
