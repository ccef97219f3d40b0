//! `cargo run --release -p pktc-bench`: the table of pktc against clang.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use pktc_bench::compare::compare;
use pktc_bench::footprint::{Footprint, footprint};
use pktc_bench::generate::{GENERATED, SEED, generated};
use pktc_bench::kernel::{measure, measure_ways};
use pktc_bench::packets::{captured, captures_folder};
use pktc_bench::report::{Counted, Machine, Report, Ways};
use pktc_bench::twins::{ROWS, Twins, twins};
use pktc_bench::ways::{Way, execute, ways};

/// Measures what pktc emits against C twins that clang compiled, after checking that their verdicts are the same.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only count instructions; needs no root.
    #[arg(long)]
    instructions: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Rounds of timing.
    #[arg(long, default_value_t = 51, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(15..=1000))]
    rounds: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}"); // there is nobody else to tell
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let captures = captured(&captures_folder()?)?;
    // First, before there are other children.
    let build = if arguments.instructions { None } else { footprint_or_note() };
    let twins = ROWS.into_iter().map(twins).collect::<Result<Vec<_>, _>>()?;
    let rows = count(&twins, &captures)?;
    let built = ways().into_iter().map(Way::build).collect::<Result<Vec<_>, _>>()?;
    let executed = execute(&built, &captures)?;
    let rounds = (!arguments.instructions).then_some(arguments.rounds);
    let kernel = rounds.map(|rounds| measure(&twins, &captures, rounds)).transpose().map_err(advise)?;
    let of_ways = rounds.map(|rounds| measure_ways(&built, &captures, rounds)).transpose().map_err(advise)?;
    let ways = Ways { executed, kernel: of_ways };
    let report = Report { machine: Machine::this(), rows, kernel, ways, build };
    let text = if arguments.json {
        serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?
    } else {
        report.to_string()
    };
    writeln!(std::io::stdout(), "{}", text.trim_end()).map_err(|error| error.to_string())
}

fn footprint_or_note() -> Option<Footprint> {
    match footprint() {
        Ok(footprint) => Some(footprint),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "note: cost of compiling not measured: {error}"); // as above
            None
        }
    }
}

fn count(twins: &[Twins], captures: &[Vec<u8>]) -> Result<Vec<Counted>, String> {
    let made_up = generated(GENERATED, SEED);
    let count = |twins: &Twins| {
        Ok(Counted {
            row: twins.row.title(),
            captured: compare(twins, captures)?,
            generated: compare(twins, &made_up)?,
            pktc_slots: twins.pktc.slots()?,
            clang_slots: twins.clang.slots()?,
        })
    };
    twins.iter().map(count).collect()
}

fn advise(refused: String) -> String {
    format!("{refused}\nWithout root, `--instructions` counts instructions only.")
}
