//! How packet bytes are reached.
//!
//! Every strategy keeps two registers: `cursor`, a pointer to the current header, and `limit`, one past the last
//! byte that it may reach; a check compares the two. [`Strategy`] is all that a new one has to bring.

mod direct;
mod refill;
mod window;

use pktc_diagnostics::Span;
use pktc_ir::cursor::Place;
use pktc_ir::flow::{Arg, Value};

use crate::function::Lowering;
use crate::vcode::{VBlockId, VFunction, VReg};

pub(crate) use window::pieces;

/// How packet bytes are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Through `data` and `data_end`; sees the linear part only.
    #[default]
    Direct,
    /// Through `bpf_xdp_load_bytes` into a window on the stack; sees all buffers (5.18).
    Bytes,
    /// Through `data` and `data_end` while the headers lie in the linear part, else through a window, in one body
    /// (5.18).
    Auto,
}

impl Access {
    /// All strategies.
    pub const ALL: [Access; 3] = [Access::Direct, Access::Bytes, Access::Auto];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Access::Direct => "direct",
            Access::Bytes => "bytes",
            Access::Auto => "auto",
        }
    }

    /// Whether its programs take packets in several buffers (`xdp.frags`).
    #[must_use]
    pub fn frags(self) -> bool {
        match self {
            Access::Direct => false,
            Access::Bytes | Access::Auto => true,
        }
    }

    /// How far from where it was pinned down last the cursor may go, in bytes.
    #[must_use]
    pub fn reach(self) -> u64 {
        match self {
            Access::Direct => direct::FARTHEST as u64,
            Access::Bytes | Access::Auto => u64::from(window::BYTES),
        }
    }

    /// Bytes of stack that it takes.
    pub(crate) fn frame(self) -> u32 {
        match self {
            Access::Direct => 0,
            Access::Bytes | Access::Auto => window::FRAME,
        }
    }

    /// What its programs may call.
    pub(crate) fn subprogram(self, span: Span) -> Option<VFunction> {
        match self {
            Access::Direct => None,
            Access::Bytes | Access::Auto => Some(refill::function(window::BYTES, span)),
        }
    }

    pub(crate) fn strategy(self) -> Box<dyn Strategy> {
        match self {
            Access::Direct => Box::new(direct::Direct),
            Access::Bytes => Box::new(window::Window::new(window::Start::Window)),
            Access::Auto => Box::new(window::Window::new(window::Start::Packet)),
        }
    }
}

/// What is asked of a cursor's surroundings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// From so many bytes behind the cursor on.
    pub(crate) base: Option<Value>,
    /// So many bytes.
    pub(crate) bytes: Arg,
    /// Where they exist.
    pub(crate) ok: VBlockId,
    /// Where they do not.
    pub(crate) short: VBlockId,
}

/// One way to reach packet bytes. Methods that *end the block* leave no current block.
pub(crate) trait Strategy {
    /// At the program's entry: sets cursor and limit to the packet's start and end, and ends the block.
    fn enter(&mut self, lowering: &mut Lowering<'_>, first: VBlockId);

    /// Ends the block: whether the bytes exist.
    fn check(&mut self, lowering: &mut Lowering<'_>, check: Check);

    /// Ends the block: moves the cursor to `position` behind the packet's start, and checks there.
    fn seek(&mut self, lowering: &mut Lowering<'_>, position: Value, check: Check);

    /// Ends the block: pins the cursor down, which makes one state for the verifier of all ways that lead here.
    fn canon(&mut self, lowering: &mut Lowering<'_>, place: Place, ok: VBlockId, short: VBlockId);

    /// How aligned reads must be: by the cursor's place and the offset, in bytes.
    fn alignment(&self, place: Place, offset: u32) -> u32;

    /// `dst` = the cursor's distance from the packet's start.
    fn position(&mut self, lowering: &mut Lowering<'_>, dst: VReg);

    /// `dst` = how many bytes there are from the cursor on.
    fn remaining(&mut self, lowering: &mut Lowering<'_>, dst: VReg);

    /// `dst` = how many bytes there are from the cursor on at least, without a call.
    fn reachable(&mut self, lowering: &mut Lowering<'_>, dst: VReg);

    /// `dst` = the packet's length.
    fn packet_length(&mut self, lowering: &mut Lowering<'_>, dst: VReg);

    /// The packet's outermost header with a length says that `content` bytes from the cursor on are the packet's; may
    /// go on in a block of its own.
    fn claims(&mut self, lowering: &mut Lowering<'_>, content: VReg);

    /// `dst` = the packet's length for counters, where it was told what the packet claims; may go on in a block of its
    /// own.
    fn counted_length(&mut self, lowering: &mut Lowering<'_>, dst: VReg);

    /// Whether what was done may be done again: then effects must be done once only.
    fn restarts(&self) -> bool;

    /// Behind all blocks: what they share out of line.
    fn finish(&mut self, lowering: &mut Lowering<'_>);
}
