//! One message to the user.

use crate::{Code, Span};

/// How bad it is. Only an error keeps a program from being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// It is built, but is probably not what was meant.
    Warning,
    /// For information.
    Note,
}

/// A place in the source, with a few words beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What stands beside the underline; may be empty.
    pub text: String,
}

/// What is wrong (title), where (labels), why (notes), and what to do (help).
///
/// The title says it in the user's words and fits a line; a help is a whole sentence with the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of mistake.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// One line: what is wrong.
    pub title: String,
    /// The place itself; its span sorts the diagnostic.
    pub primary: Label,
    /// Other places that explain it.
    pub secondary: Vec<Label>,
    /// Why it is wrong.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error at `span`.
    #[must_use]
    pub fn error(code: Code, title: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, title.into(), span, label.into())
    }

    /// A warning at `span`.
    #[must_use]
    pub fn warning(code: Code, title: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, title.into(), span, label.into())
    }

    /// A note at `span`.
    #[must_use]
    pub fn note(code: Code, title: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, title.into(), span, label.into())
    }

    fn new(code: Code, severity: Severity, title: String, span: Span, text: String) -> Self {
        let primary = Label { span, text };
        Diagnostic {
            code,
            severity,
            title,
            primary,
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// Adds another place.
    #[must_use]
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Adds a reason.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }
}

/// Sorts by place (file, then position), then by code; equal messages at one place are kept once.
pub fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| (a.primary.span, a.code.id).cmp(&(b.primary.span, b.code.id)));
    diagnostics.dedup();
}

/// Whether one of them keeps the program from being built.
#[must_use]
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}
