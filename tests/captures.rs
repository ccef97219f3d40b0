//! Real captures and frames that broke other tools: a condition drops exactly the packets that people listed, under
//! every engine.
//!
//! Neither belongs to the project: `PKTC_SHARED` names the folder that holds `captures/expected.json` (conditions
//! with the packets that they match, drawn up with tshark and tcpdump) and `cases/bugframes-open-rules.json`. Without
//! it the tests are reported as ignored, with that reason. Conditions that need what a later version brings must be
//! refused by saying so; the trial `refusals` holds that against every condition.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use pktc_diagnostics::{Diagnostic, Severity, codes, render};
use pktc_driver::options::{Access, Level};
use pktc_driver::{Checked, Files, Subject, check, programs};
use pktc_semantics::typed::Verdict;
use pktc_testing::capture::{self, CaptureError};
use pktc_testing::engine::{EngineError, Env};
use pktc_testing::runner::NoEngine;
use pktc_tests::engines::{Bench, Runner, from_hex};
use serde_json::Value;

/// Headers that a later version of the standard library brings.
const LATER: [&str; 3] = ["mpls", "pppoe", "pppoe_discovery"];

/// A condition, and the numbers (from 1) of the packets that it drops.
struct Entry {
    name: String,
    condition: String,
    packets: Vec<usize>,
}

/// Packets, and conditions about them.
struct Subjects {
    name: String,
    /// None: a capture that XDP has no frames of.
    packets: Option<Vec<Vec<u8>>>,
    entries: Vec<Entry>,
}

fn main() {
    let arguments = Arguments::from_args();
    let Some(shared) = std::env::var_os("PKTC_SHARED").map(PathBuf::from) else {
        let name =
            "shared captures (ignored: PKTC_SHARED does not name the folder with captures/ and cases/)";
        let trial = Trial::test(name, || Ok(())).with_ignored_flag(true);
        libtest_mimic::run(&arguments, vec![trial]).exit();
    };
    let subjects = captures(&shared).and_then(|mut all| {
        all.extend(bug_frames(&shared)?);
        Ok(Arc::new(all))
    });
    let subjects = match subjects {
        Ok(subjects) => subjects,
        Err(why) => {
            let trial = Trial::test("shared captures", move || Err(why.into()));
            libtest_mimic::run(&arguments, vec![trial]).exit();
        }
    };
    let ran = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let conclusion = libtest_mimic::run(&arguments, trials(&subjects, &ran));
    report(&subjects, [0, 1].map(|which| ran[which].load(Ordering::Relaxed)));
    conclusion.exit();
}

#[expect(clippy::print_stdout, reason = "how many entries ran is what the run is to say")]
fn report(subjects: &[Subjects], [reference, vm]: [usize; 2]) {
    let entries: usize = subjects.iter().map(|subjects| subjects.entries.len()).sum();
    println!(
        "{reference} of {entries} conditions ran under the reference, {vm} in the userspace engine; the others need \
         what a later version brings"
    );
}

fn trials(subjects: &Arc<Vec<Subjects>>, ran: &Arc<[AtomicUsize; 2]>) -> Vec<Trial> {
    let all = Arc::clone(subjects);
    let mut trials = vec![Trial::test("refusals", move || check_refusals(&all))];
    for index in 0..subjects.len() {
        for runner in Runner::all() {
            let (subjects, ran) = (Arc::clone(subjects), Arc::clone(ran));
            let name = format!("{}@{}", subjects[index].name, runner.name());
            trials.push(Trial::ignorable_test(name, move || match runner.probe() {
                Err(reason) => Ok(Completion::ignored_with(reason)),
                Ok(()) => run(&subjects[index], runner, &ran),
            }));
        }
    }
    trials
}

/// What `expected.json` says of each capture.
fn captures(shared: &Path) -> Result<Vec<Subjects>, String> {
    let document = json(&shared.join("captures/expected.json"))?;
    let mut by_file: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
    for entry in document["expect"].as_array().ok_or("`expect` is no list")? {
        let text = |key: &str| entry[key].as_str();
        let Some(condition) = text("pkt") else { continue };
        let packets = text("packets_pkt").or(text("packets")).ok_or("an entry without packets")?;
        let name = text("name").ok_or("an entry without a name")?;
        let entry = Entry { name: name.into(), condition: condition.into(), packets: numbers(packets)? };
        by_file.entry(text("file").ok_or("an entry without a file")?).or_default().push(entry);
    }
    let subjects = by_file.into_iter().map(|(file, entries)| {
        let path = shared.join("captures").join(file);
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let packets = match capture::read(&bytes) {
            Ok(capture) => Some(capture.packets.into_iter().map(|packet| packet.data).collect()),
            Err(CaptureError::LinkType { .. }) => None,
            Err(error) => return Err(format!("{file} {error}")),
        };
        Ok(Subjects { name: file.into(), packets, entries })
    });
    subjects.collect()
}

/// The frames of each case, and its conditions.
fn bug_frames(shared: &Path) -> Result<Vec<Subjects>, String> {
    let rules = json(&shared.join("cases/bugframes-open-rules.json"))?;
    let frames = json(&shared.join("cases/bugframes-open.json"))?;
    let frames = frames.as_array().ok_or("the frames are no list")?;
    let rules = rules.as_object().ok_or("the rules are no table")?;
    let subjects = rules.iter().map(|(case, rule)| {
        let mine: Vec<_> = frames.iter().filter(|frame| frame["case"] == case.as_str()).collect();
        let bytes = |frame: &&Value| from_hex(frame["hex"].as_str().unwrap_or("?"));
        let packets = mine.iter().map(bytes).collect::<Result<Vec<_>, _>>()?;
        let also = rule["also"].as_array().into_iter().flatten();
        let entries = std::iter::once(rule).chain(also).enumerate().map(|(number, rule)| {
            let condition = rule["pkt"].as_str().ok_or("a rule without a condition")?;
            let names = rule["match"].as_array().ok_or("a rule without a list of frames")?;
            let number_of =
                |name: &Value| mine.iter().position(|frame| frame["frame"] == *name).map(|at| at + 1);
            let packets = names.iter().map(number_of).collect::<Option<_>>();
            let packets = packets.ok_or_else(|| format!("{case}: a frame of no case"))?;
            Ok(Entry { name: format!("condition {number}"), condition: condition.into(), packets })
        });
        let entries = entries.collect::<Result<_, String>>()?;
        Ok(Subjects { name: format!("bug-frames/{case}"), packets: Some(packets), entries })
    });
    subjects.collect()
}

fn json(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// `1,4-6` as 1, 4, 5, 6.
fn numbers(text: &str) -> Result<Vec<usize>, String> {
    let mut numbers = Vec::new();
    for range in text.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number =
            |text: &str| text.parse::<usize>().map_err(|_| format!("`{range}` is no range of packets"));
        numbers.extend(number(first)?..=number(last)?);
    }
    Ok(numbers)
}

/// A program in memory.
struct Source(String);

impl Files for Source {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == "t.pkt" { Ok(self.0.clone().into_bytes()) } else { Err("there is no such file".into()) }
    }
}

fn compile(condition: &str) -> Checked {
    check("t.pkt", &Source(format!("xdp t {{ default pass; rule m: {condition} => drop; }}\n")))
}

/// No condition is refused but for what a later version brings.
fn check_refusals(subjects: &[Subjects]) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    for entry in subjects.iter().flat_map(|subjects| &subjects.entries) {
        let checked = compile(&entry.condition);
        let errors = checked.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        let others: Vec<_> = errors.filter(|error| !is_later(&checked, error)).cloned().collect();
        if !others.is_empty() {
            wrong.push(format!("{}\n{}", entry.condition, render(&checked.sources, &others, false)));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn is_later(checked: &Checked, error: &Diagnostic) -> bool {
    error.code == codes::NOT_YET
        || error.code == codes::UNKNOWN_NAME && LATER.contains(&checked.sources.snippet(error.primary.span))
}

/// Runs all conditions about the packets that compile.
fn run(subjects: &Subjects, runner: Runner, ran: &[AtomicUsize; 2]) -> Result<Completion, Failed> {
    let Some(packets) = &subjects.packets else {
        return Ok(Completion::ignored_with("its frames are not Ethernet"));
    };
    let (mut wrong, mut count) = (Vec::new(), 0);
    for entry in &subjects.entries {
        let checked = compile(&entry.condition);
        if checked.program.is_none() {
            continue;
        }
        match run_entry(checked, runner, entry, packets) {
            Ok(did_run) => count += usize::from(did_run),
            Err(why) => wrong.push(format!("{}: {}\n{why}", entry.name, entry.condition)),
        }
    }
    match runner {
        Runner::Reference => ran[0].fetch_add(count, Ordering::Relaxed),
        Runner::Vm((Access::Direct, Level::O2)) => ran[1].fetch_add(count, Ordering::Relaxed),
        Runner::Vm(_) | Runner::Kernel(_) => 0,
    };
    match (wrong.is_empty(), count) {
        (false, _) => Err(wrong.join("\n").into()),
        (true, 0) => Ok(Completion::ignored_with("all its conditions need what a later version brings")),
        (true, _) => Ok(Completion::Completed),
    }
}

/// The condition drops the packets that it should, and no others; says whether it could be run.
fn run_entry(checked: Checked, runner: Runner, entry: &Entry, packets: &[Vec<u8>]) -> Result<bool, String> {
    let subject = programs(&checked).first().map(|id| Subject::Xdp(*id)).ok_or("no program")?;
    let mut bench = Bench::new(checked)?;
    if bench.refusal(runner, subject).is_some() {
        return Ok(false);
    }
    let mut engine = bench.engine(runner, subject).map_err(|error| match error {
        NoEngine::Missing(why) | NoEngine::Failed(why) => why,
    })?;
    let (mut dropped, mut expected) = (Vec::new(), entry.packets.clone());
    for (number, packet) in (1..).zip(packets) {
        match engine.run(packet, &Env::default()) {
            Ok(outcome) if outcome.verdict == Verdict::Drop => dropped.push(number),
            Ok(_) => {}
            Err(EngineError::Unsupported(_)) => expected.retain(|other| *other != number),
            Err(EngineError::Fault(fault)) => return Err(format!("packet {number}: {fault}")),
        }
    }
    expected.sort_unstable();
    if dropped == expected { Ok(true) } else { Err(format!("dropped {dropped:?}, expected {expected:?}")) }
}
