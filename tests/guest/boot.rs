//! Every pinned kernel boots, takes what it should and refuses what it should not.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use libtest_mimic::{Arguments, Failed, Trial};
use pktc_bpf::{AluOp, Insn, MapDef, MapIndex, MapKind, Operand, Reg, Section, Size, ValueLayout, Width};
use pktc_codegen::module::{MachineInsn, Module, Program};
use pktc_diagnostics::{SourceMap, Span};
use pktc_driver::options::{Access, Options};
use pktc_driver::{self as driver, Files, build, check, programs};
use pktc_object::{Metadata, SCHEMA, SourceInfo};
use pktc_tests::guest::{self, Answer, Guest, Report, Subject};

const XDP_DROP: u32 = 1;
const XDP_TX: u32 = 3;

fn main() {
    let arguments = Arguments::from_args();
    let of = |series| [trial(series, "loads_and_runs", boots), trial(series, "takes_the_examples", examples)];
    let trials = guest::series().into_iter().flat_map(of).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

type Check = fn(&Guest) -> Result<(), Failed>;

fn trial(series: &'static str, name: &str, check: Check) -> Trial {
    let name = format!("guest::{series}::{name}");
    match Guest::new(series) {
        Ok(guest) => {
            let note = guest.note.clone().unwrap_or_default();
            Trial::test(name, move || check(&guest)).with_kind(note)
        }
        Err(reason) => Trial::test(name, || Ok(())).with_kind(reason.to_string()).with_ignored_flag(true),
    }
}

fn boots(guest: &Guest) -> Result<(), Failed> {
    let drop_all = vec![set(0, XDP_DROP as i32), Insn::Exit];
    let table = vec![
        Insn::LoadMapValue { dst: Reg(1), map: MapIndex(0), offset: 1 },
        Insn::Load { size: Size::U8, dst: Reg::R0, base: Reg(1), offset: 1 },
        Insn::Exit,
    ];
    let subjects = [
        subject("drop all", drop_all, Vec::new())?,
        subject("from a table", table, vec![content(vec![0, 0, XDP_TX as u8])])?,
        subject("no verdict", vec![set(1, 0), Insn::Exit], Vec::new())?,
        several_buffers()?,
    ];
    let started = Instant::now();
    let reports = guest.load(Path::new(env!("CARGO_BIN_EXE_pktc-guest")), &subjects)?;
    let seconds = started.elapsed().as_secs();
    assert!(seconds < 120, "{seconds} seconds");
    let loaded = |subject: &str, verdict| Report {
        subject: subject.into(),
        program: "edge".into(),
        answer: Answer::Verdicts(vec![Some(verdict), None]),
    };
    assert_eq!(reports[..2], [loaded("drop all", XDP_DROP), loaded("from a table", XDP_TX)]);
    match &reports[2].answer {
        Answer::Rejected(reason) => assert!(reason.contains("R0 !read_ok"), "{reason}"),
        Answer::Verdicts(verdicts) => panic!("a program without a verdict was loaded: {verdicts:?}"),
    }
    match &reports[3].answer {
        Answer::Rejected(reason) => {
            assert!(
                reason.contains("which kernels can from 5.18 on; build it with `--kernel 5.10`"),
                "{reason}"
            );
            assert!(!guest.has_frags());
        }
        Answer::Verdicts(verdicts) => {
            assert_eq!(verdicts, &[Some(XDP_DROP), None]);
            assert!(guest.has_frags());
        }
    }
    Ok(())
}

/// Each example loads with each way to reach packet bytes that the kernel has, and says something of a packet.
fn examples(guest: &Guest) -> Result<(), Failed> {
    let mut subjects = Vec::new();
    for file in example_files()? {
        for access in Access::ALL.into_iter().filter(|access| guest.has_frags() || !access.frags()) {
            subjects.push(example(&file, access)?);
        }
    }
    let reports = guest.load(Path::new(env!("CARGO_BIN_EXE_pktc-guest")), &subjects)?;
    assert_eq!(reports.len(), subjects.len());
    for Report { subject, answer, .. } in reports {
        assert!(matches!(answer, Answer::Verdicts(_)), "{subject}: {answer:?}");
    }
    Ok(())
}

fn example_files() -> Result<Vec<PathBuf>, Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut files = Vec::new();
    for example in fs::read_dir(folder)? {
        for file in fs::read_dir(example?.path())? {
            files.push(file?.path());
        }
    }
    // What has no program is used by others.
    files.retain(|file| {
        let text = fs::read_to_string(file).unwrap_or_default();
        file.extension().is_some_and(|ext| ext == "pkt") && text.lines().any(|line| line.starts_with("xdp "))
    });
    files.sort();
    Ok(files)
}

fn example(file: &Path, access: Access) -> Result<Subject, Failed> {
    let checked = check(&file.display().to_string(), &OnDisk);
    let subjects: Vec<_> = programs(&checked).into_iter().map(driver::Subject::Xdp).collect();
    let options = Options { access, ..Options::default() };
    let built =
        build(&checked, &subjects, &options).map_err(|errors| format!("{}: {errors:?}", file.display()))?;
    let name = format!("{} by {}", file.display(), access.name());
    Ok(Subject { name, object: built.object, packets: vec![vec![0; 60].into()] })
}

struct OnDisk;

impl Files for OnDisk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(path).map_err(|error| error.to_string())
    }
}

/// A program with a packet of 60 bytes, and one that is too short for the kernel.
fn subject(name: &str, insns: Vec<MachineInsn>, maps: Vec<MapDef>) -> Result<Subject, Failed> {
    subject_in(name, insns, maps, false)
}

/// Drops all, and takes packets in several buffers.
fn several_buffers() -> Result<Subject, Failed> {
    subject_in("several buffers", vec![set(0, XDP_DROP as i32), Insn::Exit], Vec::new(), true)
}

fn subject_in(
    name: &str,
    insns: Vec<MachineInsn>,
    maps: Vec<MapDef>,
    frags: bool,
) -> Result<Subject, Failed> {
    let mut sources = SourceMap::default();
    let file = sources.add("edge.pkt", "xdp edge { default drop; }\n");
    let lines = vec![(0, Span { file, start: 11, end: 18 })];
    let program = Program {
        name: "edge".into(),
        section: Section::of_programs(frags),
        params: 1,
        insns,
        lines,
        stack: 0,
    };
    let metadata = Metadata {
        counters: Vec::new(),
        programs: Vec::new(),
        schema: SCHEMA,
        sets: Vec::new(),
        source: SourceInfo { path: "edge.pkt".into(), sha256: String::new() },
    };
    let object = pktc_object::write(
        &Module { programs: vec![program], maps, ..Module::default() },
        &metadata,
        &sources,
    )?;
    Ok(Subject { name: name.into(), object, packets: vec![vec![0; 60].into(), vec![0; 13].into()] })
}

fn set(register: u8, value: i32) -> MachineInsn {
    Insn::Alu { op: AluOp::Mov, width: Width::W32, dst: Reg(register), src: Operand::Imm(value) }
}

fn content(bytes: Vec<u8>) -> MapDef {
    MapDef {
        name: "verdicts".into(),
        kind: MapKind::Array,
        key_size: 4,
        value_size: bytes.len() as u32,
        max_entries: 1,
        flags: 0x80, // BPF_F_RDONLY_PROG
        layout: ValueLayout::Bytes,
        content: Some(bytes),
    }
}
