//! `pktc check`: what is wrong with the sources, all of them.

use pktc_driver::options::{Counters, Level};

use crate::arguments::CheckArguments;
use crate::console::Console;
use crate::failure::{Outcome, Status};
use crate::source::Source;

/// Checks every file; one with errors does not keep the next from being checked.
pub(crate) fn check(arguments: &CheckArguments, console: &mut Console) -> Outcome {
    let options = arguments.target.options(Level::default(), Counters::default())?;
    let mut worst = Status::Done;
    for file in &arguments.files {
        match Source::open(file, console) {
            Ok(source) => {
                source.tell_unseen(&options, console);
                console.note(format!("`{}` has no errors", source.path));
            }
            Err(failure) => worst = worst.max(failure.show(console)),
        }
    }
    Ok(worst)
}
