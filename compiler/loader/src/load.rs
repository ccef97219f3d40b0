//! From an object's bytes to programs and maps in the kernel.
//!
//! In this order: types (BTF), maps with their content, programs with references to the maps filled in, and last
//! the binding of maps that a program does not use but that describe it (`.rodata` with the metadata).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::LoadError;
use crate::image::{Image, MapImage};
use crate::link::Program;
use crate::map::Map;
use crate::sys::{self, MapHandle, MapSpec, ProgramSpec, Role};
use crate::verifier::{self, VerifierLog};

/// `BPF_PSEUDO_MAP_FD`
const PSEUDO_MAP: u8 = 1;
/// `BPF_PSEUDO_MAP_VALUE`
const PSEUDO_MAP_VALUE: u8 = 2;
/// `BPF_F_XDP_HAS_FRAGS`
pub(crate) const HAS_FRAGS: u32 = 1 << 5;
/// Statistics only (5.2).
const LOG_STATISTICS: u32 = 4;
/// Every step.
const LOG_STEPS: u32 = 1;
const SMALL_LOG: usize = 1 << 16;
/// The most that kernels before 5.13 take (`UINT_MAX >> 8`).
const LARGEST_LOG: usize = (1 << 24) - 1;

/// How packets reach a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the driver.
    #[default]
    Native,
    /// In the network stack, on any device; slower.
    Skb,
}

/// What to load, and for where.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The only program to load; `None`: all.
    pub program: Option<String>,
    /// How it will be attached, because in skb mode programs are loaded without the flag for fragments.
    pub mode: Mode,
    /// Where it will be attached, if anywhere.
    pub interface: Option<String>,
    /// Whether programs are loaded without the flag for fragments, for a driver that takes none.
    pub without_frags: bool,
}

/// A program in the kernel. It is gone with this value unless something else holds it.
#[derive(Debug)]
pub struct LoadedProgram {
    /// Its name in the object.
    pub name: String,
    /// Its number in the kernel.
    pub id: u32,
    /// Whether it takes packets in several buffers.
    pub frags: bool,
    /// How many instructions the verifier walked (limit: 1,000,000); `None` where the kernel does not say.
    pub processed: Option<u32>,
    fd: OwnedFd,
}

impl AsFd for LoadedProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A loaded object.
#[derive(Debug)]
pub struct Loaded {
    /// The programs, in the order of the object.
    pub programs: Vec<LoadedProgram>,
    /// All maps by name; sections of data by the section's name.
    pub maps: BTreeMap<String, Map>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Loads an object.
///
/// # Errors
/// See [`LoadError`]; nothing remains in the kernel then.
pub fn load(object: &[u8], options: &LoadOptions) -> Result<Loaded, LoadError> {
    let image = Image::parse(object)?;
    let wanted = select(&image, options.program.as_deref())?;
    let mut notes = Vec::new();
    let prepared = Prepared::new(&image, BTreeMap::new(), &mut notes)?;
    let mut programs = Vec::new();
    for program in wanted {
        let frags = program.frags && !clears_frags(options, &program.name, &mut notes);
        programs.push(prepared.load(program, Role::Xdp, frags, &mut notes)?);
    }
    let maps = prepared.maps.into_iter().map(|map| (map.name().to_string(), map)).collect();
    Ok(Loaded { programs, maps, notes })
}

pub(crate) fn select<'a>(image: &'a Image, name: Option<&str>) -> Result<Vec<&'a Program>, LoadError> {
    let Some(name) = name else { return Ok(image.programs.iter().collect()) };
    match image.programs.iter().find(|program| program.name == name) {
        Some(program) => Ok(vec![program]),
        None => Err(LoadError::NoSuchProgram {
            name: name.to_string(),
            available: image.programs.iter().map(|program| program.name.clone()).collect(),
        }),
    }
}

/// Whether the flag for fragments goes, and says so: without it packets come in one buffer.
pub(crate) fn clears_frags(options: &LoadOptions, program: &str, notes: &mut Vec<String>) -> bool {
    let place = match options.mode {
        Mode::Skb => "in skb mode",
        Mode::Native if options.interface.as_deref() == Some("lo") => "on lo",
        Mode::Native if options.without_frags => "with this driver",
        Mode::Native => return false,
    };
    notes.push(format!(
        "program `{program}` is loaded without support of fragments: {place} packets have none"
    ));
    true
}

/// Loads the types. A kernel that does not take them gets programs and maps without: they work, but have no names
/// of fields and source lines.
fn load_btf(image: &Image, notes: &mut Vec<String>) -> Option<OwnedFd> {
    let btf = image.btf.as_ref()?;
    match sys::btf_load(btf.bytes(), &mut []) {
        Ok(fd) => Some(fd),
        // Whatever comes next fails with the same lack of privileges, and says more.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => None,
        Err(error) => {
            // The log lists all types first: where it is too short the kernel gives up, even on good BTF.
            let mut log = vec![0; LARGEST_LOG];
            let reason =
                sys::btf_load(btf.bytes(), &mut log).map_or_else(|_| log_text(&log), |_| String::new());
            let reason = reason.lines().last().unwrap_or("no reason given");
            notes.push(format!(
                "the kernel refuses the object's BTF ({error}: {reason}); source lines and the names of rules will \
                 be missing"
            ));
            None
        }
    }
}

fn log_text(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).into_owned()
}

fn create_map(image: &MapImage, btf: Option<&OwnedFd>) -> Result<Map, LoadError> {
    let size = u64::from(image.value_size) * u64::from(image.max_entries);
    let action = || format!("creating map `{}` ({} entries, {size} bytes)", image.name, image.max_entries);
    let failed = |error| LoadError::system(action(), error);
    let fd = create_with_types(image, btf).map_err(failed)?;
    let handle = MapHandle::new(fd).map_err(failed)?;
    if let Some(content) = &image.content {
        handle.update(&0u32.to_ne_bytes(), content).map_err(failed)?;
        if image.is_constant() {
            sys::map_freeze(handle.fd.as_fd()).map_err(failed)?;
        }
    }
    Ok(Map::new(image.name.clone(), handle))
}

/// Creates a map with its types, or without where the kernel does not want them (some kinds of maps never do).
fn create_with_types(image: &MapImage, btf: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let spec = |types| MapSpec {
        name: &image.name,
        kind: image.kind,
        key_size: image.key_size,
        value_size: image.value_size,
        max_entries: image.max_entries,
        flags: image.flags,
        types,
    };
    let (key, value) = image.types;
    if let Some(btf) = btf.filter(|_| value != 0)
        && let Ok(fd) = sys::map_create(&spec(Some((btf.as_fd(), key, value))))
    {
        return Ok(fd);
    }
    sys::map_create(&spec(None))
}

/// An object whose types and maps are in the kernel.
pub(crate) struct Prepared<'a> {
    image: &'a Image,
    pub(crate) maps: Vec<Map>,
    btf: Option<OwnedFd>,
}

impl<'a> Prepared<'a> {
    /// Loads the types and makes the maps, but takes those in `shared`, by name, as they are.
    pub(crate) fn new(
        image: &'a Image,
        mut shared: BTreeMap<String, Map>,
        notes: &mut Vec<String>,
    ) -> Result<Self, LoadError> {
        sys::raise_memlock();
        let btf = load_btf(image, notes);
        let map = |map: &MapImage| match shared.remove(&map.name) {
            Some(shared) => Ok(shared),
            None => create_map(map, btf.as_ref()),
        };
        let maps = image.maps.iter().map(map).collect::<Result<_, _>>()?;
        Ok(Prepared { image, maps, btf })
    }

    /// Loads a program, and binds to it what describes it.
    pub(crate) fn load(
        &self,
        program: &Program,
        role: Role<'_>,
        frags: bool,
        notes: &mut Vec<String>,
    ) -> Result<LoadedProgram, LoadError> {
        let loaded = self.load_code(program, role, frags)?;
        self.bind_descriptions(program, &loaded, notes);
        Ok(loaded)
    }

    fn load_code(&self, program: &Program, role: Role<'_>, frags: bool) -> Result<LoadedProgram, LoadError> {
        let code = self.relocate(program);
        let with_btf = !program.functions.is_empty();
        let spec = ProgramSpec {
            role,
            name: &program.name,
            instructions: &code,
            license: &self.image.license,
            flags: if frags && matches!(role, Role::Xdp) { HAS_FRAGS } else { 0 },
            btf: self.btf.as_ref().filter(|_| with_btf).map(AsFd::as_fd),
            functions: &program.functions,
            lines: &program.lines,
        };
        let mut log = vec![0; SMALL_LOG];
        let fd = match sys::program_load(&spec, LOG_STATISTICS, &mut log) {
            Ok(fd) => fd,
            Err(error) => return Err(explain(&spec, program.frags, error, log_text(&log))),
        };
        let info = sys::program_info(fd.as_fd())
            .map_err(|error| LoadError::system(format!("asking about program `{}`", program.name), error))?;
        Ok(LoadedProgram {
            name: program.name.clone(),
            id: info.id,
            frags,
            processed: verifier::processed(&log_text(&log)),
            fd,
        })
    }

    /// The code with references to maps filled in.
    fn relocate(&self, program: &Program) -> Vec<[u8; 8]> {
        let mut code = program.code.clone();
        for reference in &program.references {
            let fd = self.maps[reference.map].as_fd().as_raw_fd();
            let kind = if reference.offset.is_some() { PSEUDO_MAP_VALUE } else { PSEUDO_MAP };
            let first = &mut code[reference.slot];
            first[1] = first[1] & 0xf | kind << 4;
            first[4..].copy_from_slice(&fd.to_le_bytes());
            code[reference.slot + 1][4..].copy_from_slice(&reference.offset.unwrap_or(0).to_le_bytes());
        }
        code
    }

    /// Binds constant data that the program does not use itself, so that what describes it is found from it.
    fn bind_descriptions(&self, program: &Program, loaded: &LoadedProgram, notes: &mut Vec<String>) {
        for (index, (image, map)) in self.image.maps.iter().zip(&self.maps).enumerate() {
            let used = program.references.iter().any(|reference| reference.map == index);
            if used || !image.is_constant() {
                continue;
            }
            if let Err(error) = sys::bind_map(loaded.as_fd(), map.as_fd()) {
                notes.push(format!(
                    "`{}` cannot be bound to program `{}` ({error}; kernels can from 5.10 on): the names of its \
                     rules will not be found from the running program",
                    map.name(),
                    program.name
                ));
            }
        }
    }
}

/// Finds out why a program was refused, by loading it once more with the verifier's log of all steps; of one that it
/// gave up on, what it `said` without them is enough. One made for packets in several buffers calls helpers that came
/// together with those, whether or not the flag is set.
fn explain(spec: &ProgramSpec<'_>, made_for_frags: bool, error: io::Error, said: String) -> LoadError {
    let action = || format!("loading program `{}`", spec.name);
    if made_for_frags && error.raw_os_error() != Some(libc::EPERM) && !takes_frags() {
        return LoadError::TooOld {
            what: format!(
                "program `{}` takes packets in several buffers, which kernels can from 5.18 on",
                spec.name
            ),
            instead: "build it with `--kernel 5.10` (or 5.15)".into(),
        };
    }
    if error.raw_os_error() == Some(libc::EPERM) {
        return LoadError::system(action(), error);
    }
    let said = VerifierLog::new(said);
    let log = if said.gave_up() { Some(said) } else { steps(spec).map(VerifierLog::new) };
    match log {
        Some(log) => {
            LoadError::Verifier { program: spec.name.to_string(), log, missing: crate::privilege::missing() }
        }
        None => LoadError::system(action(), error),
    }
}

/// The verifier's log; `None` if it has nothing to say.
fn steps(spec: &ProgramSpec<'_>) -> Option<String> {
    let mut size = SMALL_LOG;
    loop {
        let mut log = vec![0; size];
        let result = sys::program_load(spec, LOG_STEPS, &mut log);
        // Up to 6.3 the kernel stops with ENOSPC when the log is full.
        let full = matches!(&result, Err(error) if error.raw_os_error() == Some(libc::ENOSPC));
        if full && size < LARGEST_LOG {
            size = (4 * size).min(LARGEST_LOG);
            continue;
        }
        let text = log_text(&log);
        return (!text.trim().is_empty()).then_some(text);
    }
}

/// Whether the kernel has packets in several buffers (from 5.18 on), tried with the smallest program. Also false where
/// [`crate::probe`] fails.
#[must_use]
pub fn takes_frags() -> bool {
    load_smallest(HAS_FRAGS).is_ok()
}

/// Loads `return XDP_PASS`.
pub(crate) fn load_smallest(flags: u32) -> io::Result<OwnedFd> {
    let return_pass = [[0xb7, 0, 0, 0, 2, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let spec = ProgramSpec {
        role: Role::Xdp,
        name: "pktc_probe",
        instructions: &return_pass,
        license: c"Dual MIT/GPL",
        flags,
        btf: None,
        functions: &[],
        lines: &[],
    };
    sys::program_load(&spec, 0, &mut [])
}
