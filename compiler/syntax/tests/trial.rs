//! Programs that use the whole language parse without a word.
//!
//! They lie outside of the repository, in `$PKTC_SHARED/cases/trial`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use pktc_diagnostics::{SourceMap, render};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    let Some(shared) = std::env::var_os("PKTC_SHARED") else {
        let ignored = Trial::test("trial programs", || Ok(())).with_kind("PKTC_SHARED is not set");
        return vec![ignored.with_ignored_flag(true)];
    };
    let folder = PathBuf::from(shared).join("cases/trial");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pkt"));
    paths.sort();
    assert!(!paths.is_empty(), "{} holds no programs", folder.display());
    let trial = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Trial::test(name, move || parses_without_a_word(&path))
    };
    paths.into_iter().map(trial).collect()
}

fn parses_without_a_word(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let mut sources = SourceMap::default();
    let file = sources.add(path.to_string_lossy(), text.as_str());
    let (tree, diagnostics) = pktc_syntax::parse(file, &text);
    if !diagnostics.is_empty() {
        return Err(render(&sources, &diagnostics, false).into());
    }
    if tree.decls.is_empty() { Err("no declarations".into()) } else { Ok(()) }
}
