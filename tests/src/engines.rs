//! The engines that tests run a source file under: the reference, and the userspace engine and the kernel on
//! objects of each access strategy and level of optimisation.
//!
//! A [`Bench`] holds a checked file, builds each object once, and makes as many fresh engines as are wanted.
//! [`Bench::compare`] is the check that no test does without: an engine says of a packet exactly what the
//! reference says, verdict, deciding rule and all rules that held.

use std::rc::Rc;

use pktc_diagnostics::{Diagnostic, codes, render};
use pktc_driver::options::{Access, Counters, Level};
use pktc_driver::{Built, Checked, CounterRange, Options, Subject, build};
use pktc_loader::LoadError;
use pktc_semantics::rules::{RuleId, RuleTable};
use pktc_semantics::typed::{CounterId, Program};
use pktc_testing::engine::{Engine, EngineError, Env, Outcome};
use pktc_testing::hits::RuleCounters;
use pktc_testing::kernel::KernelEngine;
use pktc_testing::reference::Reference;
use pktc_testing::runner::NoEngine;
use pktc_testing::vm::Vm;

/// The levels of optimisation.
pub const LEVELS: [Level; 2] = [Level::O0, Level::O2];

/// How an object is built.
pub type Build = (Access, Level);

/// An engine, and for machine code how it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The evaluator of the typed program.
    Reference,
    /// The userspace BPF engine.
    Vm(Build),
    /// The running kernel.
    Kernel(Build),
}

impl Runner {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Runner> {
        let builds = Access::ALL.into_iter().flat_map(|access| LEVELS.map(|level| (access, level)));
        std::iter::once(Runner::Reference)
            .chain(builds.flat_map(|build| [Runner::Vm(build), Runner::Kernel(build)]))
    }

    /// What test names call it: `vm-O0` (through the packet's pointers), `kernel-auto-O2`.
    #[must_use]
    pub fn name(self) -> String {
        let (engine, (access, level)) = match self {
            Runner::Reference => return "reference".into(),
            Runner::Vm(build) => ("vm", build),
            Runner::Kernel(build) => ("kernel", build),
        };
        let access = if access == Access::Direct { "" } else { &format!("-{}", access.name()) };
        format!("{engine}{access}-{level:?}")
    }

    /// Whether it can run here.
    ///
    /// # Errors
    /// Why not.
    pub fn probe(self) -> Result<(), String> {
        match self {
            Runner::Reference | Runner::Vm(_) => Ok(()),
            Runner::Kernel(_) => pktc_loader::probe(),
        }
    }

    /// Whether it sees packets whole that lie in several buffers.
    #[must_use]
    pub fn sees_fragments(self) -> bool {
        match self {
            Runner::Reference => true,
            Runner::Vm((access, _)) | Runner::Kernel((access, _)) => access.frags(),
        }
    }
}

/// A checked source file and the objects made of it.
pub struct Bench {
    checked: Checked,
    built: Vec<((Subject, Build), Rc<Built>)>,
}

impl Bench {
    /// For a file that compiles.
    ///
    /// # Errors
    /// What is wrong with the file, as users see it.
    pub fn new(checked: Checked) -> Result<Bench, String> {
        match checked.program {
            Some(_) => Ok(Bench { checked, built: Vec::new() }),
            None => Err(render(&checked.sources, &checked.diagnostics, false)),
        }
    }

    /// The checked file.
    #[must_use]
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// Its program.
    ///
    /// # Panics
    /// Never: [`Bench::new`] takes no file without one.
    #[must_use]
    pub fn program(&self) -> &Program {
        self.checked.program.as_ref().expect("the file compiled")
    }

    /// Diagnostics as users see them.
    #[must_use]
    pub fn render(&self, diagnostics: &[Diagnostic]) -> String {
        render(&self.checked.sources, diagnostics, false)
    }

    /// The rules of `subject`.
    #[must_use]
    pub fn rules(&self, subject: Subject) -> RuleTable {
        RuleTable::of(self.program(), &self.checked.sources, subject)
    }

    /// The object of `subject`, with counters.
    ///
    /// # Errors
    /// Diagnostics of the compiler, rendered.
    pub fn built(&mut self, subject: Subject, how: Build) -> Result<Rc<Built>, String> {
        self.object(subject, how).map_err(|errors| self.render(&errors))
    }

    fn object(&mut self, subject: Subject, how: Build) -> Result<Rc<Built>, Vec<Diagnostic>> {
        if let Some((_, built)) = self.built.iter().find(|(key, _)| *key == (subject, how)) {
            return Ok(Rc::clone(built));
        }
        let options = Options { access: how.0, level: how.1, counters: Counters::On, ..Options::default() };
        let built = Rc::new(build(&self.checked, &[subject], &options)?);
        self.built.push(((subject, how), Rc::clone(&built)));
        Ok(built)
    }

    /// What `subject` needs that this version does not compile yet, so that `runner` cannot run it.
    pub fn refusal(&mut self, runner: Runner, subject: Subject) -> Option<String> {
        let (Runner::Vm(how) | Runner::Kernel(how)) = runner else { return None };
        not_yet(&self.object(subject, how).err()?)
    }

    /// A fresh engine that tells which rule decided.
    ///
    /// # Errors
    /// The machine lacks what it needs, or the compiler, the engine or the kernel refuses the program.
    pub fn engine(&mut self, runner: Runner, subject: Subject) -> Result<Box<dyn Engine>, NoEngine> {
        self.engine_reading(runner, subject, false)
    }

    /// A fresh engine whose [`Engine::counters`] are all entries of the object's map, named counters too. What it
    /// says of deciding rules means nothing.
    ///
    /// # Errors
    /// As [`Bench::engine`].
    pub fn counting_engine(&mut self, runner: Runner, subject: Subject) -> Result<Box<dyn Engine>, NoEngine> {
        self.engine_reading(runner, subject, true)
    }

    fn engine_reading(
        &mut self,
        runner: Runner,
        subject: Subject,
        all_entries: bool,
    ) -> Result<Box<dyn Engine>, NoEngine> {
        runner.probe().map_err(NoEngine::Missing)?;
        let how = match runner {
            Runner::Reference => {
                let subject = self.program().subject(subject);
                let reference = Reference::new(self.program(), &self.checked.sources, &subject);
                let named = self.program().counters.keys().collect();
                return Ok(if all_entries {
                    Box::new(CountingReference { reference, named })
                } else {
                    Box::new(reference)
                });
            }
            Runner::Vm(how) | Runner::Kernel(how) => how,
        };
        let built = self.built(subject, how).map_err(NoEngine::Failed)?;
        let (name, range) = program_of(&built).map_err(NoEngine::Failed)?;
        let mut counters = RuleCounters::of(&built, 0);
        if all_entries {
            let entries = range.first + range.count + built.metadata.counters.len() as u32;
            counters =
                Some(RuleCounters { map: range.map.clone(), first: 0, ends: vec![true; entries as usize] });
        }
        match runner {
            Runner::Reference | Runner::Vm(_) => {
                let vm =
                    Vm::load(&built.object, name).map_err(|error| NoEngine::Failed(error.to_string()))?;
                Ok(Box::new(vm.with_counters(counters)))
            }
            Runner::Kernel(_) => {
                let kernel = KernelEngine::new(&built.object, name, counters);
                Ok(Box::new(kernel.map_err(|error| NoEngine::Failed(rejection(&error)))?))
            }
        }
    }

    /// Runs `frame` on both engines; what they disagree in.
    ///
    /// A frame that one of them cannot take is not compared.
    ///
    /// # Errors
    /// The disagreement, or the fault of either.
    pub fn compare(
        &self,
        subject: Subject,
        reference: &mut dyn Engine,
        engine: &mut dyn Engine,
        frame: &[u8],
        env: &Env,
    ) -> Result<(), String> {
        let here = |what: String| format!("{what}\nframe ({} bytes): {}", frame.len(), hex(frame));
        let run = |engine: &mut dyn Engine| match engine.run(frame, env) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(EngineError::Unsupported(_)) => Ok(None),
            Err(EngineError::Fault(fault)) => Err(here(format!("{}: {fault}", engine.name()))),
        };
        // What the engine cannot take must not count in the reference.
        let Some(found) = run(engine)? else { return Ok(()) };
        let Some(expected) = run(reference)? else { return Ok(()) };
        if found == expected {
            return Ok(());
        }
        let rules = self.rules(subject);
        let (found, expected) = (describe(&found, &rules), describe(&expected, &rules));
        Err(here(format!("{} says {found}\nreference says {expected}", engine.name())))
    }
}

/// What this version does not compile yet, if there are no other errors.
#[must_use]
pub fn not_yet(errors: &[Diagnostic]) -> Option<String> {
    let is_refused = errors.iter().all(|error| error.code == codes::NOT_YET);
    errors.first().filter(|_| is_refused).map(|error| error.title.clone())
}

/// The reference, with named counters behind those of rules, as objects have them.
struct CountingReference {
    reference: Reference,
    named: Vec<CounterId>,
}

impl Engine for CountingReference {
    fn name(&self) -> &'static str {
        self.reference.name()
    }

    fn run(&mut self, packet: &[u8], env: &Env) -> Result<Outcome, EngineError> {
        self.reference.run(packet, env)
    }

    fn counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError> {
        let named = self.named.iter().map(|counter| self.reference.counter(*counter));
        let named: Vec<_> = named.collect();
        Ok(self.reference.counters()?.into_iter().chain(named).collect())
    }
}

/// The name of an object's only program, and where its rules count.
fn program_of(built: &Built) -> Result<(&str, &CounterRange), String> {
    let [program] = built.metadata.programs.as_slice() else {
        return Err(format!("the object has {} programs", built.metadata.programs.len()));
    };
    let range = program.counters.as_ref().ok_or("the object has no counters")?;
    Ok((&program.name, range))
}

/// The words of the loader, and all that the verifier said.
fn rejection(error: &LoadError) -> String {
    let log = if let LoadError::Verifier { log, .. } = error { log.full() } else { "" };
    format!("{error}\n{log}")
}

/// An outcome for people.
#[must_use]
pub fn describe(outcome: &Outcome, rules: &RuleTable) -> String {
    let name = |rule: &RuleId| rules.info(*rule).name.clone();
    let hits: Vec<_> = outcome.hits.iter().map(name).collect();
    format!("{} by {}, hits {}", outcome.verdict.word(), name(&outcome.rule), hits.join(" "))
}

/// Bytes in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a text in hexadecimal; spaces may stand anywhere.
///
/// # Errors
/// What is wrong with it.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        pair.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u8::from_str_radix(pair, 16).ok())?
    });
    pairs.collect::<Option<_>>().ok_or_else(|| format!("`{text}` is not whole bytes in hexadecimal"))
}

#[cfg(test)]
mod tests {
    use super::{from_hex, hex};

    #[test]
    fn hexadecimal_there_and_back() {
        assert_eq!(from_hex("00ff 1 0").unwrap(), [0, 255, 16]);
        assert_eq!(hex(&[0, 255, 16]), "00ff10");
        assert!(from_hex("00f").is_err());
        assert!(from_hex("+1").is_err());
        assert!(from_hex("é").is_err());
    }
}
