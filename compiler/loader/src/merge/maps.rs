//! The maps of several objects: those of one name and shape are one; data sections, and what pktc counts and keeps
//! variables in, are each object's own.

use std::collections::BTreeSet;

use pktc_bpf::CELLS;

use super::types::Moved;
use super::{Input, MergeError, NAME_MAX};
use crate::image::{MapImage, ObjectError, find_data_section};

/// A map of the result.
pub(super) struct MergedMap {
    /// Its name; of a data section the section's.
    pub(super) name: String,
    /// What it holds; `None`: it is declared in `.maps`.
    pub(super) content: Option<Vec<u8>>,
    /// The type that declares it.
    pub(super) definition: u32,
    /// Bytes of the declaration.
    pub(super) size: u32,
    image: MapImage,
    file: String,
}

/// All maps.
pub(super) struct Merged {
    pub(super) maps: Vec<MergedMap>,
    /// For each object and map of it its place among those; `None`: it is left out.
    pub(super) indices: Vec<Vec<Option<usize>>>,
    /// For each object its own maps that were renamed.
    renamed: Vec<Vec<(String, String)>>,
}

impl Merged {
    /// What the counters' map `name` of the object is called now.
    pub(super) fn name(&self, object: usize, name: &str) -> String {
        let found = self.renamed[object].iter().find(|(old, _)| old == name);
        found.map_or(name, |(_, new)| new).to_owned()
    }
}

pub(super) fn merge(inputs: &[Input], moved: &[Moved]) -> Result<Merged, MergeError> {
    let mut all = Merged { maps: Vec::new(), indices: Vec::new(), renamed: Vec::new() };
    for (input, moved) in std::iter::zip(inputs, moved) {
        let mut indices = Vec::new();
        let mut renamed = Vec::new();
        for (index, map) in input.image.maps.iter().enumerate() {
            let mut merged = described(input, moved, map)?;
            let place = if map.content.is_some() {
                // The metadata, which the result has of its own.
                let is_metadata = input.metadata.is_some() && map.name == ".rodata" && !is_used(input, index);
                (!is_metadata).then(|| all.add_data(merged))
            } else if own(input).contains(map.name.as_str()) {
                merged.name = all.unused(&map.name);
                renamed.push((map.name.clone(), merged.name.clone()));
                Some(all.add(merged))
            } else {
                Some(all.share(merged)?)
            };
            indices.push(place);
        }
        all.indices.push(indices);
        all.renamed.push(renamed);
    }
    Ok(all)
}

/// Whether a program refers to the map.
fn is_used(input: &Input, map: usize) -> bool {
    let mut references = input.image.programs.iter().flat_map(|program| &program.references);
    references.any(|reference| reference.map == map)
}

/// The names of the maps that are the object's alone: what its rules and counters count in, what it keeps variables in.
fn own(input: &Input) -> BTreeSet<&str> {
    let Some(metadata) = &input.metadata else { return BTreeSet::new() };
    let rules = metadata.programs.iter().filter_map(|program| program.counters.as_ref());
    let named = metadata.counters.iter().map(|counter| counter.map.as_str());
    rules.map(|range| range.map.as_str()).chain(named).chain([CELLS]).collect()
}

/// The most bytes of a map's declaration: a pointer for each of the members that there are.
const LARGEST_DECLARATION: u32 = 4096;

fn described(input: &Input, moved: &Moved, map: &MapImage) -> Result<MergedMap, MergeError> {
    let failed = |error: crate::btf::BtfError| MergeError::Object {
        file: input.file.clone(),
        error: ObjectError::Damaged(error.to_string()),
    };
    let (mut definition, mut size) = (0, 0);
    if let (None, Some(btf)) = (&map.content, &input.image.btf)
        && let Some(section) = find_data_section(btf, ".maps").map_err(failed)?
    {
        let variables = btf.variables(section).map_err(failed)?;
        if let Some(variable) = variables.iter().find(|variable| variable.name == map.name) {
            definition = moved.ty(variable.type_id);
            size = btf.size(variable.type_id).map_err(failed)?.min(LARGEST_DECLARATION);
        }
    }
    let (name, content) = (map.name.clone(), map.content.clone());
    Ok(MergedMap { name, content, definition, size, image: map.clone(), file: input.file.clone() })
}

impl Merged {
    fn add(&mut self, map: MergedMap) -> usize {
        self.maps.push(map);
        self.maps.len() - 1
    }

    fn add_data(&mut self, mut map: MergedMap) -> usize {
        let kind = if map.image.is_constant() { "rodata" } else { "data" };
        map.name = format!(".{kind}.{}", self.maps.len());
        self.add(map)
    }

    /// `name`, or the like with a number, that no map has yet.
    fn unused(&self, name: &str) -> String {
        let taken = |name: &str| self.maps.iter().any(|map| map.name == name);
        let numbered = |n: usize| {
            let number = n.to_string();
            let kept: String = name.chars().take(NAME_MAX - number.len()).collect();
            kept + &number
        };
        let mut candidates = std::iter::once(name.to_owned()).chain((1..).map(numbered));
        candidates.find(|name| !taken(name)).unwrap_or_default()
    }

    /// The map of that name, if there is one of that shape already; else this one.
    fn share(&mut self, map: MergedMap) -> Result<usize, MergeError> {
        let Some(index) = self.maps.iter().position(|other| other.name == map.name) else {
            return Ok(self.add(map));
        };
        let other = &self.maps[index];
        if shape(&other.image) == shape(&map.image) {
            return Ok(index);
        }
        let (first, second) = (other.shown(), map.shown());
        Err(MergeError::Map { name: map.name, first, second })
    }
}

/// Kind, bytes of a key, bytes of a value, entries, flags.
fn shape(map: &MapImage) -> [u32; 5] {
    [map.kind, map.key_size, map.value_size, map.max_entries, map.flags]
}

impl MergedMap {
    fn shown(&self) -> String {
        let [kind, key, value, entries, flags] = shape(&self.image);
        format!(
            "in `{}` it is of type {kind} with {entries} entries, keys of {key} and values of {value} bytes, flags \
             {flags:#x}",
            self.file
        )
    }
}
