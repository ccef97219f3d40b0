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
    let failed = |title: &str, label: String| Diagnostic::error(codes::REPLAY, title, span, label);
    let capture = match read(file, snapshots) {
        Ok(capture) => capture,
        Err(why) => return Ok(vec![failed("this capture cannot be replayed", why)]),
    };
    let now = lines(session, (file, span), &capture)?;
    let failure = match snapshots.compare(&path, &format!("replay \"{file}\""), now) {
        Ok(Compared::Same) => return Ok(Vec::new()),
        Err(why) => return Ok(vec![failed("the snapshot cannot be compared", why)]),
        Ok(Compared::Missing) => failed("this capture has no snapshot yet", format!("there is no {path}")),
        Ok(Compared::Different { count: 1, first }) => failed("1 line differs from the snapshot", first),
        Ok(Compared::Different { count, first }) => {
            failed(&format!("{count} lines differ from the snapshot"), first)
        }
    };
    let help =
        format!("Look through {path}.new; if it is right, run `pktc test --accept {}`.", snapshots.source);
    Ok(vec![failure.with_help(help)])
}

/// What a comparison with a snapshot found.
enum Compared {
    /// Nothing, or it is accepted.
    Same,
    /// There is no snapshot.
    Missing,
    /// So many lines, and in words, the first of them.
    Different { count: usize, first: String },
}

impl Snapshots<'_> {
    /// Compares `now` with the snapshot at `path`, and keeps what differs: as the snapshot if that is accepted,
    /// else beside it.
    fn compare(&mut self, path: &str, step: &str, now: Vec<Line>) -> Result<Compared, String> {
        let new = format!("{path}.new");
        let before = self.store.read(path)?;
        let differences = before.as_deref().and_then(snapshot::body).map(|body| differences(body, &now));
        if differences.as_ref().is_some_and(Vec::is_empty) {
            self.store.remove(&new)?;
            return Ok(Compared::Same);
        }
        let Some(whole) = now.into_iter().collect::<Option<Vec<_>>>() else {
            return Err(format!(
                "this engine cannot take all packets of the capture, so it cannot make {path}: use `--engine reference`"
            ));
        };
        let body: String = whole.iter().map(|line| format!("{line}\n")).collect();
        let text = snapshot::with_head(self.source, step, &body);
        if self.accept {
            self.store.write(path, &text)?;
            self.store.remove(&new)?;
            return Ok(Compared::Same);
        }
        self.store.write(&new, &text)?;
        Ok(match differences {
            None => Compared::Missing,
            Some(lines) => Compared::Different {
                count: lines.len(),
                first: lines.into_iter().next().unwrap_or_default(),
            },
        })
    }
}

fn read(file: &str, snapshots: &mut Snapshots<'_>) -> Result<Capture, String> {
    let path = snapshot::beside(snapshots.source, file);
    let bytes = snapshots.files.read(&path)?;
    let capture = capture::read(&bytes).map_err(|error| format!("{path}: {error}"))?;
    snapshots.notices.extend(capture.warnings.iter().map(|warning| format!("{path}: {warning}")));
    Ok(capture)
}

/// Number, verdict and rule of a packet; none if the engine does not take it.
type Line = Option<String>;

/// A line a packet. Rules go by their identity, which no change of lines moves.
fn lines(
    session: &mut Session<'_>,
    (file, span): (&str, Span),
    capture: &Capture,
) -> Result<Vec<Line>, Stopped> {
    let line = |(index, packet): (usize, &capture::CapturedPacket)| {
        let env = Env { now: packet.now(), ..Env::default() };
        match session.run(&packet.data, &env, span) {
            Ok(decision) => {
                let rule = &session.rules.info(decision.rule).identity;
                Ok(Some(format!("{} {} {rule}", index + 1, word(decision.verdict))))
            }
            Err(Stopped::Unsupported(_)) => Ok(None),
            Err(Stopped::Broken(diagnostic)) => {
                let packet = format!("this is packet {} of {file}", index + 1);
                Err(Stopped::Broken(Box::new(diagnostic.with_note(packet))))
            }
        }
    };
    capture.packets.iter().enumerate().map(line).collect()
}

/// What is another line now, in words. A packet that the engine does not take is taken to be as it was.
fn differences(before: &str, now: &[Line]) -> Vec<String> {
    let before: Vec<_> = before.trim_end().lines().collect();
    let pairs = (0..before.len().max(now.len())).map(|at| (before.get(at), now.get(at)));
    let differing = pairs.filter_map(|pair| match pair {
        (Some(_), Some(None)) | (None, None) => None,
        (Some(before), Some(Some(now))) => (before != now).then(|| format!("was `{before}`, is `{now}`")),
        (None, Some(Some(now))) => Some(format!("`{now}` is new")),
        (None, Some(None)) => Some("a packet is new".to_owned()),
        (Some(before), None) => Some(format!("`{before}` is gone")),
    });
    differing.collect()
}
