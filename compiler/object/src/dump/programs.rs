//! Programs as instructions, each with the source line that it came from and the symbol that it refers to.

use std::collections::HashMap;
use std::fmt::Write as _;

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};
use pktc_bpf::Section;

use super::{DumpError, damaged, section};
use crate::btf::reader::Btf;
use crate::lines::{self, LineRecord};

/// Writes all programs, in the order of their sections.
pub(super) fn list(out: &mut String, file: &object::File<'_>, btf: &Btf<'_>) -> Result<(), DumpError> {
    let ext = section(file, ".BTF.ext")?;
    let lines = lines::read(ext, btf).map_err(|reason| damaged(".BTF.ext", reason))?;
    for section in Section::ALL {
        let name = section.name();
        if let Some(code) = file.section_by_name(name) {
            let lines = lines.iter().filter(|line| line.section == name);
            let lines = lines.map(|line| (u64::from(line.offset), line)).collect();
            let listing = Listing { file, btf, name, references: references(file, &code)?, lines };
            listing.section(out, &code)?;
        }
    }
    Ok(())
}

struct Listing<'a, 'data> {
    file: &'a object::File<'data>,
    btf: &'a Btf<'data>,
    name: &'static str,
    /// By bytes from the section's start, the symbol that an instruction refers to.
    references: HashMap<u64, String>,
    /// By bytes from the section's start, the line that begins there.
    lines: HashMap<u64, &'a LineRecord>,
}

fn references(
    file: &object::File<'_>,
    code: &object::Section<'_, '_>,
) -> Result<HashMap<u64, String>, DumpError> {
    let mut references = HashMap::new();
    for (offset, relocation) in code.relocations() {
        if let RelocationTarget::Symbol(index) = relocation.target() {
            references.insert(offset, file.symbol_by_index(index)?.name()?.to_owned());
        }
    }
    Ok(references)
}

impl Listing<'_, '_> {
    fn section(&self, out: &mut String, code: &object::Section<'_, '_>) -> Result<(), DumpError> {
        let functions = self.file.symbols().filter(|symbol| {
            symbol.kind() == SymbolKind::Text && symbol.section_index() == Some(code.index())
        });
        let mut functions: Vec<_> = functions.collect();
        functions.sort_by_key(object::ObjectSymbol::address);
        for function in functions {
            let what = if self.name == Section::Text.name() { "subprogram" } else { "program" };
            writeln!(out, "\n{what} {} in {}", function.name()?, self.name)?;
            let bytes = code.data_range(function.address(), function.size())?;
            let bytes = bytes.ok_or_else(|| damaged("xdp", "a program ends beyond it"))?;
            self.function(out, bytes, function.address())?;
        }
        Ok(())
    }

    fn function(&self, out: &mut String, bytes: &[u8], start: u64) -> Result<(), DumpError> {
        let insns = pktc_bpf::decode(bytes).map_err(|error| damaged("xdp", &error.to_string()))?;
        let mut slot = 0;
        for insn in &insns {
            let offset = start + (slot * pktc_bpf::SLOT) as u64;
            if let Some(line) = self.lines.get(&offset) {
                let (file, text) = (self.btf.text(line.file), self.btf.text(line.text));
                writeln!(out, "  ; {file}:{}:{}  {text}", line.line, line.column)?;
            }
            write!(out, "  {slot:4}: {}", pktc_bpf::disassemble(insn))?;
            match self.references.get(&offset) {
                Some(symbol) => writeln!(out, "  // + {symbol}")?,
                None => writeln!(out)?,
            }
            slot += pktc_bpf::slots(insn);
        }
        Ok(())
    }
}
