//! An object file as the loader sees it: programs, maps, types; nothing of it is believed unchecked.
//!
//! The file is read here rather than by `aya-obj`, which indexes by what the file says (a damaged file would
//! end a build that aborts on panics) and keeps the data sections of BTF to itself, where the metadata is.

use std::ffi::CString;
use std::fmt;

use object::elf::{EM_BPF, ET_REL};
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{LittleEndian, Object as _, ObjectSection as _, SectionFlags, SectionIndex};

use crate::btf::{Btf, BtfError, Kind};
use crate::extension::Extension;
use crate::link::{Linker, Program};

/// `BPF_MAP_TYPE_ARRAY`
const ARRAY: u32 = 2;
/// `BPF_F_RDONLY_PROG`: programs only read it (5.2).
const READ_ONLY: u32 = 128;

/// Why an object cannot be loaded, before the kernel is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// Not an ELF file of 64 bits.
    NotElf,
    /// An ELF file for something else, by its machine number.
    NotBpf(u16),
    /// Linked, or a library, by its ELF type.
    NotRelocatable(u16),
    /// For big-endian machines.
    BigEndian,
    /// What in it is wrong.
    Damaged(String),
    /// What it uses that this loader does not know.
    Unsupported(String),
    /// No program in `xdp` or `xdp.frags`; the sections with code that there are.
    NoProgram(Vec<String>),
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::NotElf => {
                f.write_str("this is no 64-bit ELF object; expected what `pktc build` writes")
            }
            ObjectError::NotBpf(machine) => {
                write!(f, "this ELF file is for machine {machine}, not for BPF ({})", EM_BPF)
            }
            ObjectError::NotRelocatable(kind) => {
                write!(f, "this ELF file is of type {kind}, not a relocatable object")
            }
            ObjectError::BigEndian => f.write_str(
                "this BPF object is big-endian; only little-endian objects and machines are supported",
            ),
            ObjectError::Damaged(what) => write!(f, "the object is damaged: {what}; build it again"),
            ObjectError::Unsupported(what) => {
                write!(f, "the object uses what this loader does not know: {what}")
            }
            ObjectError::NoProgram(sections) if sections.is_empty() => {
                f.write_str("the object holds no code, so no XDP program")
            }
            ObjectError::NoProgram(sections) => write!(
                f,
                "the object holds no XDP program: its code is in {}, and XDP programs are in `xdp` or `xdp.frags`",
                sections.iter().map(|section| format!("`{section}`")).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

impl std::error::Error for ObjectError {}

impl From<object::Error> for ObjectError {
    fn from(error: object::Error) -> Self {
        ObjectError::Damaged(error.to_string())
    }
}

impl From<BtfError> for ObjectError {
    fn from(error: BtfError) -> Self {
        ObjectError::Damaged(error.to_string())
    }
}

pub(crate) fn damaged<T>(what: impl Into<String>) -> Result<T, ObjectError> {
    Err(ObjectError::Damaged(what.into()))
}

pub(crate) type Elf<'a> = ElfFile64<'a, LittleEndian>;

/// A map that the object declares, or a section of data, which becomes an array of one element.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapImage {
    /// The variable, or the section.
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    pub(crate) max_entries: u32,
    pub(crate) flags: u32,
    /// Types of key and value in the object's BTF; 0: none.
    pub(crate) types: (u32, u32),
    /// What it holds at the start, if it is a section of data.
    pub(crate) content: Option<Vec<u8>>,
    /// The section of data.
    pub(crate) section: Option<SectionIndex>,
}

impl MapImage {
    /// Whether it is frozen once filled.
    pub(crate) fn is_constant(&self) -> bool {
        self.content.is_some() && self.flags & READ_ONLY != 0
    }
}

/// A checked object.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) license: CString,
    pub(crate) programs: Vec<Program>,
    pub(crate) maps: Vec<MapImage>,
    pub(crate) btf: Option<Btf>,
}

impl Image {
    /// Reads and checks an object.
    pub(crate) fn parse(data: &[u8]) -> Result<Self, ObjectError> {
        check_identity(data)?;
        let elf = Elf::parse(data)?;
        check_header(&elf)?;
        let mut btf = section_data(&elf, ".BTF")?.map(|data| Btf::parse(data.to_vec())).transpose()?;
        if let Some(btf) = &mut btf {
            place_variables(btf, &elf)?;
        }
        let maps = find_maps(&elf, btf.as_ref())?;
        let extension = find_extension(&elf, btf.as_ref())?;
        let programs = Linker::new(&elf, &maps, &extension, btf.as_ref())?.programs()?;
        if programs.is_empty() {
            return Err(ObjectError::NoProgram(code_sections(&elf)?));
        }
        Ok(Image { license: find_license(&elf)?, programs, maps, btf })
    }
}

/// Looks at the identification only, so that each kind of wrong file gets its own answer.
fn check_identity(data: &[u8]) -> Result<(), ObjectError> {
    let (Some(b"\x7fELF"), Some([class, order])) = (data.get(..4), data.get(4..6)) else {
        return Err(ObjectError::NotElf);
    };
    match (class, order) {
        (2, 1) => Ok(()),
        // Only a BPF object is worth the word "big-endian".
        (2, 2) if data.get(18..20) == Some(&EM_BPF.to_be_bytes()) => Err(ObjectError::BigEndian),
        (2, 2) => Err(ObjectError::NotBpf(data.get(18..20).map_or(0, |m| u16::from_be_bytes([m[0], m[1]])))),
        _ => Err(ObjectError::NotElf),
    }
}

fn check_header(elf: &Elf<'_>) -> Result<(), ObjectError> {
    let header = elf.elf_header();
    let (machine, kind) = (header.e_machine(LittleEndian), header.e_type(LittleEndian));
    if machine != EM_BPF {
        return Err(ObjectError::NotBpf(machine));
    }
    if kind != ET_REL {
        return Err(ObjectError::NotRelocatable(kind));
    }
    Ok(())
}

fn section_data<'a>(elf: &Elf<'a>, name: &str) -> Result<Option<&'a [u8]>, ObjectError> {
    Ok(elf.section_by_name(name).map(|section| section.data()).transpose()?)
}

/// Whether a section's flags say that it is code.
pub(crate) fn is_code(flags: SectionFlags) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = flags else { return false };
    sh_flags & u64::from(object::elf::SHF_EXECINSTR) != 0
}

fn code_sections(elf: &Elf<'_>) -> Result<Vec<String>, ObjectError> {
    let mut names = Vec::new();
    for section in elf.sections() {
        if is_code(section.flags()) && section.size() > 0 {
            names.push(section.name()?.to_string());
        }
    }
    Ok(names)
}

/// The text of section `license`; without one the program counts as not GPL-compatible, as for libbpf.
fn find_license(elf: &Elf<'_>) -> Result<CString, ObjectError> {
    let Some(data) = section_data(elf, "license")? else { return Ok(CString::default()) };
    let text: Vec<u8> = data.iter().copied().take_while(|byte| *byte != 0).collect();
    if text.is_empty() || text.len() == data.len() {
        return damaged("its `license` section holds no NUL-terminated text");
    }
    CString::new(text).or_else(|_| damaged("its `license` section holds no text"))
}

fn find_extension(elf: &Elf<'_>, btf: Option<&Btf>) -> Result<Extension, ObjectError> {
    let (Some(btf), Some(data)) = (btf, section_data(elf, ".BTF.ext")?) else {
        return Ok(Extension::default());
    };
    let extension = Extension::parse(data, btf).map_err(ObjectError::Damaged)?;
    if extension.has_relocations {
        return Err(ObjectError::Unsupported("CO-RE relocations against the kernel's types".into()));
    }
    Ok(extension)
}

/// Fills in the sizes of BTF's data sections and where their variables lie, from the sections and symbols:
/// compilers leave both 0, and the kernel refuses that.
fn place_variables(btf: &mut Btf, elf: &Elf<'_>) -> Result<(), ObjectError> {
    for id in btf.ids() {
        if btf.kind(id)? != Kind::DataSec {
            continue;
        }
        let name = btf.name(id)?;
        let Some(section) = elf.section_by_name(&name) else {
            return Err(ObjectError::Unsupported(format!("symbols from elsewhere (`{name}`)")));
        };
        let mut offsets = Vec::new();
        for variable in btf.variables(id)? {
            let offset =
                symbol_address(elf, section.index(), &variable.name).unwrap_or(variable.offset.into());
            if offset + u64::from(variable.size) > section.size() {
                return damaged(format!("variable {} lies outside its section `{name}`", variable.name));
            }
            offsets.push(offset as u32);
        }
        let Ok(size) = u32::try_from(section.size()) else { return damaged("a section of more than 4 GiB") };
        btf.place(id, size, &offsets)?;
    }
    Ok(())
}

fn symbol_address(elf: &Elf<'_>, section: SectionIndex, name: &str) -> Option<u64> {
    use object::ObjectSymbol as _;
    let mut symbols = elf.symbols();
    let symbol = symbols.find(|s| s.section_index() == Some(section) && s.name() == Ok(name))?;
    Some(symbol.address())
}

fn find_maps(elf: &Elf<'_>, btf: Option<&Btf>) -> Result<Vec<MapImage>, ObjectError> {
    let mut maps = Vec::new();
    for section in elf.sections() {
        let name = section.name()?;
        if name == "maps" || name.starts_with("maps/") {
            return Err(ObjectError::Unsupported("maps in a `maps` section; declare them in `.maps`".into()));
        }
        if name == ".maps" {
            let Some(btf) = btf else { return damaged("it has maps, but no BTF that says what they are") };
            declared_maps(btf, &mut maps)?;
        } else if [".rodata", ".data", ".bss"].iter().any(|prefix| is_section_of(name, prefix)) {
            maps.extend(data_map(&section, name, btf)?);
        }
    }
    Ok(maps)
}

/// Whether `name` is `prefix` or `prefix.something`.
fn is_section_of(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The data section of that name in BTF.
pub(crate) fn find_data_section(btf: &Btf, name: &str) -> Result<Option<u32>, BtfError> {
    for id in btf.ids() {
        if btf.kind(id)? == Kind::DataSec && btf.name(id)? == name {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn declared_maps(btf: &Btf, maps: &mut Vec<MapImage>) -> Result<(), ObjectError> {
    let Some(id) = find_data_section(btf, ".maps")? else {
        return damaged("its BTF does not describe the section `.maps`");
    };
    for variable in btf.variables(id)? {
        maps.push(declared_map(btf, variable.name, variable.type_id)?);
    }
    Ok(())
}

fn declared_map(btf: &Btf, name: String, type_id: u32) -> Result<MapImage, ObjectError> {
    let definition = btf.resolve(type_id)?;
    if definition == 0 || btf.kind(definition)? != Kind::Struct {
        return damaged(format!("map {name} is not declared by a structure"));
    }
    let mut map = MapImage { name, ..MapImage::default() };
    for member in btf.members(definition)? {
        match member.name.as_str() {
            "type" => map.kind = btf.encoded_number(member.type_id)?,
            "max_entries" => map.max_entries = btf.encoded_number(member.type_id)?,
            "map_flags" => map.flags = btf.encoded_number(member.type_id)?,
            "key_size" => map.key_size = btf.encoded_number(member.type_id)?,
            "value_size" => map.value_size = btf.encoded_number(member.type_id)?,
            "key" => (map.types.0, map.key_size) = pointee(btf, member.type_id)?,
            "value" => (map.types.1, map.value_size) = pointee(btf, member.type_id)?,
            other => {
                let what = format!("`{other}` in the declaration of map {}", map.name);
                return Err(ObjectError::Unsupported(what));
            }
        }
    }
    Ok(map)
}

/// Type and size of what a pointer points to.
fn pointee(btf: &Btf, id: u32) -> Result<(u32, u32), BtfError> {
    let target = btf.target(btf.resolve(id)?)?;
    Ok((target, btf.size(target)?))
}

fn data_map<'a>(
    section: &impl object::ObjectSection<'a>,
    name: &str,
    btf: Option<&Btf>,
) -> Result<Option<MapImage>, ObjectError> {
    /// More than any map value may have (32 MiB on 5.10).
    const MOST: u64 = 1 << 30;
    if section.size() == 0 {
        return Ok(None);
    }
    if section.size() > MOST {
        return damaged(format!("its section `{name}` has {} bytes", section.size()));
    }
    let mut content = section.data()?.to_vec();
    content.resize(section.size() as usize, 0);
    let types = btf.map(|btf| find_data_section(btf, name)).transpose()?.flatten();
    Ok(Some(MapImage {
        name: name.to_string(),
        kind: ARRAY,
        key_size: 4,
        value_size: content.len() as u32,
        max_entries: 1,
        flags: if is_section_of(name, ".rodata") { READ_ONLY } else { 0 },
        types: (0, types.unwrap_or(0)),
        content: Some(content),
        section: Some(section.index()),
    }))
}

#[cfg(test)]
pub(crate) mod tests {
    use pktc_bpf::{Insn, MapDef, MapIndex, MapKind, Reg, Section, Size, ValueLayout};
    use pktc_codegen::module::{Module, Program};
    use pktc_diagnostics::{SourceMap, Span};
    use pktc_object::{Metadata, ProgramInfo, SCHEMA, SourceInfo};

    use super::*;

    /// An object with a map, a table and lines.
    pub(crate) fn object() -> Vec<u8> {
        let mut sources = SourceMap::default();
        let file = sources.add("a.pkt", "xdp edge { default pass; }\n");
        let map = |name: &str, kind, value_size, content| MapDef {
            name: name.into(),
            kind,
            key_size: 4,
            value_size,
            max_entries: 1,
            flags: 0,
            layout: ValueLayout::Bytes,
            content,
        };
        let insns = vec![
            Insn::LoadMap { dst: Reg(2), map: MapIndex(0) },
            Insn::LoadMapValue { dst: Reg(1), map: MapIndex(1), offset: 3 },
            Insn::Load { size: Size::U8, dst: Reg::R0, base: Reg(1), offset: 0 },
            Insn::Exit,
        ];
        let lines = vec![(0, Span { file, start: 11, end: 23 })];
        let program =
            Program { name: "edge".into(), section: Section::XdpFrags, params: 1, insns, lines, stack: 0 };
        let maps = vec![
            map("counts", MapKind::PerCpuArray, 16, None),
            MapDef { flags: READ_ONLY, ..map("table", MapKind::Array, 4, Some(vec![1, 2, 2, 1])) },
        ];
        let metadata = Metadata {
            counters: Vec::new(),
            programs: vec![ProgramInfo {
                chain_on: None,
                counters: None,
                priority: None,
                name: "edge".into(),
                rules: Vec::new(),
            }],
            schema: SCHEMA,
            sets: Vec::new(),
            source: SourceInfo { path: "a.pkt".into(), sha256: String::new() },
        };
        pktc_object::write(
            &Module { programs: vec![program], maps, ..Module::default() },
            &metadata,
            &sources,
        )
        .unwrap()
    }

    #[test]
    fn all_of_an_object_is_found() {
        let image = Image::parse(&object()).unwrap();
        assert_eq!(image.license.to_str(), Ok("Dual MIT/GPL"));
        let program = &image.programs[0];
        assert_eq!((program.name.as_str(), program.frags, program.code.len()), ("edge", true, 6));
        let named = |name: &str| image.maps.iter().position(|map| map.name == name).unwrap();
        let references = program.references.iter();
        let references: Vec<_> = references.map(|r| (r.slot, r.map, r.offset)).collect();
        assert_eq!(references, [(0, named("counts"), None), (2, named(".rodata.0"), Some(3))]);
        assert_eq!(program.functions.len(), 1);
        assert_eq!(program.lines.len(), 1);
        let table = &image.maps[named(".rodata.0")];
        assert!(table.is_constant());
        assert_eq!(table.content.as_deref(), Some(&[1, 2, 2, 1][..]));
        let counts = &image.maps[named("counts")];
        assert_eq!((counts.kind, counts.value_size, counts.max_entries), (6, 16, 1));
    }

    #[test]
    fn every_truncation_is_an_error() {
        let object = object();
        for length in 0..object.len() {
            assert!(Image::parse(&object[..length]).is_err(), "{length} of {} bytes", object.len());
        }
    }

    #[test]
    fn no_damaged_byte_makes_it_panic() {
        let mut object = object();
        for at in 0..object.len() {
            let byte = object[at];
            for damage in [0, 1, 0x7f, 0xff, byte ^ 1, byte ^ 0x80] {
                object[at] = damage;
                let _ = Image::parse(&object);
            }
            object[at] = byte;
        }
    }

    #[test]
    fn each_wrong_file_gets_its_own_answer() {
        let mut object = object();
        assert_eq!(Image::parse(b"hello").unwrap_err(), ObjectError::NotElf);
        assert_eq!(Image::parse(&[]).unwrap_err(), ObjectError::NotElf);
        object[18] = 62;
        assert_eq!(Image::parse(&object).unwrap_err(), ObjectError::NotBpf(62));
        object[5] = 2;
        (object[18], object[19]) = (0, 247);
        assert_eq!(Image::parse(&object).unwrap_err(), ObjectError::BigEndian);
        (object[5], object[18], object[19]) = (1, 247, 0);
        object[16] = 2;
        assert_eq!(Image::parse(&object).unwrap_err(), ObjectError::NotRelocatable(2));
    }
}
