//! The test runner: what passes, what fails and how that reads, snapshots.

mod support;

use std::collections::HashMap;

use pktc_semantics::typed::Subject;
use pktc_testing::engine::{Engine, EngineError, Env, Outcome};
use pktc_testing::reference::Reference;
use pktc_testing::runner::{NoEngine, Report, Setup, run_tests};
use pktc_testing::snapshot::{Disk, Store};
use support::{Checked, Memory, eth, ipv4, tcp, udp};

const EDGE: &str = "
xdp edge {
    default pass;
    rule dns: udp.dport == 53 => drop;
    rule: tcp.syn => tx;
}
";

/// Runs the tests of `text` with the reference engine.
fn tested(text: &str) -> (bool, String) {
    run(text, &Memory::default(), &mut Disk, false)
}

fn run(text: &str, files: &Memory, store: &mut dyn Store, accept: bool) -> (bool, String) {
    let checked = Checked::new(text);
    let mut engines = |subject| Ok(Box::new(reference(&checked, subject)) as Box<dyn Engine>);
    let report = report(&checked, files, store, accept, &mut engines);
    (report.is_ok(), report.text(&checked.sources, false))
}

fn report(
    checked: &Checked,
    files: &Memory,
    store: &mut dyn Store,
    accept: bool,
    engines: &mut dyn FnMut(Subject) -> Result<Box<dyn Engine>, NoEngine>,
) -> Report {
    let Checked { program, sources, entry } = checked;
    run_tests(Setup { program, sources, file: *entry, files, store, accept }, engines)
}

fn reference(checked: &Checked, subject: Subject) -> Reference {
    let Checked { program, sources, .. } = checked;
    Reference::new(program, sources, &program.subject(subject))
}

#[test]
fn tests_that_hold() {
    let (ok, text) = tested(&format!(
        "{EDGE}
        test \"dns\" {{
            send eth / ipv4 / udp(dport: 53); expect drop by dns;
            repeat 3 send eth / ipv4 / tcp; expect pass; expect 3 pass by default;
        }}
        chain c {{ rule a: tcp => drop; rule b: udp.dport == 1 => return; }}
        test \"chain\" of c {{
            send eth / ipv4 / tcp; expect drop by a;
            send eth / ipv4 / tcp; expect drop by c.a;
            send eth / ipv4 / udp(dport: 1); expect return;
            send eth / arp; expect return;
        }}"
    ));
    assert_eq!(
        (ok, text.as_str()),
        (true, "test dns ... ok\ntest chain ... ok\n2 passed, 0 failed, 0 ignored\n")
    );
}

#[test]
fn names_do_not_command_terminals() {
    let (ok, text) = tested(&format!("{EDGE} test \"\u{1b}[31mred\" {{ send eth; expect pass; }}"));
    assert!(ok && text.starts_with("test \\x1b[31mred ... ok\n"), "{text}");
}

#[test]
fn what_failed_is_shown_where_it_is_expected() {
    let (ok, text) = tested(&format!(
        "{EDGE}
test \"wrong\" {{
    send eth / ipv4 / udp(dport: 53);
    expect pass;
    expect drop;
    expect tx by dns;
}}
"
    ));
    assert!(!ok);
    let expected = "\
test wrong ... FAILED

error[E0711]: expected pass, got drop by `dns`
   ┌─ t.pkt:10:12
   │
 4 │     rule dns: udp.dport == 53 => drop;
   │          --- this rule decided
   ·
 9 │     send eth / ipv4 / udp(dport: 53);
   │     --------------------------------- sent here
10 │     expect pass;
   │            ^^^^ this did not come about
";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("expected tx by `dns`, got drop by `dns`"), "{text}");
    assert_eq!(text.matches("error[").count(), 2, "{text}");
    assert!(text.ends_with("0 passed, 1 failed, 0 ignored\n"), "{text}");
}

#[test]
fn counts_are_exact() {
    let test = |expect: &str| {
        tested(&format!(
            "{EDGE} test \"n\" {{ repeat 5 send eth / ipv4 / udp(dport: 53); expect {expect}; }}"
        ))
    };
    assert!(test("5 drop").0);
    assert!(test("3 drop by dns, 2 drop").0, "what names a rule takes its part only");
    assert!(test("2 drop, 3 drop by dns").0, "in any order");
    let (ok, text) = test("4 drop by default, 1 drop");
    assert!(!ok && text.contains("expected 4 drop by `default`, got 0"), "{text}");
    assert!(text.contains("all together: 5 drop by `dns`"), "{text}");
    let (ok, text) = test("4 drop, 1 pass");
    assert!(!ok && text.contains("expected 1 pass, got 0"), "{text}");
}

#[test]
fn a_packet_that_cannot_be_made_ends_the_test() {
    let (ok, text) = tested(&format!("{EDGE} test \"n\" {{ send eth / tcp; expect pass; expect drop; }}"));
    assert!(!ok && text.contains("`tcp` cannot follow `eth`"), "{text}");
    assert_eq!(text.matches("error[").count(), 1, "{text}");
}

/// An engine that takes no frame under 15 bytes, and breaks down on 60 and more.
struct Picky(Reference);

impl Engine for Picky {
    fn name(&self) -> &'static str {
        "picky"
    }

    fn run(&mut self, packet: &[u8], env: &Env) -> Result<Outcome, EngineError> {
        match packet.len() {
            0..15 => Err(EngineError::Unsupported("frames under 15 bytes are not for it".into())),
            60.. => Err(EngineError::Fault("it read beyond the packet".into())),
            _ => self.0.run(packet, env),
        }
    }

    fn counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError> {
        self.0.counters()
    }
}

#[test]
fn what_an_engine_lacks_is_ignored_and_what_it_breaks_fails() {
    let checked = Checked::new(&format!(
        "{EDGE}
        test \"short\" {{ send eth; expect pass; }}
        test \"long\" {{ send eth / pad(46); expect pass; }}
        test \"usual\" {{ send eth / pad(1); expect pass; }}"
    ));
    let files = Memory::default();
    let mut picky = |target| Ok::<Box<dyn Engine>, NoEngine>(Box::new(Picky(reference(&checked, target))));
    let found = report(&checked, &files, &mut Disk, false, &mut picky);
    let text = found.text(&checked.sources, false);
    assert!(!found.is_ok());
    assert!(text.contains("test short ... ignored, frames under 15 bytes are not for it"), "{text}");
    assert!(text.contains("the picky engine broke down on this packet"), "{text}");
    assert!(text.ends_with("1 passed, 1 failed, 1 ignored\n"), "{text}");

    let mut missing = |_: Subject| Err(NoEngine::Missing("it needs CAP_BPF".into()));
    let found = report(&checked, &files, &mut Disk, false, &mut missing);
    assert!(found.is_ok());
    assert!(found.text(&checked.sources, false).ends_with("0 passed, 0 failed, 3 ignored\n"));
    let mut failed = |_: Subject| Err(NoEngine::Failed("the object was refused".into()));
    assert!(!report(&checked, &files, &mut Disk, false, &mut failed).is_ok());
}

/// Snapshots in memory.
#[derive(Default)]
struct Shelf(HashMap<String, String>);

impl Store for Shelf {
    fn read(&self, path: &str) -> Result<Option<String>, String> {
        Ok(self.0.get(path).cloned())
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), String> {
        self.0.insert(path.to_owned(), text.to_owned());
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), String> {
        self.0.remove(path);
        Ok(())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, String> {
        let names = self.0.keys().filter_map(|path| path.strip_prefix(&format!("{folder}/")));
        Ok(names.map(str::to_owned).collect())
    }
}

/// A pcap file (little-endian, microseconds, Ethernet) of these frames.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = support::hex("d4c3b2a1 0200 0400 00000000 00000000 ffff0000 01000000");
    for frame in frames {
        let length = (frame.len() as u32).to_le_bytes();
        file.extend([&[0; 8][..], &length, &length, frame].concat());
    }
    file
}

#[test]
fn replays_are_kept_compared_and_accepted() {
    let frames =
        [eth(0x0800, &ipv4(17, &udp(53, b""))), eth(0x0800, &ipv4(6, &tcp(80, 2, b""))), eth(0x0806, b"")];
    let files = Memory(HashMap::from([("captures/x.pcap".to_owned(), pcap(&frames))]));
    let mut shelf = Shelf::default();
    let text = format!("{EDGE} test \"x.pcap keeps\" {{ replay \"captures/x.pcap\" snapshot; }}");
    let name = "snapshots/t__x_pcap_keeps.snap".to_owned();

    let (ok, shown) = run(&text, &files, &mut shelf, false);
    assert!(!ok && shown.contains("this capture has no snapshot yet"), "{shown}");
    let new = shelf.0[&format!("{name}.new")].clone();
    let body = "1 drop dns\n2 tx @1\n3 pass default\n";
    let head = "---\nsource: \"t.pkt\"\nexpression: \"replay \\\"captures/x.pcap\\\"\"\n---\n";
    assert_eq!(new, format!("{head}{body}"));

    assert!(run(&text, &files, &mut shelf, true).0, "accepted");
    assert!(run(&text, &files, &mut shelf, false).0);
    assert_eq!(shelf.0, HashMap::from([(name.clone(), new)]), "and nothing waits any more");

    let changed = text.replace("udp.dport == 53 => drop", "udp.dport == 53 => abort");
    let (ok, shown) = run(&changed, &files, &mut shelf, false);
    assert!(!ok && shown.contains("was `1 drop dns`, is `1 abort dns`"), "{shown}");
    assert!(shown.contains("1 lines differ") || shown.contains("1 line differs"), "{shown}");
    assert!(shelf.0[&name].contains("1 drop dns"), "not overwritten");

    let (ok, shown) = run(EDGE, &files, &mut shelf, false);
    assert!(!ok && shown.contains(&format!("{name} belongs to no test")), "{shown}");
}

#[test]
fn snapshots_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshots/a__b.snap").to_string_lossy().into_owned();
    let snapshots = folder.path().join("snapshots").to_string_lossy().into_owned();
    assert_eq!(Disk.list(&snapshots), Ok(vec![]));
    assert_eq!(Disk.read(&path), Ok(None));
    Disk.write(&path, "text").unwrap();
    assert_eq!(Disk.read(&path), Ok(Some("text".to_owned())));
    assert_eq!(Disk.list(&snapshots), Ok(vec!["a__b.snap".to_owned()]));
    Disk.remove(&path).unwrap();
    Disk.remove(&path).unwrap();
    assert_eq!(Disk.read(&path), Ok(None));
    assert!(Disk.read(&snapshots).unwrap_err().contains("cannot read"), "a folder is no snapshot");
}

#[test]
fn a_capture_that_is_not_there() {
    let text = format!("{EDGE} test \"n\" {{ replay \"no.pcap\" snapshot; }}");
    let (ok, shown) = run(&text, &Memory::default(), &mut Shelf::default(), false);
    assert!(!ok && shown.contains("this capture cannot be replayed"), "{shown}");
    assert!(shown.contains("there is no no.pcap"), "{shown}");
}
