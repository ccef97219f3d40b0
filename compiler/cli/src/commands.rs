//! The commands: a file each.

mod build;
mod check;
mod link;
mod load;
mod run;
mod stats;
mod status;
mod test;
mod unload;

use crate::arguments::Command;
use crate::console::Console;
use crate::failure::Outcome;

/// Does what the command line says.
pub(crate) fn run(command: &Command, console: &mut Console) -> Outcome {
    match command {
        Command::Build(arguments) => build::build(arguments, console),
        Command::Check(arguments) => check::check(arguments, console),
        Command::Link(arguments) => link::link(arguments, console),
        Command::Run(arguments) => run::run(arguments, console),
        Command::Test(arguments) => test::test(arguments, console),
        Command::Load(arguments) => load::load(arguments, console),
        Command::Status(arguments) => status::status(arguments, console),
        Command::Stats(arguments) => stats::stats(arguments, console),
        Command::Unload(arguments) => unload::unload(arguments, console),
    }
}
