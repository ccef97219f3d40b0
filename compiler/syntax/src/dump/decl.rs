//! Declarations.

use super::Out;
use super::expr::{amount, duration, elements, entries, expr, key, list, number, rate, string, ty};
use super::program;
use crate::ast::{
    Decl, DeclKind, Edge, Expr, Field, Header, HeaderItem, HeaderItemKind, LiveOption, OptionItem, Scope,
    SelectorValue, Target, Union, UseTarget, Word,
};

pub(super) fn decl(out: &mut Out, decl: &Decl) {
    out.doc(&decl.doc);
    match &decl.kind {
        DeclKind::Use { target, alias } => {
            let target = match target {
                UseTarget::File(name) => string(name),
                UseTarget::Library(parts) => words(parts, "."),
            };
            out.line(format!("use {target}{}", with(" as ", alias.as_ref(), |word| word.text.clone())));
        }
        DeclKind::Const { name, ty: given, value } => {
            out.line(format!("const {}{} = {}", name.text, with(": ", given.as_ref(), ty), expr(value)));
        }
        DeclKind::Def { name, params, body } => {
            let params = list(params, |param| format!("{}: {}", param.name.text, ty(&param.ty)));
            out.line(format!("def {}({params}) = {}", name.text, expr(body)));
        }
        DeclKind::Enum { name, ty: given, members } => {
            out.nest(format!("enum {}: {}", name.text, ty(given)), |out| {
                for member in members {
                    out.line(format!("{} = {}", member.name.text, member.value));
                }
            })
        }
        DeclKind::Header(value) => header(out, value),
        DeclKind::Union(value) => union(out, value),
        DeclKind::Bind { selectors, values, target: to } => {
            let selectors = list(selectors, |selector| {
                format!(
                    "{}{}",
                    selector.name.text,
                    with(".", selector.field.as_ref(), |field| field.text.clone())
                )
            });
            out.line(format!("bind {selectors}: {} => {}", list(values, selector_value), target(to)));
        }
        DeclKind::Chain { name, body } => {
            out.nest(format!("chain {}", name.text), |out| program::stmts(out, body))
        }
        DeclKind::Xdp { name, items } => {
            out.nest(format!("xdp {}", name.text), |out| program::items(out, items))
        }
        DeclKind::Test { name, of, steps } => {
            let of = with(" of ", of.as_ref(), |word| word.text.clone());
            out.nest(format!("test {}{of}", string(name)), |out| program::steps(out, steps));
        }
        DeclKind::Set { .. }
        | DeclKind::Map { .. }
        | DeclKind::LiveSet { .. }
        | DeclKind::LiveMap { .. }
        | DeclKind::LiveParam { .. }
        | DeclKind::Counter { .. }
        | DeclKind::Meter { .. } => out.line(state(&decl.kind)),
    }
}

/// Sets, maps and what changes while a program runs.
fn state(kind: &DeclKind) -> String {
    match kind {
        DeclKind::Set { name, ty: given, elements: content } => {
            format!("set {}{} = {}", name.text, with(": ", given.as_ref(), ty), elements(content))
        }
        DeclKind::Map { name, key, value, entries: content } => {
            format!("map {}: {} -> {} = {}", name.text, ty(key), ty(value), entries(content))
        }
        DeclKind::LiveSet { name, ty: given, options, elements: content } => {
            let content = with(" = ", content.as_ref(), elements);
            format!("live set {}: {}{}{content}", name.text, ty(given), live_options(options))
        }
        DeclKind::LiveMap { name, key, value, options, entries: content } => {
            let content = with(" = ", content.as_ref(), entries);
            format!("live map {}: {} -> {}{}{content}", name.text, ty(key), ty(value), live_options(options))
        }
        DeclKind::LiveParam { name, ty: given, value } => {
            format!("live param {}: {} = {}", name.text, ty(given), expr(value))
        }
        DeclKind::Counter { name, key: by } => {
            format!("counter {}{}", name.text, with(" ", by.as_ref(), key))
        }
        DeclKind::Meter { name, rate: refill, burst, key: by, exact } => {
            let burst = with(" burst ", burst.as_ref(), amount);
            let exact = if exact.is_some() { " exact" } else { "" };
            format!("meter {}: {}{burst}{}{exact}", name.text, rate(refill), with(" ", by.as_ref(), key))
        }
        _ => String::new(),
    }
}

fn live_options(options: &[LiveOption]) -> String {
    let show = |option: &LiveOption| match option {
        LiveOption::Max(max) => format!(" max {}", number(max)),
        LiveOption::Timeout(time) => format!(" timeout {}", duration(*time)),
        LiveOption::Lru(_) => " lru".to_owned(),
        LiveOption::Counted(_) => " counted".to_owned(),
    };
    options.iter().map(show).collect()
}

/// `prefix` and what is there, or nothing.
pub(super) fn with<T: ?Sized>(prefix: &str, value: Option<&T>, show: impl Fn(&T) -> String) -> String {
    value.map_or(String::new(), |value| format!("{prefix}{}", show(value)))
}

fn words(list: &[Word], separator: &str) -> String {
    list.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(separator)
}

fn header(out: &mut Out, header: &Header) {
    out.nest(format!("header {}", header.name.text), |out| {
        for item in &header.items {
            header_item(out, item);
        }
    });
}

fn header_item(out: &mut Out, item: &HeaderItem) {
    out.doc(&item.doc);
    match &item.kind {
        HeaderItemKind::Field(value) => out.line(field(value)),
        HeaderItemKind::Length(value) => out.line(format!("length {}", expr(value))),
        HeaderItemKind::Claims { value, when: condition } => {
            out.line(format!("claims {}{}", expr(value), when(condition.as_ref())));
        }
        HeaderItemKind::Valid(value) => out.line(format!("valid {}", expr(value))),
        HeaderItemKind::Needs(bytes) => out.line(format!("needs {bytes}")),
        HeaderItemKind::Repeats(times) => out.line(format!("repeats {times}")),
        HeaderItemKind::View { name, ty: given, first, last } => {
            out.line(format!("view {}: {} = {}..{}", name.text, ty(given), first.text, last.text));
        }
        HeaderItemKind::Options { by, items } => out.nest(format!("options by {}", by.text), |out| {
            for item in items {
                option_item(out, item);
            }
        }),
        HeaderItemKind::OptionsFrom(headers) => out.line(format!("options from {}", words(headers, ", "))),
        HeaderItemKind::NextBy { scope, by, alias, when: condition, edges } => {
            let scope = with("", scope.as_ref(), |scope| format!("{} ", scope_name(*scope)));
            let alias = with(" as ", alias.as_ref(), |word| word.text.clone());
            let heading = format!("next {scope}by {}{alias}{}", list(by, expr), when(condition.as_ref()));
            out.nest(heading, |out| edges.iter().for_each(|value| edge(out, value)));
        }
        HeaderItemKind::Next { target: to, when: condition } => {
            out.line(format!("next {}{}", target(to), when(condition.as_ref())));
        }
    }
}

fn when(condition: Option<&Expr>) -> String {
    with(" when ", condition, expr)
}

fn field(field: &Field) -> String {
    let default = with(" = ", field.default.as_ref(), expr);
    format!("field {}: {}{default}{}", field.name.text, ty(&field.ty), when(field.when.as_ref()))
}

fn option_item(out: &mut Out, item: &OptionItem) {
    let named = |name: &Option<Word>| with(" => ", name.as_ref(), |word| word.text.clone());
    match item {
        OptionItem::Field(value) => out.line(field(value)),
        OptionItem::Length(value) => out.line(format!("length {}", expr(value))),
        OptionItem::End { kind, name } => out.line(format!("end {kind}{}", named(name))),
        OptionItem::Pad { kind, name } => out.line(format!("pad {kind}{}", named(name))),
        OptionItem::Option { kind, name, fields } => {
            out.nest(format!("option {kind} => {}", name.text), |out| {
                fields.iter().for_each(|value| out.line(field(value)));
            })
        }
    }
}

fn edge(out: &mut Out, edge: &Edge) {
    out.line(format!("{} => {}", list(&edge.values, selector_value), target(&edge.target)));
}

fn selector_value(value: &SelectorValue) -> String {
    match value {
        SelectorValue::Int(value, _) => value.to_string(),
        SelectorValue::Word(word) => word.text.clone(),
    }
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Inner => "inner",
        Scope::Quoted => "quoted",
    }
}

fn target(target: &Target) -> String {
    let scope = with("", target.scope.as_ref(), |scope| format!("{}.", scope_name(*scope)));
    format!("{scope}{}", target.header.text)
}

fn union(out: &mut Out, union: &Union) {
    let repeats = with(" repeats ", union.repeats.as_ref(), |(times, _)| times.to_string());
    out.nest(format!("union {} = {}{repeats}", union.name.text, words(&union.members, " | ")), |out| {
        for field in &union.fields {
            out.doc(&field.doc);
            let alternatives = list(&field.alternatives, expr);
            let value = if alternatives.is_empty() { String::new() } else { format!(" = {alternatives}") };
            out.line(format!("field {}{value}{}", field.name.text, when(field.when.as_ref())));
        }
    });
}
