//! Snapshot files: what a capture's packets met with, kept beside the source and looked through by people.
//!
//! `edge.pkt`'s test "keeps its verdicts" has `snapshots/edge__keeps_its_verdicts.snap`. The format is insta's
//! (a head of YAML between lines of `---`, then the text), and what differs is written as `….snap.new`, so that
//! `cargo insta review` shows both; nothing here needs Cargo, though.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Where snapshots are kept.
pub trait Store {
    /// The text of `path`; none if there is no such file.
    ///
    /// # Errors
    /// A sentence: why it cannot be read.
    fn read(&self, path: &str) -> Result<Option<String>, String>;

    /// Writes `path`, and the folder if need be.
    ///
    /// # Errors
    /// A sentence: why it cannot be written.
    fn write(&mut self, path: &str, text: &str) -> Result<(), String>;

    /// Removes `path`, if it is there.
    ///
    /// # Errors
    /// A sentence: why it cannot be removed.
    fn remove(&mut self, path: &str) -> Result<(), String>;

    /// The names of the files in `folder`, sorted; none if there is no such folder.
    ///
    /// # Errors
    /// A sentence: why it cannot be read.
    fn list(&self, folder: &str) -> Result<Vec<String>, String>;
}

/// Snapshots in files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Store for Disk {
    fn read(&self, path: &str) -> Result<Option<String>, String> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {path}: {error}")),
        }
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), String> {
        let folder = Path::new(path).parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| fs::write(path, text)).map_err(|error| format!("cannot write {path}: {error}"))
    }

    fn remove(&mut self, path: &str) -> Result<(), String> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(format!("cannot remove {path}: {error}"))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, String> {
        let why = |error: std::io::Error| format!("cannot read {folder}: {error}");
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(why)?,
        };
        let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
        let mut names: Vec<_> = names.collect::<Result<_, _>>().map_err(why)?;
        names.sort();
        Ok(names)
    }
}

/// The folder that the snapshots of `source` are in.
#[must_use]
pub fn folder(source: &str) -> String {
    beside(source, "snapshots")
}

/// `path`, which a text in `source` names: relative to the folder that `source` is in.
#[must_use]
pub fn beside(source: &str, path: &str) -> String {
    let folder = Path::new(source).parent().unwrap_or(Path::new(""));
    folder.join(path).to_string_lossy().into_owned()
}

/// How the names of all snapshots of `source` begin.
#[must_use]
pub fn prefix(source: &str) -> String {
    let stem = Path::new(source).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    format!("{}__", stem.unwrap_or_default())
}

/// The file name of the `nth` snapshot (from 1) that `source` has under `test`'s name.
#[must_use]
pub fn file_name(source: &str, test: &str, nth: usize) -> String {
    let suffix = if nth > 1 { format!("-{nth}") } else { String::new() };
    format!("{}{}{suffix}.snap", prefix(source), slug(test))
}

/// `test` as a part of a file name: words of letters and digits, joined by `_`.
fn slug(test: &str) -> String {
    let words = test.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// A snapshot's text with insta's head.
#[must_use]
pub fn with_head(source: &str, expression: &str, body: &str) -> String {
    let name = Path::new(source).file_name().map(|name| name.to_string_lossy().into_owned());
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    format!(
        "---\nsource: {}\nexpression: {}\n---\n{body}",
        quoted(&name.unwrap_or_default()),
        quoted(expression)
    )
}

/// A snapshot's text without its head; none if it has no head, so that it is no snapshot.
#[must_use]
pub fn body(text: &str) -> Option<&str> {
    let (_, body) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::{body, file_name, folder, with_head};

    #[test]
    fn names_say_file_and_test() {
        assert_eq!(
            file_name("a/edge.pkt", "Keeps its verdicts, all 3!", 1),
            "edge__keeps_its_verdicts_all_3.snap"
        );
        assert_eq!(file_name("edge.pkt", "x", 2), "edge__x-2.snap");
        assert_eq!(folder("a/edge.pkt"), "a/snapshots");
        assert_eq!(folder("edge.pkt"), "snapshots");
    }

    #[test]
    fn a_head_goes_on_and_comes_off() {
        let text = with_head("a/edge.pkt", "replay \"x.pcap\"", "1 pass default\n");
        let expected =
            "---\nsource: \"edge.pkt\"\nexpression: \"replay \\\"x.pcap\\\"\"\n---\n1 pass default\n";
        assert_eq!(text, expected);
        assert_eq!(body(&text), Some("1 pass default\n"));
        assert_eq!(body("1 pass default\n"), None);
        assert_eq!(body("---\nsource: x\n"), None);
    }
}
