//! The edges of the parse graph: `next` in headers, and `bind`.

use std::collections::BTreeMap;

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, BindSelector, Edge, Scope, SelectorValue, Word};

use crate::checker::{BindDecl, Checker, Env};
use crate::names::{Space, SymbolKind};
use crate::typed::{
    EnumId, Expr, ExprKind, HeaderId, Instance, Next, NextKind, Target, Type, UnionFieldKind, UnionId,
};
use crate::types::{max_of, member};

/// `next inner by proto, port as x { … }`
pub(crate) struct NextBy<'a> {
    pub(crate) scope: Option<Scope>,
    pub(crate) by: &'a [ast::Expr],
    pub(crate) alias: Option<&'a Word>,
    pub(crate) edges: &'a [Edge],
}

/// A branch that selects by value: of which header, and which of its branches.
type Branch = (HeaderId, usize);

impl<'a> Checker<'a> {
    /// Adds a branch for each selector.
    pub(crate) fn next_by(
        &mut self,
        id: HeaderId,
        next: &NextBy<'a>,
        when: Option<&Expr>,
        span: Span,
        env: &Env<'a>,
    ) {
        let mut branches = Vec::new();
        for by in next.by {
            let Some(value) = self.expression(by, None, env).and_then(|value| self.as_number(value)) else {
                continue;
            };
            let hint = enum_type(&value);
            let mut edges = BTreeMap::new();
            for edge in next.edges {
                let Some(target) = self.target(&edge.target, next.scope, env.unit) else { continue };
                for selector in &edge.values {
                    if let Some(number) = self.selector_value(selector, hint, value.ty.clone()) {
                        self.add_edge(&mut edges, number, target, value_span(selector));
                    }
                }
            }
            let branch = self.program.headers[id].next.len();
            branches.push(branch);
            self.branch_scopes.extend(next.scope.map(|scope| ((id, branch), scope)));
            let kind = NextKind::By { value, edges };
            self.program.headers[id].next.push(Next { when: when.cloned(), kind, span });
        }
        if let Some(alias) = next.alias {
            self.aliases.insert((id, alias.text.clone()), branches);
        }
    }

    /// Adds a branch that is always taken.
    pub(crate) fn next_always(
        &mut self,
        id: HeaderId,
        target: &'a ast::Target,
        when: Option<Expr>,
        span: Span,
        env: &Env<'a>,
    ) {
        if let Some(target) = self.target(target, None, env.unit) {
            let kind = NextKind::Always(target);
            self.program.headers[id].next.push(Next { when, kind, span });
        }
    }

    fn target(&mut self, target: &'a ast::Target, scope: Option<Scope>, unit: usize) -> Option<Target> {
        let header = self.header_named(&target.header, unit)?;
        Some(Target { scope: target.scope.or(scope), header })
    }

    /// The number that selects; a word is a member of the selector's enum.
    fn selector_value(&mut self, value: &SelectorValue, hint: Option<EnumId>, ty: Type) -> Option<u64> {
        match value {
            SelectorValue::Int(number, span) => {
                let bits = crate::types::number_bits(&self.program, &ty).unwrap_or(64);
                if *number <= max_of(bits) {
                    return Some(*number);
                }
                let title = format!("{number} does not fit in the selector");
                let label = format!("{bits} bits hold at most {}", max_of(bits));
                self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, *span, label));
                None
            }
            SelectorValue::Word(word) => {
                let Some(hint) = hint else {
                    let title = format!("`{}` is no number", word.text);
                    let label = "this selector has no names for its values";
                    self.report(Diagnostic::error(codes::BAD_EDGE, title, word.span, label));
                    return None;
                };
                let found = member(&self.program, hint, &word.text);
                if found.is_none() {
                    self.unknown_member(hint, &word.text, word.span);
                }
                found
            }
        }
    }

    fn add_edge(&mut self, edges: &mut BTreeMap<u64, Target>, number: u64, target: Target, span: Span) {
        let Some(&other) = edges.get(&number).filter(|&&other| other != target) else {
            edges.insert(number, target);
            return;
        };
        let (new, old) = (&self.program.headers[target.header], &self.program.headers[other.header]);
        let title = format!("{number} selects `{}` already", old.name);
        let diagnostic = Diagnostic::error(codes::BAD_EDGE, title, span, format!("and now `{}`", new.name))
            .with_label(old.span, "declared here")
            .with_help("one value selects one header; a header that is read twice needs two selectors");
        self.report(diagnostic);
    }

    /// Adds what `bind`s declare.
    pub(crate) fn binds(&mut self) {
        for bind in std::mem::take(&mut self.decls.binds) {
            self.bind(bind);
        }
    }

    fn bind(&mut self, bind: BindDecl<'a>) {
        let target = self.target(bind.target, None, bind.unit);
        for selector in bind.selectors {
            let Some(branches) = self.branches_of(selector, bind.unit) else { continue };
            let Some(target) = target else { continue };
            for (header, branch) in branches {
                self.bind_branch(header, branch, target, bind.values);
            }
        }
    }

    fn bind_branch(&mut self, header: HeaderId, branch: usize, target: Target, values: &'a [SelectorValue]) {
        let scope = self.branch_scopes.get(&(header, branch)).copied();
        let next = &mut self.program.headers[header].next[branch];
        let NextKind::By { value, edges } = &mut next.kind else { return };
        let (hint, ty, mut table) = (enum_type(value), value.ty.clone(), std::mem::take(edges));
        let target = Target { scope: target.scope.or(scope), header: target.header };
        for selector in values {
            if let Some(number) = self.selector_value(selector, hint, ty.clone()) {
                self.add_edge(&mut table, number, target, value_span(selector));
            }
        }
        if let NextKind::By { edges, .. } = &mut self.program.headers[header].next[branch].kind {
            *edges = table;
        }
    }

    /// The branches that a selector means; reports one that means none.
    fn branches_of(&mut self, selector: &BindSelector, unit: usize) -> Option<Vec<Branch>> {
        let kind =
            self.expect_symbol(Space::Value, unit, &selector.name, "header, union or enum", |kind| {
                matches!(kind, SymbolKind::Header(_) | SymbolKind::Union(_) | SymbolKind::Enum(_))
                    .then_some(*kind)
            })?;
        let branches = match (kind, &selector.field) {
            (SymbolKind::Enum(id), None) => self.branches_by_enum(id),
            (SymbolKind::Header(id), Some(field)) => self.branches_by_field(id, &field.text),
            (SymbolKind::Union(id), Some(field)) => self.branches_by_union(id, &field.text),
            _ => Vec::new(),
        };
        if !branches.is_empty() {
            return Some(branches);
        }
        let name = match &selector.field {
            Some(field) => format!("{}.{}", selector.name.text, field.text),
            None => selector.name.text.clone(),
        };
        let span =
            selector.field.as_ref().map_or(selector.name.span, |field| selector.name.span.to(field.span));
        let diagnostic = Diagnostic::error(
            codes::BAD_EDGE,
            format!("`{name}` selects nothing"),
            span,
            "no selector",
        )
        .with_note(
            "a selector is a field behind `next by`, the name behind its `as`, or the enum of such fields",
        )
        .with_help(
            "in stdlib: `ether_type`, `ip_proto`, `udp.port`, `udp.dport`, `tcp.port`, `icmpv6.type` …",
        );
        self.report(diagnostic);
        None
    }

    fn branches_by_enum(&self, id: EnumId) -> Vec<Branch> {
        let mut branches = Vec::new();
        for (header, data) in &self.program.headers {
            for (branch, next) in data.next.iter().enumerate() {
                if matches!(&next.kind, NextKind::By { value, .. } if enum_type(value) == Some(id)) {
                    branches.push((header, branch));
                }
            }
        }
        branches
    }

    fn branches_by_field(&self, id: HeaderId, field: &str) -> Vec<Branch> {
        if let Some(branches) = self.aliases.get(&(id, field.to_owned())) {
            return branches.iter().map(|&branch| (id, branch)).collect();
        }
        let header = &self.program.headers[id];
        let wanted = header.fields.iter().position(|it| it.name.as_deref() == Some(field));
        let branches = header.next.iter().enumerate().filter(|(_, next)| match &next.kind {
            NextKind::By { value, .. } => matches!(value.kind, ExprKind::Own(own) if Some(own) == wanted),
            NextKind::Always(_) => false,
        });
        branches.map(|(branch, _)| (id, branch)).collect()
    }

    fn branches_by_union(&self, id: UnionId, field: &str) -> Vec<Branch> {
        let union = &self.program.unions[id];
        let Some(field) = union.fields.iter().find(|it| it.name == field) else {
            let aliased =
                union.members.iter().filter(|&&it| self.aliases.contains_key(&(it, field.to_owned())));
            return aliased.flat_map(|&header| self.branches_by_field(header, field)).collect();
        };
        let fields: Vec<(HeaderId, usize)> = match &field.kind {
            UnionFieldKind::Member(fields) => {
                fields.iter().map(|(&header, &field)| (header, field)).collect()
            }
            UnionFieldKind::Alternatives(alternatives) => alternatives
                .iter()
                .filter_map(|alternative| match alternative.kind {
                    ExprKind::Field { instance: Instance { header, .. }, field } => Some((header, field)),
                    _ => None,
                })
                .collect(),
        };
        let names = fields.iter().filter_map(|&(header, field)| {
            Some((header, self.program.headers[header].fields[field].name.as_deref()?))
        });
        names.flat_map(|(header, name)| self.branches_by_field(header, name)).collect()
    }
}

fn enum_type(value: &Expr) -> Option<EnumId> {
    match value.ty {
        Type::Enum(id) => Some(id),
        _ => None,
    }
}

fn value_span(value: &SelectorValue) -> Span {
    match value {
        SelectorValue::Int(_, span) => *span,
        SelectorValue::Word(word) => word.span,
    }
}
