//! Packets in several buffers: one body over two kinds of pointers.
//!
//! The body is the same as with direct access. It starts on packet pointers (`auto`) or on a window on the stack
//! that was filled with as much of the linear part as it takes (`bytes`). A check that fails may mean two things:
//! the packet ended, or only what the pointers reach. Out of line, it asks for the packet's length; if there is
//! more, it goes to the **restart**, which all checks share: that fills the window from the packet's start with one
//! call, sets the mode to final, and begins the body anew, now on the window. In final mode a failed check is
//! final: where the cursor could leave the window, the flow pins it down before (`bound_reach`), and the window is
//! **refilled** from the cursor's place on.
//!
//! Conditions are pure, so the second run takes the same way as the first; effects that the first one has done are
//! counted and skipped ([`Lowering::effect`]).
//!
//! The window lies at 2 modulo 8, so that what follows an Ethernet header is aligned (stack accesses must be); reads
//! are split by what is known of the cursor's place. A refill puts the cursor's byte where it has the same
//! remainder modulo 4.
//!
//! | register | holds |
//! |---|---|
//! | `mode` | 0: what fails may be out of reach only; 1: it is missing in the packet |
//! | `base`, `origin` | a pointer, and the packet's byte that it points to: the cursor's position is `cursor - base + origin` |
//! | `total` | the packet's length, in mode 1 |

use pktc_bpf::{AluOp, Condition, Helper, Operand, Size, Width};
use pktc_ir::cursor::Place;
use pktc_ir::flow::{Arg, Value};

use super::direct::{self, DATA, DATA_END, FARTHEST};
use super::{Check, Strategy};
use crate::function::Lowering;
use crate::vcode::{Terminator, VBlockId, VInsn, VReg};

/// Bytes of the window: an Ethernet header, four tags, and the longest IPv4 and TCP headers are 150.
pub(super) const BYTES: u32 = 208;
/// Where the packet's start lies in the frame.
const START: i16 = -(crate::maps::FRAME as i16) - BYTES as i16 - 6;
/// Where a refilled window starts, less the remainder of the cursor's place (0 to 3, counted as at [`START`]).
const REFILL: i16 = START - 2;
/// Bytes of frame that the window takes.
pub(crate) const FRAME: u32 = BYTES + 8;

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
    registers: Option<Registers>,
    first: Option<VBlockId>,
    /// Where checks go on that failed for good, with where they go first.
    failed: Vec<(VBlockId, VBlockId)>,
    restart: Option<VBlockId>,
}

#[derive(Clone, Copy)]
struct Registers {
    mode: VReg,
    base: VReg,
    origin: VReg,
    total: VReg,
    /// Which byte of the packet the cursor is pinned down at.
    position: VReg,
}

impl Window {
    pub(super) fn new(start: Start) -> Self {
        Window { start, registers: None, first: None, failed: Vec::new(), restart: None }
    }

    fn registers(&mut self, lowering: &mut Lowering<'_>) -> Registers {
        *self.registers.get_or_insert_with(|| Registers {
            mode: lowering.fresh(),
            base: lowering.fresh(),
            origin: lowering.fresh(),
            total: lowering.fresh(),
            position: lowering.fresh(),
        })
    }

    /// Where a check goes that failed: to the restart if the packet is longer than what was reached, else to `short`.
    fn failed(&mut self, lowering: &mut Lowering<'_>, short: VBlockId) -> VBlockId {
        if let Some(&(_, known)) = self.failed.iter().find(|(known, _)| *known == short) {
            return known;
        }
        let restart = *self.restart.get_or_insert_with(|| lowering.new_cold_block());
        let registers = self.registers(lowering);
        let failed = lowering.aside(|lowering| {
            let ask = lowering.new_cold_block();
            lowering.branch(Condition::Ne, registers.mode, Operand::Imm(0), short, ask);
            lowering.switch_to(ask);
            self.packet_length(lowering, registers.total);
            let reached = lowering.fresh();
            self.reached(lowering, reached);
            lowering.branch(Condition::Le, registers.total, Operand::Reg(reached), short, restart);
        });
        self.failed.push((short, failed));
        failed
    }

    /// `dst` = how many of the packet's bytes are reached in mode 0.
    fn reached(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        match self.start {
            Start::Packet => direct::linear_length(lowering, dst),
            Start::Window => {
                let (left, right) = (lowering.limit, Operand::Reg(self.registers(lowering).base));
                lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst, left, right });
            }
        }
    }

    /// Ends the block: whether so many bytes are left of the packet, whatever the window holds. Mode 1 only.
    fn compare_with_total(&mut self, lowering: &mut Lowering<'_>, check: Check) {
        let (remaining, total) = (lowering.fresh(), self.registers(lowering).total);
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

    /// Ends the block: refills the window from `position` on, for the cursor at `place`. Mode 1 only.
    fn refill(&mut self, lowering: &mut Lowering<'_>, place: Place, ok: VBlockId, short: VBlockId) {
        let registers = self.registers(lowering);
        lowering.must_be_at_most(registers.position, FARTHEST, short);
        let (left, right) = (lowering.fresh(), Operand::Reg(registers.position));
        let total = registers.total;
        lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst: left, left: total, right });
        let remainder = if place.modulus == 1 { 0 } else { place.remainder };
        let offset = REFILL + ((remainder as i16 + 2) & 3);
        lowering.push(VInsn::FrameAddress { dst: registers.base, offset });
        // Where the packet ends there, nothing is reached: that is for the next check to find.
        let (some, none, filled) =
            (lowering.new_cold_block(), lowering.new_cold_block(), lowering.new_cold_block());
        lowering.branch(Condition::Slt, left, Operand::Imm(1), none, some);
        lowering.switch_to(none);
        let zero = lowering.fresh();
        lowering.push(VInsn::Mov { dst: zero, src: Operand::Imm(0) });
        self.reach(lowering, zero, short);
        lowering.end(Terminator::Goto(filled));
        lowering.switch_to(some);
        self.load(lowering, registers.position, left, filled, short);
        lowering.switch_to(filled);
        lowering.push(VInsn::Mov { dst: lowering.cursor, src: Operand::Reg(registers.base) });
        lowering.push(VInsn::Mov { dst: registers.origin, src: Operand::Reg(registers.position) });
        lowering.end(Terminator::Goto(ok));
    }

    fn enter_packet(&mut self, lowering: &mut Lowering<'_>) {
        let (cursor, limit) = (lowering.cursor, lowering.limit);
        let registers = self.registers(lowering);
        lowering.load_context(cursor, DATA);
        lowering.load_context(limit, DATA_END);
        lowering.push(VInsn::Mov { dst: registers.base, src: Operand::Reg(cursor) });
    }

    /// The first load takes what the linear part holds, so that nothing has to be asked.
    fn enter_window(&mut self, lowering: &mut Lowering<'_>) {
        let registers = self.registers(lowering);
        let length = lowering.fresh();
        direct::linear_length(lowering, length);
        self.window_at_start(lowering);
        let (some, filled) = (lowering.new_block(), lowering.new_block());
        lowering.push(VInsn::Mov { dst: lowering.limit, src: Operand::Reg(registers.base) });
        lowering.branch(Condition::Slt, length, Operand::Imm(1), filled, some);
        lowering.switch_to(some);
        let zero = lowering.fresh();
        lowering.push(VInsn::Mov { dst: zero, src: Operand::Imm(0) });
        self.load(lowering, zero, length, filled, filled);
        lowering.switch_to(filled);
    }

    fn window_at_start(&mut self, lowering: &mut Lowering<'_>) {
        let (registers, cursor) = (self.registers(lowering), lowering.cursor);
        lowering.push(VInsn::FrameAddress { dst: registers.base, offset: START });
        lowering.push(VInsn::Mov { dst: cursor, src: Operand::Reg(registers.base) });
        lowering.push(VInsn::Mov { dst: registers.origin, src: Operand::Imm(0) });
    }

    /// Ends the block: loads `length` bytes (at least 1; at most the window's are taken) of the packet from
    /// `position` on to `base`, and sets the limit.
    fn load(
        &mut self,
        lowering: &mut Lowering<'_>,
        position: VReg,
        length: VReg,
        ok: VBlockId,
        failed: VBlockId,
    ) {
        let (cut, call, done) =
            (lowering.new_cold_block(), lowering.new_cold_block(), lowering.new_cold_block());
        let base = self.registers(lowering).base;
        let (count, error) = (lowering.fresh(), lowering.fresh());
        lowering.push(VInsn::Mov { dst: count, src: Operand::Reg(length) });
        lowering.branch(Condition::Gt, count, Operand::Imm(BYTES as i32), cut, call);
        lowering.switch_to(cut);
        lowering.push(VInsn::Mov { dst: count, src: Operand::Imm(BYTES as i32) });
        lowering.end(Terminator::Goto(call));
        lowering.switch_to(call);
        let args = vec![lowering.context, position, base, count];
        lowering.push(VInsn::Call { helper: Helper::XdpLoadBytes, dst: error, args });
        lowering.branch(Condition::Ne, error, Operand::Imm(0), failed, done);
        lowering.switch_to(done);
        self.reach(lowering, count, failed);
        lowering.end(Terminator::Goto(ok));
    }

    /// Sets the limit `count` bytes behind the window's start; goes on in a new block. Whatever the count was, the
    /// verifier sees one kind of limit.
    fn reach(&mut self, lowering: &mut Lowering<'_>, count: VReg, failed: VBlockId) {
        /// The least mask that takes [`BYTES`].
        const MASK: u64 = 0xff;
        let (reached, right) = (lowering.unknown_zero(), Operand::Reg(count));
        lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst: reached, left: reached, right });
        lowering.mask(reached, reached, MASK);
        lowering.must_be_at_most(reached, BYTES as i32, failed);
        let (base, limit, right) = (self.registers(lowering).base, lowering.limit, Operand::Reg(reached));
        lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst: limit, left: base, right });
    }

    /// Where failed checks meet if there is more: begins anew on the window.
    fn emit_restart(&mut self, lowering: &mut Lowering<'_>, block: VBlockId, first: VBlockId) {
        let registers = self.registers(lowering);
        let (again, some, never) =
            (lowering.new_cold_block(), lowering.new_cold_block(), lowering.new_cold_block());
        lowering.switch_to(never);
        // There is more than was reached, so there is something, and it can be loaded: only the verifier asks.
        lowering.end(Terminator::Exit(Operand::Imm(0)));
        lowering.switch_to(block);
        self.window_at_start(lowering);
        lowering.branch(Condition::Eq, registers.total, Operand::Imm(0), never, some);
        lowering.switch_to(some);
        let zero = lowering.fresh();
        lowering.push(VInsn::Mov { dst: zero, src: Operand::Imm(0) });
        self.load(lowering, zero, registers.total, again, never);
        lowering.switch_to(again);
        lowering.push(VInsn::Mov { dst: registers.mode, src: Operand::Imm(1) });
        lowering.skip_done_effects();
        lowering.end(Terminator::Goto(first));
    }

    /// Ends the block: goes on in one of two new blocks, by the mode.
    fn by_mode(&mut self, lowering: &mut Lowering<'_>) -> (VBlockId, VBlockId) {
        let (reaching, last) = (lowering.new_block(), lowering.new_cold_block());
        let mode = self.registers(lowering).mode;
        lowering.branch(Condition::Ne, mode, Operand::Imm(0), last, reaching);
        (reaching, last)
    }

    /// On a window in mode 0: asks for the packet's length, after which the mode is 1.
    fn settle(&mut self, lowering: &mut Lowering<'_>) {
        let registers = self.registers(lowering);
        self.packet_length(lowering, registers.total);
        lowering.push(VInsn::Mov { dst: registers.mode, src: Operand::Imm(1) });
    }

    /// Ends the block: moves to the packet's byte in `registers.position`.
    fn go_to(&mut self, lowering: &mut Lowering<'_>, place: Place, ok: VBlockId, short: VBlockId) {
        let (reaching, last) = self.by_mode(lowering);
        lowering.switch_to(reaching);
        match self.start {
            Start::Packet => {
                let position = self.registers(lowering).position;
                direct::pin(lowering, position, short);
                lowering.end(Terminator::Goto(ok));
            }
            Start::Window => {
                self.settle(lowering);
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
        let registers = self.registers(lowering);
        for (dst, value) in [(registers.mode, 0), (registers.origin, 0), (registers.total, 0)] {
            lowering.push(VInsn::Mov { dst, src: Operand::Imm(value) });
        }
        match self.start {
            Start::Packet => self.enter_packet(lowering),
            Start::Window => self.enter_window(lowering),
        }
        lowering.end(Terminator::Goto(first));
    }

    fn check(&mut self, lowering: &mut Lowering<'_>, check: Check) {
        let base = check.base.map_or(0, |base| lowering.most(Arg::Value(base)));
        let within = lowering.most(check.bytes).saturating_add(base) <= u64::from(BYTES);
        let failed = self.failed(lowering, check.short);
        if !within {
            let (reaching, last) = self.by_mode(lowering);
            lowering.switch_to(last);
            self.compare_with_total(lowering, check);
            lowering.switch_to(reaching);
        }
        direct::compare_with_limit(lowering, check, failed);
    }

    fn seek(&mut self, lowering: &mut Lowering<'_>, position: Value, check: Check) {
        let (to, from) = (self.registers(lowering).position, lowering.register(position));
        lowering.push(VInsn::Mov { dst: to, src: Operand::Reg(from) });
        let there = lowering.new_block();
        let place = Place { farthest: 0, modulus: 1, remainder: 0 };
        self.go_to(lowering, place, there, check.short);
        lowering.switch_to(there);
        self.check(lowering, check);
    }

    fn canon(&mut self, lowering: &mut Lowering<'_>, place: Place, ok: VBlockId, short: VBlockId) {
        let position = self.registers(lowering).position;
        self.position(lowering, position);
        self.go_to(lowering, place, ok, short);
    }

    fn alignment(&self, place: Place, offset: u32) -> u32 {
        let at = (place.remainder + offset + 2) % place.modulus;
        // The lowest bit that is set divides both.
        if at == 0 { place.modulus } else { 1 << at.trailing_zeros() }
    }

    fn position(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        let registers = self.registers(lowering);
        let (left, right) = (lowering.cursor, Operand::Reg(registers.base));
        lowering.push(VInsn::Alu { op: AluOp::Sub, width: Width::W64, dst, left, right });
        let right = Operand::Reg(registers.origin);
        lowering.push(VInsn::Alu { op: AluOp::Add, width: Width::W64, dst, left: dst, right });
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

    fn counted_length(&mut self, lowering: &mut Lowering<'_>, dst: VReg) {
        self.packet_length(lowering, dst);
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
