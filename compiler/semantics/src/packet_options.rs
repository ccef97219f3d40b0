//! Options in the packets of tests: `tcp(options: [mss(1460), nop, option(77, "ab")])`.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, Arg, ArgKind};

use crate::checker::Checker;
use crate::suggest::nearest;
use crate::typed::{Field, FieldIndex, HeaderId, Options, PacketOption, Value};
use crate::types::{max_of, number_bits};

impl<'a> Checker<'a> {
    /// The options of a header in a packet.
    pub(crate) fn packet_options(
        &mut self,
        header: HeaderId,
        name: &ast::Word,
        layers: &'a [ast::Layer],
        unit: usize,
    ) -> Option<Vec<PacketOption>> {
        let declared = &self.program.headers[header];
        let Some(list) = declared.options.clone().filter(|_| name.text == "options") else {
            let title = format!("`{}` has no list `{}` of its own", declared.name, name.text);
            let from = declared.options_from.iter().map(|&id| self.program.headers[id].name.as_str());
            let from: Vec<_> = from.map(|from| format!("`{from}(options: […])`")).collect();
            let mut diagnostic = Diagnostic::error(codes::BAD_LAYER, title, name.span, "no such list");
            if !from.is_empty() {
                diagnostic = diagnostic.with_help(format!("put {} behind it", from.join(" or ")));
            }
            self.report(diagnostic);
            return None;
        };
        let options: Vec<_> = layers.iter().map(|layer| self.packet_option(&list, layer, unit)).collect();
        options.into_iter().collect()
    }

    fn packet_option(&mut self, list: &Options, layer: &'a ast::Layer, unit: usize) -> Option<PacketOption> {
        let name = layer.name.text.as_str();
        let declared = list.options.iter().position(|option| option.name == name);
        let (kind, args): (u64, &'a [Arg]) = match declared {
            Some(at) => (list.options[at].kind, &layer.args),
            None if name == "option" => self.option_by_kind(list, layer, unit)?,
            None => {
                let near = nearest(name, list.options.iter().map(|option| option.name.as_str()));
                self.unknown(&format!("option `{name}`"), layer.name.span, near);
                return None;
            }
        };
        let mut option = PacketOption {
            kind,
            declared,
            fields: Vec::new(),
            values: Vec::new(),
            content: Vec::new(),
            span: layer.span,
        };
        let values = declared.map_or(&[][..], |at| list.options[at].fields.as_slice());
        let mut is_whole = true;
        for arg in args {
            is_whole &= self.option_arg(list, values, arg, unit, &mut option).is_some();
        }
        is_whole.then_some(option)
    }

    /// `option(77, "ab")`: the kind, and what else is given.
    fn option_by_kind(
        &mut self,
        list: &Options,
        layer: &'a ast::Layer,
        unit: usize,
    ) -> Option<(u64, &'a [Arg])> {
        let Some((Arg { kind: ArgKind::Value(kind), .. }, rest)) = layer.args.split_first() else {
            let diagnostic =
                Diagnostic::error(codes::BAD_LAYER, "`option` takes a kind", layer.span, "of which kind?")
                    .with_help("write `option(77, \"ab\")`");
            self.report(diagnostic);
            return None;
        };
        let number = self.constant_number(kind, &Self::env(unit))?;
        let width = list.fields.get(list.kind).and_then(|field| number_bits(&self.program, &field.ty));
        if number > max_of(width.unwrap_or(8)) {
            let title = format!("{number} is no kind of an option");
            self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, kind.span, "too large"));
            return None;
        }
        Some((number, rest))
    }

    /// One argument: bytes, the next value, or a field by its name.
    fn option_arg(
        &mut self,
        list: &Options,
        values: &[Field],
        arg: &'a Arg,
        unit: usize,
        option: &mut PacketOption,
    ) -> Option<()> {
        match &arg.kind {
            ArgKind::Value(value) if option.values.len() < values.len() => {
                let field = option.values.len();
                let value = self.option_constant(&values[field], value, unit)?;
                option.values.push((field, value));
            }
            ArgKind::Value(ast::Expr { kind: ast::ExprKind::String(bytes), .. }) => {
                option.content.extend(bytes);
            }
            ArgKind::Named { name, value } => {
                let find = |fields: &[Field]| {
                    fields.iter().position(|field| field.name.as_deref() == Some(&name.text))
                };
                let (field, declared, into): (FieldIndex, &Field, &mut Vec<(FieldIndex, Value)>) =
                    match (find(values), find(&list.fields)) {
                        (Some(at), _) => (at, &values[at], &mut option.values),
                        (None, Some(at)) => (at, &list.fields[at], &mut option.fields),
                        (None, None) => {
                            self.no_option_value(name.span, &name.text);
                            return None;
                        }
                    };
                into.push((field, self.option_constant(declared, value, unit)?));
            }
            ArgKind::Value(_) | ArgKind::List { .. } => {
                let title = "this option has no such value";
                let diagnostic = Diagnostic::error(codes::BAD_LAYER, title, arg.span, "of which value?")
                    .with_help("bytes are written as a text: `sack(\"\\x01\\x02\")`");
                self.report(diagnostic);
                return None;
            }
        }
        Some(())
    }

    fn no_option_value(&mut self, span: Span, name: &str) {
        let title = format!("this option has no value `{name}`");
        self.report(Diagnostic::error(codes::UNKNOWN_FIELD, title, span, "no such value"));
    }

    fn option_constant(&mut self, field: &Field, value: &'a ast::Expr, unit: usize) -> Option<Value> {
        let constant = self.field_constant(value, &field.ty, &Self::env(unit))?;
        if let Value::Bytes(bytes) = &constant
            && bytes.len() as u64 * 8 != u64::from(field.bits)
        {
            let title = format!("this value has {} bytes", field.bits / 8);
            let label = format!("{} bytes", bytes.len());
            self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, value.span, label));
            return None;
        }
        Some(constant)
    }
}
