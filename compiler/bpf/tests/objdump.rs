//! Decoding and text against LLVM's own disassembler, on objects that clang made from the C files in `tests/c`.
//!
//! Both texts are brought to one form first: numbers to decimal, the symbols behind jump targets dropped. LLVM's
//! other spelling of `xchg` and its gap (32-bit fetching atomics, which LLVM 19 shows as `<unknown>`) are left out.

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use object::{Object as _, ObjectSection as _};
use pktc_bpf::{decode, disassemble, encode, slots};

/// Each C file in `tests/c` with the versions of the instruction set that clang can make of it.
const FILES: [(&str, &[&str]); 2] = [("rich", &["v3", "v4"]), ("parse", &["v1", "v2", "v3", "v4"])];

fn main() {
    let mut trials = Vec::new();
    for (file, cpus) in FILES {
        for cpu in cpus {
            let name = format!("{file}.c for {cpu} reads as llvm-objdump shows it");
            trials.push(Trial::ignorable_test(name, move || try_compare(file, cpu)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn try_compare(file: &str, cpu: &str) -> Result<Completion, Failed> {
    for tool in ["clang-19", "llvm-objdump-19"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return Ok(Completion::ignored_with(format!("{tool} is missing")));
        }
    }
    compare(file, cpu)?;
    Ok(Completion::Completed)
}

fn compare(file: &str, cpu: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let object = folder.path().join("program.o");
    compile(file, cpu, &object)?;
    let theirs = objdump(&object)?;
    let bytes = std::fs::read(&object)?;
    let parsed = object::File::parse(&*bytes)?;
    let section = parsed.section_by_name("xdp").ok_or("the object has no section xdp")?;
    let code = section.data()?;
    let insns = decode(code)?;
    if encode(&insns)?.bytes != code {
        return Err("encoding the decoded section gives other bytes".into());
    }
    let mut compared = 0;
    let mut slot = 0;
    for insn in &insns {
        let theirs = theirs.iter().find(|(at, _)| *at == slot).ok_or(format!("objdump lacks slot {slot}"))?;
        if !theirs.1.contains("<unknown>") && !theirs.1.contains("xchg") {
            let (left, right) = (plain(&disassemble(insn)), plain(&theirs.1));
            if left != right {
                return Err(format!("slot {slot}: `{left}`, objdump says `{right}`").into());
            }
            compared += 1;
        }
        slot += slots(insn);
    }
    if compared < 15 { Err(format!("only {compared} instructions compared").into()) } else { Ok(()) }
}

fn compile(file: &str, cpu: &str, object: &Path) -> Result<(), Failed> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(format!("{file}.c"));
    let output = Command::new("clang-19")
        .args(["-O2", "-g", "-target", "bpf", "-c"])
        .arg(format!("-mcpu={cpu}"))
        .arg(source)
        .arg("-o")
        .arg(object)
        .output()?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

/// The slots of section `xdp` with their text.
fn objdump(object: &Path) -> Result<Vec<(usize, String)>, Failed> {
    let output = Command::new("llvm-objdump-19")
        .args(["-d", "--no-show-raw-insn", "--section=xdp"])
        .arg(object)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = |line: &str| {
        let (slot, text) = line.split_once(':')?;
        Some((slot.trim().parse().ok()?, text.trim().to_owned()))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// One form for both: `goto pc+3` and `goto +0x3 <f+0x20>`, `(r6 +12)` and `(r6 + 0xc)`, `atomic64_` and `atomic_`,
/// names of helpers dropped.
fn plain(text: &str) -> String {
    let text = text.split(" <").next().unwrap_or_default().trim_end_matches(" ll");
    let text = text.replace("pc", "").replace("+ ", "+").replace("- ", "-").replace("atomic64", "atomic");
    let text = match text.split_once('#') {
        Some((_, number)) => format!("call {number}"),
        None => text,
    };
    let mut plain = String::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
        } else {
            plain.push_str(&decimal(&word));
            word.clear();
            plain.push(c);
        }
    }
    // A negative constant in a branch is unsigned in the kernel's text, signed in LLVM's.
    plain.trim_end().replace("4294967295", "-1")
}

fn decimal(word: &str) -> String {
    match word.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16)) {
        Some(Ok(number)) => number.to_string(),
        _ => word.to_owned(),
    }
}
