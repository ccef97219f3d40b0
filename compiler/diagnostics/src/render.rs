//! Diagnostics as text, through codespan-reporting.

use std::collections::BTreeMap;

use codespan_reporting::diagnostic as cs;
use codespan_reporting::term;

use crate::excerpt::{Excerpts, FIRST_LINES, LAST_LINES};
use crate::{Diagnostic, Severity, SourceMap, printable};

/// So many diagnostics of a severity are shown, and of the others how many they are.
const SHOWN: usize = 100;
/// Characters of a title, label, note or help.
const LONGEST: usize = 1000;
/// So many places are shown beside a diagnostic's own.
const PLACES: usize = 16;

/// Renders `diagnostics` in their order, each with the source lines that it points at.
#[must_use]
pub fn render(sources: &SourceMap, diagnostics: &[Diagnostic], color: bool) -> String {
    let mut text = String::new();
    let mut counts = BTreeMap::new();
    for diagnostic in diagnostics {
        let count = counts.entry(diagnostic.severity).or_insert(0);
        *count += 1;
        if *count <= SHOWN {
            render_one(sources, diagnostic, color, &mut text);
        }
    }
    for (severity, count) in counts.into_iter().filter(|&(_, count)| count > SHOWN) {
        text += &more(severity, count - SHOWN);
    }
    text
}

/// What a diagnostic says, without what would fill the screen: it may quote a whole source.
fn said(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => printable(&text[..end]) + "…",
        None => printable(text),
    }
}

fn more(severity: Severity, count: usize) -> String {
    let noun = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    format!("… and {count} more {noun}{}\n", if count == 1 { "" } else { "s" })
}

fn render_one(sources: &SourceMap, diagnostic: &Diagnostic, color: bool, text: &mut String) {
    let config = term::Config {
        start_context_lines: FIRST_LINES as usize,
        end_context_lines: LAST_LINES as usize,
        ..term::Config::default()
    };
    let secondary = diagnostic.secondary.iter().take(PLACES);
    let labels: Vec<_> = std::iter::once((cs::LabelStyle::Primary, &diagnostic.primary))
        .chain(secondary.map(|label| (cs::LabelStyle::Secondary, label)))
        .collect();
    let excerpts = Excerpts::new(sources, labels.iter().map(|(_, label)| label.span));
    let labels = labels.into_iter().map(|(style, label)| {
        let (file, range) = (label.span.file.0 as usize, excerpts.range(label.span));
        cs::Label::new(style, file, range).with_message(said(&label.text))
    });
    let converted = convert(diagnostic, labels.collect());
    let done = if color {
        let mut out = term::termcolor::Ansi::new(Vec::new());
        let done = term::emit_to_write_style(&mut out, &config, &excerpts, &converted);
        text.push_str(&String::from_utf8_lossy(&out.into_inner()));
        done
    } else {
        term::emit_to_string(text, &config, &excerpts, &converted)
    };
    debug_assert!(done.is_ok(), "spans lie in their files");
}

fn convert(diagnostic: &Diagnostic, labels: Vec<cs::Label<usize>>) -> cs::Diagnostic<usize> {
    let severity = match diagnostic.severity {
        Severity::Error => cs::Severity::Error,
        Severity::Warning => cs::Severity::Warning,
        Severity::Note => cs::Severity::Note,
    };
    let notes = diagnostic.notes.iter().map(|note| said(note));
    let help = diagnostic.help.iter().map(|help| format!("help: {}", said(help)));
    cs::Diagnostic::new(severity)
        .with_code(diagnostic.code.id)
        .with_message(said(&diagnostic.title))
        .with_labels(labels)
        .with_notes(notes.chain(help).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, codes};

    fn rendered(text: &str, spans: &[(u32, u32)]) -> String {
        let mut sources = SourceMap::default();
        let file = sources.add("a\u{7}.pkt", text);
        let diagnostics: Vec<_> = spans
            .iter()
            .map(|&(start, end)| {
                let title = format!("`{}` is wrong", &text[start as usize..end as usize]);
                Diagnostic::error(codes::SYNTAX, title, Span { file, start, end }, "here")
            })
            .collect();
        render(&sources, &diagnostics, false)
    }

    #[test]
    fn what_terminals_obey_is_written_as_numbers_and_underlined_as_such() {
        let text = "rule \u{1b}[31m\0\u{202e}\u{9b}x:\r\n";
        let shown = rendered(text, &[(5, 17)]);
        let expected = "\
error[E0100]: `\\x1b[31m\\x00\\u{202e}\\x9bx` is wrong
  ┌─ a\\x07.pkt:1:6
  │
1 │ rule \\x1b[31m\\x00\\u{202e}\\x9bx:
  │      ^^^^^^^^^^^^^^^^^^^^^^^^^ here

";
        assert_eq!(shown, expected);
    }

    #[test]
    fn of_long_lines_what_is_around_labels_is_shown() {
        let text = format!("first\n{}!{}", "é".repeat(5_000), "b".repeat(5_000));
        let shown = rendered(&text, &[(10_006, 10_007)]);
        let line = format!("2 │ …{}!{}…\n", "é".repeat(30), "b".repeat(61));
        assert!(shown.contains("a\\x07.pkt:2:5001\n") && shown.contains(&line), "{shown}");
        assert!(shown.contains(&format!("  │ {} ^ here\n", " ".repeat(30))), "{shown}");
        let whole = rendered(&text, &[(6, 15_007)]);
        let line = format!("2 │ {}…{}\n", "é".repeat(31), "b".repeat(60));
        assert!(whole.contains(&line), "{whole}");
    }

    #[test]
    fn lines_keep_their_context() {
        let text = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let shown = rendered(text, &[(0, 19)]);
        let numbers = shown.lines().filter_map(|line| line.split_once(" │").map(|(number, _)| number.trim()));
        let numbers: Vec<_> = numbers.filter(|number| number.starts_with(char::is_numeric)).collect();
        assert_eq!(numbers, ["1", "2", "3", "4", "9", "10"], "{shown}");
    }

    #[test]
    fn the_first_are_shown_and_the_others_counted() {
        let text = "x ".repeat(3_000);
        let spans: Vec<_> = (0..3_000).map(|n| (2 * n, 2 * n + 1)).collect();
        let shown = rendered(&text, &spans);
        assert!(shown.ends_with("\n… and 2900 more errors\n") && shown.len() < 100_000, "{}", shown.len());
        assert_eq!(shown.matches("is wrong").count(), 100);
    }

    #[test]
    fn long_quotations_are_cut_off() {
        let shown = rendered(&"x".repeat(5_000), &[(0, 5_000)]);
        assert!(shown.starts_with(&format!("error[E0100]: `{}…\n", "x".repeat(999))), "{shown}");
    }
}
