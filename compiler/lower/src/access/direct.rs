//! Direct packet access: pointers into the linear part, compared with `data_end`.
//!
//! A pointer that failed a check is never used again: the next one is derived from the cursor anew (up to 6.18
//! the kernel's verifier draws wrong conclusions from arithmetic on such a pointer).

use pktc_bpf::{AluOp, Condition, Operand, Size, Width};
use pktc_ir::flow::{Arg, Value};

use crate::function::Lowering;
use crate::vcode::{Base, Terminator, VBlockId, VInsn, VReg};

/// Offset of `data` in `struct xdp_md`.
const DATA: i16 = 0;
/// Offset of `data_end` in `struct xdp_md`.
const DATA_END: i16 = 4;
/// No position is beyond that: with what a header can add to it, it stays within what the verifier accepts of a
/// variable packet offset (0xffff).
const FARTHEST: i32 = 0x7fff;

pub(super) fn enter(lowering: &mut Lowering<'_>) {
    let (cursor, limit) = (lowering.cursor, lowering.limit);
    load_context(lowering, cursor, DATA);
    load_context(lowering, limit, DATA_END);
}

pub(super) fn check(
    lowering: &mut Lowering<'_>,
    base: Option<Value>,
    bytes: Arg,
    ok: VBlockId,
    short: VBlockId,
) {
    let mut from = lowering.cursor;
    if let Some(base) = base {
        let (pointer, right) = (lowering.pointer_behind(base), Operand::Reg(lowering.register(base)));
        lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst: pointer, left: from, right });
        from = pointer;
    }
    check_from(lowering, from, bytes, ok, short);
}

fn check_from(lowering: &mut Lowering<'_>, from: VReg, bytes: Arg, ok: VBlockId, short: VBlockId) {
    let end = lowering.fresh();
    let right = lowering.operand(bytes);
    lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst: end, left: from, right });
    let right = Operand::Reg(lowering.limit);
    lowering.end(Terminator::Branch {
        condition: Condition::Gt,
        width: Width::W64,
        left: end,
        right,
        taken: short,
        fallthrough: ok,
    });
}

pub(super) fn seek(lowering: &mut Lowering<'_>, position: Value, bytes: Arg, ok: VBlockId, short: VBlockId) {
    let position = lowering.register(position);
    let near = bound(lowering, position, short);
    lowering.switch_to(near);
    let (data, cursor) = (lowering.fresh(), lowering.cursor);
    load_context(lowering, data, DATA);
    let right = Operand::Reg(position);
    lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst: cursor, left: data, right });
    check_from(lowering, cursor, bytes, ok, short);
}

pub(super) fn canon(lowering: &mut Lowering<'_>, ok: VBlockId, short: VBlockId) {
    let (data, distance, cursor) = (lowering.fresh(), lowering.fresh(), lowering.cursor);
    load_context(lowering, data, DATA);
    let right = Operand::Reg(data);
    lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst: distance, left: cursor, right });
    let near = bound(lowering, distance, short);
    lowering.switch_to(near);
    let right = Operand::Reg(distance);
    lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst: cursor, left: data, right });
    lowering.end(Terminator::Goto(ok));
}

/// Ends the block; in the one returned, `distance` is at most [`FARTHEST`].
fn bound(lowering: &mut Lowering<'_>, distance: VReg, beyond: VBlockId) -> VBlockId {
    let near = lowering.new_block();
    lowering.end(Terminator::Branch {
        condition: Condition::Gt,
        width: Width::W64,
        left: distance,
        right: Operand::Imm(FARTHEST),
        taken: beyond,
        fallthrough: near,
    });
    near
}

pub(super) fn position(lowering: &mut Lowering<'_>, dst: VReg) {
    let data = lowering.fresh();
    load_context(lowering, data, DATA);
    let (left, right) = (lowering.cursor, Operand::Reg(data));
    lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst, left, right });
}

pub(super) fn remaining(lowering: &mut Lowering<'_>, dst: VReg) {
    let (left, right) = (lowering.limit, Operand::Reg(lowering.cursor));
    lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst, left, right });
}

pub(super) fn packet_length(lowering: &mut Lowering<'_>, dst: VReg) {
    let (data, end) = (lowering.fresh(), lowering.fresh());
    load_context(lowering, end, DATA_END);
    load_context(lowering, data, DATA);
    let right = Operand::Reg(data);
    lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst, left: end, right });
}

fn load_context(lowering: &mut Lowering<'_>, dst: VReg, offset: i16) {
    let base = Base::Reg(lowering.context);
    lowering.push(VInsn::Load { size: Size::U32, dst, base, offset });
}
