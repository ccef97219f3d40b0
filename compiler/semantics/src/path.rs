//! What a path means: `vlan[1].vid`, `udp.payload[0..4]`, `ip.src`, `near(80)`.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, Path, PathStep, PathStepKind, Word};

use crate::checker::{Checker, Env, Own};
use crate::dump::scope_text;
use crate::names::{Space, Symbol, SymbolId, SymbolKind};
use crate::suggest::nearest;
use crate::typed::{
    BytesOf, ExprKind, HeaderId, Index, Instance, Malformed, PacketField, Scope, SetId, Type, UnionId,
    UnionInstance,
};

/// The most bytes of a slice that are also a number.
pub(crate) const NUMBER_BYTES: u32 = 8;

/// What a path stands for.
pub(crate) enum Place<'a> {
    /// A field, presence, a property: an expression already.
    Value(ExprKind, Type),
    /// A constant.
    Const(SymbolId),
    /// A definition with its arguments.
    Def(SymbolId, &'a [ast::Expr]),
    /// A definition's parameter.
    Param(usize),
    /// A set.
    Set(SetId),
    /// Something that is no value: an enum, a counter ….
    Other(&'static str),
}

impl<'a> Checker<'a> {
    /// Resolves a path, or reports why it means nothing.
    pub(crate) fn place(&mut self, path: &'a Path, span: Span, env: &Env<'a>) -> Option<Place<'a>> {
        let head = path.head.text.as_str();
        if let Some(at) = env.params.iter().rposition(|(name, _)| *name == head) {
            self.end_of_path(&path.steps, "a parameter")?;
            return Some(Place::Param(at));
        }
        if let Some(own) = &env.own
            && let Some(place) = self.own_place(path, own, env)
        {
            return place;
        }
        match head {
            "pkt" => return self.packet_place(path, span),
            "malformed" if path.steps.is_empty() => return Some(packet_malformed(Scope::default())),
            "inner" | "quoted" => return self.nested_place(path, span, env),
            "hash" | "prefix"
                if matches!(path.steps.first().map(|s| &s.kind), Some(PathStepKind::Call(_))) =>
            {
                self.not_yet(&format!("`{head}(…)`"), span);
                return None;
            }
            _ => {}
        }
        let (id, steps) = self.head_symbol(&path.head, &path.steps, env)?;
        self.symbol_place(id, &path.head, steps, env)
    }

    /// `inner.` and `quoted.`: a header or union in a tunnel's packet, or in one that an ICMP error quotes.
    fn nested_place(&mut self, path: &'a Path, span: Span, env: &Env<'a>) -> Option<Place<'a>> {
        if env.own.is_some() {
            let title = "a header's declaration cannot ask what it leads to";
            let label = "this packet is read after it";
            self.report(Diagnostic::error(codes::BAD_PART, title, span, label));
            return None;
        }
        let (scope, head, steps) = self.scope_of(path)?;
        if head.text == "malformed" && steps.is_empty() {
            return Some(packet_malformed(scope));
        }
        let (id, steps) = self.head_symbol(head, steps, env)?;
        match self.symbols[id].kind {
            SymbolKind::Header(header) => self.header_place(header, scope, steps, env),
            SymbolKind::Union(union) => self.union_place(union, scope, steps, env),
            SymbolKind::Later(_) => None,
            kind => {
                let (name, what) = (&head.text, kind.describe());
                let title = format!("`{name}` is {what}, and no packet has it");
                let diagnostic = Diagnostic::error(codes::WRONG_NAME, title, head.span, "not a header")
                    .with_help(format!("behind `{}` stands a header, or `malformed`", scope_text(scope)));
                self.report(diagnostic);
                None
            }
        }
    }

    /// Which packet a path is about, and what stands behind its `inner.` and `quoted.`.
    fn scope_of(&mut self, path: &'a Path) -> Option<(Scope, &'a Word, &'a [PathStep])> {
        let (mut scope, mut head, mut steps) = (Scope::default(), &path.head, path.steps.as_slice());
        loop {
            let kind = match head.text.as_str() {
                "inner" => ast::Scope::Inner,
                "quoted" => ast::Scope::Quoted,
                _ => return Some((scope, head, steps)),
            };
            let Some(opened) = scope.opened(kind) else {
                let title = "this packet lies too deep to be asked for";
                let note = format!("tunnels are read to depth {}, then one quoted packet", Scope::MAX_INNER);
                let diagnostic = Diagnostic::error(codes::BAD_INDEX, title, head.span, "one packet too many");
                self.report(diagnostic.with_note(note));
                return None;
            };
            let Some((PathStep { kind: PathStepKind::Dot(next), .. }, rest)) = steps.split_first() else {
                let title = format!("`{}` alone is no value", head.text);
                let help = format!("ask for what is in that packet: `{}.ip`", head.text);
                let diagnostic =
                    Diagnostic::error(codes::UNKNOWN_FIELD, title, head.span, "a header is missing");
                self.report(diagnostic.with_help(help));
                return None;
            };
            (scope, head, steps) = (opened, next, rest);
        }
    }

    /// The symbol that a path starts with, and the steps behind it: `lib.name` takes one.
    fn head_symbol(
        &mut self,
        head: &'a Word,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<(SymbolId, &'a [PathStep])> {
        if self.is_library(env.unit, &head.text)
            && let Some(PathStep { kind: PathStepKind::Dot(name), .. }) = steps.first()
        {
            let found = self.lookup_in_library(Space::Value, env.unit, &head.text, &name.text);
            if found.is_none() && !self.may_be_unread(env.unit, Some(&head.text)) {
                let known = self.visible_in_library(Space::Value, env.unit, &head.text);
                let near = nearest(&name.text, known);
                self.unknown(&format!("`{}` in the library `{}`", name.text, head.text), name.span, near);
            }
            return Some((found?, &steps[1..]));
        }
        let found = self.lookup(Space::Value, env.unit, &head.text);
        if found.is_none() && !self.may_be_unread(env.unit, None) {
            self.unknown_head(head, steps.is_empty(), env);
        }
        Some((found?, steps))
    }

    fn unknown_head(&mut self, head: &Word, is_alone: bool, env: &Env<'a>) {
        if self.quiet {
            return;
        }
        let mut known = self.visible(Space::Value, env.unit, |_| true);
        known.extend(["malformed", "pkt"]);
        let owned = |checker: &Self| {
            let owner = checker.owners_of(&head.text, None).into_iter().next()?;
            Some(format!("{owner}.{}", head.text))
        };
        let near = nearest(&head.text, known).map(str::to_owned);
        let suggestion = near.or_else(|| owned(self).filter(|_| is_alone));
        let title = format!("there is no header, set or definition `{}`", head.text);
        let mut diagnostic = Diagnostic::error(codes::UNKNOWN_NAME, title, head.span, "not declared");
        let enums = self.program.enums.values();
        let of = enums.filter(|it| it.members.iter().any(|(name, _)| *name == head.text));
        let of: Vec<&str> = of.map(|it| it.name.as_str()).collect();
        if let Some(name) = suggestion {
            diagnostic = diagnostic.with_help(format!("did you mean `{name}`?"));
        } else if !of.is_empty() && is_alone {
            diagnostic = diagnostic
                .with_note(format!("`{}` is a member of `{}`", head.text, of.join("`, `")))
                .with_help("an enum's member is understood beside a field of that enum: `ip.proto == udp`");
        }
        self.report(diagnostic);
    }

    fn symbol_place(
        &mut self,
        id: SymbolId,
        head: &Word,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<Place<'a>> {
        let symbol = self.symbols[id];
        match symbol.kind {
            SymbolKind::Header(header) => self.header_place(header, Scope::default(), steps, env),
            SymbolKind::Union(union) => self.union_place(union, Scope::default(), steps, env),
            SymbolKind::Const { .. } => {
                self.end_of_path(steps, "a constant")?;
                Some(Place::Const(id))
            }
            SymbolKind::Def { params, .. } => self.def_place(id, head, symbol, params.len(), steps),
            SymbolKind::Set(set) => {
                self.end_of_path(steps, "a set")?;
                Some(Place::Set(set))
            }
            // Reported where it is declared.
            SymbolKind::Later(_) => None,
            SymbolKind::Enum(_) | SymbolKind::Counter(_) | SymbolKind::Chain(_) | SymbolKind::Xdp(_) => {
                Some(Place::Other(symbol.kind.describe()))
            }
        }
    }

    fn def_place(
        &mut self,
        id: SymbolId,
        head: &Word,
        symbol: Symbol<'a>,
        params: usize,
        steps: &'a [PathStep],
    ) -> Option<Place<'a>> {
        let (args, rest): (&'a [ast::Expr], _) = match steps.split_first() {
            Some((PathStep { kind: PathStepKind::Call(args), .. }, rest)) => (args, rest),
            _ => (&[], steps),
        };
        self.end_of_path(rest, "a definition")?;
        if args.len() == params {
            return Some(Place::Def(id, args));
        }
        let count = |n: usize| format!("{n} argument{}", if n == 1 { "" } else { "s" });
        let diagnostic = Diagnostic::error(
            codes::ARGUMENTS,
            format!("`{}` takes {}, not {}", symbol.name.text, count(params), args.len()),
            head.span,
            format!("{} here", count(args.len())),
        )
        .with_label(symbol.name.span, "declared here");
        self.report(diagnostic);
        None
    }

    /// Reports what follows something that has no parts.
    pub(crate) fn end_of_path(&mut self, steps: &[PathStep], what: &str) -> Option<()> {
        let Some(step) = steps.first() else { return Some(()) };
        let title = format!("{what} has no parts");
        self.report(Diagnostic::error(codes::UNKNOWN_FIELD, title, step.span, "nothing can follow here"));
        None
    }

    /// In a declaration: a field by its bare name, or a slice of the payload. `None`: neither.
    fn own_place(&mut self, path: &'a Path, own: &Own, env: &Env<'a>) -> Option<Option<Place<'a>>> {
        let head = path.head.text.as_str();
        let fields = match own {
            Own::Header(header) => &self.program.headers[*header].fields[..],
            Own::Option(fields) => fields,
        };
        let found = fields.iter().position(|field| field.name.as_deref() == Some(head));
        if let Some(index) = found {
            let ty = fields[index].ty.clone();
            let ended = self.end_of_path(&path.steps, "a field");
            return Some(ended.map(|()| Place::Value(ExprKind::Own(index), ty)));
        }
        if head == "payload"
            && matches!(own, Own::Header(_))
            && let [PathStep { kind: PathStepKind::Slice(from, to), span }] = path.steps.as_slice()
        {
            let range = self.slice_range(from, to, *span, env);
            return Some(
                range.map(|(from, to)| Place::Value(ExprKind::OwnPayload { from, to }, Type::Bytes)),
            );
        }
        None
    }

    fn packet_place(&mut self, path: &'a Path, span: Span) -> Option<Place<'a>> {
        const FIELDS: [(&str, PacketField); 3] =
            [("len", PacketField::Length), ("ifindex", PacketField::Ifindex), ("queue", PacketField::Queue)];
        let Some((PathStep { kind: PathStepKind::Dot(name), .. }, rest)) = path.steps.split_first() else {
            let diagnostic = Diagnostic::error(
                codes::UNKNOWN_FIELD,
                "`pkt` alone is no value",
                span,
                "a property is missing",
            )
            .with_help("write `pkt.len`, `pkt.ifindex` or `pkt.queue`");
            self.report(diagnostic);
            return None;
        };
        let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name.text) else {
            let near = nearest(&name.text, FIELDS.map(|(known, _)| known));
            let near = near.unwrap_or("len");
            self.unknown_field("pkt", name, Some(format!("pkt.{near}")));
            return None;
        };
        self.end_of_path(rest, "a number")?;
        Some(Place::Value(ExprKind::Packet(*field), Type::Uint { bits: 32 }))
    }

    fn header_place(
        &mut self,
        header: HeaderId,
        scope: Scope,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<Place<'a>> {
        let repeats = self.program.headers[header].repeats;
        let name = format!("{}{}", scope_text(scope), self.program.headers[header].name);
        let (index, steps) = self.index(&name, repeats, steps, env)?;
        let instance = Instance { scope, header, index };
        let Some((step, rest)) = steps.split_first() else {
            return Some(Place::Value(ExprKind::Present(instance), Type::Bool));
        };
        let word = self.dot(&name, step)?;
        let fields = &self.program.headers[header].fields;
        if let Some(field) = fields.iter().position(|field| field.name.as_deref() == Some(&word.text)) {
            return self.field_place(instance, field, word, rest, env);
        }
        match word.text.as_str() {
            "malformed" => {
                self.end_of_path(rest, "a condition")?;
                Some(Place::Value(ExprKind::Malformed(Malformed::Header(instance)), Type::Bool))
            }
            "truncated" if self.program.headers[header].claims.is_empty() => {
                self.not_truncated(&name, word.span);
                None
            }
            "truncated" => {
                self.end_of_path(rest, "a condition")?;
                Some(Place::Value(ExprKind::Truncated(instance), Type::Bool))
            }
            "payload" => self.payload_place(instance, rest, env),
            "option" if self.has_options(header) => self.option_place(instance, &name, word, rest, env),
            "options" if self.has_options(header) => self.options_place(instance, &name, word, rest, env),
            _ => {
                if let Some(place) = self.option_value(instance, word, rest) {
                    return place;
                }
                let near = self.nearest_field(header, &name, &word.text);
                self.unknown_field(&name, word, near);
                None
            }
        }
    }

    fn field_place(
        &mut self,
        instance: Instance,
        index: usize,
        word: &Word,
        rest: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<Place<'a>> {
        let field = &self.program.headers[instance.header].fields[index];
        let (ty, is_rest) = (field.ty.clone(), field.bits == 0);
        if is_rest {
            return self.bytes_place(BytesOf::Field { instance, field: index }, &word.text, rest, env);
        }
        self.end_of_path(rest, "a field")?;
        Some(Place::Value(ExprKind::Field { instance, field: index }, ty))
    }

    fn not_truncated(&mut self, name: &str, span: Span) {
        let diagnostic = Diagnostic::error(
            codes::UNKNOWN_FIELD,
            format!("`{name}` cannot be truncated"),
            span,
            "it has no length field that could claim more than the frame holds",
        )
        .with_help(format!("`{name}.malformed` is true where the header does not fit"));
        self.report(diagnostic);
    }

    fn union_place(
        &mut self,
        union: UnionId,
        scope: Scope,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<Place<'a>> {
        let repeats = self.program.unions[union].repeats.unwrap_or(1);
        let name = format!("{}{}", scope_text(scope), self.program.unions[union].name);
        let (index, steps) = self.index(&name, repeats, steps, env)?;
        let instance = UnionInstance { scope, union, index };
        let Some((step, rest)) = steps.split_first() else {
            return Some(Place::Value(ExprKind::UnionPresent(instance), Type::Bool));
        };
        let word = self.dot(&name, step)?;
        let fields = &self.program.unions[union].fields;
        if let Some(field) = fields.iter().position(|field| field.name == word.text) {
            let ty = fields[field].ty.clone();
            self.end_of_path(rest, "a field")?;
            return Some(Place::Value(ExprKind::UnionField { instance, field }, ty));
        }
        match word.text.as_str() {
            "malformed" => {
                self.end_of_path(rest, "a condition")?;
                let malformed = Malformed::Union { scope: instance.scope, union };
                Some(Place::Value(ExprKind::Malformed(malformed), Type::Bool))
            }
            "payload" => self.bytes_place(BytesOf::UnionPayload(instance), "payload", rest, env),
            _ => {
                let fields = self.program.unions[union].fields.iter().map(|field| field.name.as_str());
                let near = nearest(&word.text, fields).map(|near| format!("{name}.{near}"));
                let near = near.or_else(|| self.member_with(union, &word.text));
                self.unknown_field(&name, word, near);
                None
            }
        }
    }

    /// The index behind a header's or union's name: `[1]`, `[last]`, `[any]`; without one, the outermost.
    fn index(
        &mut self,
        name: &str,
        repeats: u32,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<(Index, &'a [PathStep])> {
        let Some((PathStep { kind: PathStepKind::Index(indices), span }, rest)) = steps.split_first() else {
            return Some((Index::At(0), steps));
        };
        let [index] = indices.as_slice() else {
            self.bad_index(format!("`{name}` takes one index"), *span, repeats);
            return None;
        };
        match bare_word(index) {
            Some("last") => return Some((Index::Last, rest)),
            Some("any") => {
                let at = env.any.or_else(|| {
                    self.any_outside_comparison(*span);
                    None
                })?;
                return Some((Index::At(at), rest));
            }
            _ => {}
        }
        let at = self.constant_number(index, env)?;
        if at >= u64::from(repeats) {
            let title = if repeats == 1 {
                format!("`{name}` occurs once in a packet")
            } else {
                format!("`{name}[{at}]` does not exist: at most {repeats} are read")
            };
            self.bad_index(title, *span, repeats);
            return None;
        }
        Some((Index::At(at as u8), rest))
    }

    fn bad_index(&mut self, title: String, span: Span, repeats: u32) {
        let help = if repeats == 1 {
            "leave the index out".to_owned()
        } else {
            format!("indices go from 0, the outermost, to {}; `[last]` is the innermost", repeats - 1)
        };
        self.report(Diagnostic::error(codes::BAD_INDEX, title, span, "this index").with_help(help));
    }

    fn any_outside_comparison(&mut self, span: Span) {
        let diagnostic = Diagnostic::error(
            codes::BAD_INDEX,
            "`[any]` stands in a comparison only",
            span,
            "which of them has the value?",
        )
        .with_help("write `vlan[any].vid == 20`, or an index: `vlan[0]`, `vlan[last]`");
        self.report(diagnostic);
    }

    fn dot(&mut self, name: &str, step: &'a PathStep) -> Option<&'a Word> {
        match &step.kind {
            PathStepKind::Dot(word) => Some(word),
            PathStepKind::Index(_) | PathStepKind::Slice(..) | PathStepKind::Call(_) => {
                let diagnostic = Diagnostic::error(
                    codes::UNKNOWN_FIELD,
                    format!("this does not follow `{name}`"),
                    step.span,
                    "a field is needed here",
                )
                .with_help(format!("bytes behind a header are its payload: `{name}.payload[0..4]`"));
                self.report(diagnostic);
                None
            }
        }
    }

    fn nearest_field(&self, header: HeaderId, name: &str, word: &str) -> Option<String> {
        let header_data = &self.program.headers[header];
        let fields = header_data.fields.iter().filter_map(|field| field.name.as_deref());
        let of_options = if self.has_options(header) { &["option", "options"][..] } else { &[] };
        let parts = ["malformed", "payload", "truncated"].iter().chain(of_options).copied();
        if let Some(near) = nearest(word, fields.chain(parts)) {
            return Some(format!("{name}.{near}"));
        }
        self.owners_of(word, Some(header)).first().map(|owner| format!("{owner}.{word}"))
    }

    /// The field `name` of one of a union's members, or of another header.
    fn member_with(&self, union: UnionId, name: &str) -> Option<String> {
        let owners = self.owners_of(name, None);
        let members = self.program.unions[union].members.iter();
        let mut members = members.map(|&member| &self.program.headers[member].name);
        let owner = members.find(|member| owners.contains(member)).or(owners.first())?;
        Some(format!("{owner}.{name}"))
    }

    /// Who has a field `name`: unions first; not `near` itself.
    fn owners_of(&self, name: &str, near: Option<HeaderId>) -> Vec<String> {
        let unions = self.program.unions.values();
        let in_unions = unions.filter(|union| union.fields.iter().any(|field| field.name == name));
        let mut owners: Vec<String> = in_unions.map(|union| union.name.clone()).collect();
        let headers = self.program.headers.iter().filter(|&(id, _)| Some(id) != near);
        let in_headers =
            headers.filter(|(_, header)| header.fields.iter().any(|f| f.name.as_deref() == Some(name)));
        owners.extend(in_headers.map(|(_, header)| header.name.clone()));
        owners
    }

    /// Reports a field that its owner has not.
    pub(crate) fn unknown_field(&mut self, owner: &str, word: &Word, suggestion: Option<String>) {
        let title = format!("`{owner}` has no field `{}`", word.text);
        let mut diagnostic = Diagnostic::error(codes::UNKNOWN_FIELD, title, word.span, "no such field");
        if let Some(name) = suggestion {
            diagnostic = diagnostic.with_help(format!("did you mean `{name}`?"));
        }
        self.report(diagnostic);
    }
}

/// Whether something in the packet `scope` is malformed.
fn packet_malformed<'a>(scope: Scope) -> Place<'a> {
    Place::Value(ExprKind::Malformed(Malformed::Packet(scope)), Type::Bool)
}

/// The word, if the expression is nothing else.
pub(crate) fn bare_word(expr: &ast::Expr) -> Option<&str> {
    match &expr.kind {
        ast::ExprKind::Path(path) if path.steps.is_empty() => Some(&path.head.text),
        _ => None,
    }
}
