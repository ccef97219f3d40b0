//! `pktc run`.

use std::process::Stdio;

use crate::frames::{eth, ipv4, pcap, syn, tagged, udp};
use crate::session::{RULES, Session, transcript};

/// An answer, a tagged telnet SYN, a frame too short for any header, an answer again.
fn packets() -> Vec<u8> {
    let answer = eth(0x0800, &ipv4("203.0.113.9", "192.0.2.80", 17, 0, &udp(53, 40000, &[0; 20])));
    let telnet = tagged(6, 0x0800, &ipv4("203.0.113.5", "192.0.2.80", 6, 0, &syn(50002, 23)));
    pcap(&[answer.clone(), telnet, vec![2, 0, 0], answer])
}

fn session() -> Session {
    Session::with(&[("gate.pkt", RULES.as_bytes()), ("x.pcap", &packets())])
}

const JSON: &str = "\
{\"packet\":1,\"verdict\":\"drop\",\"rule\":\"dns\",\"line\":4}
{\"packet\":2,\"verdict\":\"drop\",\"rule\":\"@5\",\"line\":5}
{\"packet\":3,\"verdict\":\"pass\",\"rule\":null,\"line\":null}
{\"packet\":4,\"verdict\":\"drop\",\"rule\":\"dns\",\"line\":4}
";

#[test]
fn json_has_an_object_a_packet_and_nothing_else() {
    let session = session();
    session.pktc(&["run", "gate.pkt", "x.pcap", "--json"]).assert(0, JSON, "");
    for engine in ["reference", "vm"] {
        session.pktc(&["run", "gate.pkt", "x.pcap", "--json", "--engine", engine]).assert(0, JSON, "");
    }
}

#[test]
fn the_table_is_for_people() {
    let expected = "\
packet      time  summary                                              verdict  rule
     1  0.000000  203.0.113.9:53 > 192.0.2.80:40000 UDP 62             drop     dns
     2  0.250000  vlan 6 203.0.113.5:50002 > 192.0.2.80:23 TCP SYN 58  drop     @5
     3  0.500000  cut short 3                                          pass     default
     4  0.750000  203.0.113.9:53 > 192.0.2.80:40000 UDP 62             drop     dns

rule     declared at  packets  bytes
dns      gate.pkt:4         2    124
@5       gate.pkt:5         1     58
default  gate.pkt:2         1      3

4 packets, 3 drop, 1 pass
";
    for engine in ["reference", "vm"] {
        session().pktc(&["run", "gate.pkt", "x.pcap", "--engine", engine]).assert(0, expected, "");
    }
}

#[test]
fn rules_of_chains_and_of_other_files() {
    let session = session();
    session.write("lib/telnet.pkt", b"\nchain remote {\n    rule telnet: tcp.dport == 23 => drop;\n}\n");
    let main = "use \"lib/telnet.pkt\";\nchain names { rule: udp.sport == 53 => drop; }\n\
        xdp gate { default pass; apply names; apply remote; }\n";
    session.write("main.pkt", main.as_bytes());
    let expected = "\
{\"packet\":1,\"verdict\":\"drop\",\"rule\":\"@2\",\"line\":2}
{\"packet\":2,\"verdict\":\"drop\",\"rule\":\"remote.telnet\",\"line\":3,\"file\":\"lib/telnet.pkt\"}
{\"packet\":3,\"verdict\":\"pass\",\"rule\":null,\"line\":null}
{\"packet\":4,\"verdict\":\"drop\",\"rule\":\"@2\",\"line\":2}
";
    session.pktc(&["run", "main.pkt", "x.pcap", "--json"]).assert(0, expected, "");
}

#[test]
fn the_program_is_chosen_by_its_name() {
    let session = session();
    let two = "xdp all { default drop; }\nxdp none { default pass; }\n";
    session.write("two.pkt", two.as_bytes());
    session.pktc(&["run", "two.pkt", "x.pcap"]).assert(
        2,
        "",
        "error: `two.pkt` has several programs; choose with `--program NAME`: all, none\n",
    );
    session.pktc(&["run", "two.pkt", "x.pcap", "--program", "nine"]).assert(
        2,
        "",
        "error: `two.pkt` has no program `nine`; it has: all, none\n",
    );
    for (program, verdict) in [("all", "drop"), ("none", "pass")] {
        let transcript = session.pktc(&["run", "two.pkt", "x.pcap", "--json", "--program", program]);
        assert_eq!(transcript.code, 0, "{}", transcript.stderr);
        let verdict = format!("\"verdict\":\"{verdict}\"");
        assert_eq!(transcript.stdout.lines().filter(|line| line.contains(&verdict)).count(), 4);
    }
    // A program of a file that is used runs only when it is named.
    session.write("uses.pkt", b"use \"two.pkt\";\n");
    session.pktc(&["run", "uses.pkt", "x.pcap"]).assert_refused(2, &["`uses.pkt` has no program"]);
    let named = session.pktc(&["run", "uses.pkt", "x.pcap", "--json", "--program", "all"]);
    assert_eq!((named.code, named.stdout.lines().count()), (0, 4));
}

#[test]
fn captures_that_cannot_be_used() {
    let session = session();
    session.write("text.pcap", b"xdp gate {}");
    session.write("empty.pcap", b"");
    let mut raw = packets();
    raw[20] = 101;
    session.write("raw.pcap", &raw);
    session.write("cut.pcap", &packets()[..30]);
    for (capture, expected) in [
        ("missing.pcap", "cannot read `missing.pcap`: there is no such file; check the path"),
        (".", "cannot read `.`: it is a directory; name a file in it"),
        ("text.pcap", "`text.pcap` is neither a pcap nor a pcapng file; write one with `tcpdump -w`"),
        ("empty.pcap", "`empty.pcap` is an empty file, without even a capture's header; capture it again"),
        (
            "raw.pcap",
            "`raw.pcap` has frames of link type LINKTYPE_RAW (101), but XDP sees Ethernet; \
             capture on an Ethernet interface (not on `any`)",
        ),
        (
            "cut.pcap",
            "`cut.pcap` is damaged at byte 24: the file ends inside a record's header, after 6 of 16 bytes; \
             there is no whole packet before that, so capture it again",
        ),
    ] {
        let expected = format!("error: {expected}\n");
        session.pktc(&["run", "gate.pkt", capture, "--json"]).assert(2, "", &expected);
    }
}

#[test]
fn a_damaged_capture_is_used_as_far_as_it_goes() {
    let session = session();
    let whole = packets();
    session.write("cut.pcap", &whole[..whole.len() - 1]);
    let lines: String = JSON.lines().take(3).map(|line| format!("{line}\n")).collect();
    let at = whole.len() - 62 - 16;
    let warning = format!(
        "warning: `cut.pcap`: damaged at byte {at}: a record claims 62 bytes, and 61 are left; \
         the 3 packets before that are used\n"
    );
    session.pktc(&["run", "gate.pkt", "cut.pcap", "--json"]).assert(0, &lines, &warning);
}

#[test]
fn a_capture_without_packets() {
    let session = session();
    session.write("none.pcap", &pcap(&[]));
    session.pktc(&["run", "gate.pkt", "none.pcap", "--json"]).assert(0, "", "");
    let table = "\
packet  time  summary  verdict  rule

rule     declared at  packets  bytes
dns      gate.pkt:4         0      0
@5       gate.pkt:5         0      0
default  gate.pkt:2         0      0

0 packets
";
    session.pktc(&["run", "gate.pkt", "none.pcap"]).assert(0, table, "");
}

#[test]
fn a_source_with_errors_runs_nothing() {
    let session = session();
    session.write("wrong.pkt", b"xdp x { default pass; rule a: nothing == 1 => drop; }\n");
    session.pktc(&["run", "wrong.pkt", "x.pcap", "--json"]).assert_refused(1, &["nothing", "has 1 error"]);
}

#[test]
fn a_reader_that_has_gone_is_no_panic() {
    let session = session();
    let frame = vec![0; 60];
    session.write("long.pcap", &pcap(&vec![frame; 20_000]));
    for json in [&["--json"][..], &[]] {
        let arguments = [&["run", "gate.pkt", "long.pcap"], json].concat();
        let mut child =
            session.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        transcript(child.wait_with_output().unwrap()).assert(0, "", "");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let session = session();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = session.command(&["run", "gate.pkt", "x.pcap"]).stdout(full).output().unwrap();
    transcript(output)
        .assert_refused(2, &["error: cannot write to standard output: No space left on device"]);
}

/// Of a packet in several buffers, `direct` sees what lies in the first.
#[test]
fn a_linear_part_of_a_chosen_length() {
    let session = session();
    let run = |options: &[&str]| session.pktc(&[&["run", "gate.pkt", "x.pcap", "--json"], options].concat());
    for linear in ["0", "20", "41", "65535", "sweep"] {
        for access in ["auto", "bytes"] {
            run(&["--linear", linear, "--access", access]).assert(0, JSON, "");
        }
        run(&["--linear", linear, "--engine", "reference", "--access", "direct"]).assert(0, JSON, "");
    }
    let undecided = "\
{\"packet\":1,\"verdict\":\"pass\",\"rule\":null,\"line\":null}
{\"packet\":2,\"verdict\":\"pass\",\"rule\":null,\"line\":null}
{\"packet\":3,\"verdict\":\"pass\",\"rule\":null,\"line\":null}
{\"packet\":4,\"verdict\":\"pass\",\"rule\":null,\"line\":null}
";
    run(&["--linear", "20", "--access", "direct"]).assert(0, undecided, "");
    run(&["--linear", "65535", "--access", "direct"]).assert(0, JSON, "");
    run(&["--linear", "sweep", "--access", "direct"]).assert_refused(2, &["take `--access auto`"]);
    run(&["--linear", "all"]).assert_refused(2, &["'all'", "give a number of bytes, or `sweep`"]);
}

#[test]
fn a_sweep_counts_each_packet_once() {
    let session = session();
    let run = |options: &[&str]| session.pktc(&[&["run", "gate.pkt", "x.pcap"], options].concat());
    let whole = run(&[]);
    run(&["--linear", "sweep"]).assert(0, &whole.stdout, "");
}
