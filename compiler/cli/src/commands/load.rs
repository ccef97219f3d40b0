//! `pktc load`: a program, from a source or an object, on an interface.

use std::path::Path;

use pktc_driver::Subject;
use pktc_driver::options::{Kernel, Options};
use pktc_loader::{AttachError, LoadOptions, Loaded, LoadedProgram};

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
        without_frags: false,
    };
    let path = arguments.file.display().to_string();
    let mut attached = attach(&object, &path, interface, &options)?;
    if let Err(AttachError::NoNativeSupport { .. }) = attached {
        // The driver may take no packets in several buffers; it has none, then.
        let again = attach(&object, &path, interface, &LoadOptions { without_frags: true, ..options })?;
        attached = again.or(attached);
    }
    let loaded = attached.map_err(|error| Failure::new(error.to_string()))?;
    for note in &loaded.notes {
        console.note(format!("note: {note}"));
    }
    let program = only(&loaded.programs, &path)?;
    console.note(format!("attached `{}` (id {}) to {interface}", program.name, program.id));
    Ok(Status::Done)
}

/// Loads the one program and attaches it; the inner error is the interface's.
fn attach(
    object: &[u8],
    path: &str,
    interface: &str,
    options: &LoadOptions,
) -> Result<Result<Loaded, AttachError>, Failure> {
    let loaded =
        pktc_loader::load(object, options).map_err(|error| Failure::new(format!("`{path}`: {error}")))?;
    let attached = pktc_loader::attach(interface, only(&loaded.programs, path)?, options.mode);
    Ok(attached.map(|()| loaded))
}

/// The object in `path`, or built from the source in it.
fn object(path: &Path, wanted: Option<&str>, console: &Console) -> Result<Vec<u8>, Failure> {
    let bytes = disk::read(path)?;
    if bytes.starts_with(b"\x7fELF") {
        return Ok(bytes);
    }
    let source = Source::open(path, console)?;
    let subject = Subject::Xdp(source.xdp(wanted)?);
    let options = options(console);
    let built = source.built(pktc_driver::build(&source.checked, &[subject], &options), console)?;
    Ok(built.object)
}

/// For this machine's kernel.
fn options(console: &Console) -> Options {
    let usual = Options::default();
    if pktc_loader::probe().is_err() || pktc_loader::takes_frags() {
        return usual;
    }
    console.note(
        "note: this kernel has no packets in several buffers, which came with 5.18: access is direct, as with \
         `pktc build --kernel 5.10`",
    );
    let kernel = Kernel::V5_10;
    Options { access: kernel.access(), kernel, ..usual }
}

fn only<'a>(programs: &'a [LoadedProgram], path: &str) -> Result<&'a LoadedProgram, Failure> {
    if let [only] = programs {
        return Ok(only);
    }
    let names = programs.iter().map(|program| program.name.as_str()).collect::<Vec<_>>().join(", ");
    Err(Failure::new(format!("`{path}` has several programs; choose with `--program NAME`: {names}")))
}
