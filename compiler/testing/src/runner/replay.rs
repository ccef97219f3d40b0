//! Replaying captures against snapshots.

use std::collections::{BTreeSet, VecDeque};

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_semantics::files::Files;
use pktc_semantics::typed::{StepKind, Test};

use super::{Session, Stopped, word};
use crate::capture::{self, Capture};
use crate::engine::Env;
use crate::snapshot::{self, Store};

/// The snapshots of one source file.
pub(super) struct Snapshots<'a> {
    source: &'a str,
    files: &'a dyn Files,
    store: &'a mut dyn Store,
    accept: bool,
    /// File names that tests have, whether or not they ran.
    claimed: BTreeSet<String>,
    /// Those of the test that runs, in the order of its steps.
    coming: VecDeque<String>,
    notices: Vec<String>,
}

impl<'a> Snapshots<'a> {
    pub(super) fn new(source: &'a str, files: &'a dyn Files, store: &'a mut dyn Store, accept: bool) -> Self {
        let (claimed, coming, notices) = Default::default();
        Snapshots { source, files, store, accept, claimed, coming, notices }
    }

    /// Notes which files belong to `test`, so that none of them is an orphan though the test may not run.
    pub(super) fn claim(&mut self, test: &Test) {
        self.coming.clear();
        for _ in test.steps.iter().filter(|step| matches!(step.kind, StepKind::Replay { .. })) {
            let mut names = (1..).map(|nth| snapshot::file_name(self.source, &test.name, nth));
            if let Some(name) = names.find(|name| !self.claimed.contains(name)) {
                self.coming.push_back(name.clone());
                self.claimed.insert(name);
            }
        }
    }

    /// The path of the next snapshot of the test that runs.
    fn next(&mut self) -> String {
        let name = self.coming.pop_front().unwrap_or_default();
        format!("{}/{name}", snapshot::folder(self.source))
    }

    /// Snapshots that belong to no test, and what the user is to know besides.
    pub(super) fn finish(mut self) -> (Vec<String>, Vec<String>) {
        let folder = snapshot::folder(self.source);
        let prefix = snapshot::prefix(self.source);
        let names = self.store.list(&folder).unwrap_or_else(|why| {
            self.notices.push(why);
            Vec::new()
        });
        let is_orphan = |name: &String| {
            let snap = name.strip_suffix(".new").unwrap_or(name);
            snap.starts_with(&prefix) && snap.ends_with(".snap") && !self.claimed.contains(snap)
        };
        let orphans = names.into_iter().filter(is_orphan).map(|name| format!("{folder}/{name}")).collect();
        (orphans, self.notices)
    }
}

/// Sends a capture's packets and compares what became of them with the snapshot.
pub(super) fn replay(
    session: &mut Session<'_>,
    (file, span): (&str, Span),
    snapshots: &mut Snapshots<'_>,
) -> Result<Vec<Diagnostic>, Stopped> {
    let path = snapshots.next();
    let failed = |title: String, label: String| Diagnostic::error(codes::REPLAY, title, span, label);
    let capture = match read(file, snapshots) {
        Ok(capture) => capture,
        Err(why) => return Ok(vec![failed("this capture cannot be replayed".to_owned(), why)]),
    };
    let now = lines(session, &capture, span)?;
    let before = match snapshots.store.read(&path) {
        Ok(before) => before,
        Err(why) => return Ok(vec![failed("the snapshot cannot be read".to_owned(), why)]),
    };
    let before = before.as_deref().and_then(snapshot::body);
    let differences = before.map(|before| differences(before, &now));
    if differences.as_ref().is_some_and(Vec::is_empty) {
        return Ok(keep(snapshots.store.remove(&format!("{path}.new")), &failed));
    }
    let Some(whole) = now.into_iter().collect::<Result<Vec<_>, _>>().ok() else {
        let title = "this engine cannot take all packets of the capture".to_owned();
        let help = "Make the snapshot with `--engine reference`.";
        return Ok(vec![failed(title, format!("so it cannot make {path}")).with_help(help)]);
    };
    let text = snapshot::with_head(snapshots.source, &format!("replay \"{file}\""), &whole.concat());
    if snapshots.accept {
        let done = snapshots.store.write(&path, &text);
        return Ok(keep(done.and_then(|()| snapshots.store.remove(&format!("{path}.new"))), &failed));
    }
    let mut failures = keep(snapshots.store.write(&format!("{path}.new"), &text), &failed);
    let (title, label) = match differences {
        None => ("this capture has no snapshot yet".to_owned(), format!("there is no {path}")),
        Some(differences) => (
            format!("{} lines differ from the snapshot", differences.len()),
            differences.first().cloned().unwrap_or_default(),
        ),
    };
    let help =
        format!("Look through {path}.new; if it is right, run `pktc test --accept {}`.", snapshots.source);
    failures.push(failed(title, label).with_help(help));
    Ok(failures)
}

fn keep(done: Result<(), String>, failed: &dyn Fn(String, String) -> Diagnostic) -> Vec<Diagnostic> {
    done.err().map(|why| failed("the snapshot cannot be kept".to_owned(), why)).into_iter().collect()
}

fn read(file: &str, snapshots: &mut Snapshots<'_>) -> Result<Capture, String> {
    let path = snapshot::beside(snapshots.source, file);
    let bytes = snapshots.files.read(&path)?;
    let capture = capture::read(&bytes).map_err(|error| format!("{path}: {error}"))?;
    snapshots.notices.extend(capture.warnings.iter().map(|warning| format!("{path}: {warning}")));
    Ok(capture)
}

/// A line a packet: number, verdict, rule. Rules go by their identity, which no change of lines moves. The
/// engine may not take a packet; then its line is unknown.
fn lines(
    session: &mut Session<'_>,
    capture: &Capture,
    span: Span,
) -> Result<Vec<Result<String, Unknown>>, Stopped> {
    let line = |(index, packet): (usize, &capture::CapturedPacket)| {
        let env = Env { now: packet.time_ns, ..Env::default() };
        match session.run(&packet.data, &env, span) {
            Ok(decision) => {
                let rule = &session.rules.info(decision.rule).identity;
                Ok(Ok(format!("{} {} {rule}\n", index + 1, word(decision.verdict))))
            }
            Err(Stopped::Unsupported(_)) => Ok(Err(Unknown)),
            Err(broken) => Err(broken),
        }
    };
    capture.packets.iter().enumerate().map(line).collect()
}

/// A packet that the engine does not take.
struct Unknown;

/// What is another line now, in words.
fn differences(before: &str, now: &[Result<String, Unknown>]) -> Vec<String> {
    let before: Vec<_> = before.trim_end().lines().collect();
    let pairs = (0..before.len().max(now.len())).map(|at| (before.get(at), now.get(at)));
    let differing = pairs.filter_map(|pair| match pair {
        (Some(_), Some(Err(Unknown))) => None,
        (Some(before), Some(Ok(now))) => {
            (*before != now.trim_end()).then(|| format!("was `{}`, is `{}`", before, now.trim_end()))
        }
        (None, Some(Ok(now))) => Some(format!("`{}` is new", now.trim_end())),
        (None, Some(Err(Unknown))) => Some("a packet is new".to_owned()),
        (Some(before), None) => Some(format!("`{}` is gone", before.trim_end())),
        (None, None) => None,
    });
    differing.collect()
}
