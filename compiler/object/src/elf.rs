//! The object file: an ELF for BPF (ET_REL, EM_BPF, little-endian, relocations without addends).
//!
//! | section | content |
//! |---|---|
//! | `xdp`, `xdp.frags` | the programs; each is a global function symbol with its size (libbpf refuses others) |
//! | `.text` | what they call; each is a local function symbol with its size |
//! | `.maps` | zeros, one global object symbol a map; what it is stands in `.BTF` |
//! | `.rodata`, `.rodata.N` | one global object symbol each |
//! | `.xdp_run_config` | zeros, one global object symbol a program that says how it takes part in a dispatcher |
//! | `license` | "Dual MIT/GPL" |
//! | `.BTF`, `.BTF.ext` | types and source lines |
//! | `.pktc` | the metadata; not loaded |
//!
//! Symbols are global because libbpf from 1.1.2 on wants one for each global variable of the BTF.

use std::collections::HashMap;

use object::write::{Object, Relocation, SectionId, Symbol, SymbolFlags, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolKind, SymbolScope, elf,
};
use pktc_bpf::{MapIndex, Section, SubprogramIndex, Target};

use crate::code::CodeSection;
use crate::data::DataSection;
use crate::run_config::RunConfig;
use crate::types::DeclaredMap;
use crate::{ObjectError, metadata, run_config};

/// Compatible with the GPL, which some of the kernel's functions ask for.
const LICENSE: &[u8] = b"Dual MIT/GPL\0";

/// All parts of an object.
pub(crate) struct Parts<'a> {
    pub(crate) code: &'a [CodeSection],
    pub(crate) data: &'a [DataSection],
    pub(crate) maps: &'a [DeclaredMap],
    pub(crate) run_configs: &'a [RunConfig],
    pub(crate) btf: Vec<u8>,
    pub(crate) btf_ext: Vec<u8>,
    pub(crate) metadata: Vec<u8>,
}

/// Puts the parts together.
pub(crate) fn write(parts: Parts<'_>) -> Result<Vec<u8>, ObjectError> {
    let mut writer = Writer {
        elf: Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little),
        maps: HashMap::new(),
        subprograms: HashMap::new(),
    };
    let code: Vec<SectionId> = parts.code.iter().map(|section| writer.code(section)).collect();
    writer.maps(parts.maps);
    writer.run_configs(parts.run_configs);
    for section in parts.data {
        writer.data(section);
    }
    writer.section("license", SectionKind::Data, LICENSE.to_vec(), 1);
    writer.section(".BTF", SectionKind::Other, parts.btf, 4);
    writer.section(".BTF.ext", SectionKind::Other, parts.btf_ext, 4);
    // A string table, which the document is: libbpf passes by those in silence, and notes any other kind.
    writer.section(metadata::SECTION, SectionKind::Elf(elf::SHT_STRTAB), parts.metadata, 1);
    for (section, id) in parts.code.iter().zip(code) {
        writer.relocate(section, id)?;
    }
    writer.elf.write().map_err(|error| ObjectError::Elf(error.to_string()))
}

struct Writer {
    elf: Object<'static>,
    /// The symbol that stands for each map.
    maps: HashMap<MapIndex, SymbolId>,
    /// The symbol of each subprogram.
    subprograms: HashMap<SubprogramIndex, SymbolId>,
}

impl Writer {
    fn section(&mut self, name: &str, kind: SectionKind, bytes: Vec<u8>, align: u64) -> SectionId {
        let id = self.elf.add_section(Vec::new(), name.as_bytes().to_vec(), kind);
        self.elf.section_mut(id).set_data(bytes, align);
        id
    }

    fn symbol(
        &mut self,
        name: &str,
        kind: SymbolKind,
        section: SectionId,
        start: u64,
        size: u64,
    ) -> SymbolId {
        self.elf.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value: start,
            size,
            kind,
            scope: SymbolScope::Dynamic,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        })
    }

    fn code(&mut self, section: &CodeSection) -> SectionId {
        let id = self.section(section.section.name(), SectionKind::Text, section.bytes.clone(), 8);
        for (index, function) in section.functions.iter().enumerate() {
            let (start, size) = (function.offset as u64, function.size as u64);
            let symbol = self.symbol(&function.name, SymbolKind::Text, id, start, size);
            if section.section == Section::Text {
                // A global one would be verified by itself, for any arguments.
                self.elf.symbol_mut(symbol).scope = SymbolScope::Compilation;
                self.subprograms.insert(SubprogramIndex(index as u32), symbol);
            }
        }
        id
    }

    fn maps(&mut self, maps: &[DeclaredMap]) {
        let Some(last) = maps.last() else { return };
        let zeros = vec![0; (last.offset + last.size) as usize];
        let id = self.section(".maps", SectionKind::Data, zeros, 8);
        for map in maps {
            let symbol = self.symbol(&map.name, SymbolKind::Data, id, map.offset.into(), map.size.into());
            self.maps.insert(map.map, symbol);
        }
    }

    fn run_configs(&mut self, configs: &[RunConfig]) {
        let Some(last) = configs.last() else { return };
        let zeros = vec![0; (last.offset + last.size) as usize];
        let id = self.section(run_config::SECTION, SectionKind::Data, zeros, 8);
        for config in configs {
            self.symbol(&config.name, SymbolKind::Data, id, config.offset.into(), config.size.into());
        }
    }

    fn data(&mut self, section: &DataSection) {
        let id = self.section(&section.name, SectionKind::ReadOnlyData, section.bytes.clone(), 8);
        let size = section.bytes.len() as u64;
        let symbol = self.symbol(&section.variable, SymbolKind::Data, id, 0, size);
        if let Some(map) = section.map {
            self.maps.insert(map, symbol);
        }
    }

    fn relocate(&mut self, section: &CodeSection, id: SectionId) -> Result<(), ObjectError> {
        for relocation in &section.relocations {
            let (symbol, r_type) = match relocation.target {
                Target::Map(map) | Target::MapValue(map) => (self.maps[&map], elf::R_BPF_64_64),
                Target::Subprogram(callee) => (self.subprograms[&callee], elf::R_BPF_64_32),
            };
            let flags = RelocationFlags::Elf { r_type };
            let relocation = Relocation { offset: relocation.offset as u64, symbol, addend: 0, flags };
            self.elf.add_relocation(id, relocation).map_err(|error| ObjectError::Elf(error.to_string()))?;
        }
        Ok(())
    }
}
