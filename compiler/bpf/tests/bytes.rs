//! Encoding and decoding: every variant with every operation there and back, bytes written by hand from RFC 9669,
//! and what neither direction may take.

use pktc_bpf::{
    AluOp, AtomicOp, Condition, Foreign, Helper, Insn, MapIndex, Operand, Reg, Relocation, SignedOp, Size,
    SubprogramIndex, Swap, Target, Width, decode, encode, slots,
};

type Machine = Insn<Reg, i32>;

const ALU_OPS: [AluOp; 12] = [
    AluOp::Add,
    AluOp::Sub,
    AluOp::Mul,
    AluOp::Div,
    AluOp::Or,
    AluOp::And,
    AluOp::Lsh,
    AluOp::Rsh,
    AluOp::Mod,
    AluOp::Xor,
    AluOp::Mov,
    AluOp::Arsh,
];
const CONDITIONS: [Condition; 11] = [
    Condition::Eq,
    Condition::Ne,
    Condition::Gt,
    Condition::Ge,
    Condition::Lt,
    Condition::Le,
    Condition::Set,
    Condition::Sgt,
    Condition::Sge,
    Condition::Slt,
    Condition::Sle,
];
const SWAPS: [Swap; 6] = [Swap::Be16, Swap::Be32, Swap::Be64, Swap::Le16, Swap::Le32, Swap::Le64];
const SIZES: [Size; 4] = [Size::U8, Size::U16, Size::U32, Size::U64];
const ATOMICS: [AtomicOp; 9] = [
    AtomicOp::Or,
    AtomicOp::And,
    AtomicOp::Xor,
    AtomicOp::FetchAdd,
    AtomicOp::FetchOr,
    AtomicOp::FetchAnd,
    AtomicOp::FetchXor,
    AtomicOp::Exchange,
    AtomicOp::CompareExchange,
];
const WIDTHS: [Width; 2] = [Width::W32, Width::W64];
const OPERANDS: [Operand<Reg>; 4] =
    [Operand::Reg(Reg(0)), Operand::Reg(Reg(10)), Operand::Imm(-1), Operand::Imm(i32::MIN)];

fn arithmetic() -> Vec<Machine> {
    let mut insns = Vec::new();
    for width in WIDTHS {
        insns.push(Insn::Neg { width, dst: Reg(3) });
        for src in OPERANDS {
            insns.extend(ALU_OPS.map(|op| Insn::Alu { op, width, dst: Reg(9), src }));
            for op in [SignedOp::Div, SignedOp::Mod] {
                insns.push(Insn::Foreign(Foreign::SignedAlu { op, width, dst: Reg(2), src }));
            }
        }
        for from in [Size::U8, Size::U16] {
            insns.push(Insn::Foreign(Foreign::MovSigned { from, width, dst: Reg(1), src: Reg(7) }));
        }
    }
    insns.push(Insn::Foreign(Foreign::MovSigned {
        from: Size::U32,
        width: Width::W64,
        dst: Reg(1),
        src: Reg(7),
    }));
    insns.extend(SWAPS.map(|swap| Insn::Swap { swap, dst: Reg(4) }));
    for size in [Size::U16, Size::U32, Size::U64] {
        insns.push(Insn::Foreign(Foreign::ByteSwap { size, dst: Reg(4) }));
    }
    insns
}

fn memory() -> Vec<Machine> {
    let mut insns = vec![
        Insn::LoadImm64 { dst: Reg(3), imm: 0x8123_4567_89ab_cdef },
        Insn::LoadImm64 { dst: Reg(3), imm: 0xffff_ffff },
    ];
    for offset in [0, -8, i16::MIN, i16::MAX] {
        for size in SIZES {
            insns.push(Insn::Load { size, dst: Reg(5), base: Reg(10), offset });
            insns.extend(OPERANDS.map(|src| Insn::Store { size, base: Reg(6), offset, src }));
        }
        for size in [Size::U8, Size::U16, Size::U32] {
            insns.push(Insn::Foreign(Foreign::LoadSigned { size, dst: Reg(5), base: Reg(1), offset }));
        }
        for size in [Size::U32, Size::U64] {
            insns.push(Insn::AtomicAdd { size, base: Reg(8), offset, src: Reg(2) });
            for op in ATOMICS {
                insns.push(Insn::Foreign(Foreign::Atomic { op, size, base: Reg(8), offset, src: Reg(2) }));
            }
        }
    }
    insns
}

fn jumps() -> Vec<Machine> {
    let mut insns = vec![Insn::Exit];
    for target in [0, 5, -1, 32767, -32768] {
        insns.push(Insn::Goto { target });
        for width in WIDTHS {
            for condition in CONDITIONS {
                insns.extend(OPERANDS.map(|right| Insn::Branch {
                    condition,
                    width,
                    left: Reg(1),
                    right,
                    target,
                }));
            }
        }
    }
    for target in [-1, 70_000, i32::MIN] {
        insns.push(Insn::CallLocal { target });
        insns.push(Insn::Foreign(Foreign::GotoLong { target }));
    }
    insns.extend(Helper::ALL.map(|helper| Insn::Call { helper }));
    insns.push(Insn::Foreign(Foreign::CallNumber { number: 12 }));
    insns
}

#[test]
fn every_instruction_survives_the_round_trip() {
    let insns: Vec<Machine> = [arithmetic(), memory(), jumps()].concat();
    let code = encode(&insns).unwrap();
    assert_eq!(code.bytes.len(), 8 * insns.iter().map(slots).sum::<usize>());
    assert_eq!(code.relocations, []);
    assert_eq!(decode(&code.bytes).unwrap(), insns);
    for insn in insns {
        let code = encode(&[insn]).unwrap();
        assert_eq!(decode(&code.bytes).unwrap(), [insn], "alone");
    }
}

#[test]
fn whatever_decodes_encodes_to_the_same_bytes() {
    let mut decoded = 0;
    for code in 0..=255u8 {
        for regs in [0x00, 0x01, 0x10, 0xa9] {
            for offset in [0i16, 1, 8, -3] {
                for imm in [0i32, 1, 16, 0x41, 0xf1, -1] {
                    let mut bytes = vec![code, regs];
                    bytes.extend(offset.to_le_bytes());
                    bytes.extend(imm.to_le_bytes());
                    if let Ok(insns) = decode(&bytes) {
                        assert_eq!(encode(&insns).unwrap().bytes, bytes, "{insns:?}");
                        decoded += 1;
                    }
                }
            }
        }
    }
    assert!(decoded > 1500, "only {decoded} of the combinations decode");
}

#[test]
fn bytes_are_those_of_the_specification() {
    let alu = |op, width, dst, src| Insn::Alu { op, width, dst: Reg(dst), src };
    let cases: [(Machine, [u8; 8]); 13] = [
        (alu(AluOp::Mov, Width::W64, 6, Operand::Reg(Reg(1))), [0xbf, 0x16, 0, 0, 0, 0, 0, 0]),
        (alu(AluOp::Add, Width::W64, 2, Operand::Imm(14)), [0x07, 0x02, 0, 0, 14, 0, 0, 0]),
        (alu(AluOp::Xor, Width::W32, 3, Operand::Imm(17)), [0xa4, 0x03, 0, 0, 17, 0, 0, 0]),
        (alu(AluOp::Arsh, Width::W64, 5, Operand::Reg(Reg(4))), [0xcf, 0x45, 0, 0, 0, 0, 0, 0]),
        (Insn::Swap { swap: Swap::Be16, dst: Reg(2) }, [0xdc, 0x02, 0, 0, 16, 0, 0, 0]),
        (
            Insn::Load { size: Size::U16, dst: Reg(2), base: Reg(6), offset: 12 },
            [0x69, 0x62, 12, 0, 0, 0, 0, 0],
        ),
        (
            Insn::Store { size: Size::U64, base: Reg(10), offset: -8, src: Operand::Reg(Reg(1)) },
            [0x7b, 0x1a, 0xf8, 0xff, 0, 0, 0, 0],
        ),
        (
            Insn::Store { size: Size::U8, base: Reg(10), offset: -1, src: Operand::Imm(-2) },
            [0x72, 0x0a, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff],
        ),
        (
            Insn::AtomicAdd { size: Size::U64, base: Reg(0), offset: 8, src: Reg(1) },
            [0xdb, 0x10, 8, 0, 0, 0, 0, 0],
        ),
        (
            Insn::Branch {
                condition: Condition::Gt,
                width: Width::W64,
                left: Reg(2),
                right: Operand::Reg(Reg(7)),
                target: 5,
            },
            [0x2d, 0x72, 5, 0, 0, 0, 0, 0],
        ),
        (
            Insn::Branch {
                condition: Condition::Slt,
                width: Width::W32,
                left: Reg(8),
                right: Operand::Imm(-1),
                target: -2,
            },
            [0xc6, 0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff],
        ),
        (Insn::Call { helper: Helper::XdpLoadBytes }, [0x85, 0, 0, 0, 189, 0, 0, 0]),
        (Insn::Exit, [0x95, 0, 0, 0, 0, 0, 0, 0]),
    ];
    for (insn, bytes) in cases {
        assert_eq!(encode(&[insn]).unwrap().bytes, bytes, "{insn:?}");
    }
}

#[test]
fn maps_become_relocations() {
    let code = encode(&[
        Insn::Exit,
        Insn::LoadMap { dst: Reg(1), map: MapIndex(3) },
        Insn::LoadMapValue { dst: Reg(2), map: MapIndex(4), offset: 40 },
    ])
    .unwrap();
    assert_eq!(
        code.relocations,
        [
            Relocation { offset: 8, target: Target::Map(MapIndex(3)) },
            Relocation { offset: 24, target: Target::MapValue(MapIndex(4)) },
        ]
    );
    let expected = [
        [0x95, 0, 0, 0, 0, 0, 0, 0],
        [0x18, 0x01, 0, 0, 0, 0, 0, 0],
        [0; 8],
        [0x18, 0x02, 0, 0, 40, 0, 0, 0],
        [0; 8],
    ];
    assert_eq!(code.bytes, expected.concat());
}

#[test]
fn calls_of_subprograms_become_relocations() {
    let call = Insn::CallSubprogram { subprogram: SubprogramIndex(2), arguments: 3 };
    let code = encode(&[Insn::Exit, call]).unwrap();
    assert_eq!(code.relocations, [Relocation { offset: 8, target: Target::Subprogram(SubprogramIndex(2)) }]);
    assert_eq!(code.bytes[8..], [0x85, 0x10, 0, 0, 0xff, 0xff, 0xff, 0xff]);
}

#[test]
fn relocated_maps_decode() {
    let bytes =
        [[0x18, 0x11, 0, 0, 3, 0, 0, 0], [0; 8], [0x18, 0x22, 0, 0, 4, 0, 0, 0], [0, 0, 0, 0, 40, 0, 0, 0]];
    assert_eq!(
        decode(&bytes.concat()).unwrap(),
        [
            Insn::LoadMap { dst: Reg(1), map: MapIndex(3) },
            Insn::LoadMapValue { dst: Reg(2), map: MapIndex(4), offset: 40 },
        ]
    );
}

#[test]
fn what_has_no_encoding_is_refused() {
    let refused: [(Machine, &str); 6] = [
        (Insn::Goto { target: 32768 }, "longer"),
        (Insn::Neg { width: Width::W64, dst: Reg(11) }, "r10"),
        (Insn::AtomicAdd { size: Size::U16, base: Reg(1), offset: 0, src: Reg(2) }, "atomic"),
        (
            Insn::Foreign(Foreign::LoadSigned { size: Size::U64, dst: Reg(1), base: Reg(2), offset: 0 }),
            "sign",
        ),
        (Insn::Foreign(Foreign::ByteSwap { size: Size::U8, dst: Reg(1) }), "order"),
        (
            Insn::Foreign(Foreign::MovSigned {
                from: Size::U32,
                width: Width::W32,
                dst: Reg(1),
                src: Reg(2),
            }),
            "signed move",
        ),
    ];
    for (insn, reason) in refused {
        let error = encode(&[Insn::Exit, insn]).unwrap_err();
        assert_eq!(error.index, 1);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn what_is_no_instruction_is_refused_with_its_place() {
    let refused: [(&[u8], &str); 8] = [
        (&[0x95, 0, 0, 0, 0, 0, 0], "cut off"),
        (&[0x18, 0, 0, 0, 0, 0, 0, 0], "second slot"),
        (&[0xbf, 0x0b, 0, 0, 0, 0, 0, 0], "r10"),
        (&[0xbf, 0x21, 0, 0, 1, 0, 0, 0], "not 0"),
        (&[0x8d, 0, 0, 0, 0, 0, 0, 0], "through a register"),
        (&[0x85, 0x20, 0, 0, 0, 0, 0, 0], "kernel functions"),
        (&[0xdb, 0x21, 0, 0, 0x33, 0, 0, 0], "atomic"),
        (&[0xd4, 0, 0, 0, 24, 0, 0, 0], "16, 32 or 64"),
    ];
    for (bytes, reason) in refused {
        let bytes = [&[0x95, 0, 0, 0, 0, 0, 0, 0], bytes].concat();
        let error = decode(&bytes).unwrap_err();
        assert_eq!(error.slot, 1);
        assert!(error.to_string().contains(reason), "{error}");
    }
}
