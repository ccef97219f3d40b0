//! The operators of the language over operands that someone else looks up.
//!
//! *No value* is `None`. Only `default` turns it into a value; comparisons, `in` and the words `and`, `or`,
//! `not` always have one, because an atom with an operand that has none is false.

use pktc_semantics::typed::{BinaryOp, Expr, ExprKind, Set, SetId};

use super::value::Operand;

/// Where the operands of an expression come from.
pub(crate) trait Operands {
    /// The value of an operand that is no operator (a field, a presence, a length …).
    fn operand(&self, expr: &Expr) -> Option<Operand>;

    /// A set of the program.
    fn set(&self, id: SetId) -> Option<&Set>;
}

/// Whether the condition holds.
pub(crate) fn holds(condition: &Expr, operands: &dyn Operands) -> bool {
    evaluate(condition, operands).is_some_and(|value| value.is_true())
}

/// The number that `expr` is.
pub(crate) fn number(expr: &Expr, operands: &dyn Operands) -> Option<u64> {
    match evaluate(expr, operands)? {
        Operand::Number(number) => Some(number),
        Operand::Mac(_) | Operand::Ipv4(_) | Operand::Ipv6(_) | Operand::Bytes(_) | Operand::Tuple(_) => None,
    }
}

/// The value of `expr`, if it has one.
pub(crate) fn evaluate(expr: &Expr, operands: &dyn Operands) -> Option<Operand> {
    match &expr.kind {
        ExprKind::Const(value) => Some(Operand::constant(value)),
        ExprKind::Not(inner) => Some(Operand::truth(!holds(inner, operands))),
        ExprKind::And(parts) => Some(Operand::truth(parts.iter().all(|part| holds(part, operands)))),
        ExprKind::Or(parts) => Some(Operand::truth(parts.iter().any(|part| holds(part, operands)))),
        ExprKind::Compare { op, left, right } => {
            let sides = evaluate(left, operands).zip(evaluate(right, operands));
            Some(Operand::truth(sides.is_some_and(|(left, right)| left.compare(*op, &right))))
        }
        ExprKind::In { value, set, negated } => {
            let known = evaluate(value, operands).zip(operands.set(*set));
            let answer = known.is_some_and(|(value, set)| {
                set.elements.iter().any(|element| value.is_in(element)) != *negated
            });
            Some(Operand::truth(answer))
        }
        ExprKind::Binary { op, left, right } => {
            arithmetic(*op, number(left, operands)?, number(right, operands)?).map(Operand::Number)
        }
        ExprKind::Default { value, otherwise } => {
            evaluate(value, operands).or_else(|| evaluate(otherwise, operands))
        }
        ExprKind::Tuple(parts) => {
            parts.iter().map(|part| evaluate(part, operands)).collect::<Option<_>>().map(Operand::Tuple)
        }
        ExprKind::Field { .. }
        | ExprKind::UnionField { .. }
        | ExprKind::Own(_)
        | ExprKind::OwnPayload { .. }
        | ExprKind::Present(_)
        | ExprKind::UnionPresent(_)
        | ExprKind::Malformed(_)
        | ExprKind::Truncated(_)
        | ExprKind::Packet(_)
        | ExprKind::PayloadLength(_)
        | ExprKind::Payload(_)
        | ExprKind::PayloadSlice { .. }
        | ExprKind::Option { .. }
        | ExprKind::OptionsMalformed(_)
        | ExprKind::Bytes { .. } => operands.operand(expr),
    }
}

/// Arithmetic in 64 bits: it wraps at the top, a difference below zero is none, a shift by 64 or more is 0.
fn arithmetic(op: BinaryOp, left: u64, right: u64) -> Option<u64> {
    let shift = |shifted: fn(u64, u32) -> Option<u64>| {
        u32::try_from(right).ok().and_then(|by| shifted(left, by)).unwrap_or(0)
    };
    match op {
        BinaryOp::Or => Some(left | right),
        BinaryOp::Xor => Some(left ^ right),
        BinaryOp::And => Some(left & right),
        BinaryOp::ShiftLeft => Some(shift(u64::checked_shl)),
        BinaryOp::ShiftRight => Some(shift(u64::checked_shr)),
        BinaryOp::Add => Some(left.wrapping_add(right)),
        BinaryOp::Subtract => left.checked_sub(right),
        BinaryOp::Multiply => Some(left.wrapping_mul(right)),
    }
}

/// Calls `visit` with `expr` and all expressions in it, outside in.
pub(crate) fn walk<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    visit(expr);
    match &expr.kind {
        ExprKind::Not(inner) => walk(inner, visit),
        ExprKind::And(parts) | ExprKind::Or(parts) | ExprKind::Tuple(parts) => {
            parts.iter().for_each(|part| walk(part, visit));
        }
        ExprKind::Compare { left, right, .. } | ExprKind::Binary { left, right, .. } => {
            walk(left, visit);
            walk(right, visit);
        }
        ExprKind::Default { value, otherwise } => {
            walk(value, visit);
            walk(otherwise, visit);
        }
        ExprKind::In { value, .. } => walk(value, visit),
        ExprKind::Const(_)
        | ExprKind::Field { .. }
        | ExprKind::UnionField { .. }
        | ExprKind::Own(_)
        | ExprKind::OwnPayload { .. }
        | ExprKind::Present(_)
        | ExprKind::UnionPresent(_)
        | ExprKind::Malformed(_)
        | ExprKind::Truncated(_)
        | ExprKind::Packet(_)
        | ExprKind::PayloadLength(_)
        | ExprKind::Payload(_)
        | ExprKind::PayloadSlice { .. }
        | ExprKind::Option { .. }
        | ExprKind::OptionsMalformed(_)
        | ExprKind::Bytes { .. } => {}
    }
}
