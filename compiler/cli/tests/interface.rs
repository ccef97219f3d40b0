//! Transcripts of `pktc load` and `pktc unload` on an interface: `lo` of a network namespace of the test's own.
//!
//! Where the kernel does not allow that, the tests are reported as ignored, with the reason.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};

const RULES: &str = "\
xdp gate { default pass; rule dns: udp.sport == 53 => drop; }
xdp other { default drop; }
";

/// The same program with another rule before the one that counts.
const CHANGED: &str = "\
xdp gate { default pass; rule: tcp.dport == 23 => drop; rule dns: udp.sport == 53 => drop; }
";

/// What a test does, in a network namespace.
type Work = fn() -> Result<(), Failed>;

const TRIALS: [(&str, Work); 12] = [
    ("a source is attached, kept, and detached", from_a_source),
    ("an object is attached by the name of its program", from_an_object),
    ("the driver decides, and skb mode is never taken silently", native_where_there_is_none),
    ("a new version takes the place of the old and goes on counting", replaced),
    ("status and stats in each format", reported),
    ("several interfaces have one program, all or none", on_several),
    ("programs are taken away by name or number", taken_away),
    ("counts of several interfaces come together", together),
    ("more programs than the kernel calls directly", too_many),
    ("capabilities are enough to load, and the one for the rest is named", without_root),
    ("refused loads leave nothing behind, and strangers' pins are not taken", pins_of_refused_loads),
    ("linked programs count as they did alone", linked),
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

    /// Runs `pktc` with these words, which must succeed; its standard output and standard error.
    fn output(&self, command: &str) -> Result<(String, String), Failed> {
        let mut pktc = Command::new(env!("CARGO_BIN_EXE_pktc"));
        let output =
            pktc.args(command.split(' ')).current_dir(self.0.path()).stdin(Stdio::null()).output()?;
        let stderr = String::from_utf8(output.stderr)?;
        assert!(output.status.success(), "pktc {command}: {}\n{stderr}", output.status);
        Ok((String::from_utf8(output.stdout)?, stderr))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failed> {
        Ok(std::fs::write(self.0.path().join(name), text)?)
    }

    /// The packets of each rule on `interface`, by its name.
    fn packets(&self, interface: &str) -> Result<BTreeMap<String, u64>, Failed> {
        let (json, _) = self.output(&format!("stats --json --iface {interface}"))?;
        let json: serde_json::Value = serde_json::from_str(&json)?;
        let counts = json["counts"].as_array().ok_or("no counts")?;
        let rule = |count: &serde_json::Value| {
            Some((count["rule"].as_str()?.to_owned(), count["packets"].as_u64()?))
        };
        Ok(counts.iter().filter_map(rule).collect())
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

/// Where nobody shares the interface, so that what is said does not depend on the kernel.
const DIRECT: &str = "--iface lo --mode skb --direct";

const NO_FRAGS: &str =
    "note: program `gate` is loaded without support of fragments: in skb mode packets have none\n";

fn from_a_source() -> Result<(), Failed> {
    let session = Session::new()?;
    let load = format!("load gate.pkt {DIRECT} --program gate");
    session.assert(&load, 0, &format!("{NO_FRAGS}attached `gate` (id N) to lo\n"))?;
    let busy = "error: program `gate` (id N) is on lo already; nothing was changed. Take it away first \
        (`pktc unload --iface lo` if it is pktc's, else with the tool that put it there), or make one of both \
        (`pktc link`)\n";
    session.assert(&format!("load gate.pkt {DIRECT} --program other"), 2, busy)?;
    let other_mode = "error: program `gate` (id N) is on lo by `--mode skb`, and an interface has one mode at a time; \
        nothing was changed. Load it the same way, or take the other away first\n";
    session.assert("load gate.pkt --iface lo --direct --program gate", 2, other_mode)?;
    session.assert("unload --iface lo", 0, "detached `gate` (id N) from lo\n")?;
    session.assert("unload --iface lo", 2, "error: there is no program on lo\n")
}

fn from_an_object() -> Result<(), Failed> {
    let session = Session::new()?;
    let mut build = Command::new(env!("CARGO_BIN_EXE_pktc"));
    let built = build.args(["build", "gate.pkt"]).current_dir(session.0.path()).output()?;
    assert!(built.status.success(), "{built:?}");
    let load = format!("load gate.o {DIRECT}");
    let several =
        "error: `gate.o`: the object has several programs; choose with `--program NAME`: gate, other\n";
    session.assert(&load, 2, several)?;
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
        // Whatever dispatchers the machine has, and whosever they are.
        .env("LIBXDP_BPFFS", session.0.path())
        .output()?;
    let stderr = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(!session.0.path().join("xdp").exists(), "what was made for it is gone");
    assert!(stderr.contains("lo: its driver does not take the program"), "{stderr}");
    assert!(stderr.contains("try `--mode skb`"), "{stderr}");
    session.assert("unload --iface lo", 2, "error: there is no program on lo\n")
}

/// Sends datagrams over `lo` that rule `dns` drops.
fn send(dropped: usize) -> Result<(), Failed> {
    ip("link set lo up")?;
    let dns = UdpSocket::bind("127.0.0.1:53")?;
    for _ in 0..dropped {
        dns.send_to(b"x", "127.0.0.1:9")?;
    }
    Ok(())
}

fn ip(arguments: &str) -> Result<(), Failed> {
    let output = Command::new("ip").args(arguments.split(' ')).output()?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8(output.stderr)?.into()) }
}

fn replaced() -> Result<(), Failed> {
    let session = Session::new()?;
    let load = format!("load gate.pkt {DIRECT} --program gate");
    session.output(&load)?;
    send(3)?;
    assert_eq!(session.packets("lo")?["dns"], 3);
    let done = format!("{NO_FRAGS}attached `gate` (id N) to lo in place of its older version (id N)\n");
    session.assert(&load, 0, &done)?;
    send(2)?;
    assert_eq!(session.packets("lo")?["dns"], 5, "the same map");
    session.write("gate.pkt", CHANGED)?;
    session.assert(&load, 0, &done)?;
    send(1)?;
    let packets = session.packets("lo")?;
    assert_eq!((packets["dns"], packets["@1"]), (6, 0), "another place in another map");
    session.write("gate.pkt", "xdp gate { default pass; rule: nothing => drop; }\n")?;
    let refused = Command::new(env!("CARGO_BIN_EXE_pktc"))
        .args(load.split(' '))
        .current_dir(session.0.path())
        .output()?;
    assert_eq!(refused.status.code(), Some(1));
    send(1)?;
    assert_eq!(session.packets("lo")?["dns"], 7, "the old version runs on");
    session.assert("unload --iface lo", 0, "detached `gate` (id N) from lo\n")
}

fn reported() -> Result<(), Failed> {
    let session = Session::new()?;
    assert!(session.output("status")?.0.starts_with("no interface has an XDP program\n"));
    session.output(&format!("load gate.pkt {DIRECT} --program gate"))?;
    send(1)?;
    let (table, _) = session.output("status")?;
    let titles = "interface  mode  priority  chain on  program";
    assert!(table.starts_with(titles) && table.contains("gate.pkt ("), "{table}");
    let json: serde_json::Value = serde_json::from_str(&session.output("status --json --iface lo")?.0)?;
    let interface = &json["interfaces"][0];
    assert_eq!((&interface["interface"], &interface["mode"]), (&"lo".into(), &"skb".into()));
    let program = &interface["programs"][0];
    assert_eq!((&program["program"], &program["rules"]), (&"gate".into(), &2.into()));
    assert_eq!(program["source"]["path"], "gate.pkt");
    let (table, _) = session.output("stats")?;
    let row = table.lines().find(|line| line.contains(" dns ")).ok_or(table.clone())?;
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(row[..4], ["lo", "gate", "dns", "gate.pkt:1"]);
    assert_eq!(row[4], "1");
    let (samples, _) = session.output("stats --prometheus")?;
    let sample = r#"pktc_rule_packets_total{interface="lo",source="gate.pkt",program="gate",rule="dns"} 1"#;
    assert!(samples.lines().any(|line| line == sample), "{samples}");
    let (watched, _) = session.output("stats --watch --count 2 --json --program gate")?;
    let lines: Vec<serde_json::Value> =
        watched.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(lines.len(), 2);
    assert!(lines[0]["counts"][0].get("packets_per_second").is_none());
    assert!(lines[1]["counts"][0]["packets_per_second"].is_f64());
    session.output("unload --iface lo").map(drop)
}

fn on_several() -> Result<(), Failed> {
    let session = Session::new()?;
    ip("link add pair0 type veth peer name pair1")?;
    let load = "load gate.pkt --program gate --direct --iface";
    session.assert(
        &format!("{load} pair0,pair1"),
        0,
        "attached `gate` (id N) to pair0\nattached `gate` (id N) to pair1\n",
    )?;
    let json: serde_json::Value = serde_json::from_str(&session.output("status --json")?.0)?;
    let id = |n: usize| json["interfaces"][n]["programs"][0]["id"].as_u64();
    assert!(id(0).is_some() && id(0) == id(1), "{json}");
    session.output("unload --iface pair1")?;
    // The second cannot have it natively, so the first keeps what it has.
    let output = Command::new(env!("CARGO_BIN_EXE_pktc"))
        .args(format!("{load} pair0,lo").split(' '))
        .current_dir(session.0.path())
        .output()?;
    assert_eq!(output.status.code(), Some(2));
    let after: serde_json::Value = serde_json::from_str(&session.output("status --json")?.0)?;
    assert_eq!(after["interfaces"].as_array().map(Vec::len), Some(1));
    assert_eq!(after["interfaces"][0]["programs"][0]["id"].as_u64(), id(0));
    session.output("unload --iface pair0").map(drop)
}

fn taken_away() -> Result<(), Failed> {
    let session = Session::new()?;
    session.output(&format!("load gate.pkt {DIRECT} --program gate"))?;
    let none = "error: there is no program `other` on lo; there are `gate` (id N)\n";
    session.assert("unload --iface lo --program other", 2, none)?;
    session.assert("unload --iface lo --program gate", 0, "detached `gate` (id N) from lo\n")?;
    session.output(&format!("load gate.pkt {DIRECT} --program other"))?;
    session.assert("unload --iface lo --all", 0, "detached `other` (id N) from lo\n")
}

/// Linked programs run in the order of their names: what the first passes, the second sees, too.
fn linked() -> Result<(), Failed> {
    let session = Session::new()?;
    session.write("gate.pkt", "xdp gate { default pass; rule dns: udp.sport == 53 => pass; }\n")?;
    session.write(
        "next.pkt",
        "counter seen;\nxdp last { default pass; rule dns: udp => count seen, drop; }\n",
    )?;
    session.output("build gate.pkt next.pkt -o all.o")?;
    session.output(&format!("load all.o {DIRECT}"))?;
    send(2)?;
    let (samples, _) = session.output("stats --prometheus")?;
    for (metric, program, name, count) in [
        ("rule", "gate", "rule=\"dns\"", 2),
        ("rule", "last", "rule=\"dns\"", 2),
        ("counter", "all", "counter=\"seen\"", 2),
    ] {
        let line = format!(
            "pktc_{metric}_packets_total{{interface=\"lo\",source=\"gate.pkt, next.pkt\",program=\"{program}\",{name}}} {count}"
        );
        assert!(samples.lines().any(|sample| sample == line), "no {line}\n{samples}");
    }
    // A new version goes on with the counts of both.
    session.output("build gate.pkt next.pkt -o all.o")?;
    session.output(&format!("load all.o {DIRECT}"))?;
    let (samples, _) = session.output("stats --prometheus")?;
    assert!(samples.contains("program=\"last\",rule=\"dns\"} 2\n"), "{samples}");
    session.assert("unload --iface lo", 0, "detached `all` (id N) from lo\n")?;
    let load = format!("load gate.pkt next.pkt {DIRECT}");
    let no_frags = NO_FRAGS.replace("gate", "linked");
    session.output(&load)?;
    let again = session.output(&load)?.1;
    assert!(again.contains(&no_frags) && again.contains("linked gate, last\n"), "{again}");
    assert!(again.contains("in place of its older version"), "{again}");
    session.assert("unload --iface lo", 0, "detached `linked` (id N) from lo\n")
}

/// Two versions that count by themselves, on two interfaces, get one successor.
fn together() -> Result<(), Failed> {
    let session = Session::new()?;
    ip("link add pair0 type veth peer name pair1")?;
    for (name, address) in [("pair0", "10.9.8.1/24"), ("pair1", "10.9.8.2/24")] {
        ip(&format!("link set {name} up"))?;
        ip(&format!("address add {address} dev {name}"))?;
    }
    session.write("gate.pkt", "xdp gate { default pass; rule odd: eth.type == 0x88b5 => drop; }\n")?;
    for name in ["pair0", "pair1"] {
        session.output(&format!("load gate.pkt --iface {name} --direct"))?;
    }
    // Each end gets what the other sends: one query for the other's address at least.
    UdpSocket::bind("10.9.8.1:0")?.send_to(b"x", "10.9.8.77:9")?;
    UdpSocket::bind("10.9.8.2:0")?.send_to(b"x", "10.9.8.78:9")?;
    let count = |interface| Ok::<u64, Failed>(session.packets(interface)?["default"]);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while count("pair0")? == 0 || count("pair1")? == 0 {
        assert!(std::time::Instant::now() < deadline, "no packet reached the programs");
    }
    let before = count("pair0")? + count("pair1")?;
    session.output("load gate.pkt --iface pair0,pair1,pair0 --direct")?;
    assert!(count("pair0")? >= before);
    session.output("unload --iface pair0")?;
    session.output("unload --iface pair1").map(drop)
}

fn too_many() -> Result<(), Failed> {
    let session = Session::new()?;
    session.output("build gate.pkt")?;
    let object = std::fs::read(session.0.path().join("gate.o"))?;
    let options = pktc_loader::LoadOptions { program: Some("gate".into()), ..Default::default() };
    let loaded: Result<Vec<_>, _> = (0..=48).map(|_| pktc_loader::load(&object, &options)).collect();
    let loaded = loaded?;
    let (_, warning) = session.output("status")?;
    assert!(warning.starts_with("warning: the kernel calls at most 48 XDP programs directly"), "{warning}");
    drop(loaded);
    Ok(())
}

/// The capabilities that loading takes.
const CAPABILITIES: &str = "-all,+bpf,+net_admin,+perfmon";

/// `pktc` as nobody with some capabilities, by a copy that nobody may reach.
struct Nobody<'a> {
    session: &'a Session,
    capabilities: &'a str,
}

impl Nobody<'_> {
    fn new<'a>(session: &'a Session, capabilities: &'a str) -> Result<Nobody<'a>, Failed> {
        let folder = session.0.path();
        std::fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        // By another process: a child that another test starts meanwhile would hold the file open for writing.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_pktc")).arg(folder.join("pktc")).status()?;
        assert!(copied.success());
        Ok(Nobody { session, capabilities })
    }

    /// The exit code and standard error.
    fn pktc(&self, words: &str) -> Result<(Option<i32>, String), Failed> {
        let (folder, capabilities) = (self.session.0.path(), self.capabilities);
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args([&format!("--inh-caps={capabilities}"), &format!("--ambient-caps={capabilities}")]);
        command.arg(folder.join("pktc")).args(words.split(' ')).current_dir(folder);
        let output = command.env("LIBXDP_BPFFS", folder.join("pins")).output()?;
        Ok((output.status.code(), String::from_utf8(output.stderr)?))
    }
}

fn without_root() -> Result<(), Failed> {
    let session = Session::new()?;
    let nobody = Nobody::new(&session, CAPABILITIES)?;
    let load = format!("load gate.pkt {DIRECT} --program gate");
    let (code, said) = nobody.pktc(&load)?;
    assert!(code == Some(0) && said.contains("attached `gate`"), "{said}");
    for words in [&load, "status", "unload --iface lo"] {
        let (code, said) = nobody.pktc(words)?;
        assert!(code == Some(2) && said.contains("CAP_SYS_ADMIN"), "{words}: {said}");
    }
    session.assert("unload --iface lo", 0, "detached `gate` (id N) from lo\n")?;
    let (code, said) = Nobody::new(&session, "-all,+bpf,+net_admin")?.pktc(&load)?;
    assert!(code == Some(2) && said.contains("missing: CAP_PERFMON"), "{said}");
    assert!(!said.contains("CAP_BPF") && !said.contains("log"), "{said}");
    Ok(())
}

/// With a directory that everybody may write to in place of the bpf file system.
fn pins_of_refused_loads() -> Result<(), Failed> {
    let session = Session::new()?;
    let pins = session.0.path().join("pins");
    std::fs::create_dir(&pins)?;
    std::fs::set_permissions(&pins, Permissions::from_mode(0o1777))?;
    let load = "load gate.pkt --iface lo --program gate";
    let lacking = Nobody::new(&session, "-all,+bpf,+perfmon")?;
    // Without the capability, and where there is none that the driver would take.
    for nobody in [lacking, Nobody::new(&session, CAPABILITIES)?] {
        let (code, said) = nobody.pktc(load)?;
        assert_eq!(code, Some(2), "{said}");
        assert!(std::fs::read_dir(&pins)?.next().is_none(), "{said}");
    }
    let own = pins.join("xdp");
    std::fs::create_dir(&own)?;
    std::os::unix::fs::chown(&own, Some(1000), None)?;
    let (code, said) = Nobody::new(&session, CAPABILITIES)?.pktc(load)?;
    assert!(code == Some(2) && said.contains("belongs to user 1000, who could change what runs"), "{said}");
    Ok(())
}
