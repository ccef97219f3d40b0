//! Loading a dispatcher, and putting programs in the places of its functions.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use pktc_object::Dispatcher;

use super::config::{Config, Slot, Version};
use crate::error::LoadError;
use crate::load::HAS_FRAGS;
use crate::sys::{self, MapHandle, MapSpec, ProgramSpec, Role};

/// Compatible with the GPL, as a program must be whose functions are replaced by such.
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";
/// `BPF_PSEUDO_MAP_VALUE`
const PSEUDO_MAP_VALUE: u8 = 2;

/// A dispatcher in the kernel, not on an interface yet.
pub(crate) struct Chain {
    pub(crate) fd: OwnedFd,
    pub(crate) id: u32,
    code: Dispatcher,
    btf: OwnedFd,
}

impl Chain {
    /// Loads a dispatcher with this configuration.
    pub(crate) fn load(config: &Config, frags: bool) -> Result<Self, LoadError> {
        let failed = |error| LoadError::system("loading a dispatcher", error);
        let code = Dispatcher::new(config.slots.len())
            .map_err(|error| failed(io::Error::other(error.to_string())))?;
        let map = configuration(config).map_err(failed)?;
        let btf = sys::btf_load(&code.btf, &mut []).map_err(failed)?;
        let instructions = with_reference(&code, map.as_fd());
        let spec = ProgramSpec {
            role: Role::Xdp,
            name: code.name,
            instructions: &instructions,
            license: LICENSE,
            flags: if frags { HAS_FRAGS } else { 0 },
            btf: Some(btf.as_fd()),
            functions: &code.functions,
            lines: &[],
        };
        let fd = sys::program_load(&spec, 0, &mut []).map_err(failed)?;
        let id = sys::program_info(fd.as_fd()).map_err(failed)?.id;
        Ok(Chain { fd, id, code, btf })
    }

    /// What a program for `place` is loaded as.
    pub(crate) fn role(&self, place: usize) -> Role<'_> {
        Role::Extension { target: self.fd.as_fd(), function: self.code.target(place) }
    }

    /// Puts a program, which was loaded for this dispatcher or another, in a place.
    pub(crate) fn link(&self, place: usize, program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        sys::link_extension(program, self.fd.as_fd(), self.code.target(place))
    }
}

/// The map with the configuration, which nobody changes any more.
fn configuration(config: &Config) -> io::Result<OwnedFd> {
    let value = config.encode();
    let map = MapHandle::new(sys::map_create(&MapSpec {
        name: "xdp_disp.rodata",
        kind: super::ARRAY,
        key_size: 4,
        value_size: value.len() as u32,
        max_entries: 1,
        flags: super::READ_ONLY,
        types: None,
    })?)?;
    map.update(&0u32.to_ne_bytes(), &value)?;
    sys::map_freeze(map.fd.as_fd())?;
    Ok(map.fd)
}

fn with_reference(code: &Dispatcher, map: BorrowedFd<'_>) -> Vec<[u8; 8]> {
    let mut slots: Vec<[u8; 8]> = code.code.as_chunks().0.to_vec();
    let first = &mut slots[code.reference / 8];
    first[1] = first[1] & 0xf | PSEUDO_MAP_VALUE << 4;
    first[4..].copy_from_slice(&map.as_raw_fd().to_le_bytes());
    slots
}

/// Whether the kernel lets programs take the place of functions; tried, because some that could are told not to.
///
/// # Errors
/// Why not.
pub(crate) fn extensions_work() -> io::Result<()> {
    let slot = Slot { priority: 0, chain_on: 0, frags: false };
    let config = Config { version: Version::V2, slots: vec![slot] };
    let chain = Chain::load(&config, false).map_err(|error| match error {
        LoadError::System { error, .. } => error,
        other => io::Error::other(other.to_string()),
    })?;
    let return_pass = [[0xb7, 0, 0, 0, 2, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let spec = ProgramSpec {
        role: chain.role(0),
        name: "pktc_probe",
        instructions: &return_pass,
        license: LICENSE,
        flags: 0,
        btf: Some(chain.btf.as_fd()),
        functions: &[[0, chain.code.target(0)]],
        lines: &[],
    };
    let program = sys::program_load(&spec, 0, &mut [])?;
    chain.link(0, program.as_fd()).map(drop)
}
