//! Raw frames and the programs that drop some of them.

use libtest_mimic::{Completion, Failed};
use pktc_driver::{Subject, check as check_source};
use pktc_semantics::typed::Verdict;
use pktc_testing::engine::{EngineError, Env};

use crate::engines::{Bench, Runner};

use super::directive::{Directives, parse};
use super::{Case, Folder, agree};

/// Each program of the case drops the frames that it should, and passes the others.
pub(super) fn check(case: &Case, runner: Runner) -> Result<Completion, Failed> {
    let directives = parse(case.stage, &case.text()?)?;
    let mut bench = Bench::new(check_source(&case.file(), &Folder(case.folder.clone())))?;
    check_names(&bench, &directives)?;
    let subjects: Vec<_> = bench.program().xdps.iter().map(|(id, xdp)| (id, xdp.name.clone())).collect();
    for (id, name) in subjects {
        let (_, drops) = directives
            .drops
            .iter()
            .find(|(program, _)| *program == name)
            .ok_or_else(|| format!("no `//@ drops: {name} = …`"))?;
        check_program(&mut bench, runner, Subject::Xdp(id), &directives, drops)
            .map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(Completion::Completed)
}

fn check_names(bench: &Bench, directives: &Directives) -> Result<(), String> {
    let is_frame = |name: &String| directives.frames.iter().any(|(frame, _)| frame == name);
    for (program, frames) in &directives.drops {
        if !bench.program().xdps.values().any(|xdp| xdp.name == *program) {
            return Err(format!("there is no program `{program}`"));
        }
        if let Some(name) = frames.iter().find(|name| !is_frame(name)) {
            return Err(format!("there is no frame `{name}`"));
        }
    }
    if directives.frames.is_empty() { Err("there is no frame".into()) } else { Ok(()) }
}

fn check_program(
    bench: &mut Bench,
    runner: Runner,
    subject: Subject,
    directives: &Directives,
    drops: &[String],
) -> Result<(), String> {
    let mut engine = agree::engine(bench, runner, subject)?;
    let mut wrong = Vec::new();
    for (name, frame) in &directives.frames {
        let expected = if drops.contains(name) { Verdict::Drop } else { Verdict::Pass };
        match engine.run(frame, &Env::default()) {
            Ok(outcome) if outcome.verdict == expected => {}
            Err(EngineError::Unsupported(_)) => {}
            other => wrong.push(format!("{name}: expected {expected:?}, got {other:?}")),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    let packets: Vec<_> =
        directives.frames.iter().map(|(_, frame)| (frame.clone(), Env::default())).collect();
    agree::check(bench, runner, subject, &packets)
}
