//! What compiling costs: time and memory of the released `pktc build` on the ten-rule file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::Serialize;

use crate::twins::source;

/// How often it is run.
const RUNS: usize = 20;
/// KiB in a MB.
const MEGABYTE: f64 = 1000.0 * 1000.0 / 1024.0;

/// Time and memory of a build.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Footprint {
    /// The fastest run, from start to end of the process, in milliseconds.
    pub fastest_ms: f64,
    /// The least time that a run had the processor, in milliseconds: what it takes where nothing else runs.
    pub processor_ms: f64,
    /// The most memory that one run had at a time, in MB (resident).
    pub memory_mb: f64,
}

/// Builds the firewall 20 times with the `pktc` beside this program. To be called before other processes are
/// started: the kernel only tells the largest of all children, and a young child counts the memory of its parent.
///
/// # Errors
/// If there is no `pktc`, or it fails.
pub fn footprint() -> Result<Footprint, String> {
    let pktc = binary()?;
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let object = folder.path().join("firewall.o");
    let (mut fastest, mut processor) = (Duration::MAX, f64::INFINITY);
    for _ in 0..RUNS {
        let before = processor_ms(&children()?);
        fastest = fastest.min(build(&pktc, &object)?);
        processor = processor.min(processor_ms(&children()?) - before);
    }
    Ok(Footprint {
        fastest_ms: fastest.as_secs_f64() * 1000.0,
        processor_ms: processor,
        memory_mb: children()?.max_rss() as f64 / MEGABYTE,
    })
}

/// What the children used that are gone.
fn children() -> Result<Usage, String> {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| format!("asking what `pktc` used: {error}"))
}

fn processor_ms(usage: &Usage) -> f64 {
    let time = usage.user_time() + usage.system_time();
    time.num_microseconds() as f64 / 1000.0
}

fn binary() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let pktc = this.with_file_name("pktc");
    if pktc.is_file() {
        return Ok(pktc);
    }
    Err(format!("{} is missing; build it first: cargo build --release -p pktc-cli", pktc.display()))
}

fn build(pktc: &Path, object: &Path) -> Result<Duration, String> {
    let start = Instant::now();
    let output =
        Command::new(pktc).arg("build").arg(source("firewall", "pkt")).arg("-o").arg(object).output();
    let taken = start.elapsed();
    let output = output.map_err(|error| format!("running {}: {error}", pktc.display()))?;
    if !output.status.success() || !object.is_file() {
        return Err(format!("pktc build fails: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(taken)
}
