//! The loader against the running kernel, with objects of clang's and of pktc's own.
//!
//! A test that lacks a tool or a privilege is reported as ignored, with the reason.

#![expect(clippy::unwrap_used, reason = "what fails in a test fails the test")]

mod attaching;
mod linking;
mod loading;
mod objects;
mod running;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// What a test gives: done, or why it cannot be done here.
type Outcome = Result<(), String>;

/// A test of the kernel; `Err` of `body` is the reason why it cannot run here, a failure is a panic.
fn kernel_test(name: &'static str, body: fn() -> Outcome) -> Trial {
    Trial::ignorable_test(name, move || -> Result<Completion, Failed> {
        let outcome = pktc_loader::probe().and_then(|()| body());
        Ok(outcome.map_or_else(Completion::ignored_with, |()| Completion::Completed))
    })
}

fn main() {
    let arguments = Arguments::from_args();
    let trials = [loading::trials(), running::trials(), attaching::trials(), linking::trials()]
        .into_iter()
        .flatten()
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
