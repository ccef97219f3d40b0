//! The userspace engine on what clang makes of C, in all versions of the instruction set; verdicts are by hand.

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use pktc_testing::engine::{Engine as _, Env};
use pktc_testing::vm::{Vm, VmError};

type Check = fn(&[u8]) -> Result<(), Failed>;

/// Each C file in `tests/vm_clang` with what is to hold for its object.
const CHECKS: [(&str, Check); 4] = [("ports", ports), ("state", state), ("calls", calls), ("parts", parts)];

fn main() {
    let mut trials = Vec::new();
    for (file, check) in CHECKS {
        for cpu in ["v1", "v2", "v3", "v4"] {
            let name = format!("{file}.c for {cpu}");
            trials.push(Trial::ignorable_test(name, move || try_check(file, cpu, check)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn try_check(file: &str, cpu: &str, check: Check) -> Result<Completion, Failed> {
    if Command::new("clang-19").arg("--version").output().is_err() {
        return Ok(Completion::ignored_with("clang-19 is missing"));
    }
    check(&compile(file, cpu)?)?;
    Ok(Completion::Completed)
}

fn compile(file: &str, cpu: &str) -> Result<Vec<u8>, Failed> {
    let folder = tempfile::tempdir()?;
    let object = folder.path().join("program.o");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vm_clang").join(format!("{file}.c"));
    let output = Command::new("clang-19")
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpfel", "-c"])
        .arg(format!("-mcpu={cpu}"))
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(std::fs::read(object)?)
}

const ABORTED: u64 = 0;
const DROP: u64 = 1;
const PASS: u64 = 2;
const TX: u64 = 3;

fn expect(what: &str, got: u64, wanted: u64) -> Result<(), Failed> {
    if got == wanted { Ok(()) } else { Err(format!("{what}: {got}, not {wanted}").into()) }
}

/// An Ethernet header with VLAN tags, then IPv4 and the first 8 bytes of what it carries.
fn frame(tags: usize, protocol: u8, source: [u8; 4], port: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    for _ in 0..tags {
        frame.extend([0x81, 0, 0, 5]);
    }
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0]);
    frame.extend(source);
    frame.extend([192, 0, 2, 1, 0x30, 0x39]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 8, 0, 0]);
    frame
}

fn ports(object: &[u8]) -> Result<(), Failed> {
    let mut vm = Vm::load(object, "ports_filter")?;
    let mut run = |packet: &[u8], env: &Env| vm.execute(packet, env);
    let here = [10, 0, 0, 1];
    let whole = Env::default();
    expect("udp 53", run(&frame(0, 17, here, 53), &whole)?, DROP)?;
    expect("udp 123 behind a tag", run(&frame(1, 17, here, 123), &whole)?, DROP)?;
    expect("udp 53 behind two tags", run(&frame(2, 17, here, 53), &whole)?, DROP)?;
    expect("udp 53 behind three tags", run(&frame(3, 17, here, 53), &whole)?, PASS)?;
    expect("udp 54", run(&frame(0, 17, here, 54), &whole)?, PASS)?;
    expect("tcp 53", run(&frame(0, 6, here, 53), &whole)?, PASS)?;
    let packet = frame(0, 17, here, 53);
    for length in 0..packet.len() {
        expect("cut off", run(&packet[..length], &whole)?, PASS)?;
        expect("short linear part", run(&packet, &Env { linear: Some(length), ..Env::default() })?, PASS)?;
    }
    let mut options = packet;
    options[14] = 0x46;
    expect("udp behind 4 bytes of options, too short", run(&options, &whole)?, PASS)?;
    options.splice(34..34, [1, 1, 1, 1]);
    expect("udp behind 4 bytes of options", run(&options, &whole)?, DROP)?;
    let outcome = vm.run(&options, &whole).map_err(|error| format!("{error:?}"))?;
    if vm.instructions() < 20 || !outcome.hits.is_empty() {
        return Err(format!("{} instructions, {outcome:?}", vm.instructions()).into());
    }
    match Vm::load(object, "other") {
        Err(VmError::NoProgram { present, .. }) if present == ["ports_filter"] => Ok(()),
        _ => Err("a program that is not there was not refused".into()),
    }
}

fn state(object: &[u8]) -> Result<(), Failed> {
    let mut vm = Vm::load(object, "state")?;
    let env = Env::default();
    let (good, bad, third) = ([10, 0, 0, 1], [10, 9, 8, 7], [10, 0, 0, 3]);
    if !vm.set_map_value("blocked", &[16, 0, 0, 0, 10, 9, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0]) {
        return Err("the trie takes no prefix".into());
    }
    let runs = [(bad, PASS), (bad, PASS), (bad, DROP), (good, PASS), (good, PASS), (good, PASS), (bad, DROP)];
    for (source, wanted) in runs.into_iter().chain([(third, TX)]) {
        expect(&format!("{source:?}"), vm.execute(&frame(0, 17, source, 1), &env)?, wanted)?;
    }
    expect("too short", vm.execute(&[0; 33], &env)?, PASS)?;
    let mut number = |map: &str, key: &[u8]| {
        let value = vm.map_value(map, key).and_then(|value| Some(u64::from_le_bytes(*value.first_chunk()?)));
        value.ok_or(Failed::from(format!("map {map} has no {key:?}")))
    };
    expect("seen", number("seen", &bad)?, 4)?;
    expect("total", number("total", &[0; 4])?, 8)?;
    expect("dropped", number(".bss", &[0; 4])?, 2)
}

fn calls(object: &[u8]) -> Result<(), Failed> {
    let mut vm = Vm::load(object, "checksum")?;
    let mut packet = frame(0, 17, [10, 0, 0, 1], 53);
    // 0x4500 + 28 + 0x4011 + 0x0a00 + 0x0001 + 0xc000 + 0x0201 = 0x1512f, folded 0x5130; its complement:
    packet[24..26].copy_from_slice(&[0xae, 0xcf]);
    expect("right checksum", vm.execute(&packet, &Env::default())?, PASS)?;
    packet[25] = 0xce;
    expect("wrong checksum", vm.execute(&packet, &Env::default())?, DROP)
}

fn parts(object: &[u8]) -> Result<(), Failed> {
    let mut vm = Vm::load(object, "parts")?;
    let mut packet = vec![0; 60];
    packet[0] = 40;
    let mut run = |first: u8, second: u8, linear| {
        packet[40..42].copy_from_slice(&[first, second]);
        vm.execute(&packet, &Env { linear: Some(linear), fragment: 3, ..Env::default() })
    };
    for linear in [0, 1, 40, 41, 42, 60] {
        expect("90 - 100 + 9", run(90, 9, linear)?, DROP)?;
        expect("90 - 100 + 10", run(90, 10, linear)?, PASS)?;
        expect("127 - 100 - 28", run(127, 0xe4, linear)?, DROP)?;
        expect("127 - 100 - 27", run(127, 0xe5, linear)?, PASS)?;
    }
    expect("behind the end", vm.execute(&[9; 10], &Env::default())?, TX)?;
    expect("no bytes", vm.execute(&[], &Env::default())?, ABORTED)
}
