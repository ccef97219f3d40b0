//! The running kernel as an engine: the object is loaded as for an interface, and run with `BPF_PROG_TEST_RUN`.
//!
//! The clock and the seed of `hash` are the kernel's own; [`Env`]'s are not used. Device and queue are real: for
//! others than `lo`'s first a packet runs in a network namespace of its own, on a device made for it (which takes
//! milliseconds).

use pktc_loader::{
    LoadError, LoadOptions, Loaded, LoadedProgram, Map, SHORTEST, TestRun, TestRunError, TestRunResult, load,
    test_run, with_device,
};

use crate::engine::{Engine, EngineError, Env, Outcome, verdict};
use crate::hits::{RuleCounters, outcome};

/// The longest linear part everywhere: a page of 4096 bytes less 256 of headroom and 320 of `skb_shared_info`. The
/// kernel puts what is longer into fragments, whatever is asked for.
const LONGEST_LINEAR: usize = 3520;
/// Bytes of a fragment: a page.
const FRAGMENT: usize = 4096;

/// A program in the kernel.
#[derive(Debug)]
pub struct KernelEngine {
    loaded: Loaded,
    counters: Option<RuleCounters>,
    /// What the rules had counted after the last packet.
    last: Vec<(u64, u64)>,
}

impl KernelEngine {
    /// Loads `program` of `object`; without `counters` no rule is ever told.
    ///
    /// # Errors
    /// See [`LoadError`]; an object without that map or entries is damaged.
    pub fn new(object: &[u8], program: &str, counters: Option<RuleCounters>) -> Result<Self, LoadError> {
        let options = LoadOptions { program: Some(program.to_string()), ..LoadOptions::default() };
        let loaded = load(object, &options)?;
        let mut engine = KernelEngine { loaded, counters, last: Vec::new() };
        engine.last = engine.read_counters().map_err(|error| LoadError::System {
            action: format!("reading the counters of program `{program}`"),
            error,
        })?;
        Ok(engine)
    }

    fn program(&self) -> &LoadedProgram {
        &self.loaded.programs[0]
    }

    /// The rules' counters now; none without counters.
    fn read_counters(&self) -> std::io::Result<Vec<(u64, u64)>> {
        let Some(counters) = &self.counters else { return Ok(Vec::new()) };
        let map: &Map = self.loaded.maps.get(&counters.map).ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::NotFound, format!("there is no map `{}`", counters.map))
        })?;
        map.counters(counters.first, counters.ends.len() as u32)
    }

    fn run_packet(&self, packet: &[u8], env: &Env) -> Result<TestRunResult, EngineError> {
        check(packet, env)?;
        let linear = env.linear.map(|linear| linear.min(packet.len()));
        let mut run = TestRun { linear, ..TestRun::default() };
        let default = Env::default();
        let result = if (env.ifindex, env.queue) == (default.ifindex, default.queue) {
            test_run(self.program(), packet, &run)
        } else {
            (run.ifindex, run.queue) = (env.ifindex, env.queue);
            with_device(env.ifindex, env.queue.saturating_add(1), || test_run(self.program(), packet, &run))
                .map_err(|error| {
                let device = format!("device {} with queue {}", env.ifindex, env.queue);
                EngineError::Unsupported(format!("the kernel makes no {device} for a packet: {error}"))
            })?
        };
        result.map_err(|error| match error {
            TestRunError::TooShort(_) | TestRunError::LinearTooLong | TestRunError::Refused(_) => {
                EngineError::Unsupported(error.to_string())
            }
            TestRunError::System(_) => EngineError::Fault(error.to_string()),
        })
    }
}

/// Whether the kernel can run the packet just so.
fn check(packet: &[u8], env: &Env) -> Result<(), EngineError> {
    let unsupported = |why: String| Err(EngineError::Unsupported(why));
    if packet.len() < SHORTEST {
        return unsupported(format!(
            "the kernel runs no packet shorter than {SHORTEST} bytes; this one has {}",
            packet.len()
        ));
    }
    if env.ifindex == 0 {
        return unsupported("no device has the index 0".into());
    }
    let linear = env.linear.unwrap_or(packet.len()).min(packet.len());
    if linear > LONGEST_LINEAR {
        return unsupported(format!(
            "the kernel holds no more than {LONGEST_LINEAR} bytes in the linear part; this packet has {linear}"
        ));
    }
    if linear < packet.len() && env.fragment != FRAGMENT {
        return unsupported(format!("the kernel's fragments have {FRAGMENT} bytes, not {}", env.fragment));
    }
    Ok(())
}

fn unreadable(error: std::io::Error) -> EngineError {
    EngineError::Fault(format!("reading the counters: {error}"))
}

impl Engine for KernelEngine {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn run(&mut self, packet: &[u8], env: &Env) -> Result<Outcome, EngineError> {
        let verdict = verdict(self.run_packet(packet, env)?.verdict)?;
        let after = self.read_counters().map_err(unreadable)?;
        let before = std::mem::replace(&mut self.last, after);
        Ok(outcome(verdict, self.counters.as_ref(), &before, &self.last))
    }

    fn counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError> {
        self.read_counters().map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(length: usize, env: &Env) -> Option<String> {
        match check(&vec![0; length], env) {
            Ok(()) => None,
            Err(EngineError::Unsupported(why) | EngineError::Fault(why)) => Some(why),
        }
    }

    #[test]
    fn packets_that_the_kernel_would_run_otherwise_are_refused() {
        let whole = Env::default();
        assert!(refusal(13, &whole).unwrap().contains("shorter than 14"));
        assert_eq!(refusal(14, &whole), None);
        assert_eq!(refusal(3520, &whole), None);
        assert!(refusal(3521, &whole).unwrap().contains("no more than 3520"));
        let short = Env { linear: Some(20), ..Env::default() };
        assert_eq!(refusal(9000, &short), None);
        let cut = Env { fragment: 100, ..short };
        assert!(refusal(9000, &cut).unwrap().contains("have 4096 bytes, not 100"));
        assert_eq!(refusal(20, &cut), None, "there is no fragment");
    }
}
