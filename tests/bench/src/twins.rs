//! The programs: each in `.pkt` and in C, built with the counters of rules or without.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object as _, ObjectSection as _};
use pktc_diagnostics::render;
use pktc_driver::options::{Access, Counters};
use pktc_driver::{Files, Options, Subject, build, check, programs};
use pktc_testing::hits::RuleCounters;

/// The compiler of the C twins.
pub const CLANG: &str = "clang-19";

/// Bytes of an instruction slot.
const SLOT: u64 = 8;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name of the program and of its files.
    pub program: &'static str,
    /// Whether rules count packets and bytes, in both.
    pub counters: bool,
}

/// All lines.
pub const ROWS: [Row; 4] = [
    Row { program: "parse", counters: false },
    Row { program: "udp_port", counters: false },
    Row { program: "firewall", counters: false },
    Row { program: "firewall", counters: true },
];

impl Row {
    /// How the table calls it.
    #[must_use]
    pub fn title(&self) -> String {
        let counters = if self.counters { ", counters" } else { "" };
        format!("{}{counters}", self.program)
    }
}

/// One of the two objects of a row.
#[derive(Clone, Debug)]
pub struct Side {
    /// The ELF object.
    pub object: Vec<u8>,
    /// The program in it.
    pub program: String,
    /// Where its rules count: map, first entry, number of entries.
    pub counters: Option<RuleCounters>,
}

impl Side {
    /// Instruction slots of the program's section.
    ///
    /// # Errors
    /// If the object is none, or has no such section.
    pub fn slots(&self) -> Result<u64, String> {
        let file = object::File::parse(&*self.object).map_err(|error| error.to_string())?;
        let mut sections =
            file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with("xdp")));
        sections.next().map(|section| section.size() / SLOT).ok_or_else(|| "no section `xdp`".into())
    }
}

/// What is compared.
#[derive(Clone, Debug)]
pub struct Twins {
    /// Which row.
    pub row: Row,
    /// pktc's.
    pub pktc: Side,
    /// clang's.
    pub clang: Side,
}

/// Builds both objects of a row.
///
/// # Errors
/// What a compiler says, or that clang is missing.
pub fn twins(row: Row) -> Result<Twins, String> {
    // The twins in C read through the packet's pointers, too.
    let pktc = build_pkt(&source(row.program, "pkt"), row.counters, Access::Direct)?;
    let clang = Side {
        object: build_c(&source(row.program, "bpf.c"), row.counters)?,
        program: row.program.into(),
        counters: pktc.counters.as_ref().map(|ours| RuleCounters {
            map: "counters".into(),
            first: 0,
            ..ours.clone()
        }),
    };
    Ok(Twins { row, pktc, clang })
}

/// The source file of `program`.
#[must_use]
pub fn source(program: &str, extension: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(format!("{program}.{extension}"))
}

/// Whether clang is there.
#[must_use]
pub fn clang_is_there() -> bool {
    Command::new(CLANG).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Reads sources from the disk.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| error.to_string())
    }
}

/// Builds the only program of the file at `path`.
///
/// # Errors
/// The rendered diagnostics.
pub(crate) fn build_pkt(path: &Path, counters: bool, access: Access) -> Result<Side, String> {
    build_text(&path.to_string_lossy(), &Disk, counters, access)
}

/// Builds the only program of the file at `path` among `files`.
///
/// # Errors
/// The rendered diagnostics.
pub fn build_text(path: &str, files: &dyn Files, counters: bool, access: Access) -> Result<Side, String> {
    let checked = check(path, files);
    let subjects: Vec<Subject> = programs(&checked).into_iter().map(Subject::Xdp).collect();
    let counters = if counters { Counters::On } else { Counters::Off };
    let options = Options { access, counters, ..Options::default() };
    let built = build(&checked, &subjects, &options)
        .map_err(|diagnostics| render(&checked.sources, &diagnostics, false))?;
    let [program] = &*built.metadata.programs else { return Err(format!("{path} is to have one program")) };
    let (program, counters) = (program.name.clone(), RuleCounters::of(&built, 0));
    Ok(Side { object: built.object, program, counters })
}

/// Builds the program of a file in C.
///
/// # Errors
/// What clang says, or that it is missing.
pub(crate) fn build_c(path: &Path, counters: bool) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let object = folder.path().join("twin.o");
    let headers = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(CLANG)
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-idirafter", &headers])
        .arg(format!("-DCOUNTERS={}", u8::from(counters)))
        .arg("-c")
        .arg(path)
        .arg("-o")
        .arg(&object)
        .output()
        .map_err(|error| format!("{CLANG} does not run ({error}); install the package {CLANG}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    std::fs::read(&object).map_err(|error| format!("{CLANG} wrote no object: {error}"))
}
