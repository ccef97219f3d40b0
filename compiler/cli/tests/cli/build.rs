//! `pktc build`.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::session::{RULES, Session};

const ELF: &[u8] = b"\x7fELF";

fn session() -> Session {
    Session::with(&[("rules/gate.pkt", RULES.as_bytes())])
}

#[test]
fn the_object_stands_in_the_current_directory() {
    let session = session();
    let transcript = session.pktc(&["build", "rules/gate.pkt"]);
    let object = session.read("gate.o");
    assert!(object.starts_with(ELF));
    transcript.assert(0, "", &format!("wrote `gate.o` ({} bytes)\n", object.len()));
    assert_eq!(session.names(), ["gate.o", "rules"]);
    let mode = std::fs::metadata(session.path("gate.o")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0, "an object is no program to start");
}

#[test]
fn a_folder_of_the_users_own_may_be_called_std() {
    let session = Session::with(&[("std/gate.pkt", RULES.as_bytes())]);
    let transcript = session.pktc(&["build", "std/gate.pkt"]);
    let object = session.read("gate.o");
    transcript.assert(0, "", &format!("wrote `gate.o` ({} bytes)\n", object.len()));
}

#[test]
fn every_option_is_taken_as_written() {
    let session = session();
    let build = |options: &[&str]| {
        let arguments = [&["build", "rules/gate.pkt", "-o", "x.o"], options].concat();
        let transcript = session.pktc(&arguments);
        assert_eq!(transcript.code, 0, "{options:?}: {}", transcript.stderr);
        session.read("x.o")
    };
    let usual = build(&[]);
    assert_eq!(build(&["-O2", "--access", "auto", "--kernel", "6.1"]), usual);
    let direct = build(&["--access", "direct"]);
    assert_ne!(direct, usual);
    for kernel in ["5.10", "5.15"] {
        assert_eq!(build(&["--kernel", kernel]), direct);
    }
    assert_ne!(build(&["--access", "bytes", "--kernel", "5.18"]), usual);
    assert_ne!(build(&["--no-counters"]), usual);
    for options in [&["-O0"][..], &["-O", "0"], &["--kernel", "5.10"], &["--kernel", "latest"]] {
        assert!(build(options).starts_with(ELF));
    }
}

#[test]
fn stages_as_text() {
    let session = session();
    for stage in ["tokens", "ast", "typed", "rules", "flow", "asm", "object"] {
        let transcript = session.pktc(&["build", "rules/gate.pkt", "--emit", stage]);
        assert_eq!((transcript.code, transcript.stderr.as_str()), (0, ""), "{stage}");
        assert!(!transcript.stdout.is_empty(), "{stage}");
        let to_file = session.pktc(&["build", "rules/gate.pkt", "--emit", stage, "-o", "out.txt"]);
        let wrote = format!("wrote `out.txt` ({} bytes)\n", transcript.stdout.len());
        to_file.assert(0, "", &wrote);
        assert_eq!(session.read("out.txt"), transcript.stdout.as_bytes(), "{stage}");
    }
    assert_eq!(session.names(), ["out.txt", "rules"]);
}

#[test]
fn early_stages_of_a_source_with_errors() {
    let session = Session::with(&[("wrong.pkt", b"xdp x { default pass; rule a: maybe == 1 => drop; }\n")]);
    for stage in ["tokens", "ast"] {
        let transcript = session.pktc(&["build", "wrong.pkt", "--emit", stage]);
        assert_eq!(transcript.code, 1, "{stage}");
        assert!(transcript.stdout.contains("maybe") || stage == "ast", "{}", transcript.stdout);
        assert_eq!(transcript.stderr.matches("error: `wrong.pkt` has 1 error").count(), 1);
    }
    for stage in ["typed", "rules", "flow", "asm", "object"] {
        let transcript = session.pktc(&["build", "wrong.pkt", "--emit", stage]);
        transcript.assert_refused(1, &["maybe", "error: `wrong.pkt` has 1 error"]);
    }
}

#[test]
fn where_nothing_can_be_written() {
    let session = session();
    session.pktc(&["build", "rules/gate.pkt", "-o", "out/x/gate.o"]).assert(
        2,
        "",
        "error: cannot write `out/x/gate.o`: there is no directory `out/x`; make it with `mkdir -p out/x`\n",
    );
    session.pktc(&["build", "rules/gate.pkt", "-o", "rules"]).assert(
        2,
        "",
        "error: cannot write `rules`: it is a directory; name a file in it\n",
    );
    assert_eq!(session.names(), ["rules"]);
}

#[test]
fn a_source_is_never_overwritten() {
    let session = session();
    session.write("rules/lib.pkt", b"def telnet = tcp.dport == 23;\n");
    session.write("uses.pkt", b"use \"rules/lib.pkt\";\nxdp x { default pass; rule t: telnet => drop; }\n");
    symlink("rules/lib.pkt", session.path("link")).unwrap();
    std::fs::hard_link(session.path("uses.pkt"), session.path("hard")).unwrap();
    let before = session.names();
    for output in ["uses.pkt", "./rules/../uses.pkt", "hard", "link", "rules/lib.pkt"] {
        session.pktc(&["build", "uses.pkt", "-o", output]).assert(
            2,
            "",
            &format!("error: `{output}` is a source of this build; name another file with `-o`\n"),
        );
    }
    assert_eq!(session.read("rules/lib.pkt"), b"def telnet = tcp.dport == 23;\n");
    // The default output may be the input, too.
    session.write("odd.o", RULES.as_bytes());
    session.pktc(&["build", "odd.o"]).assert_refused(2, &["`odd.o` is a source of this build"]);
    assert_eq!(session.read("odd.o"), RULES.as_bytes());
    session.write("odd.o", b"");
    std::fs::remove_file(session.path("odd.o")).unwrap();
    assert_eq!(session.names(), before);
}

#[test]
fn an_older_object_is_replaced_whole_and_through_links() {
    let session = session();
    session.write("store/old.o", b"old");
    symlink("store/old.o", session.path("gate.o")).unwrap();
    assert_eq!(session.pktc(&["build", "rules/gate.pkt"]).code, 0);
    assert!(session.read("store/old.o").starts_with(ELF));
    assert!(std::fs::symlink_metadata(session.path("gate.o")).unwrap().is_symlink());
    // A source with errors leaves it as it is.
    let good = session.read("gate.o");
    session.write("rules/gate.pkt", b"xdp gate {");
    assert_eq!(session.pktc(&["build", "rules/gate.pkt"]).code, 1);
    assert_eq!(session.read("gate.o"), good);
}

#[test]
fn a_file_without_programs() {
    let session = Session::with(&[("lib.pkt", b"set s = { 192.0.2.1 };\n")]);
    session.pktc(&["build", "lib.pkt"]).assert(
        2,
        "",
        "error: `lib.pkt` has no program; add `xdp NAME { default pass; }`, or use it for `check` and `test`\n",
    );
    assert_eq!(session.names(), ["lib.pkt"]);
}
