//! Direct packet access: pointers into the linear part, compared with `data_end`.
//!
//! A pointer that failed a check is never used again: the next one is derived from the cursor anew (up to 6.18
//! the kernel's verifier draws wrong conclusions from arithmetic on such a pointer).

use pktc_bpf::{AluOp, Condition, Operand};
use pktc_ir::cursor::Place;
use pktc_ir::flow::{Arg, Value};

use super::{Check, Strategy};
use crate::function::Lowering;
use crate::vcode::{Terminator, VBlockId, VReg};

/// Offset of `data` in `struct xdp_md`.
pub(super) const DATA: i16 = 0;
/// Offset of `data_end` in `struct xdp_md`.
pub(super) const DATA_END: i16 = 4;
/// No position is beyond that: with what a header can add to it, it stays within what the verifier accepts of a
/// variable packet offset (0xffff).
pub(super) const FARTHEST: i32 = 0x7fff;

/// See the module's text.
pub(super) struct Direct;

impl Strategy for Direct {
    fn enter(&mut self, lowering: &mut Lowering<'_>, first: VBlockId) {
        let (cursor, limit) = (lowering.cursor, lowering.limit);
        lowering.load_context(cursor, DATA);
        lowering.load_context(limit, DATA_END);
        lowering.end(Terminator::Goto(first));
    }

    fn check(&mut self, lowering: &mut Lowering<'_>, check: Check) {
        compare_with_limit(lowering, check, check.short);
    }

    fn seek(&mut self, lowering: &mut Lowering<'_>, position: Value, check: Check) {
        let position = lowering.register(position);
        pin(lowering, position, check.short);
        compare_with_limit(lowering, check, check.short);
    }

    fn canon(&mut self, lowering: &mut Lowering<'_>, _: Place, ok: VBlockId, short: VBlockId) {
        pin_here(lowering, short);
        lowering.end(Terminator::Goto(ok));
    }

    fn alignment(&self, _: Place, _: u32) -> u32 {
        8
    }

    fn position(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        position(lowering, dst);
    }

    fn remaining(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        self.reachable(lowering, dst);
    }

    fn reachable(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let (left, right) = (lowering.limit, Operand::Reg(lowering.cursor));
        lowering.alu(AluOp::Sub, dst, left, right);
    }

    fn packet_length(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        linear_length(lowering, dst);
    }

    fn claims(&mut self, _: &mut Lowering<'_>, _: VReg) {}

    fn counted_length(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        linear_length(lowering, dst);
    }

    fn restarts(&self) -> bool {
        false
    }

    fn finish(&mut self, _: &mut Lowering<'_>) {}
}

/// `dst` = how long the linear part is.
pub(super) fn linear_length(lowering: &mut Lowering<'_>, dst: VReg) {
    let (data, end) = (lowering.fresh(), lowering.fresh());
    lowering.load_context(end, DATA_END);
    lowering.load_context(data, DATA);
    let right = Operand::Reg(data);
    lowering.alu(AluOp::Sub, dst, end, right);
}

/// Ends the block: goes to `check.ok` if the bytes lie below the limit, else to `short`.
pub(super) fn compare_with_limit(lowering: &mut Lowering<'_>, check: Check, short: VBlockId) {
    let mut from = lowering.cursor;
    if let Some(base) = check.base {
        bound(lowering, Arg::Value(base), short);
        let (pointer, right) = (lowering.pointer_behind(base), Operand::Reg(lowering.register(base)));
        lowering.alu(AluOp::Add, pointer, from, right);
        from = pointer;
    }
    bound(lowering, check.bytes, short);
    let (end, limit) = (lowering.fresh(), lowering.limit);
    let right = lowering.operand(check.bytes);
    lowering.alu(AluOp::Add, end, from, right);
    lowering.branch(Condition::Gt, end, Operand::Reg(limit), short, check.ok);
}

/// Goes on in a new block, in which `bytes` is at most [`FARTHEST`], if that is not certain.
fn bound(lowering: &mut Lowering<'_>, bytes: Arg, beyond: VBlockId) {
    if let Arg::Value(value) = bytes
        && lowering.most(bytes) > FARTHEST as u64
    {
        let register = lowering.register(value);
        lowering.must_be_at_most(register, FARTHEST, beyond);
    }
}

/// `dst` = the cursor's distance from the packet's start.
pub(super) fn position(lowering: &mut Lowering<'_>, dst: VReg) {
    let (data, cursor) = (lowering.fresh(), lowering.cursor);
    lowering.load_context(data, DATA);
    lowering.alu(AluOp::Sub, dst, cursor, Operand::Reg(data));
}

/// Pins the cursor down where it is; goes on in a new block.
pub(super) fn pin_here(lowering: &mut Lowering<'_>, beyond: VBlockId) {
    let distance = lowering.fresh();
    position(lowering, distance);
    pin(lowering, distance, beyond);
}

/// Sets the cursor to `distance` behind the packet's start; goes on in a new block.
pub(super) fn pin(lowering: &mut Lowering<'_>, distance: VReg, beyond: VBlockId) {
    lowering.must_be_at_most(distance, FARTHEST, beyond);
    // Where it was spilled before, a verifier need not connect it with what the test found out (5.10 and 6.1 do not).
    let bounded = lowering.fresh();
    lowering.mask(bounded, distance, FARTHEST as u64);
    // Loaded again rather than kept: registers are scarce here.
    let (data, cursor) = (lowering.fresh(), lowering.cursor);
    lowering.load_context(data, DATA);
    lowering.alu(AluOp::Add, cursor, data, Operand::Reg(bounded));
}
