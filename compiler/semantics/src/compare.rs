//! Comparisons: both sides of one kind, constants that fit, and results that are not known beforehand.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, CompareOp, ExprKind as Ast};

use crate::arithmetic::{is_plain, possible_bits, upper_bound, width_of};
use crate::checker::{Checker, Env};
use crate::expr::{slice_length, truth};
use crate::path::{NUMBER_BYTES, Place, bare_word};
use crate::typed::{EnumId, Expr, ExprKind, Type, Value};
use crate::types::{describe, is_address, max_of, number_bits};

impl<'a> Checker<'a> {
    /// `left == right` and its like.
    pub(crate) fn compare(
        &mut self,
        op: CompareOp,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        span: Span,
        env: &Env<'a>,
    ) -> Option<Expr> {
        for (many, one) in [(right, left), (left, right)] {
            if self.is_many(many, env) {
                self.needs_in(op, one, many, span);
                return None;
            }
        }
        let hint = self.enum_of(left, env).or_else(|| self.enum_of(right, env));
        let (left, right) = self.sides(left, right, hint, env);
        let (left, right) = (left?, right?);
        if matches!((&left.ty, &right.ty), (Type::Tuple(_), _) | (_, Type::Tuple(_))) {
            self.compares_tuples(span);
            return None;
        }
        let (left, right) = self.same_kind(left, right)?;
        let is_equality = matches!(op, CompareOp::Equal | CompareOp::NotEqual);
        if !is_equality && number_bits(&self.program, &left.ty).is_none() {
            self.not_ordered(&left, span);
            return None;
        }
        if left.ty == Type::Bool {
            self.compares_conditions(span);
            return None;
        }
        if let (ExprKind::Const(a), ExprKind::Const(b)) = (&left.kind, &right.kind) {
            return Some(truth(holds(op, a, b), span));
        }
        let (left, right) = (self.fitted(left, &right.clone())?, right);
        let (right, left) = (self.fitted(right, &left)?, left);
        self.warn_if_known(op, &left, &right, span);
        Some(Expr {
            kind: ExprKind::Compare { op, left: Box::new(left), right: Box::new(right) },
            ty: Type::Bool,
            span,
        })
    }

    /// Checks two sides that explain each other: where one is not understood, a bare word on the other may be a
    /// member of an enum that is not known, and is not reported.
    pub(crate) fn sides(
        &mut self,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        hint: Option<EnumId>,
        env: &Env<'a>,
    ) -> (Option<Expr>, Option<Expr>) {
        if bare_word(left).is_some() && bare_word(right).is_none() {
            let right = self.expression(right, hint, env);
            let left = right.as_ref().and_then(|_| self.expression(left, hint, env));
            return (left, right);
        }
        let checked = self.expression(left, hint, env);
        let right = if checked.is_some() || bare_word(right).is_none() {
            self.expression(right, hint, env)
        } else {
            None
        };
        (checked, right)
    }

    /// Whether it is a prefix or a set: many values.
    fn is_many(&mut self, expr: &'a ast::Expr, env: &Env<'a>) -> bool {
        match &expr.kind {
            Ast::Prefix(..) | Ast::MacPrefix(..) => true,
            Ast::Paren(inner) => self.is_many(inner, env),
            Ast::Path(path) if path.steps.is_empty() => {
                match self.quietly(|checker| checker.place(path, expr.span, env)) {
                    Some(Place::Set(_)) => true,
                    Some(Place::Const(id)) => match self.symbols[id].kind {
                        crate::names::SymbolKind::Const { value, .. } => {
                            matches!(value.kind, Ast::Prefix(..) | Ast::MacPrefix(..))
                        }
                        _ => false,
                    },
                    _ => false,
                }
            }
            _ => false,
        }
    }

    fn needs_in(&mut self, op: CompareOp, one: &ast::Expr, many: &ast::Expr, span: Span) {
        let (one, text) = (self.text(one.span), self.text(many.span));
        let fix = if op == CompareOp::NotEqual {
            format!(
                "write `not ({one} in {text})`, which holds for packets without `{one}` too, or `{one} not in {text}`"
            )
        } else {
            format!("write `{one} in {text}`")
        };
        let diagnostic = Diagnostic::error(
            codes::NEEDS_IN,
            format!("`{text}` is many values, and a comparison is with one"),
            span,
            "this asks whether two single values are equal",
        )
        .with_help(fix);
        self.report(diagnostic);
    }

    fn not_ordered(&mut self, left: &Expr, span: Span) {
        let what = describe(&self.program, &left.ty);
        let text = self.text(left.span);
        let diagnostic = Diagnostic::error(
            codes::TYPE_MISMATCH,
            "only numbers are smaller or greater",
            span,
            format!("`{text}` is {what}"),
        )
        .with_help("a range is asked with `in`: `ip.src in 192.0.2.1-192.0.2.9`");
        self.report(diagnostic);
    }

    fn compares_tuples(&mut self, span: Span) {
        let title = "tuples are not compared";
        let diagnostic = Diagnostic::error(codes::TYPE_MISMATCH, title, span, "a side of this is a tuple")
            .with_help("ask for membership, `(ip.src, tcp.dport) in pairs`, or compare part by part");
        self.report(diagnostic);
    }

    fn compares_conditions(&mut self, span: Span) {
        let diagnostic = Diagnostic::error(
            codes::TYPE_MISMATCH,
            "conditions are not compared",
            span,
            "a side of this is a condition",
        )
        .with_help("write the condition itself, or `not (…)` around it");
        self.report(diagnostic);
    }

    /// Brings both sides to one kind of type, or reports that they are of two.
    pub(crate) fn same_kind(&mut self, left: Expr, right: Expr) -> Option<(Expr, Expr)> {
        let is_number = |checker: &Self, expr: &Expr| number_bits(&checker.program, &expr.ty).is_some();
        let is_slice = |expr: &Expr| slice_length(expr).is_some_and(|length| length <= NUMBER_BYTES);
        if is_number(self, &left) && is_slice(&right) {
            return Some((left, self.as_number(right)?));
        }
        if is_slice(&left) && is_number(self, &right) {
            return Some((self.as_number(left)?, right));
        }
        let (left, right) = (one_bit(left, &right), right);
        let (right, left) = (one_bit(right, &left), left);
        let same = left.ty == right.ty
            || (is_number(self, &left) && is_number(self, &right))
            || (is_address(&left.ty) && is_address(&right.ty));
        if same {
            return Some((left, right));
        }
        self.two_kinds(&left, &right);
        None
    }

    fn two_kinds(&mut self, left: &Expr, right: &Expr) {
        let (what_left, what_right) = (describe(&self.program, &left.ty), describe(&self.program, &right.ty));
        let title =
            format!("`{}` and `{}` are of different kinds", self.text(left.span), self.text(right.span));
        let label = format!("this is {what_right}");
        let mut diagnostic = Diagnostic::error(codes::TYPE_MISMATCH, title, right.span, label)
            .with_label(left.span, format!("this is {what_left}"));
        if left.ty == Type::Bytes && number_bits(&self.program, &right.ty).is_some() {
            diagnostic = diagnostic
                .with_help("a slice of up to 8 bytes is a number, too: `udp.payload[0..4] == 0x01020304`");
        }
        self.report(diagnostic);
    }

    /// The type of either value.
    pub(crate) fn common_type(&self, left: &Expr, right: &Expr) -> Type {
        if left.ty == right.ty {
            return left.ty.clone();
        }
        match (number_bits(&self.program, &left.ty), number_bits(&self.program, &right.ty)) {
            (Some(_), Some(_)) if matches!(right.kind, ExprKind::Const(_)) => {
                match upper_bound(&self.program, right) {
                    bound if bound <= upper_bound(&self.program, left) => left.ty.clone(),
                    bound => Type::Uint { bits: width_of(bound) },
                }
            }
            (Some(left), Some(right)) => Type::Uint { bits: left.max(right) },
            _ => Type::Ip,
        }
    }

    /// A constant as a value of the other side's type, or a report that it can never be equal.
    fn fitted(&mut self, expr: Expr, other: &Expr) -> Option<Expr> {
        let ExprKind::Const(value) = &expr.kind else { return Some(expr) };
        match value {
            Value::Uint(number) if is_plain(other) || matches!(other.kind, ExprKind::Packet(_)) => {
                let number = *number;
                self.check_fits(number, expr.span, other)?;
                Some(Expr { ty: other.ty.clone(), ..expr })
            }
            Value::Bytes(bytes) => {
                let length = bytes.len();
                self.check_length(length, expr.span, other)?;
                Some(expr)
            }
            _ => Some(expr),
        }
    }

    /// Reports a number that `reader` can never have.
    pub(crate) fn check_fits(&mut self, number: u64, span: Span, reader: &Expr) -> Option<()> {
        let bits = number_bits(&self.program, &reader.ty)?;
        if number <= max_of(bits) {
            return Some(());
        }
        let name = self.text(reader.span);
        let bit = if bits == 1 { "bit" } else { "bits" };
        let diagnostic = Diagnostic::error(
            codes::DOES_NOT_FIT,
            format!("{number} does not fit in `{name}`"),
            span,
            format!("{bits} {bit} hold at most {}", max_of(bits)),
        )
        .with_label(reader.span, format!("{bits} {bit} wide"))
        .with_help("the comparison would have one result for every packet: correct the number, or remove it");
        self.report(diagnostic);
        None
    }

    /// Reports a string that is not as long as what it is compared with.
    pub(crate) fn check_length(&mut self, length: usize, span: Span, reader: &Expr) -> Option<()> {
        let needed = match &reader.kind {
            ExprKind::Field { instance, field } => {
                self.program.headers[instance.header].fields[*field].bits / 8
            }
            _ => match slice_length(reader) {
                Some(length) => length,
                None => return Some(()),
            },
        };
        if u32::try_from(length) == Ok(needed) {
            return Some(());
        }
        let name = self.text(reader.span);
        let diagnostic = Diagnostic::error(
            codes::DOES_NOT_FIT,
            format!("`{name}` is {needed} bytes long, the string {length}"),
            span,
            format!("{length} bytes"),
        )
        .with_label(reader.span, format!("{needed} bytes"))
        .with_note("strings of different lengths are never equal");
        self.report(diagnostic);
        None
    }

    /// Warns of a comparison whose result is known before any packet comes.
    fn warn_if_known(&mut self, op: CompareOp, left: &Expr, right: &Expr, span: Span) {
        if is_address(&left.ty) && is_address(&right.ty) {
            self.warn_of_families(op, left, right);
            return;
        }
        let (reader, constant, op) = match (&left.kind, &right.kind) {
            (_, ExprKind::Const(Value::Uint(constant))) => (left, *constant, op),
            (ExprKind::Const(Value::Uint(constant)), _) => (right, *constant, mirrored(op)),
            _ => return,
        };
        let Some(result) = self.known_result(op, reader, constant) else { return };
        let (bound, name) = (upper_bound(&self.program, reader), self.text(reader.span));
        let title = if result {
            format!("this is true for every packet that has `{name}`")
        } else {
            "this is never true".to_owned()
        };
        let reason = if constant <= bound && matches!(op, CompareOp::Equal | CompareOp::NotEqual) {
            format!("`{name}` never has all the bits of {constant:#x} set")
        } else {
            format!("`{name}` is at least 0 and at most {bound}")
        };
        let diagnostic = Diagnostic::warning(codes::ALWAYS, title, span, "compares nothing")
            .with_note(reason)
            .with_help("correct the number, or remove the comparison");
        self.report(diagnostic);
    }

    /// The result of comparing `reader` with `constant`, if all its values have the same.
    fn known_result(&self, op: CompareOp, reader: &Expr, constant: u64) -> Option<bool> {
        let bound = upper_bound(&self.program, reader);
        let never_equal = constant > bound || constant & !possible_bits(&self.program, reader) != 0;
        match op {
            CompareOp::Equal => never_equal.then_some(false),
            CompareOp::NotEqual => never_equal.then_some(true),
            CompareOp::Less => known(bound < constant, constant == 0),
            CompareOp::LessEqual => known(bound <= constant, false),
            CompareOp::Greater => known(false, bound <= constant),
            CompareOp::GreaterEqual => known(constant == 0, bound < constant),
        }
    }

    fn warn_of_families(&mut self, op: CompareOp, left: &Expr, right: &Expr) {
        if left.ty == right.ty || left.ty == Type::Ip || right.ty == Type::Ip {
            return;
        }
        let title = if op == CompareOp::Equal { "this is never true" } else { "this is always true" };
        let label = format!("this is {}", describe(&self.program, &right.ty));
        let diagnostic = Diagnostic::warning(codes::FAMILIES, title, right.span, label)
            .with_label(left.span, format!("this is {}", describe(&self.program, &left.ty)))
            .with_note("addresses of different families are never equal")
            .with_help("`ip.src` and `ip.dst` are of either family");
        self.report(diagnostic);
    }

    /// A value as one of type `ty`: for parameters, constants and packet fields.
    pub(crate) fn convert(&mut self, expr: Expr, ty: &Type, what: &str) -> Option<Expr> {
        let wanted = number_bits(&self.program, ty);
        if let (Some(bits), ExprKind::Const(Value::Uint(number))) = (wanted, &expr.kind) {
            if *number <= max_of(bits) {
                return Some(Expr { ty: ty.clone(), ..expr });
            }
            let title = format!("{number} does not fit in {what}");
            let label = format!("{bits} bits hold at most {}", max_of(bits));
            self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, expr.span, label));
            return None;
        }
        let fits = match ty {
            Type::Ip => is_address(&expr.ty),
            _ => expr.ty == *ty || (wanted.is_some() && number_bits(&self.program, &expr.ty).is_some()),
        };
        if fits {
            return Some(expr);
        }
        if wanted.is_some() && slice_length(&expr).is_some() {
            return self.as_number(expr);
        }
        let (found, needed) = (describe(&self.program, &expr.ty), describe(&self.program, ty));
        let title = format!("{needed} is needed, and this is {found}");
        let label = format!("{what} is {needed}");
        self.report(Diagnostic::error(codes::TYPE_MISMATCH, title, expr.span, label));
        None
    }
}

/// `true` and `false` beside a one-bit number are 1 and 0.
fn one_bit(expr: Expr, other: &Expr) -> Expr {
    match (&expr.kind, &other.ty) {
        (ExprKind::Const(Value::Bool(value)), Type::Uint { bits: 1 }) => Expr {
            kind: ExprKind::Const(Value::Uint(u64::from(*value))),
            ty: Type::Uint { bits: 1 },
            span: expr.span,
        },
        _ => expr,
    }
}

fn holds(op: CompareOp, a: &Value, b: &Value) -> bool {
    match (op, a, b) {
        (CompareOp::Equal, a, b) => a == b,
        (CompareOp::NotEqual, a, b) => a != b,
        (CompareOp::Less, Value::Uint(a), Value::Uint(b)) => a < b,
        (CompareOp::LessEqual, Value::Uint(a), Value::Uint(b)) => a <= b,
        (CompareOp::Greater, Value::Uint(a), Value::Uint(b)) => a > b,
        (CompareOp::GreaterEqual, Value::Uint(a), Value::Uint(b)) => a >= b,
        // Only numbers are ordered; the caller has reported everything else.
        (CompareOp::Less | CompareOp::LessEqual | CompareOp::Greater | CompareOp::GreaterEqual, _, _) => {
            false
        }
    }
}

/// The operator with its sides exchanged.
pub(crate) fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Equal | CompareOp::NotEqual => op,
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessEqual => CompareOp::GreaterEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterEqual => CompareOp::LessEqual,
    }
}

fn known(always: bool, never: bool) -> Option<bool> {
    if always {
        Some(true)
    } else if never {
        Some(false)
    } else {
        None
    }
}
