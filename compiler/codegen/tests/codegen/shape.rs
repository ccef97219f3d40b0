//! What the code looks like where that decides about speed or about the verifier.

use pktc_bpf::Operand::{Imm, Reg};
use pktc_bpf::{AluOp, Condition, Helper, Insn, Size, Width};
use pktc_codegen::listing;
use pktc_codegen::module::MachineInsn;
use pktc_diagnostics::SourceMap;
use pktc_lower::vcode::{Base, Terminator, VInsn, VReg};

use crate::builder::{Builder, PLAIN, check, input};
use crate::machine;

fn is_move(insn: &MachineInsn) -> bool {
    matches!(insn, Insn::Alu { op: AluOp::Mov, src: Reg(_), .. })
}

/// A parse as lowering writes it: each header behind a check, an optional tag that moves the header on, a field
/// that lives over several blocks, a tail shared by all verdicts with a call.
fn parse() -> Builder {
    let mut code = Builder::new();
    code.function.frame = 8;
    let (tag, ip, short, hit) = (code.block(), code.block(), code.block(), code.block());
    let (header, end, kind) = (code.reg(), code.reg(), code.reg());
    let (proto, verdict, counter) = (code.reg(), code.reg(), code.reg());
    let context = Base::Reg(code.context());
    code.push(VInsn::Load { size: Size::U32, dst: header, base: context, offset: 0 });
    code.push(VInsn::Load { size: Size::U32, dst: end, base: context, offset: 4 });
    // The test's memory holds no addresses: these are some that lie in it.
    let base = code.context();
    code.copy(header, base);
    code.alu_to(AluOp::Add, end, base, Imm(100));
    let past = code.alu(AluOp::Add, header, Imm(14));
    code.branch(Condition::Gt, past, Reg(end), short);
    code.push(VInsn::Load { size: Size::U16, dst: kind, base: Base::Reg(header), offset: 12 });
    code.alu_to(AluOp::Add, header, header, Imm(14));
    code.branch(Condition::Ne, kind, Imm(0x81), ip);
    code.goto(tag, tag);
    let past = code.alu(AluOp::Add, header, Imm(4));
    code.branch(Condition::Gt, past, Reg(end), short);
    code.push(VInsn::Load { size: Size::U16, dst: kind, base: Base::Reg(header), offset: 2 });
    code.alu_to(AluOp::Add, header, header, Imm(4));
    code.goto(ip, ip);
    let past = code.alu(AluOp::Add, header, Imm(20));
    code.branch(Condition::Gt, past, Reg(end), short);
    code.push(VInsn::Load { size: Size::U8, dst: proto, base: Base::Reg(header), offset: 9 });
    for (rule, wanted) in [6, 17, 70].into_iter().enumerate() {
        let next = code.block();
        code.branch(Condition::Ne, proto, Imm(wanted), next);
        code.set(verdict, 1);
        code.set(counter, rule as i32);
        code.goto(hit, next);
    }
    code.goto(short, short);
    code.exit(Imm(2));
    code.at = hit;
    code.push(VInsn::Store { size: Size::U32, base: Base::Frame, offset: -4, src: Reg(counter) });
    let (map, key) = (code.reg(), code.reg());
    code.push(VInsn::LoadMap { dst: map, map: pktc_bpf::MapIndex(0) });
    code.push(VInsn::FrameAddress { dst: key, offset: -4 });
    code.call(Helper::MapLookupElem, &[map, key]);
    code.exit(Reg(verdict));
    code
}

#[test]
fn a_parse_needs_no_move_beyond_its_copies() {
    let code = parse();
    let (program, executed) = check(&code, 1);
    let text = listing(&program, &sources());
    // The address of the first header, three addresses to check, the frame's address; a verdict to r0.
    let moves = program.insns.iter().filter(|insn| is_move(insn)).count();
    assert!(moves <= 6, "{moves} moves in\n{text}");
    assert_eq!(program.stack, 8, "nothing is spilled in\n{text}");
    assert!(executed <= 28, "{executed} executed of\n{text}");
}

fn sources() -> SourceMap {
    let mut sources = SourceMap::default();
    sources.add("t.pkt", "x\n".repeat(200));
    sources
}

#[test]
fn the_listing_names_sources_and_targets() {
    let text = listing(&parse().compile(&PLAIN), &sources());
    assert!(text.starts_with("t: "), "{text}");
    assert!(text.contains("; t.pkt:4: x\n    0: r2 = *(u32 *)(r1 +0)\n"), "{text}");
    assert!(text.contains("goto pc") && text.contains(" ; to "), "{text}");
}

#[test]
fn the_side_to_walk_first_falls_through_even_if_the_other_comes_next() {
    let mut code = Builder::new();
    let (next, far) = (code.block(), code.block());
    let field = code.load(0);
    let end = Terminator::Branch {
        condition: Condition::Eq,
        width: Width::W64,
        left: field,
        right: Imm(1),
        taken: next,
        fallthrough: far,
    };
    code.end(end, next);
    code.exit(Reg(field));
    code.at = far;
    code.exit(Imm(9));
    let (program, _) = check(&code, 1);
    let Some(at) = program.insns.iter().position(|insn| matches!(insn, Insn::Branch { .. })) else {
        panic!("no branch in {:?}", program.insns)
    };
    assert!(matches!(program.insns[at], Insn::Branch { condition: Condition::Eq, .. }));
    assert_eq!(
        program.insns[at + 1],
        MachineInsn::Alu { op: AluOp::Mov, width: Width::W64, dst: pktc_bpf::Reg::R0, src: Imm(9) }
    );
}

#[test]
fn cold_blocks_stand_behind_all_others() {
    let mut code = Builder::new();
    let cold = code.block();
    code.function.blocks[cold].cold = true;
    let warm = code.block();
    let field = code.load(0);
    code.branch(Condition::Gt, field, Imm(200), cold);
    code.goto(warm, cold);
    let odd = code.alu(AluOp::Mul, field, Imm(77));
    code.exit(Reg(odd));
    code.at = warm;
    code.exit(Imm(4));
    let (program, executed) = check(&code, 4);
    assert_eq!(executed, 4, "nothing is jumped over");
    let position = |wanted: fn(&MachineInsn) -> bool| program.insns.iter().position(wanted);
    let cold = position(|insn| matches!(insn, Insn::Alu { op: AluOp::Mul, .. }));
    assert!(cold > position(|insn| matches!(insn, Insn::Exit)), "{:?}", program.insns);
}

#[test]
fn a_short_end_is_repeated_rather_than_jumped_to() {
    let mut code = Builder::new();
    let drop = code.block();
    let field = code.load(0);
    for offset in 1..20 {
        let next = code.block();
        code.branch(Condition::Ne, field, Imm(offset), next);
        code.goto(drop, next);
    }
    code.exit(Imm(2));
    code.at = drop;
    code.exit(Imm(1));
    let (program, executed) = check(&code, 1);
    assert!(!program.insns.iter().any(|insn| matches!(insn, Insn::Goto { .. })), "{:?}", program.insns);
    assert_eq!(executed, 4, "load, branch, verdict, exit");
}

#[test]
fn a_loop_counter_stays_in_its_register() {
    let mut code = Builder::new();
    let (head, done) = (code.block(), code.block());
    let (index, sum) = (code.constant(0), code.constant(0));
    code.goto(head, head);
    code.alu_to(AluOp::Add, sum, sum, Reg(index));
    code.alu_to(AluOp::Add, index, index, Imm(1));
    code.branch(Condition::Eq, index, Imm(50), done);
    code.goto(head, done);
    code.exit(Reg(sum));
    let (program, executed) = check(&code, 1225);
    let copies = program.insns.iter().filter(|insn| is_move(insn)).count();
    assert!(copies <= 1, "none but for the verdict: {:?}", program.insns);
    assert!(executed <= 2 + 50 * 4 + 2, "{executed}");
}

#[test]
fn what_nobody_reads_is_not_computed() {
    let mut code = Builder::new();
    let (head, done) = (code.block(), code.block());
    let (unused, turns) = (code.load(0), code.load(1));
    code.goto(head, head);
    code.alu_to(AluOp::Mul, unused, unused, Imm(3));
    code.alu_to(AluOp::Sub, turns, turns, Imm(1));
    code.branch(Condition::Eq, turns, Imm(0), done);
    code.goto(head, done);
    code.exit(Imm(1));
    let (program, _) = check(&code, 1);
    assert!(!program.insns.iter().any(|insn| matches!(insn, Insn::Alu { op: AluOp::Mul, .. })));
    assert!(program.insns.len() <= 6, "{:?}", program.insns);
}

#[test]
fn a_constant_is_no_reason_to_spill() {
    let mut code = Builder::new();
    let constants: Vec<VReg> = (0..12).map(|imm| code.constant(1000 + imm)).collect();
    code.call(Helper::KtimeGetNs, &[]);
    for &constant in &constants {
        code.call(Helper::MapLookupElem, &[constant, constant]);
    }
    code.exit(Imm(1));
    let (program, _) = check(&code, 1);
    assert_eq!(program.stack, 0, "{:?}", program.insns);
    assert_eq!(machine::run(&program, &input()).1, 12 * 3 + 3);
}

#[test]
fn a_zero_that_the_verifier_must_not_know_stays_hidden() {
    let mut code = Builder::new();
    code.function.frame = 8;
    let zero = code.reg();
    code.push(VInsn::UnknownZero { dst: zero });
    code.push(VInsn::Store { size: Size::U64, base: Base::Frame, offset: -8, src: Reg(zero) });
    let back = code.reg();
    code.push(VInsn::Load { size: Size::U64, dst: back, base: Base::Frame, offset: -8 });
    code.exit(Reg(back));
    let (program, _) = check(&code, 0);
    let subtracts = |insn: &MachineInsn| matches!(*insn, Insn::Alu { op: AluOp::Sub, dst, src: Reg(src), .. } if dst != src);
    assert!(program.insns.iter().any(subtracts), "{:?}", program.insns);
    assert!(program.insns.iter().any(|insn| matches!(insn, Insn::Load { base: pktc_bpf::Reg::FP, .. })));
}
