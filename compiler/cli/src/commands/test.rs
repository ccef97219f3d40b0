//! `pktc test`: the tests in the sources.

use pktc_driver::options::{Counters, Level, Options};
use pktc_testing::runner::{self, Setup};
use pktc_testing::snapshot;

use crate::arguments::TestArguments;
use crate::console::Console;
use crate::disk::Disk;
use crate::engines;
use crate::failure::{Outcome, Status};
use crate::source::Source;

/// Tests every file; one with errors does not keep the next from being tested.
pub(crate) fn test(arguments: &TestArguments, console: &mut Console) -> Outcome {
    let options = arguments.target.options(Level::default(), Counters::On)?;
    let mut worst = Status::Done;
    for file in &arguments.files {
        let status = match Source::open(file, console) {
            Ok(source) => test_file(&source, arguments, &options, console)?,
            Err(failure) => failure.show(console),
        };
        worst = worst.max(status);
    }
    Ok(worst)
}

fn test_file(
    source: &Source,
    arguments: &TestArguments,
    options: &Options,
    console: &mut Console,
) -> Outcome {
    let sources = &source.checked.sources;
    let setup = Setup {
        program: source.program(),
        sources,
        file: source.checked.entry,
        files: &Disk,
        store: &mut snapshot::Disk,
        accept: arguments.accept,
    };
    let report = runner::run_tests(setup, &mut |target| {
        Ok(engines::start(arguments.engine, source, target, options)?)
    });
    for notice in &report.notices {
        console.warning(notice);
    }
    if arguments.files.len() > 1 {
        console.line(format!("{}:", source.path))?;
    }
    console.bytes(report.text(sources, console.colors_results()).as_bytes())?;
    Ok(if report.is_ok() { Status::Done } else { Status::Failed })
}
