//! What all engines have in common: a packet and its surroundings in, a verdict and the rules that held out.

use pktc_bpf::XdpAction;
use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::Verdict;

/// What surrounds a packet: all that an engine may not take from its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Env {
    /// The clock, in nanoseconds.
    pub now: u64,
    /// Seed of `hash`.
    pub seed: u32,
    /// Index of the device that it came in by.
    pub ifindex: u32,
    /// Receive queue.
    pub queue: u32,
    /// Bytes in the linear part, at most all; `None`: all.
    pub linear: Option<usize>,
    /// Bytes in each further fragment, at least 1.
    pub fragment: usize,
}

impl Default for Env {
    fn default() -> Self {
        Env { now: 0, seed: 0, ifindex: 1, queue: 0, linear: None, fragment: 4096 }
    }
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule that decided; [`RuleId::DEFAULT`] if none did.
    pub rule: RuleId,
    /// All rules whose condition held, ascending ([`RuleId::DEFAULT`] too, where it decided).
    pub hits: Vec<RuleId>,
}

/// Why an engine gave no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// It cannot take this packet (the kernel: under 14 bytes); others go on.
    Unsupported(String),
    /// The program did what it may not, or what is not meant: a bug of the compiler or the engine.
    Fault(String),
}

/// The verdict of what a program returned. It is written down here once more, so that engines find it where lowering
/// gives another number.
pub(crate) fn verdict(returned: u32) -> Result<Verdict, EngineError> {
    match XdpAction::from_code(returned) {
        Some(XdpAction::Aborted) => Ok(Verdict::Abort),
        Some(XdpAction::Drop) => Ok(Verdict::Drop),
        Some(XdpAction::Pass) => Ok(Verdict::Pass),
        Some(XdpAction::Tx) => Ok(Verdict::Tx),
        Some(XdpAction::Redirect) => Ok(Verdict::Redirect),
        None => Err(EngineError::Fault(format!("the program returned {returned}, which is no verdict"))),
    }
}

/// Runs one program on packets. Counters and state live as long as the engine.
pub trait Engine {
    /// `reference`, `vm` or `kernel`.
    fn name(&self) -> &'static str;

    /// Runs the program on `packet`.
    ///
    /// # Errors
    /// See [`EngineError`].
    fn run(&mut self, packet: &[u8], env: &Env) -> Result<Outcome, EngineError>;

    /// Packets and bytes of each rule so far, by [`RuleId`].
    ///
    /// # Errors
    /// If the counters cannot be read.
    fn counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_verdict_is_a_fault() {
        let verdicts = [Verdict::Abort, Verdict::Drop, Verdict::Pass, Verdict::Tx, Verdict::Redirect];
        for (number, expected) in (0..).zip(verdicts) {
            assert_eq!(verdict(number), Ok(expected));
        }
        assert!(matches!(verdict(5), Err(EngineError::Fault(_))));
    }
}
