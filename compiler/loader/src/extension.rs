//! Reading `.BTF.ext`: which function and which source line an instruction belongs to.
//!
//! Layout: `Documentation/bpf/btf.rst`, "The .BTF.ext section". Offsets of instructions are bytes from the
//! start of their section here, as in the file; [`Extension::functions`] and [`Extension::lines`] keep that.

use std::collections::HashMap;

use crate::btf::{Btf, read_u32};

/// What `.BTF.ext` says, by section name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extension {
    functions: HashMap<String, Vec<[u32; 2]>>,
    lines: HashMap<String, Vec<[u32; 4]>>,
    /// Whether there are CO-RE relocations, which this loader does not apply.
    pub(crate) has_relocations: bool,
}

impl Extension {
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(data: &[u8], btf: &Btf) -> Result<Self, String> {
        if data.len() < 24 || data[..2] != [0x9f, 0xeb] {
            return Err(".BTF.ext does not start with a little-endian header".into());
        }
        let field = |at: usize| read_u32(data, at).unwrap_or(0) as usize;
        let header = field(4);
        let part = |at: usize| -> Result<&[u8], String> {
            let start = header + field(at);
            data.get(start..start + field(at + 4)).ok_or_else(|| ".BTF.ext is cut short".to_string())
        };
        Ok(Extension {
            functions: records(part(8)?, btf)?,
            lines: records(part(16)?, btf)?,
            has_relocations: header >= 32 && field(28) != 0,
        })
    }

    /// Records {byte offset, type} of a section.
    pub(crate) fn functions(&self, section: &str) -> &[[u32; 2]] {
        self.functions.get(section).map_or(&[], Vec::as_slice)
    }

    /// Records {byte offset, file name, line text, line << 10 | column} of a section.
    pub(crate) fn lines(&self, section: &str) -> &[[u32; 4]] {
        self.lines.get(section).map_or(&[], Vec::as_slice)
    }
}

/// Reads a part: the size of a record, then for each section its name, a count and the records, of which the
/// first `N` words are kept (newer compilers may add more).
fn records<const N: usize>(data: &[u8], btf: &Btf) -> Result<HashMap<String, Vec<[u32; N]>>, String> {
    let mut out: HashMap<String, Vec<[u32; N]>> = HashMap::new();
    let Some(size) = read_u32(data, 0).map(|size| size as usize) else { return Ok(out) };
    if size < 4 * N || !size.is_multiple_of(4) {
        return Err(format!(".BTF.ext has records of {size} bytes"));
    }
    let mut at = 4;
    while at < data.len() {
        let (Some(name), Some(count)) = (read_u32(data, at), read_u32(data, at + 4)) else {
            return Err(".BTF.ext ends inside a section".into());
        };
        at += 8;
        let length = (count as usize).checked_mul(size).filter(|length| *length <= data.len() - at);
        let Some(length) = length else { return Err(".BTF.ext ends inside a section".into()) };
        let section = out.entry(btf.string(name).map_err(|error| error.to_string())?).or_default();
        for record in data[at..at + length].chunks_exact(size) {
            section.push(std::array::from_fn(|n| read_u32(record, 4 * n).unwrap_or(0)));
        }
        at += length;
    }
    Ok(out)
}
