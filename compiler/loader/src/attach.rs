//! Putting a program on an interface and taking it away.
//!
//! Nothing is ever replaced: attaching takes an interface without a program, detaching takes away only what pktc's
//! metadata marks. Both are atomic in the kernel ("only if none is there"; "only if it is still this one").

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use crate::load::{LoadedProgram, Mode};
use crate::metadata::read_metadata;
use crate::netlink::{self, Link, NetlinkError};
use crate::privilege;
use crate::sys::{self, IdKind};

const FLAG_IF_NONE: u32 = 1;
const FLAG_SKB: u32 = 1 << 1;
const FLAG_NATIVE: u32 = 1 << 2;
/// With `IFLA_XDP_EXPECTED_FD` (5.7).
const FLAG_REPLACE: u32 = 1 << 4;

/// A program on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its number in the kernel.
    pub id: u32,
    /// Its name in the kernel.
    pub name: String,
    /// How it is attached; `None`: in the device itself.
    pub mode: Option<Mode>,
}

impl fmt::Display for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (id {})", self.name, self.id)
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
                 (`pktc unload --iface {interface}` if it is pktc's, else with the tool that put it there)"
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

pub(crate) fn failed(action: impl Into<String>, failure: NetlinkError) -> AttachError {
    match failure.error.raw_os_error() {
        Some(libc::EPERM) => AttachError::Privilege(privilege::missing()),
        _ => AttachError::System { action: action.into(), error: failure.error, message: failure.message },
    }
}

/// The interfaces of the calling thread's network namespace.
pub(crate) fn links() -> Result<Vec<Link>, AttachError> {
    netlink::links().map_err(|error| failed("listing interfaces", error))
}

/// Finds an interface of the calling thread's network namespace.
pub(crate) fn find(name: &str) -> Result<Link, AttachError> {
    let links = links()?;
    if let Some(link) = links.iter().find(|link| link.name == name) {
        return Ok(link.clone());
    }
    let available: Vec<String> = links.into_iter().map(|link| link.name).collect();
    let similar = available.iter().map(|other| (distance(name, other), other)).min();
    let near = similar.filter(|(distance, other)| *distance <= 2 && *distance < other.len());
    Err(AttachError::UnknownInterface {
        name: name.to_string(),
        similar: near.map(|(_, other)| other.clone()),
        available,
    })
}

/// How many characters have to be inserted, deleted or replaced to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Checks that an interface is there, before anything is loaded for it.
///
/// # Errors
/// [`AttachError::UnknownInterface`]; what the kernel says.
pub fn check_interface(name: &str) -> Result<(), AttachError> {
    find(name).map(drop)
}

/// The programs on an interface.
///
/// # Errors
/// [`AttachError::UnknownInterface`]; what the kernel says.
pub fn attached(interface: &str) -> Result<Vec<Attached>, AttachError> {
    programs_on(&find(interface)?)
}

/// The ids of the programs on an interface, and how each is attached.
pub(crate) fn places(link: &Link) -> impl Iterator<Item = (u32, Option<Mode>)> {
    let places = [(link.native, Some(Mode::Native)), (link.skb, Some(Mode::Skb)), (link.offloaded, None)];
    places.into_iter().filter(|&(id, _)| id != 0)
}

fn programs_on(link: &Link) -> Result<Vec<Attached>, AttachError> {
    let mut programs = Vec::new();
    for (id, mode) in places(link) {
        let info = sys::open_id(IdKind::Program, id).and_then(|fd| sys::program_info(fd.as_fd()));
        let info = info.map_err(|error| failed(format!("asking about program {id}"), error.into()))?;
        programs.push(Attached { id, name: info.name, mode });
    }
    Ok(programs)
}

fn flag(mode: Mode) -> u32 {
    match mode {
        Mode::Native => FLAG_NATIVE,
        Mode::Skb => FLAG_SKB,
    }
}

/// Puts a program on an interface that has none. It stays there after this process.
///
/// # Errors
/// See [`AttachError`]; nothing is changed then.
pub fn attach(interface: &str, program: &LoadedProgram, mode: Mode) -> Result<(), AttachError> {
    let link = find(interface)?;
    let fd = program.as_fd().as_raw_fd();
    let Err(failure) = netlink::set_xdp(link.index, fd, flag(mode) | FLAG_IF_NONE, None) else {
        return Ok(());
    };
    let busy = matches!(failure.error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST));
    if busy && let Some(other) = attached(interface)?.into_iter().next() {
        return Err(AttachError::Busy { interface: interface.to_string(), other });
    }
    let refused =
        matches!(failure.error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE));
    if mode == Mode::Native && refused {
        return Err(AttachError::NoNativeSupport {
            interface: interface.to_string(),
            driver: sys::driver(interface),
            reason: failure.message.unwrap_or_else(|| failure.error.to_string()),
            one_buffer: !program.frags && failure.error.raw_os_error() != Some(libc::EOPNOTSUPP),
        });
    }
    Err(failed(format!("attaching to {interface}"), failure))
}

/// Takes pktc's programs from an interface, and says which they were.
///
/// # Errors
/// See [`AttachError`]; if one of the programs is not pktc's, none is taken away.
pub fn detach(interface: &str) -> Result<Vec<Attached>, AttachError> {
    let link = find(interface)?;
    let programs = programs_on(&link)?;
    if programs.is_empty() {
        return Err(AttachError::NothingAttached(interface.to_string()));
    }
    for program in &programs {
        let metadata = read_metadata(program.id)
            .map_err(|error| failed(format!("reading the metadata of program {program}"), error.into()))?;
        if program.mode.is_none() || metadata.is_none() {
            return Err(AttachError::Foreign { interface: interface.to_string(), other: program.clone() });
        }
    }
    for program in &programs {
        let action = || format!("detaching program {program} from {interface}");
        let fd = sys::open_id(IdKind::Program, program.id).map_err(|error| failed(action(), error.into()))?;
        let flags = program.mode.map_or(0, flag) | FLAG_REPLACE;
        let result = netlink::set_xdp(link.index, -1, flags, Some(fd.as_raw_fd()));
        result.map_err(|error| failed(action(), error))?;
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("eth0", "eth0"), 0);
        assert_eq!(distance("eht0", "eth0"), 2);
        assert_eq!(distance("eth", "eth0"), 1);
        assert_eq!(distance("", "lo"), 2);
    }

    #[test]
    fn a_wrong_name_gets_a_suggestion_or_the_list() {
        let error = find("l").unwrap_err();
        assert!(error.to_string().contains("did you mean `lo`?"), "{error}");
        let error = find("nothing-like-it").unwrap_err();
        assert!(error.to_string().contains("there are lo"), "{error}");
    }
}
