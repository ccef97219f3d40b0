//! Packets in several buffers: engines whose packets have a linear part of a chosen length, or of every length.

use pktc_semantics::rules::RuleTable;
use pktc_semantics::typed::Program;

use crate::engine::{Engine, EngineError, Env, Outcome};
use crate::reference::{claims_end, headers_end};

/// An engine whose packets have at most so many bytes in the linear part.
pub struct Split {
    engine: Box<dyn Engine>,
    linear: usize,
}

impl Split {
    /// `engine` with packets whose linear part ends after `linear` bytes.
    #[must_use]
    pub fn new(engine: Box<dyn Engine>, linear: usize) -> Self {
        Split { engine, linear }
    }
}

impl Engine for Split {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn run(&mut self, packet: &[u8], env: &Env) -> Result<Outcome, EngineError> {
        self.engine.run(packet, &split(env, self.linear))
    }

    fn counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError> {
        self.engine.counters()
    }
}

/// An engine that runs each packet with a linear part of every length, from none to the end of the packet's headers.
/// Whatever the length, the program must say and count the same; that it does not is a [`EngineError::Fault`]. Of a
/// packet that claims no more than its linear part, what lies behind may go uncounted: it is padding.
pub struct Sweep {
    /// Runs each packet once: its counters are those of the packets.
    engine: Box<dyn Engine>,
    /// Runs it at every length.
    probe: Box<dyn Engine>,
    program: Program,
    rules: RuleTable,
}

/// How many bytes of a packet count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Countable {
    /// Where the packet ends as it claims; `None` if it claims nothing.
    claimed: Option<usize>,
}

impl Countable {
    /// Of `packet`.
    #[must_use]
    pub fn of(program: &Program, packet: &[u8], env: &Env) -> Self {
        Countable { claimed: claims_end(program, packet, env) }
    }

    /// Whether packets and bytes that were counted of this packet with so long a linear part are those that count of
    /// it `whole`. What lies behind the linear part may be left out if the packet does not claim it.
    #[must_use]
    pub fn agree(self, linear: usize, found: &[(u64, u64)], whole: &[(u64, u64)]) -> bool {
        let rest_is_padding = self.claimed.is_none_or(|claimed| linear >= claimed);
        let same = |(found, whole): (&(u64, u64), &(u64, u64))| {
            found == whole || rest_is_padding && *found == (whole.0, whole.0 * linear as u64)
        };
        found.iter().zip(whole).all(same)
    }
}

/// What one run came to.
struct Run {
    outcome: Outcome,
    /// What each rule counted: packets and bytes.
    counted: Vec<(u64, u64)>,
}

impl Sweep {
    /// `engine` and `probe` are two of the same kind, both with the one of the file's programs that has `rules`.
    #[must_use]
    pub fn new(engine: Box<dyn Engine>, probe: Box<dyn Engine>, program: &Program, rules: RuleTable) -> Self {
        Sweep { engine, probe, program: program.clone(), rules }
    }

    fn difference(&self, linear: usize, found: &Run, whole: &Run) -> String {
        let (found, whole) = (self.describe(found), self.describe(whole));
        format!("with a linear part of {linear} bytes {found}; with all headers in it {whole}")
    }

    fn describe(&self, run: &Run) -> String {
        let counted = self.rules.rules().iter().zip(&run.counted).filter(|(_, (packets, _))| *packets > 0);
        let counted: Vec<_> =
            counted.map(|(rule, (_, bytes))| format!("{bytes} bytes by `{}`", rule.name)).collect();
        let rule = &self.rules.info(run.outcome.rule).name;
        format!("{} by `{rule}`, counted {}", run.outcome.verdict.word(), counted.join(", "))
    }
}

impl Engine for Sweep {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn run(&mut self, packet: &[u8], env: &Env) -> Result<Outcome, EngineError> {
        let end = headers_end(&self.program, packet, env);
        let whole = match run(&mut *self.engine, packet, env) {
            // The packet may be too long for one buffer.
            Err(EngineError::Unsupported(_)) => run(&mut *self.engine, packet, &split(env, end)),
            result => result,
        }?;
        let countable = Countable::of(&self.program, packet, env);
        for linear in 0..=end {
            let found =
                run(&mut *self.probe, packet, &split(env, linear)).map_err(|error| at(linear, error))?;
            let same_counts = countable.agree(linear, &found.counted, &whole.counted);
            if found.outcome != whole.outcome || !same_counts {
                return Err(EngineError::Fault(self.difference(linear, &found, &whole)));
            }
        }
        Ok(whole.outcome)
    }

    fn counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError> {
        self.engine.counters()
    }
}

fn split(env: &Env, linear: usize) -> Env {
    Env { linear: Some(linear), ..env.clone() }
}

fn run(engine: &mut dyn Engine, packet: &[u8], env: &Env) -> Result<Run, EngineError> {
    let before = engine.counters()?;
    let outcome = engine.run(packet, env)?;
    Ok(Run { outcome, counted: growth(&before, &engine.counters()?) })
}

/// What was counted in between: packets and bytes.
#[must_use]
pub fn growth(before: &[(u64, u64)], after: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let grown = before.iter().zip(after).map(|(before, after)| (after.0 - before.0, after.1 - before.1));
    grown.collect()
}

fn at(linear: usize, error: EngineError) -> EngineError {
    let here = |what: String| format!("with a linear part of {linear} bytes: {what}");
    match error {
        EngineError::Unsupported(why) => EngineError::Unsupported(here(why)),
        EngineError::Fault(what) => EngineError::Fault(here(what)),
    }
}
