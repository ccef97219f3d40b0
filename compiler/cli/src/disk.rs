//! Files: reading them for the pipeline, and writing results whole or not at all.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pktc_semantics::files::Files;

use crate::failure::Failure;

/// The operating system's files.
pub(crate) struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(path).map_err(|error| reason(&error))
    }
}

/// Reads a file that the user named.
///
/// # Errors
/// A sentence with the file's name.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::NotFound => "; check the path",
            ErrorKind::IsADirectory => "; name a file in it",
            _ => "",
        };
        Failure::new(format!("cannot read `{}`: {}{hint}", path.display(), reason(&error)))
    })
}

/// Why a file cannot be read or written, without the number of the error.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        ErrorKind::NotADirectory => "a part of its path is not a directory".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Writes a file so that there is the whole of it or what was there before: into a new file beside it, which then
/// takes its name. What is no regular file (a terminal, a pipe) is written directly.
///
/// # Errors
/// A sentence with the file's name.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(format!("cannot write `{}`: {why}", path.display()));
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(failed("it is a directory; name a file in it".to_owned())),
        Ok(there) if !there.is_file() => fs::write(path, bytes).map_err(|error| failed(reason(&error))),
        // Through a link, the file that it leads to is replaced, and not the link.
        Ok(_) => {
            let target = fs::canonicalize(path).map_err(|error| failed(reason(&error)))?;
            replace(&target, bytes).map_err(|error| failed(reason(&error)))
        }
        Err(_) => replace(path, bytes).map_err(|error| match missing_directory(path) {
            Some(directory) => {
                let directory = directory.display();
                failed(format!("there is no directory `{directory}`; make it with `mkdir -p {directory}`"))
            }
            None => failed(reason(&error)),
        }),
    }
}

/// The directory that `path` should lie in, if it does not exist.
fn missing_directory(path: &Path) -> Option<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
    (!directory.exists()).then(|| directory.to_owned())
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(hidden);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let done = file.write_all(bytes).and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    done
}

/// Whether both names lead to one file, by links too.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}
