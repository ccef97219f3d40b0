//! Counts that outlive a replacement: what a rule or named counter of the old program has counted goes on in the one
//! of the same identity of the new.
//!
//! Where both count in the same entries of a map of the same shape, the new program takes the old one's map, and no
//! packet is missed. Else the counts are copied before the new program runs, and what the old one counted meanwhile is
//! added once it has ended: of the packets that arrive in that instant, some may be missed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use pktc_object::{Metadata, ProgramInfo};

use crate::image::{Image, MapImage};
use crate::map::Map;
use crate::metadata::{metadata_of, open_maps};
use crate::sys::{self, IdKind};

/// How long a program may still run on some CPU when it is no longer attached: much less.
const GRACE: Duration = Duration::from_millis(20);

/// An entry of a map, by the map's name.
type Entry<'a> = (&'a str, u32);

/// Counts to move.
pub(crate) struct Carried {
    moves: Vec<Move>,
}

struct Move {
    from: Rc<Map>,
    to: String,
    /// Entries, old and new, and the old one's value when it was copied.
    entries: Vec<(u32, u32, Vec<u8>)>,
}

/// The running program that is to be replaced.
pub(crate) struct Old {
    metadata: Metadata,
    maps: Vec<Map>,
}

impl Old {
    /// `None`: it has no metadata, so nothing is known of its counts. Maps in `seen`, by number, are another one's, whose
    /// counts go on already.
    pub(crate) fn open(id: u32, seen: &mut BTreeSet<u32>) -> io::Result<Option<Self>> {
        let fd = sys::open_id(IdKind::Program, id)?;
        let info = sys::program_info(std::os::fd::AsFd::as_fd(&fd))?;
        let Some(metadata) = metadata_of(&info)? else { return Ok(None) };
        let maps = open_maps(&info)?.into_iter().filter(|handle| seen.insert(handle.info().id));
        let map = |handle: sys::MapHandle| Map::new(handle.info().name.clone(), handle);
        Ok(Some(Old { metadata, maps: maps.map(map).collect() }))
    }

    /// Takes out the maps that a new program can count on in.
    pub(crate) fn shared(&mut self, new: &Metadata, image: &Image, program: &str) -> BTreeMap<String, Map> {
        let (old_entries, new_entries) = (entries(&self.metadata, program), entries(new, program));
        let names: BTreeSet<&str> = new_entries.values().map(|(map, _)| *map).collect();
        let of = |entries: &BTreeMap<Identity<'_>, Entry<'_>>, name: &str| -> Vec<(String, u32)> {
            let own = entries.iter().filter(|(_, (map, _))| *map == name);
            own.map(|(identity, (_, entry))| (identity.to_string(), *entry)).collect()
        };
        let mut shared = BTreeMap::new();
        for name in names {
            let same = of(&old_entries, name) == of(&new_entries, name);
            let declared = image.maps.iter().find(|map| map.name == name);
            let found = self.maps.iter().position(|map| map.name() == name);
            if let (true, Some(declared), Some(found)) = (same, declared, found)
                && same_shape(declared, &self.maps[found])
            {
                shared.insert(name.to_owned(), self.maps.swap_remove(found));
            }
        }
        shared
    }

    /// Copies the counts that are not shared into the new program's maps, before it runs.
    pub(crate) fn copy(self, new: &Metadata, maps: &[Map], program: &str) -> io::Result<Carried> {
        let (old_entries, new_entries) = (entries(&self.metadata, program), entries(new, program));
        let mut moves = Vec::new();
        for from in self.maps.into_iter().map(Rc::new) {
            let pairs = old_entries.iter().filter(|(_, (map, _))| *map == from.name());
            let pairs = pairs.filter_map(|(identity, (_, old))| Some((*old, *new_entries.get(identity)?)));
            let mut by_map: BTreeMap<&str, Vec<(u32, u32)>> = BTreeMap::new();
            for (old, (map, new)) in pairs {
                by_map.entry(map).or_default().push((old, new));
            }
            for (to, pairs) in by_map {
                let Some(target) = maps.iter().find(|map| map.name() == to) else { continue };
                let (mut entries, empty) = (Vec::new(), vec![0; from.value_size()]);
                for (old, new) in pairs {
                    add(&from, old, target, new, &empty).map(|value| entries.push((old, new, value)))?;
                }
                moves.push(Move { from: Rc::clone(&from), to: to.to_owned(), entries });
            }
        }
        Ok(Carried { moves })
    }
}

impl Carried {
    /// Adds what the old program counted since.
    pub(crate) fn finish(self, maps: &[Map]) -> io::Result<()> {
        if self.moves.is_empty() {
            return Ok(());
        }
        std::thread::sleep(GRACE);
        for Move { from, to, entries } in self.moves {
            let Some(target) = maps.iter().find(|map| map.name() == to) else { continue };
            for (old, new, copied) in entries {
                add(&from, old, target, new, &copied)?;
            }
        }
        Ok(())
    }
}

/// Adds entry `old` of `from`, less what was `copied` of it before, to entry `new` of `to`; gives the former.
fn add(from: &Map, old: u32, to: &Map, new: u32, copied: &[u8]) -> io::Result<Vec<u8>> {
    let value = from.lookup(&old.to_ne_bytes())?.unwrap_or_default();
    let numbers = |bytes: &[u8]| -> Vec<u64> {
        bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect()
    };
    let mut before = numbers(copied);
    let now = numbers(&value);
    before.resize(now.len(), 0);
    if now == before {
        return Ok(value);
    }
    let key = new.to_ne_bytes();
    let there = numbers(&to.lookup(&key)?.unwrap_or_default());
    let sum = std::iter::zip(there, std::iter::zip(now, before))
        .flat_map(|(there, (now, before))| there.wrapping_add(now.wrapping_sub(before)).to_ne_bytes());
    to.update(&key, &sum.collect::<Vec<u8>>())?;
    Ok(value)
}

fn same_shape(declared: &MapImage, map: &Map) -> bool {
    map.shape() == (declared.kind, declared.key_size, declared.value_size, declared.max_entries)
}

/// What survives: a rule's program and identity, or a named counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identity<'a> {
    Rule(&'a str, &'a str),
    Counter(&'a str),
}

impl std::fmt::Display for Identity<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Identity::Rule(program, rule) => write!(f, "{program} {rule}"),
            Identity::Counter(name) => write!(f, "counter {name}"),
        }
    }
}

/// Where everything counts that belongs to a program of that name in the kernel.
fn entries<'a>(metadata: &'a Metadata, program: &str) -> BTreeMap<Identity<'a>, Entry<'a>> {
    let mut entries = BTreeMap::new();
    for part in parts(metadata, program) {
        let Some(range) = &part.counters else { continue };
        for (rule, n) in std::iter::zip(&part.rules, 0..range.count) {
            let identity = Identity::Rule(&part.name, &rule.identity);
            entries.insert(identity, (range.map.as_str(), range.first.saturating_add(n)));
        }
    }
    for counter in &metadata.counters {
        entries.insert(Identity::Counter(&counter.name), (counter.map.as_str(), counter.index));
    }
    entries
}

/// The programs of the source that run in the program of that name: the one of its name, or all that were linked
/// into it.
pub(crate) fn parts<'a>(metadata: &'a Metadata, program: &str) -> Vec<&'a ProgramInfo> {
    let own: Vec<_> = metadata.programs.iter().filter(|part| part.name == program).collect();
    if own.is_empty() { metadata.programs.iter().collect() } else { own }
}
