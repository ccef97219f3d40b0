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
