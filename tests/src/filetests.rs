//! Tests that are text: `.pkt` programs with what is expected of them, one behaviour a file.
//!
//! The tree `tests/filetests/` is walked; there is no list of cases. A folder is a stage:
//!
//! | folder | a case is | expected |
//! |---|---|---|
//! | `run` | a program with tests | verdicts and deciding rules, by hand: `test` blocks, `//@ hex: … => drop by r` |
//! | `frames` | raw frames and programs | `//@ drops: PROGRAM = FRAME …`, by hand |
//! | `diag` | a wrong source | `//  ^^^^ error[E0203]` under the line, by hand; the rendering is a snapshot |
//! | `ir`, `flow`, `asm` | a small program | a snapshot of what that stage puts out |
//!
//! `run` and `frames` cases run under every engine, access strategy and level; whatever else they say, engines must
//! agree on each packet, cut at every length. The machine writes snapshots (`cargo insta review`), never verdicts or
//! places of errors. A folder `lib` holds what the cases beside it use. An unknown directive, a file that is no case, a
//! snapshot without its case and a folder without cases are failures.

mod agree;
mod diag;
mod directive;
mod discover;
mod dump;
mod frames;
mod run;

use std::path::{Path, PathBuf};

use libtest_mimic::{Completion, Failed, Trial};
use pktc_driver::Files;

use crate::engines::Runner;
pub use discover::{Case, Stage};

/// All trials of the tree at `root`.
#[must_use]
pub fn trials(root: &Path) -> Vec<Trial> {
    let (cases, problems) = discover::walk(root);
    let tree = Trial::test("tree", move || match problems.as_slice() {
        [] => Ok(()),
        problems => Err(problems.join("\n").into()),
    });
    std::iter::once(tree).chain(cases.into_iter().flat_map(case_trials)).collect()
}

fn case_trials(case: Case) -> Vec<Trial> {
    let name = format!("{}/{}", case.stage.folder(), case.name);
    match case.stage {
        Stage::Run | Stage::Frames => {
            let runners = Runner::all().map(|runner| engine_trial(&name, &case, runner));
            runners.chain([run::object_trial(&name, &case)]).collect()
        }
        Stage::Diag => vec![Trial::test(name, move || diag::check(&case))],
        Stage::Ir | Stage::Flow | Stage::Asm => vec![Trial::test(name, move || dump::check(&case))],
    }
}

fn engine_trial(name: &str, case: &Case, runner: Runner) -> Trial {
    let case = case.clone();
    let body = move || -> Result<Completion, Failed> {
        if let Err(reason) = runner.probe() {
            return Ok(Completion::ignored_with(reason));
        }
        if case.stage == Stage::Frames { frames::check(&case, runner) } else { run::check(&case, runner) }
    };
    Trial::ignorable_test(format!("{name}@{}", runner.name()), body)
}

/// The files of a folder, by paths that start there, so that no message depends on where the project lies.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.0.join(path)).map_err(|error| error.to_string())
    }
}
