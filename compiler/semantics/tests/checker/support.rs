//! What the tests of the checker share: files in memory.

use std::collections::HashMap;

use pktc_diagnostics::{SourceMap, render};
use pktc_semantics::files::Files;
use pktc_semantics::typed::Program;

/// Files by their paths.
pub(crate) struct Memory(HashMap<String, String>);

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).map(|text| text.clone().into_bytes()).ok_or_else(|| "no such file".into())
    }
}

/// Checks `t.pkt` beside other files; the program if there is no error, and the messages as users see them.
pub(crate) fn check_files(text: &str, others: &[(&str, &str)]) -> (Option<Program>, String) {
    let mut files: HashMap<String, String> =
        others.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    files.insert("t.pkt".into(), text.into());
    let mut sources = SourceMap::default();
    let checked = pktc_semantics::check("t.pkt", &Memory(files), &mut sources);
    (checked.program, render(&sources, &checked.diagnostics, false))
}

/// Checks one file.
pub(crate) fn check(text: &str) -> (Option<Program>, String) {
    check_files(text, &[])
}

/// Checks one file that must compile.
#[track_caller]
pub(crate) fn program(text: &str) -> Program {
    let (program, messages) = check(text);
    program.unwrap_or_else(|| panic!("{messages}"))
}
