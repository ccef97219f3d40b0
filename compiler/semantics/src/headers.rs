//! Header declarations: fields first, so that all headers know each other's, then everything that has
//! expressions.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, HeaderItem, HeaderItemKind, TypeKind};

use crate::checker::{Checker, Env, Own};
use crate::names::{Space, SymbolKind};
use crate::path::bare_word;
use crate::structure::walk;
use crate::suggest::nearest;
use crate::typed::{
    Checksum, ChecksumPart, Claim, Expr, ExprKind, Field, FieldDefault, HeaderId, Position, Type, Value,
};
use crate::types::{describe, number_bits};

/// How often a header may repeat: every instance has its own place in generated code.
const MAX_REPEATS: u64 = 32;

impl<'a> Checker<'a> {
    /// Fills the headers' fields: names, types, widths.
    pub(crate) fn header_fields(&mut self) {
        for (id, unit, header) in self.decls.headers.clone() {
            for item in &header.items {
                match &item.kind {
                    HeaderItemKind::Field(field) => {
                        let field = self.field(field, &item.doc, unit);
                        self.add_field(id, field);
                    }
                    HeaderItemKind::Repeats(count) => self.repeats(id, *count, item.span),
                    _ => {}
                }
            }
            for item in &header.items {
                if let HeaderItemKind::View { name, ty, .. } = &item.kind {
                    let view = ast::Field { name: name.clone(), ty: ty.clone(), default: None, when: None };
                    let field = Field { is_view: true, ..self.field(&view, &item.doc, unit) };
                    self.add_field(id, field);
                }
            }
        }
    }

    /// A field without what has expressions. After a mistake in its type it counts as a byte.
    pub(crate) fn field(&mut self, field: &ast::Field, doc: &str, unit: usize) -> Field {
        let ty =
            self.ty(&field.ty, unit).map(|ty| if ty == Type::Bool { Type::Uint { bits: 1 } } else { ty });
        let length = match &field.ty.kind {
            TypeKind::Named { length, .. } => length.map_or(0, |length| length as u32),
            TypeKind::Tuple(_) => 0,
        };
        let (ty, bits) = match ty {
            Some(Type::Ip | Type::Tuple(_)) => {
                self.no_layout(field.ty.span);
                (Type::Uint { bits: 8 }, 8)
            }
            Some(ty) => {
                let bits = match ty {
                    Type::Mac => 48,
                    Type::Ipv4 => 32,
                    Type::Ipv6 => 128,
                    Type::Bytes => 8 * length,
                    _ => number_bits(&self.program, &ty).map_or(8, u32::from),
                };
                (ty, bits)
            }
            None => (Type::Uint { bits: 8 }, 8),
        };
        Field {
            name: (field.name.text != "_").then(|| field.name.text.clone()),
            doc: doc.to_owned(),
            span: field.name.span,
            ty,
            bits,
            position: Position::Start { bits: 0, plus: Vec::new() },
            is_view: false,
            when: None,
            default: FieldDefault::Zero,
        }
    }

    fn no_layout(&mut self, span: Span) {
        let title = format!("`{}` has no width, so it cannot be a field", self.text(span));
        let diagnostic = Diagnostic::error(codes::BAD_LAYOUT, title, span, "no width")
            .with_help("a field is `ipv4_addr` or `ipv6_addr`; a union has fields of both");
        self.report(diagnostic);
    }

    fn add_field(&mut self, id: HeaderId, field: Field) {
        let fields = &self.program.headers[id].fields;
        let other = fields.iter().find(|other| other.name.is_some() && other.name == field.name);
        if let Some(other) = other.map(|other| other.span) {
            let title = format!("the field `{}` is declared twice", field.name.as_deref().unwrap_or("_"));
            let diagnostic = Diagnostic::error(codes::NAME_CLASH, title, field.span, "again here")
                .with_label(other, "first here");
            self.report(diagnostic);
        }
        self.program.headers[id].fields.push(field);
    }

    fn repeats(&mut self, id: HeaderId, count: u64, span: Span) {
        if (1..=MAX_REPEATS).contains(&count) {
            self.program.headers[id].repeats = count as u32;
            return;
        }
        let title = format!("a header cannot repeat {count} times");
        let label = format!("1 to {MAX_REPEATS}");
        self.report(Diagnostic::error(codes::BAD_PART, title, span, label));
    }

    /// Fills everything in headers that has expressions.
    pub(crate) fn header_parts(&mut self) {
        let headers = std::mem::take(&mut self.decls.headers);
        for &(id, unit, header) in &headers {
            let env = Env { own: Some(Own::Header(id)), ..Self::env(unit) };
            self.field_details(id, header, &env);
            self.lay_out_header(id);
            self.views(id, header);
            self.reject_doubles(header);
            for item in &header.items {
                self.header_part(id, item, &env);
            }
            self.check_needs(id, header);
        }
    }

    fn field_details(&mut self, id: HeaderId, header: &'a ast::Header, env: &Env<'a>) {
        let fields = header.items.iter().filter_map(|item| match &item.kind {
            HeaderItemKind::Field(field) => Some(field),
            _ => None,
        });
        for (index, field) in fields.enumerate() {
            let ty = self.program.headers[id].fields[index].ty.clone();
            let (when, default) = self.field_expressions(field, &ty, env);
            let when = when.filter(|when| self.reads_before(when, header, index));
            let typed = &mut self.program.headers[id].fields[index];
            typed.when = when;
            typed.default = default;
        }
    }

    /// Whether a field's `when` reads only what lies in front of the field; reports what does not: where the
    /// field starts would depend on itself.
    fn reads_before(&mut self, when: &Expr, header: &ast::Header, index: usize) -> bool {
        let fields: Vec<&ast::Word> = header
            .items
            .iter()
            .filter_map(|item| match &item.kind {
                HeaderItemKind::Field(field) => Some(&field.name),
                _ => None,
            })
            .collect();
        let views = header.items.iter().filter_map(|item| match &item.kind {
            HeaderItemKind::View { last, .. } => Some(last),
            _ => None,
        });
        let ends: Vec<usize> = views
            .map(|last| fields.iter().position(|field| field.text == last.text).unwrap_or(usize::MAX))
            .collect();
        let mut wrong = None;
        walk(when, &mut |part| {
            let is_before = match part.kind {
                ExprKind::Own(field) => ends.get(field.wrapping_sub(fields.len())).unwrap_or(&field) < &index,
                ExprKind::OwnPayload { .. } => false,
                _ => true,
            };
            if !is_before {
                wrong = wrong.or(Some(part.span));
            }
        });
        if let Some(span) = wrong {
            let title = "a field's `when` cannot read what lies behind its start";
            let diagnostic =
                Diagnostic::error(codes::BAD_LAYOUT, title, span, "read before it is known where it lies")
                    .with_note("where the field starts would depend on the field itself");
            self.report(diagnostic);
        }
        wrong.is_none()
    }

    /// A field's `when` and default.
    pub(crate) fn field_expressions(
        &mut self,
        field: &'a ast::Field,
        ty: &Type,
        env: &Env<'a>,
    ) -> (Option<Expr>, FieldDefault) {
        let when = field.when.as_ref().and_then(|when| self.condition(when, env));
        let default = match &field.default {
            None => FieldDefault::Zero,
            Some(default) => self.field_default(default, ty, env).unwrap_or(FieldDefault::Zero),
        };
        (when, default)
    }

    fn field_default(&mut self, expr: &'a ast::Expr, ty: &Type, env: &Env<'a>) -> Option<FieldDefault> {
        if let ast::ExprKind::Path(path) = &expr.kind
            && let [ast::PathStep { kind: ast::PathStepKind::Call(parts), .. }] = path.steps.as_slice()
        {
            return self.checksum(&path.head, parts);
        }
        let value = self.field_constant(expr, ty, env)?;
        Some(FieldDefault::Value(value))
    }

    /// A constant for a field of type `ty`.
    pub(crate) fn field_constant(&mut self, expr: &'a ast::Expr, ty: &Type, env: &Env<'a>) -> Option<Value> {
        let hint = match ty {
            Type::Enum(hint) => Some(*hint),
            _ => None,
        };
        let checked = self.expression(expr, hint, env)?;
        let checked = match (&checked.kind, ty) {
            (ExprKind::Const(Value::Bool(value)), Type::Uint { bits: 1 }) => {
                let kind = ExprKind::Const(Value::Uint(u64::from(*value)));
                Expr { kind, ty: ty.clone(), ..checked }
            }
            _ => checked,
        };
        let converted = self.convert(checked, ty, "the field")?;
        match converted.kind {
            ExprKind::Const(value) => Some(value),
            _ => {
                let title = format!("`{}` is not known when compiling", self.text(expr.span));
                let label = "a constant is needed here";
                self.report(Diagnostic::error(codes::NOT_CONSTANT, title, expr.span, label));
                None
            }
        }
    }

    fn checksum(&mut self, name: &ast::Word, parts: &'a [ast::Expr]) -> Option<FieldDefault> {
        const KINDS: [(&str, Checksum); 3] = [
            ("internet", Checksum::Internet),
            ("internet_or_none", Checksum::InternetOrNone),
            ("crc32c", Checksum::Crc32c),
        ];
        const PARTS: [(&str, ChecksumPart); 3] = [
            ("pseudo", ChecksumPart::Pseudo),
            ("header", ChecksumPart::Header),
            ("payload", ChecksumPart::Payload),
        ];
        let kind = KINDS.iter().find(|(known, _)| *known == name.text).map(|&(_, kind)| kind);
        if kind.is_none() {
            let near = nearest(&name.text, KINDS.map(|(known, _)| known));
            self.unknown(&format!("checksum `{}`", name.text), name.span, near);
        }
        let mut over = Vec::new();
        for part in parts {
            let word = bare_word(part);
            match PARTS.iter().find(|(known, _)| Some(*known) == word) {
                Some(&(_, part)) => over.push(part),
                None => {
                    let title = "a checksum covers `pseudo`, `header` and `payload`";
                    self.report(Diagnostic::error(codes::BAD_PART, title, part.span, "not one of these"));
                }
            }
        }
        Some(FieldDefault::Checksum { kind: kind?, over })
    }

    fn views(&mut self, id: HeaderId, header: &'a ast::Header) {
        for item in &header.items {
            let HeaderItemKind::View { name, first, last, .. } = &item.kind else { continue };
            let first = self.own_field(id, first);
            let last = self.own_field(id, last);
            let (Some(first), Some(last)) = (first, last) else { continue };
            let fields = self.program.headers[id].fields.clone();
            if first > last {
                let title = "a view goes from its first bit on the wire to its last";
                let diagnostic =
                    Diagnostic::error(codes::BAD_LAYOUT, title, item.span, "the other way round");
                self.report(diagnostic);
                continue;
            }
            let Some((position, bits)) = self.view(&fields, first, last, item.span) else { continue };
            let Some(view) = fields.iter().position(|f| f.is_view && f.span == name.span) else { continue };
            if fields[view].bits != bits {
                let title = format!("the view `{}` is not as wide as what it covers", name.text);
                let label = format!("{bits} bits are covered, the type has {}", fields[view].bits);
                self.report(Diagnostic::error(codes::BAD_LAYOUT, title, item.span, label));
                continue;
            }
            let when = fields[first].when.clone();
            let view = &mut self.program.headers[id].fields[view];
            view.position = position;
            view.when = when;
        }
    }

    fn own_field(&mut self, id: HeaderId, name: &ast::Word) -> Option<usize> {
        let header = &self.program.headers[id];
        let found = header.fields.iter().position(|field| field.name.as_deref() == Some(&name.text));
        if found.is_none() {
            let known = header.fields.iter().filter_map(|field| field.name.as_deref());
            let near = nearest(&name.text, known).map(str::to_owned);
            self.unknown(&format!("field `{}` in this header", name.text), name.span, near.as_deref());
        }
        found
    }

    fn reject_doubles(&mut self, header: &'a ast::Header) {
        let mut seen: Vec<(&str, Span)> = Vec::new();
        for item in &header.items {
            let part = match &item.kind {
                HeaderItemKind::Length(_) => "length",
                HeaderItemKind::Needs(_) => "needs",
                HeaderItemKind::Repeats(_) => "repeats",
                HeaderItemKind::Options { .. } | HeaderItemKind::OptionsFrom(_) => "options",
                HeaderItemKind::Field(_)
                | HeaderItemKind::Claims { .. }
                | HeaderItemKind::Valid(_)
                | HeaderItemKind::View { .. }
                | HeaderItemKind::NextBy { .. }
                | HeaderItemKind::Next { .. } => continue,
            };
            if let Some((_, first)) = seen.iter().find(|(known, _)| *known == part) {
                let title = format!("a header has one `{part}`");
                let diagnostic = Diagnostic::error(codes::BAD_PART, title, item.span, "a second one")
                    .with_label(*first, "the first");
                self.report(diagnostic);
            }
            seen.push((part, item.span));
        }
    }

    fn header_part(&mut self, id: HeaderId, item: &'a HeaderItem, env: &Env<'a>) {
        match &item.kind {
            HeaderItemKind::Field(_)
            | HeaderItemKind::View { .. }
            | HeaderItemKind::Repeats(_)
            | HeaderItemKind::Needs(_) => {}
            HeaderItemKind::Length(expr) => {
                let length = self.own_number(expr, env);
                self.program.headers[id].length = length;
            }
            HeaderItemKind::Claims { value, when } => {
                let value = self.own_number(value, env);
                let when = self.own_condition(when.as_ref(), env);
                if let (Some(value), Some(when)) = (value, when) {
                    self.program.headers[id].claims.push(Claim { value, when });
                }
            }
            HeaderItemKind::Valid(expr) => {
                let valid = self.condition(expr, env);
                self.program.headers[id].valid.extend(valid);
            }
            HeaderItemKind::Options { by, items } => {
                let options = self.options(by, items, env);
                self.reject_rest(id, by.span);
                self.program.headers[id].options = options;
            }
            HeaderItemKind::OptionsFrom(names) => {
                for name in names {
                    let found = self.header_named(name, env.unit);
                    self.program.headers[id].options_from.extend(found);
                }
            }
            HeaderItemKind::NextBy { scope, by, alias, when, edges } => {
                let when = self.own_condition(when.as_ref(), env);
                let by = crate::edges::NextBy { scope: *scope, by, alias: alias.as_ref(), edges };
                if let Some(when) = when {
                    self.next_by(id, &by, when.as_ref(), item.span, env);
                }
            }
            HeaderItemKind::Next { target, when } => {
                let when = self.own_condition(when.as_ref(), env);
                if let Some(when) = when {
                    self.next_always(id, target, when, item.span, env);
                }
            }
        }
    }

    /// Reports a field that takes all that is left where an option list does.
    fn reject_rest(&mut self, id: HeaderId, options: Span) {
        let fields = self.program.headers[id].fields.iter();
        if let Some(rest) = fields.filter(|field| field.bits == 0).map(|field| field.span).next() {
            let title = "an option list takes what is left of the header";
            let diagnostic = Diagnostic::error(codes::BAD_LAYOUT, title, options, "here")
                .with_label(rest, "and so does this field");
            self.report(diagnostic);
        }
    }

    /// An optional `when`: `None` after a mistake, `Some(None)` where there is none.
    fn own_condition(&mut self, when: Option<&'a ast::Expr>, env: &Env<'a>) -> Option<Option<Expr>> {
        match when {
            Some(when) => self.condition(when, env).map(Some),
            None => Some(None),
        }
    }

    /// A number in a declaration: `length`, `claims`, an option's length.
    pub(crate) fn own_number(&mut self, expr: &'a ast::Expr, env: &Env<'a>) -> Option<Expr> {
        let checked = self.expression(expr, None, env)?;
        if number_bits(&self.program, &checked.ty).is_some() {
            return Some(checked);
        }
        let what = describe(&self.program, &checked.ty);
        let title = "a length is a number of bytes";
        self.report(Diagnostic::error(codes::TYPE_MISMATCH, title, expr.span, format!("this is {what}")));
        None
    }

    /// The header of this name.
    pub(crate) fn header_named(&mut self, name: &ast::Word, unit: usize) -> Option<HeaderId> {
        self.expect_symbol(Space::Value, unit, name, "header", |kind| match kind {
            SymbolKind::Header(id) => Some(*id),
            _ => None,
        })
    }

    fn check_needs(&mut self, id: HeaderId, header: &'a ast::Header) {
        for item in &header.items {
            let HeaderItemKind::Needs(bytes) = &item.kind else { continue };
            let fixed = self.program.headers[id].fixed_bytes;
            if *bytes == 0 || *bytes > u64::from(fixed) {
                let title = "`needs` says how many of the header's bytes make it present";
                let label = format!("1 to {fixed}: the bytes that are always there");
                self.report(Diagnostic::error(codes::BAD_PART, title, item.span, label));
                continue;
            }
            self.program.headers[id].needs = Some(*bytes as u32);
        }
    }
}
