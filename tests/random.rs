//! Random programs mean the same in all engines, by all access strategies, at both levels and in all kernels.
//!
//! `PKTC_RANDOM_PROGRAMS` says how many programs are drawn (200), `PKTC_RANDOM_SEED` the number that the first is
//! drawn from; without it half of them are always the same, and half are new in each run. The numbers are printed.
//! `PKTC_RANDOM_ACCESS=direct` builds them with that access strategy alone, or with several (`direct,auto`).
//! `PKTC_RANDOM_SOURCES` names a folder where the programs are written, `PKTC_RANDOM_REFUSALS` prints those refused.

#![expect(clippy::print_stderr, reason = "each run says what it drew")]

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use pktc_driver::options::Access;
use pktc_tests::guest::{self, Guest};
use pktc_tests::random::{Plan, Run};

/// Where the programs start that are always the same.
const FIXED_SEED: u64 = 1_000_000;
const PROGRAMS: u64 = 200;

fn main() {
    let arguments = Arguments::from_args();
    let shared = Arc::new(OnceLock::new());
    let trial = |name: &str, test: fn(&Run) -> Result<(), Failed>| {
        let run = Arc::clone(&shared);
        Trial::test(name, move || test(once(&run)))
    };
    let mut trials = vec![
        trial("random::programs_are_built", |run| Ok(run.compiles()?)),
        trial("random::the_generator_is_wide", |run| Ok(run.is_wide()?)),
        trial("random::vm", |run| said(run.vm())),
    ];
    let run = Arc::clone(&shared);
    trials.push(Trial::ignorable_test("random::kernel", move || kernel(once(&run))));
    trials.extend(guest::series().into_iter().map(|series| guest_trial(series, Arc::clone(&shared))));
    libtest_mimic::run(&arguments, trials).exit();
}

/// The one run that all trials look at.
fn once(run: &OnceLock<Run>) -> &Run {
    run.get_or_init(|| {
        let plan = plan();
        let run = Run::new(&plan);
        eprintln!("{}", run.report());
        if std::env::var_os("PKTC_RANDOM_REFUSALS").is_some() {
            eprintln!("{}", run.refusals());
        }
        run
    })
}

fn plan() -> Plan {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let programs = number("PKTC_RANDOM_PROGRAMS").unwrap_or(PROGRAMS);
    if let Some(seed) = number("PKTC_RANDOM_SEED") {
        eprintln!("{programs} programs from seed {seed}");
        return Plan { seeds: (seed..seed + programs).collect(), strategies: strategies() };
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let fixed = programs.div_ceil(2);
    eprintln!("{fixed} programs from seed {FIXED_SEED}, {} from seed {now}", programs - fixed);
    let fresh = now..now + (programs - fixed);
    Plan { seeds: (FIXED_SEED..FIXED_SEED + fixed).chain(fresh).collect(), strategies: strategies() }
}

/// All access strategies, or those that were asked for.
fn strategies() -> Vec<Access> {
    let wanted = std::env::var("PKTC_RANDOM_ACCESS").ok();
    let is_wanted = |access: &Access| {
        wanted.as_ref().is_none_or(|wanted| wanted.split(',').any(|name| name == access.name()))
    };
    Access::ALL.into_iter().filter(is_wanted).collect()
}

fn kernel(run: &Run) -> Result<Completion, Failed> {
    if let Err(reason) = pktc_loader::probe() {
        return Ok(Completion::ignored_with(reason));
    }
    said(run.kernel())?;
    Ok(Completion::Completed)
}

/// Prints how much was run.
fn said(ran: Result<String, String>) -> Result<(), Failed> {
    eprintln!("{}", ran?);
    Ok(())
}

fn guest_trial(series: &'static str, run: Arc<OnceLock<Run>>) -> Trial {
    let name = format!("random::guest::{series}");
    Trial::ignorable_test(name, move || match Guest::new(series) {
        Err(reason) => Ok(Completion::ignored_with(reason.to_string())),
        Ok(guest) => {
            said(once(&run).guest(&guest, Path::new(env!("CARGO_BIN_EXE_pktc-guest"))))?;
            Ok(Completion::Completed)
        }
    })
}
