//! System calls that have no safe wrapper: `bpf(2)`, one `ioctl(2)`, namespaces, limits.
//!
//! All of the workspace's `unsafe` code is here. Each function takes slices and borrowed descriptors, so
//! that whatever the kernel reads or writes outlives the call and is as long as the kernel believes; sizes of
//! map keys and values are therefore asked of the kernel ([`MapHandle::new`]), never taken from a caller.
//!
//! `bpf_attr` is always passed whole and zeroed: kernels accept a longer structure than they know as long as
//! the rest is zero (`bpf_check_uarg_tail_zero`, since 4.15).
#![allow(
    unsafe_code,
    reason = "system calls through raw pointers; each block says why its pointers are valid"
)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya_obj::generated::{bpf_attr, bpf_btf_info, bpf_cmd, bpf_map_info, bpf_prog_info};

/// Maps whose values exist once a possible CPU (`BPF_MAP_TYPE_PERCPU_HASH`, `…_PERCPU_ARRAY`,
/// `…_LRU_PERCPU_HASH`, `…_PERCPU_CGROUP_STORAGE`).
const PER_CPU_KINDS: [u32; 4] = [5, 6, 10, 21];

/// How often a call that a signal interrupted is tried.
const ATTEMPTS: u32 = 5;

fn attributes() -> bpf_attr {
    // SAFETY: a union of plain integers, for which all zero is a value.
    unsafe { std::mem::zeroed() }
}

fn address<T>(slice: &[T]) -> u64 {
    if slice.is_empty() { 0 } else { slice.as_ptr() as u64 }
}

fn address_mut<T>(slice: &mut [T]) -> u64 {
    if slice.is_empty() { 0 } else { slice.as_mut_ptr() as u64 }
}

fn raw(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd() as u32
}

fn length(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "longer than 4 GiB"))
}

/// # Safety
/// Every address in `attr` must be valid for what `command` reads or writes there.
unsafe fn bpf(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<i64> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        // SAFETY: `attr` is a live, exclusively borrowed `bpf_attr` of the given size; its addresses are the caller's.
        let result = unsafe {
            libc::syscall(libc::SYS_bpf, command as i64, std::ptr::from_mut(attr), size_of::<bpf_attr>())
        };
        if result >= 0 {
            return Ok(result);
        }
        let error = io::Error::last_os_error();
        let interrupted = matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN));
        if !interrupted || attempt == ATTEMPTS {
            return Err(error);
        }
    }
}

/// # Safety
/// As [`bpf`]; besides, `command` must be one that returns a new descriptor.
unsafe fn bpf_fd(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(command, attr)? };
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// A map to create.
pub(crate) struct MapSpec<'a> {
    /// Cut to 15 characters; others than letters, digits, `_` and `.` become `_`.
    pub(crate) name: &'a str,
    pub(crate) kind: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    pub(crate) max_entries: u32,
    pub(crate) flags: u32,
    /// BTF and the types of key and value in it.
    pub(crate) types: Option<(BorrowedFd<'a>, u32, u32)>,
}

fn kernel_name(name: &str) -> [libc::c_char; 16] {
    let mut out = [0; 16];
    for (slot, byte) in out.iter_mut().take(15).zip(name.bytes()) {
        let allowed = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        *slot = if allowed { byte } else { b'_' } as libc::c_char;
    }
    out
}

/// Text of a NUL-padded name.
fn text(name: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = name.iter().map(|c| *c as u8).take_while(|b| *b != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `BPF_MAP_CREATE`.
pub(crate) fn map_create(spec: &MapSpec<'_>) -> io::Result<OwnedFd> {
    let mut attr = attributes();
    // SAFETY: writing a field of a zeroed union of plain integers; no address is passed.
    unsafe {
        let map = &mut attr.__bindgen_anon_1;
        map.map_type = spec.kind;
        map.key_size = spec.key_size;
        map.value_size = spec.value_size;
        map.max_entries = spec.max_entries;
        map.map_flags = spec.flags;
        map.map_name = kernel_name(spec.name);
        if let Some((btf, key, value)) = spec.types {
            map.btf_fd = raw(btf);
            map.btf_key_type_id = key;
            map.btf_value_type_id = value;
        }
        bpf_fd(bpf_cmd::BPF_MAP_CREATE, &mut attr)
    }
}

/// `BPF_MAP_FREEZE` (5.2): user space can no longer write.
pub(crate) fn map_freeze(map: BorrowedFd<'_>) -> io::Result<()> {
    let mut attr = attributes();
    // SAFETY: no address is passed.
    unsafe {
        attr.__bindgen_anon_2.map_fd = raw(map);
        bpf(bpf_cmd::BPF_MAP_FREEZE, &mut attr).map(drop)
    }
}

/// What the kernel says of a map.
#[derive(Clone, Debug)]
pub(crate) struct MapInfo {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    pub(crate) max_entries: u32,
    /// `BPF_F_…`
    pub(crate) flags: u32,
    /// 0: none.
    pub(crate) btf_id: u32,
    pub(crate) btf_value_type_id: u32,
}

/// An open map with the sizes that the kernel uses for it.
#[derive(Debug)]
pub(crate) struct MapHandle {
    pub(crate) fd: OwnedFd,
    info: MapInfo,
    /// Bytes that the kernel copies for a value: all CPUs' copies, each padded to 8 bytes, for per-CPU maps.
    value_bytes: usize,
}

impl MapHandle {
    /// Asks the kernel for the sizes.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        let info = map_info(std::os::fd::AsFd::as_fd(&fd))?;
        let value_bytes = if PER_CPU_KINDS.contains(&info.kind) {
            (info.value_size as usize).next_multiple_of(8) * possible_cpus()?
        } else {
            info.value_size as usize
        };
        Ok(MapHandle { fd, info, value_bytes })
    }

    pub(crate) fn info(&self) -> &MapInfo {
        &self.info
    }

    fn check(&self, key: &[u8]) -> io::Result<()> {
        if key.len() == self.info.key_size as usize {
            return Ok(());
        }
        let message = format!("a key of map {} has {} bytes", self.info.name, self.info.key_size);
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    /// `BPF_MAP_LOOKUP_ELEM`; `None`: no such key.
    pub(crate) fn lookup(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.check(key)?;
        let mut value = vec![0u8; self.value_bytes];
        let mut attr = attributes();
        // SAFETY: key and value are as long as the kernel says that this map's are, and live through the call.
        let result = unsafe {
            let element = &mut attr.__bindgen_anon_2;
            element.map_fd = self.fd.as_raw_fd() as u32;
            element.key = address(key);
            element.__bindgen_anon_1.value = address_mut(&mut value);
            bpf(bpf_cmd::BPF_MAP_LOOKUP_ELEM, &mut attr)
        };
        match result {
            Ok(_) => Ok(Some(value)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `BPF_MAP_UPDATE_ELEM`; for per-CPU maps `value` holds all CPUs' copies.
    pub(crate) fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.check(key)?;
        if value.len() != self.value_bytes {
            let message = format!("a value of map {} has {} bytes", self.info.name, self.value_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut attr = attributes();
        // SAFETY: as in `lookup`; the kernel only reads.
        unsafe {
            let element = &mut attr.__bindgen_anon_2;
            element.map_fd = self.fd.as_raw_fd() as u32;
            element.key = address(key);
            element.__bindgen_anon_1.value = address(value);
            bpf(bpf_cmd::BPF_MAP_UPDATE_ELEM, &mut attr).map(drop)
        }
    }

    /// `BPF_MAP_GET_NEXT_KEY`: the key after `key`, or the first; `None` at the end.
    pub(crate) fn next_key(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        if let Some(key) = key {
            self.check(key)?;
        }
        let mut next = vec![0u8; self.info.key_size as usize];
        let mut attr = attributes();
        // SAFETY: both keys are as long as the kernel says that this map's are.
        let result = unsafe {
            let element = &mut attr.__bindgen_anon_2;
            element.map_fd = self.fd.as_raw_fd() as u32;
            element.key = key.map_or(0, address);
            element.__bindgen_anon_1.next_key = address_mut(&mut next);
            bpf(bpf_cmd::BPF_MAP_GET_NEXT_KEY, &mut attr)
        };
        match result {
            Ok(_) => Ok(Some(next)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `BPF_MAP_LOOKUP_BATCH` over a whole array (arrays: 5.6, per-CPU arrays: 5.13): the values in order.
    pub(crate) fn lookup_array(&self) -> io::Result<Vec<u8>> {
        if self.info.key_size != 4 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an array"));
        }
        let count = self.info.max_entries;
        let mut keys = vec![0u32; count as usize];
        let mut values = vec![0u8; self.value_bytes * count as usize];
        let mut position = [0u32; 1];
        let mut attr = attributes();
        // SAFETY: keys and values have room for `count` entries, `position` for one key.
        let result = unsafe {
            let batch = &mut attr.batch;
            batch.out_batch = address_mut(&mut position);
            batch.keys = address_mut(&mut keys);
            batch.values = address_mut(&mut values);
            batch.count = count;
            batch.map_fd = self.fd.as_raw_fd() as u32;
            bpf(bpf_cmd::BPF_MAP_LOOKUP_BATCH, &mut attr)
        };
        match result {
            // ENOENT: there was nothing after the last entry, so all of them are here.
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
            _ => Ok(values),
        }
    }
}

/// How many CPUs a per-CPU map has values for (`/sys/devices/system/cpu/possible`).
pub(crate) fn possible_cpus() -> io::Result<usize> {
    let path = "/sys/devices/system/cpu/possible";
    let text = std::fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}; is /sys mounted?")))?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|n| n.parse::<usize>().ok());
    let error = || io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {text:?} is no list of CPUs"));
    Ok(last.ok_or_else(error)? + 1)
}

/// What a program runs as.
#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    /// On an interface.
    Xdp,
    /// In place of a function of a loaded program, as that one's BTF numbers it.
    Extension { target: BorrowedFd<'a>, function: u32 },
}

/// A program to load.
pub(crate) struct ProgramSpec<'a> {
    pub(crate) role: Role<'a>,
    /// As [`MapSpec::name`].
    pub(crate) name: &'a str,
    pub(crate) instructions: &'a [[u8; 8]],
    pub(crate) license: &'a CStr,
    /// `BPF_F_…`
    pub(crate) flags: u32,
    pub(crate) btf: Option<BorrowedFd<'a>>,
    /// Records of `bpf_func_info`; empty without `btf`.
    pub(crate) functions: &'a [[u32; 2]],
    /// Records of `bpf_line_info`; empty without `btf`.
    pub(crate) lines: &'a [[u32; 4]],
}

/// `BPF_PROG_TYPE_XDP`
pub(crate) const PROG_TYPE_XDP: u32 = 6;
/// `BPF_PROG_TYPE_EXT` (5.6)
const PROG_TYPE_EXTENSION: u32 = 28;
/// `BPF_XDP`, the attach type that programs with fragments are checked for (5.18); older kernels ignore it.
const ATTACH_TYPE_XDP: u32 = 37;

/// `BPF_PROG_LOAD`. `log` receives the verifier's log, NUL-terminated; it must not be
/// empty where `log_level` is not 0.
pub(crate) fn program_load(spec: &ProgramSpec<'_>, log_level: u32, log: &mut [u8]) -> io::Result<OwnedFd> {
    let mut attr = attributes();
    // SAFETY: all slices live through the call and are passed with their lengths; names and licence are
    // NUL-terminated.
    unsafe {
        let program = &mut attr.__bindgen_anon_3;
        match spec.role {
            Role::Xdp => {
                program.prog_type = PROG_TYPE_XDP;
                program.expected_attach_type = ATTACH_TYPE_XDP;
            }
            Role::Extension { target, function } => {
                program.prog_type = PROG_TYPE_EXTENSION;
                program.attach_btf_id = function;
                program.__bindgen_anon_1.attach_prog_fd = raw(target);
            }
        }
        program.insns = address(spec.instructions);
        program.insn_cnt = length(spec.instructions.len())?;
        program.license = spec.license.as_ptr() as u64;
        program.prog_flags = spec.flags;
        program.prog_name = kernel_name(spec.name);
        program.log_level = log_level;
        if log_level != 0 {
            program.log_size = length(log.len())?;
            program.log_buf = address_mut(log);
        }
        if let Some(btf) = spec.btf {
            program.prog_btf_fd = raw(btf);
            if !spec.functions.is_empty() {
                program.func_info_rec_size = size_of::<[u32; 2]>() as u32;
                program.func_info = address(spec.functions);
                program.func_info_cnt = length(spec.functions.len())?;
            }
            if !spec.lines.is_empty() {
                program.line_info_rec_size = size_of::<[u32; 4]>() as u32;
                program.line_info = address(spec.lines);
                program.line_info_cnt = length(spec.lines.len())?;
            }
        }
        bpf_fd(bpf_cmd::BPF_PROG_LOAD, &mut attr)
    }
}

/// `BPF_BTF_LOAD` (4.18); `log` receives what is wrong with it.
pub(crate) fn btf_load(data: &[u8], log: &mut [u8]) -> io::Result<OwnedFd> {
    let mut attr = attributes();
    // SAFETY: both slices live through the call and are passed with their lengths.
    unsafe {
        let btf = &mut attr.__bindgen_anon_7;
        btf.btf = address(data);
        btf.btf_size = length(data.len())?;
        if !log.is_empty() {
            btf.btf_log_level = 1;
            btf.btf_log_size = length(log.len())?;
            btf.btf_log_buf = address_mut(log);
        }
        bpf_fd(bpf_cmd::BPF_BTF_LOAD, &mut attr)
    }
}

/// `BPF_PROG_BIND_MAP` (5.10): the map lives as long as the program and is listed among its maps.
pub(crate) fn bind_map(program: BorrowedFd<'_>, map: BorrowedFd<'_>) -> io::Result<()> {
    let mut attr = attributes();
    // SAFETY: no address is passed.
    unsafe {
        attr.prog_bind_map.prog_fd = raw(program);
        attr.prog_bind_map.map_fd = raw(map);
        bpf(bpf_cmd::BPF_PROG_BIND_MAP, &mut attr).map(drop)
    }
}

/// What `BPF_PROG_TEST_RUN` gives back.
pub(crate) struct TestRunOutput {
    pub(crate) verdict: u32,
    pub(crate) packet: Vec<u8>,
    /// Nanoseconds, the mean of all repetitions.
    pub(crate) duration: u32,
}

/// `BPF_PROG_TEST_RUN`. `context`, if any, is a `struct xdp_md` (contexts: 5.14); `room` is how many bytes
/// the packet may have afterwards.
pub(crate) fn test_run(
    program: BorrowedFd<'_>,
    packet: &[u8],
    context: Option<[u32; 6]>,
    repeat: u32,
    room: usize,
) -> io::Result<TestRunOutput> {
    let mut output = vec![0u8; room];
    let context = context.as_ref().map_or(&[][..], |context| &context[..]);
    let mut attr = attributes();
    // SAFETY: packet, context and output live through the call and are passed with their lengths.
    let test = unsafe {
        let test = &mut attr.test;
        test.prog_fd = raw(program);
        test.data_in = address(packet);
        test.data_size_in = length(packet.len())?;
        test.data_out = address_mut(&mut output);
        test.data_size_out = length(output.len())?;
        test.ctx_in = address(context);
        test.ctx_size_in = length(size_of_val(context))?;
        test.repeat = repeat;
        bpf(bpf_cmd::BPF_PROG_TEST_RUN, &mut attr)?;
        attr.test
    };
    output.truncate(test.data_size_out as usize);
    Ok(TestRunOutput { verdict: test.retval, packet: output, duration: test.duration })
}

/// # Safety
/// `info` must point to `bytes` bytes that the kernel may write.
unsafe fn object_info(fd: BorrowedFd<'_>, info: u64, bytes: usize) -> io::Result<()> {
    let mut attr = attributes();
    // SAFETY: the caller's promise.
    unsafe {
        attr.info.bpf_fd = raw(fd);
        attr.info.info_len = length(bytes)?;
        attr.info.info = info;
        bpf(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut attr).map(drop)
    }
}

fn map_info(fd: BorrowedFd<'_>) -> io::Result<MapInfo> {
    // SAFETY: a structure of plain integers, for which all zero is a value; the kernel writes at most its size.
    let info = unsafe {
        let mut info: bpf_map_info = std::mem::zeroed();
        object_info(fd, std::ptr::from_mut(&mut info) as u64, size_of::<bpf_map_info>())?;
        info
    };
    Ok(MapInfo {
        id: info.id,
        name: text(&info.name),
        kind: info.type_,
        key_size: info.key_size,
        value_size: info.value_size,
        max_entries: info.max_entries,
        flags: info.map_flags,
        btf_id: info.btf_id,
        btf_value_type_id: info.btf_value_type_id,
    })
}

/// What the kernel says of a program.
#[derive(Clone, Debug)]
pub(crate) struct ProgramInfo {
    pub(crate) id: u32,
    /// `BPF_PROG_TYPE_…`
    pub(crate) kind: u32,
    pub(crate) name: String,
    /// A hash of its instructions.
    pub(crate) tag: [u8; 8],
    /// Nanoseconds from boot until it was loaded.
    pub(crate) load_time: u64,
    /// 0: none.
    pub(crate) btf_id: u32,
    pub(crate) map_ids: Vec<u32>,
}

/// Identity and maps of a program.
pub(crate) fn program_info(fd: BorrowedFd<'_>) -> io::Result<ProgramInfo> {
    let mut map_ids: Vec<u32> = Vec::new();
    loop {
        // SAFETY: as in `map_info`; `map_ids` has room for `nr_map_ids` numbers, and the kernel writes no more.
        let info = unsafe {
            let mut info: bpf_prog_info = std::mem::zeroed();
            info.nr_map_ids = length(map_ids.len())?;
            info.map_ids = address_mut(&mut map_ids);
            object_info(fd, std::ptr::from_mut(&mut info) as u64, size_of::<bpf_prog_info>())?;
            info
        };
        let count = info.nr_map_ids as usize;
        if count <= map_ids.len() {
            map_ids.truncate(count);
            return Ok(ProgramInfo {
                id: info.id,
                kind: info.type_,
                name: text(&info.name),
                tag: info.tag,
                load_time: info.load_time,
                btf_id: info.btf_id,
                map_ids,
            });
        }
        map_ids = vec![0; count];
    }
}

/// The raw BTF behind a descriptor.
pub(crate) fn btf_data(fd: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut data: Vec<u8> = Vec::new();
    loop {
        // SAFETY: as in `map_info`; `data` has room for `btf_size` bytes, and the kernel writes no more.
        let info = unsafe {
            let mut info: bpf_btf_info = std::mem::zeroed();
            info.btf_size = length(data.len())?;
            info.btf = address_mut(&mut data);
            object_info(fd, std::ptr::from_mut(&mut info) as u64, size_of::<bpf_btf_info>())?;
            info
        };
        let size = info.btf_size as usize;
        if size <= data.len() {
            data.truncate(size);
            return Ok(data);
        }
        data = vec![0; size];
    }
}

/// What an id names.
#[derive(Clone, Copy)]
pub(crate) enum IdKind {
    Program,
    Map,
    Btf,
}

/// `BPF_{PROG,MAP,BTF}_GET_FD_BY_ID`.
pub(crate) fn open_id(kind: IdKind, id: u32) -> io::Result<OwnedFd> {
    let command = match kind {
        IdKind::Program => bpf_cmd::BPF_PROG_GET_FD_BY_ID,
        IdKind::Map => bpf_cmd::BPF_MAP_GET_FD_BY_ID,
        IdKind::Btf => bpf_cmd::BPF_BTF_GET_FD_BY_ID,
    };
    let mut attr = attributes();
    // SAFETY: no address is passed; all three ids are the same word of the union.
    unsafe {
        attr.__bindgen_anon_6.__bindgen_anon_1.prog_id = id;
        bpf_fd(command, &mut attr).map_err(crate::privilege::explain_look_up)
    }
}

/// `BPF_PROG_GET_NEXT_ID`: the id after `id`; `None` at the end.
pub(crate) fn next_program(id: u32) -> io::Result<Option<u32>> {
    let mut attr = attributes();
    // SAFETY: no address is passed, and the kernel writes into `attr` alone.
    let result = unsafe {
        attr.__bindgen_anon_6.__bindgen_anon_1.start_id = id;
        bpf(bpf_cmd::BPF_PROG_GET_NEXT_ID, &mut attr).map(|_| attr.__bindgen_anon_6.next_id)
    };
    match result {
        Ok(next) => Ok(Some(next)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(crate::privilege::explain_look_up(error)),
    }
}

/// `BPF_OBJ_PIN`: a name for a program, map or link in the bpf file system, which keeps it.
pub(crate) fn pin(fd: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    let mut attr = attributes();
    // SAFETY: the path is NUL-terminated and lives through the call.
    unsafe {
        attr.__bindgen_anon_4.pathname = path.as_ptr() as u64;
        attr.__bindgen_anon_4.bpf_fd = raw(fd);
        bpf(bpf_cmd::BPF_OBJ_PIN, &mut attr).map(drop)
    }
}

/// `BPF_OBJ_GET`: what is pinned there.
pub(crate) fn open_pin(path: &CStr) -> io::Result<OwnedFd> {
    let mut attr = attributes();
    // SAFETY: as in `pin`.
    unsafe {
        attr.__bindgen_anon_4.pathname = path.as_ptr() as u64;
        bpf_fd(bpf_cmd::BPF_OBJ_GET, &mut attr)
    }
}

/// `BPF_LINK_CREATE` of an extension (5.10): it takes the place of function `function` of `target`, as that one's
/// BTF numbers it, for as long as the link is there.
pub(crate) fn link_extension(
    extension: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    function: u32,
) -> io::Result<OwnedFd> {
    let mut attr = attributes();
    // SAFETY: no address is passed.
    unsafe {
        let link = &mut attr.link_create;
        link.__bindgen_anon_1.prog_fd = raw(extension);
        link.__bindgen_anon_2.target_fd = raw(target);
        link.__bindgen_anon_3.target_btf_id = function;
        bpf_fd(bpf_cmd::BPF_LINK_CREATE, &mut attr)
    }
}

/// Nanoseconds since the machine was switched on (`CLOCK_BOOTTIME`, by which the kernel notes when programs were
/// loaded).
pub(crate) fn since_boot() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call, which fills it.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The user whose rights this process has.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Lifts the limit of locked memory, which kernels before 5.11 charge maps and programs to. Without the
/// privilege nothing changes: newer kernels do not need it, and on older ones the load says so.
pub(crate) fn raise_memlock() {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure lives through the call, which only reads it.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const unlimited) };
}

/// A routing netlink socket of the calling thread's network namespace, with the kernel's error texts on.
pub(crate) fn route_socket() -> io::Result<OwnedFd> {
    // SAFETY: no address is passed.
    let fd =
        unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let on: libc::c_int = 1;
    for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
        // SAFETY: `on` lives through the call. A kernel without the option sends shorter answers, no more.
        unsafe {
            let value = std::ptr::from_ref(&on).cast();
            libc::setsockopt(
                fd,
                libc::SOL_NETLINK,
                option,
                value,
                size_of::<libc::c_int>() as libc::socklen_t,
            );
        }
    }
    // SAFETY: just made, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `struct ethtool_drvinfo` (linux/ethtool.h).
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// The name of an interface's driver (`ETHTOOL_GDRVINFO`), if it has one.
pub(crate) fn driver(interface: &str) -> Option<String> {
    const ETHTOOL_GDRVINFO: u32 = 3;
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    // SAFETY: no address is passed.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return None;
    }
    // SAFETY: just made, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    // SAFETY: all zero is a value of `ifreq`; `info` has the layout that the command writes and lives through it.
    let result = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (slot, byte) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(interface.bytes()) {
            *slot = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut info).cast();
        libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request)
    };
    let name: Vec<u8> = info.driver.iter().copied().take_while(|byte| *byte != 0).collect();
    (result == 0 && !name.is_empty()).then(|| String::from_utf8_lossy(&name).into_owned())
}

/// Moves the calling thread into a network namespace of its own, which ends with the thread.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: no address is passed; only this thread's view of the network changes.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
