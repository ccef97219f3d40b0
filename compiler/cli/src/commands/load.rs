//! `pktc load`: a program, from a source or an object, on an interface.

use std::path::Path;

use pktc_driver::Subject;
use pktc_driver::options::Options;
use pktc_loader::{LoadOptions, LoadedProgram};

use crate::arguments::LoadArguments;
use crate::console::Console;
use crate::disk;
use crate::failure::{Failure, Outcome, Status};
use crate::source::Source;

/// Loads one program and attaches it where none is yet.
pub(crate) fn load(arguments: &LoadArguments, console: &mut Console) -> Outcome {
    let interface = &arguments.iface;
    // Before anything is compiled or loaded for it.
    pktc_loader::check_interface(interface).map_err(|error| Failure::new(error.to_string()))?;
    let wanted = arguments.program.as_deref();
    let object = object(&arguments.file, wanted, console)?;
    let options = LoadOptions {
        program: wanted.map(str::to_owned),
        mode: arguments.mode,
        interface: Some(interface.clone()),
    };
    let shown = arguments.file.display();
    let loaded =
        pktc_loader::load(&object, &options).map_err(|error| Failure::new(format!("`{shown}`: {error}")))?;
    for note in &loaded.notes {
        console.note(format!("note: {note}"));
    }
    let program = only(&loaded.programs, &shown.to_string())?;
    pktc_loader::attach(interface, program, arguments.mode)
        .map_err(|error| Failure::new(error.to_string()))?;
    console.note(format!("attached `{}` (id {}) to {interface}", program.name, program.id));
    Ok(Status::Done)
}

/// The object in `path`, or built from the source in it.
fn object(path: &Path, wanted: Option<&str>, console: &Console) -> Result<Vec<u8>, Failure> {
    let bytes = disk::read(path)?;
    if bytes.starts_with(b"\x7fELF") {
        return Ok(bytes);
    }
    let source = Source::open(path, console)?;
    let subject = Subject::Xdp(source.xdp(wanted)?);
    let built =
        source.built(pktc_driver::build(&source.checked, &[subject], &Options::default()), console)?;
    Ok(built.object)
}

fn only<'a>(programs: &'a [LoadedProgram], path: &str) -> Result<&'a LoadedProgram, Failure> {
    if let [only] = programs {
        return Ok(only);
    }
    let names = programs.iter().map(|program| program.name.as_str()).collect::<Vec<_>>().join(", ");
    Err(Failure::new(format!("`{path}` has several programs; choose with `--program NAME`: {names}")))
}
