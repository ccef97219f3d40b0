//! The numbers of the instruction set, once for both directions (`include/uapi/linux/bpf.h`, RFC 9669).
//!
//! An opcode byte is a class (3 bits) with, for arithmetic and jumps, a source bit and an operation (4 bits), for
//! loads and stores a size (2 bits) and a mode (3 bits).

use crate::{AluOp, AtomicOp, Condition, Size};

/// Classes.
pub(crate) const LD: u8 = 0;
pub(crate) const LDX: u8 = 1;
pub(crate) const ST: u8 = 2;
pub(crate) const STX: u8 = 3;
pub(crate) const ALU32: u8 = 4;
pub(crate) const JMP: u8 = 5;
pub(crate) const JMP32: u8 = 6;
pub(crate) const ALU64: u8 = 7;

/// The second operand is a register, not the immediate.
pub(crate) const SOURCE_REG: u8 = 0x08;

/// Modes of loads and stores.
pub(crate) const MODE_IMM: u8 = 0x00;
pub(crate) const MODE_MEM: u8 = 0x60;
pub(crate) const MODE_MEM_SIGNED: u8 = 0x80;
pub(crate) const MODE_ATOMIC: u8 = 0xc0;

/// Arithmetic that is no [`AluOp`].
pub(crate) const NEG: u8 = 0x80;
pub(crate) const END: u8 = 0xd0;

/// Jumps that are no [`Condition`].
pub(crate) const JA: u8 = 0x00;
pub(crate) const CALL: u8 = 0x80;
pub(crate) const EXIT: u8 = 0x90;

/// `src` of a call: a subprogram of the same program.
pub(crate) const PSEUDO_CALL: u8 = 1;

/// `src` of a 64-bit constant: a map by its file descriptor, an address inside a map's first value.
pub(crate) const PSEUDO_MAP_FD: u8 = 1;
pub(crate) const PSEUDO_MAP_VALUE: u8 = 2;

const ALU_OPS: [(AluOp, u8); 12] = [
    (AluOp::Add, 0x00),
    (AluOp::Sub, 0x10),
    (AluOp::Mul, 0x20),
    (AluOp::Div, 0x30),
    (AluOp::Or, 0x40),
    (AluOp::And, 0x50),
    (AluOp::Lsh, 0x60),
    (AluOp::Rsh, 0x70),
    (AluOp::Mod, 0x90),
    (AluOp::Xor, 0xa0),
    (AluOp::Mov, 0xb0),
    (AluOp::Arsh, 0xc0),
];

const CONDITIONS: [(Condition, u8); 11] = [
    (Condition::Eq, 0x10),
    (Condition::Gt, 0x20),
    (Condition::Ge, 0x30),
    (Condition::Set, 0x40),
    (Condition::Ne, 0x50),
    (Condition::Sgt, 0x60),
    (Condition::Sge, 0x70),
    (Condition::Lt, 0xa0),
    (Condition::Le, 0xb0),
    (Condition::Slt, 0xc0),
    (Condition::Sle, 0xd0),
];

const SIZES: [(Size, u8); 4] = [(Size::U32, 0x00), (Size::U16, 0x08), (Size::U8, 0x10), (Size::U64, 0x18)];

/// The immediate of an atomic operation; 0 is the plain addition.
const ATOMICS: [(AtomicOp, i32); 9] = [
    (AtomicOp::FetchAdd, 0x01),
    (AtomicOp::Or, 0x40),
    (AtomicOp::FetchOr, 0x41),
    (AtomicOp::And, 0x50),
    (AtomicOp::FetchAnd, 0x51),
    (AtomicOp::Xor, 0xa0),
    (AtomicOp::FetchXor, 0xa1),
    (AtomicOp::Exchange, 0xe1),
    (AtomicOp::CompareExchange, 0xf1),
];

fn find<K: Copy + PartialEq, V: Copy>(table: &[(K, V)], key: K) -> Option<V> {
    table.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
}

fn find_back<K: Copy, V: Copy + PartialEq>(table: &[(K, V)], value: V) -> Option<K> {
    table.iter().find(|(_, v)| *v == value).map(|(k, _)| *k)
}

/// Each table has a row for each variant; a test walks them all.
const ALL_ROWS: &str = "the table has a row for each variant";

pub(crate) fn alu_code(op: AluOp) -> u8 {
    find(&ALU_OPS, op).expect(ALL_ROWS)
}

pub(crate) fn alu_op(code: u8) -> Option<AluOp> {
    find_back(&ALU_OPS, code)
}

pub(crate) fn condition_code(condition: Condition) -> u8 {
    find(&CONDITIONS, condition).expect(ALL_ROWS)
}

pub(crate) fn condition(code: u8) -> Option<Condition> {
    find_back(&CONDITIONS, code)
}

pub(crate) fn size_code(size: Size) -> u8 {
    find(&SIZES, size).expect(ALL_ROWS)
}

pub(crate) fn size(code: u8) -> Option<Size> {
    find_back(&SIZES, code)
}

pub(crate) fn atomic_code(op: AtomicOp) -> i32 {
    find(&ATOMICS, op).expect(ALL_ROWS)
}

pub(crate) fn atomic_op(code: i32) -> Option<AtomicOp> {
    find_back(&ATOMICS, code)
}
