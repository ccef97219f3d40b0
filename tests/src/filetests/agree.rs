//! Engines agree on every packet, whole, cut at every length, and where the program is to see several buffers, with
//! a linear part of every length.

use std::ops::Range;

use pktc_driver::Subject;
use pktc_semantics::typed::Program;
use pktc_testing::engine::{Engine, Env};
use pktc_testing::reference::claims_end;
use pktc_testing::runner::NoEngine;

use crate::engines::{Bench, Runner};

/// A packet, and what surrounds it.
pub(super) type Sent = (Vec<u8>, Env);

/// Packets are cut, and split, at every length up to this one: behind it no header starts.
const CUTS: usize = 256;

/// Runs packets and cuts on `runner` and on the reference; the counters must be equal in the end, but for padding that
/// lies behind the linear part.
///
/// # Errors
/// The first disagreement.
pub(super) fn check(
    bench: &mut Bench,
    runner: Runner,
    subject: Subject,
    packets: &[Sent],
) -> Result<(), String> {
    if runner == Runner::Reference {
        return Ok(());
    }
    let mut engine = engine(bench, runner, subject)?;
    let mut reference = self::engine(bench, Runner::Reference, subject)?;
    let mut padding = Vec::new();
    for (frame, env) in packets {
        for cut in (0..frame.len().min(CUTS)).chain([frame.len()]) {
            bench.compare(subject, &mut *reference, &mut *engine, &frame[..cut], env)?;
        }
        let linear = 0..if runner.sees_fragments() { frame.len().min(CUTS) } else { 0 };
        let before = counters(&mut *reference)?;
        for linear in linear.clone() {
            let env = Env { linear: Some(linear), ..env.clone() };
            bench
                .compare(subject, &mut *reference, &mut *engine, frame, &env)
                .map_err(|why| format!("linear part of {linear} bytes: {why}"))?;
        }
        let most = uncounted(bench.program(), frame, env, linear.clone());
        padding.resize(before.len(), 0);
        for ((padding, before), after) in padding.iter_mut().zip(before).zip(counters(&mut *reference)?) {
            *padding += (after.0 - before.0) / (linear.len() as u64).max(1) * most;
        }
    }
    let (found, expected) = (counters(&mut *engine)?, counters(&mut *reference)?);
    let close = (0..found.len()).all(|index| {
        let ((packets, bytes), padding) = (found[index], padding[index]);
        packets == expected[index].0 && (expected[index].1 - padding..=expected[index].1).contains(&bytes)
    });
    if close {
        return Ok(());
    }
    let rules = bench.rules(subject);
    let names: Vec<_> = rules.rules().iter().map(|rule| rule.name.as_str()).collect();
    Err(format!("counters of {}:\n{}: {found:?}\nreference: {expected:?}", names.join(" "), engine.name()))
}

fn counters(engine: &mut dyn Engine) -> Result<Vec<(u64, u64)>, String> {
    engine.counters().map_err(|error| format!("counters: {error:?}"))
}

/// The most bytes that counters may leave out of `frame`, run once with a linear part of each of these lengths: what
/// lies behind the linear part, where no header claims that there is more.
fn uncounted(program: &Program, frame: &[u8], env: &Env, linear: Range<usize>) -> u64 {
    let claimed = claims_end(program, frame, env).unwrap_or(0);
    linear.filter(|&linear| linear >= claimed).map(|linear| (frame.len() - linear) as u64).sum()
}

/// A fresh engine.
pub(super) fn engine(bench: &mut Bench, runner: Runner, subject: Subject) -> Result<Box<dyn Engine>, String> {
    bench.engine(runner, subject).map_err(|error| match error {
        NoEngine::Missing(why) | NoEngine::Failed(why) => why,
    })
}
