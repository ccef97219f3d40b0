//! `pktc test`: the tests in the sources.

use pktc_testing::runner::{self, Setup};
use pktc_testing::snapshot;

use crate::arguments::TestArguments;
use crate::console::Console;
use crate::disk::Disk;
use crate::engines::{self, EngineKind, Linear, Setting};
use crate::failure::{Outcome, Status};
use crate::source::Source;

/// Tests every file; one with errors does not keep the next from being tested.
pub(crate) fn test(arguments: &TestArguments, console: &mut Console) -> Outcome {
    let setting = arguments.running.setting(usual)?;
    let mut worst = Status::Done;
    for file in &arguments.files {
        let status = match Source::open(file, console) {
            Ok(source) => test_file(&source, arguments, &setting, console)?,
            Err(failure) => failure.show(console),
        };
        worst = worst.max(status);
    }
    Ok(worst)
}

/// Tests try every linear length where that costs little and finds something.
fn usual(engine: EngineKind) -> Linear {
    if engine == EngineKind::Vm { Linear::Sweep } else { Linear::Whole }
}

fn test_file(
    source: &Source,
    arguments: &TestArguments,
    setting: &Setting,
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
    let report = runner::run_tests(setup, &mut |subject| Ok(engines::start(setting, source, subject)?));
    for notice in &report.notices {
        console.warning(notice);
    }
    if arguments.files.len() > 1 {
        console.line(format!("{}:", source.path))?;
    }
    console.bytes(report.text(sources, console.colors_results()).as_bytes())?;
    Ok(if report.is_ok() { Status::Done } else { Status::Failed })
}
