//! A map: its values in one piece of memory, and what leads from keys to them.
//!
//! Results and errors are those of the kernel's implementations (`kernel/bpf/{arraymap,hashtab,lpm_trie}.c`), with
//! one CPU. An LRU map evicts exactly the entry that was longest not used; the kernel's choice is near that.

use std::collections::{BTreeMap, HashMap};

use pktc_bpf::MapKind;

use super::fault::{Problem, VmError};

/// `BPF_F_RDONLY_PROG`: programs may not write.
pub(super) const READ_ONLY: u32 = 1 << 7;

/// More than any test needs, and less than what hurts.
const MOST_BYTES: u64 = 1 << 30;

const ENOENT: i64 = -2;
const E2BIG: i64 = -7;
const EEXIST: i64 = -17;
const EINVAL: i64 = -22;
const ENOSPC: i64 = -28;

/// `BPF_NOEXIST`, `BPF_EXIST`.
const ONLY_NEW: u64 = 1;
const ONLY_OLD: u64 = 2;

/// What a map is made from.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) kind: MapKind,
    pub(super) key_size: usize,
    pub(super) value_size: usize,
    pub(super) max_entries: u32,
    pub(super) flags: u32,
}

/// A map with its content.
pub(super) struct Map {
    pub(super) definition: Definition,
    /// Values by entry.
    values: Vec<u8>,
    index: Index,
}

enum Index {
    /// Keys are entries.
    Array,
    Hash {
        keys: Keys,
        /// When each entry was last used, for maps that evict.
        used: Option<Used>,
    },
    /// By length of the prefix; keys are masked.
    Lpm { lengths: BTreeMap<u32, HashMap<Vec<u8>, u32>>, slots: Slots },
}

#[derive(Default)]
struct Keys {
    entries: HashMap<Vec<u8>, u32>,
    slots: Slots,
}

#[derive(Default)]
struct Used {
    clock: u64,
    by_key: HashMap<Vec<u8>, u64>,
}

/// Which entries are in use. A deleted entry is used again only after the program's end: pointers to it live on.
#[derive(Default)]
struct Slots {
    count: u32,
    free: Vec<u32>,
    retired: Vec<u32>,
}

impl Slots {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }
}

impl Map {
    /// An empty map; an array's values are 0, or `content`.
    pub(super) fn new(definition: Definition, content: Option<&[u8]>) -> Result<Map, VmError> {
        let refuse = |reason| VmError::Map { name: definition.name.clone(), reason };
        let bytes = u64::from(definition.max_entries) * definition.value_size as u64;
        let (key_size, is_array) = (definition.key_size, definition.is_array());
        match definition.kind {
            _ if definition.max_entries == 0 => return Err(refuse("it has no entries")),
            _ if bytes > MOST_BYTES => return Err(refuse("it has more than 1 GiB of values")),
            _ if is_array && key_size != 4 => return Err(refuse("an array has keys of 4 bytes")),
            MapKind::LpmTrie if key_size < 5 => return Err(refuse("a prefix has at least 5 bytes")),
            _ if key_size == 0 => return Err(refuse("its keys have no bytes")),
            _ => {}
        }
        let mut values = if is_array { vec![0; bytes as usize] } else { Vec::new() };
        if let Some(content) = content {
            let place = values.get_mut(..content.len()).ok_or_else(|| refuse("its content is too long"))?;
            place.copy_from_slice(content);
        }
        let index = match definition.kind {
            MapKind::Array | MapKind::PerCpuArray => Index::Array,
            MapKind::Hash => Index::Hash { keys: Keys::default(), used: None },
            MapKind::LruHash => Index::Hash { keys: Keys::default(), used: Some(Used::default()) },
            MapKind::LpmTrie => Index::Lpm { lengths: BTreeMap::new(), slots: Slots::default() },
        };
        Ok(Map { definition, values, index })
    }

    /// A program starts: entries deleted before may be used again.
    pub(super) fn start_run(&mut self) {
        match &mut self.index {
            Index::Array => {}
            Index::Hash { keys: Keys { slots, .. }, .. } | Index::Lpm { slots, .. } => {
                slots.free.append(&mut slots.retired);
            }
        }
    }

    /// The entry of `key`, which has the map's size of keys.
    pub(super) fn lookup(&mut self, key: &[u8]) -> Option<u32> {
        match &mut self.index {
            Index::Array => array_entry(key).filter(|entry| *entry < self.definition.max_entries),
            Index::Hash { keys, used } => {
                let entry = keys.entries.get(key).copied()?;
                if let Some(used) = used {
                    used.touch(key);
                }
                Some(entry)
            }
            Index::Lpm { lengths, .. } => {
                let (length, data) = prefix(key)?;
                let shorter = lengths.range(..=length).rev();
                shorter.filter_map(|(length, keys)| keys.get(&masked(data, *length))).next().copied()
            }
        }
    }

    /// Stores `value` at `key`: 0, or the kernel's error.
    pub(super) fn update(&mut self, key: &[u8], value: &[u8], flags: u64) -> i64 {
        match self.entry_for_update(key, flags) {
            Ok(entry) => {
                let size = self.definition.value_size;
                let end = (entry as usize + 1) * size;
                if self.values.len() < end {
                    self.values.resize(end, 0);
                }
                self.values[end - size..end].copy_from_slice(value);
                0
            }
            Err(error) => error,
        }
    }

    /// Removes `key`: 0, or the kernel's error.
    pub(super) fn delete(&mut self, key: &[u8]) -> i64 {
        match &mut self.index {
            Index::Array => EINVAL,
            Index::Hash { keys, used } => {
                let removed = keys.entries.remove(key);
                if let Some(used) = used {
                    used.by_key.remove(key);
                }
                retire(removed, &mut keys.slots)
            }
            Index::Lpm { lengths, slots } => {
                let Some((length, data)) = prefix(key) else { return EINVAL };
                let removed = lengths.get_mut(&length).and_then(|keys| keys.remove(&masked(data, length)));
                retire(removed, slots)
            }
        }
    }

    /// Bytes of an entry's value.
    pub(super) fn bytes(&self, entry: u32, offset: i64, len: usize) -> Result<&[u8], Problem> {
        let start = self.inside(entry, offset, len)?;
        Ok(&self.values[start..start + len])
    }

    /// Bytes of an entry's value, for a program to write.
    pub(super) fn bytes_mut(&mut self, entry: u32, offset: i64, len: usize) -> Result<&mut [u8], Problem> {
        let start = self.inside(entry, offset, len)?;
        if self.is_read_only() {
            return Err(Problem::ReadOnly);
        }
        Ok(&mut self.values[start..start + len])
    }

    /// Programs may not write it.
    pub(super) fn is_read_only(&self) -> bool {
        self.definition.flags & READ_ONLY != 0
    }

    fn inside(&self, entry: u32, offset: i64, len: usize) -> Result<usize, Problem> {
        let size = self.definition.value_size;
        let start = usize::try_from(offset).ok();
        let inside = start.filter(|start| start.checked_add(len).is_some_and(|end| end <= size));
        let outside =
            || Problem::OutOfBounds { region: self.definition.name.clone(), from: offset, len: len as u64 };
        Ok(entry as usize * size + inside.ok_or_else(outside)?)
    }

    fn entry_for_update(&mut self, key: &[u8], flags: u64) -> Result<u32, i64> {
        if flags > ONLY_OLD {
            return Err(EINVAL);
        }
        let most = self.definition.max_entries;
        match &mut self.index {
            Index::Array => {
                let entry = array_entry(key).filter(|entry| *entry < most).ok_or(E2BIG)?;
                if flags == ONLY_NEW { Err(EEXIST) } else { Ok(entry) }
            }
            Index::Hash { keys, used } => {
                let old = keys.entries.get(key).copied();
                let entry = match (old, wanted(old, flags)?) {
                    (Some(entry), _) => entry,
                    (None, ()) => keys.insert(key, most, used.as_mut())?,
                };
                if let Some(used) = used {
                    used.touch(key);
                }
                Ok(entry)
            }
            Index::Lpm { lengths, slots } => {
                let (length, data) = prefix(key).ok_or(EINVAL)?;
                let used: usize = lengths.values().map(HashMap::len).sum();
                let keys = lengths.entry(length).or_default();
                let data = masked(data, length);
                let old = keys.get(&data).copied();
                wanted(old, flags)?;
                match old {
                    Some(entry) => Ok(entry),
                    None if used >= most as usize => Err(ENOSPC),
                    None => Ok(*keys.entry(data).or_insert_with(|| slots.take())),
                }
            }
        }
    }
}

impl Definition {
    fn is_array(&self) -> bool {
        match self.kind {
            MapKind::Array | MapKind::PerCpuArray => true,
            MapKind::Hash | MapKind::LruHash | MapKind::LpmTrie => false,
        }
    }
}

impl Keys {
    /// A new entry; a full map evicts one, or fails.
    fn insert(&mut self, key: &[u8], most: u32, used: Option<&mut Used>) -> Result<u32, i64> {
        if self.entries.len() >= most as usize {
            let oldest = used.and_then(Used::take_oldest).ok_or(E2BIG)?;
            retire(self.entries.remove(&oldest), &mut self.slots);
        }
        let entry = self.slots.take();
        self.entries.insert(key.to_vec(), entry);
        Ok(entry)
    }
}

impl Used {
    fn touch(&mut self, key: &[u8]) {
        self.clock += 1;
        self.by_key.insert(key.to_vec(), self.clock);
    }

    fn take_oldest(&mut self) -> Option<Vec<u8>> {
        let oldest = self.by_key.iter().min_by_key(|(_, time)| **time)?.0.clone();
        self.by_key.remove(&oldest);
        Some(oldest)
    }
}

fn retire(removed: Option<u32>, slots: &mut Slots) -> i64 {
    match removed {
        Some(entry) => {
            slots.retired.push(entry);
            0
        }
        None => ENOENT,
    }
}

/// Whether the flags of an update fit what is there.
fn wanted(old: Option<u32>, flags: u64) -> Result<(), i64> {
    match (old, flags) {
        (Some(_), ONLY_NEW) => Err(EEXIST),
        (None, ONLY_OLD) => Err(ENOENT),
        _ => Ok(()),
    }
}

fn array_entry(key: &[u8]) -> Option<u32> {
    key.try_into().ok().map(u32::from_le_bytes)
}

/// The length and bytes of a prefix, unless it is longer than its bytes (`struct bpf_lpm_trie_key`).
fn prefix(key: &[u8]) -> Option<(u32, &[u8])> {
    let (length, data) = key.split_first_chunk()?;
    let length = u32::from_le_bytes(*length);
    (u64::from(length) <= 8 * data.len() as u64).then_some((length, data))
}

/// `data` with 0 behind its first `length` bits.
fn masked(data: &[u8], length: u32) -> Vec<u8> {
    let mask = |byte: usize| {
        let bits = (length as usize).saturating_sub(8 * byte).min(8);
        !(0xff_u16 >> bits) as u8
    };
    data.iter().enumerate().map(|(at, byte)| byte & mask(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(kind: MapKind, key_size: usize, max_entries: u32) -> Map {
        let definition =
            Definition { name: "m".into(), kind, key_size, value_size: 1, max_entries, flags: 0 };
        Map::new(definition, None).unwrap()
    }

    fn get(map: &mut Map, key: &[u8]) -> Option<u8> {
        let entry = map.lookup(key)?;
        Some(map.bytes(entry, 0, 1).unwrap()[0])
    }

    #[test]
    fn an_array_has_all_its_entries() {
        let mut map = map(MapKind::Array, 4, 2);
        assert_eq!(get(&mut map, &[1, 0, 0, 0]), Some(0));
        assert_eq!(map.update(&[1, 0, 0, 0], &[7], 0), 0);
        assert_eq!(get(&mut map, &[1, 0, 0, 0]), Some(7));
        assert_eq!(get(&mut map, &[2, 0, 0, 0]), None);
        assert_eq!(map.update(&[2, 0, 0, 0], &[7], 0), E2BIG);
        assert_eq!(map.update(&[1, 0, 0, 0], &[7], ONLY_NEW), EEXIST);
        assert_eq!(map.delete(&[1, 0, 0, 0]), EINVAL);
    }

    #[test]
    fn a_hash_keeps_to_flags_and_size() {
        let mut map = map(MapKind::Hash, 1, 2);
        assert_eq!(map.update(b"a", &[1], ONLY_OLD), ENOENT);
        assert_eq!(map.update(b"a", &[1], 3), EINVAL);
        assert_eq!(map.update(b"a", &[1], ONLY_NEW), 0);
        assert_eq!(map.update(b"a", &[2], ONLY_NEW), EEXIST);
        assert_eq!(map.update(b"b", &[2], 0), 0);
        assert_eq!(map.update(b"c", &[3], 0), E2BIG);
        assert_eq!(map.delete(b"a"), 0);
        assert_eq!(map.delete(b"a"), ENOENT);
        assert_eq!(map.update(b"c", &[3], 0), 0);
        assert_eq!([get(&mut map, b"a"), get(&mut map, b"b"), get(&mut map, b"c")], [None, Some(2), Some(3)]);
    }

    #[test]
    fn a_deleted_entry_is_used_again_after_the_run_only() {
        let mut map = map(MapKind::Hash, 1, 9);
        map.update(b"a", &[1], 0);
        let old = map.lookup(b"a").unwrap();
        map.delete(b"a");
        map.update(b"b", &[2], 0);
        assert_eq!(map.bytes(old, 0, 1).unwrap(), [1]);
        map.start_run();
        map.update(b"c", &[3], 0);
        assert_eq!(map.lookup(b"c"), Some(old));
    }

    #[test]
    fn an_lru_hash_evicts_what_was_longest_unused() {
        let mut map = map(MapKind::LruHash, 1, 2);
        map.update(b"a", &[1], 0);
        map.update(b"b", &[2], 0);
        assert_eq!(get(&mut map, b"a"), Some(1));
        assert_eq!(map.update(b"c", &[3], 0), 0);
        assert_eq!([get(&mut map, b"a"), get(&mut map, b"b"), get(&mut map, b"c")], [Some(1), None, Some(3)]);
    }

    #[test]
    fn a_trie_finds_the_longest_prefix() {
        let key = |length: u8, data: [u8; 4]| [&[length, 0, 0, 0][..], &data].concat();
        let mut map = map(MapKind::LpmTrie, 8, 3);
        assert_eq!(map.update(&key(8, [10, 9, 9, 9]), &[8], 0), 0);
        assert_eq!(map.update(&key(23, [10, 1, 2, 0]), &[23], 0), 0);
        assert_eq!(map.update(&key(0, [1, 2, 3, 4]), &[100], 0), 0);
        assert_eq!(map.update(&key(9, [0, 0, 0, 0]), &[9], 0), ENOSPC);
        assert_eq!(map.update(&key(33, [0, 0, 0, 0]), &[9], 0), EINVAL);
        let mut at = |length, data| get(&mut map, &key(length, data));
        assert_eq!(at(32, [10, 1, 3, 77]), Some(23));
        assert_eq!(at(32, [10, 1, 4, 77]), Some(8));
        assert_eq!(at(22, [10, 1, 3, 77]), Some(8), "a key matches no prefix longer than itself");
        assert_eq!(at(32, [11, 1, 4, 77]), Some(100));
        assert_eq!(at(33, [11, 1, 4, 77]), None);
        assert_eq!(map.delete(&key(23, [10, 1, 3, 0])), 0, "host bits do not count");
        assert_eq!(map.delete(&key(23, [10, 1, 3, 0])), ENOENT);
        assert_eq!(get(&mut map, &key(32, [10, 1, 3, 77])), Some(8));
    }

    #[test]
    fn impossible_maps_are_refused() {
        let reason = |kind, key_size, max_entries| {
            let definition =
                Definition { name: "m".into(), kind, key_size, value_size: 2048, max_entries, flags: 0 };
            Map::new(definition, None).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(reason(MapKind::Array, 4, 0), "map `m`: it has no entries");
        assert_eq!(reason(MapKind::Array, 8, 1), "map `m`: an array has keys of 4 bytes");
        assert_eq!(reason(MapKind::LpmTrie, 4, 1), "map `m`: a prefix has at least 5 bytes");
        assert_eq!(reason(MapKind::Array, 4, 1 << 30), "map `m`: it has more than 1 GiB of values");
    }
}
