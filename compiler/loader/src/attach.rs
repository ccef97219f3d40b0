//! Putting a program on an interface and taking it away.
//!
//! A [`Change`] is one step in the kernel: "only if none is there", or "only if it is still this one".

use std::fmt;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use crate::dispatcher::Staged;
use crate::error::AttachError;
use crate::load::{LoadedProgram, Mode};
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
    places(link).map(|(id, mode)| attached_as(id, mode)).collect()
}

/// What is known of the program with that id.
pub(crate) fn attached_as(id: u32, mode: Option<Mode>) -> Result<Attached, AttachError> {
    let info = sys::open_id(IdKind::Program, id).and_then(|fd| sys::program_info(fd.as_fd()));
    let info = info.map_err(|error| failed(format!("asking about program {id}"), error.into()))?;
    Ok(Attached { id, name: info.name, mode })
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
    let new = Some(program.as_fd());
    let change = Change { link: find(interface)?, mode, new, frags: program.frags, old: None, staged: None };
    change.apply()
}

/// A change of what an interface runs.
pub(crate) struct Change<'a> {
    pub(crate) link: Link,
    pub(crate) mode: Mode,
    /// What is to be there; `None`: nothing.
    pub(crate) new: Option<BorrowedFd<'a>>,
    /// Whether that takes packets in several buffers.
    pub(crate) frags: bool,
    /// What must be there before; `None`: nothing.
    pub(crate) old: Option<OwnedFd>,
    /// The pins of the dispatcher that is to be there.
    pub(crate) staged: Option<Staged<'a>>,
}

impl Change<'_> {
    /// Makes the change in one step.
    pub(crate) fn apply(&self) -> Result<(), AttachError> {
        let old = self.old.as_ref().map(|fd| fd.as_raw_fd());
        let new = self.new.map_or(-1, |fd| fd.as_raw_fd());
        let condition = if old.is_some() { FLAG_REPLACE } else { FLAG_IF_NONE };
        let result = netlink::set_xdp(self.link.index, new, flag(self.mode) | condition, old);
        result.map_err(|failure| self.explain(failure))
    }

    /// Takes it back, if nobody else has changed it since.
    pub(crate) fn revert(&self) -> Result<(), AttachError> {
        let old = self.old.as_ref().map_or(-1, |fd| fd.as_raw_fd());
        let new = self.new.map(|fd| fd.as_raw_fd());
        let condition = if new.is_some() { FLAG_REPLACE } else { FLAG_IF_NONE };
        let result = netlink::set_xdp(self.link.index, old, flag(self.mode) | condition, new);
        result.map_err(|failure| failed(format!("putting back what was on {}", self.link.name), failure))
    }

    fn explain(&self, failure: NetlinkError) -> AttachError {
        let (code, interface) = (failure.error.raw_os_error(), &self.link.name);
        let busy = matches!(code, Some(libc::EBUSY | libc::EEXIST));
        let other = || attached(interface).ok()?.into_iter().next();
        if busy
            && self.old.is_none()
            && let Some(other) = other()
        {
            return AttachError::Busy { interface: interface.clone(), other };
        }
        if code == Some(libc::EBUSY) {
            let action = format!(
                "changing what {interface} runs, which a bpf_link holds: end the program or remove the pin that has it"
            );
            return failed(action, failure);
        }
        let refused = matches!(code, Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE));
        if self.mode == Mode::Native && self.new.is_some() && refused {
            return AttachError::NoNativeSupport {
                interface: interface.clone(),
                driver: sys::driver(interface),
                reason: failure.message.unwrap_or_else(|| failure.error.to_string()),
                one_buffer: !self.frags && code != Some(libc::EOPNOTSUPP),
            };
        }
        failed(format!("changing what {interface} runs"), failure)
    }
}

/// Removes the pins of changes that are not made.
pub(crate) fn discard_all(changes: Vec<Change<'_>>) {
    changes.into_iter().filter_map(|change| change.staged).for_each(Staged::discard);
}

/// Makes all changes, or none: at the first that fails, those before it are taken back.
pub(crate) fn apply_all(changes: Vec<Change<'_>>) -> Result<(), AttachError> {
    for (done, change) in changes.iter().enumerate() {
        let Err(error) = change.apply() else { continue };
        for change in changes[..done].iter().rev() {
            change.revert()?;
        }
        discard_all(changes);
        return Err(error);
    }
    for change in changes {
        if let Some(staged) = change.staged {
            let action = format!("naming the pins of the dispatcher on {}", change.link.name);
            staged.complete().map_err(|error| failed(action, error.into()))?;
        }
    }
    Ok(())
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
