//! Several objects in one: a single program that means what a dispatcher's chain of theirs would, without its calls.
//!
//! ```text
//! objects ─ image ─┬─ body ──► one program, and the functions that it calls ─┐
//!                  ├─ maps ──► shared by name and shape ────────────────────┼─ file ──► object
//!                  └─ types ─► BTF; source lines; metadata ─────────────────┘
//! ```
//!
//! Objects are read as they are for loading, so what comes from clang is linked as well.

mod body;
mod file;
mod maps;
mod types;

use std::ffi::CString;
use std::fmt;

use pktc_object::{Metadata, SourceInfo};

use crate::image::{Image, ObjectError};
use body::{Function, Part};
use types::{Moved, Types};

/// The most bytes of a name that the kernel keeps.
const NAME_MAX: usize = 15;

/// Why objects were not linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// One of them cannot be read.
    Object {
        /// Its file.
        file: String,
        /// What is wrong with it.
        error: ObjectError,
    },
    /// Two maps of one name that are not alike.
    Map {
        /// The name.
        name: String,
        /// Where, and of which shape.
        first: String,
        /// The same of the other.
        second: String,
    },
    /// Two programs of one name.
    SameProgram {
        /// The name.
        name: String,
        /// The files.
        files: [String; 2],
    },
    /// Licences that do not go together.
    License([String; 2]),
    /// The kernel does not take the result's name, or one of the programs has it.
    Name(String),
    /// The programs leave no room on the stack.
    Stack,
    /// A program's jumps would be longer than 16 bits allow.
    TooLong {
        /// The program.
        program: String,
    },
    /// A function calls the program that it is in, which the kernel does not take.
    Recursion {
        /// The program.
        program: String,
    },
    /// No object was given.
    Nothing,
    /// The ELF writer refused.
    Elf(String),
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::Object { file, error } => write!(f, "`{file}`: {error}"),
            MergeError::Map { name, first, second } => write!(
                f,
                "map `{name}` is declared in two ways, so it cannot be shared: {first}; {second}. Rename one, or \
                 declare both alike"
            ),
            MergeError::SameProgram { name, files: [first, second] } => {
                write!(f, "both `{first}` and `{second}` have a program `{name}`; rename one")
            }
            MergeError::License([first, second]) => {
                write!(f, "programs under the licences \"{first}\" and \"{second}\" cannot be one program")
            }
            MergeError::Name(name) => write!(
                f,
                "the program cannot be named `{name}`: a name has at most 15 letters, digits and `_`, no digit first, \
                 and none of the linked programs has it; choose one with `--name NAME`"
            ),
            MergeError::Stack => {
                f.write_str("a program uses the whole stack, and linked ones need 8 bytes of it")
            }
            MergeError::TooLong { program } => write!(
                f,
                "program `{program}` is too long to be linked: jumps reach 32767 instructions; load it by itself"
            ),
            MergeError::Recursion { program } => {
                write!(f, "program `{program}` is called by its own functions")
            }
            MergeError::Nothing => f.write_str("there is no object to link"),
            MergeError::Elf(why) => write!(f, "the object cannot be written: {why}"),
        }
    }
}

impl std::error::Error for MergeError {}

/// A linked object.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The ELF object's bytes.
    pub object: Vec<u8>,
    /// The programs in the order in which they run.
    pub programs: Vec<String>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// An object that is linked.
struct Input {
    file: String,
    image: Image,
    /// If pktc made it.
    metadata: Option<Metadata>,
}

/// Links all programs of the objects, each a file's name and its bytes, into a program called `name`. They run by
/// priority, then name, then in the order given.
///
/// # Errors
/// See [`MergeError`].
pub fn merge(objects: &[(String, Vec<u8>)], name: &str) -> Result<Merged, MergeError> {
    let mut inputs = Vec::new();
    for (file, bytes) in objects {
        let failed = |error| MergeError::Object { file: file.clone(), error };
        let image = Image::parse(bytes).map_err(failed)?;
        inputs.push(Input { file: file.clone(), image, metadata: pktc_object::read_metadata(bytes).ok() });
    }
    check_names(&inputs, name)?;
    let license = license(&inputs)?;
    let mut types = Types::new();
    let mut moved = Vec::new();
    for input in &inputs {
        moved.push(append_types(input, &mut types)?);
    }
    let maps = maps::merge(&inputs, &moved)?;
    let (parts, mut functions) = parts(&inputs, &moved, &maps.indices)?;
    let mut notes = Vec::new();
    let (mut body, count) = body::join(&parts, name)?;
    if let Some(unreached) = parts.get(count) {
        let (last, unreached) = (&parts[count - 1].program.name, &unreached.program.name);
        notes.push(format!("program `{last}` never leads on, so `{unreached}` and what follows never runs"));
    }
    let frags = parts.iter().all(|part| part.program.frags);
    if !frags && parts.iter().any(|part| part.program.frags) {
        notes.push("one of the programs takes packets in one buffer only, so the result does".into());
    }
    let programs: Vec<String> = parts[..count].iter().map(|part| part.program.name.clone()).collect();
    body.ty = types.like(parts[0].functions[0].ty, name);
    complete_lines(&mut body, &mut functions);
    let metadata = metadata(&inputs, &maps, &programs);
    let object =
        file::write(file::Parts { body, functions, frags, maps: &maps.maps, types, license, metadata })?;
    Ok(Merged { object, programs, notes })
}

fn check_names(inputs: &[Input], name: &str) -> Result<(), MergeError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(allowed);
    let programs: Vec<_> = inputs
        .iter()
        .flat_map(|input| input.image.programs.iter().map(|program| (program.name.as_str(), &input.file)))
        .collect();
    let taken = programs.iter().any(|(program, _)| *program == name);
    if !is_name || name.as_bytes()[0].is_ascii_digit() || taken {
        return Err(MergeError::Name(name.to_owned()));
    }
    for (n, (name, file)) in programs.iter().enumerate() {
        if let Some((_, first)) = programs[..n].iter().find(|(other, _)| other == name) {
            let files = [(*first).clone(), (*file).clone()];
            return Err(MergeError::SameProgram { name: (*name).to_owned(), files });
        }
    }
    Ok(())
}

/// One that all objects are under, or the GPL where all are compatible with it.
fn license(inputs: &[Input]) -> Result<CString, MergeError> {
    const COMPATIBLE: [&str; 6] =
        ["GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"];
    let Some(first) = inputs.first().map(|input| &input.image.license) else {
        return Err(MergeError::Nothing);
    };
    let Some(other) = inputs.iter().map(|input| &input.image.license).find(|license| *license != first)
    else {
        return Ok(first.clone());
    };
    let compatible = |input: &Input| COMPATIBLE.contains(&&*input.image.license.to_string_lossy());
    if inputs.iter().all(compatible) {
        return Ok(c"GPL".to_owned());
    }
    Err(MergeError::License([first, other].map(|license| license.to_string_lossy().into_owned())))
}

fn append_types(input: &Input, types: &mut Types) -> Result<Moved, MergeError> {
    let Some(btf) = &input.image.btf else { return Ok(Moved::default()) };
    let failed = |error: crate::btf::BtfError| MergeError::Object {
        file: input.file.clone(),
        error: ObjectError::Damaged(error.to_string()),
    };
    types.append(btf).map_err(failed)
}

/// The programs in the order in which they run, and all functions that they call. `maps` gives each map's place in the
/// result, by object.
fn parts<'a>(
    inputs: &'a [Input],
    moved: &[Moved],
    maps: &[Vec<Option<usize>>],
) -> Result<(Vec<Part<'a>>, Vec<Function>), MergeError> {
    let mut order: Vec<_> = inputs
        .iter()
        .enumerate()
        .flat_map(|(n, input)| input.image.programs.iter().map(move |program| (n, program)))
        .collect();
    order.sort_by_key(|(_, program)| (program.slot.priority, program.name.clone()));
    let (mut parts, mut called) = (Vec::new(), Vec::new());
    for (n, program) in order {
        let mut functions = body::split(program, called.len())?;
        for function in &mut functions {
            function.ty = moved[n].ty(function.ty);
            for reference in &mut function.references {
                // Only what no program refers to has no place.
                reference.map = maps[n][reference.map].unwrap_or(0);
            }
            for line in &mut function.lines {
                line[1] = moved[n].string(line[1]);
                line[2] = moved[n].string(line[2]);
            }
        }
        called.extend(functions.drain(1..));
        parts.push(Part { program, exact: inputs[n].metadata.is_some(), functions });
    }
    share_alike(&mut parts, &mut called);
    number(&mut called);
    Ok((parts, called))
}

/// Lets programs that call alike functions call one. Only functions that refer to nothing are compared.
fn share_alike(parts: &mut [Part<'_>], called: &mut Vec<Function>) {
    let mut kept: Vec<Function> = Vec::new();
    let mut places = Vec::new();
    for function in called.drain(..) {
        let refers = |function: &Function| !function.references.is_empty() || !function.calls.is_empty();
        let alike = |other: &Function| other.name == function.name && other.code == function.code;
        let known = kept.iter().position(|other| !refers(&function) && !refers(other) && alike(other));
        places.push(known.unwrap_or(kept.len()));
        if known.is_none() {
            kept.push(function);
        }
    }
    let own = parts.iter_mut().flat_map(|part| &mut part.functions);
    for (_, callee) in own.chain(&mut kept).flat_map(|function| &mut function.calls) {
        *callee = places[*callee];
    }
    *called = kept;
}

/// Gives functions of one name different ones.
fn number(functions: &mut [Function]) {
    for n in 1..functions.len() {
        let (before, rest) = functions.split_at_mut(n);
        if before.iter().any(|other| other.name == rest[0].name) {
            rest[0].name = format!("{}_{n}", rest[0].name);
        }
    }
}

/// The kernel wants types for all functions or none, and lines likewise, one at each function's first instruction.
fn complete_lines(body: &mut Function, functions: &mut [Function]) {
    let mut all: Vec<&mut Function> = functions.iter_mut().chain([body]).collect();
    let typed = all.iter().all(|function| function.ty != 0);
    let lined = typed && all.iter().all(|function| function.lines.first().is_some_and(|line| line[0] == 0));
    for function in &mut all {
        if !typed {
            function.ty = 0;
        }
        if !lined {
            function.lines.clear();
        }
    }
}

/// What the parts say of themselves, with the counters' maps as they are named now.
fn metadata(inputs: &[Input], maps: &maps::Merged, programs: &[String]) -> Option<Metadata> {
    let mut all: Option<Metadata> = None;
    for (n, input) in inputs.iter().enumerate() {
        let Some(mut own) = input.metadata.clone() else { continue };
        own.programs.retain(|program| programs.contains(&program.name));
        for program in &mut own.programs {
            if let Some(range) = &mut program.counters {
                range.map = maps.name(n, &range.map);
            }
        }
        for counter in &mut own.counters {
            counter.map = maps.name(n, &counter.map);
        }
        let Some(all) = &mut all else {
            all = Some(own);
            continue;
        };
        all.programs.extend(own.programs);
        all.counters.extend(own.counters);
        all.sets.extend(own.sets);
        let SourceInfo { path, sha256 } = own.source;
        all.source.path += &format!(", {path}");
        all.source.sha256 += &format!(", {sha256}");
    }
    all
}

#[cfg(test)]
mod tests;
