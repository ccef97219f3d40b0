//! Option lists in header declarations.

use pktc_diagnostics::{Diagnostic, codes};
use pktc_syntax::ast::{self, OptionItem, Word};

use crate::checker::{Checker, Env, Own};
use crate::expr::truth;
use crate::typed::{Expr, Field, OptionDecl, Options, Position};

impl<'a> Checker<'a> {
    /// `options by kind { … }`
    pub(crate) fn options(
        &mut self,
        by: &'a Word,
        items: &'a [OptionItem],
        env: &Env<'a>,
    ) -> Option<Options> {
        let mut fields = Vec::new();
        for item in items {
            if let OptionItem::Field(field) = item {
                fields.push(self.option_field(field, env));
            }
        }
        self.lay_out(&mut fields);
        let kind = fields.iter().position(|field| field.name.as_deref() == Some(&by.text));
        if kind.is_none() {
            self.unknown(&format!("field `{}` in these options", by.text), by.span, None);
        }
        let length = self.option_length(by, items, env);
        // A stand-in after a mistake, so that the items are looked at all the same.
        let is_whole = kind.is_some() && length.is_some();
        let mut list = Options {
            fields,
            kind: kind.unwrap_or(0),
            length: length.unwrap_or_else(|| truth(false, by.span)),
            end: Vec::new(),
            pad: Vec::new(),
            options: Vec::new(),
        };
        for item in items {
            self.option_item(&mut list, item, env);
        }
        is_whole.then_some(list)
    }

    /// A field of an option: always there, and of a fixed length.
    fn option_field(&mut self, field: &'a ast::Field, env: &Env<'a>) -> Field {
        let typed = self.field(field, "", env.unit);
        if let Some(when) = &field.when {
            let title = "a field of an option is always there";
            let diagnostic = Diagnostic::error(codes::BAD_LAYOUT, title, when.span, "not only sometimes")
                .with_note("a value is missing where its option has another length");
            self.report(diagnostic);
        }
        if typed.bits == 0 {
            let title = "a field of an option has a fixed length";
            self.report(Diagnostic::error(codes::BAD_LAYOUT, title, field.ty.span, "how many bytes?"));
        }
        typed
    }

    fn option_length(&mut self, by: &Word, items: &'a [OptionItem], env: &Env<'a>) -> Option<Expr> {
        let mut fields = Vec::new();
        let mut length = None;
        for item in items {
            match item {
                // A second look at the types, whose mistakes are reported already.
                OptionItem::Field(field) => {
                    fields.push(self.quietly(|checker| checker.field(field, "", env.unit)));
                }
                OptionItem::Length(expr) => length = Some(expr),
                OptionItem::End { .. } | OptionItem::Pad { .. } | OptionItem::Option { .. } => {}
            }
        }
        let Some(length) = length else {
            let title = "the length of these options is missing";
            let diagnostic = Diagnostic::error(codes::BAD_PART, title, by.span, "how long is an option?")
                .with_help("add `length len;`, in bytes, with kind and length");
            self.report(diagnostic);
            return None;
        };
        let inside = Env { own: Some(Own::Option(fields.into())), ..Self::env(env.unit) };
        self.own_number(length, &inside)
    }

    fn option_item(&mut self, list: &mut Options, item: &'a OptionItem, env: &Env<'a>) {
        match item {
            OptionItem::Field(_) | OptionItem::Length(_) => {}
            OptionItem::End { kind, name } => {
                list.end.push(*kind);
                self.declare_option(list, *kind, name.as_ref(), &[], env);
            }
            OptionItem::Pad { kind, name } => {
                list.pad.push(*kind);
                self.declare_option(list, *kind, name.as_ref(), &[], env);
            }
            OptionItem::Option { kind, name, fields } => {
                self.declare_option(list, *kind, Some(name), fields, env);
            }
        }
    }

    fn declare_option(
        &mut self,
        list: &mut Options,
        kind: u64,
        name: Option<&Word>,
        fields: &'a [ast::Field],
        env: &Env<'a>,
    ) {
        let Some(name) = name else { return };
        if list.options.iter().any(|option| option.name == name.text || option.kind == kind) {
            let title = format!("the option `{}` or its kind {kind} is declared twice", name.text);
            self.report(Diagnostic::error(codes::NAME_CLASH, title, name.span, "again here"));
            return;
        }
        let start: u32 = list.fields.iter().map(|field| field.bits).sum();
        let mut values: Vec<Field> = fields.iter().map(|field| self.option_field(field, env)).collect();
        self.lay_out(&mut values);
        for value in &mut values {
            if let Position::Start { bits, .. } = &mut value.position {
                *bits += start;
            }
        }
        list.options.push(OptionDecl { name: name.text.clone(), kind, fields: values });
    }
}
