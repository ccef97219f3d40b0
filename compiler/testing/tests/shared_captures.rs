//! Real captures from many tools, one test a file, with packet counts and lengths that tshark found.
//!
//! The files are not part of the project: `PKTC_SHARED` names the folder that holds `captures/`. Without it the
//! test is reported as ignored, with that reason.

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use pktc_testing::capture::{self, CaptureError};
use serde_json::Value;

fn main() {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, trials()).exit();
}

fn trials() -> Vec<Trial> {
    let Some(shared) = std::env::var_os("PKTC_SHARED") else {
        let name = "shared captures (ignored: PKTC_SHARED does not name the folder with captures/)";
        return vec![Trial::test(name, || Ok(())).with_ignored_flag(true)];
    };
    let folder = PathBuf::from(shared).join("captures");
    match files(&folder) {
        Ok(files) => files.into_iter().map(|(name, facts)| trial(&folder, name, facts)).collect(),
        Err(reason) => vec![Trial::test("shared captures", move || Err(reason.into()))],
    }
}

/// The files that `expected.json` describes.
fn files(folder: &Path) -> Result<Vec<(String, Value)>, String> {
    let path = folder.join("expected.json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let expected: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let files =
        expected["files"].as_object().filter(|files| !files.is_empty()).ok_or("no files are described")?;
    Ok(files.iter().map(|(name, facts)| (name.clone(), facts.clone())).collect())
}

fn trial(folder: &Path, name: String, facts: Value) -> Trial {
    let path = folder.join(&name);
    Trial::test(name, move || check(&path, &facts))
}

fn check(path: &Path, facts: &Value) -> Result<(), Failed> {
    let bytes = std::fs::read(path)?;
    let link_type = facts["linktype"].as_u64().ok_or("no link type")? as u32;
    let capture = match capture::read(&bytes) {
        Err(CaptureError::LinkType { link_type: found, .. }) if link_type != 1 && found == link_type => {
            return Ok(());
        }
        Err(error) => return Err(error.to_string().into()),
        Ok(capture) => capture,
    };
    let lengths = || capture.packets.iter().map(|packet| packet.data.len() as u64);
    let found = (capture.packets.len() as u64, lengths().max().unwrap_or(0), lengths().min().unwrap_or(0));
    let number = |key: &str| facts[key].as_u64().ok_or_else(|| format!("no {key}"));
    let expected = (number("packets")?, number("max_caplen")?, number("min_caplen")?);
    if link_type != 1 {
        return Err(format!("link type {link_type} was taken as Ethernet").into());
    }
    if found != expected {
        return Err(format!("packets, longest, shortest: {found:?}, expected {expected:?}").into());
    }
    if !capture.warnings.is_empty() {
        return Err(format!("unexpected warnings: {:?}", capture.warnings).into());
    }
    for packet in &capture.packets {
        let line = capture::summary(&packet.data);
        if !line.ends_with(&format!(" {}", packet.data.len())) {
            return Err(format!("summary {line:?}").into());
        }
    }
    Ok(())
}
