//! `pktc load`: a program, from a source or an object, on interfaces.

use std::path::{Path, PathBuf};

use pktc_driver::Subject;
use pktc_driver::options::{Kernel, Options};
use pktc_loader::{InstallError, InstallOptions, Placed};

use crate::arguments::LoadArguments;
use crate::console::Console;
use crate::disk;
use crate::failure::{Failure, Outcome, Status};
use crate::source::Source;

/// What the program of several files is called.
const LINKED: &str = "linked";

/// Loads one program and puts it on each interface, in place of an older version of it where one runs.
pub(crate) fn load(arguments: &LoadArguments, console: &mut Console) -> Outcome {
    // Before anything is compiled or loaded for them.
    for interface in &arguments.iface {
        pktc_loader::check_interface(interface).map_err(|error| Failure::new(error.to_string()))?;
    }
    let object = match &arguments.files[..] {
        [file] => object(file, arguments.program.as_deref(), console)?,
        files => linked(files, arguments.program.as_deref(), console)?,
    };
    let chain_on = arguments.chain_on.as_ref();
    let options = InstallOptions {
        program: arguments.program.clone(),
        mode: arguments.mode,
        direct: arguments.direct,
        version: arguments.dispatcher_version,
        priority: arguments.priority,
        chain_on: chain_on.map(|actions| actions.iter().fold(0, |set, action| set | action.bit())),
    };
    let paths: Vec<_> = arguments.files.iter().map(|path| format!("`{}`", path.display())).collect();
    let installed =
        pktc_loader::install(&object, &arguments.iface, &options).map_err(|error| match error {
            InstallError::Load(error) => Failure::new(format!("{}: {error}", paths.join(", "))),
            InstallError::Attach(error) => Failure::new(error.to_string()),
        })?;
    for note in &installed.notes {
        console.note(format!("note: {note}"));
    }
    for place in &installed.places {
        console.note(told(&installed.name, place));
    }
    Ok(Status::Done)
}

/// What became of an interface.
fn told(program: &str, place: &Placed) -> String {
    let Placed { interface, id, replaced, turn } = place;
    let done = match replaced {
        Some(old) => {
            format!("attached `{program}` (id {id}) to {interface} in place of its older version (id {old})")
        }
        None => format!("attached `{program}` (id {id}) to {interface}"),
    };
    match turn {
        Some((turn, of)) => format!("{done}, program {turn} of {of} there"),
        None => done,
    }
}

/// All programs of the files as one.
fn linked(files: &[PathBuf], name: Option<&str>, console: &Console) -> Result<Vec<u8>, Failure> {
    let mut objects = Vec::new();
    for file in files {
        objects.push((file.display().to_string(), object(file, None, console)?));
    }
    let merged = pktc_loader::merge(&objects, name.unwrap_or(LINKED));
    let merged = merged.map_err(|error| Failure::new(error.to_string()))?;
    for note in &merged.notes {
        console.note(format!("note: {note}"));
    }
    console.note(format!("linked {}", merged.programs.join(", ")));
    Ok(merged.object)
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
