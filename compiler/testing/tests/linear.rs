//! Packets with a linear part of a chosen length, and of every length.

mod support;

use pktc_driver::options::{Access, Counters, Options};
use pktc_driver::{Checked, Subject, build, check, programs};
use pktc_semantics::rules::RuleTable;
use pktc_semantics::typed::Verdict;
use pktc_testing::engine::{Engine, EngineError, Env, Outcome};
use pktc_testing::hits::RuleCounters;
use pktc_testing::linear::{Split, Sweep};
use pktc_testing::reference::headers_end;
use pktc_testing::vm::Vm;
use support::{Memory, eth, extension, ipv4, ipv6, tcp, udp, vlan};

const RULES: &str = "xdp t {
    default pass;
    rule dns: udp.dport == 53 => drop;
    rule long: pkt.len > 100 => abort;
}";

fn checked() -> Checked {
    check("t.pkt", &Memory([("t.pkt".to_owned(), RULES.as_bytes().to_vec())].into()))
}

fn vm(checked: &Checked, access: Access) -> Box<dyn Engine> {
    let subjects: Vec<_> = programs(checked).into_iter().map(Subject::Xdp).collect();
    let options = Options { access, counters: Counters::On, ..Options::default() };
    let built = build(checked, &subjects, &options).expect("an object");
    let vm = Vm::load(&built.object, "t").expect("a program of that name");
    Box::new(vm.with_counters(RuleCounters::of(&built, 0)))
}

fn sweep(engines: impl Fn(&Checked) -> Box<dyn Engine>) -> Sweep {
    let checked = checked();
    let program = checked.program.as_ref().expect("a program");
    let rules = RuleTable::new(program, &checked.sources, program.xdps.values().next().expect("a program"));
    Sweep::new(engines(&checked), engines(&checked), program, rules)
}

fn query() -> Vec<u8> {
    eth(0x0800, &ipv4(17, &udp(53, &[0; 200])))
}

#[test]
fn a_linear_part_of_a_chosen_length() {
    let checked = checked();
    let verdict = |access, linear| {
        let mut engine = Split::new(vm(&checked, access), linear);
        engine.run(&query(), &Env::default()).unwrap().verdict
    };
    for linear in [0, 41, 42, 1000] {
        assert_eq!(verdict(Access::Auto, linear), Verdict::Drop, "{linear}");
    }
    assert_eq!(verdict(Access::Direct, 42), Verdict::Drop);
    assert_eq!(verdict(Access::Direct, 41), Verdict::Pass);
}

#[test]
fn what_sees_all_buffers_says_the_same_at_every_length() {
    for access in [Access::Bytes, Access::Auto] {
        let mut engine = sweep(|checked| vm(checked, access));
        let frames =
            [query(), eth(0x0800, &ipv4(6, &tcp(80, 2, &[0; 900]))), eth(0x0806, &[0; 46]), vec![0; 9]];
        let verdicts = frames.map(|frame| engine.run(&frame, &Env::default()).unwrap().verdict);
        assert_eq!(verdicts, [Verdict::Drop, Verdict::Abort, Verdict::Pass, Verdict::Pass]);
        let counted = engine.counters().unwrap();
        assert_eq!(counted, [(2, 60 + 9), (1, 242), (1, 954)], "each packet counts once");
    }
}

#[test]
fn what_sees_the_linear_part_only_is_found() {
    let error = sweep(|checked| vm(checked, Access::Direct)).run(&query(), &Env::default()).unwrap_err();
    let expected = "with a linear part of 0 bytes pass by `default`, counted 0 bytes by `default`; \
        with all headers in it drop by `dns`, counted 242 bytes by `dns`";
    assert_eq!(error, EngineError::Fault(expected.into()));
}

/// An engine that counts what lies in the linear part; packets and bytes so far.
#[derive(Default)]
struct Miscounting(u64, u64);

impl Engine for Miscounting {
    fn name(&self) -> &'static str {
        "miscounting"
    }

    fn run(&mut self, packet: &[u8], env: &Env) -> Result<Outcome, EngineError> {
        self.0 += 1;
        self.1 += env.linear.unwrap_or(packet.len()).max(40) as u64;
        let rule = pktc_semantics::rules::RuleId::DEFAULT;
        Ok(Outcome { verdict: Verdict::Pass, rule, hits: vec![rule] })
    }

    fn counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError> {
        Ok(vec![(self.0, self.1)])
    }
}

#[test]
fn counters_are_compared_too() {
    let mut engine = sweep(|_| Box::new(Miscounting::default()));
    let frame = query()[..40].to_vec();
    assert_eq!(engine.run(&frame, &Env::default()).unwrap().verdict, Verdict::Pass);
    let EngineError::Fault(what) = engine.run(&query(), &Env::default()).unwrap_err() else { panic!() };
    assert!(what.contains("40 bytes by `default`; ") && what.ends_with("242 bytes by `default`"), "{what}");
}

#[test]
fn headers_end_where_the_content_begins() {
    let checked = checked();
    let end = |frame: &[u8]| headers_end(checked.program.as_ref().unwrap(), frame, &Env::default());
    assert_eq!(end(&query()), 42 + 12, "behind DNS");
    assert_eq!(
        end(&eth(0x8100, &vlan(7, 0x86dd, &ipv6(0, &extension(6, &tcp(80, 2, &[1; 500])))))),
        14 + 4 + 40 + 8 + 20
    );
    assert_eq!(end(&eth(0x1234, &[0; 100])), 14, "nothing is known of what follows");
    assert_eq!(end(&query()[..30]), 30, "a header that is cut");
    assert_eq!(end(&[0; 9]), 9);
    let mut options = query();
    options[14] = 0x4f;
    assert_eq!(end(&options), 14 + 60 + 8, "options belong to the header");
}
