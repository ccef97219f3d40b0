//! Objects, ours or clang's, to instructions and maps.
//!
//! aya-obj parses and relocates; the file descriptor that it writes for a map is the map's index here.

use std::collections::HashSet;
use std::os::fd::RawFd;

use aya_obj::generated::bpf_insn;
use aya_obj::{Map as ObjectMap, Object};
use pktc_bpf::{Insn, MapKind, Reg, decode};

use super::fault::VmError;
use super::map::{Definition, Map, READ_ONLY};

/// Where an ELF file says which byte order it has, and how it says little-endian (`EI_DATA`, `ELFDATA2LSB`).
const BYTE_ORDER: usize = 5;
const BIG: u8 = 2;

/// What an object gives.
pub(super) struct Loaded {
    /// The program, its subprograms behind it.
    pub(super) insns: Vec<Insn<Reg, i32>>,
    /// All maps of the object.
    pub(super) maps: Vec<Map>,
}

/// Takes `program` from an object.
pub(super) fn load(bytes: &[u8], program: &str) -> Result<Loaded, VmError> {
    if bytes.get(BYTE_ORDER) == Some(&BIG) {
        return Err(VmError::BigEndian);
    }
    let mut object = Object::parse(bytes).map_err(|error| VmError::Object(with_causes(&error)))?;
    if object.has_btf_relocations() {
        return Err(VmError::KernelTypes);
    }
    let key = match object.programs.get(program) {
        Some(program) => program.function_key(),
        None => {
            let mut present: Vec<String> = object.programs.keys().cloned().collect();
            present.sort();
            return Err(VmError::NoProgram { wanted: program.into(), present });
        }
    };
    let mut declared: Vec<(String, ObjectMap)> = object.maps.drain().collect();
    declared.sort_by(|left, right| left.0.cmp(&right.0));
    relocate(&mut object, &declared)?;
    let code: Vec<u8> = object.functions[&key].instructions.iter().flat_map(slot_bytes).collect();
    let insns = decode(&code).map_err(VmError::Decode)?;
    let maps = declared.iter().map(|(name, map)| make_map(name, map)).collect::<Result<_, _>>()?;
    Ok(Loaded { insns, maps })
}

fn relocate(object: &mut Object, maps: &[(String, ObjectMap)]) -> Result<(), VmError> {
    let text: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    let numbered = maps.iter().enumerate().map(|(index, (name, map))| (&**name, index as RawFd, map));
    let maps = object.relocate_maps(numbered, &text);
    maps.and_then(|()| object.relocate_calls(&text)).map_err(|error| VmError::Object(with_causes(&error)))
}

fn slot_bytes(insn: &bpf_insn) -> [u8; 8] {
    let [o0, o1] = insn.off.to_le_bytes();
    let [i0, i1, i2, i3] = insn.imm.to_le_bytes();
    [insn.code, insn.dst_reg() | insn.src_reg() << 4, o0, o1, i0, i1, i2, i3]
}

fn make_map(name: &str, map: &ObjectMap) -> Result<Map, VmError> {
    let refuse = |reason| VmError::Map { name: name.into(), reason };
    let kind = MapKind::from_number(map.map_type())
        .ok_or_else(|| refuse("the userspace engine has no maps of its type"))?;
    let definition = Definition {
        name: name.into(),
        kind,
        key_size: map.key_size() as usize,
        value_size: map.value_size() as usize,
        max_entries: map.max_entries(),
        flags: map.map_flags(),
    };
    Map::new(definition, Some(map.data()).filter(|data| !data.is_empty()))
}

/// The map of a module, which may be read-only content.
pub(super) fn declared_map(def: &pktc_bpf::MapDef) -> Result<Map, VmError> {
    let definition = Definition {
        name: def.name.clone(),
        kind: def.kind,
        key_size: def.key_size as usize,
        value_size: def.value_size as usize,
        max_entries: def.max_entries,
        flags: if def.content.is_some() { def.flags | READ_ONLY } else { def.flags },
    };
    Map::new(definition, def.content.as_deref())
}

/// An error with what caused it, which aya-obj keeps apart.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
