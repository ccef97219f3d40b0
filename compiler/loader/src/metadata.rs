//! What a running program says about itself: the JSON text that pktc puts into every object as the variable
//! [`pktc_object::VARIABLE`] of `.rodata`, found again through the maps that are bound to the program.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use pktc_object::Metadata;

use crate::btf::Btf;
use crate::sys::{self, IdKind, MapHandle, ProgramInfo};

/// The metadata of the program with that id, without the NULs at the end. `None`: it has none, so it is not pktc's
/// (or its loader did not bind the map; kernels before 5.10 cannot).
///
/// # Errors
/// What the kernel says; a program that is gone meanwhile is "not found".
pub fn read_metadata(program: u32) -> io::Result<Option<Vec<u8>>> {
    let program = sys::open_id(IdKind::Program, program)?;
    metadata_text(&sys::program_info(program.as_fd())?)
}

/// The same, understood; `None` also where it is of another schema.
pub(crate) fn metadata_of(program: &ProgramInfo) -> io::Result<Option<Metadata>> {
    Ok(metadata_text(program)?.and_then(|text| Metadata::from_json(&text).ok()))
}

/// Opens all maps of a program.
pub(crate) fn open_maps(program: &ProgramInfo) -> io::Result<Vec<MapHandle>> {
    program.map_ids.iter().map(|&id| MapHandle::new(sys::open_id(IdKind::Map, id)?)).collect()
}

fn metadata_text(program: &ProgramInfo) -> io::Result<Option<Vec<u8>>> {
    for map in open_maps(program)? {
        let info = map.info();
        if !info.name.contains("rodata") || info.btf_id == 0 || info.btf_value_type_id == 0 {
            continue;
        }
        let btf = sys::open_id(IdKind::Btf, info.btf_id)?;
        if let Some((start, end)) = find_variable(&btf, info.btf_value_type_id)? {
            let value = map.lookup(&0u32.to_ne_bytes())?.unwrap_or_default();
            let Some(text) = value.get(start..end) else { continue };
            let used = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            return Ok(Some(text[..used].to_vec()));
        }
    }
    Ok(None)
}

/// Where the variable lies in the data section with that type id.
fn find_variable(btf: &OwnedFd, section: u32) -> io::Result<Option<(usize, usize)>> {
    let btf = Btf::parse(sys::btf_data(btf.as_fd())?);
    let variables = btf.and_then(|btf| btf.variables(section));
    let variables =
        variables.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    let found = variables.into_iter().find(|variable| variable.name == pktc_object::VARIABLE);
    Ok(found.map(|variable| (variable.offset as usize, variable.offset as usize + variable.size as usize)))
}
