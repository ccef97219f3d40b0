//! Small programs, each with what it must return.

use pktc_bpf::Operand::{Imm, Reg};
use pktc_bpf::{AluOp, Condition, Helper, Size, Swap, Width};
use pktc_lower::vcode::{Base, Terminator, VInsn};

use crate::builder::{Builder, OPTIMISED, check, input};
use crate::{machine, virtual_machine};

/// What byte `offset` of the context is.
fn byte(offset: usize) -> u64 {
    input()[offset].into()
}

#[test]
fn returns_a_constant() {
    let mut code = Builder::new();
    code.exit(Imm(2));
    check(&code, 2);
}

#[test]
fn joins_a_register_written_in_both_arms() {
    let mut code = Builder::new();
    let (left, right, join) = (code.block(), code.block(), code.block());
    let (field, result) = (code.load(0), code.reg());
    code.branch(Condition::Eq, field, Imm(1), left);
    code.goto(right, left);
    code.set(result, 7);
    code.goto(join, right);
    code.set(result, 8);
    code.goto(join, join);
    code.exit(Reg(result));
    check(&code, 7);
}

#[test]
fn a_branch_may_skip_a_write() {
    for (wanted, expected) in [(1, 7), (2, 8)] {
        let mut code = Builder::new();
        let join = code.block();
        let (field, result) = (code.load(0), code.constant(7));
        code.branch(Condition::Eq, field, Imm(wanted), join);
        code.set(result, 8);
        code.goto(join, join);
        code.exit(Reg(result));
        check(&code, expected);
    }
}

#[test]
fn counts_in_a_loop() {
    let mut code = Builder::new();
    let (head, body, done) = (code.block(), code.block(), code.block());
    let (sum, index) = (code.constant(0), code.constant(0));
    code.goto(head, head);
    code.branch(Condition::Ge, index, Imm(10), done);
    code.goto(body, body);
    code.alu_to(AluOp::Add, sum, sum, Reg(index));
    code.alu_to(AluOp::Add, index, index, Imm(1));
    code.goto(head, done);
    code.exit(Reg(sum));
    check(&code, 45);
}

#[test]
fn loops_back_to_the_entry() {
    let mut code = Builder::new();
    let entry = code.at;
    let done = code.block();
    let field = code.load(0);
    let more = code.alu(AluOp::Add, field, Imm(100));
    let base = Base::Reg(code.context());
    code.push(VInsn::Store { size: Size::U8, base, offset: 0, src: Reg(more) });
    code.branch(Condition::Ge, more, Imm(200), done);
    code.goto(entry, done);
    code.exit(Reg(more));
    check(&code, 201);
}

#[test]
fn swaps_registers_in_a_loop() {
    let mut code = Builder::new();
    let (head, body, done) = (code.block(), code.block(), code.block());
    let (a, b, c) = (code.load(1), code.load(2), code.load(3));
    let (kept, turns) = (code.reg(), code.constant(4));
    code.goto(head, head);
    code.branch(Condition::Eq, turns, Imm(0), done);
    code.goto(body, body);
    code.copy(kept, a);
    code.copy(a, b);
    code.copy(b, c);
    code.copy(c, kept);
    code.alu_to(AluOp::Sub, turns, turns, Imm(1));
    code.goto(head, done);
    // Four turns of three are one.
    let high = code.alu(AluOp::Lsh, a, Imm(16));
    let middle = code.alu(AluOp::Lsh, b, Imm(8));
    let all = code.sum(&[high, middle, c]);
    code.exit(Reg(all));
    check(&code, byte(2) << 16 | byte(3) << 8 | byte(1));
}

#[test]
fn keeps_values_over_calls() {
    let mut code = Builder::new();
    let fields: Vec<_> = (0..6).map(|offset| code.load(offset)).collect();
    code.call(Helper::MapLookupElem, &[fields[0], fields[1]]);
    code.call(Helper::MapUpdateElem, &[fields[3], fields[2], fields[1], fields[0]]);
    let sum = code.sum(&fields);
    code.exit(Reg(sum));
    let (program, _) = check(&code, (0..6).map(byte).sum());
    assert!(program.stack > 0, "six values and the four registers that survive calls");
}

#[test]
fn spills_more_values_than_there_are_registers() {
    let mut code = Builder::new();
    let fields: Vec<_> = (0..30).map(|offset| code.load(offset)).collect();
    let forwards = code.sum(&fields);
    let reversed: Vec<_> = fields.iter().rev().copied().collect();
    let backwards = code.sum(&reversed);
    let both = code.alu(AluOp::Add, forwards, Reg(backwards));
    code.exit(Reg(both));
    check(&code, 2 * (0..30).map(byte).sum::<u64>());
}

#[test]
fn passes_the_same_value_twice_to_a_helper() {
    let mut code = Builder::new();
    let field = code.load(5);
    code.call(Helper::XdpLoadBytes, &[field, field, field, field]);
    code.exit(Reg(field));
    check(&code, byte(5));
}

#[test]
fn spills_lie_below_the_frame_of_the_code() {
    let mut code = Builder::new();
    code.function.frame = 12;
    let fields: Vec<_> = (0..14).map(|offset| code.load(offset)).collect();
    code.push(VInsn::Store { size: Size::U32, base: Base::Frame, offset: -12, src: Reg(fields[9]) });
    let sum = code.sum(&fields);
    let kept = code.reg();
    code.push(VInsn::Load { size: Size::U32, dst: kept, base: Base::Frame, offset: -12 });
    let all = code.sum(&[kept, sum, fields[0], fields[13]]);
    code.exit(Reg(all));
    check(&code, byte(9) + (0..14).map(byte).sum::<u64>() + byte(0) + byte(13));
}

#[test]
fn hands_addresses_in_the_frame_to_helpers() {
    let mut code = Builder::new();
    code.function.frame = 8;
    let field = code.load(0);
    code.push(VInsn::Store { size: Size::U64, base: Base::Frame, offset: -8, src: Reg(field) });
    let (map, key) = (code.reg(), code.reg());
    code.push(VInsn::LoadMap { dst: map, map: pktc_bpf::MapIndex(3) });
    code.push(VInsn::FrameAddress { dst: key, offset: -8 });
    code.call(Helper::MapLookupElem, &[map, key]);
    code.exit(Imm(1));
    let (_, executed) = check(&code, 1);
    assert_eq!(executed, 8, "load, store, map, two for the address, call, verdict, exit");
}

#[test]
fn overwrites_neither_operand_that_is_needed_later() {
    let mut code = Builder::new();
    let (a, b) = (code.load(9), code.load(4));
    let difference = code.alu(AluOp::Sub, a, Reg(b));
    let reverse = code.alu(AluOp::Sub, b, Reg(a));
    let product = code.alu(AluOp::Mul, difference, Reg(reverse));
    let all = code.sum(&[product, a, b]);
    code.exit(Reg(all));
    let square = (byte(9) - byte(4)).pow(2);
    check(&code, (byte(9) + byte(4)).wrapping_sub(square));
}

#[test]
fn subtracts_a_register_from_itself() {
    let mut code = Builder::new();
    let a = code.load(9);
    let zero = code.alu(AluOp::Sub, a, Reg(a));
    let all = code.alu(AluOp::Add, zero, Reg(a));
    code.exit(Reg(all));
    check(&code, byte(9));
}

#[test]
fn constants_keep_their_value_at_every_width() {
    for imm in [5, -1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000, -0x8000_0001_i64, i64::MIN] {
        for width in [Width::W32, Width::W64] {
            let mut code = Builder::new();
            let (field, known, sum) = (code.load(0), code.reg(), code.reg());
            code.push(VInsn::LoadImm64 { dst: known, imm: imm.cast_unsigned() });
            code.push(VInsn::Alu { op: AluOp::Add, width, dst: sum, left: known, right: Reg(field) });
            code.exit(Reg(sum));
            let wide = imm.cast_unsigned().wrapping_add(byte(0));
            check(&code, if width == Width::W32 { wide & 0xffff_ffff } else { wide });
        }
    }
}

#[test]
fn compares_with_constants_at_every_width() {
    for imm in [0x8000_0000_u64, 0xffff_ffff, 0xffff_ffff_ffff_ffff, 1] {
        for width in [Width::W32, Width::W64] {
            for value in [0xffff_ffff_u64, 0xffff_ffff_ffff_ffff, 0x8000_0000, 1] {
                let mut code = Builder::new();
                let (value_reg, known) = (code.reg(), code.reg());
                let (equal, other) = (code.block(), code.block());
                let base = Base::Reg(code.context());
                code.push(VInsn::LoadImm64 { dst: known, imm });
                // Out of memory, so that only one side is known.
                code.push(VInsn::LoadImm64 { dst: value_reg, imm: value });
                code.push(VInsn::Store { size: Size::U64, base, offset: 0, src: Reg(value_reg) });
                code.push(VInsn::Load { size: Size::U64, dst: value_reg, base, offset: 0 });
                let condition = Condition::Eq;
                let (left, right) = (known, Reg(value_reg));
                code.end(
                    Terminator::Branch { condition, width, left, right, taken: equal, fallthrough: other },
                    equal,
                );
                code.exit(Imm(1));
                code.at = other;
                code.exit(Imm(2));
                let equal = if width == Width::W32 { imm as u32 == value as u32 } else { imm == value };
                check(&code, if equal { 1 } else { 2 });
            }
        }
    }
}

#[test]
fn a_constant_on_the_left_mirrors_the_condition() {
    let greater = [Condition::Gt, Condition::Ge, Condition::Sgt, Condition::Sge];
    let less = [Condition::Lt, Condition::Le, Condition::Slt, Condition::Sle];
    for (condition, expected) in greater.map(|it| (it, 1)).into_iter().chain(less.map(|it| (it, 2))) {
        let mut code = Builder::new();
        let taken = code.block();
        let (known, field) = (code.constant(3), code.load(0));
        code.branch(condition, known, Reg(field), taken);
        code.exit(Imm(2));
        code.at = taken;
        code.exit(Imm(1));
        let (program, _) = check(&code, expected);
        assert_eq!(program.insns.len(), 6, "load, branch, and a verdict a side");
    }
}

#[test]
fn shifts_and_divisions_by_registers_stay_defined() {
    for (op, amount, expected) in
        [(AluOp::Lsh, 65, 2), (AluOp::Div, 0, 0), (AluOp::Mod, 0, 1), (AluOp::Rsh, 64, 1)]
    {
        let mut code = Builder::new();
        let (field, amount) = (code.load(0), code.constant(amount));
        let result = code.alu(op, field, Reg(amount));
        code.exit(Reg(result));
        check(&code, expected);
    }
}

#[test]
fn swaps_bytes_and_negates() {
    let mut code = Builder::new();
    let (word, swapped, negative) = (code.reg(), code.reg(), code.reg());
    let base = Base::Reg(code.context());
    code.push(VInsn::Load { size: Size::U16, dst: word, base, offset: 0 });
    code.push(VInsn::Swap { swap: Swap::Be16, dst: swapped, src: word });
    code.push(VInsn::Neg { dst: negative, src: word });
    let all = code.sum(&[swapped, negative]);
    code.exit(Reg(all));
    check(&code, 0x0104_u64.wrapping_sub(0x0401));
}

#[test]
fn a_branch_to_one_place_is_no_branch() {
    let mut code = Builder::new();
    let (target, field) = (code.block(), code.load(0));
    let end = Terminator::Branch {
        condition: Condition::Eq,
        width: Width::W64,
        left: field,
        right: Imm(1),
        taken: target,
        fallthrough: target,
    };
    code.end(end, target);
    code.exit(Imm(3));
    let (program, _) = check(&code, 3);
    assert_eq!(program.insns.len(), 2);
}

#[test]
fn adds_to_memory_atomically() {
    let mut code = Builder::new();
    let (one, base) = (code.constant(1), code.context());
    code.push(VInsn::AtomicAdd { size: Size::U64, base, offset: 8, src: one });
    let field = code.load(8);
    code.exit(Reg(field));
    check(&code, byte(8) + 1);
}

#[test]
fn an_endless_program_is_still_whole() {
    let mut code = Builder::new();
    let head = code.block();
    code.goto(head, head);
    code.goto(head, head);
    let program = code.compile(&OPTIMISED);
    assert_eq!(program.insns.len(), 1, "a jump to itself: {:?}", program.insns);
}

#[test]
fn lines_start_at_the_first_instruction_and_ascend() {
    let mut code = Builder::new();
    let field = code.load(0);
    let sum = code.alu(AluOp::Add, field, Imm(1));
    code.exit(Reg(sum));
    let program = code.compile(&OPTIMISED);
    assert_eq!(program.lines.first().map(|line| line.0), Some(0));
    assert!(program.lines.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1), "{:?}", program.lines);
    let meant = virtual_machine::run(&code.function, &input());
    assert_eq!(machine::run(&program, &input()).0, meant);
}
