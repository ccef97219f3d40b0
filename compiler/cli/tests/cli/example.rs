//! The example of the README: its capture is composed here, and its rules say what the README shows.

use std::path::PathBuf;

use crate::frames::edge_example;
use crate::session::Session;

fn examples() -> PathBuf {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/edge");
    examples.canonicalize().expect("the folder of examples")
}

/// With `PKTC_BLESS=1` in the environment, writes the capture first.
#[test]
fn the_capture_is_what_is_composed_here() {
    let path = examples().join("edge.pcap");
    if std::env::var_os("PKTC_BLESS").is_some() {
        std::fs::write(&path, edge_example()).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == edge_example(), "write it with PKTC_BLESS=1");
}

#[test]
fn the_rules_decide_as_the_readme_shows() {
    let session = Session::with(&[]);
    let (rules, capture) = (examples().join("edge.pkt"), examples().join("edge.pcap"));
    let transcript = session.pktc(&["run", &rules.to_string_lossy(), &capture.to_string_lossy()]);
    assert_eq!((transcript.code, transcript.stderr.as_str()), (0, ""));
    let packets = transcript.stdout.split("\n\n").next().unwrap();
    let readme = std::fs::read_to_string(examples().join("../../README.md")).unwrap();
    assert!(readme.contains(packets), "the README should show:\n{packets}");
    let decisions: Vec<_> = packets.lines().skip(1).map(|line| line.split_whitespace().rev()).collect();
    let decisions: Vec<_> = decisions.into_iter().map(|mut words| (words.next(), words.next())).collect();
    let expected = [
        ("default", "pass"),
        ("web", "pass"),
        ("web", "pass"),
        ("asked", "pass"),
        ("asked", "pass"),
        ("unasked", "drop"),
        ("unasked", "drop"),
        ("pieces", "drop"),
        ("ping", "pass"),
        ("broken", "drop"),
        ("rest", "drop"),
        ("default", "pass"),
    ];
    assert_eq!(decisions, expected.map(|(rule, verdict)| (Some(rule), Some(verdict))));
}

#[test]
fn the_tests_in_the_example_hold() {
    let rules = examples().join("edge.pkt");
    let transcript = Session::with(&[]).pktc(&["test", &rules.to_string_lossy()]);
    assert_eq!(transcript.code, 0, "{}{}", transcript.stdout, transcript.stderr);
}
