//! A few words to write programs with.

use pktc_bpf::{
    AluOp, Condition, Helper, Insn, MapDef, MapIndex, MapKind, Operand, Reg, Size, ValueLayout, Width,
};
use pktc_testing::engine::Env;
use pktc_testing::hits::RuleCounters;
use pktc_testing::vm::{Fault, Problem, Vm};

pub(crate) type Machine = Insn<Reg, i32>;

pub(crate) const EXIT: Machine = Insn::Exit;

pub(crate) const fn r(number: u8) -> Operand<Reg> {
    Operand::Reg(Reg(number))
}

pub(crate) const fn imm(number: i32) -> Operand<Reg> {
    Operand::Imm(number)
}

pub(crate) fn alu(op: AluOp, dst: u8, src: Operand<Reg>) -> Machine {
    Insn::Alu { op, width: Width::W64, dst: Reg(dst), src }
}

pub(crate) fn alu32(op: AluOp, dst: u8, src: Operand<Reg>) -> Machine {
    Insn::Alu { op, width: Width::W32, dst: Reg(dst), src }
}

pub(crate) fn mov(dst: u8, src: Operand<Reg>) -> Machine {
    alu(AluOp::Mov, dst, src)
}

pub(crate) fn add(dst: u8, src: Operand<Reg>) -> Machine {
    alu(AluOp::Add, dst, src)
}

pub(crate) fn load(size: Size, dst: u8, base: u8, offset: i16) -> Machine {
    Insn::Load { size, dst: Reg(dst), base: Reg(base), offset }
}

pub(crate) fn store(size: Size, base: u8, offset: i16, src: Operand<Reg>) -> Machine {
    Insn::Store { size, base: Reg(base), offset, src }
}

pub(crate) fn branch(condition: Condition, left: u8, right: Operand<Reg>, target: i32) -> Machine {
    Insn::Branch { condition, width: Width::W64, left: Reg(left), right, target }
}

pub(crate) fn call(helper: Helper) -> Machine {
    Insn::Call { helper }
}

pub(crate) fn map(dst: u8, map: u32) -> Machine {
    Insn::LoadMap { dst: Reg(dst), map: MapIndex(map) }
}

/// `data` in r6, `data_end` in r7, `n` bytes checked; else the program returns 99.
pub(crate) fn check(n: i32) -> Vec<Machine> {
    vec![
        load(Size::U32, 6, 1, 0),
        load(Size::U32, 7, 1, 4),
        mov(2, r(6)),
        add(2, imm(n)),
        branch(Condition::Le, 2, r(7), 2),
        mov(0, imm(99)),
        EXIT,
    ]
}

/// A map of values of 8 bytes.
pub(crate) fn map_def(name: &str, kind: MapKind, key_size: u32, max_entries: u32) -> MapDef {
    MapDef {
        name: name.into(),
        kind,
        key_size,
        value_size: 8,
        max_entries,
        flags: 0,
        layout: ValueLayout::Bytes,
        content: None,
    }
}

/// A read-only map.
pub(crate) fn rodata(content: &[u8]) -> MapDef {
    let value_size = content.len() as u32;
    MapDef { value_size, content: Some(content.into()), ..map_def(".rodata", MapKind::Array, 4, 1) }
}

pub(crate) fn vm(insns: &[Machine], maps: &[MapDef]) -> Vm {
    Vm::from_insns(insns, maps).expect("the program and its maps are sound")
}

/// What the program returns for a packet of 64 bytes, each its own index.
pub(crate) fn result(insns: &[Machine], maps: &[MapDef]) -> Result<u64, Fault> {
    vm(insns, maps).execute(&packet(64), &Env::default())
}

/// What it returns, without maps; faults fail.
#[track_caller]
pub(crate) fn value(insns: &[Machine]) -> u64 {
    result(insns, &[]).unwrap_or_else(|fault| panic!("{fault}"))
}

/// What the program does wrong.
#[track_caller]
pub(crate) fn problem(insns: &[Machine], maps: &[MapDef]) -> Problem {
    match result(insns, maps) {
        Ok(value) => panic!("no fault, but {value}"),
        Err(fault) => fault.problem,
    }
}

/// Bytes 0, 1, 2 …
pub(crate) fn packet(len: usize) -> Vec<u8> {
    (0..len).map(|byte| byte as u8).collect()
}

/// Rules that count in those entries of a map, each of which ends the program.
pub(crate) fn rule_counters(map: &str, first: u32, count: usize) -> Option<RuleCounters> {
    Some(RuleCounters { map: map.into(), first, ends: vec![true; count] })
}
