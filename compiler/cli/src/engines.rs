//! The engines by their names on the command line.

use pktc_driver::Subject;
use pktc_driver::options::{Counters, Options};
use pktc_semantics::typed::XdpId;
use pktc_testing::engine::{Engine, EngineError};
use pktc_testing::reference::Reference;

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

/// An engine with the program in it.
///
/// # Errors
/// The program cannot be built (shown), or the engine cannot run it here (a message).
pub(crate) fn start(
    kind: EngineKind,
    source: &Source,
    program: XdpId,
    console: &Console,
) -> Result<Box<dyn Engine>, Failure> {
    let xdp = &source.program().xdps[program];
    match kind {
        EngineKind::Reference => Ok(Box::new(Reference::new(source.program(), &source.checked.sources, xdp))),
        EngineKind::Vm | EngineKind::Kernel => {
            let _ = (console, Subject::Xdp(program), Counters::On, Options::default());
            Err(Failure::new("this engine does not exist yet; take `--engine reference`"))
        }
    }
}

/// The message about an engine that gave no verdict.
pub(crate) fn failure(error: &EngineError) -> Failure {
    match error {
        EngineError::Unsupported(reason) => Failure::new(reason.as_str()),
        EngineError::Fault(what) => Failure::new(format!(
            "the compiled program went wrong, which is a bug of pktc; please report it: {what}"
        )),
    }
}
