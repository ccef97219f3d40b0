//! The result as an object file, like those that pktc's compiler writes: with the functions that the program calls in
//! `.text`, as other compilers have them.

use std::ffi::CString;

use object::write::{Object, Relocation, SectionId, Symbol, SymbolFlags, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolKind, SymbolScope, elf,
};
use pktc_bpf::Section;
use pktc_object::Metadata;

use super::MergeError;
use super::body::Function;
use super::maps::MergedMap;
use super::types::Types;

/// Bytes of an instruction.
const SLOT: usize = 8;

pub(super) struct Parts<'a> {
    pub(super) body: Function,
    /// The functions that it calls.
    pub(super) functions: Vec<Function>,
    pub(super) frags: bool,
    pub(super) maps: &'a [MergedMap],
    pub(super) types: Types,
    pub(super) license: CString,
    pub(super) metadata: Option<Metadata>,
}

struct Writer {
    elf: Object<'static>,
    types: Types,
}

pub(super) fn write(parts: Parts<'_>) -> Result<Vec<u8>, MergeError> {
    let elf = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
    let mut writer = Writer { elf, types: parts.types };
    let (section, text_section) = (Section::of_programs(parts.frags).name(), Section::Text.name());
    let body = [parts.body];
    let (program, _) = writer.code(section, &body);
    let text = (!parts.functions.is_empty()).then(|| writer.code(text_section, &parts.functions));
    let maps = writer.maps(parts.maps);
    let json = parts.metadata.map(|metadata| metadata.to_json().into_bytes());
    if let Some(json) = &json {
        writer.data(".rodata", pktc_object::VARIABLE, terminated(json), true);
    }
    writer.section("license", SectionKind::Data, parts.license.into_bytes_with_nul(), 1);
    let functions: &[SymbolId] = text.as_ref().map_or(&[], |(.., symbols)| symbols);
    writer.relocate(program, &body, &maps, functions)?;
    let mut sections = vec![(section, &body[..])];
    if let Some((text, ..)) = &text {
        writer.relocate(*text, &parts.functions, &maps, functions)?;
        sections.push((text_section, &parts.functions));
    }
    let extension = extension(&mut writer.types, &sections);
    let types = std::mem::replace(&mut writer.types, Types::new()).finish();
    writer.section(".BTF", SectionKind::Other, types, 4);
    if let Some(extension) = extension {
        writer.section(".BTF.ext", SectionKind::Other, extension, 4);
    }
    if let Some(json) = json {
        let kind = SectionKind::Elf(elf::SHT_STRTAB);
        writer.section(pktc_object::SECTION, kind, terminated(&json), 1);
    }
    writer.elf.write().map_err(|error| MergeError::Elf(error.to_string()))
}

fn terminated(json: &[u8]) -> Vec<u8> {
    [json, &[0]].concat()
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
        start: usize,
        size: usize,
    ) -> SymbolId {
        self.elf.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value: start as u64,
            size: size as u64,
            kind,
            scope: SymbolScope::Dynamic,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        })
    }

    /// Functions one after the other, and a symbol for each.
    fn code(&mut self, name: &str, functions: &[Function]) -> (SectionId, Vec<SymbolId>) {
        let bytes = functions.iter().flat_map(|function| function.code.as_flattened()).copied().collect();
        let section = self.section(name, SectionKind::Text, bytes, SLOT as u64);
        let mut start = 0;
        let mut symbols = Vec::new();
        for function in functions {
            let size = function.code.len() * SLOT;
            symbols.push(self.symbol(&function.name, SymbolKind::Text, section, start, size));
            start += size;
        }
        (section, symbols)
    }

    /// A symbol for each map.
    fn maps(&mut self, maps: &[MergedMap]) -> Vec<SymbolId> {
        let declared: u32 = maps.iter().filter(|map| map.content.is_none()).map(|map| map.size).sum();
        let section = (declared > 0)
            .then(|| self.section(".maps", SectionKind::Data, vec![0; declared as usize], SLOT as u64));
        let mut variables = Vec::new();
        let mut symbols = Vec::new();
        let mut at = 0;
        for (n, map) in maps.iter().enumerate() {
            symbols.push(match (&map.content, section) {
                (None, Some(section)) => {
                    let variable = self.types.variable(&map.name, map.definition, true);
                    variables.push([variable, at, map.size]);
                    let symbol =
                        self.symbol(&map.name, SymbolKind::Data, section, at as usize, map.size as usize);
                    at += map.size;
                    symbol
                }
                (content, _) => {
                    let bytes = content.clone().unwrap_or_default();
                    let read_only = map.name.starts_with(".rodata");
                    self.data(&map.name, &format!("data_{n}"), bytes, read_only)
                }
            });
        }
        if section.is_some() {
            self.types.section(".maps", declared, &variables);
        }
        symbols
    }

    /// A section of data with one variable.
    fn data(&mut self, name: &str, variable: &str, bytes: Vec<u8>, read_only: bool) -> SymbolId {
        let size = bytes.len();
        let ty = self.types.array(size as u32, variable == pktc_object::VARIABLE);
        let described = self.types.variable(variable, ty, true);
        self.types.section(name, size as u32, &[[described, 0, size as u32]]);
        let kind = if read_only { SectionKind::ReadOnlyData } else { SectionKind::Data };
        let section = self.section(name, kind, bytes, SLOT as u64);
        self.symbol(variable, SymbolKind::Data, section, 0, size)
    }

    fn relocate(
        &mut self,
        section: SectionId,
        functions: &[Function],
        maps: &[SymbolId],
        called: &[SymbolId],
    ) -> Result<(), MergeError> {
        let mut start = 0;
        for function in functions {
            let references = function
                .references
                .iter()
                .map(|reference| (reference.slot, maps[reference.map], elf::R_BPF_64_64));
            let calls = function.calls.iter().map(|&(slot, callee)| {
                let is_call = function.code[slot][0] == 0x85;
                (slot, called[callee], if is_call { elf::R_BPF_64_32 } else { elf::R_BPF_64_64 })
            });
            for (slot, symbol, r_type) in references.chain(calls) {
                let offset = ((start + slot) * SLOT) as u64;
                let flags = RelocationFlags::Elf { r_type };
                let relocation = Relocation { offset, symbol, addend: 0, flags };
                let added = self.elf.add_relocation(section, relocation);
                added.map_err(|error| MergeError::Elf(error.to_string()))?;
            }
            start += function.code.len();
        }
        Ok(())
    }
}

/// The section `.BTF.ext`: the types of functions and the source lines, by section. `None`: there are none.
fn extension(types: &mut Types, sections: &[(&str, &[Function])]) -> Option<Vec<u8>> {
    let (mut functions_info, mut lines_info) = (vec![8], vec![16]);
    for (name, functions) in sections {
        let name = types.string(name);
        let (mut records, mut lines, mut start) = (Vec::new(), Vec::new(), 0);
        for function in *functions {
            records.push([(start * SLOT) as u32, function.ty]);
            let moved = |&[slot, file, text, column]: &[u32; 4]| {
                [((start + slot as usize) * SLOT) as u32, file, text, column]
            };
            lines.extend(function.lines.iter().map(moved));
            start += function.code.len();
        }
        if records.iter().any(|[_, ty]| *ty == 0) {
            return None;
        }
        functions_info.extend([name, records.len() as u32]);
        functions_info.extend(records.as_flattened());
        if !lines.is_empty() {
            lines_info.extend([name, lines.len() as u32]);
            lines_info.extend(lines.as_flattened());
        }
    }
    if lines_info.len() == 1 {
        lines_info.clear();
    }
    let (functions_bytes, lines_bytes) = (functions_info.len() as u32 * 4, lines_info.len() as u32 * 4);
    let end = functions_bytes + lines_bytes;
    let mut out = vec![0x9f, 0xeb, 1, 0];
    let header = [32, 0, functions_bytes, functions_bytes, lines_bytes, end, 0];
    let words = header.iter().chain(&functions_info).chain(&lines_info);
    out.extend(words.flat_map(|word| word.to_le_bytes()));
    Some(out)
}
