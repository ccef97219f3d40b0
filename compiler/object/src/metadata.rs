//! What an object says of itself: one JSON document, for people's tools and for pktc's own commands.
//!
//! It stands twice in an object. The section [`SECTION`] is for whoever has the file; no loader reads it. The
//! variable [`VARIABLE`] is for whoever has only the loaded program: it lies in a `.rodata` map of its own, which
//! libbpf (since 0.2, on kernels from 5.10) binds to every program of the object by `BPF_PROG_BIND_MAP`, so that
//! the program's list of maps leads to it.
//!
//! Keys are sorted (the fields below stand in alphabetical order) and there is no time in it: equal programs give
//! equal bytes. Later versions may add keys; [`SCHEMA`] changes when a key changes its meaning.

use std::fmt;

use object::{Object, ObjectSection};
use serde::{Deserialize, Serialize};

/// The version of the document's schema that this crate reads and writes.
pub const SCHEMA: u32 = 1;
/// The ELF section that holds the document.
pub const SECTION: &str = ".pktc";
/// The variable, and by its prefix `bpf_metadata_` the mark for `bpftool prog show`, that holds it too.
pub const VARIABLE: &str = "bpf_metadata_pktc";

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Named counters (not those of rules).
    pub counters: Vec<CounterInfo>,
    /// The programs, in the order in which they stand in the object.
    pub programs: Vec<ProgramInfo>,
    /// [`SCHEMA`].
    pub schema: u32,
    /// Fixed sets.
    pub sets: Vec<SetInfo>,
    /// What the object was made from.
    pub source: SourceInfo,
}

/// The file that was compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// Its path, as it was named to the compiler.
    pub path: String,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramInfo {
    /// After which actions a dispatcher goes on, by [`pktc_bpf::XdpAction::word`]; absent: its choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_on: Option<Vec<String>>,
    /// Where its rules count; `null` if they do not.
    pub counters: Option<CounterRange>,
    /// Its name, in the source and in the kernel.
    pub name: String,
    /// Its place among a dispatcher's programs, lower ones first; absent: the dispatcher's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Its rules by ascending id.
    pub rules: Vec<RuleInfo>,
}

/// A program's counters in a per-CPU array: rule `id` counts in entry `first + id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterRange {
    /// How many entries: one a rule.
    pub count: u32,
    /// The first entry.
    pub first: u32,
    /// The map's name in the kernel.
    pub map: String,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleInfo {
    /// The file that declares it.
    pub file: String,
    /// Its number in the program; 0 is the default.
    pub id: u32,
    /// What identifies it when the program is replaced: `label`, `chain.label`, `@2`.
    pub identity: String,
    /// The line that declares it, from 1.
    pub line: u32,
    /// What reports call it: `label`, `chain.label`, or `@LINE`.
    pub name: String,
}

/// A fixed set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetInfo {
    /// How many elements it was written with.
    pub elements: u64,
    /// Its name.
    pub name: String,
    /// The type of its elements, as the language spells it: `ip_prefix`.
    #[serde(rename = "type")]
    pub ty: String,
}

/// A named counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterInfo {
    /// The file that declares it.
    pub file: String,
    /// Its entry in the map.
    pub index: u32,
    /// The line that declares it, from 1.
    pub line: u32,
    /// The map's name in the kernel.
    pub map: String,
    /// Its name.
    pub name: String,
}

/// Why there is no metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataError {
    /// Not an ELF file, or a damaged one.
    NotAnObject(String),
    /// An ELF file that pktc did not make.
    Absent,
    /// The document is damaged.
    Damaged(String),
    /// Another version of pktc made it.
    Schema(u32),
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetadataError::NotAnObject(why) => write!(f, "this is not an ELF object: {why}"),
            MetadataError::Absent => {
                write!(
                    f,
                    "the object has no section `{SECTION}`: pktc did not build it; build it with `pktc build`"
                )
            }
            MetadataError::Damaged(why) => {
                write!(f, "the object's metadata is damaged ({why}); build it again with `pktc build`")
            }
            MetadataError::Schema(found) => write!(
                f,
                "the object's metadata has schema {found}, this pktc reads {SCHEMA}; build it again with this pktc"
            ),
        }
    }
}

impl std::error::Error for MetadataError {}

impl Metadata {
    /// The document as it stands in the object, without a final NUL. It contains no NUL.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Serialisation into memory can fail only for maps with keys that are not strings; there are none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the document from `bytes`, which may be followed by NULs (as a map's value is).
    ///
    /// # Errors
    /// If it is damaged or has another schema.
    pub fn from_json(bytes: &[u8]) -> Result<Self, MetadataError> {
        /// The one key that all schemas share.
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let text = &bytes[..end];
        let damaged = |error: serde_json::Error| MetadataError::Damaged(error.to_string());
        let version: Version = serde_json::from_slice(text).map_err(damaged)?;
        if version.schema != SCHEMA {
            return Err(MetadataError::Schema(version.schema));
        }
        serde_json::from_slice(text).map_err(damaged)
    }
}

/// The metadata of the object file `object`.
///
/// # Errors
/// If it is no object, or not one that pktc made.
pub fn read_metadata(object: &[u8]) -> Result<Metadata, MetadataError> {
    let not_an_object = |error: object::Error| MetadataError::NotAnObject(error.to_string());
    let file = object::File::parse(object).map_err(not_an_object)?;
    let section = file.section_by_name(SECTION).ok_or(MetadataError::Absent)?;
    Metadata::from_json(section.data().map_err(not_an_object)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Metadata {
        Metadata {
            counters: Vec::new(),
            programs: vec![ProgramInfo {
                chain_on: None,
                counters: Some(CounterRange { count: 1, first: 0, map: "hits".into() }),
                name: "edge".into(),
                priority: Some(10),
                rules: vec![RuleInfo {
                    file: "edge.pkt".into(),
                    id: 0,
                    identity: "default".into(),
                    line: 2,
                    name: "default".into(),
                }],
            }],
            schema: SCHEMA,
            sets: vec![SetInfo { elements: 2, name: "vips".into(), ty: "ip_prefix".into() }],
            source: SourceInfo { path: "edge.pkt".into(), sha256: "00".into() },
        }
    }

    #[test]
    fn the_document_has_sorted_keys() {
        let expected = concat!(
            r#"{"counters":[],"programs":[{"counters":{"count":1,"first":0,"map":"hits"},"name":"edge","#,
            r#""priority":10,"rules":[{"file":"edge.pkt","id":0,"identity":"default","line":2,"name":"default"}]}],"schema":1,"#,
            r#""sets":[{"elements":2,"name":"vips","type":"ip_prefix"}],"#,
            r#""source":{"path":"edge.pkt","sha256":"00"}}"#
        );
        assert_eq!(small().to_json(), expected);
    }

    #[test]
    fn a_padded_document_is_read_back() {
        let mut bytes = small().to_json().into_bytes();
        bytes.extend([0, 0, 7]);
        assert_eq!(Metadata::from_json(&bytes), Ok(small()));
    }

    #[test]
    fn unknown_keys_are_ignored_and_other_schemas_refused() {
        let added = small().to_json().replacen('{', r#"{"added":1,"#, 1);
        assert_eq!(Metadata::from_json(added.as_bytes()), Ok(small()));
        assert_eq!(Metadata::from_json(br#"{"schema":2}"#), Err(MetadataError::Schema(2)));
    }

    #[test]
    fn damage_is_reported() {
        let json = small().to_json();
        for end in 0..json.len() {
            let error = Metadata::from_json(&json.as_bytes()[..end]).unwrap_err();
            assert!(matches!(error, MetadataError::Damaged(_)), "{end}: {error:?}");
        }
        assert!(matches!(read_metadata(b"\x7fELF"), Err(MetadataError::NotAnObject(_))));
        assert!(matches!(read_metadata(b""), Err(MetadataError::NotAnObject(_))));
    }
}
