//! Objects to load: C through clang, and modules written by hand through pktc's own writer.

use std::process::Command;

use pktc_bpf::{AluOp, Insn, Operand, Reg, Section, Width};
use pktc_codegen::module::{Module, Program};
use pktc_diagnostics::{SourceMap, Span};
use pktc_loader::{LoadError, LoadOptions, Loaded, load};
use pktc_object::{Metadata, ProgramInfo, SCHEMA, SourceInfo};

/// Compiles `programs/NAME.c`; `Err`: why that cannot be done here.
pub(crate) fn compile(name: &str) -> Result<Vec<u8>, String> {
    compile_with(name, &[])
}

/// The same, with more words for the compiler.
pub(crate) fn compile_with(name: &str, options: &[String]) -> Result<Vec<u8>, String> {
    let source = format!("{}/tests/kernel/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("object.o");
    let includes = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new("clang-19");
    command.args(["-O2", "-g", "-target", "bpf", &includes, "-c", &source, "-o"]).arg(&object).args(options);
    let output = command.output().map_err(|error| format!("clang-19: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("file not found") {
        return Err(format!("headers of libbpf or the kernel are missing: {errors}"));
    }
    assert!(output.status.success(), "{errors}");
    Ok(std::fs::read(object).unwrap())
}

/// A program of pktc's that returns `verdict`, with metadata.
pub(crate) fn constant(name: &str, verdict: i32, frags: bool) -> Vec<u8> {
    let mut sources = SourceMap::default();
    let file = sources.add("edge.pkt", "xdp edge { default drop; }\n");
    let set = Insn::Alu { op: AluOp::Mov, width: Width::W32, dst: Reg::R0, src: Operand::Imm(verdict) };
    let lines = vec![(0, Span { file, start: 11, end: 24 })];
    let program = Program {
        name: name.into(),
        section: Section::of_programs(frags),
        params: 1,
        insns: vec![set, Insn::Exit],
        lines,
        stack: 0,
    };
    let metadata = Metadata {
        counters: Vec::new(),
        programs: vec![ProgramInfo {
            chain_on: None,
            counters: None,
            priority: None,
            name: name.into(),
            rules: Vec::new(),
        }],
        schema: SCHEMA,
        sets: Vec::new(),
        source: SourceInfo { path: "edge.pkt".into(), sha256: "0".repeat(64) },
    };
    let module = Module { programs: vec![program], ..Module::default() };
    pktc_object::write(&module, &metadata, &sources).unwrap()
}

/// Loads an object with a program for several buffers; `Err`: the kernel has none.
pub(crate) fn load_frags(object: &[u8]) -> Result<Loaded, String> {
    match load(object, &LoadOptions::default()) {
        Err(error @ LoadError::TooOld { .. }) => Err(error.to_string()),
        result => Ok(result.unwrap()),
    }
}
