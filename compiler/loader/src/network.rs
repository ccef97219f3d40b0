//! Network namespaces for one piece of work, gone when the work is done, whatever becomes of it.

use std::io;

use crate::{netlink, sys};

/// Runs `work` on a thread in a network namespace of its own, where only `lo` is, and that down. Commands that
/// it starts are in it, too. A panic of `work` goes on in the caller.
///
/// # Errors
/// If the kernel does not make the namespace (`CAP_SYS_ADMIN`).
pub fn in_private_network<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| sys::unshare_network().map(|()| work()));
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Like [`in_private_network`], with a veth device of the given index that has at least `queues` receive queues
/// (index 1 is always `lo`, with one).
///
/// # Errors
/// If the kernel makes no namespace or no such device.
pub fn with_device<T: Send>(ifindex: u32, queues: u32, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    in_private_network(|| {
        if ifindex != LOOPBACK {
            let made = netlink::create_veth(ifindex, queues);
            made.map_err(|failure| failure.message.map_or(failure.error, io::Error::other))?;
        }
        Ok(work())
    })?
}

/// The index of `lo` in every namespace.
const LOOPBACK: u32 = 1;
