//! What a program may not do, and what keeps one from being loaded.

use std::fmt;

use pktc_bpf::{DecodeError, Helper};

/// The place and kind of what a program did that it may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The 8-byte slot of the instruction, counted from the start of the program.
    pub slot: usize,
    /// The instruction as text.
    pub insn: String,
    /// What it did.
    pub problem: Problem,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}` {}", self.slot, self.insn, self.problem)
    }
}

impl std::error::Error for Fault {}

/// What a program did that it may not. Nearly all of it the kernel's verifier would have refused at load time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Read a register that nothing has written, or that a call has clobbered.
    UnsetRegister,
    /// Wrote r10.
    FramePointerWritten,
    /// Used a number as an address.
    NotAPointer,
    /// Used a pointer that is no address of memory, such as a map or `data_end`.
    NotMemory,
    /// Did arithmetic on a pointer other than adding and subtracting numbers in 64 bits, or on `data_end` or a map.
    PointerArithmetic,
    /// Subtracted pointers into different regions.
    UnrelatedPointers,
    /// Touched packet bytes that no passed comparison with `data_end` covers.
    PacketUnchecked {
        /// First byte touched, from `data`.
        from: i64,
        /// Behind the last byte touched.
        to: i64,
        /// How many bytes comparisons have covered.
        checked: usize,
    },
    /// Touched bytes outside of a region.
    OutOfBounds {
        /// `stack`, or a map's name.
        region: String,
        /// First byte touched; on the stack, from the frame pointer.
        from: i64,
        /// How many bytes.
        len: u64,
    },
    /// A stack access or an atomic operation that is not aligned to its size.
    Misaligned,
    /// Read stack bytes that nothing has written.
    UnwrittenStack,
    /// Read a part of a pointer that was stored on the stack.
    PartOfPointer,
    /// Stored a pointer elsewhere than whole on the stack.
    PointerStored,
    /// Wrote into a read-only map.
    ReadOnly,
    /// Used the context for other than a 4-byte load of a field that XDP programs may read.
    Context,
    /// An atomic operation on packet bytes.
    AtomicOnPacket,
    /// Ran more instructions than [`super::BUDGET`].
    Budget,
    /// Called deeper than [`super::FRAMES`] frames.
    CallDepth,
    /// Ran past the last instruction.
    PastEnd,
    /// Called a subprogram of a module, which is not linked to it.
    NotLinked,
    /// Called a helper that this engine does not have.
    UnknownHelper(u32),
    /// Gave a helper an argument that it does not take.
    Argument {
        /// The helper.
        helper: Helper,
        /// Which, from 1.
        argument: usize,
        /// What it takes.
        wanted: &'static str,
    },
    /// Returned a pointer from the program, or one into its own frame from a subprogram.
    PointerReturned,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Problem::PacketUnchecked { from, to, checked } => {
                return write!(
                    f,
                    "touches packet bytes {from} to {to}, but only {checked} were compared with data_end"
                );
            }
            Problem::OutOfBounds { region, from, len } => {
                return write!(f, "touches {len} bytes of {region} from {from} on, which is outside of it");
            }
            Problem::UnknownHelper(number) => {
                return write!(f, "calls helper {number}, which the userspace engine does not have");
            }
            Problem::Argument { helper, argument, wanted } => {
                return write!(
                    f,
                    "gives {} as argument {argument} something else than {wanted}",
                    helper.name()
                );
            }
            Problem::Budget => return write!(f, "goes on after {} instructions", super::BUDGET),
            Problem::CallDepth => return write!(f, "calls deeper than {} frames", super::FRAMES),
            Problem::NotLinked => "calls a subprogram that is not linked to the program",
            Problem::UnsetRegister => "reads a register that nothing has written",
            Problem::FramePointerWritten => "writes r10, which is read only",
            Problem::NotAPointer => "uses a number as an address",
            Problem::NotMemory => "uses a pointer that is no address of memory",
            Problem::PointerArithmetic => "does arithmetic that is prohibited on this pointer",
            Problem::UnrelatedPointers => "subtracts pointers into different regions",
            Problem::Misaligned => "is not aligned to its size",
            Problem::UnwrittenStack => "reads stack bytes that nothing has written",
            Problem::PartOfPointer => "reads a part of a pointer that was stored on the stack",
            Problem::PointerStored => "stores a pointer elsewhere than whole on the stack",
            Problem::ReadOnly => "writes into a read-only map",
            Problem::Context => "uses the context for other than a 4-byte load of a readable field",
            Problem::AtomicOnPacket => "is an atomic operation on packet bytes",
            Problem::PastEnd => "is behind the last instruction",
            Problem::PointerReturned => "returns a pointer",
        };
        f.write_str(text)
    }
}

/// Why an object cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmError {
    /// It is no BPF object, or one that the parser does not take; the parser's words.
    Object(String),
    /// It is big-endian.
    BigEndian,
    /// It has no program of that name.
    NoProgram {
        /// The name.
        wanted: String,
        /// The names of those that it has.
        present: Vec<String>,
    },
    /// It needs relocation against a running kernel's types (CO-RE).
    KernelTypes,
    /// An instruction is none.
    Decode(DecodeError),
    /// A jump or call from that slot leads nowhere.
    Target {
        /// The slot.
        slot: usize,
    },
    /// The instruction in that slot refers to a map that is not there.
    NoMap {
        /// The slot.
        slot: usize,
    },
    /// A map that this engine does not have.
    Map {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl fmt::Display for VmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VmError::Object(reason) => write!(f, "the object cannot be read: {reason}"),
            VmError::BigEndian => f.write_str("the object is big-endian; build it with `-target bpfel`"),
            VmError::NoProgram { wanted, present } => {
                write!(f, "the object has no program `{wanted}`; it has {}", present.join(", "))
            }
            VmError::KernelTypes => {
                f.write_str("the object needs a kernel's types (CO-RE), which the userspace engine lacks")
            }
            VmError::Decode(error) => error.fmt(f),
            VmError::Target { slot } => write!(f, "the jump or call in slot {slot} leads to no instruction"),
            VmError::NoMap { slot } => write!(f, "the map of the instruction in slot {slot} is missing"),
            VmError::Map { name, reason } => write!(f, "map `{name}`: {reason}"),
        }
    }
}

impl std::error::Error for VmError {}
