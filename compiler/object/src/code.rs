//! Code as bytes: the sections `xdp` and `xdp.frags`, one function a program, and `.text` with what they call, in the
//! module's order.

use pktc_bpf::{Insn, Relocation, SLOT, Section};
use pktc_codegen::module::{Module, Program};
use pktc_diagnostics::Span;

use crate::ObjectError;

/// A section of instructions.
pub(crate) struct CodeSection {
    pub(crate) section: Section,
    pub(crate) bytes: Vec<u8>,
    /// By ascending offset, without gaps.
    pub(crate) functions: Vec<Function>,
    /// Offsets count from the section's start.
    pub(crate) relocations: Vec<Relocation>,
}

/// A program or subprogram in its section.
pub(crate) struct Function {
    pub(crate) name: String,
    /// How many parameters it has; a program has one, the context.
    pub(crate) params: u8,
    /// Bytes from the section's start.
    pub(crate) offset: usize,
    /// Bytes.
    pub(crate) size: usize,
    /// Bytes from the section's start, and where the instruction there comes from; the first is `offset`.
    pub(crate) lines: Vec<(usize, Span)>,
}

/// The sections that hold the module's functions; an empty one is left out.
pub(crate) fn assemble(module: &Module) -> Result<Vec<CodeSection>, ObjectError> {
    let mut sections = Vec::new();
    for section in Section::ALL {
        let mut code =
            CodeSection { section, bytes: Vec::new(), functions: Vec::new(), relocations: Vec::new() };
        let functions = module.programs.iter().chain(&module.subprograms);
        for function in functions.filter(|function| function.section == section) {
            code.add(module, function)?;
        }
        if !code.functions.is_empty() {
            sections.push(code);
        }
    }
    Ok(sections)
}

impl CodeSection {
    fn add(&mut self, module: &Module, program: &Program) -> Result<(), ObjectError> {
        check(module, program)?;
        let offset = self.bytes.len();
        let encoded = pktc_bpf::encode(&program.insns)
            .map_err(|error| ObjectError::Encode { program: program.name.clone(), error })?;
        let moved = |relocation: Relocation| Relocation { offset: offset + relocation.offset, ..relocation };
        self.relocations.extend(encoded.relocations.into_iter().map(moved));
        self.bytes.extend(&encoded.bytes);
        self.functions.push(Function {
            name: program.name.clone(),
            params: program.params,
            offset,
            size: encoded.bytes.len(),
            lines: lines(program, offset),
        });
        Ok(())
    }
}

/// Refuses what no loader could take.
fn check(module: &Module, program: &Program) -> Result<(), ObjectError> {
    if program.insns.is_empty() {
        return Err(ObjectError::Empty { program: program.name.clone() });
    }
    for insn in &program.insns {
        match insn {
            Insn::LoadMap { map, .. } | Insn::LoadMapValue { map, .. } => {
                let Some(def) = module.maps.get(map.0 as usize) else {
                    return Err(ObjectError::MissingMap { program: program.name.clone(), map: *map });
                };
                if matches!(insn, Insn::LoadMapValue { .. }) && def.content.is_none() {
                    return Err(ObjectError::NoContent {
                        program: program.name.clone(),
                        map: def.name.clone(),
                    });
                }
            }
            Insn::CallSubprogram { subprogram, .. }
                if module.subprograms.get(subprogram.0 as usize).is_none() =>
            {
                return Err(ObjectError::MissingSubprogram {
                    program: program.name.clone(),
                    subprogram: *subprogram,
                });
            }
            Insn::CallLocal { .. } => return Err(ObjectError::LocalCall { program: program.name.clone() }),
            _ => {}
        }
    }
    Ok(())
}

/// Where the program's instructions come from, by bytes from the section's start. Indices beyond the program are
/// left out, and so is an entry that says the same as the one before it.
fn lines(program: &Program, offset: usize) -> Vec<(usize, Span)> {
    let mut lines: Vec<(usize, Span)> = Vec::with_capacity(program.lines.len());
    let mut at = offset;
    let mut entries = program.lines.iter().peekable();
    for (index, insn) in program.insns.iter().enumerate() {
        while let Some(&&(start, span)) = entries.peek()
            && start <= index
        {
            entries.next();
            match lines.last_mut() {
                Some(last) if last.0 == at => last.1 = span,
                Some(last) if last.1 == span => {}
                _ => lines.push((at, span)),
            }
        }
        at += pktc_bpf::slots(insn) * SLOT;
    }
    lines
}
