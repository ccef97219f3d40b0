//! The section `.BTF.ext`: which function each instruction belongs to, and which source line it came from.
//!
//! The verifier's log and `bpftool prog dump xlated linum` print the lines' text from here, so that both show the
//! user's `.pkt`. Instruction offsets are in bytes from the section's start (libbpf turns them into slots of the
//! program); records ascend, and the first of each function lies at its first instruction (`check_btf_line`).

use pktc_diagnostics::{SourceMap, Span};

use crate::btf::reader::{Btf, word};
use crate::btf::{Encoder, MAGIC, TypeId, VERSION};
use crate::code::CodeSection;

/// Bytes of `struct btf_ext_header` with its part for CO-RE relocations.
const HEADER_BYTES: u32 = 32;
/// Bytes of `struct bpf_func_info`: offset, type.
const FUNCTION_BYTES: u32 = 8;
/// Bytes of `struct bpf_line_info`: offset, file name, line text, line and column.
const LINE_BYTES: u32 = 16;
/// The column has 10 bits, the line what remains of 32 (`BPF_LINE_INFO_LINE_NUM`).
const COLUMN_BITS: u32 = 10;

/// Encodes the section; the texts that it points at go to `btf`.
pub(crate) fn encode(
    btf: &mut Encoder,
    code: &[CodeSection],
    functions: &[Vec<TypeId>],
    sources: &SourceMap,
) -> Vec<u8> {
    let mut function_info = vec![FUNCTION_BYTES];
    let mut line_info = vec![LINE_BYTES];
    for (section, types) in code.iter().zip(functions) {
        let name = btf.string(section.section.name());
        let records = section.functions.iter().zip(types);
        function_info.extend([name, section.functions.len() as u32]);
        function_info.extend(records.flat_map(|(function, ty)| [function.offset as u32, ty.0]));
        let records = section.functions.iter().flat_map(|function| &function.lines);
        let records: Vec<[u32; 4]> =
            records.map(|&(offset, span)| line_record(btf, offset, span, sources)).collect();
        if !records.is_empty() {
            line_info.extend([name, records.len() as u32]);
            line_info.extend(records.iter().flatten());
        }
    }
    if line_info.len() == 1 {
        line_info.clear();
    }
    finish(&function_info, &line_info)
}

fn line_record(btf: &mut Encoder, offset: usize, span: Span, sources: &SourceMap) -> [u32; 4] {
    let position = sources.position(span);
    let file = btf.string(sources.name(span.file));
    let text = btf.string(sources.line_text(span.file, position.line).trim());
    let column = position.column.min((1 << COLUMN_BITS) - 1);
    let line = position.line.min((1 << (32 - COLUMN_BITS)) - 1);
    [offset as u32, file, text, line << COLUMN_BITS | column]
}

fn finish(functions: &[u32], lines: &[u32]) -> Vec<u8> {
    let functions_bytes = functions.len() as u32 * 4;
    let lines_bytes = lines.len() as u32 * 4;
    let end = functions_bytes + lines_bytes;
    let mut out = Vec::with_capacity((HEADER_BYTES + end) as usize);
    out.extend(MAGIC.to_le_bytes());
    out.extend([VERSION, 0]);
    let header = [HEADER_BYTES, 0, functions_bytes, functions_bytes, lines_bytes, end, 0];
    out.extend(header.iter().chain(functions).chain(lines).flat_map(|word| word.to_le_bytes()));
    out
}

/// A line record, read back.
pub(crate) struct LineRecord {
    /// The section of the instruction.
    pub(crate) section: String,
    /// Bytes from the section's start.
    pub(crate) offset: u32,
    /// The file's name in the BTF's string table.
    pub(crate) file: u32,
    /// The line's text there.
    pub(crate) text: u32,
    /// From 1.
    pub(crate) line: u32,
    /// From 1.
    pub(crate) column: u32,
}

/// Reads the line records of the section `.BTF.ext`.
pub(crate) fn read(section: &[u8], btf: &Btf<'_>) -> Result<Vec<LineRecord>, &'static str> {
    if section.first_chunk::<2>() != Some(&MAGIC.to_le_bytes()) {
        return Err("it does not start with BTF's magic number");
    }
    let start = word(section, 4)? as usize + word(section, 16)? as usize;
    let end = start + word(section, 20)? as usize;
    let info = section.get(start..end).ok_or("it is cut off")?;
    if info.is_empty() {
        return Ok(Vec::new());
    }
    if word(info, 0)? != LINE_BYTES {
        return Err("its line records are not 16 bytes long");
    }
    let mut records = Vec::new();
    let mut at = 4;
    while at < info.len() {
        let name = btf.text(word(info, at)?);
        let count = word(info, at + 4)?;
        at += 8;
        for _ in 0..count {
            records.push(read_record(info, at, name)?);
            at += LINE_BYTES as usize;
        }
    }
    Ok(records)
}

fn read_record(info: &[u8], at: usize, section: &str) -> Result<LineRecord, &'static str> {
    let place = word(info, at + 12)?;
    Ok(LineRecord {
        section: section.to_owned(),
        offset: word(info, at)?,
        file: word(info, at + 4)?,
        text: word(info, at + 8)?,
        line: place >> COLUMN_BITS,
        column: place & ((1 << COLUMN_BITS) - 1),
    })
}
