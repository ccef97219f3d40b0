//! Everything that a program may not do.

use pktc_bpf::{AluOp, Condition, Foreign, Helper, Insn, MapIndex, MapKind, Reg, Size, Width};
use pktc_testing::engine::{Engine as _, EngineError, Env};
use pktc_testing::vm::{BUDGET, Problem, Vm, VmError};

use crate::asm::{
    EXIT, Machine, add, alu, alu32, branch, call, check, imm, load, map, map_def, mov, problem, r, result,
    rodata, store, value, vm,
};

fn then(mut first: Vec<Machine>, rest: &[Machine]) -> Vec<Machine> {
    first.extend_from_slice(rest);
    first
}

#[test]
fn registers_must_be_written_before_they_are_read() {
    assert_eq!(problem(&[EXIT], &[]), Problem::UnsetRegister);
    assert_eq!(problem(&[mov(0, r(5)), EXIT], &[]), Problem::UnsetRegister);
    assert_eq!(problem(&[add(0, imm(1)), EXIT], &[]), Problem::UnsetRegister);
    assert_eq!(problem(&[branch(Condition::Eq, 3, imm(0), 0), EXIT], &[]), Problem::UnsetRegister);
    let after_call = [mov(2, imm(1)), call(Helper::KtimeGetNs), mov(0, r(2)), EXIT];
    assert_eq!(problem(&after_call, &[]), Problem::UnsetRegister, "a helper clobbers r1 to r5");
}

#[test]
fn subprograms_see_and_leave_only_what_the_convention_says() {
    let call_local = Insn::CallLocal { target: 2 };
    let saved = [mov(6, imm(1)), call_local, mov(0, imm(0)), EXIT, mov(0, r(6)), EXIT];
    assert_eq!(problem(&saved, &[]), Problem::UnsetRegister, "r6 of the caller");
    let clobbered = [mov(2, imm(1)), call_local, mov(0, r(2)), EXIT, mov(0, imm(0)), EXIT];
    assert_eq!(problem(&clobbered, &[]), Problem::UnsetRegister, "r2 after the call");
    let void = [call_local, mov(0, imm(0)), EXIT, EXIT, EXIT];
    assert_eq!(problem(&void, &[]), Problem::UnsetRegister, "a return without r0");
    let frame = [call_local, mov(0, imm(0)), EXIT, mov(0, r(10)), EXIT];
    assert_eq!(problem(&frame, &[]), Problem::PointerReturned);
    let old_frame = [
        Insn::CallLocal { target: 3 },
        Insn::CallLocal { target: 5 },
        mov(0, imm(0)),
        EXIT,
        store(Size::U64, 10, -8, imm(1)),
        mov(0, imm(0)),
        EXIT,
        load(Size::U64, 0, 10, -8),
        EXIT,
    ];
    assert_eq!(problem(&old_frame, &[]), Problem::UnwrittenStack, "what an earlier call left");
}

#[test]
fn the_frame_pointer_is_read_only() {
    assert_eq!(problem(&[add(10, imm(-8)), EXIT], &[]), Problem::FramePointerWritten);
    assert_eq!(problem(&[load(Size::U32, 10, 1, 12), EXIT], &[]), Problem::FramePointerWritten);
}

#[test]
fn numbers_and_ends_are_no_addresses() {
    assert_eq!(problem(&[mov(2, imm(64)), load(Size::U8, 0, 2, 0), EXIT], &[]), Problem::NotAPointer);
    assert_eq!(problem(&[mov(2, imm(0)), store(Size::U8, 2, 0, imm(0)), EXIT], &[]), Problem::NotAPointer);
    let end = [load(Size::U32, 2, 1, 4), load(Size::U8, 0, 2, -1), EXIT];
    assert_eq!(problem(&end, &[]), Problem::NotMemory);
    let maps = [map_def("m", MapKind::Array, 4, 1)];
    assert_eq!(problem(&[map(2, 0), load(Size::U8, 0, 2, 0), EXIT], &maps), Problem::NotMemory);
}

#[test]
fn packets_are_read_only_as_far_as_checked() {
    let read = |at| then(check(14), &[load(Size::U16, 0, 6, at), EXIT]);
    assert_eq!(value(&read(12)), 0x0d0c);
    assert_eq!(problem(&read(13), &[]), Problem::PacketUnchecked { from: 13, to: 15, checked: 14 });
    assert_eq!(problem(&read(-1), &[]), Problem::PacketUnchecked { from: -1, to: 1, checked: 14 });
    let unchecked = [load(Size::U32, 2, 1, 0), load(Size::U8, 0, 2, 0), EXIT];
    assert_eq!(problem(&unchecked, &[]), Problem::PacketUnchecked { from: 0, to: 1, checked: 0 });
    let written = then(check(14), &[store(Size::U32, 6, 12, imm(0)), EXIT]);
    assert_eq!(problem(&written, &[]), Problem::PacketUnchecked { from: 12, to: 16, checked: 14 });
}

#[test]
fn a_failed_check_proves_nothing() {
    // if data + 65 > data_end goto +0; r0 = *(u8 *)data
    let code = [
        load(Size::U32, 6, 1, 0),
        load(Size::U32, 7, 1, 4),
        mov(2, r(6)),
        add(2, imm(65)),
        branch(Condition::Gt, 2, r(7), 0),
        load(Size::U8, 0, 6, 0),
        EXIT,
    ];
    assert_eq!(problem(&code, &[]), Problem::PacketUnchecked { from: 0, to: 1, checked: 0 });
}

#[test]
fn only_64_bit_comparisons_of_pointers_prove_something() {
    let load_both = |compare: &[Machine]| {
        let first = vec![load(Size::U32, 6, 1, 0), load(Size::U32, 7, 1, 4), mov(2, r(6)), add(2, imm(8))];
        then(first, &[compare, &[load(Size::U8, 0, 6, 7), EXIT]].concat())
    };
    let narrow =
        Insn::Branch { condition: Condition::Gt, width: Width::W32, left: Reg(2), right: r(7), target: 0 };
    let nothing = Problem::PacketUnchecked { from: 7, to: 8, checked: 0 };
    assert_eq!(problem(&load_both(&[narrow]), &[]), nothing);
    assert_eq!(problem(&load_both(&[branch(Condition::Ne, 2, r(7), 0)]), &[]), nothing);
    let length = [mov(3, r(7)), alu(AluOp::Sub, 3, r(6)), branch(Condition::Lt, 3, imm(8), 0)];
    assert_eq!(problem(&load_both(&length), &[]), nothing);
    for (condition, left, right) in [
        (Condition::Gt, 2, 7),
        (Condition::Ge, 2, 7),
        (Condition::Lt, 7, 2),
        (Condition::Le, 7, 2),
        (Condition::Le, 2, 7),
        (Condition::Ge, 7, 2),
    ] {
        assert_eq!(value(&load_both(&[branch(condition, left, r(right), 0)])), 7, "{condition:?}");
    }
}

#[test]
fn an_open_comparison_proves_one_byte_more() {
    // if data + 7 >= data_end goto +0: now byte 7 is there too.
    let code = |at| {
        [
            load(Size::U32, 6, 1, 0),
            load(Size::U32, 7, 1, 4),
            mov(2, r(6)),
            add(2, imm(7)),
            branch(Condition::Ge, 2, r(7), 0),
            load(Size::U8, 0, 6, at),
            EXIT,
        ]
    };
    assert_eq!(value(&code(7)), 7);
    assert_eq!(problem(&code(8), &[]), Problem::PacketUnchecked { from: 8, to: 9, checked: 8 });
}

#[test]
fn the_stack_has_512_aligned_bytes() {
    let outside = |from, len| Problem::OutOfBounds { region: "stack".into(), from, len };
    assert_eq!(problem(&[store(Size::U8, 10, 0, imm(0)), EXIT], &[]), outside(0, 1));
    assert_eq!(problem(&[store(Size::U8, 10, -513, imm(0)), EXIT], &[]), outside(-513, 1));
    assert_eq!(problem(&[store(Size::U64, 10, -4, imm(0)), EXIT], &[]), outside(-4, 8));
    assert_eq!(problem(&[store(Size::U64, 10, -12, imm(0)), EXIT], &[]), Problem::Misaligned);
    assert_eq!(problem(&[store(Size::U16, 10, -3, imm(0)), EXIT], &[]), Problem::Misaligned);
    assert_eq!(value(&[store(Size::U8, 10, -512, imm(9)), load(Size::U8, 0, 10, -512), EXIT]), 9);
}

#[test]
fn unwritten_stack_is_not_read() {
    assert_eq!(problem(&[load(Size::U8, 0, 10, -1), EXIT], &[]), Problem::UnwrittenStack);
    let half = [store(Size::U32, 10, -8, imm(0)), load(Size::U64, 0, 10, -8), EXIT];
    assert_eq!(problem(&half, &[]), Problem::UnwrittenStack);
    let mut second = vm(
        &[
            load(Size::U32, 0, 1, 12),
            branch(Condition::Eq, 0, imm(2), 1),
            store(Size::U64, 10, -8, imm(0)),
            load(Size::U64, 0, 10, -8),
            EXIT,
        ],
        &[],
    );
    assert_eq!(second.execute(&[], &Env { ifindex: 1, ..Env::default() }), Ok(0));
    let fault = second.execute(&[], &Env { ifindex: 2, ..Env::default() }).unwrap_err();
    assert_eq!(fault.problem, Problem::UnwrittenStack, "what an earlier run wrote");
}

#[test]
fn pointers_on_the_stack_stay_whole() {
    let part = [store(Size::U64, 10, -8, r(1)), load(Size::U32, 0, 10, -8), EXIT];
    assert_eq!(problem(&part, &[]), Problem::PartOfPointer);
    let narrow = [store(Size::U32, 10, -8, r(1)), mov(0, imm(0)), EXIT];
    assert_eq!(problem(&narrow, &[]), Problem::PointerStored);
    let damaged = [
        store(Size::U64, 10, -8, r(1)),
        store(Size::U8, 10, -8, imm(0)),
        load(Size::U64, 2, 10, -8),
        load(Size::U32, 0, 2, 12),
        EXIT,
    ];
    assert_eq!(problem(&damaged, &[]), Problem::NotAPointer);
    let packet = then(check(14), &[store(Size::U64, 6, 0, r(6)), EXIT]);
    assert_eq!(problem(&packet, &[]), Problem::PointerStored);
}

#[test]
fn pointer_arithmetic_is_the_verifiers() {
    for op in [AluOp::And, AluOp::Or, AluOp::Xor, AluOp::Mul, AluOp::Lsh, AluOp::Rsh, AluOp::Div, AluOp::Mod]
    {
        assert_eq!(problem(&[alu(op, 1, imm(1)), EXIT], &[]), Problem::PointerArithmetic, "{op:?}");
    }
    let cases: [&[Machine]; 7] = [
        &[alu32(AluOp::Add, 1, imm(1)), EXIT],
        &[add(1, r(10)), EXIT],
        &[mov(2, imm(1)), alu(AluOp::Sub, 2, r(1)), EXIT],
        &[load(Size::U32, 2, 1, 4), add(2, imm(-1)), EXIT],
        &[Insn::Neg { width: Width::W64, dst: Reg(1) }, EXIT],
        &[Insn::Swap { swap: pktc_bpf::Swap::Be16, dst: Reg(1) }, EXIT],
        &[map(2, 0), add(2, imm(0)), EXIT],
    ];
    let maps = [map_def("m", MapKind::Array, 4, 1)];
    for code in cases {
        assert_eq!(problem(code, &maps), Problem::PointerArithmetic, "{code:?}");
    }
    assert_eq!(problem(&[mov(2, r(10)), alu(AluOp::Sub, 2, r(1)), EXIT], &[]), Problem::UnrelatedPointers);
}

#[test]
fn values_of_maps_have_ends_and_may_be_read_only() {
    let at = |offset| Insn::LoadMapValue { dst: Reg(1), map: MapIndex(0), offset };
    let maps = [rodata(&[0; 6])];
    let outside = |from, len| Problem::OutOfBounds { region: ".rodata".into(), from, len };
    assert_eq!(result(&[at(4), load(Size::U16, 0, 1, 0), EXIT], &maps), Ok(0));
    assert_eq!(problem(&[at(5), load(Size::U16, 0, 1, 0), EXIT], &maps), outside(5, 2));
    assert_eq!(problem(&[at(0), load(Size::U16, 0, 1, -1), EXIT], &maps), outside(-1, 2));
    assert_eq!(problem(&[at(0), store(Size::U8, 1, 0, imm(1)), EXIT], &maps), Problem::ReadOnly);
}

#[test]
fn one_value_of_an_array_does_not_lead_into_the_next() {
    let maps = [map_def("m", MapKind::Array, 4, 4)];
    let code = [
        store(Size::U32, 10, -4, imm(1)),
        map(1, 0),
        mov(2, r(10)),
        add(2, imm(-4)),
        call(Helper::MapLookupElem),
        load(Size::U64, 0, 0, 8),
        EXIT,
    ];
    assert_eq!(problem(&code, &maps), Problem::OutOfBounds { region: "m".into(), from: 8, len: 8 });
}

#[test]
fn a_missing_value_is_no_address() {
    let maps = [map_def("m", MapKind::Hash, 4, 4)];
    let code = [
        store(Size::U32, 10, -4, imm(1)),
        map(1, 0),
        mov(2, r(10)),
        add(2, imm(-4)),
        call(Helper::MapLookupElem),
        load(Size::U64, 0, 0, 0),
        EXIT,
    ];
    assert_eq!(problem(&code, &maps), Problem::NotAPointer);
}

#[test]
fn the_context_is_loaded_by_fields() {
    for (size, offset) in
        [(Size::U64, 0), (Size::U16, 0), (Size::U32, 2), (Size::U32, 20), (Size::U32, 24), (Size::U32, -4)]
    {
        assert_eq!(problem(&[load(size, 0, 1, offset), EXIT], &[]), Problem::Context, "{size:?} {offset}");
    }
    assert_eq!(problem(&[store(Size::U32, 1, 16, imm(0)), EXIT], &[]), Problem::Context);
    assert_eq!(problem(&[add(1, imm(4)), load(Size::U32, 0, 1, 0), EXIT], &[]), Problem::Context);
}

#[test]
fn atomic_operations_are_aligned_and_not_on_packets() {
    let add_to = |base, offset| Insn::AtomicAdd { size: Size::U64, base: Reg(base), offset, src: Reg(2) };
    let code = then(check(16), &[mov(2, imm(1)), add_to(6, 0), EXIT]);
    assert_eq!(problem(&code, &[]), Problem::AtomicOnPacket);
    let maps = [map_def("m", MapKind::Array, 4, 1)];
    let at = Insn::LoadMapValue { dst: Reg(1), map: MapIndex(0), offset: 4 };
    assert_eq!(problem(&[at, mov(2, imm(1)), add_to(1, 0), EXIT], &maps), Problem::Misaligned);
}

#[test]
fn programs_end() {
    assert_eq!(problem(&[Insn::Goto { target: -1 }], &[]), Problem::Budget);
    let mut endless = vm(&[Insn::Goto { target: -1 }], &[]);
    endless.execute(&[], &Env::default()).unwrap_err();
    assert_eq!(endless.instructions(), BUDGET);
    assert_eq!(problem(&[mov(0, imm(1))], &[]), Problem::PastEnd);
    assert_eq!(problem(&[Insn::CallLocal { target: -1 }], &[]), Problem::CallDepth);
    assert_eq!(problem(&[mov(0, r(1)), EXIT], &[]), Problem::PointerReturned);
}

#[test]
fn eight_frames_are_allowed() {
    // r1 counts down: f(n) = n == 0 ? 0 : f(n - 1).
    let code = |depth| {
        [
            mov(1, imm(depth)),
            branch(Condition::Ne, 1, imm(0), 2),
            mov(0, imm(0)),
            EXIT,
            add(1, imm(-1)),
            Insn::CallLocal { target: -5 },
            EXIT,
        ]
    };
    assert_eq!(value(&code(7)), 0);
    assert_eq!(problem(&code(8), &[]), Problem::CallDepth);
}

#[test]
fn unknown_helpers_and_wrong_arguments_are_named() {
    let unknown = Insn::Foreign(Foreign::CallNumber { number: 44 });
    assert_eq!(problem(&[unknown, EXIT], &[]), Problem::UnknownHelper(44));
    let fault = result(&[mov(1, imm(0)), call(Helper::XdpGetBuffLen), EXIT], &[]).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "1: `call bpf_xdp_get_buff_len#188` gives bpf_xdp_get_buff_len as argument 1 something else than the context"
    );
    let no_map = [mov(2, r(10)), call(Helper::MapLookupElem), EXIT];
    assert!(matches!(problem(&no_map, &[]), Problem::Argument { argument: 1, wanted: "a map", .. }));
    let maps = [map_def("m", MapKind::Array, 4, 1)];
    let key = [map(1, 0), mov(2, r(10)), add(2, imm(-4)), call(Helper::MapLookupElem), EXIT];
    assert_eq!(problem(&key, &maps), Problem::UnwrittenStack);
    let empty =
        [mov(2, imm(0)), mov(3, r(10)), add(3, imm(-8)), mov(4, imm(0)), call(Helper::XdpLoadBytes), EXIT];
    assert!(matches!(problem(&empty, &[]), Problem::Argument { argument: 4, .. }));
}

#[test]
fn jumps_into_nothing_do_not_load() {
    let wide = Insn::LoadImm64 { dst: Reg(0), imm: 0 };
    let error = |insns: &[Machine]| Vm::from_insns(insns, &[]).err();
    assert_eq!(
        error(&[Insn::Goto { target: 1 }, wide, EXIT]),
        Some(VmError::Target { slot: 0 }),
        "into a constant"
    );
    assert_eq!(error(&[EXIT, Insn::Goto { target: 0 }]), Some(VmError::Target { slot: 1 }), "behind the end");
    assert_eq!(
        error(&[Insn::CallLocal { target: -2 }, EXIT]),
        Some(VmError::Target { slot: 0 }),
        "before the start"
    );
    assert_eq!(error(&[wide, map(1, 0), EXIT]), Some(VmError::NoMap { slot: 2 }));
    assert!(matches!(Vm::load(b"\x7fELF", "p"), Err(VmError::Object(_))));
}

#[test]
fn faults_name_the_place_and_reach_the_engine() {
    let wide = Insn::LoadImm64 { dst: Reg(2), imm: 5 };
    let mut vm = vm(&[wide, load(Size::U8, 0, 2, 3), EXIT], &[]);
    let error = vm.run(&[], &Env::default()).unwrap_err();
    assert_eq!(error, EngineError::Fault("2: `r0 = *(u8 *)(r2 +3)` uses a number as an address".into()));
}

#[test]
fn what_is_no_verdict_is_a_fault() {
    let error = vm(&[mov(0, imm(5)), EXIT], &[]).run(&[], &Env::default()).unwrap_err();
    assert_eq!(error, EngineError::Fault("the program returned 5, which is no verdict".into()));
}
