//! Rules that held, told from the counters in a map.

use pktc_bpf::{Helper, MapDef, MapKind, Reg, Size};
use pktc_semantics::rules::RuleId;
use pktc_testing::engine::{Engine as _, EngineError, Env};

use crate::asm::{EXIT, Machine, add, call, imm, load, map, map_def, mov, r, rule_counters, store, vm};

/// Counts in entry `entry` a packet of 60 bytes.
fn count(entry: i32) -> Vec<Machine> {
    vec![
        store(Size::U32, 10, -4, imm(entry)),
        map(1, 0),
        mov(2, r(10)),
        add(2, imm(-4)),
        call(Helper::MapLookupElem),
        load(Size::U64, 1, 0, 0),
        add(1, imm(1)),
        store(Size::U64, 0, 0, r(1)),
        mov(1, imm(60)),
        pktc_bpf::Insn::AtomicAdd { size: Size::U64, base: Reg(0), offset: 8, src: Reg(1) },
    ]
}

fn counters() -> [MapDef; 1] {
    [MapDef { value_size: 16, ..map_def("counters", MapKind::PerCpuArray, 4, 8) }]
}

#[test]
fn the_last_rule_that_counted_decided() {
    let code = [count(5), count(3), vec![mov(0, imm(1)), EXIT]].concat();
    let mut vm = vm(&code, &counters()).with_counters(rule_counters("counters", 2, 4));
    for packets in [1, 2] {
        let outcome = vm.run(&[], &Env::default()).unwrap();
        assert_eq!((outcome.rule, outcome.hits), (RuleId(3), vec![RuleId(1), RuleId(3)]));
        let counted = (packets, 60 * packets);
        assert_eq!(vm.counters().unwrap(), [(0, 0), counted, (0, 0), counted]);
    }
}

#[test]
fn the_default_counts_too() {
    let code = [count(3), count(2), vec![mov(0, imm(2)), EXIT]].concat();
    let mut vm = vm(&code, &counters()).with_counters(rule_counters("counters", 2, 4));
    let outcome = vm.run(&[], &Env::default()).unwrap();
    assert_eq!((outcome.rule, outcome.hits), (RuleId::DEFAULT, vec![RuleId(0), RuleId(1)]));
}

#[test]
fn counters_that_are_not_there_are_an_error() {
    let code = [mov(0, imm(2)), EXIT];
    let error = |map, first, count| match vm(&code, &counters())
        .with_counters(rule_counters(map, first, count))
        .run(&[], &Env::default())
    {
        Err(EngineError::Fault(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(error("nowhere", 0, 1), "map `nowhere` of counters is missing");
    assert_eq!(error("counters", 5, 4), "map `counters` of counters has too few or too small entries");
}
