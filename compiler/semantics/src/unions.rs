//! Unions of headers: one name for a field that several headers have.

use std::collections::BTreeMap;

use pktc_diagnostics::{Diagnostic, codes};
use pktc_syntax::ast;

use crate::arithmetic::{upper_bound, width_of};
use crate::checker::{Checker, Env};
use crate::typed::{Expr, FieldIndex, HeaderId, Type, UnionField, UnionFieldKind, UnionId};
use crate::types::{describe, is_address, number_bits};

impl<'a> Checker<'a> {
    /// Fills the unions: members and plain fields of all first, because alternatives may use them.
    pub(crate) fn union_fields(&mut self) {
        let unions = std::mem::take(&mut self.decls.unions);
        for &(id, unit, union) in &unions {
            self.union_members(id, unit, union);
        }
        for &(id, unit, union) in &unions {
            let env = Self::env(unit);
            for (index, field) in union.fields.iter().enumerate() {
                self.union_alternatives(id, index, field, &env);
            }
            // After a mistake a field keeps no sources; its name stays known, so that uses raise no errors.
        }
    }

    fn union_members(&mut self, id: UnionId, unit: usize, union: &'a ast::Union) {
        for member in &union.members {
            let found = self.header_named(member, unit);
            if found.is_some_and(|found| self.program.unions[id].members.contains(&found)) {
                let title = format!("`{}` is in this union twice", member.text);
                self.report(Diagnostic::error(codes::NAME_CLASH, title, member.span, "again here"));
                continue;
            }
            self.program.unions[id].members.extend(found);
        }
        if let Some((count, span)) = union.repeats {
            if (1..=32).contains(&count) {
                self.program.unions[id].repeats = Some(count as u32);
            } else {
                let title = format!("headers cannot repeat {count} times");
                self.report(Diagnostic::error(codes::BAD_PART, title, span, "1 to 32"));
            }
        }
        for field in &union.fields {
            self.union_field(id, field);
        }
    }

    /// Declares a field; one without alternatives is complete then.
    fn union_field(&mut self, id: UnionId, field: &ast::UnionField) {
        let name = &field.name;
        if self.program.unions[id].fields.iter().any(|other| other.name == name.text) {
            let title = format!("the field `{}` is declared twice", name.text);
            self.report(Diagnostic::error(codes::NAME_CLASH, title, name.span, "again here"));
        }
        let (kind, ty) = if field.alternatives.is_empty() {
            self.member_field(id, name)
        } else {
            (UnionFieldKind::Alternatives(Vec::new()), Type::Bool)
        };
        self.program.unions[id].fields.push(UnionField {
            name: name.text.clone(),
            doc: field.doc.clone(),
            ty,
            kind,
            when: None,
        });
    }

    fn member_field(&mut self, id: UnionId, name: &ast::Word) -> (UnionFieldKind, Type) {
        let mut sources: BTreeMap<HeaderId, FieldIndex> = BTreeMap::new();
        let mut types = Vec::new();
        for member in self.program.unions[id].members.clone() {
            let header = &self.program.headers[member];
            match header.fields.iter().position(|field| field.name.as_deref() == Some(&name.text)) {
                Some(index) => {
                    types.push((header.fields[index].ty.clone(), 0));
                    sources.insert(member, index);
                }
                None => {
                    let title = format!("`{}` has no field `{}`", header.name, name.text);
                    let diagnostic =
                        Diagnostic::error(codes::UNKNOWN_FIELD, title, name.span, "each member needs one")
                            .with_help("say where the value comes from: `ttl = ipv4.ttl | ipv6.hop_limit;`");
                    self.report(diagnostic);
                }
            }
        }
        let ty = self.union_type(&types, name);
        (UnionFieldKind::Member(sources), ty.unwrap_or(Type::Bool))
    }

    fn union_alternatives(&mut self, id: UnionId, index: usize, field: &'a ast::UnionField, env: &Env<'a>) {
        let checked: Vec<Option<Expr>> =
            field.alternatives.iter().map(|alternative| self.expression(alternative, None, env)).collect();
        let when = field.when.as_ref().and_then(|when| self.condition(when, env));
        self.program.unions[id].fields[index].when = when;
        let Some(alternatives) = checked.into_iter().collect::<Option<Vec<_>>>() else { return };
        if alternatives.is_empty() {
            return;
        }
        let types: Vec<_> =
            alternatives.iter().map(|it| (it.ty.clone(), upper_bound(&self.program, it))).collect();
        if let Some(ty) = self.union_type(&types, &field.name) {
            let typed = &mut self.program.unions[id].fields[index];
            typed.ty = ty;
            typed.kind = UnionFieldKind::Alternatives(alternatives);
        }
    }

    /// The type that all sources of a union's field fit in; each comes with its largest number.
    fn union_type(&mut self, types: &[(Type, u64)], name: &ast::Word) -> Option<Type> {
        let (first, _) = types.first()?;
        if types.iter().all(|(ty, _)| ty == first && *ty != Type::Uint { bits: 64 }) {
            return Some(first.clone());
        }
        if types.iter().all(|(ty, _)| is_address(ty)) {
            return Some(Type::Ip);
        }
        if types.iter().all(|(ty, _)| number_bits(&self.program, ty).is_some()) {
            let bound = types.iter().map(|&(_, bound)| bound).max().unwrap_or(0);
            let plain = types.iter().filter(|(ty, _)| *ty != Type::Uint { bits: 64 });
            let widest = plain.filter_map(|(ty, _)| number_bits(&self.program, ty)).max().unwrap_or(0);
            return Some(Type::Uint { bits: widest.max(width_of(bound)) });
        }
        let kinds: Vec<_> = types.iter().map(|(ty, _)| describe(&self.program, ty)).collect();
        let title = format!("the sources of `{}` are of different kinds", name.text);
        self.report(Diagnostic::error(codes::TYPE_MISMATCH, title, name.span, kinds.join(", ")));
        None
    }
}
