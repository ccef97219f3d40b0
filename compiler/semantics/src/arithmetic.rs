//! Numbers: what operators yield, and between which bounds a value lies.

use crate::path::NUMBER_BYTES;
use crate::typed::{BinaryOp, Expr, ExprKind, Program, Type, Value};
use crate::types::{max_of, number_bits};

/// What a computation on constants yields; `None` where it leaves the range of numbers, which is always a
/// mistake in a constant.
pub(crate) fn apply(op: BinaryOp, a: u64, b: u64) -> Option<u64> {
    match op {
        BinaryOp::Or => Some(a | b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::And => Some(a & b),
        BinaryOp::ShiftLeft => shift_left(a, b),
        BinaryOp::ShiftRight => Some(u32::try_from(b).ok().and_then(|b| a.checked_shr(b)).unwrap_or(0)),
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Subtract => a.checked_sub(b),
        BinaryOp::Multiply => a.checked_mul(b),
    }
}

fn shift_left(a: u64, b: u64) -> Option<u64> {
    if a == 0 {
        return Some(0);
    }
    let shift = u32::try_from(b).ok().filter(|&shift| shift <= a.leading_zeros())?;
    Some(a << shift)
}

/// The largest value that a number can have; what it is computed from decides.
pub(crate) fn upper_bound(program: &Program, expr: &Expr) -> u64 {
    let by_type = number_bits(program, &expr.ty).map_or(u64::MAX, max_of);
    match &expr.kind {
        ExprKind::Const(Value::Uint(value)) => *value,
        ExprKind::Binary { op, left, right } => {
            let (left, right) = (upper_bound(program, left), upper_bound_of_right(program, *op, right));
            binary_bound(*op, left, right)
        }
        ExprKind::Default { value, otherwise } => {
            upper_bound(program, value).max(upper_bound(program, otherwise))
        }
        _ => by_type,
    }
}

/// Of a right operand; a shift is only bounded by a constant.
fn upper_bound_of_right(program: &Program, op: BinaryOp, right: &Expr) -> u64 {
    match (op, &right.kind) {
        (BinaryOp::ShiftRight, ExprKind::Const(Value::Uint(value))) => *value,
        (BinaryOp::ShiftRight, _) => 0,
        _ => upper_bound(program, right),
    }
}

fn binary_bound(op: BinaryOp, left: u64, right: u64) -> u64 {
    match op {
        BinaryOp::And => left.min(right),
        BinaryOp::Or | BinaryOp::Xor => {
            let bits = 64 - (left | right).leading_zeros();
            if bits == 0 { 0 } else { max_of(bits as u8) }
        }
        BinaryOp::Add => left.saturating_add(right),
        BinaryOp::Multiply => left.saturating_mul(right),
        BinaryOp::Subtract => left,
        BinaryOp::ShiftLeft => shift_left(left, right).unwrap_or(u64::MAX),
        BinaryOp::ShiftRight => apply(BinaryOp::ShiftRight, left, right).unwrap_or(0),
    }
}

/// The bits that a number can have set, where a mask with a constant limits them.
pub(crate) fn possible_bits(program: &Program, expr: &Expr) -> u64 {
    match &expr.kind {
        ExprKind::Const(Value::Uint(value)) => *value,
        ExprKind::Binary { op: BinaryOp::And, left, right } => {
            possible_bits(program, left) & possible_bits(program, right)
        }
        _ => {
            let bound = upper_bound(program, expr);
            if bound == 0 { 0 } else { max_of((64 - bound.leading_zeros()) as u8) }
        }
    }
}

/// The smallest common width (8, 16, 32 or 64 bits) that holds `value`.
pub(crate) fn width_of(value: u64) -> u8 {
    match 64 - value.leading_zeros() {
        0..=8 => 8,
        9..=16 => 16,
        17..=32 => 32,
        _ => 64,
    }
}

/// Whether the value is read, not computed: then its width is known to the reader.
pub(crate) fn is_plain(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Field { .. }
            | ExprKind::UnionField { .. }
            | ExprKind::Own(_)
            | ExprKind::PayloadSlice { .. }
            | ExprKind::Option { .. }
            | ExprKind::Bytes { .. }
            | ExprKind::OwnPayload { .. }
    ) && expr.ty != Type::Bool
}

const _: () = assert!(NUMBER_BYTES * 8 == u64::BITS);

#[cfg(test)]
mod tests {
    use super::{apply, binary_bound, width_of};
    use crate::typed::BinaryOp;

    #[test]
    fn constants_are_computed_without_wrapping() {
        for (op, a, b, expected) in [
            (BinaryOp::Add, 2, 3, Some(5)),
            (BinaryOp::Add, u64::MAX, 1, None),
            (BinaryOp::Subtract, 2, 3, None),
            (BinaryOp::Multiply, 1 << 63, 2, None),
            (BinaryOp::ShiftLeft, 1, 63, Some(1 << 63)),
            (BinaryOp::ShiftLeft, 1, 64, None),
            (BinaryOp::ShiftLeft, 0, 64, Some(0)),
            (BinaryOp::ShiftRight, u64::MAX, 64, Some(0)),
        ] {
            assert_eq!(apply(op, a, b), expected, "{a} {op:?} {b}");
        }
    }

    #[test]
    fn bounds_hold_for_all_smaller_operands() {
        let ops = [
            BinaryOp::Or,
            BinaryOp::Xor,
            BinaryOp::And,
            BinaryOp::Add,
            BinaryOp::Subtract,
            BinaryOp::Multiply,
            BinaryOp::ShiftLeft,
        ];
        for op in ops {
            for (left, right) in (0..12).flat_map(|left| (0..12).map(move |right| (left, right))) {
                let bound = binary_bound(op, left, right);
                let values = (0..=left).flat_map(|a| (0..=right).filter_map(move |b| apply(op, a, b)));
                assert!(values.max() <= Some(bound), "{op:?} {left} {right}");
            }
        }
    }

    #[test]
    fn widths_are_powers_of_two() {
        assert_eq!([0, 255, 256, 65_535, 65_536, 1 << 32].map(width_of), [8, 8, 16, 16, 32, 64]);
    }
}
