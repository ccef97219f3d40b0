//! Running a loaded program on a packet without any device (`BPF_PROG_TEST_RUN`).

use std::fmt;
use std::io;
use std::os::fd::AsFd as _;

use crate::load::{LoadedProgram, load_smallest};
use crate::{privilege, sys};

/// The shortest packet that the kernel takes: an Ethernet header.
pub const SHORTEST: usize = 14;

/// Bytes that a program may make a packet longer by (`bpf_xdp_adjust_head`, `bpf_xdp_adjust_tail`).
const GROWTH: usize = 4096;

/// What the kernel answers to a packet, device, queue or linear length that it does not take; kernels before 5.18
/// say `EMSGSIZE` of a packet that is longer than one buffer.
const REFUSALS: [i32; 4] = [libc::EINVAL, libc::ENOMEM, libc::ENODEV, libc::EMSGSIZE];

/// What surrounds the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestRun {
    /// Bytes in the linear part, the rest in fragments (6.18, and stable kernels with the change); `None`: as
    /// many as fit.
    pub linear: Option<usize>,
    /// Device that it comes in by, in the caller's network namespace; 0: none, which programs see as `lo`.
    pub ifindex: u32,
    /// Receive queue of that device.
    pub queue: u32,
    /// How often; 0 counts as 1.
    pub repeat: u32,
}

/// What became of the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRunResult {
    /// What the program returned, `XDP_…`.
    pub verdict: u32,
    /// The packet afterwards.
    pub packet: Vec<u8>,
    /// Nanoseconds a run, the mean of all repetitions.
    pub duration: u32,
}

/// Why a packet was not run.
#[derive(Debug)]
pub enum TestRunError {
    /// The kernel takes no packets shorter than [`SHORTEST`].
    TooShort(usize),
    /// The linear part was to be longer than the packet.
    LinearTooLong,
    /// The kernel does not take this packet or what surrounds it.
    Refused(io::Error),
    /// What else the kernel said.
    System(io::Error),
}

impl fmt::Display for TestRunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TestRunError::TooShort(length) => {
                write!(f, "the kernel runs no packet shorter than {SHORTEST} bytes; this one has {length}")
            }
            TestRunError::LinearTooLong => f.write_str("the linear part is longer than the packet"),
            TestRunError::Refused(error) => {
                write!(f, "the kernel does not take this packet, linear length, device or queue ({error})")
            }
            TestRunError::System(error) if error.raw_os_error() == Some(libc::EPERM) => {
                write!(f, "running a program: {error}; {}", privilege::advice(&privilege::missing()))
            }
            TestRunError::System(error) => write!(f, "running a program: {error}"),
        }
    }
}

impl std::error::Error for TestRunError {}

/// Runs `program` on `packet`.
///
/// # Errors
/// See [`TestRunError`].
pub fn test_run(
    program: &LoadedProgram,
    packet: &[u8],
    run: &TestRun,
) -> Result<TestRunResult, TestRunError> {
    if packet.len() < SHORTEST {
        return Err(TestRunError::TooShort(packet.len()));
    }
    let context = context(packet.len(), run)?;
    let room = packet.len() + GROWTH;
    match sys::test_run(program.as_fd(), packet, context, run.repeat.max(1), room) {
        Ok(output) => {
            Ok(TestRunResult { verdict: output.verdict, packet: output.packet, duration: output.duration })
        }
        Err(error) if matches!(error.raw_os_error(), Some(errno) if REFUSALS.contains(&errno)) => {
            Err(TestRunError::Refused(error))
        }
        Err(error) => Err(TestRunError::System(error)),
    }
}

/// A `struct xdp_md`, if the default one does not do: data, data_end, data_meta, ingress_ifindex, rx_queue_index,
/// egress_ifindex.
fn context(length: usize, run: &TestRun) -> Result<Option<[u32; 6]>, TestRunError> {
    if run.linear.is_none() && run.ifindex == 0 && run.queue == 0 {
        return Ok(None);
    }
    let linear = run.linear.unwrap_or(length);
    if linear > length {
        return Err(TestRunError::LinearTooLong);
    }
    let end = u32::try_from(linear).map_err(|_| TestRunError::LinearTooLong)?;
    Ok(Some([0, end, 0, run.ifindex, run.queue, 0]))
}

/// Whether programs can be loaded and run here.
///
/// # Errors
/// Why not.
pub fn probe() -> Result<(), String> {
    sys::raise_memlock();
    let result = load_smallest(0).and_then(|fd| sys::test_run(fd.as_fd(), &[0; SHORTEST], None, 1, SHORTEST));
    match result {
        Ok(_) => sys::possible_cpus().map(drop).map_err(|error| error.to_string()),
        Err(error) => {
            let missing = privilege::missing();
            let advice =
                if missing.is_empty() { String::new() } else { format!("; {}", privilege::advice(&missing)) };
            Err(format!("the kernel runs no BPF programs here: {error}{advice}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_only_where_needed() {
        let plain = TestRun::default();
        assert_eq!(context(60, &plain).unwrap(), None);
        let short = TestRun { linear: Some(20), ..plain };
        assert_eq!(context(60, &short).unwrap(), Some([0, 20, 0, 0, 0, 0]));
        let device = TestRun { ifindex: 7, queue: 1, ..plain };
        assert_eq!(context(60, &device).unwrap(), Some([0, 60, 0, 7, 1, 0]));
        assert!(matches!(
            context(60, &TestRun { linear: Some(61), ..plain }),
            Err(TestRunError::LinearTooLong)
        ));
    }
}
