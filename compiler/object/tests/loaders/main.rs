//! Objects against those who read them: aya-obj, bpftool, iproute2, xdp-loader, the running kernel.
//!
//! A test that lacks a tool or a privilege is reported as ignored, with what it lacks in front of its name.

#![expect(clippy::unwrap_used, reason = "what fails in a test fails the test")]

mod aya;
mod machine;
mod modules;
mod tools;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = modules::all().into_iter().flat_map(|case| aya::trials(&case)).collect();
    trials.extend(tools::trials());
    libtest_mimic::run(&arguments, trials).exit();
}
