//! The `pktc` command: it reads files, asks the pipeline, and prints. All that decides anything is in the other
//! crates; here are the arguments ([`arguments`]), the terminal ([`console`]), the disk ([`disk`]) and a file a
//! command ([`commands`]).
//!
//! Exit codes: 0 it ran; 1 diagnostics or a failed test; 2 wrong usage or surroundings that do not allow it.
//! What a program asked for stands on standard output, everything else on standard error.

mod arguments;
mod commands;
mod console;
mod disk;
mod engines;
mod failure;
mod rows;
mod source;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    let mut console = console::Console::new();
    let outcome = commands::run(&arguments.command, &mut console);
    let outcome = outcome.and_then(|status| console.finish().map(|()| status));
    outcome.unwrap_or_else(|failure| failure.show(&console)).code()
}
