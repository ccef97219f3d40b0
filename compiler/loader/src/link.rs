//! From functions and relocations to programs: each program followed by the functions that it calls, with
//! calls resolved and references to maps collected.

use std::collections::HashMap;

use object::elf::{R_BPF_64_32, R_BPF_64_64};
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget, SectionIndex,
    SymbolIndex, SymbolKind,
};

use pktc_bpf::XdpAction;

use crate::btf::Btf;
use crate::dispatcher::{DEFAULT_CHAIN, DEFAULT_PRIORITY, Slot};
use crate::extension::Extension;
use crate::image::{Elf, MapImage, ObjectError, damaged, find_data_section, is_code};

/// Where a program says how it takes part in a dispatcher.
const RUN_CONFIG: &str = ".xdp_run_config";
/// `r = imm64`, two slots.
const LOAD_IMM64: u8 = 0x18;
const CALL: u8 = 0x85;
/// The source register of a call: the target is an instruction.
const PSEUDO_CALL: u8 = 1;
/// The source register of `LOAD_IMM64`: `imm` is the distance to a function.
const PSEUDO_FUNC: u8 = 4;

/// A reference of an instruction to a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The first slot of the instruction.
    pub(crate) slot: usize,
    /// Index into the object's maps.
    pub(crate) map: usize,
    /// An address that many bytes into the map's first value, instead of the map itself.
    pub(crate) offset: Option<u32>,
}

/// A program with the functions that it calls.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    /// Whether it takes packets in several buffers (section `xdp.frags`).
    pub(crate) frags: bool,
    /// How it takes part in a dispatcher.
    pub(crate) slot: Slot,
    /// Calls are resolved, references to maps are not.
    pub(crate) code: Vec<[u8; 8]>,
    /// The first slot of each function, and its name; the program's own is the first.
    pub(crate) starts: Vec<(usize, String)>,
    pub(crate) references: Vec<Reference>,
    /// Records of `bpf_func_info`; offsets are slots.
    pub(crate) functions: Vec<[u32; 2]>,
    /// Records of `bpf_line_info`; offsets are slots.
    pub(crate) lines: Vec<[u32; 4]>,
}

/// A function as the file has it.
struct Function<'a> {
    name: &'a str,
    section: SectionIndex,
    section_name: &'a str,
    /// Bytes from the start of its section.
    start: u64,
    code: &'a [u8],
    /// Whether others see it: in a section for programs, whether it is one.
    global: bool,
}

/// What a relocation points to.
enum Target {
    Function(SectionIndex, u64),
    Map(usize),
    /// Bytes into a section of data.
    Data(usize, u64),
}

/// Functions, relocations and maps of a file.
pub(crate) struct Linker<'a> {
    elf: &'a Elf<'a>,
    maps: &'a [MapImage],
    extension: &'a Extension,
    btf: Option<&'a Btf>,
    functions: Vec<Function<'a>>,
    by_start: HashMap<(SectionIndex, u64), usize>,
    relocations: HashMap<(SectionIndex, u64), (u32, SymbolIndex)>,
}

/// A program while its functions are put one after the other.
struct Layout {
    /// Functions in order.
    order: Vec<usize>,
    /// The first slot of each function that is already placed.
    bases: HashMap<usize, usize>,
    /// Slots that refer to functions.
    calls: Vec<(usize, usize)>,
    program: Program,
}

impl<'a> Linker<'a> {
    pub(crate) fn new(
        elf: &'a Elf<'a>,
        maps: &'a [MapImage],
        extension: &'a Extension,
        btf: Option<&'a Btf>,
    ) -> Result<Self, ObjectError> {
        let mut linker = Linker {
            elf,
            maps,
            extension,
            btf,
            functions: Vec::new(),
            by_start: HashMap::new(),
            relocations: HashMap::new(),
        };
        linker.find_functions()?;
        linker.find_relocations()?;
        Ok(linker)
    }

    fn find_functions(&mut self) -> Result<(), ObjectError> {
        for symbol in self.elf.symbols() {
            let Some(section) = symbol.section_index() else { continue };
            if symbol.kind() != SymbolKind::Text || symbol.size() == 0 {
                continue;
            }
            let section = self.elf.section_by_index(section)?;
            let (name, start) = (symbol.name()?, symbol.address());
            let end = start.checked_add(symbol.size());
            let code = end.and_then(|end| section.data().ok()?.get(start as usize..end as usize));
            let Some(code) = code.filter(|code| code.len().is_multiple_of(8) && start.is_multiple_of(8))
            else {
                return damaged(format!("function {name} does not lie in its section"));
            };
            self.by_start.insert((section.index(), start), self.functions.len());
            self.functions.push(Function {
                name,
                section: section.index(),
                section_name: section.name()?,
                start,
                code,
                global: symbol.is_global(),
            });
        }
        Ok(())
    }

    fn find_relocations(&mut self) -> Result<(), ObjectError> {
        for section in self.elf.sections() {
            if !is_code(section.flags()) {
                continue;
            }
            for (offset, relocation) in section.relocations() {
                let (RelocationFlags::Elf { r_type }, RelocationTarget::Symbol(symbol)) =
                    (relocation.flags(), relocation.target())
                else {
                    return damaged("a relocation without a symbol");
                };
                self.relocations.insert((section.index(), offset), (r_type, symbol));
            }
        }
        Ok(())
    }

    /// Links every program, in the order of the symbols.
    pub(crate) fn programs(&self) -> Result<Vec<Program>, ObjectError> {
        let mut programs: Vec<Program> = Vec::new();
        for (index, function) in self.functions.iter().enumerate() {
            let is_program = matches!(function.section_name, "xdp" | "xdp.frags") && function.global;
            if !is_program {
                continue;
            }
            if programs.iter().any(|program| program.name == function.name) {
                return damaged(format!("two programs are named {}", function.name));
            }
            programs.push(self.link(index)?);
        }
        Ok(programs)
    }

    fn link(&self, entry: usize) -> Result<Program, ObjectError> {
        let function = &self.functions[entry];
        let program = Program {
            name: function.name.to_string(),
            frags: function.section_name == "xdp.frags",
            slot: self.slot(function.name)?,
            code: Vec::new(),
            starts: Vec::new(),
            references: Vec::new(),
            functions: Vec::new(),
            lines: Vec::new(),
        };
        let mut layout = Layout { order: vec![entry], bases: HashMap::new(), calls: Vec::new(), program };
        let mut next = 0;
        while let Some(&index) = layout.order.get(next) {
            self.append(index, &mut layout)?;
            next += 1;
        }
        for &(slot, callee) in &layout.calls {
            let distance = layout.bases[&callee] as i64 - slot as i64 - 1;
            layout.program.code[slot][4..].copy_from_slice(&(distance as i32).to_le_bytes());
        }
        drop_incomplete_info(&mut layout);
        Ok(layout.program)
    }

    /// How the program of that name takes part in a dispatcher.
    fn slot(&self, program: &str) -> Result<Slot, ObjectError> {
        let usual = Slot { priority: DEFAULT_PRIORITY, chain_on: DEFAULT_CHAIN, frags: false };
        self.btf.map_or(Ok(usual), |btf| run_config(btf, program, usual))
    }

    /// Appends a function, and puts the ones that it calls on the list.
    fn append(&self, index: usize, layout: &mut Layout) -> Result<(), ObjectError> {
        let function = &self.functions[index];
        let base = layout.program.code.len();
        layout.bases.insert(index, base);
        layout.program.starts.push((base, function.name.to_owned()));
        layout.program.code.extend(function.code.chunks_exact(8).map(copy_slot));
        let mut offset = 0;
        while offset < function.code.len() / 8 {
            let slot = base + offset;
            let opcode = layout.program.code[slot][0];
            if opcode == LOAD_IMM64 && slot + 1 == layout.program.code.len() {
                return damaged(format!("function {} ends inside an instruction", function.name));
            }
            self.resolve(function, offset, slot, layout)?;
            offset += if opcode == LOAD_IMM64 { 2 } else { 1 };
        }
        self.append_info(function, base, &mut layout.program);
        Ok(())
    }

    /// Resolves what the instruction at `slot` refers to, if anything.
    fn resolve(
        &self,
        function: &Function<'_>,
        offset: usize,
        slot: usize,
        layout: &mut Layout,
    ) -> Result<(), ObjectError> {
        let [opcode, registers, _, _, imm @ ..] = layout.program.code[slot];
        let imm = i32::from_le_bytes(imm);
        let at = function.start + 8 * offset as u64;
        let relocation = self.relocations.get(&(function.section, at));
        let is_call = opcode == CALL && registers >> 4 == PSEUDO_CALL;
        let target = match relocation {
            Some(&(kind, symbol)) => self.target(kind, symbol, imm)?,
            // Within a section calls need no relocation.
            None if is_call => {
                let callee = at as i64 + 8 * (i64::from(imm) + 1);
                Target::Function(function.section, u64::try_from(callee).unwrap_or(u64::MAX))
            }
            None => return Ok(()),
        };
        match target {
            Target::Function(section, start) if is_call || opcode == LOAD_IMM64 => {
                let Some(&callee) = self.by_start.get(&(section, start)) else {
                    return damaged(format!("function {} calls where no function starts", function.name));
                };
                if opcode == LOAD_IMM64 {
                    layout.program.code[slot][1] = registers & 0xf | PSEUDO_FUNC << 4;
                }
                layout.calls.push((slot, callee));
                if !layout.order.contains(&callee) {
                    layout.order.push(callee);
                }
            }
            Target::Map(map) if opcode == LOAD_IMM64 => {
                layout.program.references.push(Reference { slot, map, offset: None });
            }
            Target::Data(map, offset) if opcode == LOAD_IMM64 => {
                let Ok(offset) = u32::try_from(offset) else { return damaged("a reference past 4 GiB") };
                layout.program.references.push(Reference { slot, map, offset: Some(offset) });
            }
            Target::Function(..) | Target::Map(_) | Target::Data(..) => {
                return damaged(format!(
                    "function {} has a relocation on the wrong instruction",
                    function.name
                ));
            }
        }
        Ok(())
    }

    /// What a relocation of the given type against `symbol` means for an instruction with `imm`.
    fn target(&self, kind: u32, symbol: SymbolIndex, imm: i32) -> Result<Target, ObjectError> {
        let symbol = self.elf.symbol_by_index(symbol)?;
        let name = symbol.name()?;
        let Some(section) = symbol.section_index() else {
            return Err(ObjectError::Unsupported(format!("the symbol `{name}` from elsewhere")));
        };
        let address = symbol.address();
        let addend =
            |scaled: i64| (address as i64).checked_add(scaled).and_then(|sum| u64::try_from(sum).ok());
        let is_section = symbol.kind() == SymbolKind::Section;
        let code = is_code(self.elf.section_by_index(section)?.flags());
        let place = match kind {
            R_BPF_64_32 if is_section => addend(8 * (i64::from(imm) + 1)),
            R_BPF_64_64 if is_section || !code => addend(imm.into()),
            R_BPF_64_32 | R_BPF_64_64 => Some(address),
            _ => {
                return Err(ObjectError::Unsupported(format!(
                    "a relocation of type {kind} against `{name}`"
                )));
            }
        };
        let Some(place) = place else { return damaged(format!("a relocation that points before `{name}`")) };
        if code {
            return Ok(Target::Function(section, place));
        }
        if let Some(map) = self.maps.iter().position(|map| map.section == Some(section)) {
            return Ok(Target::Data(map, place));
        }
        let declared = |map: &MapImage| map.section.is_none() && map.name == name;
        match self.maps.iter().position(declared) {
            Some(map) => Ok(Target::Map(map)),
            None => damaged(format!("a relocation against `{name}`, which is neither a map nor a function")),
        }
    }

    /// Appends the function's debug records, moved to where it now lies.
    fn append_info(&self, function: &Function<'_>, base: usize, program: &mut Program) {
        let range = function.start..function.start + function.code.len() as u64;
        let moved = |offset: u32| ((u64::from(offset) - range.start) / 8) as u32 + base as u32;
        for record in self.extension.functions(function.section_name) {
            if u64::from(record[0]) == function.start {
                program.functions.push([base as u32, record[1]]);
            }
        }
        for &[offset, file, text, column] in self.extension.lines(function.section_name) {
            if range.contains(&offset.into()) {
                program.lines.push([moved(offset), file, text, column]);
            }
        }
    }
}

/// Reads the variable `_NAME` of the section `.xdp_run_config`: a structure whose members say priority and verdicts, as
/// map definitions write numbers.
fn run_config(btf: &Btf, program: &str, usual: Slot) -> Result<Slot, ObjectError> {
    let Some(section) = find_data_section(btf, RUN_CONFIG)? else { return Ok(usual) };
    let name = format!("_{program}");
    let Some(variable) = btf.variables(section)?.into_iter().find(|variable| variable.name == name) else {
        return Ok(usual);
    };
    let structure = btf.resolve(variable.type_id)?;
    let mut slot = usual;
    for member in btf.members(structure)? {
        let value = btf.encoded_number(member.type_id)?;
        let action = XdpAction::ALL.into_iter().find(|action| action.name() == member.name);
        match action {
            Some(action) if value != 0 => slot.chain_on |= action.bit(),
            Some(action) => slot.chain_on &= !action.bit(),
            None if member.name == "priority" => slot.priority = value,
            None => {
                let what = format!("`{}` in the section {RUN_CONFIG}", member.name);
                return Err(ObjectError::Unsupported(what));
            }
        }
    }
    Ok(slot)
}

fn copy_slot(bytes: &[u8]) -> [u8; 8] {
    let mut slot = [0; 8];
    slot.copy_from_slice(bytes);
    slot
}

/// The kernel wants records for all functions or none, and of lines one at each function's first instruction.
fn drop_incomplete_info(layout: &mut Layout) {
    let program = &mut layout.program;
    if program.functions.len() != layout.order.len() {
        program.functions.clear();
    }
    let complete = |base: &usize| program.lines.iter().any(|line| line[0] as usize == *base);
    if program.functions.is_empty() || !layout.bases.values().all(complete) {
        program.lines.clear();
    }
}
