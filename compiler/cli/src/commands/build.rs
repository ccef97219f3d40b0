//! `pktc build`: all programs of a file as one object, or what a stage works on as text.

use std::path::{Path, PathBuf};

use pktc_diagnostics::has_errors;
use pktc_driver::options::{Counters, Options};
use pktc_driver::{Emit, Subject};

use crate::arguments::BuildArguments;
use crate::console::{Console, plural};
use crate::disk;
use crate::failure::{Failure, Outcome, Status};
use crate::source::Source;

/// Builds, and says on standard error what was written.
pub(crate) fn build(arguments: &BuildArguments, console: &mut Console) -> Outcome {
    let counters = if arguments.no_counters { Counters::Off } else { Counters::AsWritten };
    let options = arguments.target.options(arguments.level, counters)?;
    let output = arguments.output.as_deref();
    match arguments.emit {
        Some(stage) => text(&Source::read(&arguments.file)?, stage, &options, output, console),
        None => object(&Source::open(&arguments.file, console)?, &options, output, console),
    }
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
    let programs = source.xdps()?;
    let subjects: Vec<Subject> = programs.into_iter().map(Subject::Xdp).collect();
    let built = source.built(pktc_driver::build(&source.checked, &subjects, options), console)?;
    source.tell_unseen(options, console);
    let output = output.map_or_else(|| default_output(&source.path), Path::to_path_buf);
    write(source, &output, &built.object, console)?;
    Ok(Status::Done)
}

/// `rules/edge.pkt` becomes `edge.o` in the current directory, as a C compiler does it.
fn default_output(source: &str) -> PathBuf {
    let name = Path::new(source).with_extension("o");
    name.file_name().map(PathBuf::from).unwrap_or(name)
}

/// Writes a result, but over nothing that it was made from.
fn write(source: &Source, output: &Path, bytes: &[u8], console: &Console) -> Result<(), Failure> {
    let shown = output.display();
    let sources = &source.checked.sources;
    if sources.files().any(|file| disk::same_file(output, Path::new(sources.name(file)))) {
        return Err(Failure::new(format!(
            "`{shown}` is a source of this build; name another file with `-o`"
        )));
    }
    disk::write(output, bytes)?;
    console.note(format!("wrote `{shown}` ({})", plural(bytes.len(), "byte")));
    Ok(())
}
