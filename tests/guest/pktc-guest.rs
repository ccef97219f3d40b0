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

/// A packet, and the lengths of the linear part that it is run with once it was run in one buffer.
struct Packet {
    bytes: Vec<u8>,
    linear: Vec<usize>,
}

/// Packets, each behind its length and those of its linear part.
fn packets(mut bytes: &[u8]) -> io::Result<Vec<Packet>> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        let length = number(&mut bytes)?;
        let linear = (0..number(&mut bytes)?).map(|_| number(&mut bytes)).collect::<Result<_, _>>()?;
        let (packet, rest) = bytes.split_at_checked(length).ok_or(io::ErrorKind::UnexpectedEof)?;
        packets.push(Packet { bytes: packet.to_vec(), linear });
        bytes = rest;
    }
    Ok(packets)
}

/// Takes a number from the beginning.
fn number(bytes: &mut &[u8]) -> io::Result<usize> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or(io::ErrorKind::UnexpectedEof)?;
    *bytes = rest;
    Ok(u32::from_le_bytes(*number) as usize)
}

fn report(out: &mut impl Write, name: &str, object: &[u8], packets: &[Packet]) -> io::Result<()> {
    let loaded = match pktc_loader::load(object, &LoadOptions::default()) {
        Ok(loaded) => loaded,
        Err(error) => return reject(out, name, &error.to_string()),
    };
    for program in &loaded.programs {
        write!(out, "{name} {} ok", program.name)?;
        for packet in packets {
            let split = packet.linear.iter().copied().map(Some);
            for linear in std::iter::once(None).chain(split) {
                match pktc_loader::test_run(program, &packet.bytes, &TestRun { linear, ..TestRun::default() })
                {
                    Ok(result) => write!(out, " {}", result.verdict)?,
                    Err(_) => write!(out, " -")?,
                }
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
