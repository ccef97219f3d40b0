//! Fixed sets and `in`.

use hashbrown::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, ElementKind, Elements, ExprKind as Ast};

use crate::arithmetic::width_of;
use crate::checker::{Argument, Checker, Env, SetDecl};
use crate::names::{Space, SymbolKind};
use crate::path::{Place, bare_word};
use crate::typed::{Element, EnumId, ExprKind, SetId, Type, Value};
use crate::types::{describe, is_address, max_of, number_bits};

impl<'a> Checker<'a> {
    /// Fills the named sets.
    pub(crate) fn sets(&mut self) {
        for decl in std::mem::take(&mut self.decls.sets) {
            self.named_set(decl);
        }
    }

    fn named_set(&mut self, decl: SetDecl<'a>) {
        let declared = decl.ty.and_then(|ty| self.ty(ty, decl.unit));
        if let Some(ty) = &declared {
            self.program.sets[decl.id].ty = ty.clone();
        }
        let units = self.units;
        let elements = match decl.elements {
            Elements::Literal(elements, _) => elements.as_slice(),
            Elements::File(name) => match units[decl.unit].set_files.get(&name.span) {
                Some(elements) => elements,
                // That it cannot be read is reported.
                None => {
                    self.program.sets[decl.id].ty = Type::Bool;
                    return;
                }
            },
        };
        let hints = declared.as_ref().map_or_else(Vec::new, hints_of);
        let env = Self::env(decl.unit);
        if let Some(span) = elements.iter().find_map(|element| self.untyped(element, &hints, &env)) {
            let is_tuple = matches!(elements, [ast::Element { kind: ElementKind::Tuple(_), .. }, ..]);
            self.untyped_member(decl.id, span, is_tuple);
            return;
        }
        let elements = self.elements(elements, &hints, &env);
        match declared {
            Some(ty) => {
                if !self.fit_declared(&elements, &ty) {
                    self.program.sets[decl.id].ty = Type::Bool;
                    return;
                }
            }
            None => {
                if let Some(ty) = self.type_of(&elements) {
                    self.program.sets[decl.id].ty = ty;
                }
            }
        }
        let (elements, spans) = elements.into_iter().unzip();
        self.program.sets[decl.id].elements = elements;
        self.element_spans.insert(decl.id, spans);
    }

    /// Whether all elements are of the declared type; reports those that are not.
    fn fit_declared(&mut self, elements: &[(Element, Span)], ty: &Type) -> bool {
        let before = self.diagnostics.len();
        for (element, span) in elements {
            self.fit_one(element, ty, *span);
        }
        self.diagnostics.len() == before
    }

    fn fit_one(&mut self, element: &Element, ty: &Type, span: Span) {
        let found = element_type(element);
        match (ty, element) {
            (Type::Tuple(types), Element::Tuple(parts)) if types.len() == parts.len() => {
                for (part, ty) in parts.iter().zip(types) {
                    if let Some(part) = part {
                        self.fit_one(part, ty, span);
                    }
                }
                return;
            }
            _ if found == *ty || (*ty == Type::Ip && is_address(&found)) => return,
            _ => {}
        }
        match (number_bits(&self.program, ty), element) {
            (Some(bits), Element::Uint { high, .. }) if *high > max_of(bits) => {
                let title = format!("{high} does not fit in the set's type");
                let label = format!("{bits} bits hold at most {}", max_of(bits));
                self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, span, label));
            }
            (Some(_), Element::Uint { .. }) => {}
            _ => {
                let (holds, what) = (describe(&self.program, ty), self.kind_of(&found));
                let title = format!("`{}` is of another kind than the set", self.text(span));
                let label = format!("this is {what}, and each element is {holds}");
                self.report(Diagnostic::error(codes::TYPE_MISMATCH, title, span, label));
            }
        }
    }

    /// The type that holds all elements; reports the first that is of another kind.
    pub(crate) fn type_of(&mut self, elements: &[(Element, Span)]) -> Option<Type> {
        let (first, first_span) = elements.first()?;
        let mut ty = element_type(first);
        for (element, span) in elements {
            let other = element_type(element);
            ty = match common_type(&ty, &other) {
                Some(both) => both,
                None => {
                    let title = "a set holds one kind of values";
                    let label = format!("this is {}", self.kind_of(&other));
                    let diagnostic = Diagnostic::error(codes::TYPE_MISMATCH, title, *span, label)
                        .with_label(*first_span, format!("this is {}", self.kind_of(&ty)));
                    self.report(diagnostic);
                    return None;
                }
            };
        }
        Some(ty)
    }

    /// A type in a sentence; a constant's width is of no interest.
    fn kind_of(&self, ty: &Type) -> String {
        match ty {
            Type::Uint { .. } => "a number".into(),
            _ => describe(&self.program, ty),
        }
    }

    /// The elements of a literal, each with its place; those with mistakes are left out. `hints`: the enum whose
    /// members they may name, of tuples one for each part.
    pub(crate) fn elements(
        &mut self,
        elements: &'a [ast::Element],
        hints: &[Option<EnumId>],
        env: &Env<'a>,
    ) -> Vec<(Element, Span)> {
        let mut checked: Vec<(Element, Span)> = Vec::new();
        let mut seen: HashMap<Element, Span> = HashMap::new();
        for element in elements {
            let Some(value) = self.element(element, hints, env) else { continue };
            if let Some(first) = seen.insert(value.clone(), element.span) {
                let title = format!("`{}` stands in this set twice", self.text(element.span));
                let diagnostic = Diagnostic::warning(codes::DUPLICATE, title, element.span, "again here")
                    .with_label(first, "first here")
                    .with_help("remove one of them");
                self.report(diagnostic);
            }
            checked.push((value, element.span));
        }
        checked
    }

    fn element(
        &mut self,
        element: &'a ast::Element,
        hints: &[Option<EnumId>],
        env: &Env<'a>,
    ) -> Option<Element> {
        let hint = hints.first().copied().flatten();
        match &element.kind {
            ElementKind::Item(expr) => self.item(expr, hint, env),
            ElementKind::Range(low, high) => {
                let low = self.end_value(low, hint, env);
                let high = self.end_value(high, hint, env);
                self.range(low?, high?, element.span)
            }
            ElementKind::Tuple(parts) => {
                let parts = parts.iter().enumerate().map(|(at, part)| {
                    let hint = hints.get(at).copied().flatten();
                    self.tuple_element(part, hint, env)
                });
                parts.collect::<Vec<_>>().into_iter().collect::<Option<_>>().map(Element::Tuple)
            }
        }
    }

    /// A part of a tuple; `_` is anything.
    fn tuple_element(
        &mut self,
        part: &'a ast::Element,
        hint: Option<EnumId>,
        env: &Env<'a>,
    ) -> Option<Option<Element>> {
        match &part.kind {
            ElementKind::Item(expr) if bare_word(expr) == Some("_") => Some(None),
            ElementKind::Tuple(_) => {
                let title = "a tuple holds single values";
                let label = "a tuple in a tuple";
                self.report(Diagnostic::error(codes::TYPE_MISMATCH, title, part.span, label));
                None
            }
            ElementKind::Item(_) | ElementKind::Range(..) => self.element(part, &[hint], env).map(Some),
        }
    }

    fn item(&mut self, expr: &'a ast::Expr, hint: Option<EnumId>, env: &Env<'a>) -> Option<Element> {
        match &expr.kind {
            Ast::Prefix(address, length) => Some(prefix(*address, *length)),
            Ast::MacPrefix(address, length) => Some(mac_prefix(*address, *length)),
            Ast::Path(path) => match self.quietly(|checker| checker.place(path, expr.span, env)) {
                Some(Place::Const(id)) => match self.symbols[id].kind {
                    SymbolKind::Const { value, .. }
                        if matches!(value.kind, Ast::Prefix(..) | Ast::MacPrefix(..)) =>
                    {
                        self.item(value, hint, env)
                    }
                    _ => self.single(expr, hint, env),
                },
                _ => self.single(expr, hint, env),
            },
            _ => self.single(expr, hint, env),
        }
    }

    /// A bare word that is only known as an enum's member, while no enum is expected.
    fn untyped(
        &mut self,
        element: &'a ast::Element,
        hints: &[Option<EnumId>],
        env: &Env<'a>,
    ) -> Option<Span> {
        let hint = hints.first().copied().flatten();
        let expr = match &element.kind {
            ElementKind::Item(expr) | ElementKind::Range(expr, _) => expr,
            ElementKind::Tuple(parts) => {
                let mut parts = parts.iter().enumerate();
                return parts
                    .find_map(|(at, part)| self.untyped(part, hints.get(at..=at).unwrap_or_default(), env));
            }
        };
        let name = bare_word(expr).filter(|_| hint.is_none())?;
        let is_value = self.lookup(Space::Value, env.unit, name).is_some_and(|id| {
            matches!(
                self.symbols[id].kind,
                SymbolKind::Const { .. } | SymbolKind::Def { .. } | SymbolKind::Set(_)
            )
        });
        let mut enums = self.program.enums.values();
        let is_member = enums.any(|it| it.members.iter().any(|(member, _)| member == name));
        (!is_value && is_member).then_some(expr.span)
    }

    fn untyped_member(&mut self, id: SetId, span: Span, is_tuple: bool) {
        let (name, set) = (self.text(span), self.program.sets[id].name.clone().unwrap_or_default());
        let enums = self.program.enums.values();
        let of = enums.filter(|it| it.members.iter().any(|(member, _)| member == name));
        let names: Vec<&str> = of.map(|it| it.name.as_str()).collect();
        let (first, all) = (names[0], names.join("`, `"));
        let diagnostic = Diagnostic::error(
            codes::NOT_A_VALUE,
            format!("what `{name}` means depends on the set's type"),
            span,
            "a member of which enum?",
        )
        .with_note(format!("`{name}` is a member of `{all}`"))
        .with_help(if is_tuple {
            format!("give the set a type, with this part as `{first}`: `set {set}: (…, {first}) = …;`")
        } else {
            format!("give the set a type: `set {set}: {first} = …;`")
        });
        self.report(diagnostic);
    }

    fn single(&mut self, expr: &'a ast::Expr, hint: Option<EnumId>, env: &Env<'a>) -> Option<Element> {
        let value = self.end_value(expr, hint, env)?;
        self.range(value.clone(), value, expr.span)
    }

    /// A constant in a set. A parameter of unknown value, when a definition is checked by itself, is passed over.
    fn end_value(&mut self, expr: &'a ast::Expr, hint: Option<EnumId>, env: &Env<'a>) -> Option<Value> {
        if let Some(word) = bare_word(expr)
            && env.params.iter().any(|(name, arg)| *name == word && matches!(arg, Argument::Unknown(_)))
        {
            return None;
        }
        let checked = self.expression(expr, hint, env)?;
        if let ExprKind::Const(value) = checked.kind {
            return Some(value);
        }
        let title = format!("`{}` is not known when compiling", self.text(expr.span));
        let diagnostic = Diagnostic::error(codes::NOT_CONSTANT, title, expr.span, "it depends on the packet")
            .with_help("the elements of a set are constants; compare two fields with `==`");
        self.report(diagnostic);
        None
    }

    fn range(&mut self, low: Value, high: Value, span: Span) -> Option<Element> {
        let is_empty = match (&low, &high) {
            (Value::Uint(low), Value::Uint(high)) | (Value::Mac(low), Value::Mac(high)) => low > high,
            (Value::Ipv4(low), Value::Ipv4(high)) => low > high,
            (Value::Ipv6(low), Value::Ipv6(high)) => low > high,
            (Value::Bytes(low), Value::Bytes(high)) => {
                if low.len() != high.len() {
                    self.bad_range(codes::TYPE_MISMATCH, span, "both ends of a range are equally long");
                    return None;
                }
                low > high
            }
            _ => {
                self.bad_range(codes::TYPE_MISMATCH, span, "both ends of a range are of one kind");
                return None;
            }
        };
        if is_empty {
            self.bad_range(codes::EMPTY_RANGE, span, "a range starts with its smaller end");
            return None;
        }
        match (low, high) {
            (Value::Uint(low), Value::Uint(high)) => Some(Element::Uint { low, high }),
            (Value::Mac(low), Value::Mac(high)) => Some(Element::Mac { low, high }),
            (Value::Ipv4(low), Value::Ipv4(high)) => Some(Element::Ipv4 { low, high }),
            (Value::Ipv6(low), Value::Ipv6(high)) => Some(Element::Ipv6 { low, high }),
            (Value::Bytes(low), Value::Bytes(high)) => Some(Element::Bytes { low, high }),
            _ => None,
        }
    }

    fn bad_range(&mut self, code: pktc_diagnostics::Code, span: Span, why: &str) {
        let what = if code == codes::EMPTY_RANGE { "holds nothing" } else { "is no range" };
        let title = format!("`{}` {what}", self.text(span));
        self.report(Diagnostic::error(code, title, span, why));
    }
}

/// The enums whose members a type's values are, of a tuple one for each part.
pub(crate) fn hints_of(ty: &Type) -> Vec<Option<EnumId>> {
    let hint = |ty: &Type| match ty {
        Type::Enum(id) => Some(*id),
        _ => None,
    };
    match ty {
        Type::Tuple(parts) => parts.iter().map(hint).collect(),
        _ => vec![hint(ty)],
    }
}

/// The type that holds the elements of both; none if they are of two kinds. [`Type::Bool`] is that of `_`.
fn common_type(a: &Type, b: &Type) -> Option<Type> {
    match (a, b) {
        (a, b) if a == b => Some(a.clone()),
        (Type::Bool, other) | (other, Type::Bool) => Some(other.clone()),
        (Type::Uint { bits: a }, Type::Uint { bits: b }) => Some(Type::Uint { bits: *a.max(b) }),
        (a, b) if is_address(a) && is_address(b) => Some(Type::Ip),
        (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
            a.iter().zip(b).map(|(a, b)| common_type(a, b)).collect::<Option<_>>().map(Type::Tuple)
        }
        _ => None,
    }
}

/// All addresses of a prefix. Bits behind its length, which the lexer has reported, count as 0.
fn prefix(address: IpAddr, length: u8) -> Element {
    match address {
        IpAddr::V4(address) => {
            let host = u32::MAX.checked_shr(u32::from(length)).unwrap_or(0);
            let low = Ipv4Addr::from_bits(address.to_bits() & !host);
            Element::Ipv4 { low, high: Ipv4Addr::from_bits(low.to_bits() | host) }
        }
        IpAddr::V6(address) => {
            let host = u128::MAX.checked_shr(u32::from(length)).unwrap_or(0);
            let low = Ipv6Addr::from_bits(address.to_bits() & !host);
            Element::Ipv6 { low, high: Ipv6Addr::from_bits(low.to_bits() | host) }
        }
    }
}

fn mac_prefix(address: u64, length: u8) -> Element {
    let host = (1_u64 << 48_u8.saturating_sub(length)) - 1;
    Element::Mac { low: address & !host, high: address | host }
}

pub(crate) fn element_type(element: &Element) -> Type {
    match element {
        Element::Uint { high, .. } => Type::Uint { bits: width_of(*high) },
        Element::Mac { .. } => Type::Mac,
        Element::Ipv4 { .. } => Type::Ipv4,
        Element::Ipv6 { .. } => Type::Ipv6,
        Element::Bytes { .. } => Type::Bytes,
        Element::Tuple(elements) => {
            Type::Tuple(elements.iter().map(|it| it.as_ref().map_or(Type::Bool, element_type)).collect())
        }
    }
}

/// `02:00:00:00:00:01`
pub(crate) fn mac_text(address: u64) -> String {
    address.to_be_bytes()[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}
