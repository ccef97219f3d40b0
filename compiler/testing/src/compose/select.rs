//! How one layer of a packet selects the next.

use pktc_diagnostics::{Diagnostic, codes};
use pktc_semantics::typed::{
    CompareOp, Element, Expr, ExprKind, FieldIndex, HeaderId, Next, NextKind, Program, SetId, Value,
};

use super::form::Form;
use crate::reference::{number, walk};

/// Makes `parent` select `child`: by what it has already, else by the first of its `next` lines whose fields are not
/// given. Fields that are given may say something else; that is how wrong packets are made.
pub(super) fn select(parent: &mut Form<'_>, child: &Form<'_>) -> Result<(), Box<Diagnostic>> {
    let lines = || parent.header.next.iter();
    if lines().any(|next| leads(parent, next, child.id)) {
        return Ok(());
    }
    let tried = || lines().filter_map(|next| Some((next, lead(parent, next, child.id)?)));
    let chosen = tried().find(|(next, form)| leads(form, next, child.id));
    let is_wrong = || lines().any(|next| asked_fields(next).any(|field| parent.is_given(field)));
    match chosen.or_else(|| tried().next().filter(|_| is_wrong())) {
        Some((_, form)) => *parent = form,
        None if is_wrong() => {}
        None => return Err(Box::new(cannot_follow(parent, child))),
    }
    Ok(())
}

fn cannot_follow(parent: &Form<'_>, child: &Form<'_>) -> Diagnostic {
    let (outer, inner) = (&parent.header.name, &child.header.name);
    let title = format!("`{inner}` cannot follow `{outer}`");
    let label = format!("`{outer}` has no way to select this");
    let help = match parent.header.next.iter().find_map(selector) {
        Some(field) => {
            let given = format!("{outer}({}: 1) / {inner}", parent.field_name(field));
            format!("Put another layer between, or say by hand what `{outer}` selects, as in `{given}`.")
        }
        None => format!("Only `payload(…)`, `pad(…)` and `cut(…)` can follow `{outer}`."),
    };
    Diagnostic::error(codes::PACKET, title, child.span, label).with_help(help)
}

/// Whether `next` leads to `child` as the fields are. What payloads and other headers select is not known yet.
fn leads(parent: &Form<'_>, next: &Next, child: HeaderId) -> bool {
    let is_met = next.when.as_ref().is_none_or(|when| looks_elsewhere(when) || parent.holds(when));
    is_met
        && match &next.kind {
            NextKind::Always(target) => target.header == child,
            NextKind::By { value, edges } if !looks_elsewhere(value) => {
                let chosen = number(value, &parent.view(&parent.bytes())).and_then(|value| edges.get(&value));
                chosen.is_some_and(|target| target.header == child)
            }
            NextKind::By { .. } => edge_to(next, child).is_some(),
        }
}

/// `parent` with the fields that are not given set so that `next` may lead to `child`, if it can.
fn lead<'a>(parent: &Form<'a>, next: &Next, child: HeaderId) -> Option<Form<'a>> {
    let mut form = parent.clone();
    match (&next.kind, selector(next), edge_to(next, child)) {
        (NextKind::Always(target), _, _) if target.header == child => {}
        (NextKind::By { .. }, Some(field), Some(value)) if !form.is_given(field) => form.set(field, value),
        (NextKind::By { .. }, _, Some(_)) => {}
        _ => return None,
    }
    if let Some(when) = &next.when {
        meet(&mut form, when);
    }
    form.settle_length().ok()?;
    Some(form)
}

/// Tries to make a condition hold by the fields that are not given.
fn meet(form: &mut Form<'_>, condition: &Expr) {
    if form.holds(condition) {
        return;
    }
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().for_each(|part| meet(form, part)),
        ExprKind::Or(parts) => {
            let met = parts.iter().find_map(|part| {
                let mut tried = form.clone();
                meet(&mut tried, part);
                tried.holds(part).then_some(tried)
            });
            if let Some(met) = met {
                *form = met;
            }
        }
        ExprKind::Compare { op, left, right } => {
            let value = match (op, &right.kind) {
                (CompareOp::Equal, ExprKind::Const(Value::Uint(value))) => *value,
                (CompareOp::NotEqual, ExprKind::Const(Value::Uint(value))) => value.wrapping_add(1),
                _ => return,
            };
            set_free(form, left, value);
        }
        ExprKind::In { value, set, negated: false } => {
            if let Some(low) = lowest(form.program(), *set) {
                set_free(form, value, low);
            }
        }
        _ => {}
    }
}

fn set_free(form: &mut Form<'_>, operand: &Expr, value: u64) {
    if let ExprKind::Own(field) = operand.kind
        && !form.is_given(field)
    {
        form.set(field, value);
    }
}

fn lowest(program: &Program, set: SetId) -> Option<u64> {
    let numbers = program.sets[set].elements.iter().filter_map(|element| match element {
        Element::Uint { low, .. } => Some(*low),
        _ => None,
    });
    numbers.min()
}

/// Whether an expression reads more than the header's own fields.
fn looks_elsewhere(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |part| {
        found |= matches!(
            part.kind,
            ExprKind::OwnPayload { .. }
                | ExprKind::Field { .. }
                | ExprKind::UnionField { .. }
                | ExprKind::Present(_)
                | ExprKind::UnionPresent(_)
        );
    });
    found
}

/// The fields that decide whether and where `next` leads.
fn asked_fields(next: &Next) -> impl Iterator<Item = FieldIndex> {
    let mut fields: Vec<FieldIndex> = selector(next).into_iter().collect();
    if let Some(when) = &next.when {
        walk(when, &mut |part| {
            if let ExprKind::Own(field) = part.kind {
                fields.push(field);
            }
        });
    }
    fields.into_iter()
}

/// The field that selects.
pub(super) fn selector(next: &Next) -> Option<FieldIndex> {
    match &next.kind {
        NextKind::By { value, .. } => match value.kind {
            ExprKind::Own(field) => Some(field),
            _ => None,
        },
        NextKind::Always(_) => None,
    }
}

/// The lowest value that selects `child`.
pub(super) fn edge_to(next: &Next, child: HeaderId) -> Option<u64> {
    match &next.kind {
        NextKind::By { edges, .. } => {
            edges.iter().find(|(_, target)| target.header == child).map(|(&value, _)| value)
        }
        NextKind::Always(_) => None,
    }
}
