//! Options in paths: `tcp.option(mss)`, its `.len`, `tcp.mss`, `tcp.options`.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, PathStep, PathStepKind, Word};

use crate::checker::{Checker, Env};
use crate::path::{Place, bare_word};
use crate::suggest::nearest;
use crate::typed::{
    BytesOf, ExprKind, Field, HeaderId, Instance, OptionAsk, OptionDecl, OptionRef, Options, Type,
};
use crate::types::{max_of, number_bits};

impl<'a> Checker<'a> {
    /// The headers in whose lists a header's options stand: itself, or those of `options from`.
    fn lists_of(&self, header: HeaderId) -> Vec<(HeaderId, &Options)> {
        let declared = &self.program.headers[header];
        let headers = match declared.options {
            Some(_) => std::slice::from_ref(&header),
            None => &declared.options_from,
        };
        let lists = headers.iter().filter_map(|&id| Some((id, self.program.headers[id].options.as_ref()?)));
        lists.collect()
    }

    /// Whether a header's options are declared.
    pub(crate) fn has_options(&self, header: HeaderId) -> bool {
        !self.lists_of(header).is_empty()
    }

    /// `h.option(KIND)`, with or without `.len`.
    pub(crate) fn option_place(
        &mut self,
        instance: Instance,
        name: &str,
        word: &Word,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<Place<'a>> {
        let Some((PathStep { kind: PathStepKind::Call(args), .. }, rest)) = steps.split_first() else {
            self.which_option(name, word.span);
            return None;
        };
        let [kind] = args.as_slice() else {
            self.which_option(name, word.span);
            return None;
        };
        let option = OptionRef { instance, kind: self.option_kind(instance.header, name, kind, env)? };
        match rest.split_first() {
            None => Some(Place::Value(ExprKind::Option { option, ask: OptionAsk::Present }, Type::Bool)),
            Some((PathStep { kind: PathStepKind::Dot(len), .. }, rest)) if len.text == "len" => {
                self.end_of_path(rest, "a number")?;
                let kind = ExprKind::Option { option, ask: OptionAsk::Length };
                Some(Place::Value(kind, Type::Uint { bits: 16 }))
            }
            Some((step, _)) => {
                let title = "an option has a length, and values under their own names";
                let help = format!("write `{name}.option(…).len`, or `{name}.VALUE`");
                let diagnostic =
                    Diagnostic::error(codes::UNKNOWN_FIELD, title, step.span, "an option has no such part");
                self.report(diagnostic.with_help(help));
                None
            }
        }
    }

    fn which_option(&mut self, name: &str, span: Span) {
        let title = "which option?";
        let diagnostic = Diagnostic::error(codes::UNKNOWN_FIELD, title, span, "one name or kind is needed")
            .with_help(format!("write `{name}.option(KIND)`, with a declared name or a number"));
        self.report(diagnostic);
    }

    /// The kind that a declared option's name or a number means.
    fn option_kind(
        &mut self,
        header: HeaderId,
        name: &str,
        kind: &'a ast::Expr,
        env: &Env<'a>,
    ) -> Option<u64> {
        let lists = self.lists_of(header);
        let named = |word: &str| {
            let mut options = lists.iter().flat_map(|(_, list)| &list.options);
            options.find(|option| option.name == word).map(|option| option.kind)
        };
        if let Some(found) = bare_word(kind).and_then(named) {
            return Some(found);
        }
        let widths =
            lists.iter().filter_map(|(_, list)| number_bits(&self.program, &list.fields.get(list.kind)?.ty));
        let max = widths.map(max_of).max().unwrap_or(0);
        let known: Vec<_> = lists
            .iter()
            .flat_map(|(_, list)| list.options.iter().map(|option| option.name.clone()))
            .collect();
        if let Some(word) = bare_word(kind)
            && self.quietly(|checker| checker.constant_number(kind, env)).is_none()
        {
            let near = nearest(word, known.iter().map(String::as_str));
            self.unknown(&format!("option `{word}` of `{name}`"), kind.span, near);
            return None;
        }
        let number = self.constant_number(kind, env)?;
        if number > max {
            let title = format!("{number} is no kind of an option");
            let label = format!("kinds go up to {max}");
            self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, kind.span, label));
            return None;
        }
        Some(number)
    }

    /// `h.options`: its bytes, or whether the list is broken.
    pub(crate) fn options_place(
        &mut self,
        instance: Instance,
        name: &str,
        word: &Word,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<Place<'a>> {
        if let Some((PathStep { kind: PathStepKind::Dot(last), .. }, rest)) = steps.split_first()
            && last.text == "malformed"
        {
            self.end_of_path(rest, "a condition")?;
            return Some(Place::Value(ExprKind::OptionsMalformed(instance), Type::Bool));
        }
        let header = &self.program.headers[instance.header];
        if header.options.is_none() {
            let from = header.options_from.iter().map(|&id| self.program.headers[id].name.as_str());
            let from = from.map(|from| format!("`{from}.options`")).collect::<Vec<_>>().join(" and ");
            let title = format!("the options of `{name}` stand in several headers");
            let diagnostic = Diagnostic::error(codes::UNKNOWN_FIELD, title, word.span, "which bytes?");
            self.report(diagnostic.with_help(format!("ask for {from}")));
            return None;
        }
        self.bytes_place(BytesOf::Options(instance), "options", steps, env)
    }

    /// `h.mss`: a value that an option declares; `None` if none does.
    pub(crate) fn option_value(
        &mut self,
        instance: Instance,
        word: &Word,
        steps: &'a [PathStep],
    ) -> Option<Option<Place<'a>>> {
        let mut found: Vec<(HeaderId, usize, usize)> = Vec::new();
        for (list, options) in self.lists_of(instance.header) {
            for (at, option) in options.options.iter().enumerate() {
                let fields = option.fields.iter().enumerate();
                let named = fields.filter(|(_, field)| field.name.as_deref() == Some(&word.text));
                found.extend(named.map(|(field, _)| (list, at, field)));
            }
        }
        let &(list, option, field) = found.first()?;
        let (declared, value) = self.declared_value(list, option, field)?;
        let (kind, ty) = (declared.kind, value.ty.clone());
        let is_ambiguous = found.iter().skip(1).any(|&(list, option, field)| {
            self.declared_value(list, option, field).is_none_or(|(other, it)| {
                other.kind != kind || it.position != value.position || it.ty != value.ty
            })
        });
        if is_ambiguous {
            let title = format!("`{}` is declared by several options", word.text);
            let diagnostic = Diagnostic::error(codes::NAME_CLASH, title, word.span, "of which of them?")
                .with_help("ask for it by the header in whose list it stands");
            self.report(diagnostic);
            return Some(None);
        }
        let ended = self.end_of_path(steps, "a field");
        let option_ref = OptionRef { instance, kind };
        let kind = ExprKind::Option { option: option_ref, ask: OptionAsk::Value { list, option, field } };
        Some(ended.map(|()| Place::Value(kind, ty)))
    }

    fn declared_value(&self, list: HeaderId, option: usize, field: usize) -> Option<(&OptionDecl, &Field)> {
        let declared = self.program.headers[list].options.as_ref()?.options.get(option)?;
        Some((declared, declared.fields.get(field)?))
    }
}
