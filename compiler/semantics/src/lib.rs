//! What a program means: names resolved, types checked, headers laid out, the parse graph built.
//!
//! [`check`] reads a file and what it uses, and puts out the [`typed::Program`] that all later stages read. The
//! standard library is embedded: `.pkt` files under `stdlib/`, a protocol each, checked like the user's own.

mod actions;
mod applied;
mod arithmetic;
mod blocks;
mod certain;
mod checker;
mod compare;
mod definitions;
mod dump;
mod edges;
mod expr;
pub mod files;
mod graph;
mod headers;
mod layout;
mod load;
mod membership;
mod names;
mod option_paths;
mod options;
mod packet_options;
mod path;
mod payload;
pub mod rules;
mod scenarios;
mod sets;
mod stdlib;
mod structure;
mod suggest;
pub mod typed;
mod types;
mod unions;
mod warnings;

use pktc_diagnostics::{Diagnostic, FileId, SourceMap, has_errors, sort};

pub use dump::dump;
pub use structure::{exclude_each_other, walk};

use checker::Checker;
use files::Files;

/// What checking found.
pub struct Checked {
    /// The program, if no message is an error.
    pub program: Option<typed::Program>,
    /// The messages, sorted.
    pub diagnostics: Vec<Diagnostic>,
    /// The file that was named, among the sources.
    pub entry: FileId,
}

/// Checks the file `entry`, what it uses, and the standard library. Adds their texts to `sources`.
pub fn check(entry: &str, files: &dyn Files, sources: &mut SourceMap) -> Checked {
    let load::Loaded { units, entry, mut diagnostics } = load::load(entry, files, sources);
    let mut checker = Checker::new(&units, sources);
    checker.run();
    diagnostics.append(&mut checker.diagnostics);
    sort(&mut diagnostics);
    let program = (!has_errors(&diagnostics)).then_some(checker.program);
    Checked { program, diagnostics, entry }
}
