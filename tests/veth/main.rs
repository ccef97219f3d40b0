//! End to end, as users do it: `pktc build`, one of four loaders, packets really sent, counters read back.
//!
//! Each test has two network namespaces of its own, joined by a pair of virtual interfaces; they are gone when the
//! test ends. A test that lacks a tool or a privilege is reported as ignored, with the reason.

#![expect(clippy::unwrap_used, reason = "what fails in a test fails the test")]

mod machine;
mod network;
mod object;
mod traffic;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use machine::Object;
use network::Pair;
use traffic::Tool;

/// What a test does.
type Check = fn(&Pair, &Object);

/// Each test, with the tools that it needs.
const CHECKS: [(&str, Check, &[&str]); 8] = [
    (
        "ip_link_drops_what_it_should",
        |pair, object| traffic::check(pair, object, Tool::Ip),
        &["ip", "nsenter", "bpftool"],
    ),
    (
        "xdp_loader_drops_what_it_should",
        |pair, object| traffic::check(pair, object, Tool::XdpLoader),
        &["ip", "nsenter", "xdp-loader", "bpftool"],
    ),
    (
        "bpftool_drops_what_it_should",
        |pair, object| traffic::check(pair, object, Tool::Bpftool),
        &["ip", "nsenter", "bpftool"],
    ),
    (
        "pktc_load_drops_what_it_should",
        |pair, object| traffic::check(pair, object, Tool::Pktc),
        &["ip", "nsenter", "bpftool"],
    ),
    (
        "pktc_load_in_skb_mode_drops_what_it_should",
        |pair, object| traffic::check(pair, object, Tool::PktcSkb),
        &["ip", "nsenter", "bpftool"],
    ),
    ("a_busy_interface_keeps_its_program", object::busy, &["ip", "nsenter", "bpftool"]),
    ("a_dump_shows_the_lines_of_the_source", object::lines, &["ip", "nsenter", "bpftool"]),
    ("a_skeleton_is_made", object::skeleton, &["ip", "nsenter", "bpftool"]),
];

fn main() {
    let trials = CHECKS.map(|(name, check, tools)| {
        Trial::ignorable_test(format!("kernel::{name}"), move || -> Result<Completion, Failed> {
            if let Some(reason) = machine::missing(tools) {
                return Ok(Completion::ignored_with(reason));
            }
            let object = Object::new()?;
            network::with_pair(|pair| check(pair, &object))?;
            Ok(Completion::Completed)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}
