//! The project's own order: what the documents name exists, every crate is described, files stay readable, and
//! nothing depends on where the project lies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of a source file.
const LONGEST: usize = 800;

/// What Cargo and Git make.
const MADE: [&str; 2] = ["target", ".git"];

/// How absolute paths on somebody's machine begin; in two parts, so that this file has none.
const HOMES: [(&str, &str); 4] = [("/ho", "me/"), ("/ro", "ot/"), ("/wo", "rk/"), ("/Us", "ers/")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in the workspace").to_owned()
}

/// All files of the project, by their paths from its root.
fn files() -> Vec<PathBuf> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("the project can be read").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if MADE.iter().any(|made| name == *made) {
                continue;
            }
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                found.push(path.strip_prefix(root).expect("it is below the root").to_owned());
            }
        }
    }
    let (root, mut found) = (root(), Vec::new());
    walk(&root, &root, &mut found);
    assert!(found.len() > 100, "the walk found only {found:?}");
    found.sort();
    found
}

fn documents() -> Vec<(PathBuf, String)> {
    let is_document = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == "md")
            && (path.parent() == Some(Path::new("")) || path.starts_with("docs"))
    };
    let text = |path: PathBuf| {
        let text = fs::read_to_string(root().join(&path)).expect("a document is text");
        (path, text)
    };
    files().into_iter().filter(is_document).map(text).collect()
}

/// The words of a document that are paths of the project: they begin with one of its folders or crates, or, in
/// backticks or a link, end like a file of Rust or a document.
fn named_paths(text: &str, folders: &BTreeSet<String>) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let mut paths = Vec::new();
    for (at, word) in words(text, is_part) {
        let word = word.trim_end_matches(['.', '/']);
        let before = text[..at].chars().next_back().unwrap_or(' ');
        let after = text[at + word.len()..].trim_start_matches(['.', '/']).chars().next().unwrap_or(' ');
        let first = word.split('/').next().unwrap_or("");
        let is_below =
            word.contains('/') && folders.contains(first) && !"…*".contains(after) && before != '/';
        let is_file = "`(".contains(before)
            && "`)".contains(after)
            && [".rs", ".md"].iter().any(|end| word.ends_with(end));
        if is_below || is_file {
            paths.push(word.to_owned());
        }
    }
    paths
}

/// The longest runs of letters that are a part, and where they start.
fn words(text: &str, is_part: impl Fn(char) -> bool) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    for piece in text.split(|letter| !is_part(letter)).filter(|piece| !piece.is_empty()) {
        words.push((piece.as_ptr() as usize - text.as_ptr() as usize, piece));
    }
    words
}

/// Whether `path`, named in a document of `folder`, is in the project; a crate's name may stand for its folder, and
/// a file's name alone for a file anywhere.
fn exists(path: &str, folder: &Path, files: &[PathBuf]) -> bool {
    let mut places = vec![PathBuf::from(path), folder.join(path), Path::new("compiler").join(path)];
    if let Some((first, rest)) = path.split_once('/') {
        places.push(Path::new("compiler").join(first).join("src").join(rest));
    }
    let ends_so = |file: &PathBuf| !path.contains('/') && file.ends_with(path);
    let is_there = |place: &PathBuf| root().join(place).exists();
    places.iter().any(is_there) || files.iter().any(ends_so)
}

fn subfolders(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_path_in_the_documents_exists() {
    let files = files();
    let mut folders = subfolders(&root());
    folders.extend(subfolders(&root().join("compiler")));
    folders.retain(|folder| !MADE.contains(&folder.as_str()));
    let (mut named, mut missing) = (0, Vec::new());
    for (document, text) in documents() {
        let folder = document.parent().unwrap_or(Path::new("")).to_owned();
        for path in named_paths(&text, &folders) {
            named += 1;
            if !exists(&path, &folder, &files) {
                missing.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(missing.is_empty(), "named, but not there:\n{}", missing.join("\n"));
    assert!(named > 5, "the documents name {named} paths only");
}

#[test]
fn paths_are_recognised() {
    let folders = BTreeSet::from(["docs".to_owned(), "lower".to_owned()]);
    let text =
        "See [this](docs/cli.md), `lower/src/access`, `verify.rs`, lower/*.rs, docs/… and a.rs; x/docs/y no.";
    assert_eq!(named_paths(text, &folders), ["docs/cli.md", "lower/src/access", "verify.rs"]);
    let files = [PathBuf::from("tests/tidy.rs")];
    assert!(exists("tidy.rs", Path::new("docs"), &files));
    assert!(exists("ir/verify.rs", Path::new(""), &files));
    assert!(!exists("tests/untidy.rs", Path::new(""), &files) && !exists("untidy.rs", Path::new(""), &files));
}

#[test]
fn every_crate_is_in_the_architecture() {
    let text =
        fs::read_to_string(root().join("docs/architecture.md")).expect("the architecture is described");
    let names = subfolders(&root().join("compiler"));
    // In the table, or as the first word of a line of the picture.
    let is_there = |name: &&String| {
        text.lines()
            .any(|line| line.starts_with(&format!("| `{name}` |")) || line.starts_with(&format!("{name} ")))
    };
    let missing: Vec<_> = names.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "crates without a line in docs/architecture.md: {missing:?}");
}

#[test]
fn no_source_is_too_long() {
    let is_source = |path: &PathBuf| {
        path.extension()
            .is_some_and(|ending| ["rs", "lalrpop", "pkt", "md"].iter().any(|known| ending == *known))
    };
    let mut long = Vec::new();
    for path in files().into_iter().filter(is_source) {
        let lines = fs::read_to_string(root().join(&path)).expect("a source is text").lines().count();
        if lines > LONGEST {
            long.push(format!("{}: {lines} lines", path.display()));
        }
    }
    assert!(long.is_empty(), "longer than {LONGEST} lines:\n{}", long.join("\n"));
}

#[test]
fn no_file_names_somebodys_folder() {
    let homes = HOMES.map(|(start, end)| format!("{start}{end}"));
    let mut wrong = Vec::new();
    for path in files() {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            // Inside a longer path or name it is no absolute path.
            let starts = |home: &String| {
                line.match_indices(home).any(|(at, _)| {
                    !line[..at]
                        .ends_with(|before: char| before.is_ascii_alphanumeric() || "._-}".contains(before))
                })
            };
            if homes.iter().any(starts) {
                wrong.push(format!("{}:{number}: {line}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "absolute paths of some machine:\n{}", wrong.join("\n"));
}
