//! Expressions: names resolved, definitions expanded, constants folded, types checked.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, BinaryOp, CompareOp, ExprKind as Ast, PathStepKind};

use crate::arithmetic;
use crate::checker::{Argument, Checker, Env, Own};
use crate::names::{Space, SymbolKind};
use crate::path::{NUMBER_BYTES, Place, bare_word};
use crate::suggest::nearest;
use crate::typed::{BytesAsk, EnumId, Expr, ExprKind, Type, Value};
use crate::types::{describe, member, number_bits};

/// How deep expressions may nest, definitions included.
const MAX_DEPTH: usize = 200;

impl<'a> Checker<'a> {
    /// Checks a condition.
    pub(crate) fn condition(&mut self, expr: &'a ast::Expr, env: &Env<'a>) -> Option<Expr> {
        if env.any.is_none()
            && let Some((count, span)) = self.any_instances(expr, env)
        {
            return self.any_of(expr, count?, span, env);
        }
        let checked = self.expression(expr, None, env)?;
        self.as_condition(checked)
    }

    /// A value as a condition: a one-bit number is true when it is 1.
    pub(crate) fn as_condition(&mut self, expr: Expr) -> Option<Expr> {
        match expr.ty {
            Type::Bool => return Some(expr),
            Type::Uint { bits: 1 } => {
                let (span, ty) = (expr.span, expr.ty.clone());
                let one = Expr { kind: ExprKind::Const(Value::Uint(1)), ty, span };
                let kind =
                    ExprKind::Compare { op: CompareOp::Equal, left: Box::new(expr), right: Box::new(one) };
                return Some(Expr { kind, ty: Type::Bool, span });
            }
            _ => {}
        }
        let text = self.text(expr.span);
        let what = describe(&self.program, &expr.ty);
        let mut diagnostic = Diagnostic::error(
            codes::NOT_A_CONDITION,
            format!("`{text}` is no condition"),
            expr.span,
            format!("this is {what}"),
        );
        if number_bits(&self.program, &expr.ty).is_some() && !matches!(expr.kind, ExprKind::Const(_)) {
            diagnostic = diagnostic.with_help(format!("compare it: `{text} == 1`, `{text} > 0`"));
        }
        self.report(diagnostic);
        None
    }

    /// If `expr` is an atom with `[any]` in it: of how many instances (`None` after a mistake), and where.
    fn any_instances(&mut self, expr: &'a ast::Expr, env: &Env<'a>) -> Option<(Option<u32>, Span)> {
        let mut found = Vec::new();
        match &expr.kind {
            Ast::Path(_)
            | Ast::Compare { .. }
            | Ast::In { .. }
            | Ast::Binary { .. }
            | Ast::Default { .. } => {
                find_any(expr, &mut found);
            }
            _ => {}
        }
        let (&(head, span), more) = found.split_first()?;
        if let Some(&(_, second)) = more.first() {
            let diagnostic = Diagnostic::error(
                codes::BAD_INDEX,
                "one comparison can ask `[any]` once",
                second,
                "a second `[any]`",
            )
            .with_label(span, "the first")
            .with_help("split the comparison, or write the instances out");
            self.report(diagnostic);
            return Some((None, span));
        }
        let count = match self.lookup(Space::Value, env.unit, head).map(|id| self.symbols[id].kind) {
            Some(SymbolKind::Header(header)) => self.program.headers[header].repeats,
            Some(SymbolKind::Union(union)) => self.program.unions[union].repeats.unwrap_or(1),
            _ => 1,
        };
        Some((Some(count), span))
    }

    fn any_of(&mut self, expr: &'a ast::Expr, count: u32, any: Span, env: &Env<'a>) -> Option<Expr> {
        let positive = match &expr.kind {
            Ast::Compare { op: CompareOp::NotEqual, left, right } => {
                Some(format!("{} == {}", self.text(left.span), self.text(right.span)))
            }
            Ast::In { negated: true, value, set } => {
                let set = match &**set {
                    ast::InSet::Literal(_, span) => *span,
                    ast::InSet::Bare(element) => element.span,
                };
                Some(format!("{} in {}", self.text(value.span), self.text(set)))
            }
            _ => None,
        };
        if let Some(positive) = positive {
            let title = "`[any]` with `!=` or `not in` can be read two ways";
            let diagnostic =
                Diagnostic::error(codes::UNCERTAIN, title, any, "one of them differs, or all of them?")
                    .with_help(format!("for \"none of them is\", write `not ({positive})`"));
            self.report(diagnostic);
            return None;
        }
        let mut parts = Vec::new();
        for at in 0..count {
            parts.push(self.condition(expr, &Env { any: Some(at as u8), ..env.clone() })?);
        }
        Some(either(parts, expr.span))
    }

    /// Checks an expression; `hint` is the enum whose members it may name.
    pub(crate) fn expression(
        &mut self,
        expr: &'a ast::Expr,
        hint: Option<EnumId>,
        env: &Env<'a>,
    ) -> Option<Expr> {
        if self.depth >= MAX_DEPTH {
            self.too_deep(expr.span, "this expression is nested too deeply");
            return None;
        }
        self.depth += 1;
        let checked = self.expression_inside(expr, hint, env);
        self.depth -= 1;
        checked
    }

    /// Reports an expression that is too much.
    pub(crate) fn too_deep(&mut self, span: Span, title: &str) {
        let diagnostic = Diagnostic::error(codes::TOO_COMPLEX, title, span, "too much for one expression")
            .with_help("split it into several rules, or name values in a `set`");
        self.report(diagnostic);
    }

    fn expression_inside(
        &mut self,
        expr: &'a ast::Expr,
        hint: Option<EnumId>,
        env: &Env<'a>,
    ) -> Option<Expr> {
        let span = expr.span;
        let constant = |value, ty| Some(Expr { kind: ExprKind::Const(value), ty, span });
        match &expr.kind {
            Ast::Int(value) => constant(Value::Uint(*value), Type::Uint { bits: 64 }),
            Ast::Address(std::net::IpAddr::V4(address)) => constant(Value::Ipv4(*address), Type::Ipv4),
            Ast::Address(std::net::IpAddr::V6(address)) => constant(Value::Ipv6(*address), Type::Ipv6),
            Ast::Mac(address) => constant(Value::Mac(*address), Type::Mac),
            Ast::String(bytes) => constant(Value::Bytes(bytes.clone()), Type::Bytes),
            Ast::Bool(value) => constant(Value::Bool(*value), Type::Bool),
            Ast::Prefix(..) | Ast::MacPrefix(..) => {
                self.prefix_as_value(span);
                None
            }
            Ast::Path(path) => self.path_value(path, span, hint, env),
            Ast::Paren(inner) => match inner.kind {
                Ast::And(_) | Ast::Or(_) | Ast::Not(_) | Ast::Compare { .. } | Ast::In { .. } => {
                    self.condition(inner, env)
                }
                _ => self.expression(inner, hint, env),
            },
            Ast::Tuple(parts) => self.tuple(parts, span, env),
            Ast::Not(inner) => {
                let inner = self.condition(inner, env)?;
                Some(negation(inner, span))
            }
            Ast::And(parts) => self.parts(parts, env).map(|parts| both(parts, span)),
            Ast::Or(parts) => self.parts(parts, env).map(|parts| either(parts, span)),
            Ast::Compare { op, left, right } => self.compare(*op, left, right, span, env),
            Ast::In { negated, value, set } => self.membership(*negated, value, set, span, env),
            Ast::Binary { op, left, right } => self.binary(*op, left, right, span, hint, env),
            Ast::Default { value, otherwise } => self.default_value(value, otherwise, span, hint, env),
            Ast::Error => None,
        }
    }

    fn tuple(&mut self, parts: &'a [ast::Expr], span: Span, env: &Env<'a>) -> Option<Expr> {
        let checked: Vec<_> = parts.iter().map(|part| self.tuple_part(part, env)).collect();
        let parts: Vec<Expr> = checked.into_iter().collect::<Option<_>>()?;
        let ty = Type::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
        Some(Expr { kind: ExprKind::Tuple(parts), ty, span })
    }

    fn tuple_part(&mut self, part: &'a ast::Expr, env: &Env<'a>) -> Option<Expr> {
        let hint = self.enum_of(part, env);
        let checked = self.expression(part, hint, env)?;
        if !matches!(checked.ty, Type::Bool | Type::Tuple(_)) {
            return Some(checked);
        }
        let what = describe(&self.program, &checked.ty);
        let title = "a tuple holds single values";
        self.report(Diagnostic::error(codes::NOT_A_VALUE, title, part.span, format!("this is {what}")));
        None
    }

    fn parts(&mut self, parts: &'a [ast::Expr], env: &Env<'a>) -> Option<Vec<Expr>> {
        let checked: Vec<_> = parts.iter().map(|part| self.condition(part, env)).collect();
        checked.into_iter().collect()
    }

    fn prefix_as_value(&mut self, span: Span) {
        let text = self.text(span);
        let diagnostic = Diagnostic::error(
            codes::NOT_A_VALUE,
            format!("`{text}` is many addresses, not one"),
            span,
            "one value is needed here",
        )
        .with_help(format!("ask for membership: `… in {text}`"));
        self.report(diagnostic);
    }

    /// The value of a path.
    fn path_value(
        &mut self,
        path: &'a ast::Path,
        span: Span,
        hint: Option<EnumId>,
        env: &Env<'a>,
    ) -> Option<Expr> {
        if let Some(hint) = hint.filter(|_| path.steps.is_empty() && !self.is_local(&path.head.text, env)) {
            if let Some(value) = member(&self.program, hint, &path.head.text) {
                return Some(Expr { kind: ExprKind::Const(Value::Uint(value)), ty: Type::Enum(hint), span });
            }
            if !self.is_constant_name(&path.head.text, env) {
                self.unknown_member(hint, &path.head.text, span);
                return None;
            }
        }
        match self.place(path, span, env)? {
            Place::Value(kind, ty) => Some(Expr { kind, ty, span }),
            Place::Param(at) => Some(self.parameter(at, span, env)),
            Place::Const(id) => self.constant_value(id, span, env),
            Place::Def(id, args) => self.expand(id, args, span, env),
            Place::Set(_) => {
                let text = self.text(span);
                let title = format!("`{text}` is a set, not one value");
                let diagnostic =
                    Diagnostic::error(codes::NOT_A_VALUE, title, span, "one value is needed here")
                        .with_help(format!("ask for membership: `ip.src in {text}`"));
                self.report(diagnostic);
                None
            }
            Place::Other(what) => {
                let title = format!("`{}` is {what}, which has no value", self.text(span));
                self.report(Diagnostic::error(codes::NOT_A_VALUE, title, span, "a value is needed here"));
                None
            }
        }
    }

    fn is_local(&self, name: &str, env: &Env<'a>) -> bool {
        let own = match &env.own {
            None => false,
            Some(Own::Header(header)) => {
                self.program.headers[*header].fields.iter().any(|field| field.name.as_deref() == Some(name))
            }
            Some(Own::Option(fields)) => fields.iter().any(|field| field.name.as_deref() == Some(name)),
        };
        own || env.params.iter().any(|(param, _)| *param == name)
    }

    /// Whether a bare word is a value by itself, so that it need not be an enum's member.
    fn is_constant_name(&mut self, name: &str, env: &Env<'a>) -> bool {
        let found = self.lookup(Space::Value, env.unit, name);
        found.is_some_and(|id| {
            matches!(
                self.symbols[id].kind,
                SymbolKind::Const { .. } | SymbolKind::Def { .. } | SymbolKind::Later(_)
            )
        })
    }

    /// Reports a word that is no member of the enum that is needed.
    pub(crate) fn unknown_member(&mut self, id: EnumId, word: &str, span: Span) {
        let found = &self.program.enums[id];
        let members = found.members.iter().map(|(name, _)| name.as_str());
        let title = format!("`{}` has no member `{word}`", found.name);
        let mut diagnostic = Diagnostic::error(codes::UNKNOWN_MEMBER, title, span, "no such member");
        if let Some(near) = nearest(word, members) {
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?"));
        } else {
            diagnostic = diagnostic.with_help("a number is allowed too");
        }
        self.report(diagnostic);
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        span: Span,
        hint: Option<EnumId>,
        env: &Env<'a>,
    ) -> Option<Expr> {
        let hint = hint.or_else(|| self.enum_of(left, env)).or_else(|| self.enum_of(right, env));
        let left = self.expression(left, hint, env).and_then(|left| self.as_number(left));
        let right = self.expression(right, hint, env).and_then(|right| self.as_number(right));
        let (left, right) = (left?, right?);
        if let (ExprKind::Const(Value::Uint(a)), ExprKind::Const(Value::Uint(b))) = (&left.kind, &right.kind)
        {
            let Some(value) = arithmetic::apply(op, *a, *b) else {
                self.no_result(*a, *b, span);
                return None;
            };
            // `syn | ack` is still a value of the enum; what leaves its width is reported where it is compared.
            let ty = if left.ty == right.ty { left.ty } else { Type::Uint { bits: 64 } };
            return Some(Expr { kind: ExprKind::Const(Value::Uint(value)), ty, span });
        }
        if op == BinaryOp::Subtract {
            self.warn_if_below_zero(&left, &right, span);
        }
        let kind = ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) };
        Some(Expr { kind, ty: Type::Uint { bits: 64 }, span })
    }

    /// Warns of a difference that has no value in any packet, so that nothing that is asked of it holds.
    fn warn_if_below_zero(&mut self, left: &Expr, right: &Expr, span: Span) {
        let ExprKind::Const(Value::Uint(subtracted)) = right.kind else { return };
        let most = arithmetic::upper_bound(&self.program, left);
        if subtracted <= most {
            return;
        }
        let title = format!("`{}` never has a value", self.text(span));
        let note =
            format!("`{}` is at most {most}, and a difference below zero has no value", self.text(left.span));
        let diagnostic = Diagnostic::warning(codes::ALWAYS, title, span, "always below zero");
        self.report(diagnostic.with_note(note).with_help("correct the number, or remove what depends on it"));
    }

    fn no_result(&mut self, a: u64, b: u64, span: Span) {
        let diagnostic = Diagnostic::error(
            codes::NO_RESULT,
            format!("`{}` has no result", self.text(span)),
            span,
            "the computation leaves the range of numbers",
        )
        .with_note(format!("numbers are unsigned, from 0 to {}; the operands are {a} and {b}", u64::MAX));
        self.report(diagnostic);
    }

    /// A number, or a slice of up to 8 bytes as one.
    pub(crate) fn as_number(&mut self, expr: Expr) -> Option<Expr> {
        if number_bits(&self.program, &expr.ty).is_some() {
            return Some(expr);
        }
        if let Some(length) = slice_length(&expr).filter(|&length| length <= NUMBER_BYTES) {
            return Some(Expr { ty: Type::Uint { bits: (8 * length) as u8 }, ..expr });
        }
        let what = describe(&self.program, &expr.ty);
        let mut diagnostic = Diagnostic::error(
            codes::TYPE_MISMATCH,
            format!("`{}` is no number", self.text(expr.span)),
            expr.span,
            format!("this is {what}"),
        );
        if slice_length(&expr).is_some() {
            diagnostic =
                diagnostic.with_note("a slice of up to 8 bytes is a number, too; this one is longer");
        }
        self.report(diagnostic);
        None
    }

    fn default_value(
        &mut self,
        value: &'a ast::Expr,
        otherwise: &'a ast::Expr,
        span: Span,
        hint: Option<EnumId>,
        env: &Env<'a>,
    ) -> Option<Expr> {
        let hint = hint.or_else(|| self.enum_of(value, env)).or_else(|| self.enum_of(otherwise, env));
        let (value, otherwise) = self.sides(value, otherwise, hint, env);
        let (value, otherwise) = (value?, otherwise?);
        if value.ty == Type::Bool {
            let diagnostic = Diagnostic::error(
                codes::NOT_A_VALUE,
                "a condition is always true or false and needs no default",
                span,
                "`default` is for values that may be missing",
            );
            self.report(diagnostic);
            return None;
        }
        let (value, otherwise) = self.same_kind(value, otherwise)?;
        let ty = self.common_type(&value, &otherwise);
        let kind = ExprKind::Default { value: Box::new(value), otherwise: Box::new(otherwise) };
        Some(Expr { kind, ty, span })
    }

    /// The enum whose members may stand beside `expr`.
    pub(crate) fn enum_of(&mut self, expr: &'a ast::Expr, env: &Env<'a>) -> Option<EnumId> {
        match &expr.kind {
            Ast::Paren(inner) => self.enum_of(inner, env),
            Ast::Binary { left, right, .. } | Ast::Default { value: left, otherwise: right } => {
                self.enum_of(left, env).or_else(|| self.enum_of(right, env))
            }
            Ast::Path(path) => self.enum_of_path(path, expr, env),
            _ => None,
        }
    }

    fn enum_of_path(&mut self, path: &'a ast::Path, expr: &'a ast::Expr, env: &Env<'a>) -> Option<EnumId> {
        let ty = match self.quietly(|checker| checker.place(path, expr.span, env))? {
            Place::Value(_, ty) => ty,
            Place::Param(at) => match &env.params[at].1 {
                Argument::Value(value) => value.ty.clone(),
                Argument::Unknown(ty) => ty.clone(),
            },
            Place::Const(id) => {
                let SymbolKind::Const { ty: Some(ty), .. } = self.symbols[id].kind else { return None };
                let unit = self.symbols[id].unit;
                self.quietly(|checker| checker.ty(ty, unit))?
            }
            Place::Def(id, _) => {
                let SymbolKind::Def { body, params } = self.symbols[id].kind else { return None };
                if env.open.contains(&id) || !params.is_empty() {
                    return None;
                }
                let mut inside = Self::env(self.symbols[id].unit);
                inside.open.clone_from(&env.open);
                inside.open.push(id);
                return self.enum_of(body, &inside);
            }
            Place::Set(set) => self.program.sets[set].ty.clone(),
            Place::Other(_) => return None,
        };
        match ty {
            Type::Enum(id) => Some(id),
            _ => None,
        }
    }
}

/// How many bytes a slice has.
pub(crate) fn slice_length(expr: &Expr) -> Option<u32> {
    match &expr.kind {
        ExprKind::PayloadSlice { from, to, .. }
        | ExprKind::OwnPayload { from, to }
        | ExprKind::Bytes { ask: BytesAsk::Slice { from, to }, .. } => Some(to - from),
        _ => None,
    }
}

/// All of `parts`, without those that are constant.
fn both(parts: Vec<Expr>, span: Span) -> Expr {
    if parts.iter().any(|part| constant_bool(part) == Some(false)) {
        return truth(false, span);
    }
    let mut parts: Vec<_> = parts.into_iter().filter(|part| constant_bool(part).is_none()).collect();
    match parts.len() {
        0 => truth(true, span),
        1 => parts.remove(0),
        _ => Expr { kind: ExprKind::And(parts), ty: Type::Bool, span },
    }
}

/// One of `parts`, without those that are constant.
pub(crate) fn either(parts: Vec<Expr>, span: Span) -> Expr {
    if parts.iter().any(|part| constant_bool(part) == Some(true)) {
        return truth(true, span);
    }
    let mut parts: Vec<_> = parts.into_iter().filter(|part| constant_bool(part).is_none()).collect();
    match parts.len() {
        0 => truth(false, span),
        1 => parts.remove(0),
        _ => Expr { kind: ExprKind::Or(parts), ty: Type::Bool, span },
    }
}

fn negation(inner: Expr, span: Span) -> Expr {
    match constant_bool(&inner) {
        Some(value) => truth(!value, span),
        None => Expr { kind: ExprKind::Not(Box::new(inner)), ty: Type::Bool, span },
    }
}

/// A constant condition.
pub(crate) fn truth(value: bool, span: Span) -> Expr {
    Expr { kind: ExprKind::Const(Value::Bool(value)), ty: Type::Bool, span }
}

/// The value of a constant condition.
pub(crate) fn constant_bool(expr: &Expr) -> Option<bool> {
    match expr.kind {
        ExprKind::Const(Value::Bool(value)) => Some(value),
        _ => None,
    }
}

/// The paths in an atom that say `[any]`: the names in front of it, and where it stands.
fn find_any<'a>(expr: &'a ast::Expr, found: &mut Vec<(&'a str, Span)>) {
    match &expr.kind {
        Ast::Path(path) => {
            let mut name = path.head.text.as_str();
            for step in &path.steps {
                match &step.kind {
                    PathStepKind::Dot(word) => name = &word.text,
                    PathStepKind::Index(indices) => {
                        if matches!(indices.as_slice(), [index] if bare_word(index) == Some("any")) {
                            found.push((name, step.span));
                        }
                    }
                    PathStepKind::Slice(..) | PathStepKind::Call(_) => {}
                }
            }
        }
        Ast::Paren(inner) => find_any(inner, found),
        Ast::Compare { left, right, .. }
        | Ast::Binary { left, right, .. }
        | Ast::Default { value: left, otherwise: right } => {
            find_any(left, found);
            find_any(right, found);
        }
        Ast::In { value, .. } => find_any(value, found),
        _ => {}
    }
}
