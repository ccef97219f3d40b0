//! The source file that a command is about, checked.

use std::path::Path;

use pktc_diagnostics::{Diagnostic, Severity, has_errors};
use pktc_driver::{Checked, Options};
use pktc_semantics::typed::{Program, XdpId};

use crate::console::{Console, plural};
use crate::disk::{self, Disk};
use crate::failure::Failure;

/// A source file that was read and checked.
pub(crate) struct Source {
    /// Its name, as the user wrote it.
    pub(crate) path: String,
    /// What the checker made of it.
    pub(crate) checked: Checked,
}

impl Source {
    /// Reads and checks `path`; shows what the checker has to say.
    ///
    /// # Errors
    /// The file cannot be read or is no text (a message), or has errors (which have been shown).
    pub(crate) fn open(path: &Path, console: &Console) -> Result<Source, Failure> {
        let source = Source::read(path)?;
        let Checked { sources, diagnostics, program, .. } = &source.checked;
        if program.is_none() || has_errors(diagnostics) {
            return Err(source.refused(diagnostics, console));
        }
        console.diagnostics(sources, diagnostics);
        Ok(source)
    }

    /// Reads and checks `path`; it may have errors, and nothing is shown.
    ///
    /// # Errors
    /// The file cannot be read or is no text.
    pub(crate) fn read(path: &Path) -> Result<Source, Failure> {
        let shown = path.display();
        if let Err(error) = String::from_utf8(disk::read(path)?) {
            let at = error.utf8_error().valid_up_to();
            return Err(Failure::new(format!(
                "`{shown}` is not UTF-8 text (byte {at} is not); name a `.pkt` source file"
            )));
        }
        let path = path.to_str().ok_or_else(|| {
            Failure::new(format!(
                "the name of `{shown}` is not UTF-8, so no message could show it; rename the file"
            ))
        })?;
        Ok(Source { path: path.to_owned(), checked: pktc_driver::check(path, &Disk) })
    }

    /// Shows what its programs do not see with this access.
    pub(crate) fn tell_unseen(&self, options: &Options, console: &Console) {
        console.diagnostics(&self.checked.sources, &pktc_driver::unseen(&self.checked, options));
    }

    /// The typed program, of a source that was [opened](Source::open).
    pub(crate) fn program(&self) -> &Program {
        self.checked.program.as_ref().expect("`open` refuses a source without a program")
    }

    /// Hands on what the pipeline built, or shows why it could not.
    ///
    /// # Errors
    /// [`Failure::Diagnosed`].
    pub(crate) fn built<T>(
        &self,
        result: Result<T, Vec<Diagnostic>>,
        console: &Console,
    ) -> Result<T, Failure> {
        result.map_err(|diagnostics| self.refused(&diagnostics, console))
    }

    /// Shows why the source is refused.
    pub(crate) fn refused(&self, diagnostics: &[Diagnostic], console: &Console) -> Failure {
        console.diagnostics(&self.checked.sources, diagnostics);
        console.error(format!("`{}` has {}", self.path, summary(diagnostics)));
        Failure::Diagnosed
    }

    /// The programs of the file itself.
    ///
    /// # Errors
    /// A message, if it has none.
    pub(crate) fn xdps(&self) -> Result<Vec<XdpId>, Failure> {
        let own = pktc_driver::programs(&self.checked);
        if own.is_empty() {
            let path = &self.path;
            return Err(Failure::new(format!(
                "`{path}` has no program; add `xdp NAME {{ default pass; }}`, or use it for `check` and `test`"
            )));
        }
        Ok(own)
    }

    /// The program to run: the one named `wanted` (of all files), or the only one of the file.
    ///
    /// # Errors
    /// A message that lists the programs there are.
    pub(crate) fn xdp(&self, wanted: Option<&str>) -> Result<XdpId, Failure> {
        let all = &self.program().xdps;
        let named = wanted.and_then(|wanted| all.iter().find(|(_, xdp)| xdp.name == wanted));
        if let Some((named, _)) = named {
            return Ok(named);
        }
        let own = self.xdps()?;
        let names = own.iter().map(|&id| all[id].name.as_str()).collect::<Vec<_>>().join(", ");
        let path = &self.path;
        match (wanted, &own[..]) {
            (Some(wanted), _) => {
                Err(Failure::new(format!("`{path}` has no program `{wanted}`; it has: {names}")))
            }
            (None, &[only]) => Ok(only),
            (None, _) => Err(Failure::new(format!(
                "`{path}` has several programs; choose with `--program NAME`: {names}"
            ))),
        }
    }
}

/// `2 errors and 1 warning`.
fn summary(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|one| one.severity == severity).count();
    let errors = plural(count(Severity::Error), "error");
    match count(Severity::Warning) {
        0 => errors,
        warnings => format!("{errors} and {}", plural(warnings, "warning")),
    }
}
