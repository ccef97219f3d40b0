//! Expressions as trees: their parts, whether two are the same, and whether two conditions exclude each other.

use crate::typed::{CompareOp, Element, Expr, ExprKind, FieldIndex, Next, NextKind, Program, Value};

/// Calls `visit` for an expression and all its parts.
pub fn walk(expr: &Expr, visit: &mut impl FnMut(&Expr)) {
    visit(expr);
    match &expr.kind {
        ExprKind::Not(inner) | ExprKind::In { value: inner, .. } => walk(inner, visit),
        ExprKind::And(parts) | ExprKind::Or(parts) | ExprKind::Tuple(parts) => {
            parts.iter().for_each(|part| walk(part, visit));
        }
        ExprKind::Compare { left, right, .. }
        | ExprKind::Binary { left, right, .. }
        | ExprKind::Default { value: left, otherwise: right } => {
            walk(left, visit);
            walk(right, visit);
        }
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

/// Whether both say the same, wherever they stand.
pub(crate) fn same(a: &Expr, b: &Expr) -> bool {
    let all = |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b));
    match (&a.kind, &b.kind) {
        (ExprKind::Const(a), ExprKind::Const(b)) => a == b,
        (ExprKind::Field { instance: a, field: f }, ExprKind::Field { instance: b, field: g }) => {
            a == b && f == g
        }
        (ExprKind::UnionField { instance: a, field: f }, ExprKind::UnionField { instance: b, field: g }) => {
            a == b && f == g
        }
        (ExprKind::Own(a), ExprKind::Own(b)) => a == b,
        (ExprKind::OwnPayload { from: a, to: b }, ExprKind::OwnPayload { from: c, to: d }) => {
            a == c && b == d
        }
        (ExprKind::Present(a), ExprKind::Present(b))
        | (ExprKind::Truncated(a), ExprKind::Truncated(b))
        | (ExprKind::PayloadLength(a), ExprKind::PayloadLength(b))
        | (ExprKind::Payload(a), ExprKind::Payload(b)) => a == b,
        (ExprKind::UnionPresent(a), ExprKind::UnionPresent(b)) => a == b,
        (ExprKind::Malformed(a), ExprKind::Malformed(b)) => a == b,
        (ExprKind::Packet(a), ExprKind::Packet(b)) => a == b,
        (
            ExprKind::PayloadSlice { instance: a, from: b, to: c },
            ExprKind::PayloadSlice { instance: d, from: e, to: f },
        ) => (a, b, c) == (d, e, f),
        (ExprKind::Option { option: a, ask: b }, ExprKind::Option { option: c, ask: d }) => (a, b) == (c, d),
        (ExprKind::OptionsMalformed(a), ExprKind::OptionsMalformed(b)) => a == b,
        (ExprKind::Bytes { of: a, ask: b }, ExprKind::Bytes { of: c, ask: d }) => (a, b) == (c, d),
        (ExprKind::Not(a), ExprKind::Not(b)) => same(a, b),
        (ExprKind::And(a), ExprKind::And(b))
        | (ExprKind::Or(a), ExprKind::Or(b))
        | (ExprKind::Tuple(a), ExprKind::Tuple(b)) => all(a, b),
        (ExprKind::Compare { op: o, left: a, right: b }, ExprKind::Compare { op: p, left: c, right: d }) => {
            o == p && same(a, c) && same(b, d)
        }
        (ExprKind::In { value: a, set: s, negated: m }, ExprKind::In { value: b, set: t, negated: n }) => {
            s == t && m == n && same(a, b)
        }
        (ExprKind::Binary { op: o, left: a, right: b }, ExprKind::Binary { op: p, left: c, right: d }) => {
            o == p && same(a, c) && same(b, d)
        }
        (ExprKind::Default { value: a, otherwise: b }, ExprKind::Default { value: c, otherwise: d }) => {
            same(a, c) && same(b, d)
        }
        _ => false,
    }
}

/// Like [`same`], where two literal sets are the same if they hold the same: in a header's declaration, each
/// field writes out its own `when`.
pub(crate) fn same_condition(program: &Program, a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ExprKind::In { value: a, set: s, negated: m }, ExprKind::In { value: b, set: t, negated: n }) => {
            m == n && program.sets[*s].elements == program.sets[*t].elements && same(a, b)
        }
        (ExprKind::And(a), ExprKind::And(b)) | (ExprKind::Or(a), ExprKind::Or(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_condition(program, a, b))
        }
        (ExprKind::Not(a), ExprKind::Not(b)) => same_condition(program, a, b),
        _ => same(a, b),
    }
}

/// Whether two conditions can be seen to exclude each other: they ask one field for values of which none is in
/// both.
pub(crate) fn disjoint(program: &Program, a: &Expr, b: &Expr) -> bool {
    apart(&requirements(program, a), &requirements(program, b))
}

/// Whether it can be seen that two `next` lines of a header never both select something.
#[must_use]
pub fn exclude_each_other(program: &Program, a: &Next, b: &Next) -> bool {
    let denies = |a: &Next, b: &Next| {
        let (Some(a), Some(b)) = (&a.when, &b.when) else { return false };
        parts(b)
            .iter()
            .any(|part| matches!(&part.kind, ExprKind::Not(inner) if same_condition(program, inner, a)))
    };
    apart(&line_requirements(program, a), &line_requirements(program, b)) || denies(a, b) || denies(b, a)
}

/// What must hold for a line to select something.
fn line_requirements(program: &Program, line: &Next) -> Vec<Requirement> {
    let mut required: Vec<Requirement> =
        line.when.as_ref().map_or_else(Vec::new, |when| requirements(program, when));
    if let NextKind::By { value, edges } = &line.kind
        && let ExprKind::Own(field) = value.kind
    {
        required.push((field, edges.keys().map(|&value| (value, value)).collect()));
    }
    required
}

fn parts(condition: &Expr) -> Vec<&Expr> {
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().flat_map(self::parts).collect(),
        _ => vec![condition],
    }
}

/// A field, and ranges of which it must lie in one.
type Requirement = (FieldIndex, Vec<(u64, u64)>);

fn apart(a: &[Requirement], b: &[Requirement]) -> bool {
    a.iter().any(|(field, values)| {
        b.iter().any(|(other, others)| {
            field == other
                && values.iter().all(|&(low, high)| others.iter().all(|&(from, to)| high < from || to < low))
        })
    })
}

/// What a condition asks of single fields: each must lie in one of the ranges.
fn requirements(program: &Program, condition: &Expr) -> Vec<Requirement> {
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().flat_map(|part| requirements(program, part)).collect(),
        ExprKind::Or(parts) => {
            // What all alternatives ask of one field.
            let parts: Vec<_> = parts.iter().map(|part| requirements(program, part)).collect();
            let first =
                parts.first().map_or_else(Vec::new, |first| first.iter().map(|(field, _)| *field).collect());
            let of = |field: FieldIndex| {
                let ranges = |part: &Vec<Requirement>| {
                    part.iter().find(|(other, _)| *other == field).map(|(_, ranges)| ranges.clone())
                };
                let ranges: Option<Vec<_>> = parts.iter().map(ranges).collect();
                Some((field, ranges?.concat()))
            };
            first.into_iter().filter_map(of).collect()
        }
        ExprKind::Compare { op, left, right } => match (&left.kind, &right.kind) {
            (ExprKind::Own(field), ExprKind::Const(Value::Uint(value))) => {
                vec![(*field, ranges(*op, *value))]
            }
            _ => Vec::new(),
        },
        ExprKind::In { value, set, negated: false } => match value.kind {
            ExprKind::Own(field) => {
                let ranges = program.sets[*set].elements.iter().filter_map(|element| match element {
                    Element::Uint { low, high } => Some((*low, *high)),
                    _ => None,
                });
                vec![(field, ranges.collect())]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The values that compare so with `value`.
fn ranges(op: CompareOp, value: u64) -> Vec<(u64, u64)> {
    let below = value.checked_sub(1).map(|high| (0, high));
    let above = value.checked_add(1).map(|low| (low, u64::MAX));
    match op {
        CompareOp::Equal => vec![(value, value)],
        CompareOp::NotEqual => below.into_iter().chain(above).collect(),
        CompareOp::Less => below.into_iter().collect(),
        CompareOp::LessEqual => vec![(0, value)],
        CompareOp::Greater => above.into_iter().collect(),
        CompareOp::GreaterEqual => vec![(value, u64::MAX)],
    }
}
