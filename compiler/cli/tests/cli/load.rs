//! `pktc load` and `pktc unload`: what they refuse. What they do on an interface is in `tests/interface.rs`.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::frames::pcap;
use crate::session::{RULES, Session, Transcript, transcript};

#[test]
fn an_unknown_interface_is_found_before_anything_else() {
    let session = Session::with(&[]);
    for arguments in [&["load", "missing.pkt", "--iface", "l"][..], &["unload", "--iface", "l"]] {
        session.pktc(arguments).assert(2, "", "error: there is no interface `l`; did you mean `lo`?\n");
    }
}

#[test]
fn what_is_neither_a_source_nor_an_object() {
    let session = Session::with(&[
        ("two.pkt", b"xdp a { default pass; }\nxdp b { default pass; }\n"),
        ("broken.o", b"\x7fELF and nothing more"),
        ("blob", b"\x00\xff"),
    ]);
    let load = |file| session.pktc(&["load", file, "--iface", "lo", "--mode", "skb"]);
    load("missing.pkt").assert_refused(2, &["cannot read `missing.pkt`: there is no such file"]);
    load("two.pkt")
        .assert_refused(2, &["`two.pkt` has several programs; choose with `--program NAME`: a, b"]);
    load("broken.o").assert_refused(2, &["error: `broken.o`: "]);
    load("blob").assert_refused(2, &["`blob` is not UTF-8 text (byte 1 is not)"]);
}

/// Runs `pktc` as nobody, by a copy that nobody may reach.
fn as_nobody(session: &Session, arguments: &[&str]) -> Transcript {
    const NOBODY: u32 = 65_534;
    let program = session.path("pktc");
    // By another process: a child that another test starts meanwhile would hold the file open for writing.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_pktc")).arg(&program).status();
    assert!(copied.expect("cp runs").success());
    std::fs::set_permissions(session.path(""), PermissionsExt::from_mode(0o755))
        .expect("a directory of ours");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(session.path("")).stdin(Stdio::null());
    // Tests that do not run as root have no privilege to begin with, and may not change who they are.
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if root {
        command.uid(NOBODY).gid(NOBODY);
    }
    transcript(command.output().expect("pktc runs"))
}

#[test]
fn without_the_privilege_it_says_which_is_missing() {
    let session = Session::with(&[("gate.pkt", RULES.as_bytes())]);
    let arguments = ["load", "gate.pkt", "--iface", "lo", "--mode", "skb"];
    as_nobody(&session, &arguments)
        .assert_refused(2, &["operation not permitted", "CAP_BPF", "CAP_NET_ADMIN"]);
}

#[test]
fn nor_does_the_kernel_engine_run_without_it() {
    let session = Session::with(&[("gate.pkt", RULES.as_bytes()), ("x.pcap", &pcap(&[]))]);
    let arguments = ["run", "gate.pkt", "x.pcap", "--engine", "kernel"];
    as_nobody(&session, &arguments)
        .assert_refused(2, &["error: the kernel engine cannot run here: ", "take `--engine vm`"]);
}
