//! What the object declares, as BTF: a function type a program, a map definition a map, a variable a piece of
//! read-only data.
//!
//! libbpf's map definitions are structures whose members' *types* say the value: `max_entries` is a pointer to an
//! array with that many elements, `key` a pointer to the key's type (libbpf, `parse_btf_map_def`). Loaders read
//! nothing but the types; the section `.maps` itself is zeros.

use pktc_bpf::{MapDef, MapIndex, MapKind, Section, ValueLayout};
use pktc_codegen::module::Module;

use crate::btf::{Encoder, Member, TypeId, Variable};
use crate::code::{CodeSection, Function};
use crate::data::DataSection;

/// Bytes of a member of a map definition: a pointer.
pub(crate) const POINTER: u32 = 8;

/// A map in the section `.maps`.
pub(crate) struct DeclaredMap {
    pub(crate) map: MapIndex,
    pub(crate) name: String,
    /// Bytes from the section's start.
    pub(crate) offset: u32,
    /// Bytes.
    pub(crate) size: u32,
}

/// The types of everything in the object.
pub(crate) struct Described {
    pub(crate) btf: Encoder,
    /// The type of each function, by section and function.
    pub(crate) functions: Vec<Vec<TypeId>>,
    pub(crate) maps: Vec<DeclaredMap>,
}

/// Describes programs, maps and data.
pub(crate) fn describe(module: &Module, code: &[CodeSection], data: &[DataSection]) -> Described {
    let mut btf = Encoder::new();
    let context = context(&mut btf);
    let int = btf.signed_int();
    let functions = code
        .iter()
        .map(|code| {
            let functions = code.functions.iter();
            functions.map(|function| function_type(&mut btf, code.section, function, context, int)).collect()
        })
        .collect();
    let maps = maps(&mut btf, module);
    for section in data {
        variable(&mut btf, section);
    }
    Described { btf, functions, maps }
}

/// The type of a function. Of what a subprogram is called with the kernel makes nothing but the context.
fn function_type(
    btf: &mut Encoder,
    section: Section,
    function: &Function,
    context: TypeId,
    result: TypeId,
) -> TypeId {
    if section != Section::Text {
        return btf.function(&function.name, ("ctx", context), result);
    }
    const NAMES: [&str; 5] = ["ctx", "second", "third", "fourth", "fifth"];
    let number = btf.unsigned("unsigned long long", 8);
    let types = std::iter::once(context).chain(std::iter::repeat(number));
    let arguments: Vec<_> = std::iter::zip(NAMES, types).take(function.params.into()).collect();
    btf.static_function(&function.name, &arguments, result)
}

/// `struct xdp_md *` (`include/uapi/linux/bpf.h`; the last member came in 5.8).
pub(crate) fn context(btf: &mut Encoder) -> TypeId {
    const MEMBERS: [&str; 6] =
        ["data", "data_end", "data_meta", "ingress_ifindex", "rx_queue_index", "egress_ifindex"];
    let u32 = btf.unsigned("unsigned int", 4);
    let members: Vec<Member<'_>> =
        MEMBERS.iter().zip(0..).map(|(name, index)| Member { name, ty: u32, offset: index * 4 }).collect();
    let context = btf.structure("xdp_md", MEMBERS.len() as u32 * 4, &members);
    btf.pointer(context)
}

/// A read-only variable: text for the metadata, bytes for all else.
fn variable(btf: &mut Encoder, section: &DataSection) {
    let size = section.bytes.len() as u32;
    let element = if section.map.is_none() { btf.char() } else { btf.unsigned("unsigned char", 1) };
    let array = btf.array(element, size);
    let constant = btf.constant(array);
    let variable = btf.variable(&section.variable, constant);
    btf.section(&section.name, size, &[Variable { ty: variable, offset: 0, size }]);
}

/// The module's maps that have no content of their own, in the section `.maps`.
fn maps(btf: &mut Encoder, module: &Module) -> Vec<DeclaredMap> {
    let mut declared = Vec::new();
    let mut variables = Vec::new();
    let mut offset = 0;
    for (index, map) in module.maps.iter().enumerate().filter(|(_, map)| map.content.is_none()) {
        let (definition, size) = definition(btf, map);
        let ty = btf.variable(&map.name, definition);
        variables.push(Variable { ty, offset, size });
        declared.push(DeclaredMap { map: MapIndex(index as u32), name: map.name.clone(), offset, size });
        offset += size;
    }
    if !variables.is_empty() {
        btf.section(".maps", offset, &variables);
    }
    declared
}

/// The structure that defines `map`, and its bytes.
fn definition(btf: &mut Encoder, map: &MapDef) -> (TypeId, u32) {
    let mut types = vec![("type", number(btf, map.kind as u32))];
    let key = key(btf, map);
    types.push(("key", btf.pointer(key)));
    let value = value(btf, map);
    types.push(("value", btf.pointer(value)));
    types.push(("max_entries", number(btf, map.max_entries)));
    if map.flags != 0 {
        types.push(("map_flags", number(btf, map.flags)));
    }
    let members: Vec<Member<'_>> = types
        .iter()
        .zip(0..)
        .map(|(&(name, ty), index)| Member { name, ty, offset: index * POINTER })
        .collect();
    let bytes = members.len() as u32 * POINTER;
    (btf.structure("", bytes, &members), bytes)
}

/// A number, as map definitions write it: `int (*)[number]`.
pub(crate) fn number(btf: &mut Encoder, number: u32) -> TypeId {
    let int = btf.signed_int();
    let array = btf.array(int, number);
    btf.pointer(array)
}

/// The key's type. The kernel insists on a 32-bit integer for arrays (`array_map_check_btf`) and on a structure
/// for tries (`trie_check_btf`).
fn key(btf: &mut Encoder, map: &MapDef) -> TypeId {
    let byte = btf.unsigned("unsigned char", 1);
    let u32 = btf.unsigned("unsigned int", 4);
    match map.kind {
        MapKind::Array | MapKind::PerCpuArray => u32,
        MapKind::Hash | MapKind::LruHash => btf.array(byte, map.key_size),
        MapKind::LpmTrie => {
            let data = btf.array(byte, map.key_size.saturating_sub(4));
            let members = [
                Member { name: "prefixlen", ty: u32, offset: 0 },
                Member { name: "data", ty: data, offset: 4 },
            ];
            btf.structure(&format!("{}_key", map.name), map.key_size, &members)
        }
    }
}

fn value(btf: &mut Encoder, map: &MapDef) -> TypeId {
    match &map.layout {
        ValueLayout::Bytes => {
            let byte = btf.unsigned("unsigned char", 1);
            btf.array(byte, map.value_size)
        }
        ValueLayout::U64s(names) => {
            let u64 = btf.unsigned("unsigned long long", 8);
            let members: Vec<Member<'_>> = names
                .iter()
                .zip(0..)
                .map(|(name, index)| Member { name, ty: u64, offset: index * 8 })
                .collect();
            btf.structure(&format!("{}_value", map.name), map.value_size, &members)
        }
    }
}
