//! Where a dispatcher's programs are found: pins in the bpf file system, in a directory a dispatcher, and the lock
//! that everyone holds who reads or changes them.
//!
//! ```text
//! xdp/                               the lock: flock(2) on the directory
//!   dispatch-INTERFACE-DISPATCHER/   index of the interface, id of the dispatcher
//!     prog0-prog  prog0-link         the program, and what puts it into the dispatcher's place 0
//!   pktc-new-NAMESPACE-INTERFACE-DISPATCHER-OLD/
//!                                    the same while it is being put on the interface in place of OLD (0: none)
//! ```
//!
//! A directory of the second kind that is there without its maker holding the lock was left by a command that was
//! killed; [`recover`] completes what it had begun, or takes it back.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::sys;

const ROOT: u32 = 0;

/// The directory of dispatchers, held: nobody else reads or changes it meanwhile.
pub(crate) struct Pins {
    directory: PathBuf,
    lock: File,
    /// Whether this made the directory.
    made: bool,
}

/// A directory that was made for nothing goes again; the kernel keeps one with pins in it.
impl Drop for Pins {
    fn drop(&mut self) {
        if self.made {
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

/// The bpf file system: `LIBXDP_BPFFS` moves it, as for libxdp.
fn file_system() -> PathBuf {
    std::env::var_os("LIBXDP_BPFFS").map_or_else(|| "/sys/fs/bpf".into(), PathBuf::from)
}

/// A directory that only its owner enters.
fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Refuses a directory whose owner could put other programs in the place of those pinned there.
fn check_owner(directory: &Path) -> io::Result<()> {
    let owner = fs::symlink_metadata(directory)?.uid();
    if owner == ROOT || owner == sys::effective_user() {
        return Ok(());
    }
    let directory = directory.display();
    let message = format!(
        "`{directory}` belongs to user {owner}, who could change what runs; remove it (`rm -r {directory}`), or attach \
         the program alone (`--direct`)"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

impl Pins {
    /// Checks that the directory is nobody's who must not change what runs.
    pub(crate) fn check_owner() -> io::Result<()> {
        match check_owner(&file_system().join("xdp")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            checked => checked,
        }
    }

    /// Waits for the lock, and makes the directory if there is none.
    pub(crate) fn lock() -> io::Result<Self> {
        loop {
            let directory = file_system().join("xdp");
            let made = match make(&directory) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
                Err(error) => return Err(explain(error)),
            };
            match Pins::held(directory, made) {
                // Who made it did not need it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                held => return held,
            }
        }
    }

    /// Waits for the lock; `None`: there is no directory, so no dispatcher, or it is not for this process.
    pub(crate) fn lock_existing() -> io::Result<Option<Self>> {
        match Pins::held(file_system().join("xdp"), false) {
            Ok(pins) => Ok(Some(pins)),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn held(directory: PathBuf, made: bool) -> io::Result<Self> {
        check_owner(&directory)?;
        let pins = Pins { lock: File::open(&directory)?, directory, made };
        pins.lock.lock()?;
        match pins.lock.metadata()?.nlink() {
            // It was removed meanwhile.
            0 => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(pins),
        }
    }

    /// Opens the program in place `place` of a dispatcher.
    pub(crate) fn program(&self, interface: u32, dispatcher: u32, place: usize) -> io::Result<OwnedFd> {
        let open = |folder: &Path| sys::open_pin(&c_path(&folder.join(format!("prog{place}-prog")))?);
        match open(&self.path(interface, dispatcher)) {
            // A command that put it on the interface may have been killed before it named the pins.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.staged(interface, dispatcher)?.map_or(Err(error), |staged| open(&staged))
            }
            opened => opened,
        }
    }

    /// The directory of a dispatcher's pins that have no name yet, if there is one.
    fn staged(&self, interface: u32, dispatcher: u32) -> io::Result<Option<PathBuf>> {
        let prefix = format!("pktc-new-{}-{interface}-{dispatcher}-", namespace()?);
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
                return Ok(Some(entry.path()));
            }
        }
        Ok(None)
    }

    fn path(&self, interface: u32, dispatcher: u32) -> PathBuf {
        self.directory.join(format!("dispatch-{interface}-{dispatcher}"))
    }

    /// Pins the programs and links of a dispatcher (0: none) that is about to take the place of `old` (0: none).
    pub(crate) fn stage(
        &self,
        (interface, dispatcher, old): (u32, u32, u32),
        members: &[(BorrowedFd<'_>, OwnedFd)],
    ) -> io::Result<Staged<'_>> {
        let name = format!("pktc-new-{}-{interface}-{dispatcher}-{old}", namespace()?);
        let staged = Staged { pins: self, path: self.directory.join(name), interface, dispatcher, old };
        make(&staged.path).map_err(explain)?;
        for (place, (program, link)) in members.iter().enumerate() {
            let pinned = pin(*program, &staged.path.join(format!("prog{place}-prog"))).and_then(|()| {
                pin(std::os::fd::AsFd::as_fd(link), &staged.path.join(format!("prog{place}-link")))
            });
            if let Err(error) = pinned {
                staged.discard();
                return Err(error);
            }
        }
        Ok(staged)
    }

    /// Removes the pins of a dispatcher that is on no interface any more.
    fn remove(&self, interface: u32, dispatcher: u32) -> io::Result<()> {
        remove(&self.path(interface, dispatcher))
    }

    /// Completes or takes back what killed commands left of changes to `interface`, whose program is `current`.
    pub(crate) fn recover(&self, interface: u32, current: u32) -> io::Result<()> {
        let prefix = format!("pktc-new-{}-{interface}-", namespace()?);
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let ids = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.split_once('-'));
            let Some((Ok(dispatcher), Ok(old))) = ids.map(|(new, old)| (new.parse(), old.parse())) else {
                continue;
            };
            let staged = Staged { pins: self, path: entry.path(), interface, dispatcher, old };
            if dispatcher == current {
                staged.complete()?;
                continue;
            }
            if old != 0 && old != current {
                self.remove(interface, old)?;
            }
            staged.discard();
        }
        Ok(())
    }
}

/// Pins of a dispatcher that is not yet, or not known to be, on its interface.
pub(crate) struct Staged<'a> {
    pins: &'a Pins,
    path: PathBuf,
    interface: u32,
    dispatcher: u32,
    old: u32,
}

impl Staged<'_> {
    /// The dispatcher is on the interface: the old one's pins go, these get their name. In this order, so that a
    /// killed command leaves this directory, by which [`Pins::recover`] does the rest.
    pub(crate) fn complete(self) -> io::Result<()> {
        if self.old != 0 {
            self.pins.remove(self.interface, self.old)?;
        }
        if self.dispatcher == 0 {
            return remove(&self.path);
        }
        fs::rename(&self.path, self.pins.path(self.interface, self.dispatcher))
    }

    /// The dispatcher is not on the interface.
    pub(crate) fn discard(self) {
        // What remains is no worse than what a killed command leaves, and the next command tries again.
        let _ = remove(&self.path);
    }
}

/// What tells network namespaces apart: indices of interfaces are theirs, the bpf file system is not.
fn namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/thread-self/ns/net")?.ino())
}

fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    sys::pin(fd, &c_path(path)?)
}

/// Removes a directory with all pins in it; one that is not there is removed already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn explain(error: io::Error) -> io::Error {
    let place = file_system();
    io::Error::new(error.kind(), format!("{error}; is the bpf file system mounted on {}?", place.display()))
}
