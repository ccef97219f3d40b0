//! Objects as our own writer makes them: maps, read-only data and counters are found again.

use pktc_bpf::{Helper, Insn, MapDef, MapIndex, MapKind, Reg, Section, Size};
use pktc_codegen::module::{Module, Program};
use pktc_diagnostics::{SourceMap, Span};
use pktc_object::{Metadata, SCHEMA, SourceInfo};
use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::Verdict;
use pktc_testing::engine::{Engine as _, Env};
use pktc_testing::vm::Vm;

use crate::asm::{
    EXIT, Machine, add, branch, call, imm, load, map_def, mov, packet, r, rodata, rule_counters, store,
};

/// Counts in the entry, and returns the verdict, that the table at `table` names.
fn program(name: &str, table: u32, frags: bool, span: Span) -> Program {
    let insns: Vec<Machine> = vec![
        Insn::LoadMapValue { dst: Reg(6), map: MapIndex(0), offset: table },
        load(Size::U8, 1, 6, 0),
        store(Size::U32, 10, -4, r(1)),
        Insn::LoadMap { dst: Reg(1), map: MapIndex(1) },
        mov(2, r(10)),
        add(2, imm(-4)),
        call(Helper::MapLookupElem),
        branch(pktc_bpf::Condition::Eq, 0, imm(0), 4),
        mov(1, imm(1)),
        Insn::AtomicAdd { size: Size::U64, base: Reg(0), offset: 0, src: Reg(1) },
        mov(1, imm(64)),
        Insn::AtomicAdd { size: Size::U64, base: Reg(0), offset: 8, src: Reg(1) },
        load(Size::U8, 0, 6, 1),
        EXIT,
    ];
    Program {
        name: name.into(),
        section: Section::of_programs(frags),
        params: 1,
        insns,
        lines: vec![(0, span)],
        stack: 8,
    }
}

fn object(frags: bool) -> Vec<u8> {
    let mut sources = SourceMap::default();
    let span = Span { file: sources.add("a.pkt", "x"), start: 0, end: 1 };
    let counters = MapDef { value_size: 16, ..map_def("edge_rules", MapKind::PerCpuArray, 4, 6) };
    let table = MapDef { name: "table".into(), ..rodata(&[1, 1, 4, 2]) };
    let module = Module {
        programs: vec![program("first", 0, frags, span), program("second", 2, frags, span)],
        maps: vec![table, counters],
        ..Module::default()
    };
    let source = SourceInfo { path: "a.pkt".into(), sha256: String::new() };
    let metadata = Metadata { counters: vec![], programs: vec![], schema: SCHEMA, sets: vec![], source };
    pktc_object::write(&module, &metadata, &sources).expect("the module is sound")
}

#[test]
fn each_program_of_an_object_runs_with_its_maps() {
    for frags in [false, true] {
        let object = object(frags);
        let outcome = |program, first| {
            let mut vm =
                Vm::load(&object, program).unwrap().with_counters(rule_counters("edge_rules", first, 3));
            let outcome = vm.run(&packet(64), &Env::default()).unwrap();
            (outcome.verdict, outcome.rule, outcome.hits, vm.counters().unwrap())
        };
        let counted = vec![(0, 0), (1, 64), (0, 0)];
        assert_eq!(outcome("first", 0), (Verdict::Drop, RuleId(1), vec![RuleId(1)], counted.clone()));
        assert_eq!(outcome("second", 3), (Verdict::Pass, RuleId(1), vec![RuleId(1)], counted));
    }
}
