//! `pktc link`, and `pktc build` of several files.

use crate::session::{RULES, Session};

const OTHER: &[u8] = b"xdp other { default pass; rule web: tcp.dport == 80 => drop; }\n";

fn session() -> Session {
    let session = Session::with(&[("gate.pkt", RULES.as_bytes()), ("other.pkt", OTHER)]);
    for source in ["gate.pkt", "other.pkt"] {
        assert_eq!(session.pktc(&["build", source]).code, 0);
    }
    session
}

#[test]
fn objects_become_one_program() {
    let session = session();
    let linked = session.pktc(&["link", "other.o", "gate.o", "-o", "all.o"]);
    let bytes = session.read("all.o").len();
    linked.assert(0, "", &format!("wrote `all.o` ({bytes} bytes): program `all` of gate, other\n"));
    let named = session.pktc(&["link", "gate.o", "-o", "one.o", "--name", "alone"]);
    assert!(named.stderr.contains("program `alone` of gate"), "{}", named.stderr);
}

#[test]
fn sources_become_one_program() {
    let session = session();
    let built = session.pktc(&["build", "gate.pkt", "other.pkt", "-o", "all.o"]);
    let bytes = session.read("all.o").len();
    built.assert(0, "", &format!("wrote `all.o` ({bytes} bytes): program `all` of gate, other\n"));
    let linked = session.pktc(&["link", "gate.o", "other.o", "-o", "linked.o", "--name", "all"]);
    assert_eq!(linked.code, 0, "{}", linked.stderr);
    assert_eq!(session.read("all.o"), session.read("linked.o"));
}

#[test]
fn what_is_refused() {
    let session = session();
    let refused = |arguments: &[&str], part: &str| session.pktc(arguments).assert_refused(2, &[part]);
    refused(&["link", "gate.o", "missing.o", "-o", "all.o"], "cannot read `missing.o`");
    refused(&["link", "gate.o", "gate.pkt", "-o", "all.o"], "`gate.pkt`: this is no 64-bit ELF object");
    refused(&["link", "gate.o", "gate.o", "-o", "all.o"], "both `gate.o` and `gate.o` have a program `gate`");
    refused(&["link", "gate.o", "other.o", "-o", "gate.o"], "`gate.o` is linked itself");
    refused(&["link", "gate.o", "-o", "x/gate.o", "--name", "gate"], "choose one with `--name NAME`");
    refused(&["link", "gate.o"], "--output");
    refused(&["build", "gate.pkt", "other.pkt"], "several files make one object; name it with `-o`");
    refused(&["build", "gate.pkt", "other.pkt", "-o", "other.pkt"], "`other.pkt` is a source of this build");
    refused(&["build", "gate.pkt", "other.pkt", "--emit", "asm"], "`--emit` shows one file");
    assert_eq!(session.names(), ["gate.o", "gate.pkt", "other.o", "other.pkt"]);
}
