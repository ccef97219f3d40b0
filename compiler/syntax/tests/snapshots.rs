//! Programs beside the snapshots of what is made of them.
//!
//! `mistakes/NAME.pkt` is wrong, and its snapshot holds what is said; `productions/NAME.pkt` is right, and its
//! snapshot holds the tree. Between them the productions use all of the grammar.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use pktc_diagnostics::{SourceMap, render};

/// What the snapshots of a folder hold.
type Outcome = fn(&SourceMap, pktc_diagnostics::FileId) -> Result<String, Failed>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let folders: [(&'static str, Outcome); 2] = [("mistakes", messages), ("productions", tree)];
    let trials = folders.into_iter().flat_map(|(folder, outcome)| folder_trials(folder, outcome)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn folder_trials(folder: &'static str, outcome: Outcome) -> Vec<Trial> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let with_extension = |wanted: &str| {
        let is_wanted = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == wanted);
        paths.iter().filter(is_wanted).cloned().collect::<Vec<_>>()
    };
    let programs = with_extension("pkt").into_iter().map(|path| trial(folder, path, outcome));
    let snapshots = with_extension("snap");
    let orphans =
        Trial::test(format!("{folder}: a program for each snapshot"), move || no_orphans(&snapshots));
    programs.chain([orphans]).collect()
}

fn trial(folder: &'static str, path: PathBuf, outcome: Outcome) -> Trial {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Trial::test(format!("{folder}/{name}"), move || compare(folder, &name, &path, outcome))
}

fn compare(folder: &str, name: &str, path: &Path, outcome: Outcome) -> Result<(), Failed> {
    let mut sources = SourceMap::default();
    let file = sources.add(format!("{name}.pkt"), std::fs::read_to_string(path)?);
    let text = outcome(&sources, file)?;
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
    Ok(())
}

fn messages(sources: &SourceMap, file: pktc_diagnostics::FileId) -> Result<String, Failed> {
    let (_, diagnostics) = pktc_syntax::parse(file, sources.text(file));
    Ok(render(sources, &diagnostics, false))
}

fn tree(sources: &SourceMap, file: pktc_diagnostics::FileId) -> Result<String, Failed> {
    let (tree, diagnostics) = pktc_syntax::parse(file, sources.text(file));
    if diagnostics.is_empty() {
        return Ok(pktc_syntax::dump_ast(&tree));
    }
    Err(render(sources, &diagnostics, false).into())
}

fn no_orphans(snapshots: &[PathBuf]) -> Result<(), Failed> {
    match snapshots.iter().find(|path| !path.with_extension("pkt").exists()) {
        Some(orphan) => Err(format!("{} belongs to no program", orphan.display()).into()),
        None => Ok(()),
    }
}
