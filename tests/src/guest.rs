//! Other kernels: small virtual machines that load the objects of this compiler and run their programs.
//!
//! ```text
//! guest/kernels.txt ──guest/fetch──▶ kernel ─┐
//! busybox, files, script ──initramfs──▶ ─────┴──qemu──▶ console output ──programs──▶ verdicts
//! ```
//!
//! The machines are emulated (`-accel tcg`), so neither KVM nor root is needed; a boot takes 4 to 8 seconds. They
//! have one CPU, no disk and no network, and see nothing of the host but the files that they are given.

mod initramfs;
mod kernel;
mod programs;
mod qemu;

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

pub use kernel::series;
pub use programs::{Answer, Packet, Report, Subject};

/// A file of the guest: its path there and its content. All files are executable.
pub type File = (String, Vec<u8>);

/// The series in whose kernels packets have one buffer.
const WITHOUT_FRAGS: &str = "5.10";

/// A kernel that can be booted here.
#[derive(Clone, Debug)]
pub struct Guest {
    kernel: PathBuf,
    has_frags: bool,
    /// What there is to say about the choice of the kernel, for people.
    pub note: Option<String>,
}

/// Why a guest gave no answer.
#[derive(Debug)]
pub enum GuestError {
    /// This machine lacks what guests need; says what. Tests are then ignored.
    Unavailable(String),
    /// The guest did not come to its end; with the last of what it said.
    Failed {
        /// What happened.
        reason: String,
        /// The end of the console's output.
        console: String,
    },
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuestError::Unavailable(what) => f.write_str(what),
            GuestError::Failed { reason, console } => {
                write!(f, "{reason}; the guest's last words:\n{console}")
            }
        }
    }
}

impl std::error::Error for GuestError {}

/// Boots a kernel of `series` with `files` and gives what `script` (for busybox's `sh`) prints.
///
/// # Errors
/// See [`GuestError`].
pub fn run(series: &str, files: &[File], script: &str) -> Result<String, GuestError> {
    Guest::new(series)?.run(files, script)
}

impl Guest {
    /// Finds or fetches a kernel of `series` (the first column of `guest/kernels.txt`).
    ///
    /// # Errors
    /// [`GuestError::Unavailable`] if there is none, or no tool to boot it.
    pub fn new(series: &str) -> Result<Self, GuestError> {
        qemu::check()?;
        let (kernel, note) = kernel::fetch(series)?;
        Ok(Guest { kernel, has_frags: series != WITHOUT_FRAGS, note })
    }

    /// Whether it takes programs for packets in several buffers (5.18).
    #[must_use]
    pub fn has_frags(&self) -> bool {
        self.has_frags
    }

    /// Boots it with `files` and gives what `script` (for busybox's `sh`) prints on the console.
    ///
    /// The script finds `/proc`, `/sys`, `/dev` and the bpf file system mounted.
    ///
    /// # Errors
    /// [`GuestError::Failed`] if the guest did not come to the end of the script, or the script failed.
    pub fn run(&self, files: &[File], script: &str) -> Result<String, GuestError> {
        let image = initramfs::image(files, script)?;
        qemu::boot(&self.kernel, &image)
    }

    /// Loads every program of each subject and runs it on the subject's packets, by way of the program
    /// `pktc-guest`, whose path is `helper`.
    ///
    /// # Errors
    /// As [`Guest::run`], and if a report is missing. A program that the kernel refuses is no error but an answer.
    pub fn load(&self, helper: &std::path::Path, subjects: &[Subject]) -> Result<Vec<Report>, GuestError> {
        let mut files = programs::files(subjects);
        files.extend(with_libraries(helper, "/bin/pktc-guest")?);
        programs::parse(&self.run(&files, "pktc-guest /obj")?, subjects)
    }
}

/// The program at `path` as the guest's file `name`, with the libraries that it is linked with.
///
/// # Errors
/// [`GuestError::Unavailable`] if it, or one of them, cannot be read.
pub fn with_libraries(path: &std::path::Path, name: &str) -> Result<Vec<File>, GuestError> {
    let unreadable = |what: &std::path::Path, error: std::io::Error| {
        GuestError::Unavailable(format!("needs {}: {error}", what.display()))
    };
    let read = |path: &std::path::Path| std::fs::read(path).map_err(|error| unreadable(path, error));
    let mut files = vec![(name.to_owned(), read(path)?)];
    let output = Command::new("ldd").arg(path).output().map_err(|error| unreadable("ldd".as_ref(), error))?;
    // A line is `libc.so.6 => /lib/…/libc.so.6 (0x…)` or, for the linker, its path alone; a static program has none.
    for word in
        String::from_utf8_lossy(&output.stdout).split_whitespace().filter(|word| word.starts_with('/'))
    {
        files.push((word.to_owned(), read(word.as_ref())?));
    }
    Ok(files)
}
