//! Where kernels come from: `guest/fetch` finds the one that `guest/kernels.txt` pins.

use std::path::PathBuf;
use std::process::Command;

use super::GuestError;

const PINNED: &str = include_str!("../../guest/kernels.txt");

/// The series that can be booted, oldest first.
#[must_use]
pub fn series() -> Vec<&'static str> {
    let lines = PINNED.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(' ').next()).filter(|series| !series.is_empty()).collect()
}

/// The path of a kernel of `series`, and what there is to say about it.
pub(super) fn fetch(series: &str) -> Result<(PathBuf, Option<String>), GuestError> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/guest/fetch");
    let output = Command::new(script).arg(series).output();
    let output =
        output.map_err(|error| GuestError::Unavailable(format!("needs bash for {script}: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    match lines.next() {
        Some(path) if output.status.success() => Ok((path.into(), lines.next().map(str::to_owned))),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("no kernel and no reason");
            Err(GuestError::Unavailable(last.to_owned()))
        }
    }
}
