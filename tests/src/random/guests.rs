//! The same programs in other kernels.

use std::path::Path;

use super::compiled::LEVELS;
use super::engines::{Input, code};
use super::run::Run;
use crate::guest::{Answer, Guest, Report, Subject};

/// Packets that a guest runs of each program.
const PACKETS: usize = 16;

impl Run {
    /// That a guest loads every object and comes to the reference's verdicts; `helper` is the path of `pktc-guest`.
    ///
    /// # Errors
    /// The objects that it refuses, the packets of which it says something else, or why it did not run.
    pub fn guest(&self, guest: &Guest, helper: &Path) -> Result<(), String> {
        let mut subjects = Vec::new();
        let mut expected = Vec::new();
        for case in &self.cases {
            // Those that no kernel takes stand last.
            let step = (case.packets.len() / PACKETS).max(1);
            let chosen: Vec<usize> = (0..case.packets.len()).step_by(step).take(PACKETS).collect();
            let packets = chosen.iter().map(|&at| case.expected.inputs[at].bytes(&case.packets).to_vec());
            let packets: Vec<Vec<u8>> = packets.collect();
            for (level, built) in LEVELS.iter().zip(&case.compiled.built) {
                let name = format!("seed {} at {level:?}", case.seed);
                subjects.push(Subject { name, object: built.object.clone(), packets: packets.clone() });
                let meant = chosen
                    .iter()
                    .map(|&at| (case.expected.inputs[at], code(case.expected.outcomes[at].verdict)));
                expected.push((meant.collect(), case.source.to_string()));
            }
        }
        let reports = guest.load(helper, &subjects).map_err(|error| error.to_string())?;
        let wrong: Vec<String> = reports
            .iter()
            .zip(&subjects)
            .zip(&expected)
            .filter_map(|((report, subject), (meant, source))| wrong(report, subject, meant, source))
            .collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let all = wrong.len();
        Err(format!("{all} of {} objects differ\n{}", subjects.len(), wrong[..all.min(3)].join("\n")))
    }
}

/// What is wrong with a report. A packet that the kernel does not take has no verdict.
fn wrong(report: &Report, subject: &Subject, meant: &Vec<(Input, u32)>, source: &str) -> Option<String> {
    let verdicts = match &report.answer {
        Answer::Rejected(reason) => return Some(format!("{}: refused: {reason}\n{source}", report.subject)),
        Answer::Verdicts(verdicts) => verdicts,
    };
    for ((verdict, (_, meant)), packet) in verdicts.iter().zip(meant).zip(&subject.packets) {
        if verdict.is_some_and(|verdict| verdict != *meant) {
            let hex: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
            return Some(format!("{}: {verdict:?} instead of {meant}\n{source}packet {hex}", report.subject));
        }
    }
    None
}
