//! From machine code to an object file that every loader takes: ELF, BTF, source lines, metadata.
//!
//! ```text
//! Module ──code──▶ sections of bytes ─┐
//!        ──data──▶ read-only data ────┼──types──▶ BTF ──lines──▶ BTF.ext ──elf──▶ file
//! Metadata ──────▶ JSON ──────────────┘
//! ```
//!
//! What loaders want was tried with libbpf 1.1 (bpftool, iproute2), libxdp 1.3 (xdp-loader) and aya-obj 0.3; where
//! a line looks arbitrary, one of them refuses the alternative, and the comment there says which.
//!
//! Two builds of one program are equal byte for byte: nothing here depends on time, place or hashing.

mod btf;
mod code;
mod data;
mod dispatcher;
mod dump;
mod elf;
mod lines;
mod metadata;
mod run_config;
mod types;

use std::collections::HashSet;
use std::fmt;

use pktc_bpf::{EncodeError, MapDef, MapIndex, SubprogramIndex, ValueLayout};
use pktc_codegen::module::Module;
use pktc_diagnostics::SourceMap;

pub use dispatcher::Dispatcher;
pub use dump::{DumpError, dump};
pub use metadata::{
    CounterInfo, CounterRange, Metadata, MetadataError, ProgramInfo, RuleInfo, SCHEMA, SECTION, SetInfo,
    SourceInfo, VARIABLE, read_metadata,
};

/// Longest name of a program or map that the kernel keeps (`BPF_OBJ_NAME_LEN` less the NUL).
const NAME_MAX: usize = 15;

/// Why no object can be made of a module. The stages before should have seen to it: each is a bug of the compiler,
/// or a name that the checker should have refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// There is no program.
    NoPrograms,
    /// A name that the kernel does not take.
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two programs, or two maps, of one name.
    Duplicate {
        /// The name.
        name: String,
    },
    /// A program without instructions.
    Empty {
        /// The program.
        program: String,
    },
    /// A program uses a map that the module lacks.
    MissingMap {
        /// The program.
        program: String,
        /// The map's index.
        map: MapIndex,
    },
    /// A program calls a subprogram that the module lacks.
    MissingSubprogram {
        /// The program.
        program: String,
        /// The subprogram's index.
        subprogram: SubprogramIndex,
    },
    /// A program takes an address inside a map that has no content.
    NoContent {
        /// The program.
        program: String,
        /// The map.
        map: String,
    },
    /// A program calls a function of its own section; what programs call lies in `.text`.
    LocalCall {
        /// The program.
        program: String,
    },
    /// An instruction has no encoding.
    Encode {
        /// The program.
        program: String,
        /// Which, and why.
        error: EncodeError,
    },
    /// A map's content does not fit its definition.
    Content {
        /// The map.
        map: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A map's layout does not fit its value.
    Layout {
        /// The map.
        map: String,
    },
    /// The ELF writer refused.
    Elf(String),
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::NoPrograms => {
                write!(f, "there is no program to write: declare one with `xdp NAME {{ … }}`")
            }
            ObjectError::Name { name, reason } => {
                write!(f, "the kernel does not take the name `{name}`: {reason}")
            }
            ObjectError::Duplicate { name } => {
                write!(
                    f,
                    "`{name}` is declared twice: names of programs, and of maps, are unique in an object"
                )
            }
            ObjectError::Empty { program } => write!(f, "program `{program}` has no instructions"),
            ObjectError::MissingMap { program, map } => {
                write!(f, "program `{program}` uses map number {}, which does not exist", map.0)
            }
            ObjectError::MissingSubprogram { program, subprogram } => {
                write!(
                    f,
                    "program `{program}` calls subprogram number {}, which does not exist",
                    subprogram.0
                )
            }
            ObjectError::NoContent { program, map } => {
                write!(
                    f,
                    "program `{program}` takes an address inside map `{map}`, which has no fixed content"
                )
            }
            ObjectError::LocalCall { program } => write!(f, "program `{program}` calls a local function"),
            ObjectError::Encode { program, error } => write!(f, "program `{program}`: {error}"),
            ObjectError::Content { map, reason } => write!(f, "map `{map}`: {reason}"),
            ObjectError::Layout { map } => write!(f, "map `{map}`: its members are not as long as its value"),
            ObjectError::Elf(why) => write!(f, "the object cannot be written: {why}"),
        }
    }
}

impl std::error::Error for ObjectError {}

/// Writes `module` as an object file. `sources` are those that the module's lines point into.
///
/// # Errors
/// If the module breaks a rule of [`ObjectError`].
pub fn write(module: &Module, metadata: &Metadata, sources: &SourceMap) -> Result<Vec<u8>, ObjectError> {
    check(module)?;
    let code = code::assemble(module)?;
    let json = metadata.to_json();
    let mut data = data::contents(module)?;
    data.push(data::DataSection::metadata(&json));
    let types::Described { mut btf, functions, maps } = types::describe(module, &code, &data);
    let run_configs = run_config::describe(&mut btf, &metadata.programs);
    let btf_ext = lines::encode(&mut btf, &code, &functions, sources);
    let btf = btf.finish();
    elf::write(elf::Parts {
        code: &code,
        data: &data,
        maps: &maps,
        run_configs: &run_configs,
        btf,
        btf_ext,
        metadata: data::terminated(&json),
    })
}

fn check(module: &Module) -> Result<(), ObjectError> {
    if module.programs.is_empty() {
        return Err(ObjectError::NoPrograms);
    }
    let functions = module.programs.iter().chain(&module.subprograms);
    check_names(functions.map(|function| function.name.as_str()))?;
    check_names(module.maps.iter().map(|map| map.name.as_str()))?;
    match module.maps.iter().find(|map| !layout_fits(map)) {
        Some(map) => Err(ObjectError::Layout { map: map.name.clone() }),
        None => Ok(()),
    }
}

fn layout_fits(map: &MapDef) -> bool {
    match &map.layout {
        ValueLayout::Bytes => true,
        ValueLayout::U64s(names) => names.len() * 8 == map.value_size as usize,
    }
}

/// The kernel takes C identifiers in BTF (`btf_name_valid_identifier`) and cuts names of programs and maps.
fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), ObjectError> {
    let mut seen = HashSet::new();
    for name in names {
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let reason = if name.len() > NAME_MAX {
            "it has more than 15 characters"
        } else if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(letters) {
            "it is not made of letters, digits and `_`, the first no digit"
        } else if !seen.insert(name) {
            return Err(ObjectError::Duplicate { name: name.to_owned() });
        } else {
            continue;
        };
        return Err(ObjectError::Name { name: name.to_owned(), reason });
    }
    Ok(())
}
