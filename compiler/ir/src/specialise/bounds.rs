//! What declarations say of a header before any packet comes: how long it is, what its numbers can be.

use pktc_semantics::typed::{
    BinaryOp, CompareOp, Expr, ExprKind, Field, FieldIndex, Header, Next, NextKind, Value as Constant,
};
use pktc_semantics::walk;

use super::number::fold;
use crate::layout::{certain_bytes, conditional_groups, low_bits, static_bit};

/// A header that says it is longer is malformed: no packet is, and the verifier takes no larger distance.
pub(super) const LONGEST_HEADER: u64 = 0xffff;

/// No instance of `header` that is present is shorter; see [`certain_bytes`] for `needs`.
pub(super) fn shortest(header: &Header, needs: Option<u32>) -> u32 {
    let certain = certain_bytes(header, needs);
    if needs.is_some() {
        return certain;
    }
    certain.max(least(header, header.length.as_ref()) as u32)
}

/// No instance of `header` is longer.
pub(super) fn longest(header: &Header) -> u64 {
    if header.length.is_some() {
        return most(header, header.length.as_ref()).min(LONGEST_HEADER);
    }
    let conditional: u32 = conditional_groups(header).iter().map(|(_, bits)| bits / 8).sum();
    u64::from(header.fixed_bytes + conditional)
}

/// The bits that the length of an instance of `header` can have; see `needs` for what may be cut.
pub(super) fn length_mask(header: &Header, may_be_cut: bool) -> u64 {
    let (most, zeros) = match &header.length {
        // Cut before that field, it is as long as what there is.
        Some(length) if may_be_cut => (longest(header).max(u64::from(own_end(header, length))), 0),
        Some(length) => (longest(header), zeros(length)),
        None => (longest(header), 0),
    };
    low_bits(64 - most.leading_zeros()) & !low_bits(zeros)
}

/// How many bytes of `header` the fields reach that `expr` reads.
pub(super) fn own_end(header: &Header, expr: &Expr) -> u32 {
    match &expr.kind {
        ExprKind::Own(field) => field_end(&header.fields[*field]),
        ExprKind::Not(inner) | ExprKind::In { value: inner, .. } => own_end(header, inner),
        ExprKind::And(parts) | ExprKind::Or(parts) => {
            parts.iter().map(|part| own_end(header, part)).max().unwrap_or(0)
        }
        ExprKind::Compare { left, right, .. } | ExprKind::Binary { left, right, .. } => {
            own_end(header, left).max(own_end(header, right))
        }
        _ => 0,
    }
}

/// One behind the last byte of a field, if it has one place.
pub(super) fn field_end(field: &Field) -> u32 {
    static_bit(field).map_or(0, |bit| (bit + field.bits).div_ceil(8))
}

/// A header's length where its declaration fixes it.
pub(super) fn static_length(header: &Header) -> Option<u64> {
    match &header.length {
        Some(length) => match length.kind {
            ExprKind::Const(Constant::Uint(length)) => Some(length),
            _ => None,
        },
        None if conditional_groups(header).is_empty() => Some(u64::from(header.fixed_bytes)),
        None => None,
    }
}

/// Whether bytes behind the header say what follows it.
pub(super) fn selects_by_payload(next: &Next) -> bool {
    let value = match &next.kind {
        NextKind::By { value, .. } => Some(value),
        NextKind::Always(_) => None,
    };
    let mut found = false;
    for expr in value.into_iter().chain(&next.when) {
        walk(expr, &mut |part| found |= matches!(part.kind, ExprKind::OwnPayload { .. }));
    }
    found
}

/// The least value that `expr` can have where the header's `valid` clauses hold.
pub(super) fn least(header: &Header, expr: Option<&Expr>) -> u64 {
    let Some(expr) = expr else { return 0 };
    match &expr.kind {
        ExprKind::Const(Constant::Uint(value)) => *value,
        ExprKind::Own(field) => header.valid.iter().map(|valid| bound(valid, *field)).max().unwrap_or(0),
        ExprKind::Binary { op, left, right } => {
            let (left, right) = (least(header, Some(left)), least(header, Some(right)));
            match op {
                // What may come round at 64 bits may be anything.
                BinaryOp::Add | BinaryOp::Multiply if most(header, Some(expr)) == u64::MAX => 0,
                BinaryOp::Add | BinaryOp::Multiply => fold(*op, left, right),
                BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::And
                | BinaryOp::Subtract
                | BinaryOp::ShiftLeft
                | BinaryOp::ShiftRight => 0,
            }
        }
        _ => 0,
    }
}

/// The largest value that `expr` can have; without one, 0.
pub(super) fn most(header: &Header, expr: Option<&Expr>) -> u64 {
    let Some(expr) = expr else { return 0 };
    match &expr.kind {
        ExprKind::Const(Constant::Uint(value)) => *value,
        ExprKind::Own(field) => low_bits(header.fields[*field].bits),
        ExprKind::Binary { op, left, right } => {
            let (left, right) = (most(header, Some(left)), most(header, Some(right)));
            match op {
                BinaryOp::Add => left.saturating_add(right),
                BinaryOp::Multiply => left.saturating_mul(right),
                BinaryOp::And => left.min(right),
                BinaryOp::Subtract | BinaryOp::ShiftRight => left,
                BinaryOp::Or | BinaryOp::Xor | BinaryOp::ShiftLeft => u64::MAX,
            }
        }
        _ => u64::MAX,
    }
}

/// So many of the lowest bits of `expr` are 0.
pub(super) fn zeros(expr: &Expr) -> u32 {
    match &expr.kind {
        ExprKind::Const(Constant::Uint(value)) => value.trailing_zeros(),
        ExprKind::Binary { op: BinaryOp::Multiply, left, right } => {
            zeros(left).saturating_add(zeros(right)).min(64)
        }
        ExprKind::Binary { op: BinaryOp::Add, left, right } => zeros(left).min(zeros(right)),
        _ => 0,
    }
}

/// The least value of `field` that `valid` allows.
fn bound(valid: &Expr, field: FieldIndex) -> u64 {
    match &valid.kind {
        ExprKind::And(parts) => parts.iter().map(|part| bound(part, field)).max().unwrap_or(0),
        ExprKind::Compare { op, left, right } => match (&left.kind, &right.kind) {
            (ExprKind::Own(own), ExprKind::Const(Constant::Uint(value))) if *own == field => match op {
                CompareOp::Equal | CompareOp::GreaterEqual => *value,
                CompareOp::Greater => value.saturating_add(1),
                CompareOp::NotEqual | CompareOp::Less | CompareOp::LessEqual => 0,
            },
            _ => 0,
        },
        _ => 0,
    }
}
