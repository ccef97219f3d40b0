//! Assembly for people (`--emit asm`): each run of instructions below the source line that it comes from.

use std::fmt::Write as _;

use pktc_bpf::{Insn, disassemble, slots};
use pktc_diagnostics::{SourceMap, Span};

use crate::module::{MachineInsn, Program};

/// The instructions of `program`, with the slot of each and of what it jumps to, between its source lines.
#[must_use]
pub fn listing(program: &Program, sources: &SourceMap) -> String {
    let total: usize = program.insns.iter().map(slots).sum();
    let mut text = format!("{}: {total} instructions, {} bytes of stack\n", program.name, program.stack);
    let mut lines = program.lines.iter().peekable();
    let mut shown = None;
    let mut slot = 0;
    for (index, insn) in program.insns.iter().enumerate() {
        if let Some(&(_, span)) = lines.next_if(|&&(start, _)| start == index) {
            let line = source_line(sources, span);
            if shown.as_ref() != Some(&line) {
                let _ = writeln!(text, "; {line}"); // writing to a string does not fail
            }
            shown = Some(line);
        }
        let _ = writeln!(text, "{slot:5}: {}{}", disassemble(insn), target(insn, slot));
        slot += slots(insn);
    }
    text
}

/// `file:line: text`
fn source_line(sources: &SourceMap, span: Span) -> String {
    let line = sources.position(span).line;
    format!("{}:{line}: {}", sources.name(span.file), sources.line_text(span.file, line).trim())
}

/// Where a jump at `slot` leads.
fn target(insn: &MachineInsn, slot: usize) -> String {
    match *insn {
        Insn::Goto { target } | Insn::Branch { target, .. } => {
            format!(" ; to {}", slot as i64 + 1 + i64::from(target))
        }
        _ => String::new(),
    }
}
