//! `pktc build`: all programs of a file as one object, those of several files as one program, or what a stage works on
//! as text.

use std::path::{Path, PathBuf};

use pktc_diagnostics::has_errors;
use pktc_driver::options::{Counters, Options};
use pktc_driver::{Emit, Subject};

use crate::arguments::BuildArguments;
use crate::commands::link;
use crate::console::{Console, plural};
use crate::disk;
use crate::failure::{Failure, Outcome, Status};
use crate::source::Source;

/// Builds, and says on standard error what was written.
pub(crate) fn build(arguments: &BuildArguments, console: &mut Console) -> Outcome {
    let counters = if arguments.no_counters { Counters::Off } else { Counters::AsWritten };
    let options = arguments.target.options(arguments.level, counters)?;
    let output = arguments.output.as_deref();
    match (&arguments.files[..], arguments.emit) {
        ([file], Some(stage)) => text(&Source::read(file)?, stage, &options, output, console),
        ([file], None) => object(&Source::open(file, console)?, &options, output, console),
        (files, None) => linked(files, &options, output, console),
        (_, Some(_)) => Err(Failure::new("`--emit` shows one file; name one")),
    }
}

/// One program of those of several files.
fn linked(files: &[PathBuf], options: &Options, output: Option<&Path>, console: &Console) -> Outcome {
    let Some(output) = output else {
        return Err(Failure::new("several files make one object; name it with `-o`"));
    };
    let mut objects = Vec::new();
    for file in files {
        let source = Source::open(file, console)?;
        let built = compile(&source, options, console)?;
        refuse_source(&source, output)?;
        objects.push((source.path, built));
    }
    link::write(&objects, output, None, console)
}

/// What `stage` makes. Tokens and syntax trees are shown of sources with errors, too.
fn text(
    source: &Source,
    stage: Emit,
    options: &Options,
    output: Option<&Path>,
    console: &mut Console,
) -> Outcome {
    let mut text = source.built(pktc_driver::emit(&source.checked, stage, options), console)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match output {
        Some(output) => write(source, output, text.as_bytes(), console)?,
        None => console.bytes(text.as_bytes())?,
    }
    let diagnostics = &source.checked.diagnostics;
    if has_errors(diagnostics) {
        return Err(source.refused(diagnostics, console));
    }
    console.diagnostics(&source.checked.sources, diagnostics);
    Ok(Status::Done)
}

fn object(source: &Source, options: &Options, output: Option<&Path>, console: &Console) -> Outcome {
    let built = compile(source, options, console)?;
    let output = output.map_or_else(|| default_output(&source.path), Path::to_path_buf);
    write(source, &output, &built, console)?;
    Ok(Status::Done)
}

/// An object of all programs of the file.
fn compile(source: &Source, options: &Options, console: &Console) -> Result<Vec<u8>, Failure> {
    let subjects: Vec<Subject> = source.xdps()?.into_iter().map(Subject::Xdp).collect();
    let built = source.built(pktc_driver::build(&source.checked, &subjects, options), console)?;
    source.tell_unseen(options, console);
    Ok(built.object)
}

/// `rules/edge.pkt` becomes `edge.o` in the current directory, as a C compiler does it.
fn default_output(source: &str) -> PathBuf {
    let name = Path::new(source).with_extension("o");
    name.file_name().map(PathBuf::from).unwrap_or(name)
}

/// Writes a result, but over nothing that it was made from.
fn write(source: &Source, output: &Path, bytes: &[u8], console: &Console) -> Result<(), Failure> {
    refuse_source(source, output)?;
    disk::write(output, bytes)?;
    console.note(format!("wrote `{}` ({})", output.display(), plural(bytes.len(), "byte")));
    Ok(())
}

/// An error, if `output` is one of the source's files.
fn refuse_source(source: &Source, output: &Path) -> Result<(), Failure> {
    let sources = &source.checked.sources;
    if sources.files().any(|file| disk::same_file(output, Path::new(sources.name(file)))) {
        let shown = output.display();
        return Err(Failure::new(format!(
            "`{shown}` is a source of this build; name another file with `-o`"
        )));
    }
    Ok(())
}
