//! Writing BTF.
//!
//! A type is one record; equal records are stored once, so callers ask for `int` or for an array type wherever
//! they need it. Types are numbered in the order in which they are first asked for, strings likewise: the same
//! calls give the same bytes.

use std::collections::HashMap;

use super::{HEADER_BYTES, Kind, MAGIC, VERSION};

/// A type of one [`Encoder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeId(pub(crate) u32);

impl TypeId {
    /// `void`, which has no record.
    const VOID: TypeId = TypeId(0);
}

/// A member of a structure.
pub(crate) struct Member<'a> {
    pub(crate) name: &'a str,
    pub(crate) ty: TypeId,
    /// Bytes from the structure's start.
    pub(crate) offset: u32,
}

/// A variable in a section.
pub(crate) struct Variable {
    pub(crate) ty: TypeId,
    /// Bytes from the section's start.
    pub(crate) offset: u32,
    /// Bytes.
    pub(crate) size: u32,
}

/// Linkage of variables and functions: `BTF_VAR_GLOBAL_ALLOCATED` and `BTF_FUNC_GLOBAL`. libbpf wants an ELF
/// symbol with global binding for each of them.
const GLOBAL: u32 = 1;
/// `BTF_FUNC_STATIC`
const STATIC: u32 = 0;
/// `BTF_INT_SIGNED`
const SIGNED: u32 = 1;

/// Types and strings in the making.
#[derive(Default)]
pub(crate) struct Encoder {
    types: Vec<u8>,
    ids: HashMap<Vec<u32>, TypeId>,
    strings: Vec<u8>,
    offsets: HashMap<String, u32>,
}

impl Encoder {
    /// An encoder that knows `void` and the empty string.
    pub(crate) fn new() -> Self {
        Encoder { strings: vec![0], offsets: HashMap::from([(String::new(), 0)]), ..Encoder::default() }
    }

    /// The offset of `text` in the string table. A string ends at its first NUL.
    pub(crate) fn string(&mut self, text: &str) -> u32 {
        let text = text.split('\0').next().unwrap_or_default();
        if let Some(&offset) = self.offsets.get(text) {
            return offset;
        }
        let offset = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        self.offsets.insert(text.to_owned(), offset);
        offset
    }

    /// A C integer type: `unsigned int`, 4 bytes.
    pub(crate) fn unsigned(&mut self, name: &str, bytes: u32) -> TypeId {
        self.int(name, bytes, 0)
    }

    /// `int`
    pub(crate) fn signed_int(&mut self) -> TypeId {
        self.int("int", 4, SIGNED)
    }

    /// `char`, which tools print as text.
    pub(crate) fn char(&mut self) -> TypeId {
        self.int("char", 1, SIGNED)
    }

    fn int(&mut self, name: &str, bytes: u32, encoding: u32) -> TypeId {
        let name = self.string(name);
        self.add(Kind::Int, name, 0, bytes, &[(encoding << 24) | (bytes * 8)])
    }

    /// A pointer to `target`.
    pub(crate) fn pointer(&mut self, target: TypeId) -> TypeId {
        self.add(Kind::Ptr, 0, 0, target.0, &[])
    }

    /// `const target`
    pub(crate) fn constant(&mut self, target: TypeId) -> TypeId {
        self.add(Kind::Const, 0, 0, target.0, &[])
    }

    /// `length` times `element`.
    pub(crate) fn array(&mut self, element: TypeId, length: u32) -> TypeId {
        let index = self.unsigned("__ARRAY_SIZE_TYPE__", 4);
        self.add(Kind::Array, 0, 0, 0, &[element.0, index.0, length])
    }

    /// A structure of `bytes` bytes; without a name if that is empty.
    pub(crate) fn structure(&mut self, name: &str, bytes: u32, members: &[Member<'_>]) -> TypeId {
        let name = self.string(name);
        let mut tail = Vec::with_capacity(members.len() * 3);
        for member in members {
            tail.extend([self.string(member.name), member.ty.0, member.offset * 8]);
        }
        self.add(Kind::Struct, name, members.len() as u32, bytes, &tail)
    }

    /// The function `name`, linked globally, which takes `argument` and returns `result`.
    pub(crate) fn function(&mut self, name: &str, argument: (&str, TypeId), result: TypeId) -> TypeId {
        self.any_function(name, GLOBAL, &[argument], result)
    }

    /// The function `name`, which only its object knows, from `arguments` to `result`.
    pub(crate) fn static_function(
        &mut self,
        name: &str,
        arguments: &[(&str, TypeId)],
        result: TypeId,
    ) -> TypeId {
        self.any_function(name, STATIC, arguments, result)
    }

    fn any_function(
        &mut self,
        name: &str,
        linkage: u32,
        arguments: &[(&str, TypeId)],
        result: TypeId,
    ) -> TypeId {
        let tail: Vec<u32> = arguments.iter().flat_map(|(name, ty)| [self.string(name), ty.0]).collect();
        let proto = self.add(Kind::FuncProto, 0, arguments.len() as u32, result.0, &tail);
        let name = self.string(name);
        self.add(Kind::Func, name, linkage, proto.0, &[])
    }

    /// The global variable `name`.
    pub(crate) fn variable(&mut self, name: &str, ty: TypeId) -> TypeId {
        let name = self.string(name);
        self.add(Kind::Var, name, 0, ty.0, &[GLOBAL])
    }

    /// The section `name` of `bytes` bytes with its variables in order of their offsets.
    pub(crate) fn section(&mut self, name: &str, bytes: u32, variables: &[Variable]) -> TypeId {
        let name = self.string(name);
        let tail: Vec<u32> =
            variables.iter().flat_map(|variable| [variable.ty.0, variable.offset, variable.size]).collect();
        self.add(Kind::Datasec, name, variables.len() as u32, bytes, &tail)
    }

    /// Adds `struct btf_type` {name, info, size or type} and what follows it, unless it is there already.
    fn add(&mut self, kind: Kind, name: u32, vlen: u32, size_or_type: u32, tail: &[u32]) -> TypeId {
        let mut record = vec![name, (kind as u32) << 24 | vlen, size_or_type];
        record.extend_from_slice(tail);
        if let Some(&id) = self.ids.get(&record) {
            return id;
        }
        self.types.extend(record.iter().flat_map(|word| word.to_le_bytes()));
        let id = TypeId(TypeId::VOID.0 + 1 + self.ids.len() as u32);
        self.ids.insert(record, id);
        id
    }

    /// The section `.BTF`.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES as usize + self.types.len() + self.strings.len());
        out.extend(MAGIC.to_le_bytes());
        out.extend([VERSION, 0]);
        let types = self.types.len() as u32;
        for word in [HEADER_BYTES, 0, types, types, self.strings.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(self.types);
        out.extend(self.strings);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_types_and_strings_are_stored_once() {
        let mut btf = Encoder::new();
        let first = btf.unsigned("unsigned int", 4);
        let pointer = btf.pointer(first);
        assert_eq!(btf.unsigned("unsigned int", 4), first);
        assert_eq!(btf.pointer(first), pointer);
        assert_eq!((first.0, pointer.0), (1, 2));
    }

    #[test]
    fn a_small_section_byte_for_byte() {
        let mut btf = Encoder::new();
        let int = btf.unsigned("u", 4);
        btf.pointer(int);
        let words = [
            0x0001_eb9f,
            24, // header
            0,
            16 + 12,
            16 + 12,
            3,
            1, // name "u", INT, 4 bytes, 32 bits unsigned
            1 << 24,
            4,
            32,
            0, // PTR to type 1
            2 << 24,
            1,
        ];
        let mut expected: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        expected.extend(b"\0u\0");
        assert_eq!(btf.finish(), expected);
    }

    #[test]
    fn a_string_ends_at_its_first_nul() {
        let mut btf = Encoder::new();
        assert_eq!(btf.string("a\0b"), btf.string("a"));
    }
}
