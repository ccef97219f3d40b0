//! `in`: what may stand behind it, and whether it can ever be true.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, ElementKind, ExprKind as Ast, InSet};

use crate::checker::{Checker, Env};
use crate::expr::slice_length;
use crate::names::SymbolKind;
use crate::path::Place;
use crate::sets::{element_type, hints_of};
use crate::typed::{Element, EnumId, Expr, ExprKind, Set, SetId, Type};
use crate::types::{describe, is_address, number_bits};

impl<'a> Checker<'a> {
    /// `value in set`, `value not in { … }`.
    pub(crate) fn membership(
        &mut self,
        negated: bool,
        value: &'a ast::Expr,
        set: &'a InSet,
        span: Span,
        env: &Env<'a>,
    ) -> Option<Expr> {
        let hint = self.enum_of(value, env);
        // The elements are understood by the value; without it nothing useful can be said of them.
        let value = self.expression(value, hint, env)?;
        let hints = match value.ty {
            Type::Tuple(_) => hints_of(&value.ty),
            _ => vec![hint],
        };
        let (id, span_of_set) = match set {
            InSet::Literal(elements, span) => (self.literal(elements, &hints, *span, env), *span),
            InSet::Bare(element) => (self.bare(element, &hints, env), element.span),
        };
        let id = id?;
        let value = self.fit_set(value, id, span_of_set)?;
        Some(Expr { kind: ExprKind::In { value: Box::new(value), set: id, negated }, ty: Type::Bool, span })
    }

    fn bare(&mut self, element: &'a ast::Element, hints: &[Option<EnumId>], env: &Env<'a>) -> Option<SetId> {
        let hint = hints.first().copied().flatten();
        if let ElementKind::Item(expr) = &element.kind {
            match &expr.kind {
                Ast::Prefix(..) | Ast::MacPrefix(..) | Ast::Error => {}
                Ast::Path(path) => {
                    let is_member = hint.is_some_and(|hint| {
                        path.steps.is_empty()
                            && crate::types::member(&self.program, hint, &path.head.text).is_some()
                    });
                    if is_member {
                        self.needs_equal(expr.span);
                        return None;
                    }
                    match self.place(path, expr.span, env)? {
                        Place::Set(id) => return Some(id),
                        Place::Const(id) => {
                            let SymbolKind::Const { value, .. } = self.symbols[id].kind else { return None };
                            if !matches!(value.kind, Ast::Prefix(..) | Ast::MacPrefix(..)) {
                                self.needs_equal(expr.span);
                                return None;
                            }
                        }
                        Place::Value(..) | Place::Def(..) | Place::Param(_) | Place::Other(_) => {
                            self.not_a_set(expr.span);
                            return None;
                        }
                    }
                }
                _ => {
                    self.needs_equal(expr.span);
                    return None;
                }
            }
        }
        self.literal(std::slice::from_ref(element), hints, element.span, env)
    }

    fn needs_equal(&mut self, span: Span) {
        let text = self.text(span);
        let title = format!("`{text}` is one value, not a set");
        let diagnostic = Diagnostic::error(codes::WRONG_NAME, title, span, "`in` needs a set")
            .with_help(format!("write `== {text}`, or `in {{ {text} }}`"));
        self.report(diagnostic);
    }

    fn not_a_set(&mut self, span: Span) {
        let title = format!("`{}` is no set", self.text(span));
        let diagnostic = Diagnostic::error(codes::WRONG_NAME, title, span, "`in` needs a set")
            .with_help("behind `in` stands a set's name, `{ … }`, a range or a prefix");
        self.report(diagnostic);
    }

    fn literal(
        &mut self,
        elements: &'a [ast::Element],
        hints: &[Option<EnumId>],
        span: Span,
        env: &Env<'a>,
    ) -> Option<SetId> {
        if elements.is_empty() {
            let diagnostic =
                Diagnostic::error(codes::EMPTY_RANGE, "this set holds nothing", span, "never true")
                    .with_help("name at least one value");
            self.report(diagnostic);
            return None;
        }
        let checked = self.elements(elements, hints, env);
        let ty = with_enums(self.type_of(&checked)?, hints);
        if checked.len() < elements.len() {
            return None;
        }
        let (elements, spans): (Vec<_>, Vec<_>) = checked.into_iter().unzip();
        let known = self.literal_sets.get(&span).into_iter().flatten();
        let same = |id: &&SetId| {
            let set = &self.program.sets[**id];
            set.ty == ty && set.elements == elements
        };
        if let Some(&id) = known.clone().find(same) {
            return Some(id);
        }
        let id = self.program.sets.push(Set { name: None, span, ty, elements });
        self.literal_sets.entry(span).or_default().push(id);
        self.element_spans.insert(id, spans);
        Some(id)
    }

    /// Checks that `value` can be in the set, and gives it the elements' kind of type.
    fn fit_set(&mut self, value: Expr, id: SetId, span: Span) -> Option<Expr> {
        let ty = self.program.sets[id].ty.clone();
        let value = self.slices_as_numbers(value, &ty)?;
        let same = self.may_be_in(&value.ty, &ty);
        if !same {
            // A set that was not understood has no type, and has been reported.
            if ty != Type::Bool {
                self.wrong_set(&value, &ty, span);
            }
            return None;
        }
        self.fit_elements(&value, id)?;
        Some(value)
    }

    /// Slices, where the set holds numbers, as numbers.
    fn slices_as_numbers(&mut self, value: Expr, ty: &Type) -> Option<Expr> {
        match (value.kind, ty) {
            (ExprKind::Tuple(parts), Type::Tuple(types)) if parts.len() == types.len() => {
                let parts: Vec<_> =
                    parts.into_iter().zip(types).map(|(part, ty)| self.slices_as_numbers(part, ty)).collect();
                let parts: Vec<Expr> = parts.into_iter().collect::<Option<_>>()?;
                let ty = Type::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
                Some(Expr { kind: ExprKind::Tuple(parts), ty, span: value.span })
            }
            (kind, ty) => {
                let value = Expr { kind, ..value };
                let is_number = number_bits(&self.program, ty).is_some();
                if is_number && slice_length(&value).is_some() { self.as_number(value) } else { Some(value) }
            }
        }
    }

    /// Whether a value of this type may be in a set that holds `ty`.
    fn may_be_in(&self, value: &Type, ty: &Type) -> bool {
        let is_number = |ty: &Type| number_bits(&self.program, ty).is_some();
        match (value, ty) {
            (Type::Tuple(values), Type::Tuple(types)) => {
                let any = |ty: &Type| *ty == Type::Bool;
                values.len() == types.len()
                    && values.iter().zip(types).all(|(value, ty)| any(ty) || self.may_be_in(value, ty))
            }
            _ => value == ty || (is_address(value) && is_address(ty)) || (is_number(value) && is_number(ty)),
        }
    }

    fn wrong_set(&mut self, value: &Expr, ty: &Type, span: Span) {
        let (what, held) = (describe(&self.program, &value.ty), describe(&self.program, ty));
        let title = match value.ty {
            Type::Tuple(_) => "this tuple is never in that set".to_owned(),
            _ => format!("{what} is never in a set that holds {held}"),
        };
        let diagnostic =
            Diagnostic::error(codes::TYPE_MISMATCH, title, span, format!("each element is {held}"))
                .with_label(value.span, format!("this is {what}"));
        self.report(diagnostic);
    }

    fn fit_element(&mut self, value: &Expr, element: &Element, span: Span) -> Option<()> {
        match (element, &value.kind) {
            (Element::Tuple(parts), ExprKind::Tuple(values)) => {
                for (part, value) in parts.iter().zip(values) {
                    if let Some(part) = part {
                        self.fit_element(value, part, span)?;
                    }
                }
                Some(())
            }
            (Element::Uint { high, .. }, kind) if !matches!(kind, ExprKind::Binary { .. }) => {
                self.check_fits(*high, span, value)
            }
            (Element::Bytes { low, .. }, _) => self.check_length(low.len(), span, value),
            _ => Some(()),
        }
    }

    fn fit_elements(&mut self, value: &Expr, id: SetId) -> Option<()> {
        let elements = self.program.sets[id].elements.clone();
        let spans = self.element_spans.get(&id).cloned().unwrap_or_default();
        let mut fits = Some(());
        for (element, &span) in elements.iter().zip(&spans) {
            fits = fits.and(self.fit_element(value, element, span));
        }
        let is_family = |ty: &Type| matches!(ty, Type::Ipv4 | Type::Ipv6);
        if is_family(&value.ty)
            && !elements.is_empty()
            && elements.iter().all(|it| is_family(&element_type(it)) && element_type(it) != value.ty)
        {
            let diagnostic = Diagnostic::warning(
                codes::FAMILIES,
                "this is never true",
                value.span,
                format!(
                    "this is {}, and the set holds only the other family",
                    describe(&self.program, &value.ty)
                ),
            )
            .with_label(self.program.sets[id].span, "this set")
            .with_help("`ip.src` and `ip.dst` are of either family");
            self.report(diagnostic);
        }
        fits
    }
}

/// Numbers that members of enums stand beside are of these enums.
fn with_enums(ty: Type, hints: &[Option<EnumId>]) -> Type {
    match (ty, hints) {
        (Type::Uint { .. }, [Some(hint), ..]) => Type::Enum(*hint),
        (Type::Tuple(types), hints) => {
            let parts = types.into_iter().enumerate();
            Type::Tuple(parts.map(|(at, ty)| with_enums(ty, hints.get(at..).unwrap_or_default())).collect())
        }
        (ty, _) => ty,
    }
}
