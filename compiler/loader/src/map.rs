//! Open maps: elements, and counters summed over CPUs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::sys::MapHandle;

/// A map of a loaded object.
#[derive(Debug)]
pub struct Map {
    name: String,
    handle: MapHandle,
}

impl Map {
    pub(crate) fn new(name: String, handle: MapHandle) -> Self {
        Map { name, handle }
    }

    /// Its kind (`BPF_MAP_TYPE_…`), bytes of a key, bytes of a value, and how many entries it may have.
    pub(crate) fn shape(&self) -> (u32, u32, u32, u32) {
        let info = self.handle.info();
        (info.kind, info.key_size, info.value_size, info.max_entries)
    }

    /// Its name in the object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of a value (one CPU's).
    #[must_use]
    pub fn value_size(&self) -> usize {
        self.handle.info().value_size as usize
    }

    /// How many entries it may have.
    #[must_use]
    pub fn max_entries(&self) -> u32 {
        self.handle.info().max_entries
    }

    /// The value of `key`: of a per-CPU map all CPUs' values, each padded to a multiple of 8 bytes. `None`: there
    /// is no such key.
    ///
    /// # Errors
    /// A key of the wrong size; what the kernel says.
    pub fn lookup(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.handle.lookup(key)
    }

    /// Sets the value of `key`, in the form that [`Map::lookup`] gives.
    ///
    /// # Errors
    /// Key or value of the wrong size; a frozen map; what else the kernel says.
    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.handle.update(key, value)
    }

    /// All keys, as they were while they were read.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn keys(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        while let Some(key) = self.handle.next_key(keys.last().map(Vec::as_slice))? {
            // A key deleted meanwhile makes the kernel start again from the first.
            if keys.len() == self.max_entries() as usize {
                break;
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// Entries `first` to `first + count` of an array of {packets: u64, bytes: u64}, each summed over all CPUs.
    ///
    /// # Errors
    /// If the map has no such entries or is of another kind; what the kernel says.
    pub fn counters(&self, first: u32, count: u32) -> io::Result<Vec<(u64, u64)>> {
        let end = first.checked_add(count).filter(|end| *end <= self.max_entries());
        let (Some(end), 16) = (end, self.value_size()) else {
            let message = format!("map {} has no counters {first} to {first} + {count}", self.name);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        match self.handle.lookup_array() {
            Ok(values) => {
                let entry = values.len() / self.max_entries() as usize;
                let wanted = &values[first as usize * entry..end as usize * entry];
                Ok(wanted.chunks_exact(entry.max(1)).map(sum).collect())
            }
            // A kernel without batches: one by one.
            Err(_) => (first..end).map(|index| self.counter(index)).collect(),
        }
    }

    fn counter(&self, index: u32) -> io::Result<(u64, u64)> {
        Ok(self.handle.lookup(&index.to_ne_bytes())?.map_or((0, 0), |value| sum(&value)))
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.fd.as_fd()
    }
}

/// The sum over CPUs of {u64, u64}.
fn sum(value: &[u8]) -> (u64, u64) {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    value
        .chunks_exact(16)
        .fold((0, 0), |(packets, bytes), cpu| (packets + number(&cpu[..8]), bytes + number(&cpu[8..])))
}
