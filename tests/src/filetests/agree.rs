//! Engines agree on every packet, whole, cut at every length, and where the program is to see several buffers, with
//! a linear part of every length.

use pktc_driver::Subject;
use pktc_testing::engine::{Engine, Env};
use pktc_testing::runner::NoEngine;

use crate::engines::{Bench, Runner};

/// A packet, and what surrounds it.
pub(super) type Sent = (Vec<u8>, Env);

/// Packets are cut, and split, at every length up to this one: behind it no header starts.
const CUTS: usize = 256;

/// Runs packets and cuts on `runner` and on the reference; the counters must be equal in the end.
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
    for (frame, env) in packets {
        for cut in (0..frame.len().min(CUTS)).chain([frame.len()]) {
            bench.compare(subject, &mut *reference, &mut *engine, &frame[..cut], env)?;
        }
        let linear = 0..if runner.sees_fragments() { frame.len().min(CUTS) } else { 0 };
        for linear in linear {
            let env = Env { linear: Some(linear), ..env.clone() };
            bench
                .compare(subject, &mut *reference, &mut *engine, frame, &env)
                .map_err(|why| format!("linear part of {linear} bytes: {why}"))?;
        }
    }
    let counters =
        |engine: &mut dyn Engine| engine.counters().map_err(|error| format!("counters: {error:?}"));
    let (found, expected) = (counters(&mut *engine)?, counters(&mut *reference)?);
    if found == expected {
        return Ok(());
    }
    let rules = bench.rules(subject);
    let names: Vec<_> = rules.rules().iter().map(|rule| rule.name.as_str()).collect();
    Err(format!("counters of {}:\n{}: {found:?}\nreference: {expected:?}", names.join(" "), engine.name()))
}

/// A fresh engine.
pub(super) fn engine(bench: &mut Bench, runner: Runner, subject: Subject) -> Result<Box<dyn Engine>, String> {
    bench.engine(runner, subject).map_err(|error| match error {
        NoEngine::Missing(why) | NoEngine::Failed(why) => why,
    })
}
