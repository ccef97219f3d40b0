//! `pktc test`.

use crate::frames::{eth, pcap};
use crate::session::{RULES, Session};

const HOLDS: &str = "
test \"answers are dropped\" {
    send eth / ipv4 / udp(sport: 53);
    expect drop by dns;
    send eth / ipv4 / udp(sport: 54);
    expect pass;
}
";

const FAILS: &str = "
test \"answers pass\" {
    send eth / ipv4 / udp(sport: 53);
    expect pass;
}
";

fn session(tests: &[&str]) -> Session {
    Session::with(&[("gate.pkt", [RULES, &tests.concat()].concat().as_bytes())])
}

#[test]
fn tests_that_hold() {
    let expected = "test answers are dropped ... ok\n1 passed, 0 failed, 0 ignored\n";
    let session = session(&[HOLDS]);
    session.pktc(&["test", "gate.pkt"]).assert(0, expected, "");
    for engine in ["reference", "vm"] {
        session.pktc(&["test", "gate.pkt", "--engine", engine]).assert(0, expected, "");
    }
    for options in
        [&["--linear", "sweep"][..], &["--linear", "30"], &["--access", "bytes"], &["--kernel", "5.15"]]
    {
        session.pktc(&[&["test", "gate.pkt"], options].concat()).assert(0, expected, "");
    }
}

#[test]
fn a_linear_part_too_short_for_direct_access() {
    let transcript = session(&[HOLDS]).pktc(&["test", "gate.pkt", "--access", "direct", "--linear", "41"]);
    assert_eq!((transcript.code, transcript.stderr.as_str()), (1, ""));
    assert!(
        transcript.stdout.contains("expected drop by `dns`, got pass by `default`"),
        "{}",
        transcript.stdout
    );
}

#[test]
fn a_test_that_fails_shows_where_and_why() {
    let transcript = session(&[HOLDS, FAILS]).pktc(&["test", "gate.pkt"]);
    assert_eq!((transcript.code, transcript.stderr.as_str()), (1, ""));
    let lines: Vec<_> = transcript.stdout.lines().collect();
    assert_eq!(lines[..2], ["test answers are dropped ... ok", "test answers pass ... FAILED"]);
    assert_eq!(lines[lines.len() - 1], "1 passed, 1 failed, 0 ignored");
    for part in ["gate.pkt:17:12", "expect pass;", "drop", "dns"] {
        assert!(transcript.stdout.contains(part), "{part:?} is missing:\n{}", transcript.stdout);
    }
}

#[test]
fn several_files_are_told_apart_and_the_worst_counts() {
    let session = session(&[HOLDS]);
    session.write("empty.pkt", b"");
    let expected = "\
gate.pkt:
test answers are dropped ... ok
1 passed, 0 failed, 0 ignored
empty.pkt:
0 passed, 0 failed, 0 ignored
";
    session.pktc(&["test", "gate.pkt", "empty.pkt"]).assert(0, expected, "");
    session.pktc(&["test", "gate.pkt", "none.pkt", "empty.pkt"]).assert(
        2,
        expected,
        "error: cannot read `none.pkt`: there is no such file; check the path\n",
    );
    session.write("wrong.pkt", b"xdp");
    let transcript = session.pktc(&["test", "wrong.pkt", "gate.pkt"]);
    assert_eq!(transcript.code, 1);
    assert!(transcript.stdout.contains("1 passed"), "{}", transcript.stdout);
}

#[test]
fn snapshots_are_accepted_compared_and_missed() {
    let replay = "test \"as before\" { replay \"x.pcap\" snapshot; }\n";
    let session = session(&[replay]);
    session.write("x.pcap", &pcap(&[eth(0x0806, &[]), vec![0; 60]]));
    let test = |options: &[&str]| session.pktc(&[&["test", "gate.pkt"], options].concat());
    assert_eq!(test(&[]).code, 1, "no snapshot yet");
    assert_eq!(test(&["--accept"]).code, 0);
    let snapshot = String::from_utf8(session.read("snapshots/gate__as_before.snap")).unwrap();
    assert!(snapshot.starts_with("---\n"), "{snapshot}");
    assert_eq!(snapshot.lines().filter(|line| line.contains("pass")).count(), 2, "{snapshot}");
    test(&[]).assert(0, "test as before ... ok\n1 passed, 0 failed, 0 ignored\n", "");
    session.write("gate.pkt", [&RULES.replace("default pass", "default drop"), replay].concat().as_bytes());
    assert_eq!(test(&[]).code, 1, "other verdicts");
    session.write("gate.pkt", RULES.as_bytes());
    let orphaned = test(&[]);
    assert_eq!(orphaned.code, 1);
    assert!(
        orphaned.stdout.contains("snapshots/gate__as_before.snap belongs to no test"),
        "{}",
        orphaned.stdout
    );
}
