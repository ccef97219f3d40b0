//! One program in all engines: what the reference says, and whether the others say the same.

use std::fmt::Write as _;
use std::iter::Sum;

use pktc_driver::Built;
use pktc_driver::options::Access;
use pktc_loader::SHORTEST;
use pktc_semantics::typed::{Program, Verdict};
use pktc_testing::engine::{Engine, EngineError, Env, Outcome};
use pktc_testing::hits::RuleCounters;
use pktc_testing::kernel::KernelEngine;
use pktc_testing::linear::{Countable, growth};
use pktc_testing::reference::{Reference, headers_end};
use pktc_testing::vm::Vm;

use super::compiled::{Compiled, Failure, Object, guarded};
use super::operand::FARTHEST_SLICE;
use super::source::NAME;

/// The longest packet that the kernel keeps in one piece: a page of 4096 bytes less 256 of headroom and 320 of
/// `skb_shared_info`.
const LONGEST_WHOLE: usize = 3520;

/// Bytes of the fragments behind a linear part. The kernel's have a page. The userspace engine takes any, and gives
/// programs no way to tell them apart: so each length has one, and all have their turns.
const FRAGMENTS: [usize; 4] = [4096, 64, 7, 1];

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

impl Machine {
    /// What it cuts the rest of a packet into that does not lie in a linear part of so many bytes.
    fn fragment(self, linear: usize) -> usize {
        match self {
            Machine::Vm => FRAGMENTS[linear % FRAGMENTS.len()],
            Machine::Kernel => FRAGMENTS[0],
        }
    }

    fn takes(self, input: Input) -> bool {
        match self {
            Machine::Vm => true,
            Machine::Kernel => input.is_for_kernel(),
        }
    }
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
    /// The packets that are run once more with a linear part of every length.
    pub(super) split: Vec<Split>,
}

/// A packet that lies in several buffers, and what the reference says of it.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) input: Input,
    pub(super) outcome: Outcome,
    /// The longest linear part: behind it lies nothing that a rule may read.
    pub(super) end: usize,
    counted: Counts,
    countable: Countable,
}

/// How much was run without a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Packets in one buffer.
    pub(super) whole: usize,
    /// Packets by lengths of the linear part.
    pub(super) split: usize,
    /// Those that the machine did not take.
    pub(super) untaken: usize,
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(tallies: I) -> Tally {
        tallies.fold(Tally::default(), |sum, tally| Tally {
            whole: sum.whole + tally.whole,
            split: sum.split + tally.split,
            untaken: sum.untaken + tally.untaken,
        })
    }
}

/// A difference between what is meant and what is done.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) text: String,
    /// The packet that shows it, if one does.
    pub(super) input: Option<Input>,
    /// The strategy of the object that shows it, if one does.
    pub(super) access: Option<Access>,
}

impl From<String> for Difference {
    fn from(text: String) -> Self {
        Difference { text, input: None, access: None }
    }
}

/// Asks the reference about `inputs`, and about the packets with the numbers `split` in several buffers.
///
/// # Errors
/// If it panics, or does not come to a verdict.
pub(super) fn expect(
    compiled: &Compiled,
    packets: &[Vec<u8>],
    mut inputs: Vec<Input>,
    split: &[usize],
) -> Result<Expected, Difference> {
    let program = compiled.checked.program.as_ref().ok_or_else(|| "no program".to_owned())?;
    let mut oracle = Oracle::new(compiled, program)?;
    inputs.sort_by_key(|input| !input.is_for_kernel());
    let runnable = inputs.iter().filter(|input| input.is_for_kernel()).count();
    let mut outcomes = Vec::with_capacity(inputs.len());
    let mut after_runnable = oracle.counts();
    for (at, &input) in inputs.iter().enumerate() {
        outcomes.push(oracle.run(input, packets)?);
        if at + 1 == runnable {
            after_runnable = oracle.counts();
        }
    }
    let for_all = oracle.counts();
    let split = split.iter().map(|&packet| oracle.split(packet, packets)).collect::<Result<_, _>>()?;
    Ok(Expected { inputs, outcomes, for_kernel: (runnable, after_runnable), for_all, split })
}

/// The reference, and the program that it evaluates.
struct Oracle<'a> {
    program: &'a Program,
    reference: Reference,
}

impl<'a> Oracle<'a> {
    fn new(compiled: &Compiled, program: &'a Program) -> Result<Self, Difference> {
        let subject = program.xdps.values().next().ok_or_else(|| "no xdp".to_owned())?;
        Ok(Oracle { program, reference: Reference::new(program, &compiled.checked.sources, subject) })
    }

    fn run(&mut self, input: Input, packets: &[Vec<u8>]) -> Result<Outcome, Difference> {
        let outcome = run(&mut self.reference, input.bytes(packets), &Env::default());
        let outcome = outcome.and_then(|taken| taken.ok_or_else(|| "the reference takes it not".into()));
        outcome.map_err(|text| Difference { text, input: Some(input), access: None })
    }

    fn counts(&mut self) -> Counts {
        let mut counts = self.reference.counters().unwrap_or_default();
        counts.extend(self.program.counters.keys().map(|counter| self.reference.counter(counter)));
        counts
    }

    fn split(&mut self, packet: usize, packets: &[Vec<u8>]) -> Result<Split, Difference> {
        let input = Input { packet, length: packets[packet].len() };
        let (bytes, env) = (input.bytes(packets), Env::default());
        let before = self.counts();
        let outcome = self.run(input, packets)?;
        Ok(Split {
            input,
            outcome,
            end: (headers_end(self.program, bytes, &env) + FARTHEST_SLICE).min(bytes.len()),
            counted: growth(&before, &self.counts()),
            countable: Countable::of(self.program, bytes, &env),
        })
    }
}

/// Runs a packet; a fault or a panic is told in words. None if the engine does not take the packet.
fn run(engine: &mut dyn Engine, packet: &[u8], env: &Env) -> Result<Option<Outcome>, String> {
    let name = engine.name();
    match guarded(name, || engine.run(packet, env)) {
        Ok(Ok(outcome)) => Ok(Some(outcome)),
        Ok(Err(EngineError::Unsupported(_))) => Ok(None),
        Ok(Err(EngineError::Fault(why))) => Err(format!("{name}: {why}")),
        Err(Failure::Bug(why) | Failure::Refused(_, why)) => Err(why),
    }
}

/// Runs all objects in `machine`: on all packets in one buffer, and those that see several on some in several. How
/// much each ran.
///
/// # Errors
/// The first packet of which it says something else than the reference, or what it refuses.
pub(super) fn compare(
    compiled: &Compiled,
    packets: &[Vec<u8>],
    expected: &Expected,
    machine: Machine,
) -> Result<Vec<(Access, Tally)>, Difference> {
    let compare = |object: &Object| {
        let tally = compare_object(object, packets, expected, machine).map_err(|difference| {
            let text = format!("{machine:?} with {}: {}", object.name(), difference.text);
            Difference { text, access: Some(object.how.0), ..difference }
        })?;
        Ok((object.how.0, tally))
    };
    compiled.objects.iter().map(compare).collect()
}

fn compare_object(
    object: &Object,
    packets: &[Vec<u8>],
    expected: &Expected,
    machine: Machine,
) -> Result<Tally, Difference> {
    let built = &object.built;
    let rules = RuleCounters::of(built, 0);
    let entries = rules.as_ref().map_or(0, |rules| rules.ends.len()) + built.metadata.counters.len();
    let mut engine =
        start(machine, built, entries).map_err(|why| format!("it does not take the object: {why}"))?;
    let mut comparison = Comparison { packets, expected, rules, entries, tally: Tally::default() };
    comparison.whole(&mut *engine, machine)?;
    if object.how.0.frags() {
        comparison.split(&mut *engine, machine)?;
    }
    Ok(comparison.tally)
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
    tally: Tally,
}

impl Comparison<'_> {
    /// Packets in one buffer, then the counters after them.
    fn whole(&mut self, engine: &mut dyn Engine, machine: Machine) -> Result<(), Difference> {
        let (runnable, after_runnable) = &self.expected.for_kernel;
        self.some(engine, 0..*runnable)?;
        self.counters(engine, after_runnable)?;
        if machine == Machine::Kernel {
            return Ok(());
        }
        self.some(engine, *runnable..self.expected.inputs.len())?;
        self.counters(engine, &self.expected.for_all)
    }

    fn some(&mut self, engine: &mut dyn Engine, range: std::ops::Range<usize>) -> Result<(), Difference> {
        for at in range {
            let (input, meant) = (self.expected.inputs[at], &self.expected.outcomes[at]);
            let done = self.one(engine, input, meant, &Env::default());
            let taken = done.map_err(|text| Difference { text, input: Some(input), access: None })?;
            self.tally.whole += usize::from(taken);
            self.tally.untaken += usize::from(!taken);
        }
        Ok(())
    }

    /// Packets in several buffers, with a linear part of every length.
    fn split(&mut self, engine: &mut dyn Engine, machine: Machine) -> Result<(), Difference> {
        for split in self.expected.split.iter().filter(|split| machine.takes(split.input)) {
            for linear in 0..=split.end {
                let fragment = machine.fragment(linear);
                let env = Env { linear: Some(linear), fragment, ..Env::default() };
                let taken = self.piecewise(engine, split, linear, &env).map_err(|text| {
                    let text = format!("linear part {linear}, fragments of {fragment}: {text}");
                    Difference { text, input: Some(split.input), access: None }
                })?;
                self.tally.split += usize::from(taken);
                self.tally.untaken += usize::from(!taken);
            }
        }
        Ok(())
    }

    fn piecewise(
        &self,
        engine: &mut dyn Engine,
        split: &Split,
        linear: usize,
        env: &Env,
    ) -> Result<bool, String> {
        let before = counted(engine)?;
        if !self.one(engine, split.input, &split.outcome, env)? {
            return Ok(false);
        }
        let done = growth(&before, &counted(engine)?);
        let meant = self.of_entries(&split.counted);
        if split.countable.agree(linear, &done, meant) {
            return Ok(true);
        }
        Err(format!("counters grow by {done:?} instead of {meant:?}"))
    }

    /// Runs a packet; whether the engine takes it.
    fn one(&self, engine: &mut dyn Engine, input: Input, meant: &Outcome, env: &Env) -> Result<bool, String> {
        let Some(mut done) = run(engine, input.bytes(self.packets), env)? else { return Ok(false) };
        let Some(rules) = &self.rules else {
            let (done, meant) = (done.verdict, meant.verdict);
            return if done == meant { Ok(true) } else { Err(format!("{done:?} instead of {meant:?}")) };
        };
        done.hits.retain(|rule| (rule.0 as usize) < rules.ends.len());
        done.rule = rules.decider(&done.hits);
        // Where counters cannot tell the rule (a chain that is applied again), they need not tell it.
        let rule = if rules.decider(&meant.hits) == meant.rule { meant.rule } else { done.rule };
        if (done.verdict, done.rule, &done.hits) == (meant.verdict, rule, &meant.hits) {
            return Ok(true);
        }
        Err(format!("{} instead of {}", text(&done), text(meant)))
    }

    /// Of the reference's counters those that the object has: the reference counts rules even where the program says
    /// `counters off`.
    fn of_entries<'c>(&self, counts: &'c Counts) -> &'c [(u64, u64)] {
        &counts[counts.len() - self.entries..]
    }

    fn counters(&self, engine: &mut dyn Engine, meant: &Counts) -> Result<(), Difference> {
        if self.entries == 0 {
            return Ok(());
        }
        let done = counted(engine)?;
        let mut text = String::new();
        for (at, (done, meant)) in done.iter().zip(self.of_entries(meant)).enumerate() {
            if done != meant {
                let _ = write!(text, " counter {at} is {done:?} instead of {meant:?};");
            }
        }
        if text.is_empty() { Ok(()) } else { Err(text.into()) }
    }
}

fn counted(engine: &mut dyn Engine) -> Result<Counts, String> {
    engine.counters().map_err(|error| format!("{error:?}"))
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
