//! pktc's programs and their C twins give the same verdicts, whatever the access, and pktc's take few instructions.

use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use pktc_bench::compare::compare;
use pktc_bench::generate::{GENERATED, SEED, generated};
use pktc_bench::packets::{captured, captures_folder};
use pktc_bench::twins::{CLANG, ROWS, Row, clang_is_there, twins};
use pktc_bench::ways::{Ratio, Way, execute, ratios, ways};

/// What pktc's programs may take by clang's.
const MOST: f64 = 1.25;
/// Generated packets that all ways to reach bytes are run on.
const SOME: usize = 4_000;

fn main() {
    let mut trials = Vec::new();
    for row in ROWS {
        let title = row.title();
        trials.push(trial(format!("{title}: verdicts on generated packets"), clang(), move || {
            on_generated(row)
        }));
        let folder = captures_folder();
        let missing = clang().or_else(|| folder.as_ref().err().cloned());
        let check = move || on_captures(row, &folder?);
        trials.push(trial(format!("{title}: verdicts and instructions on captures"), missing, check));
    }
    trials.push(trial("ways: verdicts on generated packets".into(), clang(), ways_on_generated));
    let folder = captures_folder();
    let missing = clang().or_else(|| folder.as_ref().err().cloned());
    let name = "ways: verdicts and instructions on captures".into();
    trials.push(trial(name, missing, move || ways_on_captures(&folder?)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Why clang's twins cannot be built.
fn clang() -> Option<String> {
    (!clang_is_there()).then(|| format!("{CLANG} is missing"))
}

fn trial(
    name: String,
    missing: Option<String>,
    check: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let trial = Trial::test(name, check);
    match missing {
        Some(reason) => trial.with_kind(format!("ignored: {reason}")).with_ignored_flag(true),
        None => trial,
    }
}

/// Each program drops some and passes some, and each rule decides some, or the comparison says little.
fn on_generated(row: Row) -> Result<(), Failed> {
    let executed = compare(&twins(row)?, &generated(GENERATED, SEED))?;
    let passed = executed.packets - executed.drops;
    if executed.drops < 100 || passed < 100 {
        return Err(format!("only {} dropped and {passed} not", executed.drops).into());
    }
    let idle = executed.hits.iter().position(|&hits| hits < 10);
    idle.map_or(Ok(()), |rule| Err(format!("rule {rule} decides hardly any: {:?}", executed.hits).into()))
}

fn on_captures(row: Row, folder: &Path) -> Result<(), Failed> {
    let executed = compare(&twins(row)?, &captured(folder)?)?;
    if executed.ratio() > MOST {
        let (pktc, clang) = (executed.pktc, executed.clang);
        return Err(
            format!("{pktc} instructions against {clang}: {:.3} times as many", executed.ratio()).into()
        );
    }
    Ok(())
}

fn ways_on_generated() -> Result<(), Failed> {
    let built = ways().into_iter().map(Way::build).collect::<Result<Vec<_>, _>>()?;
    execute(&built, &generated(SOME, SEED))?;
    Ok(())
}

fn ways_on_captures(folder: &Path) -> Result<(), Failed> {
    let built = ways().into_iter().map(Way::build).collect::<Result<Vec<_>, _>>()?;
    let executed = execute(&built, &captured(folder)?)?;
    let executed: Vec<f64> = executed.iter().map(|way| way.instructions as f64).collect();
    let exceeds = |ratio: &Ratio| {
        let (is, most) = (ratio.of(&executed), ratio.most_executed?);
        (is > most).then(|| format!("{}: {is:.3} times as many instructions, {most} at most", ratio.title()))
    };
    let exceeding: Vec<String> = ratios().iter().filter_map(exceeds).collect();
    if exceeding.is_empty() { Ok(()) } else { Err(exceeding.join("\n").into()) }
}
