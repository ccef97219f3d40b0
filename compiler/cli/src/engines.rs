//! The engines by their names on the command line, and how a program comes into one.

use pktc_diagnostics::Diagnostic;
use pktc_driver::{Built, Options, Subject};
use pktc_semantics::rules::RuleTable;
use pktc_testing::engine::Engine;
use pktc_testing::hits::RuleCounters;
use pktc_testing::kernel::KernelEngine;
use pktc_testing::linear::{Split, Sweep};
use pktc_testing::reference::Reference;
use pktc_testing::runner::NoEngine;
use pktc_testing::vm::Vm;

use crate::console::Console;
use crate::failure::Failure;
use crate::source::Source;

/// What runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineKind {
    /// The evaluator over the typed program.
    Reference,
    /// The emitted object, in the userspace engine.
    Vm,
    /// The emitted object, in the kernel.
    Kernel,
}

impl EngineKind {
    /// All engines, the one that decides in doubt first.
    pub(crate) const ALL: [EngineKind; 3] = [EngineKind::Reference, EngineKind::Vm, EngineKind::Kernel];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            EngineKind::Reference => "reference",
            EngineKind::Vm => "vm",
            EngineKind::Kernel => "kernel",
        }
    }
}

/// How much of a packet lies in its linear part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linear {
    /// All.
    Whole,
    /// At most so many bytes.
    Bytes(usize),
    /// Each length from 0 to the headers' end, one after the other.
    Sweep,
}

impl Linear {
    /// As it is written on the command line.
    ///
    /// # Errors
    /// What is expected.
    pub(crate) fn parse(text: &str) -> Result<Linear, String> {
        match text {
            "sweep" => Ok(Linear::Sweep),
            bytes => {
                bytes.parse().map(Linear::Bytes).map_err(|_| "give a number of bytes, or `sweep`".into())
            }
        }
    }
}

/// Which engine, how its packets lie in memory, and how what it runs is built.
pub(crate) struct Setting {
    pub(crate) kind: EngineKind,
    pub(crate) linear: Linear,
    pub(crate) options: Options,
}

/// Why a program does not come into an engine.
pub(crate) enum Unavailable {
    /// It cannot be built.
    Refused(Vec<Diagnostic>),
    /// The engine does not run here.
    Missing(String),
    /// The engine does not take what was built.
    Failed(String),
}

/// A fresh engine with a program, or with a program that applies a chain. It tells which rule decided if `options` have
/// rules count.
///
/// # Errors
/// See [`Unavailable`].
pub(crate) fn start(
    setting: &Setting,
    source: &Source,
    subject: Subject,
) -> Result<Box<dyn Engine>, Unavailable> {
    let engine = plain(setting, source, subject)?;
    Ok(match setting.linear {
        Linear::Whole => engine,
        Linear::Bytes(bytes) => Box::new(Split::new(engine, bytes)),
        Linear::Sweep => {
            let program = source.program();
            let rules = RuleTable::of(program, &source.checked.sources, subject);
            Box::new(Sweep::new(engine, plain(setting, source, subject)?, program, rules))
        }
    })
}

/// An engine that takes packets as they are.
fn plain(setting: &Setting, source: &Source, subject: Subject) -> Result<Box<dyn Engine>, Unavailable> {
    let built = || build(source, subject, &setting.options);
    match setting.kind {
        EngineKind::Reference => Ok(reference(source, subject)),
        EngineKind::Vm => vm(&built()?),
        EngineKind::Kernel => {
            pktc_loader::probe().map_err(Unavailable::Missing)?;
            kernel(&built()?)
        }
    }
}

impl Unavailable {
    /// As the end of a command; shows what diagnostics there are.
    pub(crate) fn fail(self, source: &Source, console: &Console) -> Failure {
        match self {
            Unavailable::Refused(diagnostics) => source.refused(&diagnostics, console),
            Unavailable::Missing(reason) => {
                Failure::new(format!("the kernel engine cannot run here: {reason}; take `--engine vm`"))
            }
            Unavailable::Failed(reason) => Failure::new(reason),
        }
    }
}

impl From<Unavailable> for NoEngine {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable {
            Unavailable::Refused(diagnostics) => {
                let titles: Vec<_> = diagnostics.into_iter().map(|diagnostic| diagnostic.title).collect();
                NoEngine::Failed(titles.join("; "))
            }
            Unavailable::Missing(reason) => NoEngine::Missing(reason),
            Unavailable::Failed(reason) => NoEngine::Failed(reason),
        }
    }
}

fn reference(source: &Source, subject: Subject) -> Box<dyn Engine> {
    let program = source.program();
    Box::new(Reference::new(program, &source.checked.sources, &program.subject(subject)))
}

fn build(source: &Source, subject: Subject, options: &Options) -> Result<Built, Unavailable> {
    pktc_driver::build(&source.checked, &[subject], options).map_err(Unavailable::Refused)
}

/// The name of the one program that was built.
fn only(built: &Built) -> Result<&str, Unavailable> {
    match &built.metadata.programs[..] {
        [only] => Ok(&only.name),
        _ => Err(Unavailable::Failed("the object has not just the program that was asked for".to_owned())),
    }
}

fn vm(built: &Built) -> Result<Box<dyn Engine>, Unavailable> {
    let vm = Vm::load(&built.object, only(built)?).map_err(|error| Unavailable::Failed(error.to_string()))?;
    Ok(Box::new(vm.with_counters(RuleCounters::of(built, 0))))
}

fn kernel(built: &Built) -> Result<Box<dyn Engine>, Unavailable> {
    let engine = KernelEngine::new(&built.object, only(built)?, RuleCounters::of(built, 0));
    Ok(Box::new(engine.map_err(|error| Unavailable::Failed(error.to_string()))?))
}
