//! `load` as one transaction: what is on interfaces changes at once, or not at all.
//!
//! ```text
//! object ─ plan (an interface: alone, or in a dispatcher; new, or in place of an older version)
//!        ─ load ─ stage pins ─ change each interface in one step ─ name pins, carry counts
//! ```
//!
//! Until the step on an interface what was there runs on; a process that ends before it leaves at most pins, which
//! the next command removes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use pktc_object::Metadata;

use crate::attach::{self, Change, apply_all, discard_all, failed};
use crate::carry::{Carried, Old};
use crate::dispatcher::{
    Chain, Config, Dispatcher, Look, MAX_PROGRAMS, Member, Pins, Slot, Version, extensions_work, look,
};
use crate::error::{AttachError, InstallError, LoadError};
use crate::image::Image;
use crate::link::Program;
use crate::load::{LoadOptions, LoadedProgram, Mode, Prepared, clears_frags, select};
use crate::metadata::metadata_of;
use crate::netlink::Link;
use crate::privilege;
use crate::sys::{self, IdKind, ProgramInfo, Role};

/// What to install, and how.
#[derive(Clone, Debug, Default)]
pub struct InstallOptions {
    /// The program; `None`: the only one.
    pub program: Option<String>,
    /// How it is attached.
    pub mode: Mode,
    /// Alone on the interface, without a dispatcher.
    pub direct: bool,
    /// The version of a dispatcher where there is none yet; `None`: the installed libxdp's.
    pub version: Option<Version>,
    /// In place of what the object says.
    pub priority: Option<u32>,
    /// In place of what the object says: bit n for `XDP_` action n.
    pub chain_on: Option<u32>,
}

/// An installed program.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// What became of each interface.
    pub places: Vec<Placed>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// A program on an interface.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The interface.
    pub interface: String,
    /// The program's number in the kernel.
    pub id: u32,
    /// The older version that it took the place of, by its number.
    pub replaced: Option<u32>,
    /// In a dispatcher: which program in turn it is, from 1, and of how many.
    pub turn: Option<(usize, usize)>,
}

/// Puts a program of `object` on all interfaces, in place of an older version of it where one runs.
///
/// # Errors
/// See [`InstallError`]; nothing is changed then.
pub fn install(
    object: &[u8],
    interfaces: &[String],
    options: &InstallOptions,
) -> Result<Installed, InstallError> {
    let image = Image::parse(object).map_err(LoadError::from)?;
    let metadata = pktc_object::read_metadata(object).ok();
    let [program] = select(&image, options.program.as_deref())?[..] else {
        let names = image.programs.iter().map(|program| program.name.clone()).collect();
        return Err(LoadError::SeveralPrograms(names).into());
    };
    check_privileges(&program.name)?;
    let installation = Installation { image: &image, metadata: metadata.as_ref(), program, options };
    match installation.run(interfaces, false) {
        // The driver may take no packets in several buffers; it has none, then.
        Err(InstallError::Attach(error @ AttachError::NoNativeSupport { .. })) if program.frags => {
            installation.run(interfaces, true).map_err(|_| error.into())
        }
        result => result,
    }
}

/// Before anything is made: of a missing capability the kernel says little, and of one the verifier says something else.
fn check_privileges(program: &str) -> Result<(), LoadError> {
    let missing = privilege::missing();
    if missing.is_empty() {
        return Ok(());
    }
    Err(LoadError::Privilege { action: format!("loading program `{program}`"), missing })
}

/// What becomes of an interface.
enum Plan {
    /// The program is alone there.
    Alone { old: Option<OwnedFd> },
    /// It is one of a dispatcher's.
    Shared { old: Option<OwnedFd>, old_id: u32, version: Version, members: Vec<Member> },
}

struct Planned {
    link: Link,
    plan: Plan,
    /// The older version.
    replaces: Option<u32>,
}

struct Installation<'a> {
    image: &'a Image,
    metadata: Option<&'a Metadata>,
    program: &'a Program,
    options: &'a InstallOptions,
}

/// A dispatcher with all programs in their places, and where the new one is.
struct Built {
    chain: Chain,
    /// Its members without the new one.
    members: Vec<Member>,
    turn: usize,
    frags: bool,
}

impl Installation<'_> {
    fn run(&self, interfaces: &[String], without_frags: bool) -> Result<Installed, InstallError> {
        let mut notes = Vec::new();
        let pins = self.pins(&mut notes)?;
        let mut planned = Vec::new();
        for (n, name) in interfaces.iter().enumerate() {
            if !interfaces[..n].contains(name) {
                planned.push(self.plan(name, pins.as_ref(), &mut notes)?);
            }
        }
        let mut older = older(&planned)?;
        let shared = match (older.first_mut(), self.metadata) {
            (Some(old), Some(new)) => old.shared(new, self.image, &self.program.name),
            _ => BTreeMap::new(),
        };
        let prepared = Prepared::new(self.image, shared, &mut notes)?;
        let options = LoadOptions {
            program: None,
            mode: self.options.mode,
            interface: interfaces.first().cloned(),
            without_frags,
        };
        let frags = self.program.frags && !clears_frags(&options, &self.program.name, &mut notes);
        let mut ready = Ready {
            installation: self,
            prepared: &prepared,
            frags,
            alone: None,
            built: Vec::new(),
            extension: None,
        };
        for planned in &mut planned {
            ready.load(planned, &mut notes)?;
        }
        let carried = self.copy(older, &prepared)?;
        let places = ready.apply(planned, pins.as_ref())?;
        let finished = carried.into_iter().map(|carried| carried.finish(&prepared.maps));
        if let Err(error) = finished.collect::<io::Result<()>>() {
            notes.push(format!("the last counts of the older version were not taken over ({error})"));
        }
        Ok(Installed { name: self.program.name.clone(), places, notes })
    }

    /// The lock on dispatchers, if there are or may be any.
    fn pins(&self, notes: &mut Vec<String>) -> Result<Option<Pins>, AttachError> {
        let locking = |error: io::Error| failed("locking the pins of dispatchers", error.into());
        if !self.options.direct {
            Pins::check_owner().map_err(locking)?;
            match Pins::lock() {
                Ok(pins) => return Ok(Some(pins)),
                Err(error) => notes.push(format!("programs cannot share the interface ({error})")),
            }
        }
        Pins::lock_existing().map_err(locking)
    }

    fn plan(&self, name: &str, pins: Option<&Pins>, notes: &mut Vec<String>) -> Result<Planned, AttachError> {
        let link = recovered(name, pins)?;
        let Some((id, mode)) = attach::places(&link).next() else {
            let plan = self.plan_new(pins, notes);
            return Ok(Planned { link, plan, replaces: None });
        };
        let failed = |error: io::Error| failed(format!("asking about program {id} on {name}"), error.into());
        let other = attach::attached_as(id, mode)?;
        let look = look(pins, link.index, id).map_err(failed)?;
        let interface = name.to_owned();
        if mode != Some(self.options.mode) {
            return Err(AttachError::OtherMode { interface, other });
        }
        let busy = Err(AttachError::Busy { interface: interface.clone(), other });
        match look {
            Look::Single => {
                let fd = sys::open_id(IdKind::Program, id).map_err(failed)?;
                let info = sys::program_info(fd.as_fd()).map_err(failed)?;
                if !self.is_older(&info).map_err(failed)? {
                    return busy;
                }
                Ok(Planned { link, plan: Plan::Alone { old: Some(fd) }, replaces: Some(id) })
            }
            Look::Dispatcher(_) if self.options.direct => busy,
            Look::Dispatcher(found) => self.plan_shared(link, found),
            unreadable => Err(unchangeable(interface, &unreadable)),
        }
    }

    /// For an interface without a program.
    fn plan_new(&self, pins: Option<&Pins>, notes: &mut Vec<String>) -> Plan {
        if pins.is_none() || self.options.direct {
            return Plan::Alone { old: None };
        }
        if let Err(error) = extensions_work() {
            let note = format!(
                "this kernel lets no program take the place of a function (freplace: {error}), so interfaces cannot be \
                 shared: the program is attached alone"
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
            return Plan::Alone { old: None };
        }
        let version = self.options.version.unwrap_or_else(installed_version);
        Plan::Shared { old: None, old_id: 0, version, members: Vec::new() }
    }

    /// For an interface with a dispatcher: the older version leaves it.
    fn plan_shared(&self, link: Link, found: Dispatcher) -> Result<Planned, AttachError> {
        let (mut members, mut replaces) = (Vec::new(), None);
        for member in found.members {
            let is_older = self.is_older(&member.info);
            let is_older = is_older.map_err(|error| failed("reading a program's metadata", error.into()))?;
            if is_older && replaces.is_none() {
                replaces = Some(member.info.id);
            } else {
                members.push(member);
            }
        }
        if members.len() >= MAX_PROGRAMS {
            let programs = members.into_iter().map(|member| member.info.name).collect();
            return Err(AttachError::Full { interface: link.name, programs });
        }
        let plan = Plan::Shared { old: Some(found.fd), old_id: found.id, version: found.version, members };
        Ok(Planned { link, plan, replaces })
    }

    /// Whether a running program is an older version of this one: of the same name, from a source of the same name.
    fn is_older(&self, running: &ProgramInfo) -> io::Result<bool> {
        let Some(new) = self.metadata else { return Ok(false) };
        if running.name != self.program.name {
            return Ok(false);
        }
        Ok(metadata_of(running)?.is_some_and(|old| files(&old).eq(files(new))))
    }

    fn copy(&self, older: Vec<Old>, prepared: &Prepared<'_>) -> Result<Vec<Carried>, AttachError> {
        let Some(new) = self.metadata else { return Ok(Vec::new()) };
        let copied = older.into_iter().map(|old| old.copy(new, &prepared.maps, &self.program.name));
        let copied: io::Result<_> = copied.collect();
        copied.map_err(|error| failed("copying the older version's counts", error.into()))
    }

    fn slot(&self, frags: bool) -> Slot {
        let written = self.program.slot;
        Slot {
            priority: self.options.priority.unwrap_or(written.priority),
            chain_on: self.options.chain_on.unwrap_or(written.chain_on),
            frags,
        }
    }
}

/// The older versions, whose counts go on.
fn older(planned: &[Planned]) -> Result<Vec<Old>, AttachError> {
    let ids: BTreeSet<u32> = planned.iter().filter_map(|planned| planned.replaces).collect();
    let mut seen = BTreeSet::new();
    let open = |id| {
        let old = Old::open(id, &mut seen);
        old.map_err(|error| failed(format!("reading the maps of program {id}"), error.into())).transpose()
    };
    ids.into_iter().filter_map(open).collect()
}

/// The names of the sources, without their folders, which depend on where a command was run.
fn files(metadata: &Metadata) -> impl Iterator<Item = Option<&OsStr>> {
    metadata.source.path.split(", ").map(|path| Path::new(path).file_name())
}

/// The program, loaded in the forms that the interfaces need.
struct Ready<'a> {
    installation: &'a Installation<'a>,
    prepared: &'a Prepared<'a>,
    frags: bool,
    /// For interfaces where it is alone.
    alone: Option<LoadedProgram>,
    /// For each interface where it is not, in order.
    built: Vec<Built>,
    /// The program in all of those.
    extension: Option<LoadedProgram>,
}

impl Ready<'_> {
    fn load(&mut self, planned: &mut Planned, notes: &mut Vec<String>) -> Result<(), InstallError> {
        let program = self.installation.program;
        let Plan::Shared { version, members, .. } = &mut planned.plan else {
            if self.alone.is_none() {
                self.alone = Some(self.prepared.load(program, Role::Xdp, self.frags, notes)?);
            }
            return Ok(());
        };
        let members = std::mem::take(members);
        let slot = self.installation.slot(self.frags);
        let name = &program.name;
        let before = |member: &&Member| {
            (member.slot.priority, member.info.name.as_str()) <= (slot.priority, name.as_str())
        };
        let turn = members.iter().filter(before).count();
        let mut slots: Vec<Slot> = members.iter().map(|member| member.slot).collect();
        slots.insert(turn, slot);
        let config = Config { version: *version, slots };
        let chain = Chain::load(&config, config.frags())?;
        if self.extension.is_none() {
            self.extension = Some(self.prepared.load(program, chain.role(turn), self.frags, notes)?);
        }
        let frags = config.frags();
        if !frags && self.frags {
            notes.push(format!(
                "a neighbour of `{name}` on {} takes packets in one buffer only, so all programs there do",
                planned.link.name
            ));
        }
        self.built.push(Built { chain, members, turn, frags });
        Ok(())
    }

    fn apply(self, planned: Vec<Planned>, pins: Option<&Pins>) -> Result<Vec<Placed>, InstallError> {
        let failed = |error: io::Error| failed("putting the program into a dispatcher", error.into());
        let mut links = Vec::new();
        for built in &self.built {
            links.push(built.link(self.extension.as_ref()).map_err(failed)?);
        }
        let mode = self.installation.options.mode;
        let mut shared = std::iter::zip(&self.built, links);
        let (mut changes, mut places) = (Vec::new(), Vec::new());
        for Planned { link, plan, replaces: replaced } in planned {
            let interface = link.name.clone();
            let (change, place) = match (plan, &self.alone, &self.extension, pins) {
                (Plan::Alone { old }, Some(program), ..) => {
                    let new = Some(program.as_fd());
                    let change = Change { link, mode, new, frags: self.frags, old, staged: None };
                    (change, Placed { interface, id: program.id, replaced, turn: None })
                }
                (Plan::Shared { old, old_id, .. }, _, Some(program), Some(pins)) => {
                    let Some((built, links)) = shared.next() else { continue };
                    let members: Vec<_> = std::iter::zip(built.programs(program.as_fd()), links).collect();
                    let ids = (link.index, built.chain.id, old_id);
                    let staged = match pins.stage(ids, &members) {
                        Ok(staged) => Some(staged),
                        Err(error) => {
                            discard_all(changes);
                            return Err(failed(error).into());
                        }
                    };
                    let new = Some(built.chain.fd.as_fd());
                    let turn = Some((built.turn + 1, built.members.len() + 1));
                    let change = Change { link, mode, new, frags: built.frags, old, staged };
                    (change, Placed { interface, id: program.id, replaced, turn })
                }
                // `load` has made whatever the plans need.
                (Plan::Alone { .. } | Plan::Shared { .. }, ..) => continue,
            };
            changes.push(change);
            places.push(place);
        }
        apply_all(changes)?;
        Ok(places)
    }
}

impl Built {
    /// All programs in order, `new` in its turn.
    fn programs<'a>(&'a self, new: BorrowedFd<'a>) -> Vec<BorrowedFd<'a>> {
        let mut programs: Vec<_> = self.members.iter().map(|member| member.fd.as_fd()).collect();
        programs.insert(self.turn, new);
        programs
    }

    /// Puts all programs in their places, as long as what this gives is there.
    fn link(&self, new: Option<&LoadedProgram>) -> io::Result<Vec<OwnedFd>> {
        let Some(new) = new else { return Ok(Vec::new()) };
        let programs = self.programs(new.as_fd()).into_iter().enumerate();
        programs.map(|(place, program)| self.chain.link(place, program)).collect()
    }
}

/// Finds an interface, after completing or taking back what a killed command left there.
pub(crate) fn recovered(name: &str, pins: Option<&Pins>) -> Result<Link, AttachError> {
    let link = attach::find(name)?;
    if let Some(pins) = pins {
        let current = attach::places(&link).next().map_or(0, |(id, _)| id);
        pins.recover(link.index, current)
            .map_err(|error| failed("removing what a killed command left", error.into()))?;
    }
    Ok(link)
}

pub(crate) fn unchangeable(interface: String, look: &Look) -> AttachError {
    let reason = match look {
        Look::Unknown(version) => {
            format!("it is of version {version} of the protocol, and pktc knows 2 and 3")
        }
        Look::Unpinned(_, error) => format!(
            "the pins of its programs cannot be read ({error}); `pktc unload --iface {interface} --all` takes all away"
        ),
        Look::Single | Look::Dispatcher(_) => "it is none".into(),
    };
    AttachError::Dispatcher { interface, reason }
}

/// The version of the libxdp that is installed; 2, which every later one reads, if there is none.
fn installed_version() -> Version {
    const FOLDERS: [&str; 5] = [
        "/usr/lib",
        "/usr/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/local/lib",
    ];
    let names = FOLDERS.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let minor = |name: std::ffi::OsString| -> Option<u32> {
        name.to_str()?.strip_prefix("libxdp.so.1.")?.split('.').next()?.parse().ok()
    };
    let newest = names.filter_map(|entry| minor(entry.file_name())).max();
    if newest.is_some_and(|minor| minor >= 6) { Version::V3 } else { Version::V2 }
}
