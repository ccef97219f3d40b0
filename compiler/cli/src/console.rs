//! Standard output and standard error.
//!
//! Standard output carries results only. When whoever reads it has gone (`pktc run … | head`), the rest is
//! dropped and the command goes on to its exit code. Standard error carries diagnostics and notices. Colour
//! is for a terminal only, and where `NO_COLOR` (<https://no-color.org>) does not forbid it.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use pktc_diagnostics::{Diagnostic, Severity, SourceMap, printable};

use crate::failure::Failure;

/// Both streams.
pub(crate) struct Console {
    out: BufWriter<Stdout>,
    /// Whether somebody still reads what is written.
    open: bool,
    color: bool,
    color_results: bool,
}

/// Whether what is written to `stream` may be in colour.
fn colors(stream: &impl IsTerminal) -> bool {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    stream.is_terminal() && !forbidden && !dumb
}

impl Console {
    pub(crate) fn new() -> Self {
        Console {
            out: BufWriter::new(io::stdout()),
            open: true,
            color: colors(&io::stderr()),
            color_results: colors(&io::stdout()),
        }
    }

    /// Whether results may be in colour.
    pub(crate) fn colors_results(&self) -> bool {
        self.color_results
    }

    /// Writes a line of results.
    ///
    /// # Errors
    /// If standard output cannot be written for another reason than that nobody reads it.
    pub(crate) fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        self.write(|out| writeln!(out, "{text}"))
    }

    /// Writes results as they are.
    ///
    /// # Errors
    /// As [`Console::line`].
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(|out| out.write_all(bytes))
    }

    /// Whether somebody still reads the results.
    pub(crate) fn is_read(&self) -> bool {
        self.open
    }

    /// Writes out what is held back.
    ///
    /// # Errors
    /// As [`Console::line`].
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.write(Write::flush)
    }

    fn write(&mut self, write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) -> Result<(), Failure> {
        if !self.open {
            return Ok(());
        }
        match write(&mut self.out) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.open = false;
                Ok(())
            }
            Err(error) => {
                // What is still held back is lost: trying again would fail again.
                self.open = false;
                Err(Failure::new(format!("cannot write to standard output: {error}")))
            }
        }
    }

    /// Shows diagnostics with their source lines.
    pub(crate) fn diagnostics(&self, sources: &SourceMap, diagnostics: &[Diagnostic]) {
        self.to_stderr(&pktc_diagnostics::render(sources, diagnostics, self.color));
    }

    /// Says what was done.
    pub(crate) fn note(&self, text: impl Display) {
        self.to_stderr(&format!("{}\n", printable(&text.to_string())));
    }

    /// Says what the user should know.
    pub(crate) fn warning(&self, text: impl Display) {
        self.labelled(Severity::Warning, text);
    }

    /// Says why it does not go on.
    pub(crate) fn error(&self, text: impl Display) {
        self.labelled(Severity::Error, text);
    }

    fn labelled(&self, severity: Severity, text: impl Display) {
        let (word, color) = match severity {
            Severity::Error => ("error", 31),
            Severity::Warning => ("warning", 33),
            Severity::Note => ("note", 32),
        };
        let text = printable(&text.to_string());
        if self.color {
            self.to_stderr(&format!("\x1b[1;{color}m{word}\x1b[0m: {text}\n"));
        } else {
            self.to_stderr(&format!("{word}: {text}\n"));
        }
    }

    /// A closed standard error leaves nobody to tell.
    fn to_stderr(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// `1 packet`, `2 packets`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
