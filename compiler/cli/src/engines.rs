//! The engines by their names on the command line, and how a program comes into one.

use pktc_diagnostics::Diagnostic;
use pktc_driver::{Built, CounterRange, Options, Subject};
use pktc_semantics::typed::TestTarget;
use pktc_testing::engine::Engine;
use pktc_testing::kernel::KernelEngine;
use pktc_testing::reference::{Reference, apply_chain};
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
    kind: EngineKind,
    source: &Source,
    target: TestTarget,
    options: &Options,
) -> Result<Box<dyn Engine>, Unavailable> {
    match kind {
        EngineKind::Reference => Ok(reference(source, target)),
        EngineKind::Vm => vm(&build(source, target, options)?),
        EngineKind::Kernel => {
            pktc_loader::probe().map_err(Unavailable::Missing)?;
            kernel(&build(source, target, options)?)
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

fn reference(source: &Source, target: TestTarget) -> Box<dyn Engine> {
    let program = source.program();
    let sources = &source.checked.sources;
    Box::new(match target {
        TestTarget::Xdp(xdp) => Reference::new(program, sources, &program.xdps[xdp]),
        TestTarget::Chain(chain) => Reference::new(program, sources, &apply_chain(program, chain)),
    })
}

fn build(source: &Source, target: TestTarget, options: &Options) -> Result<Built, Unavailable> {
    let subject = match target {
        TestTarget::Xdp(xdp) => Subject::Xdp(xdp),
        TestTarget::Chain(chain) => Subject::Chain(chain),
    };
    pktc_driver::build(&source.checked, &[subject], options).map_err(Unavailable::Refused)
}

/// The one program that was built: its name in the object, and where its rules count.
fn only(built: &Built) -> Result<(&str, Option<&CounterRange>), Unavailable> {
    match &built.metadata.programs[..] {
        [only] => Ok((&only.name, only.counters.as_ref())),
        _ => Err(Unavailable::Failed("the object has not just the program that was asked for".to_owned())),
    }
}

fn vm(built: &Built) -> Result<Box<dyn Engine>, Unavailable> {
    let (name, counters) = only(built)?;
    let vm = Vm::load(&built.object, name).map_err(|error| Unavailable::Failed(error.to_string()))?;
    Ok(match counters {
        Some(range) => Box::new(vm.with_counters(&range.map, range.first, range.count)),
        None => Box::new(vm),
    })
}

fn kernel(built: &Built) -> Result<Box<dyn Engine>, Unavailable> {
    let (name, counters) = only(built)?;
    let counters = counters.map(|range| (range.map.clone(), range.first, range.count));
    let engine = KernelEngine::new(&built.object, name, counters);
    Ok(Box::new(engine.map_err(|error| Unavailable::Failed(error.to_string()))?))
}
