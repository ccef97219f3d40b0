//! Programs in which jumps are longer than 16 bits.

use std::time::{Duration, Instant};

use pktc_bpf::Operand::{Imm, Reg};
use pktc_bpf::{AluOp, Condition, Helper, Insn, Size};
use pktc_codegen::module::MachineInsn;
use pktc_lower::vcode::{Base, Terminator, VInsn};

use crate::builder::{Builder, OPTIMISED, PLAIN, check, input};
use crate::machine;

/// Straight code of `length` instructions, the last of which leaves 9 in byte 100.
fn fill(code: &mut Builder, length: usize) {
    let base = Base::Reg(code.context());
    for left in (0..length).rev() {
        let src = if left == 0 { Imm(9) } else { Imm(7) };
        code.push(VInsn::Store { size: Size::U8, base, offset: 100, src });
    }
}

#[test]
fn jumps_forwards_over_long_code() {
    for length in [15_990, 15_999, 16_000, 16_001, 32_768, 40_000, 200_000] {
        let mut code = Builder::new();
        let far = code.block();
        let field = code.load(0);
        code.branch(Condition::Eq, field, Imm(1), far);
        fill(&mut code, length);
        code.goto(far, far);
        code.exit(Reg(field));
        let (program, executed) = check(&code, 1);
        assert!(executed <= 5 + length as u64 / 7_000, "{executed} executed");
        let others = program.insns.len() - length;
        assert!(others <= 4 + 2 * length / 7_000, "{others} instructions besides the code");
    }
}

#[test]
fn jumps_backwards_over_long_code() {
    for length in [15_990, 16_001, 200_000] {
        let mut code = Builder::new();
        let (head, done) = (code.block(), code.block());
        let turns = code.constant(0);
        code.goto(head, head);
        fill(&mut code, length);
        code.alu_to(AluOp::Add, turns, turns, Imm(1));
        code.branch(Condition::Eq, turns, Imm(2), done);
        code.goto(head, done);
        let last = code.load(100);
        code.exit(Reg(last));
        check(&code, 9);
    }
}

/// How many rules the long list has: each takes more than three instructions.
const RULES: u32 = 12_000;

/// A list of rules as lowering writes it: each notes its number and verdict, and goes to a tail that counts.
fn rules() -> Builder {
    let mut code = Builder::new();
    code.function.frame = 8;
    let (hit, verdict, number, key) = (code.block(), code.reg(), code.reg(), code.reg());
    let base = Base::Reg(code.context());
    code.push(VInsn::Load { size: Size::U32, dst: key, base, offset: 0 });
    for rule in 0..RULES.cast_signed() {
        let next = code.block();
        let mixed = code.alu(AluOp::Xor, key, Imm(rule));
        let masked = code.alu(AluOp::And, mixed, Imm(0xffff));
        code.branch(Condition::Ne, masked, Imm(0), next);
        code.set(verdict, rule + 100_000);
        code.set(number, rule);
        code.goto(hit, next);
    }
    code.exit(Imm(2));
    code.at = hit;
    code.push(VInsn::Store { size: Size::U32, base: Base::Frame, offset: -4, src: Reg(number) });
    let (map, key) = (code.reg(), code.reg());
    code.push(VInsn::LoadMap { dst: map, map: pktc_bpf::MapIndex(0) });
    code.push(VInsn::FrameAddress { dst: key, offset: -4 });
    code.call(Helper::MapLookupElem, &[map, key]);
    code.exit(Reg(verdict));
    code
}

#[test]
fn many_rules_reach_one_tail_and_each_other() {
    let code = rules();
    let start = Instant::now();
    let optimised = code.compile(&OPTIMISED);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(20), "took {took:?}");
    let copies = optimised.insns.iter().filter(|insn| is_copy(insn)).count();
    // One of the key for each rule, and a few: the allocator does not join all lives that meet in the tail.
    assert!(copies < RULES as usize * 103 / 100, "{copies} copies");
    for program in [optimised, code.compile(&PLAIN)] {
        for (wanted, expected) in
            [(0, 100_000), (1, 100_001), (9_876, 109_876), (RULES - 1, 111_999), (RULES, 2)]
        {
            let mut packet = input();
            packet[..4].copy_from_slice(&wanted.to_le_bytes());
            assert_eq!(machine::run(&program, &packet).0.verdict, expected, "rule {wanted}");
        }
    }
}

/// Code with `count` targets behind `length` instructions, each of which one branch before them leads to.
pub(crate) fn far_targets(count: i32, length: usize) -> Builder {
    let mut code = Builder::new();
    let field = code.reg();
    let base = Base::Reg(code.context());
    code.push(VInsn::Load { size: Size::U32, dst: field, base, offset: 0 });
    let targets: Vec<_> = (0..count).map(|_| code.block()).collect();
    for (number, &target) in targets.iter().enumerate() {
        code.branch(Condition::Eq, field, Imm(number as i32), target);
    }
    fill(&mut code, length);
    let verdicts = std::iter::once(7).chain(1000..1000 + count);
    for (verdict, &next) in verdicts.zip(&targets) {
        code.end(Terminator::Exit(Imm(verdict)), next);
    }
    code.exit(Imm(1000 + count - 1));
    code
}

#[test]
fn each_of_many_far_targets_is_reached() {
    let code = far_targets(2_000, 40_000);
    for program in [code.compile(&OPTIMISED), code.compile(&PLAIN)] {
        for (wanted, expected) in [(0, 1000), (1_234, 2_234), (1_999, 2_999), (5_000, 7)] {
            let mut packet = input();
            packet[..4].copy_from_slice(&i32::to_le_bytes(wanted));
            assert_eq!(machine::run(&program, &packet).0.verdict, expected, "target {wanted}");
        }
    }
}

fn is_copy(insn: &MachineInsn) -> bool {
    matches!(insn, Insn::Alu { op: AluOp::Mov, src: Reg(_), .. })
}

/// Code with `loops` short loops, one after the other, each of which has an `exit` of its own.
fn loops(loops: i32) -> Builder {
    let mut code = Builder::new();
    let sum = code.constant(0);
    for turns in 0..loops {
        let (head, done, out, next) = (code.block(), code.block(), code.block(), code.block());
        let index = code.constant(0);
        code.goto(head, head);
        fill(&mut code, 20);
        code.alu_to(AluOp::Add, sum, sum, Imm(1));
        code.alu_to(AluOp::Add, index, index, Imm(1));
        code.branch(Condition::Ge, index, Imm(turns % 4), done);
        code.goto(head, done);
        code.branch(Condition::Gt, sum, Imm(100_000), out);
        code.goto(next, out);
        code.exit(Imm(turns));
        code.goto(next, next);
    }
    code.exit(Reg(sum));
    code
}

#[test]
fn no_jump_back_is_short_in_a_long_program() {
    let code = loops(300);
    let (_, executed) = check(&code, 75 * (1 + 1 + 2 + 3));
    assert!(executed < 525 * 30, "{executed} executed");
    for options in [&OPTIMISED, &PLAIN] {
        let program = code.compile(options);
        let mut short = 0;
        for (index, insn) in program.insns.iter().enumerate() {
            if let Insn::Goto { target } | Insn::Branch { target, .. } = *insn {
                let goal = index as i64 + 1 + i64::from(target);
                // All steps stand before the entry, and nothing of another length before them.
                short += usize::from((-64..0).contains(&target) && goal > 2 * 300);
            }
        }
        assert_eq!(short, 0, "jumps back that the JIT may find short or long");
        let first_exit = program.insns.iter().position(|insn| *insn == Insn::Exit);
        assert!(first_exit.is_some_and(|index| index < 4), "the first exit stands at {first_exit:?}");
    }
}
