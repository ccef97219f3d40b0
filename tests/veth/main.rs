//! End to end, as users do it: `pktc build`, one of four loaders, packets really sent, counters read back.
//!
//! Each test has two network namespaces of its own, joined by a pair of virtual interfaces; they are gone when the
//! test ends. A test that lacks a tool or a privilege is reported as ignored, with the reason.

#![expect(clippy::unwrap_used, reason = "what fails in a test fails the test")]

mod jumbo;
mod machine;
mod network;
mod object;
mod swap;
mod traffic;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use machine::Object;
use network::Pair;
use traffic::Tool;

/// What a test does.
type Check = fn(&Pair, &Object);

/// Bytes of a usual frame behind Ethernet's header.
const MTU: u32 = 1500;

const IP: &[&str] = &["ip", "nsenter", "bpftool"];
const XDP_LOADER: &[&str] = &["ip", "nsenter", "xdp-loader", "bpftool"];

/// Each test of the usual rules, with the tools that it needs.
const CHECKS: [(&str, Check, &[&str]); 11] = [
    ("ip_link_drops_what_it_should", |pair, object| traffic::check(pair, object, Tool::Ip), IP),
    (
        "xdp_loader_drops_what_it_should",
        |pair, object| traffic::check(pair, object, Tool::XdpLoader),
        XDP_LOADER,
    ),
    ("bpftool_drops_what_it_should", |pair, object| traffic::check(pair, object, Tool::Bpftool), IP),
    ("pktc_load_drops_what_it_should", |pair, object| traffic::check(pair, object, Tool::Pktc), IP),
    (
        "pktc_load_in_skb_mode_drops_what_it_should",
        |pair, object| traffic::check(pair, object, Tool::PktcSkb),
        IP,
    ),
    ("nothing_passes_while_programs_are_replaced", swap::under_traffic, IP),
    ("killed_commands_leave_one_version", swap::killed, IP),
    ("a_refused_version_leaves_the_old_one", swap::refused, IP),
    ("a_busy_interface_keeps_its_program", object::busy, IP),
    ("a_dump_shows_the_lines_of_the_source", object::lines, IP),
    ("a_skeleton_is_made", object::skeleton, IP),
];

/// Each test with long frames: which access the rules are built for, and the tools that it needs.
const JUMBO: [(&str, Check, &str, &[&str]); 9] = [
    ("ip_link_takes_long_frames", |pair, object| jumbo::check(pair, object, Tool::Ip), "auto", IP),
    (
        "xdp_loader_takes_long_frames",
        |pair, object| jumbo::check(pair, object, Tool::XdpLoader),
        "auto",
        XDP_LOADER,
    ),
    ("bpftool_takes_long_frames", |pair, object| jumbo::check(pair, object, Tool::Bpftool), "auto", IP),
    ("pktc_load_takes_long_frames", |pair, object| jumbo::check(pair, object, Tool::Pktc), "auto", IP),
    (
        "pktc_load_in_skb_mode_takes_long_frames",
        |pair, object| jumbo::check(pair, object, Tool::PktcSkb),
        "auto",
        IP,
    ),
    ("bytes_takes_long_frames", |pair, object| jumbo::check(pair, object, Tool::Ip), "bytes", IP),
    ("sections_are_found_in_other_ways", jumbo::sections, "auto", XDP_LOADER),
    ("linked_objects_share_what_they_call", object::linked, "auto", IP),
    ("direct_is_refused_before_long_frames", jumbo::direct, "direct", XDP_LOADER),
];

fn main() {
    let usual = CHECKS.map(|(name, check, tools)| {
        trial(name, tools, move || {
            let object = Object::new(machine::RULES, &[])?;
            network::with_pair(MTU, |pair| check(pair, &object))
        })
    });
    let jumbo = JUMBO.map(|(name, check, access, tools)| {
        trial(name, tools, move || {
            let object = Object::new(jumbo::RULES, &["--access", access])?;
            network::with_pair(jumbo::MTU, |pair| check(pair, &object))
        })
    });
    libtest_mimic::run(&Arguments::from_args(), usual.into_iter().chain(jumbo).collect()).exit();
}

/// A test that is ignored where a tool or a privilege is missing.
fn trial(
    name: &str,
    tools: &'static [&'static str],
    run: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(format!("kernel::{name}"), move || -> Result<Completion, Failed> {
        if let Some(reason) = machine::missing(tools) {
            return Ok(Completion::ignored_with(reason));
        }
        run()?;
        Ok(Completion::Completed)
    })
}
