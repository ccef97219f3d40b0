//! `pktc link`: several objects in one, as one program.

use std::path::Path;

use crate::arguments::LinkArguments;
use crate::console::{Console, plural};
use crate::disk;
use crate::failure::{Failure, Outcome, Status};

/// Links, and says what was written.
pub(crate) fn link(arguments: &LinkArguments, console: &mut Console) -> Outcome {
    let mut objects = Vec::new();
    for path in &arguments.files {
        if disk::same_file(path, &arguments.output) {
            let shown = path.display();
            return Err(Failure::new(format!("`{shown}` is linked itself; name another file with `-o`")));
        }
        objects.push((path.display().to_string(), disk::read(path)?));
    }
    write(&objects, &arguments.output, arguments.name.as_deref(), console)
}

/// Links these objects into `output`; the program is called `name`, or like the file.
pub(crate) fn write(
    objects: &[(String, Vec<u8>)],
    output: &Path,
    name: Option<&str>,
    console: &Console,
) -> Outcome {
    let stem = output.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.map_or_else(|| stem.unwrap_or_default(), str::to_owned);
    let merged = pktc_loader::merge(objects, &name).map_err(|error| Failure::new(error.to_string()))?;
    for note in &merged.notes {
        console.note(format!("note: {note}"));
    }
    disk::write(output, &merged.object)?;
    let size = plural(merged.object.len(), "byte");
    let programs = merged.programs.join(", ");
    console.note(format!("wrote `{}` ({size}): program `{name}` of {programs}", output.display()));
    Ok(Status::Done)
}
