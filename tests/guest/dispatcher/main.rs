//! Programs of pktc's and of others in one dispatcher, on every pinned kernel: what `pktc` and `xdp-loader` make of
//! each other, in each order.

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use pktc_tests::binary::pktc;
use pktc_tests::guest::{self, File, Guest, GuestError, with_libraries};
use serde_json::Value;

const SCRIPT: &str = include_str!("script");
/// How often a command is killed: a kill takes two seconds on an emulated machine, so it is often on one kernel only.
fn kills(series: &str) -> &'static str {
    if series == "6.12" { "50" } else { "6" }
}

const XDP_LOADER: &str = "/usr/sbin/xdp-loader";
/// Where `xdp-loader` finds its dispatcher.
const LIBXDP_OBJECT: &str = "/usr/lib/x86_64-linux-gnu/bpf/xdp-dispatcher.o";

const GATE: &str = "xdp gate { default pass; rule ip: eth.type == 0x0800 => drop; }\n";
const OTHER: &str =
    "xdp other { priority 5; chain on pass, drop; default pass; rule ip: eth.type == 0x0800 => drop; }\n";
const MANY: &str = "xdp NAME { default pass; }\n";

fn main() {
    let arguments = Arguments::from_args();
    let trials = guest::series().into_iter().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(series: &'static str) -> Trial {
    let name = format!("guest::{series}::dispatcher_is_shared");
    match Guest::new(series).and_then(|guest| Ok((guest, files()?))) {
        Ok((guest, files)) => Trial::test(name, move || shares(series, &guest, &files)),
        Err(reason) => Trial::test(name, || Ok(())).with_kind(reason.to_string()).with_ignored_flag(true),
    }
}

fn files() -> Result<Vec<File>, GuestError> {
    let unavailable = |what: &str, error: String| GuestError::Unavailable(format!("needs {what}: {error}"));
    let mut files = with_libraries(Path::new(XDP_LOADER), "/bin/xdp-loader")?;
    let object =
        std::fs::read(LIBXDP_OBJECT).map_err(|error| unavailable(LIBXDP_OBJECT, error.to_string()))?;
    files.push((LIBXDP_OBJECT.into(), object));
    let pktc = pktc().map_err(|error| unavailable("pktc", error))?;
    files.extend(with_libraries(Path::new(pktc), "/bin/pktc")?);
    for name in ["neighbour", "changing"] {
        let object = compile(name).map_err(|error| unavailable("clang-19", error))?;
        files.push((format!("/w/{name}.o"), object));
    }
    for (name, text) in [("gate", GATE), ("other", OTHER), ("many", MANY)] {
        files.push((format!("/w/{name}.pkt"), text.into()));
    }
    Ok(files)
}

/// Compiles a C program; `Err`: why that cannot be done here.
fn compile(name: &str) -> Result<Vec<u8>, String> {
    let source = format!("{}/guest/dispatcher/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let object = folder.path().join("object.o");
    let includes = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new("clang-19");
    command.args(["-O2", "-g", "-target", "bpf", &includes, "-c", &source, "-o"]).arg(&object);
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => std::fs::read(object).map_err(|error| error.to_string()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// What the guest said, step by step.
struct Steps(Vec<(String, String)>);

impl Steps {
    fn parse(output: &str) -> Steps {
        let step = |text: &str| {
            let (name, said) = text.split_once('\n').unwrap_or((text, ""));
            (name.trim().to_owned(), said.to_owned())
        };
        Steps(output.split("## ").skip(1).map(step).collect())
    }

    #[track_caller]
    fn said(&self, step: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == step);
        found.map_or_else(|| panic!("no step {step:?} in {:?}", self.0), |(_, said)| said)
    }

    /// The programs on `lo` after a step, in order: `name priority`.
    #[track_caller]
    fn programs(&self, step: &str) -> Vec<String> {
        programs(self.said(step))
    }

    #[track_caller]
    fn version(&self, step: &str) -> u64 {
        let status = documents(self.said(step)).swap_remove(0);
        status["interfaces"][0]["dispatcher"]["version"].as_u64().unwrap_or_else(|| panic!("{status}"))
    }
}

/// The JSON documents in a step, a line each.
fn documents(said: &str) -> Vec<Value> {
    said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[track_caller]
fn programs(said: &str) -> Vec<String> {
    let status = documents(said).into_iter().find(|document| document.get("interfaces").is_some());
    let status = status.unwrap_or_else(|| panic!("no status in {said}"));
    let programs = status["interfaces"][0]["programs"].as_array().cloned().unwrap_or_default();
    let text =
        |program: &Value| format!("{} {}", program["program"].as_str().unwrap_or("?"), program["priority"]);
    programs.iter().map(text).collect()
}

/// The packets that rule `ip` of `program` counted.
#[track_caller]
fn packets(said: &str, program: &str) -> u64 {
    let stats = documents(said).into_iter().find(|document| document.get("counts").is_some());
    let stats = stats.unwrap_or_else(|| panic!("no counts in {said}"));
    let counts = stats["counts"].as_array().cloned().unwrap_or_default();
    let rule = counts.iter().find(|count| count["program"] == program && count["rule"] == "ip");
    rule.and_then(|rule| rule["packets"].as_u64()).unwrap_or_else(|| panic!("{stats}"))
}

fn shares(series: &str, guest: &Guest, files: &[File]) -> Result<(), Failed> {
    let steps = Steps::parse(&guest.run(files, &SCRIPT.replace("KILLS", kills(series)))?);
    with_others(&steps);
    as_many_as_there_can_be(&steps);
    other_versions(&steps);
    killed(&steps);
    Ok(())
}

fn with_others(steps: &Steps) {
    assert_eq!(steps.programs("first"), ["gate 50"]);
    assert_eq!(steps.version("first"), 2);
    for program in ["xdp_dispatcher", "gate"] {
        assert!(steps.said("first seen by xdp-loader").contains(program));
    }
    assert_eq!(steps.programs("joined by xdp-loader"), ["neighbour 20", "gate 50"]);
    assert_eq!(steps.programs("joined by pktc"), ["other 5", "neighbour 20", "gate 50"]);
    // `gate` was alone for the first; `other` drops the second, but leads on.
    let counted = steps.said("counted");
    assert_eq!((packets(counted, "gate"), packets(counted, "other")), (2, 1));
    assert_eq!(steps.programs("replaced"), ["other 5", "neighbour 20", "gate 50"]);
    assert_eq!(packets(steps.said("replaced"), "gate"), 2);
    let seen = steps.said("replaced seen by xdp-loader");
    let lines: Vec<&str> = seen.lines().filter(|line| line.contains("=>")).collect();
    let expected = ["other", "neighbour", "gate"];
    assert!(
        lines.len() == 3 && std::iter::zip(&lines, expected).all(|(line, name)| line.contains(name)),
        "{seen}"
    );
    assert!(lines[0].contains("XDP_DROP,XDP_PASS"), "{seen}");
    assert_eq!(steps.programs("taken by pktc"), ["other 5", "gate 50"]);
    gone(steps, "taken by xdp-loader");
    assert_eq!(steps.programs("second"), ["neighbour 20", "gate 50"]);
    let status = documents(steps.said("second")).swap_remove(0);
    assert_eq!(status["interfaces"][0]["programs"][1]["chain_on"], serde_json::json!(["tx"]));
    assert_eq!(steps.programs("own taken"), ["neighbour 20"]);
    gone(steps, "last taken");
}

fn as_many_as_there_can_be(steps: &Steps) {
    let ten: Vec<String> = (1..=10).map(|n| format!("p{n} {n}")).collect();
    assert_eq!(steps.programs("ten"), ten);
    assert!(steps.said("eleventh").contains("the dispatcher on lo calls 10 programs already"));
    assert_eq!(steps.programs("eleventh"), ten);
    let mut replaced = ten;
    replaced.retain(|program| program != "p5 5");
    replaced.push("p5 50".into());
    assert_eq!(steps.programs("replaced among ten"), replaced);
    gone(steps, "all taken");
}

fn other_versions(steps: &Steps) {
    assert_eq!(steps.programs("version 3"), ["other 5", "gate 50"]);
    assert_eq!(steps.version("version 3"), 3);
    let seen = steps.said("version 3 seen by xdp-loader");
    assert!(seen.contains("version 3 higher than supported"), "{seen}");
    gone(steps, "version 3 taken");
    assert_eq!(steps.programs("changing"), ["changing 50", "gate 50"]);
    assert!(!steps.said("changing taken").contains("dispatch-"));
}

/// `gate` is there from the beginning, so whatever is killed, it is there, and `other` at most once.
fn killed(steps: &Steps) {
    for (_, said) in steps.0.iter().filter(|(name, _)| name == "killed") {
        let there = programs(said);
        assert!(there == ["gate 50"] || there == ["other 5", "gate 50"], "{there:?}: {said}");
    }
    assert_eq!(steps.programs("after kills"), ["other 5", "gate 50"]);
    let said = steps.said("after kills");
    assert_eq!(said.matches("dispatch-").count(), 1, "{said}");
    assert!(!said.contains("pktc-new"), "{said}");
    gone(steps, "end");
}

/// No program and no pin is left.
#[track_caller]
fn gone(steps: &Steps, step: &str) {
    let said = steps.said(step);
    assert_eq!(programs(said), [""; 0], "{said}");
    assert!(!said.contains("dispatch-") && !said.contains("pktc-new"), "{said}");
}
