//! `pktc-guest FOLDER`, run inside a guest: loads each object of the folder and runs its programs on its packets.
//!
//! What it reads and prints is described in the library, in `src/guest/programs.rs`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pktc_loader::{LoadOptions, TestRun};

/// How many lines of the loader's words are passed on.
const LAST_LINES: usize = 25;

fn main() -> ExitCode {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| "/obj".into());
    match run(Path::new(&folder), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "pktc-guest: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(folder: &Path, out: &mut impl Write) -> io::Result<()> {
    let mut objects: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "o") {
            objects.push(path);
        }
    }
    objects.sort();
    for path in objects {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::read(path.with_extension("packets"))?;
        report(out, &name, &std::fs::read(&path)?, &packets(&bytes)?)?;
    }
    out.flush()
}

/// Packets, each behind its length.
fn packets(mut bytes: &[u8]) -> io::Result<Vec<&[u8]>> {
    let mut packets = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (packet, rest) = rest.split_at_checked(length).ok_or(io::ErrorKind::UnexpectedEof)?;
        packets.push(packet);
        bytes = rest;
    }
    if bytes.is_empty() { Ok(packets) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn report(out: &mut impl Write, name: &str, object: &[u8], packets: &[&[u8]]) -> io::Result<()> {
    let loaded = match pktc_loader::load(object, &LoadOptions::default()) {
        Ok(loaded) => loaded,
        Err(error) => return reject(out, name, &error.to_string()),
    };
    for program in &loaded.programs {
        write!(out, "{name} {} ok", program.name)?;
        for packet in packets {
            match pktc_loader::test_run(program, packet, &TestRun::default()) {
                Ok(result) => write!(out, " {}", result.verdict)?,
                Err(_) => write!(out, " -")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn reject(out: &mut impl Write, name: &str, reason: &str) -> io::Result<()> {
    writeln!(out, "{name} REJECTED")?;
    let lines: Vec<&str> = reason.lines().collect();
    let first = lines.len().saturating_sub(LAST_LINES);
    lines[first..].iter().try_for_each(|line| writeln!(out, "| {line}"))
}
