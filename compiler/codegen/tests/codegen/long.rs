//! Programs in which jumps are longer than 16 bits.

use std::time::{Duration, Instant};

use pktc_bpf::Operand::{Imm, Reg};
use pktc_bpf::{AluOp, Condition, Insn, Size};
use pktc_lower::vcode::{Base, VInsn};

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
    for length in [32_760, 32_766, 32_767, 32_768, 40_000, 200_000] {
        let mut code = Builder::new();
        let far = code.block();
        let field = code.load(0);
        code.branch(Condition::Eq, field, Imm(1), far);
        fill(&mut code, length);
        code.goto(far, far);
        code.exit(Reg(field));
        let (program, executed) = check(&code, 1);
        assert!(executed <= 5 + length as u64 / 20_000, "{executed} executed");
        let others = program.insns.len() - length;
        assert!(others <= 4 + 2 * length / 20_000, "{others} instructions besides the code");
    }
}

#[test]
fn jumps_backwards_over_long_code() {
    for length in [32_760, 32_768, 200_000] {
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

#[test]
fn many_rules_reach_one_tail_and_each_other() {
    let rules = 25_000;
    let mut code = Builder::new();
    let (hit, result, key) = (code.block(), code.reg(), code.reg());
    let base = Base::Reg(code.context());
    code.push(VInsn::Load { size: Size::U32, dst: key, base, offset: 0 });
    for rule in 0..rules {
        let next = code.block();
        let mixed = code.alu(AluOp::Xor, key, Imm(rule));
        let masked = code.alu(AluOp::And, mixed, Imm(0xffff));
        code.branch(Condition::Ne, masked, Imm(0), next);
        code.set(result, rule);
        code.goto(hit, next);
    }
    code.exit(Imm(-1));
    code.at = hit;
    code.alu_to(AluOp::Add, result, result, Imm(1));
    code.alu_to(AluOp::Mul, result, result, Imm(3));
    code.alu_to(AluOp::Add, result, result, Imm(1));
    code.exit(Reg(result));
    let start = Instant::now();
    let program = code.compile(&OPTIMISED);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(30), "took {took:?}");
    assert!(
        program.insns.iter().filter(|insn| matches!(insn, Insn::Goto { .. })).count() > rules as usize / 2
    );
    let plain = code.compile(&PLAIN);
    for wanted in [0_u32, 1, 12_345, 24_999, 25_000] {
        let mut packet = input();
        packet[..4].copy_from_slice(&wanted.to_le_bytes());
        let expected = if wanted < 25_000 { 3 * (u64::from(wanted) + 1) + 1 } else { u64::MAX };
        assert_eq!(machine::run(&program, &packet).0.verdict, expected, "rule {wanted}");
        assert_eq!(machine::run(&plain, &packet).0.verdict, expected, "rule {wanted}, not optimised");
    }
}
