//! A network namespace for one piece of work, gone when the work is done, whatever becomes of it.

use std::io;

use crate::sys;

/// Runs `work` on a thread in a network namespace of its own, where only `lo` is, and that down. Commands that
/// it starts are in it, too.
///
/// # Errors
/// If the kernel does not make the namespace (`CAP_SYS_ADMIN`). A panic of `work` goes on in the caller.
pub fn in_private_network<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| sys::unshare_network().map(|()| work()));
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
