//! `const` and `def`: values under a name, expanded where they are used.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, ExprKind as Ast};

use crate::checker::{Argument, Checker, Env};
use crate::names::{SymbolId, SymbolKind};
use crate::typed::{Expr, ExprKind, PacketField, Type, Value};

/// How many uses of definitions a program may hold after expansion.
const MAX_EXPANSIONS: usize = 100_000;

impl<'a> Checker<'a> {
    /// Checks definitions and constants by themselves, so that those that nobody uses are checked, too.
    pub(crate) fn definitions(&mut self) {
        for id in 0..self.symbols.len() {
            let symbol = self.symbols[id];
            if self.units[symbol.unit].is_std {
                continue;
            }
            match symbol.kind {
                SymbolKind::Const { ty, value } => {
                    let env = Env { open: vec![id], ..Self::env(symbol.unit) };
                    let is_prefix =
                        matches!(value.kind, ast::ExprKind::Prefix(..) | ast::ExprKind::MacPrefix(..));
                    if !is_prefix {
                        self.constant_of(ty, value, &env);
                    }
                }
                SymbolKind::Def { params, body } => self.definition(id, params, body),
                _ => {}
            }
        }
    }

    fn definition(&mut self, id: usize, params: &'a [ast::Param], body: &'a ast::Expr) {
        let unit = self.symbols[id].unit;
        let mut env = Self::env(unit);
        env.open.push(id);
        for param in params {
            let Some(ty) = self.ty(&param.ty, unit) else { return };
            env.params.push((&param.name.text, Argument::Unknown(ty)));
        }
        self.body(body, &env);
    }

    pub(crate) fn parameter(&self, at: usize, span: Span, env: &Env<'a>) -> Expr {
        match &env.params[at].1 {
            Argument::Value(value) => Expr { span, ..value.clone() },
            // Any operand of unknown value serves: the result of such a check is thrown away.
            Argument::Unknown(ty) => {
                Expr { kind: ExprKind::Packet(PacketField::Length), ty: ty.clone(), span }
            }
        }
    }

    /// The value of a constant, with the place of its use.
    pub(crate) fn constant_value(&mut self, id: SymbolId, span: Span, env: &Env<'a>) -> Option<Expr> {
        let (SymbolKind::Const { ty, value }, unit) = (self.symbols[id].kind, self.symbols[id].unit) else {
            return None;
        };
        let open = self.opened(id, span, env)?;
        let checked = self.constant_of(ty, value, &Env { open, ..Self::env(unit) })?;
        Some(Expr { span, ..checked })
    }

    /// The definitions that are open inside `id`; reports one that is open already.
    fn opened(&mut self, id: SymbolId, span: Span, env: &Env<'a>) -> Option<Vec<SymbolId>> {
        if self.circular.contains(&id) {
            return None;
        }
        if let Some(at) = env.open.iter().position(|&open| open == id) {
            self.circular.extend(&env.open[at..]);
            self.leads_back(id, span);
            return None;
        }
        let mut open = env.open.clone();
        open.push(id);
        Some(open)
    }

    /// A constant's value, of its type if it has one.
    pub(crate) fn constant_of(
        &mut self,
        ty: Option<&'a ast::Type>,
        value: &'a ast::Expr,
        env: &Env<'a>,
    ) -> Option<Expr> {
        let ty = match ty {
            Some(ty) => Some(self.ty(ty, env.unit)?),
            None => None,
        };
        let hint = match ty {
            Some(Type::Enum(hint)) => Some(hint),
            _ => None,
        };
        let checked = self.expression(value, hint, env)?;
        if !matches!(checked.kind, ExprKind::Const(_)) {
            self.not_constant(value.span);
            return None;
        }
        match ty {
            Some(ty) => self.convert(checked, &ty, "the constant's type"),
            None => Some(checked),
        }
    }

    fn not_constant(&mut self, span: Span) {
        let diagnostic = Diagnostic::error(
            codes::NOT_CONSTANT,
            format!("`{}` is not known when compiling", self.text(span)),
            span,
            "a constant is needed here",
        )
        .with_note("it depends on the packet")
        .with_help("`def` names what depends on the packet, `const` what does not");
        self.report(diagnostic);
    }

    fn leads_back(&mut self, id: SymbolId, span: Span) {
        let name = self.symbols[id].name;
        let diagnostic = Diagnostic::error(
            codes::RECURSION,
            format!("`{}` is defined by itself", name.text),
            span,
            "this leads back to it",
        )
        .with_label(name.span, "declared here")
        .with_help("definitions are expanded where they are used, so none can contain itself");
        self.report(diagnostic);
    }

    /// Checks a constant number.
    pub(crate) fn constant_number(&mut self, expr: &'a ast::Expr, env: &Env<'a>) -> Option<u64> {
        let checked = self.expression(expr, None, env)?;
        match checked.kind {
            ExprKind::Const(Value::Uint(value)) => Some(value),
            ExprKind::Const(_) => {
                let title = format!("`{}` is no number", self.text(expr.span));
                self.report(Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    title,
                    expr.span,
                    "a number is needed here",
                ));
                None
            }
            _ => {
                self.not_constant(expr.span);
                None
            }
        }
    }

    pub(crate) fn expand(
        &mut self,
        id: SymbolId,
        args: &'a [ast::Expr],
        span: Span,
        env: &Env<'a>,
    ) -> Option<Expr> {
        let symbol = self.symbols[id];
        let SymbolKind::Def { params, body } = symbol.kind else { return None };
        let open = self.opened(id, span, env)?;
        self.expansions += 1;
        if self.expansions >= MAX_EXPANSIONS {
            if self.expansions == MAX_EXPANSIONS {
                self.too_deep(span, "definitions grow too large when they are expanded");
            }
            return None;
        }
        let mut values = Vec::new();
        for (param, arg) in params.iter().zip(args) {
            values.push(self.argument(param, arg, symbol.unit, env).map(|value| (param, value)));
        }
        let values: Vec<_> = values.into_iter().collect::<Option<_>>()?;
        let params =
            values.into_iter().map(|(param, value)| (param.name.text.as_str(), Argument::Value(value)));
        let inside = Env { unit: symbol.unit, own: None, params: params.collect(), any: None, open };
        self.body(body, &inside)
    }

    /// A definition's body: a condition where it looks like one, so that `[any]` in it is understood.
    pub(crate) fn body(&mut self, body: &'a ast::Expr, env: &Env<'a>) -> Option<Expr> {
        match body.kind {
            Ast::Compare { .. } | Ast::In { .. } => self.condition(body, env),
            _ => self.expression(body, None, env),
        }
    }

    fn argument(
        &mut self,
        param: &'a ast::Param,
        arg: &'a ast::Expr,
        unit: usize,
        env: &Env<'a>,
    ) -> Option<Expr> {
        let ty = self.ty(&param.ty, unit)?;
        let hint = match ty {
            Type::Enum(hint) => Some(hint),
            _ => None,
        };
        let value = match ty {
            Type::Bool => self.condition(arg, env)?,
            _ => self.expression(arg, hint, env)?,
        };
        self.convert(value, &ty, "the parameter")
    }
}
