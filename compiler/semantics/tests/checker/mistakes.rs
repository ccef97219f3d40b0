//! Wrong sources: `tests/mistakes/NAME.pkt`.
//!
//! The first line of each says, by hand, what is found in it: `// E0401 3:13, W0003 2:5`, codes with line and
//! column, in the order in which users see them. The rendered messages are in the snapshot beside it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pktc_diagnostics::{SourceMap, render};
use pktc_semantics::Checked;
use pktc_semantics::files::Files;

/// The files under `tests/mistakes`.
struct Folder(PathBuf);

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.0.join(path)).map_err(|_| "no such file".into())
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes")
}

/// The names (without extension) of the files with this extension.
fn stems(extension: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder()).expect("the folder of mistakes");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let chosen = paths.filter(|path| path.extension().is_some_and(|it| it == extension));
    chosen.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

/// What is found in a file: codes with their places, and the messages.
fn check(name: &str) -> (String, String) {
    let mut sources = SourceMap::default();
    let path = format!("{name}.pkt");
    let Checked { program, diagnostics, .. } = pktc_semantics::check(&path, &Folder(folder()), &mut sources);
    let found: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| {
            let at = sources.position(diagnostic.primary.span);
            let file = sources.name(diagnostic.primary.span.file);
            let file = if file == path { String::new() } else { format!(" in {file}") };
            format!("{} {}:{}{file}", diagnostic.code.id, at.line, at.column)
        })
        .collect();
    assert_eq!(program.is_some(), !pktc_diagnostics::has_errors(&diagnostics), "{name}");
    (found.join(", "), render(&sources, &diagnostics, false))
}

#[test]
fn each_mistake_is_found_where_it_is() {
    let mut wrong = Vec::new();
    for name in stems("pkt") {
        let text = fs::read_to_string(folder().join(format!("{name}.pkt"))).unwrap();
        let expected = text.lines().next().unwrap_or_default().trim_start_matches("//").trim().to_owned();
        let (found, _) = check(&name);
        if found.is_empty() || found != expected {
            wrong.push(format!("{name}:\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn messages_are_as_reviewed() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for name in stems("pkt") {
            insta::assert_snapshot!(name.clone(), check(&name).1);
        }
    });
}

#[test]
fn each_snapshot_has_its_source() {
    let sources = stems("pkt");
    assert!(sources.len() >= 40, "{}", sources.len());
    assert_eq!(stems("snap"), sources);
}

#[test]
fn messages_keep_to_their_form() {
    for name in stems("pkt") {
        let mut sources = SourceMap::default();
        let path = format!("{name}.pkt");
        let Checked { diagnostics, .. } = pktc_semantics::check(&path, &Folder(folder()), &mut sources);
        for diagnostic in diagnostics {
            let title = &diagnostic.title;
            assert!(!title.is_empty() && !title.contains('\n') && !title.ends_with('.'), "{name}: {title}");
            assert!(title.chars().count() <= 100, "{name}: {title}");
            assert!(!diagnostic.primary.text.is_empty(), "{name}: {title}");
        }
    }
}
