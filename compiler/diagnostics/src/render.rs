//! Diagnostics as text, through codespan-reporting.

use codespan_reporting::diagnostic as cs;
use codespan_reporting::files::SimpleFiles;
use codespan_reporting::term;

use crate::{Diagnostic, Severity, SourceMap};

/// Renders `diagnostics` in their order, each with the source lines that it points at.
#[must_use]
pub fn render(sources: &SourceMap, diagnostics: &[Diagnostic], color: bool) -> String {
    let mut files = SimpleFiles::new();
    for file in sources.files() {
        files.add(sources.name(file), sources.text(file));
    }
    let config = term::Config::default();
    let mut text = String::new();
    for diagnostic in diagnostics {
        let converted = convert(diagnostic);
        let done = if color {
            let mut out = term::termcolor::Ansi::new(Vec::new());
            let done = term::emit_to_write_style(&mut out, &config, &files, &converted);
            text.push_str(&String::from_utf8_lossy(&out.into_inner()));
            done
        } else {
            term::emit_to_string(&mut text, &config, &files, &converted)
        };
        debug_assert!(done.is_ok(), "spans lie in their files");
    }
    text
}

fn convert(diagnostic: &Diagnostic) -> cs::Diagnostic<usize> {
    let severity = match diagnostic.severity {
        Severity::Error => cs::Severity::Error,
        Severity::Warning => cs::Severity::Warning,
        Severity::Note => cs::Severity::Note,
    };
    let label = |style, label: &crate::Label| {
        let range = label.span.start as usize..label.span.end as usize;
        cs::Label::new(style, label.span.file.0 as usize, range).with_message(label.text.as_str())
    };
    let labels = std::iter::once(label(cs::LabelStyle::Primary, &diagnostic.primary))
        .chain(diagnostic.secondary.iter().map(|other| label(cs::LabelStyle::Secondary, other)))
        .collect();
    let notes = diagnostic.notes.iter().cloned();
    let help = diagnostic.help.iter().map(|help| format!("help: {help}"));
    cs::Diagnostic::new(severity)
        .with_code(diagnostic.code.id)
        .with_message(diagnostic.title.as_str())
        .with_labels(labels)
        .with_notes(notes.chain(help).collect())
}
