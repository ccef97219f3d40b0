//! `unload` as one transaction: programs leave an interface, and the others run on without a gap.

use std::io;
use std::os::fd::AsFd as _;

use crate::attach::{self, Attached, Change, apply_all, failed};
use crate::dispatcher::{Chain, Config, Dispatcher, Look, Pins, Slot, look};
use crate::error::{AttachError, LoadError};
use crate::install::{recovered, unchangeable};
use crate::load::Mode;
use crate::metadata::metadata_of;
use crate::netlink::Link;
use crate::sys::{self, IdKind, ProgramInfo};

/// Which programs to take away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// pktc's, by their metadata.
    Own,
    /// Those of this name, whoever's.
    Named(String),
    /// The one of this number, whoever's.
    Id(u32),
    /// All there are.
    All,
}

impl Which {
    fn covers(&self, program: &ProgramInfo) -> io::Result<bool> {
        Ok(match self {
            Which::Own => metadata_of(program)?.is_some(),
            Which::Named(name) => program.name == *name,
            Which::Id(id) => program.id == *id,
            Which::All => true,
        })
    }

    fn not_there(&self, interface: &str, there: Vec<Attached>) -> AttachError {
        let interface = interface.to_owned();
        let available = there.iter().map(ToString::to_string).collect();
        match (self, there.into_iter().next()) {
            (Which::Own, Some(other)) => AttachError::Foreign { interface, other },
            (Which::Named(name), _) => {
                AttachError::NotThere { interface, wanted: format!("program `{name}`"), available }
            }
            (Which::Id(id), _) => {
                AttachError::NotThere { interface, wanted: format!("program {id}"), available }
            }
            (Which::Own | Which::All, _) => AttachError::NothingAttached(interface),
        }
    }
}

/// Takes programs from an interface, and says which they were; the others run on.
///
/// # Errors
/// See [`AttachError`]; nothing is changed then.
pub fn remove(interface: &str, which: &Which) -> Result<Vec<Attached>, AttachError> {
    let system = |error: io::Error| failed(format!("taking programs from {interface}"), error.into());
    let pins = Pins::lock_existing().map_err(system)?;
    let link = recovered(interface, pins.as_ref())?;
    let Some((id, mode)) = attach::places(&link).next() else {
        return Err(AttachError::NothingAttached(interface.to_owned()));
    };
    let other = attach::attached_as(id, mode)?;
    let Some(attached_mode) = mode else {
        return Err(AttachError::Foreign { interface: interface.to_owned(), other });
    };
    let fd = sys::open_id(IdKind::Program, id).map_err(system)?;
    let change = |old| Change {
        link: link.clone(),
        mode: attached_mode,
        new: None,
        frags: false,
        old: Some(old),
        staged: None,
    };
    match (look(pins.as_ref(), link.index, id).map_err(system)?, &pins) {
        (Look::Dispatcher(found), Some(pins)) => remove_members(&link, attached_mode, found, which, pins),
        (Look::Single, _) => {
            let info = sys::program_info(fd.as_fd()).map_err(system)?;
            if !which.covers(&info).map_err(system)? {
                return Err(which.not_there(interface, vec![other]));
            }
            change(fd).apply()?;
            Ok(vec![other])
        }
        _ if *which == Which::All => {
            change(fd).apply()?;
            Ok(vec![other])
        }
        (unreadable, _) => Err(unchangeable(interface.to_owned(), &unreadable)),
    }
}

fn remove_members(
    link: &Link,
    mode: Mode,
    found: Dispatcher,
    which: &Which,
    pins: &Pins,
) -> Result<Vec<Attached>, AttachError> {
    let system = |error: io::Error| failed(format!("taking programs from {}", link.name), error.into());
    let (mut removed, mut kept) = (Vec::new(), Vec::new());
    for member in found.members {
        let attached = Attached { id: member.info.id, name: member.info.name.clone(), mode: Some(mode) };
        if which.covers(&member.info).map_err(system)? {
            removed.push(attached)
        } else {
            kept.push((member, attached))
        }
    }
    if removed.is_empty() {
        return Err(which.not_there(&link.name, kept.into_iter().map(|(_, attached)| attached).collect()));
    }
    let slots: Vec<Slot> = kept.iter().map(|(member, _)| member.slot).collect();
    let config = Config { version: found.version, slots };
    let chain = if kept.is_empty() { None } else { Some(load_chain(&config).map_err(system)?) };
    let mut members = Vec::new();
    for (place, (member, _)) in kept.iter().enumerate() {
        if let Some(chain) = &chain {
            members.push((member.fd.as_fd(), chain.link(place, member.fd.as_fd()).map_err(system)?));
        }
    }
    let ids = (link.index, chain.as_ref().map_or(0, |chain| chain.id), found.id);
    let staged = Some(pins.stage(ids, &members).map_err(system)?);
    let new = chain.as_ref().map(|chain| chain.fd.as_fd());
    let frags = config.frags();
    apply_all(vec![Change { link: link.clone(), mode, new, frags, old: Some(found.fd), staged }])?;
    Ok(removed)
}

fn load_chain(config: &Config) -> io::Result<Chain> {
    Chain::load(config, config.frags()).map_err(|error| match error {
        LoadError::System { error, .. } => error,
        other => io::Error::other(other.to_string()),
    })
}
