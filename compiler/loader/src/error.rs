//! Why loading or attaching failed, and what to do about it.

use std::fmt;
use std::io;

use crate::attach::Attached;
use crate::image::ObjectError;
use crate::load::Mode;
use crate::privilege::{self, advice};
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
    /// It has several programs, and one is wanted; their names.
    SeveralPrograms(Vec<String>),
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
            LoadError::SeveralPrograms(names) => {
                write!(
                    f,
                    "the object has several programs; choose with `--program NAME`: {}",
                    names.join(", ")
                )
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

/// Why a program was not attached or detached.
#[derive(Debug)]
pub enum AttachError {
    /// There is no such interface.
    UnknownInterface {
        /// The name asked for.
        name: String,
        /// The one that was probably meant.
        similar: Option<String>,
        /// All that there are.
        available: Vec<String>,
    },
    /// There is a program already.
    Busy {
        /// Where.
        interface: String,
        /// What is there.
        other: Attached,
    },
    /// The driver takes no programs.
    NoNativeSupport {
        /// Where.
        interface: String,
        /// The driver's name, if it has one.
        driver: Option<String>,
        /// The kernel's own words, or those of the error.
        reason: String,
        /// Whether it may be because the program takes packets in one buffer only.
        one_buffer: bool,
    },
    /// The programs there are not pktc's.
    Foreign {
        /// Where.
        interface: String,
        /// What is there.
        other: Attached,
    },
    /// There is no program.
    NothingAttached(String),
    /// None of the programs there is the one that is meant.
    NotThere {
        /// Where.
        interface: String,
        /// What is meant.
        wanted: String,
        /// What is there.
        available: Vec<String>,
    },
    /// The programs there are attached in another way.
    OtherMode {
        /// Where.
        interface: String,
        /// What is there.
        other: Attached,
    },
    /// The dispatcher calls as many programs as it can.
    Full {
        /// Where.
        interface: String,
        /// The programs.
        programs: Vec<String>,
    },
    /// A dispatcher that cannot be changed; why.
    Dispatcher {
        /// Where.
        interface: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The kernel does not permit it; capabilities that the process lacks.
    Privilege(Vec<&'static str>),
    /// Anything else.
    System {
        /// What was tried.
        action: String,
        /// What the kernel said.
        error: io::Error,
        /// The kernel's own words, if it has any.
        message: Option<String>,
    },
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::UnknownInterface { name, similar: Some(similar), .. } => {
                write!(f, "there is no interface `{name}`; did you mean `{similar}`?")
            }
            AttachError::UnknownInterface { name, available, .. } => {
                write!(f, "there is no interface `{name}`; there are {}", available.join(", "))
            }
            AttachError::Busy { interface, other } => write!(
                f,
                "program {other} is on {interface} already; nothing was changed. Take it away first \
                 (`pktc unload --iface {interface}` if it is pktc's, else with the tool that put it there), or make one of \
                 both (`pktc link`)"
            ),
            AttachError::NoNativeSupport { interface, driver, reason, one_buffer } => {
                let driver =
                    driver.as_ref().map_or("its driver".into(), |name| format!("its driver `{name}`"));
                let fix = if *one_buffer {
                    "build it with `--access auto`, which takes frames of any length, lower the MTU, or "
                } else {
                    ""
                };
                write!(
                    f,
                    "{interface}: {driver} does not take the program ({reason}); {fix}try `--mode skb`, which is slower"
                )
            }
            AttachError::Foreign { interface, other } => write!(
                f,
                "program {other} on {interface} is not one of pktc's; take it away with the tool that put it there \
                 (`ip link set dev {interface} {} off` always can)",
                ip_keyword(other.mode)
            ),
            AttachError::NotThere { interface, wanted, available } => {
                write!(f, "there is no {wanted} on {interface}; there are {}", available.join(", "))
            }
            AttachError::OtherMode { interface, other } => {
                let mode = match other.mode {
                    Some(Mode::Native) => "`--mode native`",
                    Some(Mode::Skb) => "`--mode skb`",
                    None => "the device itself",
                };
                write!(
                    f,
                    "program {other} is on {interface} by {mode}, and an interface has one mode at a time; nothing was \
                     changed. Load it the same way, or take the other away first"
                )
            }
            AttachError::Full { interface, programs } => write!(
                f,
                "the dispatcher on {interface} calls {} programs already, and cannot call more: {}; nothing was changed. \
                 Take one away (`pktc unload --iface {interface} --program NAME`), or link several into one (`pktc link`)",
                programs.len(),
                programs.join(", ")
            ),
            AttachError::Dispatcher { interface, reason } => {
                write!(f, "the dispatcher on {interface} cannot be changed: {reason}; nothing was changed")
            }
            AttachError::NothingAttached(interface) => write!(f, "there is no program on {interface}"),
            AttachError::Privilege(missing) => {
                write!(
                    f,
                    "changing an interface's program: operation not permitted; {}",
                    privilege::advice(missing)
                )
            }
            AttachError::System { action, error, message } => match message {
                Some(message) => write!(f, "{action}: {message} ({error})"),
                None => write!(f, "{action}: {error}"),
            },
        }
    }
}

impl std::error::Error for AttachError {}

fn ip_keyword(mode: Option<Mode>) -> &'static str {
    match mode {
        Some(Mode::Native) => "xdpdrv",
        Some(Mode::Skb) => "xdpgeneric",
        None => "xdpoffload",
    }
}

/// Why nothing was installed.
#[derive(Debug)]
pub enum InstallError {
    /// The object was not loaded.
    Load(LoadError),
    /// It was not attached.
    Attach(AttachError),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallError::Load(error) => error.fmt(f),
            InstallError::Attach(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InstallError {}

impl From<LoadError> for InstallError {
    fn from(error: LoadError) -> Self {
        InstallError::Load(error)
    }
}

impl From<AttachError> for InstallError {
    fn from(error: AttachError) -> Self {
        InstallError::Attach(error)
    }
}
