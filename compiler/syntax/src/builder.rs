//! What the grammar's actions call: spans, words, and the refusal of what the grammar takes too generously.

use hashbrown::HashMap;

use pktc_diagnostics::{Diagnostic, FileId, Span, codes};

use crate::ast::{ActionKind, BinaryOp, CompareOp, Duration, Else, Expr, ExprKind, Path, Word};
use crate::number::unit_nanoseconds;

/// Builds the tree of one file.
#[derive(Debug)]
pub(crate) struct Builder<'t> {
    file: FileId,
    text: &'t str,
    docs: &'t HashMap<u32, String>,
    /// What was refused while building.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// An `and` or `or` between two conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connective {
    pub(crate) is_and: bool,
    pub(crate) span: Span,
}

/// `first`, then `rest`.
pub(crate) fn prepend<T>(first: T, mut rest: Vec<T>) -> Vec<T> {
    rest.insert(0, first);
    rest
}

impl<'t> Builder<'t> {
    /// A builder for `text`; `docs` are the `///` texts by the start of what they document.
    pub(crate) fn new(file: FileId, text: &'t str, docs: &'t HashMap<u32, String>) -> Self {
        Builder { file, text, docs, diagnostics: Vec::new() }
    }

    /// Bytes `start..end`.
    pub(crate) fn span(&self, start: u32, end: u32) -> Span {
        Span { file: self.file, start, end }
    }

    /// The text at `span`.
    pub(crate) fn text(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The text at `span`, on one line and cut where it is long.
    pub(crate) fn shortened(&self, span: Span) -> String {
        let text = self.snippet(span);
        match text.char_indices().nth(40) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }
    }

    /// The character that ends before `byte`.
    pub(crate) fn last_character(&self, byte: u32) -> Span {
        let length = self.text[..byte as usize].chars().next_back().map_or(0, char::len_utf8);
        self.span(byte - length as u32, byte)
    }

    fn snippet(&self, span: Span) -> String {
        let text = &self.text[span.start as usize..span.end as usize];
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn word(&self, start: u32, end: u32) -> Word {
        Word { text: self.text[start as usize..end as usize].to_owned(), span: self.span(start, end) }
    }

    /// A name that is declared; `_` names nothing.
    pub(crate) fn new_name(&mut self, start: u32, end: u32) -> Word {
        let word = self.word(start, end);
        if word.text == "_" {
            let diagnostic =
                Diagnostic::error(codes::KEYWORD_AS_NAME, "`_` is not a name", word.span, "a name goes here")
                    .with_help(
                        "choose a name of letters, digits and `_`; `_` alone stands for what has none",
                    );
            self.diagnostics.push(diagnostic);
        }
        word
    }

    /// The `///` text before the token at `start`.
    pub(crate) fn doc(&self, start: u32) -> String {
        self.docs.get(&start).cloned().unwrap_or_default()
    }

    pub(crate) fn expr(&self, start: u32, kind: ExprKind, end: u32) -> Expr {
        Expr { span: self.span(start, end), kind }
    }

    pub(crate) fn binary(&self, start: u32, op: BinaryOp, left: Expr, right: Expr, end: u32) -> Expr {
        self.expr(start, ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }, end)
    }

    /// The time that a rate's `unit` names: `packets/s`.
    pub(crate) fn time_unit(&mut self, unit: Word) -> Duration {
        let nanoseconds = unit_nanoseconds(&unit.text).unwrap_or_else(|| {
            let title = format!("`{}` is not a unit of time", unit.text);
            let diagnostic = Diagnostic::error(codes::SYNTAX, title, unit.span, "in which time?")
                .with_help("write `/s`, `/min`, `/h`, or a time such as `/3s`");
            self.diagnostics.push(diagnostic);
            1
        });
        Duration { nanoseconds, span: unit.span }
    }

    /// `first` and `rest` joined; mixed connectives are refused with both readings.
    pub(crate) fn connect(&mut self, first: Expr, rest: Vec<(Connective, Expr)>) -> Expr {
        let last = rest.last().map_or(first.span, |(_, expr)| expr.span);
        let span = first.span.to(last);
        let is_and = rest.first().is_some_and(|(connective, _)| connective.is_and);
        if let Some((other, _)) = rest.iter().find(|(connective, _)| connective.is_and != is_and) {
            let diagnostic = self.mixed_connectives(&first, &rest, other.span);
            self.diagnostics.push(diagnostic);
            return Expr { span, kind: ExprKind::Error };
        }
        let parts = prepend(first, rest.into_iter().map(|(_, expr)| expr).collect());
        let kind = if is_and { ExprKind::And(parts) } else { ExprKind::Or(parts) };
        Expr { span, kind }
    }

    fn mixed_connectives(&self, first: &Expr, rest: &[(Connective, Expr)], other: Span) -> Diagnostic {
        let title = "`and` and `or` side by side can be read in two ways";
        let mut diagnostic = Diagnostic::error(codes::MIXED_AND_OR, title, other, "mixed with the other")
            .with_note("Languages differ in which of the two binds tighter, so here parentheses say it.");
        if let Some((connective, _)) = rest.first() {
            diagnostic = diagnostic.with_label(connective.span, "this one");
        }
        let and_first = self.reading(first, rest, true);
        let or_first = self.reading(first, rest, false);
        diagnostic.with_help(format!("write `{and_first}`, or `{or_first}`"))
    }

    /// The text with parentheses around what the tighter connective (`and` if `tight_and`) joins.
    fn reading(&self, first: &Expr, rest: &[(Connective, Expr)], tight_and: bool) -> String {
        let (tight, loose) = if tight_and { (" and ", " or ") } else { (" or ", " and ") };
        let mut groups = vec![vec![self.snippet(first.span)]];
        for (connective, expr) in rest {
            let text = self.snippet(expr.span);
            match groups.last_mut() {
                Some(group) if connective.is_and == tight_and => group.push(text),
                _ => groups.push(vec![text]),
            }
        }
        let grouped = groups.iter().map(|group| match group.as_slice() {
            [one] => one.clone(),
            many => format!("({})", many.join(tight)),
        });
        grouped.collect::<Vec<_>>().join(loose)
    }

    /// `not operand`; refused where the operand is neither a path nor in parentheses.
    pub(crate) fn not(&mut self, operand: Expr, start: u32, end: u32) -> Expr {
        let diagnostic = match &operand.kind {
            ExprKind::Path(_) | ExprKind::Paren(_) | ExprKind::Not(_) | ExprKind::Error => None,
            ExprKind::Bool(value) => {
                let title = format!("`not {value}` is `{}`", !value);
                let help = format!("write `{}`", !value);
                Some(Diagnostic::error(codes::UNCLEAR_NOT, title, self.span(start, end), "").with_help(help))
            }
            _ => Some(self.unclear_not(&operand, start)),
        };
        let Some(diagnostic) = diagnostic else {
            return self.expr(start, ExprKind::Not(Box::new(operand)), end);
        };
        self.diagnostics.push(diagnostic);
        self.expr(start, ExprKind::Error, end)
    }

    fn unclear_not(&self, operand: &Expr, start: u32) -> Diagnostic {
        let text = self.snippet(operand.span);
        let span = self.span(start, operand.span.end);
        let title = "`not` before a comparison can be read in two ways";
        let error = |title| Diagnostic::error(codes::UNCLEAR_NOT, title, span, "not what, exactly?");
        let opposite = match &operand.kind {
            ExprKind::Compare { op, left, right } => {
                let op = opposite(*op);
                format!("{} {op} {}", self.snippet(left.span), self.snippet(right.span))
            }
            ExprKind::In { negated, value, .. } => {
                let word = if *negated { "in" } else { "not in" };
                let value_text = self.snippet(value.span);
                let (_, set) = text.rsplit_once(" in ").unwrap_or((&text, "…"));
                format!("{value_text} {word} {set}")
            }
            _ => {
                return error("`not` takes a condition: a name, or something in parentheses")
                    .with_help(format!("if `{text}` is a condition, write `not ({text})`"));
            }
        };
        error(title)
            .with_note("They differ where a field is absent: `not (…)` is then true.")
            .with_help(format!("write `not ({text})`, or `{opposite}`"))
    }

    /// `&&` and `||`: taken for what they mean elsewhere, and refused.
    pub(crate) fn foreign_connective(&mut self, is_and: bool, start: u32, end: u32) -> Connective {
        let (written, right) = if is_and { ("&&", "and") } else { ("||", "or") };
        self.foreign(written, right, start, end);
        Connective { is_and, span: self.span(start, end) }
    }

    /// `!` for `not`.
    pub(crate) fn foreign_not(&mut self, start: u32, end: u32) {
        self.foreign("!", "not", start, end);
    }

    /// `=` for `==`.
    pub(crate) fn single_equals(&mut self, start: u32, end: u32) -> CompareOp {
        self.foreign("=", "==", start, end);
        CompareOp::Equal
    }

    fn foreign(&mut self, written: &str, right: &str, start: u32, end: u32) {
        let title = format!("`{written}` is written `{right}` here");
        let diagnostic = Diagnostic::error(
            codes::FOREIGN_OPERATOR,
            title,
            self.span(start, end),
            format!("write `{right}`"),
        );
        self.diagnostics.push(diagnostic);
    }

    /// `limit meter else …`; the `else` may not be left out.
    pub(crate) fn limit(
        &mut self,
        start: u32,
        meter: Path,
        end: u32,
        otherwise: Option<Box<Else>>,
    ) -> ActionKind {
        if otherwise.is_none() {
            let written = self.snippet(self.span(start, end));
            let title = "this `limit` does not say what happens over the limit";
            let diagnostic =
                Diagnostic::error(codes::MISSING_ELSE, title, self.span(start, end), "and over it?")
                    .with_help(format!(
                        "write `{written} else drop`, or `{written} else {{ … }}` with several actions"
                    ));
            self.diagnostics.push(diagnostic);
        }
        ActionKind::Limit { meter, otherwise }
    }
}

/// The comparison that is true where `op` is false and both sides have a value.
fn opposite(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Equal => "!=",
        CompareOp::NotEqual => "==",
        CompareOp::Less => ">=",
        CompareOp::LessEqual => ">",
        CompareOp::Greater => "<=",
        CompareOp::GreaterEqual => "<",
    }
}
