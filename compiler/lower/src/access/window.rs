//! Packets in several buffers: one body over two kinds of pointers.
//!
//! The body is the same as with direct access. It starts on packet pointers (`auto`) or on a window on the stack
//! that was filled with as much of the linear part as it takes (`bytes`). A check that fails may mean two things:
//! the packet ended, or only what the pointers reach. It goes to the **restart**, which all checks share: that asks
//! for the packet's length, fills the window from the packet's start, sets the mode to final, and begins the body
//! anew, now on the window. (What a header says of lengths is asked before, so only packets that lie about theirs come
//! there in vain.) In final mode a failed check is final: where the cursor could leave the window, the flow pins it
//! down before (`bound_reach`), and the window is **refilled** from the cursor's place on.
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
//! | `TOTAL` | 0 at first: what fails may be out of reach only. In final mode one more than the packet's length |
//! | `ORIGIN` | where the packet's first byte is or would be, for the cursor's position: `cursor - origin` |

use pktc_bpf::{AluOp, Condition, Helper, Operand, Size, Width};
use pktc_ir::cursor::Place;
use pktc_ir::flow::{Arg, Value};

use super::direct::{self, DATA, DATA_END, FARTHEST};
use super::{Check, Strategy};
use crate::function::Lowering;
use crate::vcode::{Base, Terminator, VBlockId, VInsn, VReg};

/// Bytes of the window: an Ethernet header, four tags, and the longest IPv4 and TCP headers are 150.
pub(super) const BYTES: u32 = 208;
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
    /// Which byte of the packet the cursor is pinned down at.
    position: Option<VReg>,
    first: Option<VBlockId>,
    /// Where checks go on that failed for good, with where they go first.
    failed: Vec<(VBlockId, VBlockId)>,
    restart: Option<VBlockId>,
}

/// What to fill the window with.
struct Load {
    /// From which byte of the packet on.
    position: VReg,
    /// How many bytes: none if it is below 1, the window's at most.
    length: VReg,
    /// To which place of the frame.
    offset: i16,
}

impl Window {
    pub(super) fn new(start: Start) -> Self {
        Window { start, position: None, first: None, failed: Vec::new(), restart: None }
    }

    fn pinned(&mut self, lowering: &mut Lowering<'_>) -> VReg {
        *self.position.get_or_insert_with(|| lowering.fresh())
    }

    /// Where a check goes that failed: at first to the restart, in final mode to `short`.
    fn failed(&mut self, lowering: &mut Lowering<'_>, short: VBlockId) -> VBlockId {
        if let Some(&(_, known)) = self.failed.iter().find(|(known, _)| *known == short) {
            return known;
        }
        let restart = *self.restart.get_or_insert_with(|| lowering.new_cold_block());
        let failed = lowering.aside(|lowering| Self::if_final(lowering, short, restart));
        self.failed.push((short, failed));
        failed
    }

    /// Ends the block: goes on by the mode. The verifier knows it, whichever it is, and follows one way.
    fn if_final(lowering: &mut Lowering<'_>, last: VBlockId, first: VBlockId) {
        let total = word(lowering, TOTAL);
        lowering.branch(Condition::Gt, total, Operand::Imm(0), last, first);
    }

    /// Ends the block: whether so many bytes are left of the packet, whatever the window holds. In final mode only.
    fn compare_with_total(&mut self, lowering: &mut Lowering<'_>, check: Check) {
        let (remaining, total) = (lowering.fresh(), total(lowering));
        self.position(lowering, remaining);
        let right = Operand::Reg(remaining);
        lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst: remaining, left: total, right });
        if let Some(base) = check.base {
            let right = Operand::Reg(lowering.register(base));
            lowering.push(VInsn::Alu {
                op: AluOp::Sub,
                width: Width::W64,
                dst: remaining,
                left: remaining,
                right,
            });
        }
        let right = lowering.operand(check.bytes);
        lowering.branch(Condition::Slt, remaining, right, check.short, check.ok);
    }

    /// Ends the block: refills the window from `position` on, for the cursor at `place`. In final mode only.
    fn refill(&mut self, lowering: &mut Lowering<'_>, place: Place, ok: VBlockId, short: VBlockId) {
        let position = self.pinned(lowering);
        lowering.must_be_at_most(position, FARTHEST, short);
        let (total, left, right) = (total(lowering), lowering.fresh(), Operand::Reg(position));
        lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst: left, left: total, right });
        let remainder = if place.modulus == 1 { 0 } else { place.remainder };
        let offset = REFILL + ((remainder as i16 + 2) & 3);
        let (filled, before) = (lowering.new_cold_block(), lowering.fresh());
        self.load(lowering, Load { position, length: left, offset }, filled, short);
        lowering.switch_to(filled);
        // The verifier takes no subtraction from a stack pointer, and up to 6.12 it knows no bounds of `-position`, but
        // those of `0 - position`.
        lowering.push(VInsn::Mov { dst: before, src: Operand::Imm(0) });
        let right = Operand::Reg(position);
        lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst: before, left: before, right });
        let (origin, cursor, right) = (lowering.fresh(), lowering.cursor, Operand::Reg(before));
        lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst: origin, left: cursor, right });
        set_word(lowering, ORIGIN, origin);
        lowering.end(Terminator::Goto(ok));
    }

    fn enter_packet(&mut self, lowering: &mut Lowering<'_>) {
        let (cursor, limit) = (lowering.cursor, lowering.limit);
        lowering.load_context(cursor, DATA);
        lowering.load_context(limit, DATA_END);
    }

    /// The first load takes what the linear part holds, so that nothing has to be asked.
    fn enter_window(&mut self, lowering: &mut Lowering<'_>) {
        let (length, zero, empty) = (lowering.fresh(), lowering.fresh(), lowering.new_cold_block());
        let filled = lowering.new_block();
        direct::linear_length(lowering, length);
        lowering.push(VInsn::Mov { dst: zero, src: Operand::Imm(0) });
        self.load(lowering, Load { position: zero, length, offset: START }, filled, empty);
        // What cannot be loaded is asked for again by the first check.
        lowering.switch_to(empty);
        lowering.push(VInsn::Mov { dst: lowering.limit, src: Operand::Reg(lowering.cursor) });
        lowering.end(Terminator::Goto(filled));
        lowering.switch_to(filled);
    }

    /// Ends the block: fills the window, and sets cursor and limit.
    fn load(&mut self, lowering: &mut Lowering<'_>, load: Load, ok: VBlockId, failed: VBlockId) {
        let (fits, cut, call, none, done) = (
            lowering.new_cold_block(),
            lowering.new_cold_block(),
            lowering.new_cold_block(),
            lowering.new_cold_block(),
            lowering.new_cold_block(),
        );
        let (count, error, cursor) = (lowering.fresh(), lowering.fresh(), lowering.cursor);
        lowering.push(VInsn::FrameAddress { dst: cursor, offset: load.offset });
        // Not linked to `length`: whether it was cut must not show where the body begins anew.
        let (op, width, right) = (AluOp::Or, Width::W64, Operand::Imm(0));
        lowering.push(VInsn::Alu { op, width, dst: count, left: load.length, right });
        lowering.branch(Condition::Sgt, count, Operand::Imm(BYTES as i32), cut, fits);
        lowering.switch_to(cut);
        lowering.push(VInsn::Mov { dst: count, src: Operand::Imm(BYTES as i32) });
        lowering.end(Terminator::Goto(call));
        lowering.switch_to(fits);
        lowering.branch(Condition::Slt, count, Operand::Imm(1), none, call);
        lowering.switch_to(none);
        lowering.push(VInsn::Mov { dst: count, src: Operand::Imm(0) });
        lowering.end(Terminator::Goto(done));
        lowering.switch_to(call);
        let args = vec![lowering.context, load.position, cursor, count];
        lowering.push(VInsn::Call { helper: Helper::XdpLoadBytes, dst: error, args });
        lowering.branch(Condition::Ne, error, Operand::Imm(0), failed, done);
        lowering.switch_to(done);
        Self::reach(lowering, count, failed);
        lowering.end(Terminator::Goto(ok));
    }

    /// Sets the limit `count` bytes behind the cursor; goes on in a new block. Whatever the count was, the verifier sees
    /// one kind of limit.
    fn reach(lowering: &mut Lowering<'_>, count: VReg, failed: VBlockId) {
        /// The least mask that takes [`BYTES`].
        const MASK: u64 = 0xff;
        let (reached, right) = (lowering.unknown_zero(), Operand::Reg(count));
        lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst: reached, left: reached, right });
        lowering.mask(reached, reached, MASK);
        lowering.must_be_at_most(reached, BYTES as i32, failed);
        let (cursor, limit, right) = (lowering.cursor, lowering.limit, Operand::Reg(reached));
        lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst: limit, left: cursor, right });
    }

    /// Where checks that failed at first meet: begins anew on the window.
    fn emit_restart(&mut self, lowering: &mut Lowering<'_>, block: VBlockId, first: VBlockId) {
        let (again, never, zero) = (lowering.new_cold_block(), lowering.new_cold_block(), lowering.fresh());
        lowering.switch_to(never);
        // Packets have a length, and what there is of them can be loaded: only the verifier asks.
        lowering.end(Terminator::Exit(Operand::Imm(0)));
        lowering.switch_to(block);
        let length = self.settle(lowering, never);
        lowering.push(VInsn::Mov { dst: zero, src: Operand::Imm(0) });
        self.load(lowering, Load { position: zero, length, offset: START }, again, never);
        lowering.switch_to(again);
        set_word(lowering, ORIGIN, lowering.cursor);
        lowering.skip_done_effects();
        lowering.end(Terminator::Goto(first));
    }

    /// Asks for the packet's length: from here on in final mode, in a new block.
    fn settle(&mut self, lowering: &mut Lowering<'_>, never: VBlockId) -> VReg {
        let (total, more, some) = (lowering.fresh(), lowering.fresh(), lowering.new_cold_block());
        self.packet_length(lowering, total);
        let (op, width, right) = (AluOp::Add, Width::W64, Operand::Imm(1));
        lowering.push(VInsn::Alu { op, width, dst: more, left: total, right });
        lowering.branch(Condition::Lt, more, Operand::Imm(1), never, some);
        lowering.switch_to(some);
        set_word(lowering, TOTAL, more);
        total
    }

    /// Ends the block: moves to the packet's byte in [`Window::pinned`].
    fn go_to(&mut self, lowering: &mut Lowering<'_>, place: Place, ok: VBlockId, short: VBlockId) {
        let (reaching, last) = (lowering.new_block(), lowering.new_cold_block());
        Self::if_final(lowering, last, reaching);
        lowering.switch_to(reaching);
        match self.start {
            Start::Packet => {
                let position = self.pinned(lowering);
                direct::pin(lowering, position, short);
                lowering.end(Terminator::Goto(ok));
            }
            Start::Window => {
                self.settle(lowering, short);
                lowering.end(Terminator::Goto(last));
            }
        }
        lowering.switch_to(last);
        self.refill(lowering, place, ok, short);
    }
}

impl Strategy for Window {
    fn enter(&mut self, lowering: &mut Lowering<'_>, first: VBlockId) {
        self.first = Some(first);
        let none = lowering.fresh();
        lowering.push(VInsn::Mov { dst: none, src: Operand::Imm(0) });
        set_word(lowering, TOTAL, none);
        match self.start {
            Start::Packet => self.enter_packet(lowering),
            Start::Window => self.enter_window(lowering),
        }
        set_word(lowering, ORIGIN, lowering.cursor);
        lowering.end(Terminator::Goto(first));
    }

    fn check(&mut self, lowering: &mut Lowering<'_>, check: Check) {
        let base = check.base.map_or(0, |base| lowering.most(Arg::Value(base)));
        let within = lowering.most(check.bytes).saturating_add(base) <= u64::from(BYTES);
        let failed = self.failed(lowering, check.short);
        if !within {
            let (reaching, last) = (lowering.new_block(), lowering.new_cold_block());
            Self::if_final(lowering, last, reaching);
            lowering.switch_to(last);
            self.compare_with_total(lowering, check);
            lowering.switch_to(reaching);
        }
        direct::compare_with_limit(lowering, check, failed);
    }

    fn seek(&mut self, lowering: &mut Lowering<'_>, position: Value, check: Check) {
        let (to, from) = (self.pinned(lowering), lowering.register(position));
        lowering.push(VInsn::Mov { dst: to, src: Operand::Reg(from) });
        let there = lowering.new_block();
        let place = Place { farthest: 0, modulus: 1, remainder: 0 };
        self.go_to(lowering, place, there, check.short);
        lowering.switch_to(there);
        self.check(lowering, check);
    }

    fn canon(&mut self, lowering: &mut Lowering<'_>, place: Place, ok: VBlockId, short: VBlockId) {
        let position = self.pinned(lowering);
        self.position(lowering, position);
        self.go_to(lowering, place, ok, short);
    }

    fn alignment(&self, place: Place, offset: u32) -> u32 {
        let at = (place.remainder + offset + 2) % place.modulus;
        // The lowest bit that is set divides both.
        if at == 0 { place.modulus } else { 1 << at.trailing_zeros() }
    }

    fn position(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let (left, right) = (lowering.cursor, Operand::Reg(word(lowering, ORIGIN)));
        lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst, left, right });
    }

    fn remaining(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let (total, position) = (lowering.fresh(), lowering.fresh());
        self.packet_length(lowering, total);
        self.position(lowering, position);
        let right = Operand::Reg(position);
        lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst, left: total, right });
    }

    fn reachable(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let (left, right) = (lowering.limit, Operand::Reg(lowering.cursor));
        lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst, left, right });
    }

    fn packet_length(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let args = vec![lowering.context];
        lowering.push(VInsn::Call { helper: Helper::XdpGetBuffLen, dst, args });
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
                let (op, width) = (AluOp::Sub, Width::W64);
                lowering.push(VInsn::Alu { op, width, dst: linear, left: linear, right });
            }
        }
        lowering.branch(Condition::Sgt, content, Operand::Reg(linear), beyond, within);
        lowering.switch_to(within);
    }

    fn counted_length(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let (linear, known, behind) = (lowering.new_block(), lowering.new_cold_block(), lowering.new_block());
        Self::if_final(lowering, known, linear);
        lowering.switch_to(known);
        let total = total(lowering);
        lowering.push(VInsn::Mov { dst, src: Operand::Reg(total) });
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
            self.emit_restart(lowering, restart, first);
        }
    }
}

/// The packet's length; in final mode only.
fn total(lowering: &mut Lowering<'_>) -> VReg {
    let (dst, left) = (lowering.fresh(), word(lowering, TOTAL));
    let (op, width, right) = (AluOp::Sub, Width::W64, Operand::Imm(1));
    lowering.push(VInsn::Alu { op, width, dst, left, right });
    dst
}

fn word(lowering: &mut Lowering<'_>, offset: i16) -> VReg {
    let dst = lowering.fresh();
    lowering.push(VInsn::Load { size: Size::U64, dst, base: Base::Frame, offset });
    dst
}

fn set_word(lowering: &mut Lowering<'_>, offset: i16, value: VReg) {
    let src = Operand::Reg(value);
    lowering.push(VInsn::Store { size: Size::U64, base: Base::Frame, offset, src });
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
