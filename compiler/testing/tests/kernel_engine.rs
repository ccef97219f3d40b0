//! The kernel as an engine, on a program written by hand: `rule 1: byte 0 is 1 => drop; default pass`.
//!
//! Where the kernel cannot be used the tests are reported as ignored, with the reason.

mod support;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use pktc_bpf::{
    AluOp, Condition, Helper, Insn, MapDef, MapIndex, MapKind, Operand, Reg, Section, Size, ValueLayout,
    Width,
};
use pktc_codegen::module::{MachineInsn, Module, Program};
use pktc_diagnostics::{SourceMap, Span};
use pktc_driver::Subject;
use pktc_driver::options::{Access, Counters, Options};
use pktc_object::{Metadata, SCHEMA, SourceInfo};
use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::Verdict;
use pktc_testing::engine::{Engine, EngineError, Env};
use pktc_testing::hits::RuleCounters;
use pktc_testing::kernel::KernelEngine;
use pktc_testing::linear::Sweep;
use support::{Memory, eth, ipv4, udp};

fn main() {
    let tests: [(&str, fn()); 4] = [
        ("verdict_and_rule_are_told", verdict_and_rule_are_told),
        ("without_counters_no_rule_is_told", without_counters_no_rule_is_told),
        ("an_unknown_map_is_an_error", an_unknown_map_is_an_error),
        ("device_and_queue_are_real", device_and_queue_are_real),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::ignorable_test(name, move || -> Result<Completion, Failed> {
            if let Err(reason) = pktc_loader::probe() {
                return Ok(Completion::ignored_with(reason));
            }
            test();
            Ok(Completion::Completed)
        })
    };
    let sweep = Trial::ignorable_test("every_linear_length_gives_the_same", || {
        let reason = pktc_loader::probe().err().or_else(every_linear_length_gives_the_same);
        Ok(reason.map_or(Completion::Completed, Completion::ignored_with))
    });
    let trials = tests.into_iter().map(trial).chain([sweep]).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// The first entry of the program's counters; another program's would come before it.
const FIRST: i32 = 3;

fn alu(op: AluOp, dst: u8, src: Operand<Reg>) -> MachineInsn {
    Insn::Alu { op, width: Width::W64, dst: Reg(dst), src }
}

fn skip_if(condition: Condition, left: u8, right: Operand<Reg>, target: i32) -> MachineInsn {
    Insn::Branch { condition, width: Width::W64, left: Reg(left), right, target }
}

/// `if condition { r6 = 4; r7 = drop } else { r6 = 3; r7 = pass }`, where `condition` jumps over one instruction if
/// it does not hold; then counts in entry r6 and returns r7.
fn program(name: &str, condition: Vec<MachineInsn>) -> Program {
    let mut insns = vec![
        alu(AluOp::Mov, 6, Operand::Imm(FIRST)),
        alu(AluOp::Mov, 7, Operand::Imm(2)),
        Insn::Load { size: Size::U32, dst: Reg(2), base: Reg::R1, offset: 0 },
        Insn::Load { size: Size::U32, dst: Reg(8), base: Reg::R1, offset: 4 },
    ];
    insns.extend(condition);
    insns.extend([
        // Two instructions that the condition jumps over.
        alu(AluOp::Add, 6, Operand::Imm(1)),
        alu(AluOp::Mov, 7, Operand::Imm(1)),
        Insn::Store { size: Size::U32, base: Reg::FP, offset: -4, src: Operand::Reg(Reg(6)) },
        alu(AluOp::Mov, 2, Operand::Reg(Reg::FP)),
        alu(AluOp::Add, 2, Operand::Imm(-4)),
        Insn::LoadMap { dst: Reg::R1, map: MapIndex(0) },
        Insn::Call { helper: Helper::MapLookupElem },
        skip_if(Condition::Eq, 0, Operand::Imm(0), 2),
        alu(AluOp::Mov, 1, Operand::Imm(1)),
        Insn::AtomicAdd { size: Size::U64, base: Reg::R0, offset: 0, src: Reg::R1 },
        alu(AluOp::Mov, 0, Operand::Reg(Reg(7))),
        Insn::Exit,
    ]);
    let span = Span { file: SourceMap::default().add("a.pkt", "x"), start: 0, end: 1 };
    Program { name: name.into(), section: Section::Xdp, params: 1, insns, lines: vec![(0, span)], stack: 8 }
}

fn object(program: Program) -> Vec<u8> {
    let mut sources = SourceMap::default();
    sources.add("a.pkt", "x");
    let counters = MapDef {
        name: "edge_rules".into(),
        kind: MapKind::PerCpuArray,
        key_size: 4,
        value_size: 16,
        max_entries: 5,
        flags: 0,
        layout: ValueLayout::U64s(vec!["packets", "bytes"]),
        content: None,
    };
    let metadata = Metadata {
        counters: Vec::new(),
        programs: Vec::new(),
        schema: SCHEMA,
        sets: Vec::new(),
        source: SourceInfo { path: "a.pkt".into(), sha256: String::new() },
    };
    pktc_object::write(
        &Module { programs: vec![program], maps: vec![counters], ..Module::default() },
        &metadata,
        &sources,
    )
    .expect("an object")
}

/// Byte 0 of the packet is 1.
fn first_byte_is_one() -> Vec<u8> {
    object(program(
        "edge",
        vec![
            alu(AluOp::Mov, 3, Operand::Reg(Reg(2))),
            alu(AluOp::Add, 3, Operand::Imm(1)),
            skip_if(Condition::Gt, 3, Operand::Reg(Reg(8)), 4),
            Insn::Load { size: Size::U8, dst: Reg(4), base: Reg(2), offset: 0 },
            skip_if(Condition::Ne, 4, Operand::Imm(1), 2),
        ],
    ))
}

fn engine(object: &[u8]) -> KernelEngine {
    let counters = rule_counters("edge_rules", FIRST as u32, 2);
    KernelEngine::new(object, "edge", counters).unwrap_or_else(|error| panic!("{error}"))
}

fn frame(first: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[0] = first;
    frame
}

fn verdict_and_rule_are_told() {
    let mut engine = engine(&first_byte_is_one());
    for (first, verdict, rule) in [(1, Verdict::Drop, 1), (0, Verdict::Pass, 0), (1, Verdict::Drop, 1)] {
        let outcome = engine.run(&frame(first), &Env::default()).expect("a verdict");
        assert_eq!(outcome.verdict, verdict);
        assert_eq!(outcome.rule, RuleId(rule));
        assert_eq!(outcome.hits, [RuleId(rule)]);
    }
    let short = engine.run(&[1; 13], &Env::default());
    assert!(matches!(short, Err(EngineError::Unsupported(_))), "{short:?}");
    assert_eq!(engine.counters(), Ok(vec![(1, 0), (2, 0)]), "the refused frame does not count");
    assert_eq!(engine.name(), "kernel");
}

fn without_counters_no_rule_is_told() {
    let mut engine =
        KernelEngine::new(&first_byte_is_one(), "edge", None).unwrap_or_else(|error| panic!("{error}"));
    let outcome = engine.run(&frame(1), &Env::default()).expect("a verdict");
    assert_eq!((outcome.verdict, outcome.rule, outcome.hits), (Verdict::Drop, RuleId::DEFAULT, vec![]));
    assert_eq!(engine.counters(), Ok(vec![]));
}

fn an_unknown_map_is_an_error() {
    let error = KernelEngine::new(&first_byte_is_one(), "edge", rule_counters("nothing", 0, 1));
    assert!(error.expect_err("no such map").to_string().contains("there is no map `nothing`"));
    let error = KernelEngine::new(&first_byte_is_one(), "edge", rule_counters("edge_rules", 4, 2));
    assert!(error.expect_err("no such entries").to_string().contains("has no counters 4 to"));
}

/// Packets in one buffer and in several; why the kernel cannot do that, if so.
fn every_linear_length_gives_the_same() -> Option<String> {
    let text =
        "xdp edge { default pass; rule dns: udp.dport == 53 => drop; rule long: pkt.len > 5000 => abort; }";
    let files = Memory([("t.pkt".to_owned(), text.as_bytes().to_vec())].into());
    let checked = pktc_driver::check("t.pkt", &files);
    let subjects: Vec<_> = pktc_driver::programs(&checked).into_iter().map(Subject::Xdp).collect();
    for access in [Access::Bytes, Access::Auto] {
        let options = Options { access, counters: Counters::On, ..Options::default() };
        let built = pktc_driver::build(&checked, &subjects, &options).expect("an object");
        let engine = || {
            let engine = KernelEngine::new(&built.object, "edge", RuleCounters::of(&built, 0));
            Box::new(engine.unwrap_or_else(|error| panic!("{error}")))
        };
        let program = checked.program.as_ref().expect("a program");
        let mut engine = Sweep::new(engine(), engine(), program, built.rules[0].clone());
        let frames = [(53, 400), (54, 400), (53, 9000), (54, 9000)];
        let verdicts = frames.map(|(port, bytes)| {
            engine
                .run(&eth(0x0800, &ipv4(17, &udp(port, &vec![0; bytes]))), &Env::default())
                .map(|it| it.verdict)
        });
        if let [Err(EngineError::Unsupported(reason)), ..] = &verdicts[..] {
            return Some(reason.clone());
        }
        assert_eq!(
            verdicts,
            [Verdict::Drop, Verdict::Pass, Verdict::Drop, Verdict::Abort].map(Ok),
            "{}",
            access.name()
        );
    }
    None
}

fn device_and_queue_are_real() {
    // The context is in r1 at entry: ingress_ifindex at 12, rx_queue_index at 16.
    let object = object(program(
        "edge",
        vec![
            Insn::Load { size: Size::U32, dst: Reg(3), base: Reg::R1, offset: 12 },
            Insn::Load { size: Size::U32, dst: Reg(4), base: Reg::R1, offset: 16 },
            skip_if(Condition::Ne, 3, Operand::Imm(9), 3),
            skip_if(Condition::Ne, 4, Operand::Imm(2), 2),
        ],
    ));
    let mut engine = engine(&object);
    let mut verdict = |ifindex, queue| {
        let outcome = engine.run(&frame(0), &Env { ifindex, queue, ..Env::default() });
        outcome.map(|outcome| outcome.verdict)
    };
    assert_eq!(verdict(1, 0), Ok(Verdict::Pass));
    assert_eq!(verdict(9, 2), Ok(Verdict::Drop));
    assert_eq!(verdict(9, 1), Ok(Verdict::Pass));
    assert_eq!(verdict(8, 2), Ok(Verdict::Pass));
    assert!(matches!(verdict(1, 1), Err(EngineError::Unsupported(_))), "lo has one queue");
    assert!(matches!(verdict(0, 0), Err(EngineError::Unsupported(_))), "no device has the index 0");
    assert!(matches!(verdict(u32::MAX, 0), Err(EngineError::Unsupported(_))), "nor a negative one");
}

/// Rules that count in those entries of a map, each of which ends the program.
fn rule_counters(map: &str, first: u32, count: usize) -> Option<RuleCounters> {
    Some(RuleCounters { map: map.into(), first, ends: vec![true; count] })
}
