//! Several programs on one interface, by the protocol of libxdp: a small program, the dispatcher, is on the
//! interface; each program takes the place of one of its functions (`BPF_PROG_TYPE_EXT`) and is called in turn until
//! a verdict does not lead on to the next.
//!
//! What libxdp and pktc agree on is the dispatcher's name, its one map ([`config`]), the pins of its programs
//! ([`pins`]), the lock, and attaching by routing netlink. Whoever changes the chain loads a new dispatcher with all
//! programs in it and puts it in place of the old one in one step, so either may have made it.

mod chain;
mod config;
mod pins;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

pub(crate) use chain::{Chain, extensions_work};
use config::Found;
pub(crate) use config::{Config, MAX_PROGRAMS};
pub use config::{DEFAULT_CHAIN, DEFAULT_PRIORITY, Slot, Version};
pub(crate) use pins::{Pins, Staged};

use crate::sys::{self, IdKind, MapHandle, ProgramInfo};

/// Its name, by which it is recognised.
const NAME: &str = "xdp_dispatcher";
/// `BPF_MAP_TYPE_ARRAY`
const ARRAY: u32 = 2;
/// `BPF_F_RDONLY_PROG`
const READ_ONLY: u32 = 1 << 7;

/// A program of a dispatcher.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) fd: OwnedFd,
    pub(crate) info: ProgramInfo,
    pub(crate) slot: Slot,
}

/// A dispatcher on an interface.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    pub(crate) id: u32,
    pub(crate) fd: OwnedFd,
    pub(crate) version: Version,
    pub(crate) frags: bool,
    /// In the order in which they run.
    pub(crate) members: Vec<Member>,
}

/// What a program on an interface is.
#[derive(Debug)]
pub(crate) enum Look {
    /// A dispatcher with its programs.
    Dispatcher(Dispatcher),
    /// A dispatcher of another version.
    Unknown(u8),
    /// A dispatcher whose programs' pins cannot be read.
    Unpinned(Version, io::Error),
    /// Any other program.
    Single,
}

/// Finds out what program `id` on the interface with that index is.
///
/// # Errors
/// What the kernel says.
pub(crate) fn look(pins: Option<&Pins>, interface: u32, id: u32) -> io::Result<Look> {
    let fd = sys::open_id(IdKind::Program, id)?;
    let config = match configuration(&sys::program_info(fd.as_fd())?)? {
        Found::Foreign => return Ok(Look::Single),
        Found::Unknown(version) => return Ok(Look::Unknown(version)),
        Found::Known(config) => config,
    };
    let Some(pins) = pins else {
        let message = "the directory of pins is not there, or not for this process";
        return Ok(Look::Unpinned(config.version, io::Error::other(message)));
    };
    let (version, frags) = (config.version, config.frags());
    let members = config.slots.into_iter().enumerate().map(|(place, slot)| {
        let fd = pins.program(interface, id, place)?;
        Ok(Member { info: sys::program_info(fd.as_fd())?, fd, slot })
    });
    Ok(match members.collect::<io::Result<_>>() {
        Ok(members) => Look::Dispatcher(Dispatcher { id, fd, version, frags, members }),
        Err(error) => Look::Unpinned(version, error),
    })
}

/// What the program's map says, if it is a dispatcher's.
fn configuration(program: &ProgramInfo) -> io::Result<Found> {
    let &[map] = &program.map_ids[..] else { return Ok(Found::Foreign) };
    if program.name != NAME || program.btf_id == 0 {
        return Ok(Found::Foreign);
    }
    let map = MapHandle::new(sys::open_id(IdKind::Map, map)?)?;
    let info = map.info();
    if (info.kind, info.key_size, info.max_entries) != (ARRAY, 4, 1) || info.flags & READ_ONLY == 0 {
        return Ok(Found::Foreign);
    }
    Ok(Config::decode(&map.lookup(&0u32.to_ne_bytes())?.unwrap_or_default()))
}
