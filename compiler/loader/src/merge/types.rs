//! The types of several objects in one BTF: all records of each, moved behind those of the objects before it. What names
//! variables and sections is left out and made anew for the sections of the result.

use crate::btf::{Btf, BtfError};

/// `BTF_KIND_…`
const INT: u32 = 1;
const ARRAY: u32 = 3;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;

/// Types in the making.
pub(super) struct Types {
    records: Vec<u32>,
    strings: Vec<u8>,
    /// Where each type is in `records`; `void` is nowhere.
    starts: Vec<usize>,
}

/// Where an object's types and strings are in the result.
#[derive(Default)]
pub(super) struct Moved {
    /// By the type's old number; 0: left out.
    types: Vec<u32>,
    strings: u32,
}

impl Moved {
    pub(super) fn ty(&self, id: u32) -> u32 {
        self.types.get(id as usize).copied().unwrap_or(0)
    }

    pub(super) fn string(&self, offset: u32) -> u32 {
        // The empty string is the same for all.
        if offset == 0 { 0 } else { offset.saturating_add(self.strings) }
    }
}

impl Types {
    pub(super) fn new() -> Self {
        Types { records: Vec::new(), strings: vec![0], starts: vec![0] }
    }

    pub(super) fn string(&mut self, text: &str) -> u32 {
        let offset = self.strings.len() as u32;
        self.strings.extend(text.as_bytes());
        self.strings.push(0);
        offset
    }

    /// Appends a record: its name, kind and number of parts, size or type, and what follows.
    fn add(&mut self, name: u32, kind: u32, parts: u32, size_or_type: u32, tail: &[u32]) -> u32 {
        self.starts.push(self.records.len());
        self.records.extend([name, kind << 24 | parts, size_or_type]);
        self.records.extend(tail);
        self.starts.len() as u32 - 1
    }

    /// Appends all types of an object but variables, sections and tags.
    pub(super) fn append(&mut self, btf: &Btf) -> Result<Moved, BtfError> {
        let mut moved = Moved { types: vec![0], strings: self.strings.len() as u32 };
        self.strings.extend(btf.strings());
        let kept = |kind| ![VAR, DATASEC, DECL_TAG].contains(&kind);
        let mut next = self.starts.len() as u32;
        for id in btf.ids() {
            let is_kept = kept(kind(btf.record(id)?[1]));
            moved.types.push(if is_kept { next } else { 0 });
            next += u32::from(is_kept);
        }
        for id in btf.ids() {
            let mut record = btf.record(id)?;
            if kept(kind(record[1])) {
                relocate(&mut record, &moved);
                self.starts.push(self.records.len());
                self.records.extend(record);
            }
        }
        Ok(moved)
    }

    /// A function of the same arguments and result as function `like`, under another name; 0, as for `like`: none.
    pub(super) fn like(&mut self, like: u32, name: &str) -> u32 {
        const FUNC: u32 = 12;
        const GLOBAL: u32 = 1;
        let Some(start) = self.starts.get(like as usize).filter(|_| like != 0) else { return 0 };
        let prototype = self.records[start + 2];
        let name = self.string(name);
        self.add(name, FUNC, GLOBAL, prototype, &[])
    }

    /// A variable; `global` ones need a symbol of that name.
    pub(super) fn variable(&mut self, name: &str, ty: u32, global: bool) -> u32 {
        let name = self.string(name);
        self.add(name, VAR, 0, ty, &[u32::from(global)])
    }

    /// So many bytes, or characters.
    pub(super) fn array(&mut self, count: u32, is_text: bool) -> u32 {
        const SIGNED: u32 = 1 << 24;
        let (name, encoding) = if is_text { ("char", SIGNED | 8) } else { ("unsigned char", 8) };
        let (element, index) = (self.string(name), self.string("__ARRAY_SIZE_TYPE__"));
        let element = self.add(element, INT, 0, 1, &[encoding]);
        let index = self.add(index, INT, 0, 4, &[32]);
        self.add(0, ARRAY, 0, 0, &[element, index, count])
    }

    /// A section with variables: type, offset, size of each.
    pub(super) fn section(&mut self, name: &str, size: u32, variables: &[[u32; 3]]) {
        let name = self.string(name);
        self.add(name, DATASEC, variables.len() as u32, size, variables.as_flattened());
    }

    /// The section `.BTF`.
    pub(super) fn finish(self) -> Vec<u8> {
        let types = self.records.len() as u32 * 4;
        let mut out = vec![0x9f, 0xeb, 1, 0];
        let header = [24, 0, types, types, self.strings.len() as u32];
        out.extend(header.iter().chain(&self.records).flat_map(|word| word.to_le_bytes()));
        out.extend(self.strings);
        out
    }
}

fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// Puts the new numbers of types and places of strings into a record.
fn relocate(record: &mut [u32], moved: &Moved) {
    let kind = kind(record[1]);
    record[0] = moved.string(record[0]);
    let (head, tail) = record.split_at_mut(3);
    // Pointer, typedef, volatile, const, restrict, function, prototype, type tag.
    if matches!(kind, 2 | 8..=13 | 18) {
        head[2] = moved.ty(head[2]);
    }
    match kind {
        ARRAY => {
            tail[0] = moved.ty(tail[0]);
            tail[1] = moved.ty(tail[1]);
        }
        // Structure and union: name, type, offset.
        4 | 5 => tail.as_chunks_mut::<3>().0.iter_mut().for_each(|member| {
            member[0] = moved.string(member[0]);
            member[1] = moved.ty(member[1]);
        }),
        // Enumerations: name, value.
        6 => tail.as_chunks_mut::<2>().0.iter_mut().for_each(|member| member[0] = moved.string(member[0])),
        19 => tail.as_chunks_mut::<3>().0.iter_mut().for_each(|member| member[0] = moved.string(member[0])),
        // Prototype: name, type.
        13 => tail.as_chunks_mut::<2>().0.iter_mut().for_each(|argument| {
            argument[0] = moved.string(argument[0]);
            argument[1] = moved.ty(argument[1]);
        }),
        _ => {}
    }
}
