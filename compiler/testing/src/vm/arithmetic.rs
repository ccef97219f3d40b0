//! Arithmetic and comparisons on numbers, as RFC 9669 defines them: division by 0 gives 0, remainder by 0 leaves the
//! dividend, shift counts are taken modulo the width.

use pktc_bpf::{AluOp, Condition, SignedOp, Size, Swap, Width};

/// `left op right`; in 32 bits the upper half of the result is 0.
pub(super) fn alu(op: AluOp, width: Width, left: u64, right: u64) -> u64 {
    match width {
        Width::W64 => alu64(op, left, right),
        Width::W32 => alu32(op, left as u32, right as u32).into(),
    }
}

fn alu64(op: AluOp, left: u64, right: u64) -> u64 {
    match op {
        AluOp::Add => left.wrapping_add(right),
        AluOp::Sub => left.wrapping_sub(right),
        AluOp::Mul => left.wrapping_mul(right),
        AluOp::Div => left.checked_div(right).unwrap_or(0),
        AluOp::Mod => left.checked_rem(right).unwrap_or(left),
        AluOp::Or => left | right,
        AluOp::And => left & right,
        AluOp::Xor => left ^ right,
        AluOp::Mov => right,
        AluOp::Lsh => left.wrapping_shl(right as u32),
        AluOp::Rsh => left.wrapping_shr(right as u32),
        AluOp::Arsh => (left as i64).wrapping_shr(right as u32) as u64,
    }
}

fn alu32(op: AluOp, left: u32, right: u32) -> u32 {
    match op {
        AluOp::Lsh => left.wrapping_shl(right),
        AluOp::Arsh => (left as i32).wrapping_shr(right) as u32,
        AluOp::Rsh => left.wrapping_shr(right),
        AluOp::Add
        | AluOp::Sub
        | AluOp::Mul
        | AluOp::Div
        | AluOp::Or
        | AluOp::And
        | AluOp::Mod
        | AluOp::Xor
        | AluOp::Mov => alu64(op, left.into(), right.into()) as u32,
    }
}

/// Signed division; the one quotient that does not fit wraps.
pub(super) fn signed_alu(op: SignedOp, width: Width, left: u64, right: u64) -> u64 {
    let (left, right) = match width {
        Width::W64 => (left as i64, right as i64),
        Width::W32 => (i64::from(left as i32), i64::from(right as i32)),
    };
    let result = match (op, right) {
        (SignedOp::Div, 0) => 0,
        (SignedOp::Mod, 0) => left,
        (SignedOp::Div, _) => left.wrapping_div(right),
        (SignedOp::Mod, _) => left.wrapping_rem(right),
    };
    truncate(width, result as u64)
}

/// `-value`
pub(super) fn negate(width: Width, value: u64) -> u64 {
    truncate(width, value.wrapping_neg())
}

/// Changes the byte order, on a little-endian machine.
pub(super) fn swap(swap: Swap, value: u64) -> u64 {
    match swap {
        Swap::Be16 => reverse(Size::U16, value),
        Swap::Be32 => reverse(Size::U32, value),
        Swap::Be64 => reverse(Size::U64, value),
        Swap::Le16 => value & 0xffff,
        Swap::Le32 => value & 0xffff_ffff,
        Swap::Le64 => value,
    }
}

/// The low `size` bytes in the other order; the rest is 0.
pub(super) fn reverse(size: Size, value: u64) -> u64 {
    value.swap_bytes() >> (64 - 8 * size.bytes())
}

/// The low `size` bytes with their sign.
pub(super) fn extend_sign(size: Size, width: Width, value: u64) -> u64 {
    let unused = 64 - 8 * size.bytes();
    truncate(width, ((value << unused) as i64 >> unused) as u64)
}

/// Clears what lies above the width.
pub(super) fn truncate(width: Width, value: u64) -> u64 {
    match width {
        Width::W64 => value,
        Width::W32 => value & 0xffff_ffff,
    }
}

/// Whether `left condition right`.
pub(super) fn holds(condition: Condition, width: Width, left: u64, right: u64) -> bool {
    let (left, right) = (truncate(width, left), truncate(width, right));
    let signed = match width {
        Width::W64 => (left as i64, right as i64),
        Width::W32 => (i64::from(left as i32), i64::from(right as i32)),
    };
    match condition {
        Condition::Eq => left == right,
        Condition::Ne => left != right,
        Condition::Gt => left > right,
        Condition::Ge => left >= right,
        Condition::Lt => left < right,
        Condition::Le => left <= right,
        Condition::Set => left & right != 0,
        Condition::Sgt => signed.0 > signed.1,
        Condition::Sge => signed.0 >= signed.1,
        Condition::Slt => signed.0 < signed.1,
        Condition::Sle => signed.0 <= signed.1,
    }
}
