//! How packet bytes are reached.
//!
//! All strategies keep two registers: `cursor`, a pointer to the current header, and `limit`, one past the last
//! byte that it may reach; every check compares the two.

mod direct;

use pktc_ir::flow::{Arg, Value};

use crate::function::Lowering;
use crate::vcode::{VBlockId, VReg};

/// How packet bytes are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Through `data` and `data_end`; sees the linear part only.
    #[default]
    Direct,
}

impl Access {
    /// All strategies.
    pub const ALL: [Access; 1] = [Access::Direct];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Access::Direct => "direct",
        }
    }

    /// At the program's entry: sets cursor and limit to the packet's start and end.
    pub(crate) fn enter(self, lowering: &mut Lowering<'_>) {
        match self {
            Access::Direct => direct::enter(lowering),
        }
    }

    /// Ends the block: whether `bytes` from the cursor (or from `base` behind it) on exist.
    pub(crate) fn check(
        self,
        lowering: &mut Lowering<'_>,
        base: Option<Value>,
        bytes: Arg,
        ok: VBlockId,
        short: VBlockId,
    ) {
        match self {
            Access::Direct => direct::check(lowering, base, bytes, ok, short),
        }
    }

    /// Ends the block: moves the cursor to `position` behind the packet's start, and checks there.
    pub(crate) fn seek(
        self,
        lowering: &mut Lowering<'_>,
        position: Value,
        bytes: Arg,
        ok: VBlockId,
        short: VBlockId,
    ) {
        match self {
            Access::Direct => direct::seek(lowering, position, bytes, ok, short),
        }
    }

    /// Ends the block: makes one state for the verifier of all ways that lead here.
    pub(crate) fn canon(self, lowering: &mut Lowering<'_>, ok: VBlockId, short: VBlockId) {
        match self {
            Access::Direct => direct::canon(lowering, ok, short),
        }
    }

    /// `dst` = the cursor's distance from the packet's start.
    pub(crate) fn position(self, lowering: &mut Lowering<'_>, dst: VReg) {
        match self {
            Access::Direct => direct::position(lowering, dst),
        }
    }

    /// `dst` = how many bytes there are from the cursor on.
    pub(crate) fn remaining(self, lowering: &mut Lowering<'_>, dst: VReg) {
        match self {
            Access::Direct => direct::remaining(lowering, dst),
        }
    }

    /// `dst` = how many bytes there are from the cursor on at least, without a call.
    pub(crate) fn reachable(self, lowering: &mut Lowering<'_>, dst: VReg) {
        match self {
            Access::Direct => direct::remaining(lowering, dst),
        }
    }

    /// `dst` = the packet's length.
    pub(crate) fn packet_length(self, lowering: &mut Lowering<'_>, dst: VReg) {
        match self {
            Access::Direct => direct::packet_length(lowering, dst),
        }
    }
}
