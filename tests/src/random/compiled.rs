//! A program on its way through the compiler, and what became of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pktc_diagnostics::{Code, Diagnostic, Severity, codes, render};
use pktc_driver::options::{Access, Level, Options};
use pktc_driver::{Built, Checked, Files, Subject, build, check, programs};

/// The levels that every program is built at.
pub(super) const LEVELS: [Level; 2] = [Level::O0, Level::O2];

/// Why the compiler may refuse what the checker took.
pub(super) const LIMITS: [Code; 4] =
    [codes::NOT_YET, codes::STACK_FULL, codes::PROGRAM_TOO_LONG, codes::TOO_COMPLEX];

/// Lines of a panic's message that are shown.
const LINES: usize = 8;

/// The file that the program stands in.
const FILE: &str = "random.pkt";

/// A program that was built at both levels.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) checked: Checked,
    /// In the order of [`LEVELS`].
    pub(super) built: [Built; 2],
}

/// Why there is no object.
#[derive(Debug)]
pub(super) enum Failure {
    /// The compiler says that the program is wrong, or that it cannot do that yet; the codes of its errors.
    Refused(Vec<&'static str>, String),
    /// The compiler is wrong.
    Bug(String),
}

/// One file, in memory.
struct OneFile<'a>(&'a str);

impl Files for OneFile<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == FILE { Ok(self.0.into()) } else { Err("there is no such file".into()) }
    }
}

/// Checks `text`.
///
/// # Errors
/// The codes of its errors, or what the checker panicked with.
pub(super) fn checked(text: &str) -> Result<Checked, Failure> {
    let checked = guarded("the checker", || check(FILE, &OneFile(text)))?;
    if checked.program.is_some() {
        return Ok(checked);
    }
    Err(refused(&checked, &checked.diagnostics))
}

/// Checks `text` and builds it at both levels, each twice, to see that objects repeat.
///
/// # Errors
/// See [`Failure`].
pub(super) fn compile(text: &str) -> Result<Compiled, Failure> {
    let checked = checked(text)?;
    let [plain, optimised] = LEVELS.map(|level| object(&checked, level));
    Ok(Compiled { built: [plain?, optimised?], checked })
}

fn object(checked: &Checked, level: Level) -> Result<Built, Failure> {
    let subjects: Vec<_> = programs(checked).into_iter().map(Subject::Xdp).collect();
    let options = Options { access: Access::Direct, level, ..Options::default() };
    let once = || {
        guarded("the compiler", || build(checked, &subjects, &options))?.map_err(|errors| {
            // The checker took the program: what is left to refuse is for a later version, or beyond what kernels take.
            if errors.iter().all(|error| LIMITS.contains(&error.code)) {
                return refused(checked, &errors);
            }
            Failure::Bug(format!("no object at {level:?}:\n{}", render(&checked.sources, &errors, false)))
        })
    };
    let (first, second) = (once()?, once()?);
    if first.object != second.object {
        return Err(Failure::Bug(format!("two builds at {level:?} differ")));
    }
    Ok(first)
}

fn refused(checked: &Checked, diagnostics: &[Diagnostic]) -> Failure {
    let errors: Vec<Diagnostic> =
        diagnostics.iter().filter(|it| it.severity == Severity::Error).cloned().collect();
    let mut codes: Vec<&str> = errors.iter().map(|error| error.code.id).collect();
    codes.sort_unstable();
    codes.dedup();
    Failure::Refused(codes, render(&checked.sources, &errors, false))
}

/// What `work` gives; a panic in it is a bug of `who`.
pub(super) fn guarded<T>(who: &str, work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| Failure::Bug(format!("{who} panicked: {}", message(&*panic))))
}

/// The beginning of what a panic says.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a word".into()).lines().take(LINES).collect::<Vec<_>>().join("\n")
}
