//! Maps, as loaders read them from the BTF.

use std::fmt::Write as _;

use super::DumpError;
use crate::btf::Kind;
use crate::btf::reader::{Btf, Type};

/// Writes what each map of `.maps` is.
pub(super) fn list(out: &mut String, btf: &Btf<'_>) -> Result<(), DumpError> {
    let sections = btf.types().iter().filter(|ty| ty.kind == Kind::Datasec && ty.name == ".maps");
    for entry in sections.flat_map(|section| section.tail.chunks_exact(3)) {
        let Some(variable) = btf.get(entry[0]) else { continue };
        writeln!(out, "\nmap {}", variable.name)?;
        let Some(definition) = btf.get(variable.size_or_type) else { continue };
        for member in definition.tail.chunks_exact(3) {
            writeln!(out, "  {} {}", btf.text(member[0]), member_value(btf, member[1]))?;
        }
    }
    Ok(())
}

/// The number that a member stands for (a pointer to an `int` array of that many elements), or its type.
fn member_value(btf: &Btf<'_>, pointer: u32) -> String {
    let Some(target) = btf.get(pointer).map(|pointer| pointer.size_or_type) else { return "?".into() };
    let is_int = |id: u32| btf.get(id).is_some_and(|ty: &Type<'_>| ty.kind == Kind::Int && ty.name == "int");
    match btf.get(target) {
        Some(array) if array.kind == Kind::Array && is_int(array.tail[0]) => array.tail[2].to_string(),
        _ => btf.spell(target),
    }
}
