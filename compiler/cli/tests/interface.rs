//! Transcripts of `pktc load` and `pktc unload` on an interface: `lo` of a network namespace of the test's own.
//!
//! Where the kernel does not allow that, the tests are reported as ignored, with the reason.

use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};

const RULES: &str = "\
xdp gate { default pass; rule dns: udp.sport == 53 => drop; }
xdp other { default drop; }
";

/// What a test does, in a network namespace.
type Work = fn() -> Result<(), Failed>;

const TRIALS: [(&str, Work); 3] = [
    ("a source is attached, kept, and detached", from_a_source),
    ("an object is attached by the name of its program", from_an_object),
    ("the driver decides, and skb mode is never taken silently", native_where_there_is_none),
];

fn main() {
    let arguments = Arguments::from_args();
    let missing = missing();
    let trials = TRIALS.map(|(name, run)| match &missing {
        None => Trial::test(name, move || pktc_loader::in_private_network(run)?),
        Some(reason) => Trial::test(format!("{name} (ignored: {reason})"), || Ok(())).with_ignored_flag(true),
    });
    libtest_mimic::run(&arguments, trials.into()).exit();
}

/// Why the tests cannot run here.
fn missing() -> Option<String> {
    let namespace =
        || pktc_loader::in_private_network(|| ()).map_err(|error| format!("no network namespace: {error}"));
    pktc_loader::probe().and_then(|()| namespace()).err()
}

/// A directory with the rules, and the object that is built from them.
struct Session(tempfile::TempDir);

impl Session {
    fn new() -> Result<Session, Failed> {
        let session = Session(tempfile::tempdir()?);
        std::fs::write(session.0.path().join("gate.pkt"), RULES)?;
        Ok(session)
    }

    /// Runs `pktc` with these words and compares its exit code and standard error, in which ids of programs,
    /// which nobody knows before, read `N`. Nothing is a result here, so standard output stays empty.
    fn assert(&self, command: &str, code: i32, stderr: &str) -> Result<(), Failed> {
        let mut pktc = Command::new(env!("CARGO_BIN_EXE_pktc"));
        pktc.args(command.split(' ')).current_dir(self.0.path()).stdin(Stdio::null());
        let output = pktc.output()?;
        let found = without_ids(&String::from_utf8(output.stderr)?);
        if (output.status.code(), found.as_str(), &output.stdout[..]) == (Some(code), stderr, &[]) {
            return Ok(());
        }
        Err(format!("pktc {command}: {}\n{found}\nexpected: {code}\n{stderr}", output.status).into())
    }
}

fn without_ids(text: &str) -> String {
    let mut parts = text.split("(id ");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result += "(id N";
        result += part.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }
    result
}

fn from_a_source() -> Result<(), Failed> {
    let session = Session::new()?;
    let load = "load gate.pkt --iface lo --mode skb --program gate";
    let note = "note: program `gate` is loaded without support of fragments: in skb mode packets have none\n";
    session.assert(load, 0, &format!("{note}attached `gate` (id N) to lo\n"))?;
    let busy = "error: program `gate` (id N) is on lo already; nothing was changed. Take it away first \
        (`pktc unload --iface lo` if it is pktc's, else with the tool that put it there)\n";
    session.assert("load gate.pkt --iface lo --mode skb --program other", 2, busy)?;
    session.assert("unload --iface lo", 0, "detached `gate` (id N) from lo\n")?;
    session.assert("unload --iface lo", 2, "error: there is no program on lo\n")
}

fn from_an_object() -> Result<(), Failed> {
    let session = Session::new()?;
    let mut build = Command::new(env!("CARGO_BIN_EXE_pktc"));
    let built = build.args(["build", "gate.pkt"]).current_dir(session.0.path()).output()?;
    assert!(built.status.success(), "{built:?}");
    let load = "load gate.o --iface lo --mode skb";
    let several = "error: `gate.o` has several programs; choose with `--program NAME`: gate, other\n";
    session.assert(load, 2, several)?;
    let unknown = "error: `gate.o`: the object has no program `third`; it has gate, other\n";
    session.assert(&format!("{load} --program third"), 2, unknown)?;
    let note =
        "note: program `other` is loaded without support of fragments: in skb mode packets have none\n";
    let attached = format!("{note}attached `other` (id N) to lo\n");
    session.assert(&format!("{load} --program other"), 0, &attached)?;
    session.assert("unload --iface lo", 0, "detached `other` (id N) from lo\n")
}

fn native_where_there_is_none() -> Result<(), Failed> {
    let session = Session::new()?;
    let output = Command::new(env!("CARGO_BIN_EXE_pktc"))
        .args(["load", "gate.pkt", "--iface", "lo", "--program", "gate"])
        .current_dir(session.0.path())
        .output()?;
    let stderr = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("lo: its driver does not take the program"), "{stderr}");
    assert!(stderr.contains("try `--mode skb`"), "{stderr}");
    session.assert("unload --iface lo", 2, "error: there is no program on lo\n")
}
