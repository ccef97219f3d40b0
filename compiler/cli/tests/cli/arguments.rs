//! The command line itself.

use crate::session::Session;

#[test]
fn without_a_command_the_help_is_shown() {
    Session::with(&[]).pktc(&[]).assert_refused(2, &["Usage: pktc <COMMAND>", "build", "unload"]);
}

#[test]
fn help_and_version_are_results() {
    let session = Session::with(&[]);
    session.pktc(&["--version"]).assert(0, concat!("pktc ", env!("CARGO_PKG_VERSION"), "\n"), "");
    let help = session.pktc(&["build", "--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    for option in ["--access", "--kernel", "-O <LEVEL>", "--no-counters", "--emit", "--output"] {
        assert!(help.stdout.contains(option), "{}", help.stdout);
    }
}

#[test]
fn wrong_values_list_the_right_ones() {
    let session = Session::with(&[]);
    for (arguments, parts) in [
        (&["build", "-O3", "x.pkt"][..], &["invalid value '3'", "0, 2"][..]),
        (&["build", "--kernel", "4.19", "x.pkt"], &["5.10, 5.15, 5.18, 6.1, 6.6, latest"]),
        (&["build", "--access", "dynptr", "x.pkt"], &["[possible values: direct, bytes, auto]"]),
        (
            &["build", "--access", "auto", "--kernel", "5.15", "x.pkt"],
            &["`--access auto`", "`--access direct`"],
        ),
        (&["test", "--access", "bytes", "--kernel", "5.10", "x.pkt"], &["came with 5.18", "`--kernel 5.10`"]),
        (&["build", "--emit", "llvm", "x.pkt"], &["tokens, ast, typed, rules, flow, asm, object"]),
        (&["run", "x.pkt", "x.pcap", "--engine", "jit"], &["reference, vm, kernel"]),
        (&["run", "x.pkt"], &["<CAPTURE>"]),
        (&["load", "x.pkt"], &["--iface"]),
        (&["load", "x.pkt", "--iface", "eth0", "--mode", "offload"], &["native, skb"]),
        (&["biuld"], &["unrecognized subcommand 'biuld'", "build"]),
    ] {
        session.pktc(arguments).assert_refused(2, parts);
    }
}
