//! What runs where, from the kernel and the bpf file system alone: whoever attached it, and with what tool.

use std::io;
use std::time::{Duration, SystemTime};

use pktc_object::{Metadata, ProgramInfo};

use crate::attach::{self, failed};
use crate::carry::parts;
use crate::dispatcher::{Look, Pins, Slot, look};
use crate::error::AttachError;
use crate::load::Mode;
use crate::map::Map;
use crate::metadata::{metadata_of, open_maps};
use crate::netlink::Link;
use crate::sys::{self, IdKind};

/// XDP programs that the kernel calls directly (`BPF_DISPATCHER_MAX`, on x86-64); the ones beyond are called
/// through a pointer, which costs more.
pub const DIRECT_CALLS: usize = 48;

/// A program on an interface, alone or in a dispatcher.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its number in the kernel.
    pub id: u32,
    /// Its name in the kernel.
    pub name: String,
    /// A hash of its instructions, as `bpftool` shows it.
    pub tag: String,
    /// When it was loaded.
    pub loaded: SystemTime,
    /// How it takes part in the dispatcher; `None`: it is alone.
    pub slot: Option<Slot>,
    /// What it says of itself; `None`: it is not pktc's, or its loader did not bind the map that says it.
    pub metadata: Option<Metadata>,
}

/// The dispatcher on an interface.
#[derive(Clone, Debug)]
pub struct DispatcherStatus {
    /// Its number in the kernel.
    pub id: u32,
    /// The version of libxdp's protocol; others than those of [`Version`] are only recognised.
    pub version: u8,
    /// Whether it takes packets in several buffers; `None`: not known.
    pub frags: Option<bool>,
    /// Why its programs are not listed.
    pub unreadable: Option<String>,
}

/// What is on an interface.
#[derive(Clone, Debug)]
pub struct InterfaceStatus {
    /// The interface's name.
    pub name: String,
    /// How the programs are attached; `None`: in the device itself.
    pub mode: Option<Mode>,
    /// The dispatcher that calls the programs.
    pub dispatcher: Option<DispatcherStatus>,
    /// The programs, in the order in which they run.
    pub programs: Vec<Running>,
}

/// What runs on this host.
#[derive(Clone, Debug)]
pub struct Status {
    /// The interfaces of this network namespace that have programs, by index.
    pub interfaces: Vec<InterfaceStatus>,
    /// All XDP programs in the kernel, of every namespace: at most so many of the [`DIRECT_CALLS`] are in use.
    pub programs: usize,
}

/// What runs on `interface`, or on all of this network namespace.
///
/// # Errors
/// [`AttachError::UnknownInterface`]; what the kernel says.
pub fn status(interface: Option<&str>) -> Result<Status, AttachError> {
    let system = |action: &'static str| move |error: io::Error| failed(action, error.into());
    let links = match interface {
        Some(name) => vec![attach::find(name)?],
        None => attach::links()?,
    };
    let pins = Pins::lock_existing().map_err(system("locking the pins of dispatchers"))?;
    let mut interfaces = Vec::new();
    for link in &links {
        for (id, mode) in attach::places(link) {
            let status = interface_status(pins.as_ref(), link, id, mode);
            interfaces.push(status.map_err(|error| {
                failed(format!("asking about program {id} on {}", link.name), error.into())
            })?);
        }
    }
    let programs = count_programs().map_err(system("listing programs"))?;
    Ok(Status { interfaces, programs })
}

fn interface_status(
    pins: Option<&Pins>,
    link: &Link,
    id: u32,
    mode: Option<Mode>,
) -> io::Result<InterfaceStatus> {
    let unlisted = |version, frags, why: String| {
        (Some(DispatcherStatus { id, version, frags, unreadable: Some(why) }), Vec::new())
    };
    let (dispatcher, programs) = match look(pins, link.index, id)? {
        Look::Single => (None, vec![running(id, None)?]),
        Look::Unknown(version) => unlisted(version, None, "pktc knows versions 2 and 3".into()),
        Look::Unpinned(version, error) => {
            unlisted(version.number(), None, format!("its programs' pins cannot be read: {error}"))
        }
        Look::Dispatcher(found) => {
            let members = found.members.iter().map(|member| running(member.info.id, Some(member.slot)));
            let (version, frags) = (found.version.number(), Some(found.frags));
            (
                Some(DispatcherStatus { id, version, frags, unreadable: None }),
                members.collect::<io::Result<_>>()?,
            )
        }
    };
    Ok(InterfaceStatus { name: link.name.clone(), mode, dispatcher, programs })
}

fn running(id: u32, slot: Option<Slot>) -> io::Result<Running> {
    let fd = sys::open_id(IdKind::Program, id)?;
    let info = sys::program_info(std::os::fd::AsFd::as_fd(&fd))?;
    let age = Duration::from_nanos(sys::since_boot().saturating_sub(info.load_time));
    Ok(Running {
        id,
        tag: info.tag.iter().map(|byte| format!("{byte:02x}")).collect(),
        loaded: SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
        slot,
        metadata: metadata_of(&info)?,
        name: info.name,
    })
}

/// How many XDP programs the kernel has.
fn count_programs() -> io::Result<usize> {
    let (mut id, mut count) = (0, 0);
    while let Some(next) = sys::next_program(id)? {
        id = next;
        // One that is gone meanwhile does not count.
        let Ok(fd) = sys::open_id(IdKind::Program, id) else { continue };
        let info = sys::program_info(std::os::fd::AsFd::as_fd(&fd));
        count += usize::from(info.is_ok_and(|info| info.kind == sys::PROG_TYPE_XDP));
    }
    Ok(count)
}

/// What a rule or a named counter has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// What reports call it.
    pub name: String,
    /// The file that declares it.
    pub file: String,
    /// The line that declares it, from 1.
    pub line: u32,
    /// Packets.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
}

/// What a running program has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// For each program of the source that runs in it, its name and its rules, the default first; without rules:
    /// they do not count.
    pub programs: Vec<(String, Vec<Count>)>,
    /// The named counters.
    pub counters: Vec<Count>,
}

impl Running {
    /// The programs of the source that run in it: the one of its name, or all that were linked into it.
    #[must_use]
    pub fn parts(&self) -> Vec<&ProgramInfo> {
        self.metadata.as_ref().map_or_else(Vec::new, |metadata| parts(metadata, &self.name))
    }

    /// What it has counted, summed over CPUs; `None`: it has no metadata.
    ///
    /// # Errors
    /// What the kernel says; metadata that does not fit the program's maps.
    pub fn counts(&self) -> io::Result<Option<Counts>> {
        let Some(metadata) = &self.metadata else { return Ok(None) };
        let maps = Maps::of(self.id)?;
        let mut programs = Vec::new();
        for part in self.parts() {
            programs.push((part.name.clone(), rule_counts(&maps, part)?));
        }
        let mut counters = Vec::new();
        for counter in &metadata.counters {
            let (packets, bytes) = maps.named(&counter.map)?.counters(counter.index, 1)?[0];
            let (name, file) = (counter.name.clone(), counter.file.clone());
            counters.push(Count { name, file, line: counter.line, packets, bytes });
        }
        Ok(Some(Counts { programs, counters }))
    }
}

fn rule_counts(maps: &Maps, part: &ProgramInfo) -> io::Result<Vec<Count>> {
    let Some(range) = &part.counters else { return Ok(Vec::new()) };
    let values = maps.named(&range.map)?.counters(range.first, range.count)?;
    let count = |(rule, (packets, bytes)): (&pktc_object::RuleInfo, (u64, u64))| Count {
        name: rule.name.clone(),
        file: rule.file.clone(),
        line: rule.line,
        packets,
        bytes,
    };
    Ok(std::iter::zip(&part.rules, values).map(count).collect())
}

/// The maps of a running program.
pub(crate) struct Maps(Vec<Map>);

impl Maps {
    pub(crate) fn of(program: u32) -> io::Result<Self> {
        let fd = sys::open_id(IdKind::Program, program)?;
        let info = sys::program_info(std::os::fd::AsFd::as_fd(&fd))?;
        let map = |handle: sys::MapHandle| Map::new(handle.info().name.clone(), handle);
        Ok(Maps(open_maps(&info)?.into_iter().map(map).collect()))
    }

    pub(crate) fn named(&self, name: &str) -> io::Result<&Map> {
        let found = self.0.iter().find(|map| map.name() == name);
        let error = || io::Error::new(io::ErrorKind::NotFound, format!("the program has no map `{name}`"));
        found.ok_or_else(error)
    }
}
