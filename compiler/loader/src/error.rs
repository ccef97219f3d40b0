//! Why loading or attaching failed, and what to do about it.

use std::fmt;
use std::io;

use crate::image::ObjectError;
use crate::privilege::advice;
use crate::verifier::VerifierLog;

/// Why an object was not loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The object itself.
    Object(ObjectError),
    /// It has no program of that name; the ones it has.
    NoSuchProgram {
        /// The name asked for.
        name: String,
        /// The names that there are.
        available: Vec<String>,
    },
    /// The kernel does not permit it.
    Privilege {
        /// What was tried.
        action: String,
        /// Capabilities that the process lacks; empty: none.
        missing: Vec<&'static str>,
    },
    /// The kernel lacks something.
    TooOld {
        /// What, and since which version kernels have it.
        what: String,
        /// What to do instead.
        instead: String,
    },
    /// The verifier refuses a program.
    Verifier {
        /// Its name.
        program: String,
        /// What the verifier said.
        log: VerifierLog,
        /// Capabilities that the process lacks, which the verifier is stricter without.
        missing: Vec<&'static str>,
    },
    /// Anything else.
    System {
        /// What was tried.
        action: String,
        /// What the kernel said.
        error: io::Error,
    },
}

impl LoadError {
    /// Sorts a failed system call.
    pub(crate) fn system(action: impl Into<String>, error: io::Error) -> Self {
        let action = action.into();
        match error.raw_os_error() {
            Some(libc::EPERM) => LoadError::Privilege { action, missing: crate::privilege::missing() },
            Some(libc::ENOSYS) => LoadError::TooOld {
                what: "this kernel has no BPF".into(),
                instead: "use the userspace engine, or another kernel".into(),
            },
            _ => LoadError::System { action, error },
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Object(error) => error.fmt(f),
            LoadError::NoSuchProgram { name, available } => {
                write!(f, "the object has no program `{name}`; it has {}", available.join(", "))
            }
            LoadError::Privilege { action, missing } => {
                write!(f, "{action}: operation not permitted; {}", advice(missing))
            }
            LoadError::TooOld { what, instead } => write!(f, "{what}; {instead}"),
            LoadError::Verifier { program, log, missing } => {
                write!(f, "the kernel's verifier refuses program `{program}`: {log}")?;
                if !missing.is_empty() {
                    write!(
                        f,
                        "\n  the verifier is stricter for processes that lack capabilities; {}",
                        advice(missing)
                    )?;
                }
                Ok(())
            }
            LoadError::System { action, error } => write!(f, "{action}: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<ObjectError> for LoadError {
    fn from(error: ObjectError) -> Self {
        LoadError::Object(error)
    }
}
