//! Programs with packets and what must become of them.

use std::collections::BTreeMap;

use libtest_mimic::{Completion, Failed, Trial};
use pktc_driver::options::Access;
use pktc_driver::{Options, Subject, build, check as check_source, programs};
use pktc_semantics::typed::StepKind;
use pktc_testing::compose::compose;
use pktc_testing::engine::Env;
use pktc_testing::runner::{NoEngine, Setup, TestResult, run_tests};
use pktc_testing::snapshot::Disk;

use crate::engines::{Bench, LEVELS, Runner, hex, not_yet};

use super::agree::{self, Sent};
use super::directive::{CounterLine, Directives, HexLine, Later, parse};
use super::{Case, Folder};

/// What fails a case that need not be `later` any more.
const COMPILED: &str = "this version compiles the case: remove its `//@ later`";

/// Runs a case's tests and raw frames; then engines must agree on all its packets.
pub(super) fn check(case: &Case, runner: Runner) -> Result<Completion, Failed> {
    let directives = parse(case.stage, &case.text()?)?;
    let mut bench = bench(case)?;
    let packets = packets(&bench, &directives)?;
    if packets.is_empty() {
        return Err("the case sends no packet".into());
    }
    if runner != Runner::Reference && directives.later.covers(runner.sees_fragments()) {
        let refusal = packets.iter().find_map(|(subject, _)| bench.refusal(runner, *subject));
        return refusal.map(Completion::ignored_with).ok_or_else(|| COMPILED.into());
    }
    let ignored = run_blocks(case, &mut bench, runner)?;
    check_hex(&mut bench, runner, &directives.hex)?;
    check_counters(&mut bench, runner, &directives.counters, &packets)?;
    for (subject, packets) in packets {
        agree::check(&mut bench, runner, subject, &packets)?;
    }
    Ok(ignored.map_or(Completion::Completed, Completion::ignored_with))
}

fn bench(case: &Case) -> Result<Bench, String> {
    Bench::new(check_source(&case.file(), &Folder(case.folder.clone())))
}

/// Runs the `test` blocks; why one could not be run.
fn run_blocks(case: &Case, bench: &mut Bench, runner: Runner) -> Result<Option<String>, String> {
    let checked = bench.checked().clone();
    let program = bench.program().clone();
    let setup = Setup {
        program: &program,
        sources: &checked.sources,
        file: checked.entry,
        files: &Folder(case.folder.clone()),
        store: &mut Disk,
        accept: false,
    };
    let report = run_tests(setup, &mut |of| bench.engine(runner, of));
    if !report.is_ok() {
        return Err(report.text(&checked.sources, false));
    }
    let ignored = report.tests.iter().find_map(|test| match &test.result {
        TestResult::Ignored(reason) => Some(format!("test \"{}\": {reason}", test.name)),
        TestResult::Passed | TestResult::Failed(_) => None,
    });
    Ok(ignored)
}

/// The only program of the file.
fn only_program(bench: &Bench) -> Result<Subject, String> {
    match programs(bench.checked())[..] {
        [id] => Ok(Subject::Xdp(id)),
        ref programs => Err(format!("raw frames and counters need one program; here are {}", programs.len())),
    }
}

/// Raw frames meet with what their lines say.
fn check_hex(bench: &mut Bench, runner: Runner, lines: &[HexLine]) -> Result<(), String> {
    if lines.is_empty() {
        return Ok(());
    }
    let subject = only_program(bench)?;
    let (mut engine, rules) = (agree::engine(bench, runner, subject)?, bench.rules(subject));
    for line in lines {
        let frame = hex(&line.frame);
        let outcome = engine.run(&line.frame, &Env::default());
        let outcome = outcome.map_err(|error| format!("{frame}: {error:?}"))?;
        let (verdict, rule) = (outcome.verdict.word(), &rules.info(outcome.rule).name);
        if verdict != line.verdict || line.rule.as_ref().is_some_and(|expected| expected != rule) {
            let expected = line.rule.as_deref().unwrap_or("any rule");
            return Err(format!("{frame}: expected {} by {expected}, got {verdict} by {rule}", line.verdict));
        }
    }
    Ok(())
}

/// All packets of the case by what they are sent to; a repeated one as often as it is sent.
fn packets(bench: &Bench, directives: &Directives) -> Result<Vec<(Subject, Vec<Sent>)>, String> {
    let program = bench.program();
    let mut packets: Vec<(Subject, Vec<Sent>)> = Vec::new();
    let mut add = |subject, sent| match packets.iter_mut().find(|(other, _)| *other == subject) {
        Some((_, all)) => all.push(sent),
        None => packets.push((subject, vec![sent])),
    };
    for test in program.tests.iter().filter(|test| test.span.file == bench.checked().entry) {
        for step in &test.steps {
            let StepKind::Send { repeat, packet } = &step.kind else { continue };
            let composed = compose(program, packet).map_err(|error| bench.render(&[*error]))?;
            let usual = Env::default();
            let (ifindex, queue) = (composed.ifindex, composed.queue);
            let env = Env {
                ifindex: ifindex.unwrap_or(usual.ifindex),
                queue: queue.unwrap_or(usual.queue),
                ..usual
            };
            for _ in 0..*repeat {
                add(test.of, (composed.frame.clone(), env.clone()));
            }
        }
    }
    for line in &directives.hex {
        add(only_program(bench)?, (line.frame.clone(), Env::default()));
    }
    Ok(packets)
}

/// What rules and named counters have counted when all packets were sent once.
fn check_counters(
    bench: &mut Bench,
    runner: Runner,
    expected: &[CounterLine],
    packets: &[(Subject, Vec<Sent>)],
) -> Result<(), String> {
    if expected.is_empty() {
        return Ok(());
    }
    let subject = only_program(bench)?;
    let mut engine = bench.counting_engine(runner, subject).map_err(|error| match error {
        NoEngine::Missing(why) | NoEngine::Failed(why) => why,
    })?;
    for (frame, env) in packets.iter().filter(|(of, _)| *of == subject).flat_map(|(_, packets)| packets) {
        engine.run(frame, env).map_err(|error| format!("{error:?}"))?;
    }
    let counted = engine.counters().map_err(|error| format!("{error:?}"))?;
    let entries = entries(bench, subject);
    for CounterLine { name, packets, bytes } in expected {
        let entry = *entries.get(name).ok_or_else(|| format!("there is no counter `{name}`"))?;
        let found = counted.get(entry).ok_or_else(|| format!("no entry {entry} of {}", counted.len()))?;
        if found != &(*packets, *bytes) {
            return Err(format!("{name}: expected {packets} packets, {bytes} bytes, got {found:?}"));
        }
    }
    Ok(())
}

/// Which entry of the counters is whose: rules, then named counters.
fn entries(bench: &Bench, subject: Subject) -> BTreeMap<String, usize> {
    let rules = bench.rules(subject);
    let rules = rules.rules().iter().map(|rule| rule.name.clone());
    let named = bench.program().counters.values().map(|counter| counter.name.clone());
    rules.chain(named).enumerate().map(|(index, name)| (name, index)).collect()
}

/// A trial of the object as users get it, with all programs of the file, or of its chains if it has none.
pub(super) fn object_trial(name: &str, case: &Case) -> Trial {
    let case = case.clone();
    Trial::ignorable_test(format!("{name}@object"), move || check_object(&case))
}

/// Each level's object can be parsed, and is built a second time with the same bytes.
fn check_object(case: &Case) -> Result<Completion, Failed> {
    let later = parse(case.stage, &case.text()?)?.later;
    let bench = bench(case)?;
    let mut subjects: Vec<_> = programs(bench.checked()).into_iter().map(Subject::Xdp).collect();
    if subjects.is_empty() {
        subjects = bench.program().chains.keys().map(Subject::Chain).collect();
    }
    for (access, level) in Access::ALL.into_iter().flat_map(|access| LEVELS.map(|level| (access, level))) {
        let options = Options { access, level, ..Options::default() };
        let build = || build(bench.checked(), &subjects, &options);
        let is_later = later.covers(access.frags());
        let built = match build() {
            Ok(_) if is_later => return Err(COMPILED.into()),
            Ok(built) => built,
            Err(errors) => match not_yet(&errors).filter(|_| is_later) {
                Some(reason) if later == Later::MachineCode => return Ok(Completion::ignored_with(reason)),
                Some(_) => continue,
                None => return Err(bench.render(&errors).into()),
            },
        };
        let parsed = aya_obj::Object::parse(&built.object).map_err(|error| format!("aya-obj: {error}"))?;
        for program in &built.metadata.programs {
            if !parsed.programs.contains_key(&program.name) {
                return Err(format!("aya-obj finds no program `{}`", program.name).into());
            }
        }
        let again = build().map_err(|errors| bench.render(&errors))?;
        if built.object != again.object {
            return Err(format!("two builds at {access:?}, {level:?} differ").into());
        }
    }
    Ok(Completion::Completed)
}
