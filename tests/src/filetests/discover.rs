//! Finds the cases, and what lies about that is none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::directive;

/// What a folder of cases tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Verdicts under all engines.
    Run,
    /// Programs that drop certain raw frames.
    Frames,
    /// Messages about wrong sources.
    Diag,
    /// Rule IR.
    Ir,
    /// Flow IR.
    Flow,
    /// Machine code.
    Asm,
}

impl Stage {
    /// All of them.
    pub const ALL: [Stage; 6] = [Stage::Run, Stage::Frames, Stage::Diag, Stage::Ir, Stage::Flow, Stage::Asm];

    /// The name of its folder.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Stage::Run => "run",
            Stage::Frames => "frames",
            Stage::Diag => "diag",
            Stage::Ir => "ir",
            Stage::Flow => "flow",
            Stage::Asm => "asm",
        }
    }

    /// What its snapshots are called behind the case's name.
    pub(super) fn snapshots(self) -> &'static [&'static str] {
        match self {
            Stage::Run | Stage::Frames => &[],
            Stage::Diag | Stage::Ir => &[""],
            Stage::Flow | Stage::Asm => &["@O0", "@O2"],
        }
    }
}

/// A file test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its stage.
    pub stage: Stage,
    /// The file's name without `.pkt`: the behaviour.
    pub name: String,
    /// The folder that it is in.
    pub folder: PathBuf,
}

impl Case {
    /// The file's name.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{}.pkt", self.name)
    }

    /// The program.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn text(&self) -> Result<String, String> {
        let path = self.folder.join(self.file());
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The cases below `root`, and what is wrong with the tree.
pub(super) fn walk(root: &Path) -> (Vec<Case>, Vec<String>) {
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    let stages = Stage::ALL.map(Stage::folder);
    for name in names(root, &mut problems).iter().filter(|name| !stages.contains(&name.as_str())) {
        problems.push(format!("{name} is no stage; stages are {}", stages.join(", ")));
    }
    for stage in Stage::ALL {
        walk_stage(stage, root.join(stage.folder()), &mut cases, &mut problems);
    }
    (cases, problems)
}

fn walk_stage(stage: Stage, folder: PathBuf, cases: &mut Vec<Case>, problems: &mut Vec<String>) {
    let names = names(&folder, problems);
    let here = |name: &str| format!("{}/{name}", stage.folder());
    let programs = names.iter().filter_map(|name| name.strip_suffix(".pkt"));
    let found: Vec<Case> =
        programs.map(|name| Case { stage, name: name.into(), folder: folder.clone() }).collect();
    if found.is_empty() {
        problems.push(format!("{} has no case", stage.folder()));
    }
    let texts: Vec<_> = found.iter().map(|case| case.text().unwrap_or_default()).collect();
    for (case, text) in found.iter().zip(&texts) {
        problems
            .extend(directive::parse(stage, text).err().map(|why| format!("{}: {why}", here(&case.file()))));
    }
    let suffixes = stage.snapshots();
    let snapshots =
        |case: &Case| suffixes.iter().map(|suffix| format!("{}{suffix}.snap", case.name)).collect();
    let snapshots: BTreeSet<String> = found.iter().flat_map::<Vec<_>, _>(snapshots).collect();
    for name in names.iter().filter(|name| !name.ends_with(".pkt") && !snapshots.contains(*name)) {
        match name.as_str() {
            "lib" => check_library(stage, &folder.join(name), &texts, problems),
            name if name.ends_with(".snap.new") => {
                problems.push(format!("{} waits for `cargo insta review`", here(name)));
            }
            name if name.ends_with(".snap") => problems.push(format!("{} belongs to no case", here(name))),
            name => problems.push(format!("{} is neither a case nor a snapshot", here(name))),
        }
    }
    cases.extend(found);
}

/// Each file of a `lib` must be used.
fn check_library(stage: Stage, folder: &Path, cases: &[String], problems: &mut Vec<String>) {
    let names = names(folder, problems);
    let texts: Vec<_> =
        names.iter().map(|name| fs::read_to_string(folder.join(name)).unwrap_or_default()).collect();
    for name in &names {
        let quoted = [format!("\"lib/{name}\""), format!("\"{name}\"")];
        let used = |text: &String| quoted.iter().any(|quoted| text.contains(quoted));
        if !cases.iter().chain(&texts).any(used) {
            problems.push(format!("{}/lib/{name} is used by no case", stage.folder()));
        }
    }
}

/// The sorted names in a folder.
fn names(folder: &Path, problems: &mut Vec<String>) -> Vec<String> {
    let read = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    });
    let mut names: Vec<String> = read.unwrap_or_else(|error| {
        problems.push(format!("{}: {error}", folder.display()));
        Vec::new()
    });
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Stage, walk};

    #[test]
    fn what_does_not_belong_is_reported() {
        let root = tempfile::tempdir().unwrap();
        for stage in Stage::ALL {
            fs::create_dir(root.path().join(stage.folder())).unwrap();
        }
        let write = |path: &str, text: &str| fs::write(root.path().join(path), text).unwrap();
        let case = "//@ about: x\nuse \"lib/used.pkt\";\n";
        for stage in Stage::ALL {
            write(&format!("{}/good.pkt", stage.folder()), case);
        }
        write("asm/good@O0.snap", "");
        write("asm/good@O2.snap", "");
        write("diag/good.snap", "");
        fs::create_dir(root.path().join("run/lib")).unwrap();
        write("run/lib/used.pkt", "");
        let (cases, problems) = walk(root.path());
        assert_eq!((cases.len(), problems), (6, Vec::<String>::new()));

        fs::create_dir(root.path().join("paint")).unwrap();
        write("run/good.snap", "");
        write("run/notes.txt", "");
        write("run/bad.pkt", "//@ about: y\n//@ colour: blue\n");
        write("run/lib/unused.pkt", "");
        write("diag/good.snap.new", "");
        write("asm/good.snap", "");
        fs::remove_file(root.path().join("ir/good.pkt")).unwrap();
        let (_, problems) = walk(root.path());
        assert_eq!(
            problems,
            [
                "paint is no stage; stages are run, frames, diag, ir, flow, asm",
                "run/bad.pkt: line 2: unknown directive `colour`; run has about, hex, counter, later",
                "run/good.snap belongs to no case",
                "run/lib/unused.pkt is used by no case",
                "run/notes.txt is neither a case nor a snapshot",
                "diag/good.snap.new waits for `cargo insta review`",
                "ir has no case",
                "asm/good.snap belongs to no case",
            ]
        );
    }
}
