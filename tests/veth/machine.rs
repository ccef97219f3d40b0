//! Tools, the `pktc` binary, and the object under test.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use pktc_object::Metadata;
use serde_json::Value;

/// What keeps a test from running here.
pub(crate) fn missing(tools: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = |tool: &str| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    if let Some(tool) = tools.iter().find(|tool| !installed(tool)) {
        return Some(format!("needs {tool}"));
    }
    let namespace =
        || pktc_loader::in_private_network(|| ()).map_err(|error| format!("no network namespace: {error}"));
    pktc_loader::probe().and_then(|()| namespace()).err()
}

/// Runs a command in the calling thread's namespace.
pub(crate) fn output(command: &[&str]) -> Output {
    // Two of them at a time fall over each other's lock.
    static XDP_LOADER: Mutex<()> = Mutex::new(());
    let _alone =
        (command[0] == "xdp-loader").then(|| XDP_LOADER.lock().unwrap_or_else(PoisonError::into_inner));
    Command::new(command[0]).args(&command[1..]).output().unwrap()
}

/// As [`output`]; it must succeed. What it wrote to standard output.
#[track_caller]
pub(crate) fn run(command: &[&str]) -> String {
    let output = output(command);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// As [`run`], of a command that writes JSON.
#[track_caller]
pub(crate) fn json(command: &[&str]) -> Value {
    let text = run(command);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{command:?}: {error}\n{text}"))
}

pub(crate) use pktc_tests::binary::pktc;

/// The usual rules under test; `NAME` is a name that no other test's program has at the moment.
pub(crate) const RULES: &str = "\
xdp NAME {
    default pass;
    rule port: udp.dport == 7001 => drop;
    rule v6: ipv6 and udp.dport == 7002 => drop;
    rule errors: icmp.type == destination_unreachable and icmp.code == 3 => drop;
}
";

/// A source and the object that `pktc build` makes of it, in a folder of their own.
pub(crate) struct Object {
    folder: tempfile::TempDir,
    /// The program's name.
    pub(crate) program: String,
}

impl Object {
    /// Of `rules`, built with these options.
    ///
    /// # Errors
    /// If `pktc` cannot be built or does not build the object.
    pub(crate) fn new(rules: &str, options: &[&str]) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let program = format!("v{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let object = Object { folder, program };
        std::fs::write(object.path("edge.pkt"), rules.replace("NAME", &object.program))
            .map_err(|error| error.to_string())?;
        let (source, target) = (object.source(), object.object());
        let built = output(&[&[pktc()?, "build", &source, "-o", &target], options].concat());
        match built.status.success() {
            true => Ok(object),
            false => Err(format!("pktc build: {}", String::from_utf8_lossy(&built.stderr))),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of the source.
    pub(crate) fn source(&self) -> String {
        self.path("edge.pkt").to_string_lossy().into_owned()
    }

    /// The path of the object.
    pub(crate) fn object(&self) -> String {
        self.path("edge.o").to_string_lossy().into_owned()
    }

    /// The kernel's number of the loaded program, on an interface or in a dispatcher there; the newest of its name.
    pub(crate) fn id(&self) -> Option<u32> {
        let shown = output(&["bpftool", "-j", "prog", "show", "name", &self.program]);
        let shown: Value = serde_json::from_slice(&shown.stdout).ok()?;
        let programs = shown.as_array().cloned().unwrap_or_else(|| vec![shown]);
        programs.iter().filter_map(|program| Some(program["id"].as_u64()? as u32)).max()
    }
}

/// What the loaded program `id` says of itself.
pub(crate) fn metadata(id: u32) -> Metadata {
    let document = pktc_loader::read_metadata(id).unwrap().expect("the program leads to its metadata");
    Metadata::from_json(&document).unwrap()
}

/// What the rule `name` of the loaded program `id` has counted: packets and bytes, over all CPUs.
pub(crate) fn counted(id: u32, name: &str) -> (u64, u64) {
    let metadata = metadata(id);
    let program = &metadata.programs[0];
    let range = program.counters.as_ref().expect("rules count");
    let rule = program.rules.iter().find(|rule| rule.name == name).expect("there is such a rule");
    let shown = json(&["bpftool", "-j", "prog", "show", "id", &id.to_string()]);
    let maps = shown["map_ids"].as_array().unwrap().iter().map(|map| map.to_string());
    let is_counters =
        |map: &String| json(&["bpftool", "-j", "map", "show", "id", map])["name"] == range.map.as_str();
    let map = maps.into_iter().find(is_counters).expect("the program has its counters");
    let entries = json(&["bpftool", "-j", "map", "dump", "id", &map]);
    let entry = &entries[(range.first + rule.id) as usize];
    let cpus = entry["formatted"]["values"].as_array().unwrap_or_else(|| panic!("{entry}"));
    let sum = |field: &str| cpus.iter().map(|cpu| cpu["value"][field].as_u64().unwrap()).sum();
    (sum("packets"), sum("bytes"))
}
