//! Reading BTF and putting the sizes and offsets into its data sections that compilers leave to the loader.
//!
//! A reader of its own, because the input may be damaged or come from a running kernel: every access is
//! checked, and an error says what is wrong. Only what the loader needs is understood; other types are stepped
//! over. Layouts: `include/uapi/linux/btf.h`.

use std::fmt;
use std::ops::Range;

/// `BTF_KIND_…`, as far as they are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Ptr,
    Array,
    Struct,
    Union,
    Enum,
    Func,
    Var,
    DataSec,
    /// Typedef, const, volatile, restrict, type tag: another name for the type that they refer to.
    Alias,
    /// All others.
    Other,
}

/// What is wrong with BTF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BtfError(String);

impl fmt::Display for BtfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn damaged<T>(what: impl Into<String>) -> Result<T, BtfError> {
    Err(BtfError(what.into()))
}

/// The little-endian number at `at`.
pub(crate) fn read_u32(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// A member of a structure.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) type_id: u32,
}

/// A variable in a data section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// The variable's own type, not the `VAR`.
    pub(crate) type_id: u32,
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

/// How often a reference is followed before it counts as a circle.
const MAX_DEPTH: usize = 32;
const HEADER: usize = 24;
const MAGIC: u16 = 0xeb9f;

/// BTF whose types all lie inside its bytes. Type 0 is `void`.
#[derive(Clone, Debug)]
pub(crate) struct Btf {
    data: Vec<u8>,
    strings: Range<usize>,
    /// Where each type starts in `data`; the first is type 1.
    starts: Vec<usize>,
}

impl Btf {
    /// Finds the types.
    pub(crate) fn parse(data: Vec<u8>) -> Result<Self, BtfError> {
        if data.len() < HEADER || u16::from_le_bytes([data[0], data[1]]) != MAGIC {
            return damaged("BTF does not start with a little-endian BTF header");
        }
        let field = |at: usize| read_u32(&data, at).unwrap_or(0) as usize;
        let part = |offset: usize, len: usize| {
            let start = field(4) + offset;
            if start + len > data.len() { damaged("BTF is cut short") } else { Ok(start..start + len) }
        };
        let types = part(field(8), field(12))?;
        let strings = part(field(16), field(20))?;
        let mut starts = Vec::new();
        let mut at = types.start;
        while at < types.end {
            let size = type_bytes(&data[at..types.end])?;
            starts.push(at);
            at += size;
        }
        Ok(Btf { data, strings, starts })
    }

    /// As the kernel takes it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// All strings, each with a NUL behind it.
    pub(crate) fn strings(&self) -> &[u8] {
        &self.data[self.strings.clone()]
    }

    /// The 32-bit words of a type.
    pub(crate) fn record(&self, id: u32) -> Result<Vec<u32>, BtfError> {
        let start = self.start(id)?;
        let words = type_bytes(&self.data[start..])? / 4;
        (0..words).map(|n| self.word(id, n)).collect()
    }

    /// Ids of all types.
    pub(crate) fn ids(&self) -> Range<u32> {
        1..self.starts.len() as u32 + 1
    }

    fn start(&self, id: u32) -> Result<usize, BtfError> {
        let start = (id as usize).checked_sub(1).and_then(|index| self.starts.get(index));
        start.copied().map_or_else(|| damaged(format!("BTF refers to a type {id} that does not exist")), Ok)
    }

    /// The `n`-th 32-bit word of a type.
    fn word(&self, id: u32, n: usize) -> Result<u32, BtfError> {
        let at = self.start(id)? + 4 * n;
        read_u32(&self.data, at).map_or_else(|| damaged("BTF is cut short"), Ok)
    }

    fn count(&self, id: u32) -> Result<usize, BtfError> {
        Ok((self.word(id, 1)? & 0xffff) as usize)
    }

    /// The kind of a type.
    pub(crate) fn kind(&self, id: u32) -> Result<Kind, BtfError> {
        Ok(match kind_number(self.word(id, 1)?) {
            1 => Kind::Int,
            2 => Kind::Ptr,
            3 => Kind::Array,
            4 => Kind::Struct,
            5 => Kind::Union,
            6 | 19 => Kind::Enum,
            8..=11 | 18 => Kind::Alias,
            12 => Kind::Func,
            14 => Kind::Var,
            15 => Kind::DataSec,
            _ => Kind::Other,
        })
    }

    /// The string at an offset of the string section.
    pub(crate) fn string(&self, offset: u32) -> Result<String, BtfError> {
        let strings = &self.data[self.strings.clone()];
        let bytes = strings.get(offset as usize..).unwrap_or(&[]);
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => Ok(String::from_utf8_lossy(&bytes[..end]).into_owned()),
            None => damaged(format!("BTF names a string at {offset}, outside its strings")),
        }
    }

    /// The name of a type; empty where it has none.
    pub(crate) fn name(&self, id: u32) -> Result<String, BtfError> {
        self.string(self.word(id, 0)?)
    }

    /// The type that a pointer, variable or alias refers to.
    pub(crate) fn target(&self, id: u32) -> Result<u32, BtfError> {
        self.word(id, 2)
    }

    /// The type itself, behind all other names for it.
    pub(crate) fn resolve(&self, mut id: u32) -> Result<u32, BtfError> {
        for _ in 0..MAX_DEPTH {
            if id == 0 || self.kind(id)? != Kind::Alias {
                return Ok(id);
            }
            id = self.target(id)?;
        }
        damaged("BTF has a circle of types")
    }

    /// Bytes of a value of the type.
    pub(crate) fn size(&self, mut id: u32) -> Result<u32, BtfError> {
        let mut count: u32 = 1;
        for _ in 0..MAX_DEPTH {
            id = self.resolve(id)?;
            let size = match self.kind(id)? {
                Kind::Int | Kind::Struct | Kind::Union | Kind::Enum | Kind::DataSec => self.word(id, 2)?,
                Kind::Ptr => 8,
                Kind::Array => {
                    let Some(product) = count.checked_mul(self.word(id, 5)?) else {
                        return damaged("BTF has an array of more than 4 GiB");
                    };
                    count = product;
                    id = self.word(id, 3)?;
                    continue;
                }
                Kind::Func | Kind::Var | Kind::Alias | Kind::Other => {
                    return damaged(format!("BTF type {id} has no size"));
                }
            };
            return size.checked_mul(count).map_or_else(|| damaged("a BTF type of more than 4 GiB"), Ok);
        }
        damaged("BTF has a circle of types")
    }

    /// The number that a map definition writes as `int (*member)[NUMBER]`.
    pub(crate) fn encoded_number(&self, id: u32) -> Result<u32, BtfError> {
        let id = self.resolve(id)?;
        if self.kind(id)? != Kind::Ptr {
            return damaged("a number of a map definition is no pointer to an array");
        }
        let array = self.resolve(self.target(id)?)?;
        if array == 0 || self.kind(array)? != Kind::Array {
            return damaged("a number of a map definition is no pointer to an array");
        }
        self.word(array, 5)
    }

    /// The members of a structure.
    pub(crate) fn members(&self, id: u32) -> Result<Vec<Member>, BtfError> {
        let read = |n| {
            Ok(Member { name: self.string(self.word(id, 3 + 3 * n)?)?, type_id: self.word(id, 4 + 3 * n)? })
        };
        (0..self.count(id)?).map(read).collect()
    }

    /// The variables of a data section, in the order of the file. Functions in it (`.ksyms`) have size 0.
    pub(crate) fn variables(&self, id: u32) -> Result<Vec<Variable>, BtfError> {
        let read = |n| {
            let entry = self.word(id, 3 + 3 * n)?;
            Ok(Variable {
                name: self.name(entry)?,
                type_id: self.target(entry)?,
                offset: self.word(id, 4 + 3 * n)?,
                size: self.word(id, 5 + 3 * n)?,
            })
        };
        (0..self.count(id)?).map(read).collect()
    }

    /// Sets a data section's size and its variables' offsets (in the order of [`Btf::variables`]), and
    /// sorts its variables by offset, as the kernel wants them.
    pub(crate) fn place(&mut self, id: u32, size: u32, offsets: &[u32]) -> Result<(), BtfError> {
        let start = self.start(id)?;
        let count = self.count(id)?;
        let mut entries = Vec::new();
        for n in 0..count {
            let Some(offset) = offsets.get(n) else { return damaged("a data section without offsets") };
            entries.push([self.word(id, 3 + 3 * n)?, *offset, self.word(id, 5 + 3 * n)?]);
        }
        entries.sort_by_key(|entry| entry[1]);
        let words = std::iter::once(size).chain(entries.into_iter().flatten());
        let end = start + 12 + 12 * count;
        for (slot, word) in self.data[start + 8..end].chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }
}

fn kind_number(info: u32) -> u32 {
    (info >> 24) & 0x1f
}

/// Bytes of the type at the start of `data`.
fn type_bytes(data: &[u8]) -> Result<usize, BtfError> {
    let Some(info) = read_u32(data, 4) else { return damaged("BTF ends inside a type") };
    let count = (info & 0xffff) as usize;
    let rest = match kind_number(info) {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * count,
        6 | 13 => 8 * count,
        kind => return damaged(format!("BTF has a type of the unknown kind {kind}")),
    };
    if 12 + rest > data.len() { damaged("BTF ends inside a type") } else { Ok(12 + rest) }
}
