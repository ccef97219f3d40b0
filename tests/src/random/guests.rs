//! The same programs in other kernels.

use std::path::Path;

use pktc_driver::options::Level;
use pktc_testing::engine::Env;
use pktc_testing::reference::headers_end;

use super::case::{Case, spread};
use super::compiled::Object;
use super::engines::{Tally, code};
use super::run::{Run, ran};
use crate::guest::{Answer, Guest, Packet, Report, Subject};

/// Packets that a guest runs of each program.
const PACKETS: usize = 16;

/// The linear part that every driver gives: an Ethernet header.
const LEAST_LINEAR: usize = 14;

/// A packet for a guest, and the verdict that is meant.
type Meant = (Packet, u32);

impl Run {
    /// That a guest loads every object that is for it, and comes to the reference's verdicts; `helper` is the path of
    /// `pktc-guest`. How much it ran, for people.
    ///
    /// # Errors
    /// The objects that it refuses, the packets of which it says something else, or why it did not run.
    pub fn guest(&self, guest: &Guest, helper: &Path) -> Result<String, String> {
        let of = |case| move |object| (case, object);
        let objects = self.cases.iter().flat_map(|case| case.compiled.objects.iter().map(of(case)));
        let objects: Vec<(&Case, &Object)> = objects.filter(|(_, object)| is_for(guest, object)).collect();
        let meant: Vec<Vec<Meant>> = objects.iter().map(|(case, object)| meant(case, object)).collect();
        let subjects: Vec<Subject> =
            objects.iter().zip(&meant).map(|((case, object), meant)| subject(case, object, meant)).collect();
        let reports = guest.load(helper, &subjects).map_err(|error| error.to_string())?;
        let (mut tallies, mut wrong) = (Vec::new(), Vec::new());
        for ((report, meant), (case, object)) in reports.iter().zip(&meant).zip(&objects) {
            match compare(report, meant) {
                Ok(tally) => tallies.push((object.how.0, tally)),
                Err(what) => wrong.push(format!("{}: {what}\n{}", report.subject, case.source)),
            }
        }
        if wrong.is_empty() {
            return Ok(format!("{} objects: {}", objects.len(), ran(&tallies)));
        }
        let all = wrong.len();
        Err(format!("{all} of {} objects differ\n{}", objects.len(), wrong[..all.min(3)].join("\n")))
    }
}

/// Whether a guest is to load an object. Of those for packets in several buffers it takes what users get: their
/// verification takes an emulated processor minutes, and the running kernel sees both levels.
fn is_for(guest: &Guest, object: &Object) -> bool {
    let (access, level) = object.how;
    !access.frags() || guest.has_frags() && level == Level::O2
}

/// Some of a case's packets, spread over them; those that no kernel takes stand last. In several buffers, too, if the
/// object sees them.
fn meant(case: &Case, object: &Object) -> Vec<Meant> {
    let meant = |at: usize| {
        let bytes = case.expected.inputs[at].bytes(&case.packets).to_vec();
        let linear = if object.how.0.frags() { linear(case, &bytes) } else { Vec::new() };
        (Packet { bytes, linear }, code(case.expected.outcomes[at].verdict))
    };
    spread(case.packets.len(), PACKETS).into_iter().map(meant).collect()
}

/// Lengths of a linear part: none, the least, one that ends within the headers, one that lacks their last byte.
fn linear(case: &Case, bytes: &[u8]) -> Vec<usize> {
    let program = case.compiled.checked.program.as_ref();
    let end = program.map_or(0, |program| headers_end(program, bytes, &Env::default()));
    [0, LEAST_LINEAR.min(bytes.len()), end / 2, end.saturating_sub(1)].to_vec()
}

fn subject(case: &Case, object: &Object, meant: &[Meant]) -> Subject {
    Subject {
        name: format!("seed {} by {}", case.seed, object.name()),
        object: object.built.object.clone(),
        packets: meant.iter().map(|(packet, _)| packet.clone()).collect(),
    }
}

/// How much was run, or what is wrong with a report.
fn compare(report: &Report, meant: &[Meant]) -> Result<Tally, String> {
    let mut verdicts = match &report.answer {
        Answer::Rejected(reason) => return Err(format!("refused: {reason}")),
        Answer::Verdicts(verdicts) => verdicts.iter(),
    };
    let mut tally = Tally::default();
    for (packet, meant) in meant {
        for (run, verdict) in verdicts.by_ref().take(packet.runs()).enumerate() {
            match verdict {
                None => tally.untaken += 1,
                Some(verdict) if verdict != meant => return Err(difference(packet, run, *verdict, *meant)),
                Some(_) if run == 0 => tally.whole += 1,
                Some(_) => tally.split += 1,
            }
        }
    }
    Ok(tally)
}

fn difference(packet: &Packet, run: usize, verdict: u32, meant: u32) -> String {
    let linear = run.checked_sub(1).map_or(packet.bytes.len(), |split| packet.linear[split]);
    let hex: String = packet.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{verdict} instead of {meant} with a linear part of {linear} bytes\npacket {hex}")
}
