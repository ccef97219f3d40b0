//! Which privileges are missing, in words: the kernel itself only says "operation not permitted".

use std::io;

/// Capabilities that loading and running XDP programs takes, and their bits (linux/capability.h; `CAP_BPF` and
/// `CAP_PERFMON` since 5.8).
const NEEDED: [(&str, u32); 3] = [("CAP_NET_ADMIN", 12), ("CAP_PERFMON", 38), ("CAP_BPF", 39)];
/// Implies `CAP_PERFMON` and `CAP_BPF`.
const SYS_ADMIN: u32 = 21;

/// The capabilities that this thread lacks; empty also where that cannot be told.
pub(crate) fn missing() -> Vec<&'static str> {
    effective().map_or_else(Vec::new, missing_from)
}

/// The capabilities that this thread has, a bit each.
fn effective() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

/// Says what a refused look-up by number lacks: no other capability is enough for that.
pub(crate) fn explain_look_up(error: io::Error) -> io::Error {
    let lacks_it = effective().is_some_and(|effective| effective >> SYS_ADMIN & 1 == 0);
    if error.raw_os_error() != Some(libc::EPERM) || !lacks_it {
        return error;
    }
    let message = "operation not permitted; to look at what others loaded, the kernel wants CAP_SYS_ADMIN: run as root, \
                   or give the process this capability";
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

fn missing_from(effective: u64) -> Vec<&'static str> {
    let has = |bit: u32| effective >> bit & 1 == 1;
    let lacks = |&(name, bit): &(&'static str, u32)| {
        let implied = name != "CAP_NET_ADMIN" && has(SYS_ADMIN);
        (!has(bit) && !implied).then_some(name)
    };
    NEEDED.iter().filter_map(lacks).collect()
}

/// What to do about a refused system call.
pub(crate) fn advice(missing: &[&str]) -> String {
    if missing.is_empty() {
        return "all capabilities are there, so the kernel itself forbids it: a kernel before 5.11 may have \
                reached its limit of locked memory (`ulimit -l`), or it is locked down, or this is a container"
            .into();
    }
    let why = if missing.contains(&"CAP_PERFMON") {
        " (without CAP_PERFMON the verifier forbids arithmetic with pointers; CAP_SYS_ADMIN has it in it)"
    } else {
        ""
    };
    format!("missing: {}{why}; run as root, or give the process these capabilities", missing.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_told_apart() {
        assert_eq!(missing_from(0), ["CAP_NET_ADMIN", "CAP_PERFMON", "CAP_BPF"]);
        assert_eq!(missing_from(1 << 12 | 1 << 39), ["CAP_PERFMON"]);
        assert_eq!(missing_from(1 << 21), ["CAP_NET_ADMIN"], "CAP_SYS_ADMIN stands for the other two");
        assert!(missing_from(1 << 12 | 1 << 38 | 1 << 39).is_empty());
    }

    #[test]
    fn advice_names_what_is_missing() {
        assert!(advice(&["CAP_BPF"]).contains("missing: CAP_BPF; run as root"));
        assert!(advice(&["CAP_PERFMON"]).contains("forbids arithmetic with pointers"));
        assert!(advice(&[]).contains("limit of locked memory"));
    }
}
