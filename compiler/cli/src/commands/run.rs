//! `pktc run`: what becomes of each packet of a capture.

mod table;

use std::path::Path;

use pktc_semantics::rules::{RuleId, RuleInfo, RuleTable};
use pktc_semantics::typed::Subject;
use pktc_testing::capture::{self, Capture, CapturedPacket};
use pktc_testing::engine::{Engine, EngineError, Env, Outcome as Decision};
use serde::Serialize;

use crate::arguments::RunArguments;
use crate::console::Console;
use crate::disk;
use crate::engines::{self, Linear};
use crate::failure::{Failure, Outcome, Status};
use crate::source::Source;

/// Runs the program, packet by packet, and prints a line for each.
pub(crate) fn run(arguments: &RunArguments, console: &mut Console) -> Outcome {
    let setting = arguments.running.setting(|_| Linear::Whole)?;
    let source = Source::open(&arguments.file, console)?;
    let subject = Subject::Xdp(source.xdp(arguments.program.as_deref())?);
    let capture = read_capture(&arguments.capture, console)?;
    let engine = engines::start(&setting, &source, subject);
    let mut engine = engine.map_err(|unavailable| unavailable.fail(&source, console))?;
    let rules = RuleTable::of(source.program(), &source.checked.sources, subject);
    let report = Report { source: &source, rules: &rules };
    let mut table = table::Table::default();
    for (index, packet) in capture.packets.iter().enumerate() {
        let number = index + 1;
        let decision = decide(engine.as_mut(), number, packet, console)?;
        if arguments.json {
            console.line(report.json(number, decision.as_ref())?)?;
        } else {
            table.packet(number, packet, decision.as_ref(), &rules);
        }
    }
    if !arguments.json {
        let counters = engine.counters().map_err(|error| failure(&error))?;
        table.print(&report, &counters, console)?;
    }
    Ok(Status::Done)
}

fn read_capture(path: &Path, console: &Console) -> Result<Capture, Failure> {
    let bytes = disk::read(path)?;
    let shown = path.display();
    let capture = capture::read(&bytes).map_err(|error| Failure::new(format!("`{shown}` {error}")))?;
    for warning in &capture.warnings {
        console.warning(format!("`{shown}`: {warning}"));
    }
    Ok(capture)
}

/// Runs the program on a packet; `None`, with the reason on standard error, where the engine cannot take it.
fn decide(
    engine: &mut dyn Engine,
    number: usize,
    packet: &CapturedPacket,
    console: &Console,
) -> Result<Option<Decision>, Failure> {
    let env = Env { now: packet.now(), ..Env::default() };
    match engine.run(&packet.data, &env) {
        Ok(decision) => Ok(Some(decision)),
        Err(EngineError::Unsupported(reason)) => {
            console.warning(format!("packet {number} has no verdict: {reason}"));
            Ok(None)
        }
        Err(EngineError::Fault(what)) => {
            Err(failure(&EngineError::Fault(format!("packet {number}: {what}"))))
        }
    }
}

/// The message about an engine that broke down.
fn failure(error: &EngineError) -> Failure {
    match error {
        EngineError::Unsupported(reason) => Failure::new(reason.as_str()),
        EngineError::Fault(what) => Failure::new(format!(
            "the program broke down, which is a mistake in pktc: please report it ({what})"
        )),
    }
}

/// How rules are named and where they stand.
struct Report<'a> {
    source: &'a Source,
    rules: &'a RuleTable,
}

/// A line of `--json`: other tools read these keys in this order.
#[derive(Serialize)]
struct Line<'a> {
    packet: usize,
    verdict: Option<&'static str>,
    rule: Option<&'a str>,
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

impl Report<'_> {
    /// The line of a rule and, if that is not the file that was named, the file.
    fn place(&self, rule: &RuleInfo) -> (u32, Option<&str>) {
        let sources = &self.source.checked.sources;
        let elsewhere = rule.span.file != self.source.checked.entry;
        (sources.position(rule.span).line, elsewhere.then(|| sources.name(rule.span.file)))
    }

    fn json(&self, packet: usize, decision: Option<&Decision>) -> Result<String, Failure> {
        let rule = decision.map(|decision| decision.rule).filter(|&rule| rule != RuleId::DEFAULT);
        let rule = rule.map(|rule| self.rules.info(rule));
        let (line, file) = rule.map(|rule| self.place(rule)).unzip();
        let line = Line {
            packet,
            verdict: decision.map(|decision| decision.verdict.word()),
            rule: rule.map(|rule| rule.name.as_str()),
            line,
            file: file.flatten(),
        };
        serde_json::to_string(&line).map_err(|error| Failure::new(format!("packet {packet}: {error}")))
    }
}
