//! `pktc check`.

use crate::session::{RULES, Session};

#[test]
fn correct_files() {
    let session = Session::with(&[("a.pkt", RULES.as_bytes()), ("b.pkt", b"set s = { 192.0.2.1 };\n")]);
    session.pktc(&["check", "a.pkt", "b.pkt"]).assert(
        0,
        "",
        "`a.pkt` has no errors\n`b.pkt` has no errors\n",
    );
}

/// The parts of a note about direct access, each said once.
const SEEN: [(&str, &str); 6] = [
    ("`gate` sees only the first buffer of a packet that lies in several", "note[W0008]"),
    ("a header that is not wholly in that buffer is absent", "gate.pkt:1:5"),
    ("this is the length of that buffer", "pkt.len"),
    ("the payload ends with that buffer", "udp.payload.len"),
    ("a header that goes beyond that buffer is malformed", "malformed"),
    ("the bytes that its rules count are those of the first buffer", "`--access auto` sees all of it"),
];

#[test]
fn what_direct_access_does_not_see() {
    let rules = "xdp gate {
    default pass;
    rule: tcp.dport == 23 or udp.payload.len == 9 => drop;
    rule: pkt.len > 1000 => drop;
    when tcp { rule: udp.payload.len == 8 or malformed => drop; }
}
xdp nothing { default drop; counters off; rule: pkt.queue == 3 => pass; }
";
    let session = Session::with(&[("gate.pkt", rules.as_bytes())]);
    session.pktc(&["check", "gate.pkt"]).assert(0, "", "`gate.pkt` has no errors\n");
    for options in
        [&["check", "--access", "direct"][..], &["check", "--kernel", "5.15"], &["build", "--kernel", "5.10"]]
    {
        let transcript = session.pktc(&[options, &["gate.pkt"]].concat());
        assert_eq!(transcript.code, 0, "{}", transcript.stderr);
        for (once, part) in SEEN {
            assert_eq!(transcript.stderr.matches(once).count(), 1, "{once}:\n{}", transcript.stderr);
            assert!(transcript.stderr.contains(part), "{part}:\n{}", transcript.stderr);
        }
        assert!(!transcript.stderr.contains("`nothing`"), "{}", transcript.stderr);
    }
}

#[test]
fn one_wrong_file_does_not_hide_the_next() {
    let wrong = "xdp x {\n    default pass;\n    rule a: tcp.dprt == 1 => drop;\n}\n";
    let session = Session::with(&[("wrong.pkt", wrong.as_bytes()), ("right.pkt", RULES.as_bytes())]);
    let transcript = session.pktc(&["check", "wrong.pkt", "missing.pkt", "right.pkt"]);
    // A file that cannot be read weighs more than one with errors.
    transcript.assert_refused(
        2,
        &[
            "wrong.pkt:3:",
            "dprt",
            "error: `wrong.pkt` has 1 error\n",
            "error: cannot read `missing.pkt`: there is no such file; check the path\n",
            "`right.pkt` has no errors\n",
        ],
    );
    assert!(!transcript.stderr.contains('\x1b'), "colour without a terminal");
    session.pktc(&["check", "wrong.pkt"]).assert_refused(1, &["dprt"]);
}

#[test]
fn a_directory_in_place_of_a_file() {
    let text =
        b"use \".\";\nuse \"sub/..\";\nset s = file \".\";\nset t = file \"sub\";\nxdp e { default pass; }\n";
    let session = Session::with(&[("here.pkt", text), ("sub/file", b"")]);
    let transcript = session.pktc(&["check", "here.pkt"]);
    assert_eq!(transcript.stderr.matches("^ it is a directory\n").count(), 4, "{}", transcript.stderr);
}

#[test]
fn what_is_no_source() {
    let session = Session::with(&[("latin1.pkt", b"// caf\xe9\n"), ("sub/file", b"")]);
    session.pktc(&["check", "latin1.pkt"]).assert(
        2,
        "",
        "error: `latin1.pkt` is not UTF-8 text (byte 6 is not); name a `.pkt` source file\n",
    );
    session.pktc(&["check", "sub"]).assert(
        2,
        "",
        "error: cannot read `sub`: it is a directory; name a file in it\n",
    );
    session.pktc(&["check", "latin1.pkt/x"]).assert(
        2,
        "",
        "error: cannot read `latin1.pkt/x`: a part of its path is not a directory\n",
    );
}
