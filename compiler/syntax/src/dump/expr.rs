//! Expressions and what consists of them, on one line.

use std::fmt::Write as _;

use crate::ast::{
    Amount, Duration, Element, ElementKind, Elements, Entries, Expr, ExprKind, InSet, Key, Number, Path,
    PathStepKind, Rate, StringLiteral, Type, TypeKind,
};

pub(super) fn expr(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Address(address) => address.to_string(),
        ExprKind::Prefix(address, bits) => format!("{address}/{bits}"),
        ExprKind::Mac(value) => mac(*value),
        ExprKind::MacPrefix(value, bits) => format!("{}/{bits}", mac(*value)),
        ExprKind::String(bytes) => quote(bytes),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Path(value) => path(value),
        ExprKind::Paren(inside) => format!("(paren {})", self::expr(inside)),
        ExprKind::Tuple(parts) => format!("(tuple {})", exprs(parts)),
        ExprKind::Not(operand) => format!("(not {})", self::expr(operand)),
        ExprKind::And(parts) => format!("(and {})", exprs(parts)),
        ExprKind::Or(parts) => format!("(or {})", exprs(parts)),
        ExprKind::Compare { op, left, right } => {
            format!("({} {} {})", op.symbol(), self::expr(left), self::expr(right))
        }
        ExprKind::In { negated, value, set } => {
            let op = if *negated { "not-in" } else { "in" };
            format!("({op} {} {})", self::expr(value), in_set(set))
        }
        ExprKind::Binary { op, left, right } => {
            format!("({} {} {})", op.symbol(), self::expr(left), self::expr(right))
        }
        ExprKind::Default { value, otherwise } => {
            format!("(default {} {})", self::expr(value), self::expr(otherwise))
        }
        ExprKind::Error => "<error>".to_owned(),
    }
}

fn exprs(list: &[Expr]) -> String {
    list.iter().map(expr).collect::<Vec<_>>().join(" ")
}

pub(super) fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn mac(value: u64) -> String {
    let bytes: Vec<String> = value.to_be_bytes()[2..].iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// In quotes; what is not printable ASCII as `\xNN`.
pub(super) fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', byte as char]),
            0x20..0x7f => text.push(byte as char),
            _ => {
                let _infallible = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('"');
    text
}

pub(super) fn string(literal: &StringLiteral) -> String {
    quote(&literal.bytes)
}

fn in_set(set: &InSet) -> String {
    match set {
        InSet::Literal(elements, _) => format!("{{{}}}", list(elements, element)),
        InSet::Bare(bare) => element(bare),
    }
}

pub(super) fn element(element: &Element) -> String {
    match &element.kind {
        ElementKind::Item(item) => expr(item),
        ElementKind::Range(first, last) => format!("{}-{}", expr(first), expr(last)),
        ElementKind::Tuple(parts) => format!("({})", list(parts, self::element)),
    }
}

pub(super) fn path(path: &Path) -> String {
    let mut text = path.head.text.clone();
    for step in &path.steps {
        text.push_str(&match &step.kind {
            PathStepKind::Dot(word) => format!(".{}", word.text),
            PathStepKind::Index(keys) => format!("[{}]", list(keys, expr)),
            PathStepKind::Slice(from, to) => format!("[{}..{}]", expr(from), expr(to)),
            PathStepKind::Call(args) => format!("({})", list(args, expr)),
        });
    }
    text
}

pub(super) fn ty(ty: &Type) -> String {
    match &ty.kind {
        TypeKind::Named { name, length: Some(length) } => format!("{}[{length}]", name.text),
        TypeKind::Named { name, length: None } => name.text.clone(),
        TypeKind::Tuple(parts) => format!("({})", list(parts, self::ty)),
    }
}

pub(super) fn elements(elements: &Elements) -> String {
    match elements {
        Elements::Literal(elements, _) => format!("{{{}}}", list(elements, element)),
        Elements::File(name) => format!("file {}", string(name)),
    }
}

pub(super) fn entries(entries: &Entries) -> String {
    match entries {
        Entries::Literal(entries, _) => {
            format!("{{{}}}", list(entries, |(key, value)| format!("{} => {}", element(key), expr(value))))
        }
        Entries::File(name) => format!("file {}", string(name)),
    }
}

pub(super) fn number(number: &Number) -> String {
    match number {
        Number::Int(value, _) => value.to_string(),
        Number::Word(word) => word.text.clone(),
    }
}

pub(super) fn duration(duration: Duration) -> String {
    format!("{}ns", duration.nanoseconds)
}

pub(super) fn key(key: &Key) -> String {
    format!("by {} max {}", expr(&key.by), number(&key.max))
}

pub(super) fn amount(amount: &Amount) -> String {
    let unit = amount.unit.as_ref().map_or(String::new(), |unit| format!(" {}", unit.text));
    format!("{}{unit}", expr(&amount.value))
}

pub(super) fn rate(rate: &Rate) -> String {
    format!("{} per {}", amount(&rate.amount), duration(rate.per))
}
