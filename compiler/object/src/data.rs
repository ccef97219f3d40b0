//! Read-only data: the contents of maps that never change, and the metadata.
//!
//! Each lies in a section, and so in a map, of its own: `.rodata` is the metadata alone (the map that libbpf binds
//! to the programs and that pktc's commands look for), `.rodata.0`, `.rodata.1` … are contents in the module's
//! order. A loader makes a one-element array of each, not writable by programs, and freezes it; the verifier then
//! takes its bytes for constants. The kernel calls the map by its section's name (15 characters would cut a longer
//! one), the variable in it carries the name of the module's map.

use pktc_bpf::{MapDef, MapIndex, MapKind};
use pktc_codegen::module::Module;

use crate::{ObjectError, metadata};

/// A section with one read-only variable.
pub(crate) struct DataSection {
    pub(crate) name: String,
    pub(crate) variable: String,
    pub(crate) bytes: Vec<u8>,
    /// The map of the module that it is the content of; `None`: the metadata.
    pub(crate) map: Option<MapIndex>,
}

impl DataSection {
    /// The metadata.
    pub(crate) fn metadata(json: &str) -> Self {
        DataSection {
            name: ".rodata".into(),
            variable: metadata::VARIABLE.into(),
            bytes: terminated(json),
            map: None,
        }
    }
}

/// `json` as a C string.
pub(crate) fn terminated(json: &str) -> Vec<u8> {
    let mut bytes = json.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// The sections for the contents of the module's maps.
pub(crate) fn contents(module: &Module) -> Result<Vec<DataSection>, ObjectError> {
    let mut sections = Vec::new();
    for (index, map) in module.maps.iter().enumerate() {
        let Some(content) = &map.content else { continue };
        check(map, content)?;
        sections.push(DataSection {
            name: format!(".rodata.{}", sections.len()),
            variable: map.name.clone(),
            bytes: content.clone(),
            map: Some(MapIndex(index as u32)),
        });
    }
    Ok(sections)
}

fn check(map: &MapDef, content: &[u8]) -> Result<(), ObjectError> {
    let reason = if map.kind != MapKind::Array || map.max_entries != 1 || map.key_size != 4 {
        "content needs an array of one element with keys of 4 bytes"
    } else if content.is_empty() {
        "the content is empty"
    } else if content.len() != map.value_size as usize {
        "the content is not as long as the value"
    } else {
        return Ok(());
    };
    Err(ObjectError::Content { map: map.name.clone(), reason })
}
