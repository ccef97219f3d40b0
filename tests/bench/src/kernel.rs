//! What the running kernel says of the twins: instructions after its rewriting, the verifier's work, nanoseconds.
//!
//! Programs run on packets with `BPF_PROG_TEST_RUN` on a sample of the captures, on one CPU. A round takes packet by
//! packet, all programs on each, in turning order (A B C, C B A, …). Only ratios within a round are used, and
//! their median. Each program is attached to the
//! loopback of a network namespace of its own first: that puts it into the kernel's XDP dispatcher, which
//! test-run would otherwise enter and leave each time by rewriting code, for milliseconds.
//!
//! The branch predictor knows a packet that is repeated: times here show instructions and calls, not
//! mispredictions, for both twins alike.

use std::io;
use std::process::Command;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use pktc_driver::Files;
use pktc_driver::options::Access;
use pktc_loader::{
    LoadOptions, Loaded, LoadedProgram, Mode, SHORTEST, TestRun, attach, in_private_network, load, test_run,
};
use serde::Serialize;

use crate::twins::{Side, Twins, build_text};
use crate::ways::{Built, Ratio, ratios};

/// Packets of the sample.
const SAMPLE: usize = 64;
/// Turns of a program on one packet in a round.
const TURNS: u32 = 10_000;
/// The longest packet that lies in one buffer everywhere.
const LONGEST: usize = 3520;
/// Nets are compared only where clang's is at least so many nanoseconds: below, noise divides noise.
const LEAST_NET: f64 = 5.0;
/// Nanoseconds in a second.
const SECOND: f64 = 1e9;
/// Bytes of an instruction.
const INSTRUCTION: u64 = 8;

/// What the kernel made of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// Instructions after the verifier's rewriting; none without bpftool.
    pub xlated: Option<u64>,
    /// Instructions that the verifier walked; none where the kernel does not say.
    pub processed: Option<u32>,
}

/// The twins of a row in the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// pktc's program.
    pub pktc: Accepted,
    /// clang's.
    pub clang: Accepted,
    /// Nanoseconds a packet with pktc's program, the loop of test-run included; median of the rounds.
    pub pktc_ns: f64,
    /// Likewise with clang's.
    pub clang_ns: f64,
    /// Median of the rounds' ratios, pktc by clang.
    pub ratio: f64,
    /// The same of what is left without the null program's time, where clang's is 5 ns or more.
    pub net_ratio: Option<f64>,
}

/// All rows in the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// Rounds that were run.
    pub rounds: usize,
    /// Nanoseconds of the program that only drops.
    pub null_ns: f64,
    /// The rows in the order of the twins.
    pub rows: Vec<Measured>,
}

/// Measures all twins against each other on packets out of `captured`.
///
/// # Errors
/// What the kernel refuses, in words; without root it is the missing capabilities.
pub fn measure(twins: &[Twins], captured: &[Vec<u8>], rounds: usize) -> Result<Measurement, String> {
    let null = build_text("null.pkt", &Null, false, Access::Direct)?;
    let sides = twins.iter().flat_map(|twins| [&twins.pktc, &twins.clang]);
    let whole = |side| Subject { side, linear: None };
    let subjects: Vec<Subject<'_>> = std::iter::once(&null).chain(sides).map(whole).collect();
    let Timed { accepted, rounds: times } = time(&subjects, captured, rounds)?;
    let of = |index: usize| Samples(times.iter().map(|round| round[index]).collect());
    let null = of(0);
    let rows = (0..twins.len()).map(|row| {
        let (pktc, clang) = (1 + 2 * row, 2 + 2 * row);
        summarise(&null, (accepted[pktc], &of(pktc)), (accepted[clang], &of(clang)))
    });
    Ok(Measurement { rounds, null_ns: null.median(), rows: rows.collect() })
}

/// The ways to reach a packet's bytes in the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaysMeasured {
    /// In the order of the ways: what the kernel made of each, and nanoseconds a packet, median of the rounds.
    pub ways: Vec<(Accepted, f64)>,
    /// In the order of the ratios: the median of the rounds' ratios.
    pub ratios: Vec<f64>,
}

/// Measures all ways in rounds of their own.
///
/// # Errors
/// As [`measure`].
pub fn measure_ways(built: &[Built], captured: &[Vec<u8>], rounds: usize) -> Result<WaysMeasured, String> {
    let subjects = built.iter().map(|built| Subject { side: &built.side, linear: built.way.linear });
    let subjects: Vec<Subject<'_>> = subjects.collect();
    let Timed { accepted, rounds: times } = time(&subjects, captured, rounds)?;
    let median = |index: usize| Samples(times.iter().map(|round| round[index]).collect()).median();
    let ratio = |ratio: Ratio| Samples(times.iter().map(|round| ratio.of(round)).collect()).median();
    Ok(WaysMeasured {
        ways: accepted.into_iter().enumerate().map(|(index, accepted)| (accepted, median(index))).collect(),
        ratios: ratios().into_iter().map(ratio).collect(),
    })
}

/// What is timed: a program, on packets with a linear part of so many bytes, or all in it.
#[derive(Clone, Copy)]
struct Subject<'a> {
    side: &'a Side,
    linear: Option<usize>,
}

/// What the kernel made of subjects, and their nanoseconds a packet, a line a round.
struct Timed {
    accepted: Vec<Accepted>,
    rounds: Vec<Vec<f64>>,
}

/// Times all subjects in the same rounds.
fn time(subjects: &[Subject<'_>], captured: &[Vec<u8>], rounds: usize) -> Result<Timed, String> {
    pin().map_err(|error| format!("pinning to one CPU: {error}"))?;
    let loaded: Vec<Loaded> = subjects.iter().map(|it| load_side(it.side)).collect::<Result<_, _>>()?;
    let programs: Vec<&LoadedProgram> = loaded.iter().flat_map(|loaded| &loaded.programs).collect();
    let runs: Vec<Run<'_>> =
        programs.iter().zip(subjects).map(|(&program, it)| Run { program, linear: it.linear }).collect();
    let sample = sample(captured);
    let rounds = attached(&programs, &|| time_rounds(&runs, &sample, rounds))??;
    Ok(Timed { accepted: programs.into_iter().map(accepted).collect(), rounds })
}

/// A subject in the kernel.
struct Run<'a> {
    program: &'a LoadedProgram,
    linear: Option<usize>,
}

/// The program that measures nothing but the loop around it.
struct Null;

impl Files for Null {
    fn read(&self, _: &str) -> Result<Vec<u8>, String> {
        Ok(b"xdp null { default drop; }".to_vec())
    }
}

/// Keeps this thread, and those that it starts, on the last CPU that it may use.
fn pin() -> nix::Result<()> {
    let this = Pid::from_raw(0);
    let allowed = nix::sched::sched_getaffinity(this)?;
    let last = (0..CpuSet::count()).rev().find(|&cpu| allowed.is_set(cpu).unwrap_or(false));
    let mut one = CpuSet::new();
    one.set(last.unwrap_or(0))?;
    sched_setaffinity(this, &one)
}

fn load_side(side: &Side) -> Result<Loaded, String> {
    let options =
        LoadOptions { program: Some(side.program.clone()), mode: Mode::Skb, ..LoadOptions::default() };
    load(&side.object, &options).map_err(|error| format!("loading `{}`: {error}", side.program))
}

/// Packets spread over the captures that the kernel takes in one buffer.
fn sample(captured: &[Vec<u8>]) -> Vec<&[u8]> {
    let usable: Vec<&[u8]> = captured
        .iter()
        .map(Vec::as_slice)
        .filter(|packet| (SHORTEST..=LONGEST).contains(&packet.len()))
        .collect();
    let step = usable.len().div_ceil(SAMPLE).max(1);
    usable.into_iter().step_by(step).collect()
}

/// Does `work` while each program is attached to the loopback of a namespace of its own.
fn attached<T: Send>(programs: &[&LoadedProgram], work: &(dyn Fn() -> T + Sync)) -> Result<T, String> {
    let Some((program, rest)) = programs.split_first() else { return Ok(work()) };
    let inside = in_private_network(|| {
        attach("lo", program, Mode::Skb).map_err(|error| error.to_string())?;
        attached(rest, work)
    });
    inside.map_err(|error: io::Error| format!("making a network namespace: {error}; run as root"))?
}

/// Nanoseconds a packet of each run, a line a round.
fn time_rounds(runs: &[Run<'_>], sample: &[&[u8]], rounds: usize) -> Result<Vec<Vec<f64>>, String> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    let mut round = || {
        let mut times = vec![0.0; runs.len()];
        for packet in sample {
            order.reverse();
            for &index in &order {
                times[index] += time_run(&runs[index], packet)? / sample.len() as f64;
            }
        }
        Ok(times)
    };
    round()?; // warms caches; thrown away
    (0..rounds).map(|_| round()).collect()
}

/// Nanoseconds a turn by the time that this thread had the processor: the kernel's own figure has whole
/// nanoseconds only, and counts those in which others ran.
fn time_run(run: &Run<'_>, packet: &[u8]) -> Result<f64, String> {
    let turns = TestRun { linear: run.linear, repeat: TURNS, ..TestRun::default() };
    let start = processor_time()?;
    test_run(run.program, packet, &turns).map_err(|error| format!("`{}`: {error}", run.program.name))?;
    Ok((processor_time()? - start).as_secs_f64() * SECOND / f64::from(TURNS))
}

fn processor_time() -> Result<Duration, String> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map(Duration::from).map_err(|error| format!("asking for the thread's time: {error}"))
}

fn summarise(null: &Samples, pktc: (Accepted, &Samples), clang: (Accepted, &Samples)) -> Measured {
    let ratios = pktc.1.zip(clang.1, |pktc, clang| pktc / clang);
    let (pktc_net, clang_net) =
        (pktc.1.zip(null, |all, null| all - null), clang.1.zip(null, |all, null| all - null));
    let comparable = clang_net.median() >= LEAST_NET;
    Measured {
        pktc: pktc.0,
        clang: clang.0,
        pktc_ns: pktc.1.median(),
        clang_ns: clang.1.median(),
        ratio: ratios.median(),
        net_ratio: comparable.then(|| pktc_net.zip(&clang_net, |pktc, clang| pktc / clang).median()),
    }
}

/// One figure a round.
struct Samples(Vec<f64>);

impl Samples {
    fn zip(&self, other: &Samples, with: impl Fn(f64, f64) -> f64) -> Samples {
        Samples(self.0.iter().zip(&other.0).map(|(&left, &right)| with(left, right)).collect())
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

fn accepted(program: &LoadedProgram) -> Accepted {
    Accepted { xlated: xlated(program.id), processed: program.processed }
}

fn xlated(id: u32) -> Option<u64> {
    let output = Command::new("bpftool").args(["-j", "prog", "show", "id", &id.to_string()]).output().ok()?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(answer.get("bytes_xlated")?.as_u64()? / INSTRUCTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_was_disturbed_moves_no_median() {
        let (pktc, clang) = (Samples(vec![10.0, 12.0, 900.0]), Samples(vec![20.0, 24.0, 25.0]));
        let ratios = pktc.zip(&clang, |pktc, clang| pktc / clang);
        assert!((ratios.median() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_sample_is_spread_and_takes_what_the_kernel_takes() {
        let mut packets: Vec<Vec<u8>> =
            (0..640u16).map(|number| [&number.to_be_bytes()[..], &[0; 60]].concat()).collect();
        packets.push(vec![0; SHORTEST - 1]);
        packets.push(vec![0; LONGEST + 1]);
        let sample = sample(&packets);
        assert_eq!(sample.len(), SAMPLE);
        assert_eq!((sample[0][1], sample[1][1]), (0, 10));
        assert!(super::sample(&[vec![0; 3]]).is_empty());
    }
}
