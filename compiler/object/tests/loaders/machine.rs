//! What this machine has: tools, privileges, and network namespaces of a test's own.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// `CAP_NET_ADMIN`, `CAP_SYS_ADMIN` and `CAP_BPF`, which loading and attaching need.
const CAPABILITIES: u64 = 1 << 12 | 1 << 21 | 1 << 39;

/// What keeps a test from running here: the first of `tools` that is missing, or the privilege to load programs.
pub(crate) fn missing(tools: &[&str], privileged: bool) -> Option<String> {
    if let Some(tool) = tools.iter().find(|tool| !installed(tool)) {
        return Some(format!("needs {tool}"));
    }
    (privileged && !may_load()).then(|| "needs root".into())
}

fn installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

fn may_load() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.is_some_and(|bits| bits & CAPABILITIES == CAPABILITIES)
}

/// Runs a command and gives its output; it must succeed.
#[track_caller]
pub(crate) fn run(command: &[&str]) -> String {
    let output = Command::new(command[0]).args(&command[1..]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// As [`run`]; what it says on standard error counts as a failure.
#[track_caller]
pub(crate) fn run_silent(command: &[&str]) -> String {
    let output = Command::new(command[0]).args(&command[1..]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{command:?}: {}\n{err}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A name that no other test of this machine uses at the moment.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("pktco{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Makes sure that programs can be pinned.
pub(crate) fn mount_bpffs() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    if !mounts.lines().any(|line| line.split(' ').nth(1) == Some("/sys/fs/bpf")) {
        run(&["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"]);
    }
}

/// A network namespace with a pair of virtual interfaces, `va` and `vb`; it goes when this is dropped, and takes the
/// interfaces and what is attached to them along.
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    pub(crate) fn new() -> Self {
        let namespace = Namespace { name: unique() };
        run(&["ip", "netns", "add", &namespace.name]);
        namespace.run(&["ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"]);
        namespace
    }

    /// Runs a command in it. Not through `ip netns exec`, which mounts another /sys and so hides pinned programs.
    #[track_caller]
    pub(crate) fn run(&self, command: &[&str]) -> String {
        let enter = format!("--net=/run/netns/{}", self.name);
        run(&[&["nsenter", &enter], command].concat())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

/// A pin below the bpf file system; what is pinned goes when this is dropped.
pub(crate) struct Pin(pub(crate) String);

impl Pin {
    pub(crate) fn new() -> Self {
        mount_bpffs();
        Pin(format!("/sys/fs/bpf/{}", unique()))
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if Path::new(&self.0).is_dir() {
            let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
            entries.for_each(|entry| drop(std::fs::remove_file(entry.path())));
            let _ = std::fs::remove_dir(&self.0);
        } else {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}
