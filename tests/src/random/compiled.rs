//! A program on its way through the compiler, and what became of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pktc_diagnostics::{Code, Diagnostic, Severity, codes, render};
use pktc_driver::options::{Access, Options};
use pktc_driver::{Built, Checked, Files, Subject, build, check, programs};

use crate::engines::{Build, LEVELS};

/// Why the compiler may refuse what the checker took.
pub(super) const LIMITS: [Code; 4] =
    [codes::NOT_YET, codes::STACK_FULL, codes::PROGRAM_TOO_LONG, codes::TOO_COMPLEX];

/// Lines of a panic's message that are shown.
const LINES: usize = 8;

/// The file that the program stands in.
const FILE: &str = "random.pkt";

/// A program with its objects.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) checked: Checked,
    /// Those of the first strategy first; there is at least one.
    pub(super) objects: Vec<Object>,
    /// What other strategies than the first cannot do.
    pub(super) refused: Vec<Refusal>,
}

impl Compiled {
    /// The first object: what it says of rules and counters, all say.
    pub(super) fn first(&self) -> &Built {
        &self.objects[0].built
    }
}

/// What the compiler made of a program in one way.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) how: Build,
    pub(super) built: Built,
}

impl Object {
    /// What reports call it: `auto-O2`.
    pub(super) fn name(&self) -> String {
        name(self.how)
    }
}

/// An object that there is not, with the codes of the compiler's errors and its words.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) how: Build,
    pub(super) codes: Vec<&'static str>,
    pub(super) message: String,
}

/// What reports call a way to build.
pub(super) fn name((access, level): Build) -> String {
    format!("{}-{level:?}", access.name())
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

/// Checks `text` and builds it at both levels with each strategy; with the first twice, to see that objects repeat
/// (what other strategies change lies in lowering only). A program that the first strategy cannot do is refused; what
/// others cannot is noted.
///
/// # Errors
/// See [`Failure`].
pub(super) fn compile(text: &str, strategies: &[Access]) -> Result<Compiled, Failure> {
    let checked = checked(text)?;
    let (mut objects, mut refused) = (Vec::new(), Vec::new());
    for how in strategies.iter().flat_map(|&access| LEVELS.map(|level| (access, level))) {
        let is_first = strategies.first() == Some(&how.0);
        match object(&checked, how) {
            Ok(built) if is_first && object(&checked, how)?.object != built.object => {
                return Err(Failure::Bug(format!("two builds by {} differ", name(how))));
            }
            Ok(built) => objects.push(Object { how, built }),
            Err(Failure::Refused(codes, message)) if !is_first => {
                refused.push(Refusal { how, codes, message });
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(Compiled { checked, objects, refused })
}

fn object(checked: &Checked, how: Build) -> Result<Built, Failure> {
    let subjects: Vec<_> = programs(checked).into_iter().map(Subject::Xdp).collect();
    let options = Options { access: how.0, level: how.1, ..Options::default() };
    guarded("the compiler", || build(checked, &subjects, &options))?.map_err(|errors| {
        // The checker took the program: what is left to refuse is for a later version, or beyond what kernels take.
        if errors.iter().all(|error| LIMITS.contains(&error.code)) {
            return refused(checked, &errors);
        }
        let errors = render(&checked.sources, &errors, false);
        Failure::Bug(format!("no object by {}:\n{errors}", name(how)))
    })
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
