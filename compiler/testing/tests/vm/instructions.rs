//! What instructions compute; results are from RFC 9669, by hand.

use pktc_bpf::{
    AluOp, AtomicOp, Condition, Foreign, Insn, MapIndex, MapKind, Operand, Reg, SignedOp, Size, Swap, Width,
};

use crate::asm::{
    EXIT, Machine, add, alu, alu32, branch, imm, load, map_def, mov, r, result, rodata, store, value, vm,
};

/// A 64-bit constant.
fn wide(dst: u8, imm: u64) -> Machine {
    Insn::LoadImm64 { dst: Reg(dst), imm }
}

/// r0 after `left op right`, with `right` in a register.
fn computed(op: AluOp, width: Width, left: u64, right: u64) -> u64 {
    value(&[wide(0, left), wide(2, right), Insn::Alu { op, width, dst: Reg(0), src: r(2) }, EXIT])
}

#[test]
fn arithmetic_in_64_bits() {
    let cases = [
        (AluOp::Add, u64::MAX, 2, 1),
        (AluOp::Sub, 1, 2, u64::MAX),
        (AluOp::Mul, 1 << 63, 3, 1 << 63),
        (AluOp::Div, u64::MAX, 10, 1_844_674_407_370_955_161),
        (AluOp::Div, 7, 0, 0),
        (AluOp::Mod, u64::MAX, 10, 5),
        (AluOp::Mod, 7, 0, 7),
        (AluOp::Or, 0xf0, 0x0f, 0xff),
        (AluOp::And, 0xf0, 0x3c, 0x30),
        (AluOp::Xor, 0xff, 0x0f, 0xf0),
        (AluOp::Lsh, 1, 63, 1 << 63),
        (AluOp::Lsh, 1, 65, 2),
        (AluOp::Rsh, 1 << 63, 63, 1),
        (AluOp::Arsh, 1 << 63, 63, u64::MAX),
        (AluOp::Mov, 1, 1 << 40, 1 << 40),
    ];
    for (op, left, right, expected) in cases {
        assert_eq!(computed(op, Width::W64, left, right), expected, "{op:?} {left:#x} {right:#x}");
    }
}

#[test]
fn arithmetic_in_32_bits_clears_the_upper_half() {
    let high = 0xdead_beef << 32;
    let cases = [
        (AluOp::Add, high | 0xffff_ffff, 2, 1),
        (AluOp::Sub, high | 1, 2, 0xffff_ffff),
        (AluOp::Mul, high | 0x8000_0001, 2, 2),
        (AluOp::Div, high | 7, high | 2, 3),
        (AluOp::Div, high | 7, high, 0),
        (AluOp::Mod, high | 7, high, 7),
        (AluOp::Lsh, high | 1, 33, 2),
        (AluOp::Rsh, high | 0x8000_0000, 31, 1),
        (AluOp::Arsh, high | 0x8000_0000, 31, 0xffff_ffff),
        (AluOp::Mov, 1, high | 5, 5),
    ];
    for (op, left, right, expected) in cases {
        assert_eq!(computed(op, Width::W32, left, right), expected, "{op:?} {left:#x} {right:#x}");
    }
}

#[test]
fn immediates_are_extended_with_their_sign() {
    assert_eq!(value(&[mov(0, imm(-1)), EXIT]), u64::MAX);
    assert_eq!(value(&[alu32(AluOp::Mov, 0, imm(-1)), EXIT]), 0xffff_ffff);
    assert_eq!(value(&[wide(0, 1 << 40), alu(AluOp::And, 0, imm(-1)), EXIT]), 1 << 40);
}

#[test]
fn negation_and_byte_order() {
    let neg = |width| Insn::Neg { width, dst: Reg(0) };
    assert_eq!(value(&[mov(0, imm(5)), neg(Width::W64), EXIT]), -5_i64 as u64);
    assert_eq!(value(&[mov(0, imm(5)), neg(Width::W32), EXIT]), 0xffff_fffb);
    let swaps = [
        (Swap::Be16, 0x8877),
        (Swap::Be32, 0x8877_6655),
        (Swap::Be64, 0x8877_6655_4433_2211),
        (Swap::Le16, 0x7788),
        (Swap::Le32, 0x5566_7788),
        (Swap::Le64, 0x1122_3344_5566_7788),
    ];
    for (swap, expected) in swaps {
        let code = [wide(0, 0x1122_3344_5566_7788), Insn::Swap { swap, dst: Reg(0) }, EXIT];
        assert_eq!(value(&code), expected, "{swap:?}");
    }
}

#[test]
fn version_4_arithmetic() {
    let run =
        |left: u64, right: u64, insn| value(&[wide(0, left), wide(2, right), Insn::Foreign(insn), EXIT]);
    let signed = |op, width| Foreign::SignedAlu { op, width, dst: Reg(0), src: r(2) };
    let minus = |number: i64| -number as u64;
    assert_eq!(run(minus(7), 2, signed(SignedOp::Div, Width::W64)), minus(3));
    assert_eq!(run(minus(7), 2, signed(SignedOp::Mod, Width::W64)), minus(1));
    assert_eq!(run(minus(7), 2, signed(SignedOp::Div, Width::W32)), 0xffff_fffd);
    assert_eq!(run(minus(7), 0, signed(SignedOp::Div, Width::W64)), 0);
    assert_eq!(run(minus(7), 0, signed(SignedOp::Mod, Width::W32)), 0xffff_fff9);
    assert_eq!(run(1 << 63, minus(1), signed(SignedOp::Div, Width::W64)), 1 << 63);
    assert_eq!(run(1 << 63, minus(1), signed(SignedOp::Mod, Width::W64)), 0);
    assert_eq!(run(0x8000_0000, minus(1), signed(SignedOp::Div, Width::W32)), 0x8000_0000);
    let moved = |from, width| Foreign::MovSigned { from, width, dst: Reg(0), src: Reg(2) };
    assert_eq!(run(0, 0x1280, moved(Size::U8, Width::W64)), minus(128));
    assert_eq!(run(0, 0x1280, moved(Size::U8, Width::W32)), 0xffff_ff80);
    assert_eq!(run(0, 0x1280, moved(Size::U16, Width::W64)), 0x1280);
    assert_eq!(run(0, 0x8000_0000, moved(Size::U32, Width::W64)), minus(0x8000_0000));
    let swapped = |size| Foreign::ByteSwap { size, dst: Reg(0) };
    assert_eq!(run(0x1122_3344_5566_7788, 0, swapped(Size::U16)), 0x8877);
    assert_eq!(run(0x1122_3344_5566_7788, 0, swapped(Size::U64)), 0x8877_6655_4433_2211);
}

#[test]
fn conditions() {
    let minus = -1_i64 as u64;
    // Condition, left, right, holds in 64 bits, holds in 32 bits.
    let cases = [
        (Condition::Eq, 1 << 32, 0, false, true),
        (Condition::Ne, 1 << 32, 0, true, false),
        (Condition::Gt, minus, 1, true, true),
        (Condition::Gt, 1 << 32, 1, true, false),
        (Condition::Ge, 5, 5, true, true),
        (Condition::Lt, 5, 5, false, false),
        (Condition::Le, 5, 5, true, true),
        (Condition::Set, 6, 2, true, true),
        (Condition::Set, 5, 2, false, false),
        (Condition::Sgt, minus, 0, false, false),
        (Condition::Sgt, 0x8000_0000, 0, true, false),
        (Condition::Sge, minus, minus, true, true),
        (Condition::Slt, minus, 0, true, true),
        (Condition::Sle, 1, minus, false, false),
    ];
    for (condition, left, right, in_64, in_32) in cases {
        for (width, expected) in [(Width::W64, in_64), (Width::W32, in_32)] {
            let jump = Insn::Branch { condition, width, left: Reg(1), right: r(2), target: 1 };
            let code = [wide(1, left), wide(2, right), mov(0, imm(1)), jump, mov(0, imm(0)), EXIT];
            assert_eq!(value(&code), u64::from(expected), "{condition:?} {width:?} {left:#x} {right:#x}");
        }
    }
}

#[test]
fn jumps_count_slots_from_the_next_instruction() {
    let code = [
        mov(0, imm(0)),
        Insn::Goto { target: 3 },
        wide(0, 7),
        EXIT,
        add(0, imm(1)),
        branch(Condition::Lt, 0, imm(5), -2),
        Insn::Foreign(Foreign::GotoLong { target: 0 }),
        EXIT,
    ];
    assert_eq!(value(&code), 5);
    let mut vm = vm(&code, &[]);
    vm.execute(&[], &pktc_testing::engine::Env::default()).unwrap();
    assert_eq!(vm.instructions(), 2 + 5 * 2 + 2);
}

#[test]
fn the_stack_keeps_numbers_of_all_sizes_and_pointers() {
    let code = [
        store(Size::U64, 10, -8, imm(-2)),
        store(Size::U16, 10, -6, imm(0x1234)),
        load(Size::U64, 0, 10, -8),
        EXIT,
    ];
    assert_eq!(value(&code), 0xffff_ffff_1234_fffe);
    let code = [store(Size::U8, 10, -1, imm(0x1ff)), load(Size::U8, 0, 10, -1), EXIT];
    assert_eq!(value(&code), 0xff);
    let signed =
        Insn::Foreign(Foreign::LoadSigned { size: Size::U8, dst: Reg(0), base: Reg(10), offset: -1 });
    assert_eq!(value(&[store(Size::U8, 10, -1, imm(-2)), signed, EXIT]), -2_i64 as u64);
    let code =
        [store(Size::U64, 10, -16, r(1)), load(Size::U64, 3, 10, -16), load(Size::U32, 0, 3, 12), EXIT];
    assert_eq!(value(&code), 1, "the interface, through the context pointer kept on the stack");
}

#[test]
fn atomic_operations() {
    let atomic =
        |op| Insn::Foreign(Foreign::Atomic { op, size: Size::U64, base: Reg(10), offset: -8, src: Reg(2) });
    let run = |insn, read_result: bool| {
        let answer = if read_result { mov(0, r(2)) } else { load(Size::U64, 0, 10, -8) };
        value(&[store(Size::U64, 10, -8, imm(12)), mov(2, imm(10)), insn, answer, EXIT])
    };
    let add = Insn::AtomicAdd { size: Size::U64, base: Reg(10), offset: -8, src: Reg(2) };
    assert_eq!(run(add, false), 22);
    assert_eq!(run(atomic(AtomicOp::Or), false), 14);
    assert_eq!(run(atomic(AtomicOp::And), false), 8);
    assert_eq!(run(atomic(AtomicOp::Xor), false), 6);
    let fetching = [
        (AtomicOp::FetchAdd, 22),
        (AtomicOp::FetchOr, 14),
        (AtomicOp::FetchAnd, 8),
        (AtomicOp::FetchXor, 6),
        (AtomicOp::Exchange, 10),
    ];
    for (op, new) in fetching {
        assert_eq!(run(atomic(op), false), new, "{op:?}");
        assert_eq!(run(atomic(op), true), 12, "{op:?} gives the old value");
    }
    for (expected, new) in [(12, 10), (13, 12)] {
        let code = [
            store(Size::U64, 10, -8, imm(12)),
            mov(2, imm(10)),
            mov(0, imm(expected)),
            atomic(AtomicOp::CompareExchange),
            alu(AluOp::Lsh, 0, imm(8)),
            load(Size::U64, 3, 10, -8),
            alu(AluOp::Or, 0, r(3)),
            EXIT,
        ];
        assert_eq!(value(&code), 12 << 8 | new, "the old value, and the new one");
    }
}

#[test]
fn atomic_operations_on_half_a_word() {
    let add = Insn::AtomicAdd { size: Size::U32, base: Reg(10), offset: -8, src: Reg(2) };
    let code = [store(Size::U64, 10, -8, imm(-1)), mov(2, imm(1)), add, load(Size::U64, 0, 10, -8), EXIT];
    assert_eq!(value(&code), 0xffff_ffff_0000_0000);
}

#[test]
fn values_of_maps_are_read_in_place() {
    let at = |offset| Insn::LoadMapValue { dst: Reg(1), map: MapIndex(1), offset };
    let maps = [map_def("other", MapKind::Array, 4, 1), rodata(&[1, 2, 3, 4, 5])];
    assert_eq!(result(&[at(1), load(Size::U16, 0, 1, 2), EXIT], &maps), Ok(0x0504));
}

#[test]
fn a_subprogram_has_its_own_frame_and_keeps_the_callers_registers() {
    let code = [
        // r6 = 5; *(fp - 8) = 6; r0 = f(fp - 8); r0 = r0 + r6 + *(fp - 8)
        mov(6, imm(5)),
        store(Size::U64, 10, -8, imm(6)),
        mov(1, r(10)),
        add(1, imm(-8)),
        Insn::CallLocal { target: 4 },
        add(0, r(6)),
        load(Size::U64, 1, 10, -8),
        add(0, r(1)),
        EXIT,
        // f: *(fp - 8) = 100; r6 = 1; *r1 += 1; return *(fp - 8)
        store(Size::U64, 10, -8, imm(100)),
        mov(6, imm(1)),
        load(Size::U64, 2, 1, 0),
        add(2, r(6)),
        store(Size::U64, 1, 0, r(2)),
        load(Size::U64, 0, 10, -8),
        EXIT,
    ];
    assert_eq!(value(&code), 100 + 5 + 7);
}

#[test]
fn pointers_move_and_subtract() {
    let code = [
        mov(2, r(10)),
        add(2, imm(-64)),
        mov(3, imm(16)),
        add(3, r(2)),
        alu(AluOp::Sub, 3, imm(8)),
        mov(0, r(3)),
        alu(AluOp::Sub, 0, r(2)),
        EXIT,
    ];
    assert_eq!(value(&code), 8);
    let operand: Operand<Reg> = r(1);
    let code = [alu32(AluOp::Mov, 0, operand), mov(0, imm(3)), EXIT];
    assert_eq!(value(&code), 3, "half of a pointer is a number");
}
