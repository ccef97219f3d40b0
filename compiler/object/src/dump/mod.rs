//! An object as text, for people and for recorded tests: what `--emit object` prints.
//!
//! It is made from the object's bytes and from nothing else, so it shows what a loader sees. It holds no paths of
//! the machine, no addresses and no times.

mod maps;
mod programs;
mod types;

use std::fmt::{self, Write as _};

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};

use crate::btf::reader::Btf;
use crate::{metadata, read_metadata};

/// Why an object cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpError {
    /// Not an ELF file, or a damaged one.
    NotAnObject(String),
    /// A section is missing or damaged.
    Section {
        /// Its name.
        name: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::NotAnObject(why) => write!(f, "this is not an ELF object: {why}"),
            DumpError::Section { name, reason } => write!(f, "section `{name}`: {reason}"),
        }
    }
}

impl std::error::Error for DumpError {}

impl From<object::Error> for DumpError {
    fn from(error: object::Error) -> Self {
        DumpError::NotAnObject(error.to_string())
    }
}

/// Writing to a string does not fail; this is for `?` in functions that write to one.
impl From<fmt::Error> for DumpError {
    fn from(error: fmt::Error) -> Self {
        DumpError::NotAnObject(error.to_string())
    }
}

/// Lists sections, symbols, programs with their source lines, maps, types and the metadata of an object that
/// [`write`](crate::write) made.
///
/// # Errors
/// If it is no such object, or damaged.
pub fn dump(object: &[u8]) -> Result<String, DumpError> {
    let file = object::File::parse(object)?;
    let btf = section(&file, ".BTF")?;
    let btf = Btf::parse(btf).map_err(|reason| damaged(".BTF", reason))?;
    let mut out = String::new();
    sections(&mut out, &file)?;
    symbols(&mut out, &file)?;
    programs::list(&mut out, &file, &btf)?;
    maps::list(&mut out, &btf)?;
    types::list(&mut out, &btf)?;
    let metadata =
        read_metadata(object).map_err(|error| damaged(metadata::SECTION, &error.to_string()))?.to_json();
    writeln!(out, "\nmetadata\n  {metadata}")?;
    Ok(out)
}

/// The bytes of section `name`.
fn section<'a>(file: &object::File<'a>, name: &'static str) -> Result<&'a [u8], DumpError> {
    let section = file.section_by_name(name).ok_or_else(|| damaged(name, "it is missing"))?;
    Ok(section.data()?)
}

fn damaged(name: &'static str, reason: &str) -> DumpError {
    DumpError::Section { name, reason: reason.to_owned() }
}

fn sections(out: &mut String, file: &object::File<'_>) -> Result<(), DumpError> {
    writeln!(out, "sections")?;
    for section in file.sections() {
        let mut flags = String::new();
        if let SectionFlags::Elf { sh_flags } = section.flags() {
            for (bit, letter) in [(object::elf::SHF_WRITE, 'W'), (object::elf::SHF_ALLOC, 'A'), (4, 'X')] {
                if sh_flags & u64::from(bit) != 0 {
                    flags.push(letter);
                }
            }
        }
        let line = format!("  {:<12} {:<3} {:>6} bytes", section.name()?, flags, section.size());
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn symbols(out: &mut String, file: &object::File<'_>) -> Result<(), DumpError> {
    writeln!(out, "\nsymbols")?;
    for symbol in file.symbols().filter(|symbol| symbol.name().is_ok_and(|name| !name.is_empty())) {
        let kind = if symbol.kind() == SymbolKind::Text { "function" } else { "object" };
        let binding = if symbol.is_global() { "global" } else { "local" };
        let section = match symbol.section_index() {
            Some(index) => file.section_by_index(index)?.name()?.to_owned(),
            None => "none".into(),
        };
        let (name, start, size) = (symbol.name()?, symbol.address(), symbol.size());
        writeln!(out, "  {name}: {binding} {kind} in {section}, {size} bytes at {start}")?;
    }
    Ok(())
}
