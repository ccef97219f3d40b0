//! One program in all engines: what the reference says, and whether the others say the same.

use std::fmt::Write as _;

use pktc_driver::Built;
use pktc_loader::SHORTEST;
use pktc_semantics::typed::Verdict;
use pktc_testing::engine::{Engine, EngineError, Env, Outcome};
use pktc_testing::hits::RuleCounters;
use pktc_testing::kernel::KernelEngine;
use pktc_testing::reference::Reference;
use pktc_testing::vm::Vm;

use super::compiled::{Compiled, Failure, LEVELS, guarded};
use super::source::NAME;

/// The longest packet that the kernel keeps in one piece: a page of 4096 bytes less 256 of headroom and 320 of
/// `skb_shared_info`.
const LONGEST_WHOLE: usize = 3520;

/// Packets and bytes of the rules by their numbers, then of the named counters.
type Counts = Vec<(u64, u64)>;

/// An engine that runs objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    /// The userspace engine.
    Vm,
    /// The running kernel.
    Kernel,
}

/// A packet that a program is run on: the beginning of one of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) packet: usize,
    pub(super) length: usize,
}

impl Input {
    pub(super) fn bytes(self, packets: &[Vec<u8>]) -> &[u8] {
        &packets[self.packet][..self.length]
    }

    /// Whether the kernel can run it.
    fn is_for_kernel(self) -> bool {
        (SHORTEST..=LONGEST_WHOLE).contains(&self.length)
    }
}

/// What the reference says of a program and its packets.
#[derive(Debug)]
pub(super) struct Expected {
    /// Those that the kernel can run stand first.
    pub(super) inputs: Vec<Input>,
    pub(super) outcomes: Vec<Outcome>,
    /// How many inputs the kernel can run, and the counters after those.
    for_kernel: (usize, Counts),
    /// The counters after all.
    for_all: Counts,
}

/// A difference between what is meant and what is done.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) text: String,
    /// The packet that shows it, if one does.
    pub(super) input: Option<Input>,
}

impl From<String> for Difference {
    fn from(text: String) -> Self {
        Difference { text, input: None }
    }
}

/// Asks the reference.
///
/// # Errors
/// If it panics, or does not come to a verdict.
pub(super) fn expect(
    compiled: &Compiled,
    packets: &[Vec<u8>],
    mut inputs: Vec<Input>,
) -> Result<Expected, Difference> {
    let program = compiled.checked.program.as_ref().ok_or_else(|| "no program".to_owned())?;
    let subject = program.xdps.values().next().ok_or_else(|| "no xdp".to_owned())?;
    let mut reference = Reference::new(program, &compiled.checked.sources, subject);
    inputs.sort_by_key(|input| !input.is_for_kernel());
    let runnable = inputs.iter().filter(|input| input.is_for_kernel()).count();
    let counts = |reference: &mut Reference| {
        let mut counts = reference.counters().unwrap_or_default();
        counts.extend(program.counters.keys().map(|counter| reference.counter(counter)));
        counts
    };
    let mut outcomes = Vec::with_capacity(inputs.len());
    let mut after_runnable = counts(&mut reference);
    for (at, &input) in inputs.iter().enumerate() {
        let outcome = run(&mut reference, input.bytes(packets));
        outcomes.push(outcome.map_err(|text| Difference { text, input: Some(input) })?);
        if at + 1 == runnable {
            after_runnable = counts(&mut reference);
        }
    }
    let for_all = counts(&mut reference);
    Ok(Expected { inputs, outcomes, for_kernel: (runnable, after_runnable), for_all })
}

/// Runs a packet; a fault or a panic is told in words.
fn run(engine: &mut dyn Engine, packet: &[u8]) -> Result<Outcome, String> {
    let name = engine.name();
    match guarded(name, || engine.run(packet, &Env::default())) {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(EngineError::Unsupported(why) | EngineError::Fault(why))) => Err(format!("{name}: {why}")),
        Err(Failure::Bug(why) | Failure::Refused(_, why)) => Err(why),
    }
}

/// Runs the objects of both levels in `machine`.
///
/// # Errors
/// The first packet of which it says something else than the reference, or what it refuses.
pub(super) fn compare(
    compiled: &Compiled,
    packets: &[Vec<u8>],
    expected: &Expected,
    machine: Machine,
) -> Result<(), Difference> {
    for (level, built) in LEVELS.iter().zip(&compiled.built) {
        let rules = RuleCounters::of(built, 0);
        let entries = rules.as_ref().map_or(0, |rules| rules.ends.len()) + built.metadata.counters.len();
        let mut engine = start(machine, built, entries)
            .map_err(|why| format!("{machine:?} at {level:?} does not take the object: {why}"))?;
        let comparison = Comparison { packets, expected, rules, entries };
        comparison.all(&mut *engine, machine).map_err(|difference| {
            let text = format!("{machine:?} at {level:?}: {}", difference.text);
            Difference { text, ..difference }
        })?;
    }
    Ok(())
}

/// An engine whose "rules" are all counters of the object, the named ones too.
fn start(machine: Machine, built: &Built, entries: usize) -> Result<Box<dyn Engine>, String> {
    let of_rules = built.counters.iter().flatten().map(|range| &range.map);
    let map = of_rules.chain(built.metadata.counters.iter().map(|counter| &counter.map)).next();
    let counters = map.map(|map| RuleCounters { map: map.clone(), first: 0, ends: vec![true; entries] });
    match machine {
        Machine::Vm => {
            let vm =
                guarded("vm", || Vm::load(&built.object, NAME)).map_err(|failure| format!("{failure:?}"))?;
            let vm = vm.map_err(|error| error.to_string())?;
            Ok(Box::new(vm.with_counters(counters)))
        }
        Machine::Kernel => {
            let engine =
                KernelEngine::new(&built.object, NAME, counters).map_err(|error| error.to_string())?;
            Ok(Box::new(engine))
        }
    }
}

struct Comparison<'a> {
    packets: &'a [Vec<u8>],
    expected: &'a Expected,
    /// `None` where rules do not count.
    rules: Option<RuleCounters>,
    entries: usize,
}

impl Comparison<'_> {
    fn all(&self, engine: &mut dyn Engine, machine: Machine) -> Result<(), Difference> {
        let (runnable, after_runnable) = &self.expected.for_kernel;
        self.some(engine, 0..*runnable)?;
        self.counters(engine, after_runnable)?;
        if machine == Machine::Kernel {
            return Ok(());
        }
        self.some(engine, *runnable..self.expected.inputs.len())?;
        self.counters(engine, &self.expected.for_all)
    }

    fn some(&self, engine: &mut dyn Engine, range: std::ops::Range<usize>) -> Result<(), Difference> {
        for at in range {
            let (input, meant) = (self.expected.inputs[at], &self.expected.outcomes[at]);
            let different = |text| Difference { text, input: Some(input) };
            let mut done = run(engine, input.bytes(self.packets)).map_err(different)?;
            let Some(rules) = &self.rules else {
                if done.verdict != meant.verdict {
                    return Err(different(format!("{:?} instead of {:?}", done.verdict, meant.verdict)));
                }
                continue;
            };
            done.hits.retain(|rule| (rule.0 as usize) < rules.ends.len());
            done.rule = rules.decider(&done.hits);
            // Where counters cannot tell the rule (a chain that is applied again), they need not tell it.
            let rule = if rules.decider(&meant.hits) == meant.rule { meant.rule } else { done.rule };
            if (done.verdict, done.rule, &done.hits) != (meant.verdict, rule, &meant.hits) {
                return Err(different(format!("{} instead of {}", text(&done), text(meant))));
            }
        }
        Ok(())
    }

    fn counters(&self, engine: &mut dyn Engine, meant: &Counts) -> Result<(), Difference> {
        if self.entries == 0 {
            return Ok(());
        }
        // The reference counts rules even where the program says `counters off`.
        let counting = meant.len() - self.entries;
        let done = engine.counters().map_err(|error| format!("{error:?}"))?;
        let mut text = String::new();
        for (at, (done, meant)) in done.iter().zip(&meant[counting..]).enumerate() {
            if done != meant {
                let _ = write!(text, " counter {at} is {done:?} instead of {meant:?};");
            }
        }
        if text.is_empty() { Ok(()) } else { Err(text.into()) }
    }
}

fn text(outcome: &Outcome) -> String {
    let hits: Vec<u32> = outcome.hits.iter().map(|rule| rule.0).collect();
    format!("{:?} by rule {} of those that hold {hits:?}", outcome.verdict, outcome.rule.0)
}

/// `enum xdp_action`
pub(super) fn code(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Abort => 0,
        Verdict::Drop => 1,
        Verdict::Pass => 2,
        Verdict::Tx => 3,
        Verdict::Redirect => 4,
    }
}
