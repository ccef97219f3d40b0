//! Packets in several buffers: one body over two kinds of pointers.
//!
//! The body is the same as with direct access. It starts on packet pointers (`auto`) or on a window on the stack
//! that was filled with as much of the linear part as it takes (`bytes`). A check that fails may mean two things:
//! the packet ended, or only what the pointers reach. It goes to the **restart**, which all checks share: that asks
//! for the packet's length, fills the window from the packet's start, sets the mode to final, and begins the body
//! anew, now on the window. (What a header says of lengths is asked before, so only packets that lie about theirs come
//! there in vain.) In final mode a failed check is final, or, where more is asked for than the window holds, the
//! packet's length decides. Where the cursor could leave the window, the flow pins it down before (`bound_reach`), and
//! the window is **refilled** from the cursor's place on, by a subprogram ([`super::refill`]).
//!
//! Conditions are pure, so the second run takes the same way as the first; effects that the first one has done are
//! counted and skipped ([`Lowering::effect`]).
//!
//! The window lies at 2 modulo 8, so that what follows an Ethernet header is aligned (stack accesses must be); reads
//! are split by what is known of the cursor's place. A refill puts the cursor's byte where it has the same
//! remainder modulo 4.
//!
//! | word of the frame | holds |
//! |---|---|
//! | `TOTAL` | 0 at first: what fails may be out of reach only. In final mode the packet's length times 2, and 1 |
//! | `ORIGIN` | on the window, where the packet's first byte is or would be: `cursor - origin` is the position |

use pktc_bpf::{AluOp, Condition, Helper, Operand, Size};
use pktc_ir::cursor::Place;
use pktc_ir::flow::{Arg, Value};

use super::direct::{self, DATA, DATA_END, FARTHEST};
use super::{Check, Strategy, refill};
use crate::function::Lowering;
use crate::vcode::{Callee, Terminator, VBlockId, VInsn, VReg};

/// Bytes of the window: an Ethernet header, four tags, and the longest IPv4 and TCP headers are 150.
pub(crate) const BYTES: u32 = 208;
const TOTAL: i16 = -(crate::maps::FRAME as i16) - 8;
const ORIGIN: i16 = TOTAL - 8;
/// Where the packet's start lies in the frame.
const START: i16 = ORIGIN - BYTES as i16 - 6;
/// Where a refilled window starts, less the remainder of the cursor's place (0 to 3, counted as at [`START`]).
const REFILL: i16 = START - 2;
/// Bytes of frame that the window and the words take.
pub(crate) const FRAME: u32 = BYTES + 8 + 16;

/// What the body starts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The linear part.
    Packet,
    /// The window.
    Window,
}

/// See the module's text.
pub(super) struct Window {
    start: Start,
    first: Option<VBlockId>,
    /// Where checks go on that failed for good, with where they go first.
    failed: Vec<(VBlockId, VBlockId)>,
    restart: Option<VBlockId>,
}

impl Window {
    pub(super) fn new(start: Start) -> Self {
        Window { start, first: None, failed: Vec::new(), restart: None }
    }

    fn restart(&mut self, lowering: &mut Lowering<'_>) -> VBlockId {
        *self.restart.get_or_insert_with(|| lowering.new_cold_block())
    }

    /// Where a check goes that failed: at first to the restart, in final mode to `short`.
    fn failed(&mut self, lowering: &mut Lowering<'_>, short: VBlockId) -> VBlockId {
        if let Some(&(_, known)) = self.failed.iter().find(|(known, _)| *known == short) {
            return known;
        }
        let restart = self.restart(lowering);
        let failed = lowering.aside(|lowering| if_final(lowering, short, restart));
        self.failed.push((short, failed));
        failed
    }

    /// Where a check goes that failed and asks for more than the window may hold: at first to the restart, in final mode
    /// to whether so many bytes are left of the packet.
    fn failed_in_window(&mut self, lowering: &mut Lowering<'_>, check: Check) -> VBlockId {
        let restart = self.restart(lowering);
        lowering.aside(|lowering| {
            let last = lowering.new_cold_block();
            if_final(lowering, last, restart);
            lowering.switch_to(last);
            self.compare_with_total(lowering, check);
        })
    }

    /// Ends the block: whether so many bytes are left of the packet, whatever the window holds. In final mode only.
    fn compare_with_total(&mut self, lowering: &mut Lowering<'_>, check: Check) {
        let (remaining, total) = (lowering.fresh(), total(lowering));
        position_in_window(lowering, remaining);
        lowering.alu(AluOp::Sub, remaining, total, Operand::Reg(remaining));
        if let Some(base) = check.base {
            let right = Operand::Reg(lowering.register(base));
            lowering.alu(AluOp::Sub, remaining, remaining, right);
        }
        let right = lowering.operand(check.bytes);
        lowering.branch(Condition::Slt, remaining, right, check.short, check.ok);
    }

    /// Ends the block: moves the cursor on the linear part, where the body is on that, else by refilling the window.
    fn by_mode(
        &self,
        lowering: &mut Lowering<'_>,
        ok: VBlockId,
        on_packet: impl FnOnce(&mut Lowering<'_>),
        on_window: impl FnOnce(&mut Lowering<'_>),
    ) {
        let (reaching, last) = (lowering.new_block(), lowering.new_cold_block());
        if_final(lowering, last, reaching);
        lowering.switch_to(reaching);
        match self.start {
            Start::Packet => {
                on_packet(lowering);
                lowering.end(Terminator::Goto(ok));
            }
            Start::Window => {
                settle(lowering);
                lowering.end(Terminator::Goto(last));
            }
        }
        lowering.switch_to(last);
        on_window(lowering);
        lowering.end(Terminator::Goto(ok));
    }
}

impl Strategy for Window {
    fn enter(&mut self, lowering: &mut Lowering<'_>, first: VBlockId) {
        self.first = Some(first);
        let none = lowering.fresh();
        lowering.mov(none, Operand::Imm(0));
        lowering.store_word(TOTAL, none);
        match self.start {
            Start::Packet => enter_packet(lowering),
            Start::Window => enter_window(lowering),
        }
        lowering.end(Terminator::Goto(first));
    }

    fn check(&mut self, lowering: &mut Lowering<'_>, check: Check) {
        let base = check.base.map_or(0, |base| lowering.most(Arg::Value(base)));
        let within = lowering.most(check.bytes).saturating_add(base) <= u64::from(BYTES);
        let failed = match within {
            true => self.failed(lowering, check.short),
            false => self.failed_in_window(lowering, check),
        };
        direct::compare_with_limit(lowering, check, failed);
    }

    fn seek(&mut self, lowering: &mut Lowering<'_>, position: Value, check: Check) {
        let (position, there) = (lowering.register(position), lowering.new_block());
        let place = Place { farthest: 0, modulus: 1, remainder: 0 };
        self.by_mode(
            lowering,
            there,
            |lowering| direct::pin(lowering, position, check.short),
            |lowering| go_to_window(lowering, position, place, check.short),
        );
        lowering.switch_to(there);
        self.check(lowering, check);
    }

    fn canon(&mut self, lowering: &mut Lowering<'_>, place: Place, ok: VBlockId, short: VBlockId) {
        self.by_mode(
            lowering,
            ok,
            |lowering| direct::pin_here(lowering, short),
            |lowering| {
                let position = lowering.fresh();
                position_in_window(lowering, position);
                go_to_window(lowering, position, place, short);
            },
        );
    }

    fn alignment(&self, place: Place, offset: u32) -> u32 {
        let at = (place.remainder + offset + 2) % place.modulus;
        // The lowest bit that is set divides both.
        if at == 0 { place.modulus } else { 1 << at.trailing_zeros() }
    }

    fn position(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        match self.start {
            Start::Packet => {
                let behind = lowering.new_block();
                self.by_mode(
                    lowering,
                    behind,
                    |lowering| direct::position(lowering, dst),
                    |lowering| position_in_window(lowering, dst),
                );
                lowering.switch_to(behind);
            }
            Start::Window => position_in_window(lowering, dst),
        }
    }

    fn remaining(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let (total, position) = (lowering.fresh(), lowering.fresh());
        self.packet_length(lowering, total);
        self.position(lowering, position);
        let right = Operand::Reg(position);
        lowering.alu(AluOp::Sub, dst, total, right);
    }

    fn reachable(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let (left, right) = (lowering.limit, Operand::Reg(lowering.cursor));
        lowering.alu(AluOp::Sub, dst, left, right);
    }

    fn packet_length(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let args = vec![lowering.context];
        let callee = Callee::Helper(Helper::XdpGetBuffLen);
        lowering.push(VInsn::Call { callee, dst, args });
    }

    /// What goes on beyond the linear part begins anew: then its length is known.
    fn claims(&mut self, lowering: &mut Lowering<'_>, content: VReg) {
        let (within, linear) = (lowering.new_block(), lowering.fresh());
        let beyond = self.failed(lowering, within);
        match self.start {
            Start::Packet => self.reachable(lowering, linear),
            Start::Window => {
                let position = lowering.fresh();
                direct::linear_length(lowering, linear);
                self.position(lowering, position);
                let right = Operand::Reg(position);
                lowering.alu(AluOp::Sub, linear, linear, right);
            }
        }
        lowering.branch(Condition::Sgt, content, Operand::Reg(linear), beyond, within);
        lowering.switch_to(within);
    }

    fn counted_length(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let (linear, known, behind) = (lowering.new_block(), lowering.new_cold_block(), lowering.new_block());
        if_final(lowering, known, linear);
        lowering.switch_to(known);
        let total = total(lowering);
        lowering.mov(dst, Operand::Reg(total));
        lowering.end(Terminator::Goto(behind));
        lowering.switch_to(linear);
        direct::linear_length(lowering, dst);
        lowering.end(Terminator::Goto(behind));
        lowering.switch_to(behind);
    }

    fn restarts(&self) -> bool {
        true
    }

    fn finish(&mut self, lowering: &mut Lowering<'_>) {
        if let (Some(restart), Some(first)) = (self.restart, self.first) {
            emit_restart(lowering, restart, first);
        }
    }
}

/// Ends the block: goes on by the mode. The verifier knows it, whichever it is, and follows one way.
fn if_final(lowering: &mut Lowering<'_>, last: VBlockId, first: VBlockId) {
    let total = lowering.load_word(TOTAL);
    lowering.branch(Condition::Gt, total, Operand::Imm(0), last, first);
}

fn enter_packet(lowering: &mut Lowering<'_>) {
    let (cursor, limit) = (lowering.cursor, lowering.limit);
    lowering.load_context(cursor, DATA);
    lowering.load_context(limit, DATA_END);
}

/// The first load takes what the linear part holds, so that nothing has to be asked.
fn enter_window(lowering: &mut Lowering<'_>) {
    let (length, count, zero) = (lowering.fresh(), lowering.fresh(), lowering.fresh());
    let (cut, some, load) = (lowering.new_cold_block(), lowering.new_block(), lowering.new_block());
    let (empty, loaded, filled) = (lowering.new_cold_block(), lowering.new_block(), lowering.new_block());
    let (cursor, limit) = (lowering.cursor, lowering.limit);
    lowering.push(VInsn::FrameAddress { dst: cursor, offset: START });
    lowering.store_word(ORIGIN, cursor);
    direct::linear_length(lowering, length);
    // Not linked to `length`: whether it was cut must not show in what follows.
    lowering.alu(AluOp::Or, count, length, Operand::Imm(0));
    lowering.branch(Condition::Sgt, count, Operand::Imm(BYTES as i32), cut, some);
    lowering.switch_to(cut);
    lowering.mov(count, Operand::Imm(BYTES as i32));
    lowering.end(Terminator::Goto(load));
    lowering.switch_to(some);
    lowering.branch(Condition::Slt, count, Operand::Imm(1), empty, load);
    lowering.switch_to(load);
    lowering.mov(zero, Operand::Imm(0));
    let args = vec![lowering.context, zero, cursor, count];
    let error = lowering.call(Callee::Helper(Helper::XdpLoadBytes), args);
    lowering.branch(Condition::Ne, error, Operand::Imm(0), empty, loaded);
    lowering.switch_to(loaded);
    let count = refill::forget_count(lowering, count);
    lowering.alu(AluOp::Add, limit, cursor, Operand::Reg(count));
    lowering.end(Terminator::Goto(filled));
    // What cannot be loaded is asked for again by the first check.
    lowering.switch_to(empty);
    lowering.mov(limit, Operand::Reg(cursor));
    lowering.end(Terminator::Goto(filled));
    lowering.switch_to(filled);
}

/// Sets cursor and limit to a window at `offset` of the frame, filled from byte `position` of the packet on.
fn refill_window(lowering: &mut Lowering<'_>, position: VReg, offset: i16) {
    let (context, cursor, limit) = (lowering.context, lowering.cursor, lowering.limit);
    lowering.push(VInsn::FrameAddress { dst: cursor, offset });
    let count = refill::call(lowering, context, position, cursor);
    lowering.alu(AluOp::Add, limit, cursor, Operand::Reg(count));
}

/// Where checks that failed at first meet: begins anew on the window.
fn emit_restart(lowering: &mut Lowering<'_>, block: VBlockId, first: VBlockId) {
    lowering.switch_to(block);
    settle(lowering);
    let start = lowering.fresh();
    lowering.mov(start, Operand::Imm(0));
    refill_window(lowering, start, START);
    let cursor = lowering.cursor;
    lowering.store_word(ORIGIN, cursor);
    lowering.skip_done_effects();
    lowering.end(Terminator::Goto(first));
}

/// From here on in final mode. The verifier knows of an odd number that it is not 0.
fn settle(lowering: &mut Lowering<'_>) {
    let context = lowering.context;
    let total = lowering.call(Callee::Helper(Helper::XdpGetBuffLen), vec![context]);
    lowering.alu(AluOp::Lsh, total, total, Operand::Imm(1));
    lowering.alu(AluOp::Or, total, total, Operand::Imm(1));
    lowering.store_word(TOTAL, total);
}

/// Refills the window from `position` on, for the cursor at `place`; goes on in a new block.
fn go_to_window(lowering: &mut Lowering<'_>, position: VReg, place: Place, short: VBlockId) {
    let within = lowering.new_cold_block();
    lowering.branch(Condition::Gt, position, Operand::Imm(FARTHEST), short, within);
    lowering.switch_to(within);
    let remainder = if place.modulus == 1 { 0 } else { place.remainder };
    refill_window(lowering, position, REFILL + ((remainder as i16 + 2) & 3));
    // The verifier takes no subtraction from a stack pointer, and up to 6.12 it knows no bounds of `-position`, but
    // those of `0 - position`.
    let (bounded, origin, cursor) = (lowering.fresh(), lowering.fresh(), lowering.cursor);
    // As in `direct::pin`: it was spilled while the window was filled.
    lowering.mask(bounded, position, FARTHEST as u64);
    lowering.mov(origin, Operand::Imm(0));
    lowering.alu(AluOp::Sub, origin, origin, Operand::Reg(bounded));
    lowering.alu(AluOp::Add, origin, origin, Operand::Reg(cursor));
    lowering.store_word(ORIGIN, origin);
}

/// `dst` = which byte of the packet the cursor is at; on the window only.
fn position_in_window(lowering: &mut Lowering<'_>, dst: VReg) {
    let (left, origin) = (lowering.cursor, lowering.load_word(ORIGIN));
    lowering.alu(AluOp::Sub, dst, left, Operand::Reg(origin));
}

/// The packet's length; in final mode only.
fn total(lowering: &mut Lowering<'_>) -> VReg {
    let total = lowering.load_word(TOTAL);
    lowering.alu(AluOp::Rsh, total, total, Operand::Imm(1));
    total
}

/// The aligned pieces of a read: how many bytes lie before each, and its size.
pub(crate) fn pieces(size: Size, alignment: impl Fn(u32) -> u32) -> Vec<(u32, Size)> {
    let mut pieces = Vec::new();
    let mut done = 0;
    while done < size.bytes() {
        let most = alignment(done).min(size.bytes() - done);
        let sizes = [Size::U64, Size::U32, Size::U16];
        let piece = sizes.into_iter().find(|piece| piece.bytes() <= most).unwrap_or(Size::U8);
        pieces.push((done, piece));
        done += piece.bytes();
    }
    pieces
}
