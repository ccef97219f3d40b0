//! Wrong sources: where which mistake is reported stands under the line, as
//! `//      ^^^ error[E0201]`; all of them, and no others.

use libtest_mimic::Failed;
use pktc_diagnostics::{Diagnostic, FileId, Severity, SourceMap, render};
use pktc_driver::{Options, Subject, build, check as check_source, programs};

use super::{Case, Folder, dump};

/// Where which mistake is: file, line, first column, columns (on that line), kind.
type Place = (u32, u32, u32, u32, String);

/// Compares the places with those that are marked, then the rendering with its snapshot.
pub(super) fn check(case: &Case) -> Result<(), Failed> {
    let mut checked = check_source(&case.file(), &Folder(case.folder.clone()));
    if checked.program.is_some() {
        let subjects: Vec<_> = programs(&checked).into_iter().map(Subject::Xdp).collect();
        checked.diagnostics.extend(build(&checked, &subjects, &Options::default()).err().unwrap_or_default());
    }
    let sources = &checked.sources;
    let mut found: Vec<_> = checked.diagnostics.iter().map(|diagnostic| place(sources, diagnostic)).collect();
    let marks = sources.files().map(|file| marks(file, sources.text(file)));
    let mut expected: Vec<Place> = marks.collect::<Result<Vec<_>, _>>()?.concat();
    found.sort();
    expected.sort();
    let text = render(sources, &checked.diagnostics, false);
    if expected.is_empty() {
        return Err(format!("no line says `//  ^^^ error[…]`\n{text}").into());
    }
    if found != expected {
        let expected = lines(sources, &expected);
        return Err(format!("marked:\n{expected}found:\n{}\n{text}", lines(sources, &found)).into());
    }
    dump::assert_snapshot(case, "", &text);
    Ok(())
}

fn lines(sources: &SourceMap, places: &[Place]) -> String {
    let line = |(file, line, column, width, kind): &Place| {
        format!("  {}:{line}:{column}, {width} wide: {kind}\n", sources.name(FileId(*file)))
    };
    places.iter().map(line).collect()
}

fn place(sources: &SourceMap, diagnostic: &Diagnostic) -> Place {
    let span = diagnostic.primary.span;
    let start = sources.position(span);
    let width = sources.snippet(span).lines().next().unwrap_or("").chars().count() as u32;
    let kind = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    (span.file.0, start.line, start.column, width, format!("{kind}[{}]", diagnostic.code.id))
}

/// The marks in a text; each is about the last line before it that is no mark itself.
fn marks(file: FileId, text: &str) -> Result<Vec<Place>, String> {
    let (mut marks, mut marked) = (Vec::new(), 0);
    for (line, content) in (1..).zip(text.lines()) {
        let Some(mark) = content.strip_prefix("//").filter(|rest| rest.trim_start().starts_with('^')) else {
            marked = line;
            continue;
        };
        let column = 3 + (mark.len() - mark.trim_start().len()) as u32;
        let kind = mark.trim_start().trim_start_matches('^');
        let width = (mark.trim_start().len() - kind.len()) as u32;
        let kind = kind.trim();
        if !["error[", "warning[", "note["].iter().any(|start| kind.starts_with(start)) {
            return Err(format!("line {line}: `{kind}` is neither error[…] nor warning[…] nor note[…]"));
        }
        marks.push((file.0, marked, column, width, kind.to_owned()));
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use pktc_diagnostics::FileId;

    use super::marks;

    #[test]
    fn marks_are_about_the_line_above() {
        let text = "a\n   bcd\n// ^^ error[E1]\n//^ warning[W1]\n// no mark\n";
        let expected = [(0, 2, 4, 2, "error[E1]".to_owned()), (0, 2, 3, 1, "warning[W1]".to_owned())];
        assert_eq!(marks(FileId(0), text).unwrap(), expected);
        assert!(marks(FileId(0), "x\n// ^^ wrong\n").is_err());
    }
}
