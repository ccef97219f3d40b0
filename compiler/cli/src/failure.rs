//! How a command ends.

use std::process::ExitCode;

use crate::console::Console;

/// How a command ended; the worst comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// All is well: 0.
    Done,
    /// The source has errors, or a test failed: 1.
    Failed,
    /// Wrong usage, or surroundings that do not allow it: 2.
    Unable,
}

impl Status {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// Why a command did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The source has errors, and they have been shown.
    Diagnosed,
    /// Wrong usage, or surroundings that do not allow it: a sentence that says what to do.
    Message(String),
}

impl Failure {
    /// A failure with a message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Failure::Message(message.into())
    }

    /// Shows what has not been shown yet.
    pub(crate) fn show(&self, console: &Console) -> Status {
        match self {
            Failure::Diagnosed => Status::Failed,
            Failure::Message(message) => {
                console.error(message);
                Status::Unable
            }
        }
    }
}

/// What every command returns.
pub(crate) type Outcome = Result<Status, Failure>;
