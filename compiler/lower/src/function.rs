//! One program: everything but packet access.

use std::ops::{Deref, DerefMut};

use hashbrown::HashMap;

use cranelift_entity::{EntityRef, SecondaryMap};
use pktc_bpf::{AluOp, Condition, MapIndex, Operand, Section, Size, Swap, Width, XdpAction};
use pktc_ir::cursor::{Place, cursor_places};
use pktc_ir::facts::Facts;
use pktc_ir::flow::{Arg, Block, End, Flow, Op, Value};
use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::{CounterId, Verdict};

use crate::access::{Access, Check, Strategy, pieces};
use crate::cells::{self, Cells};
use crate::code::Code;
use crate::counters::{self, CounterLayout};
use crate::ends::Ends;
use crate::maps;
use crate::vcode::{Base, Terminator, VBlockId, VFunction, VInsn, VReg};

/// Offset of `ingress_ifindex` in `struct xdp_md`.
const IFINDEX: i16 = 12;
/// Offset of `rx_queue_index` in `struct xdp_md`.
const QUEUE: i16 = 16;

/// A program that is being lowered.
pub(crate) struct Lowering<'a> {
    pub(crate) flow: &'a Flow,
    facts: Facts,
    places: SecondaryMap<Block, Option<Place>>,
    /// Where the cursor is.
    place: Place,
    strategy: Option<Box<dyn Strategy>>,
    effects: Option<Effects>,
    counters: &'a CounterLayout,
    first_rule: Option<u32>,
    code: Code,
    starts: SecondaryMap<Block, Option<VBlockId>>,
    pointers: HashMap<Value, VReg>,
    pub(crate) cells: Cells,
    pub(crate) ends: Ends,
    pub(crate) context: VReg,
    pub(crate) cursor: VReg,
    pub(crate) limit: VReg,
}

/// Effects that must be done once, though the body may begin anew.
#[derive(Clone, Copy)]
struct Effects {
    /// How many were done.
    done: VReg,
    /// How many are to be left out, since they were done before.
    skip: VReg,
}

/// Lowers `flow`; `first_rule` is the entry of its first counter, `cell_map` the map for its cells, if it has some.
pub(crate) fn lower_function(
    flow: &Flow,
    counters: &CounterLayout,
    first_rule: Option<u32>,
    cell_map: MapIndex,
    access: Access,
) -> VFunction {
    let mut lowering = Lowering::new(flow, counters, first_rule, access);
    let entry = lowering.new_block();
    lowering.switch_to(entry);
    if !flow.cells.is_empty() {
        cells::find(&mut lowering, cell_map);
    }
    lowering.start_effects();
    let first = lowering.start_of(Block::new(0));
    lowering.access(|strategy, lowering| strategy.enter(lowering, first));
    for block in flow.blocks.keys() {
        lowering.block(block);
    }
    lowering.shared_ends();
    lowering.access(|strategy, lowering| strategy.finish(lowering));
    let (params, (blocks, vregs)) = (vec![lowering.context], lowering.code.finish());
    VFunction {
        name: flow.name.clone(),
        span: flow.span,
        section: Section::of_programs(access.frags()),
        params,
        vregs,
        frame: maps::FRAME + access.frame(),
        blocks: crate::layout::order_blocks(blocks),
    }
}

impl Deref for Lowering<'_> {
    type Target = Code;

    fn deref(&self) -> &Code {
        &self.code
    }
}

impl DerefMut for Lowering<'_> {
    fn deref_mut(&mut self) -> &mut Code {
        &mut self.code
    }
}

impl<'a> Lowering<'a> {
    fn new(flow: &'a Flow, counters: &'a CounterLayout, first_rule: Option<u32>, access: Access) -> Self {
        let values = flow.values.len() as u32;
        let facts = Facts::new(flow);
        Lowering {
            flow,
            places: cursor_places(flow, &facts),
            facts,
            place: Place { farthest: 0, modulus: 1, remainder: 0 },
            strategy: Some(access.strategy()),
            effects: None,
            counters,
            first_rule,
            code: Code::new(flow.span, values + 5),
            starts: SecondaryMap::new(),
            cells: Cells::new(flow, VReg::from_u32(values + 3)),
            pointers: HashMap::new(),
            ends: Ends::new(VReg::from_u32(values + 4)),
            context: VReg::from_u32(values),
            cursor: VReg::from_u32(values + 1),
            limit: VReg::from_u32(values + 2),
        }
    }
}

impl Lowering<'_> {
    // ---- building blocks ----

    /// A cold block that `fill` writes, while the current one stays as it is.
    pub(crate) fn aside(&mut self, fill: impl FnOnce(&mut Self)) -> VBlockId {
        let before = self.current();
        let block = self.new_cold_block();
        self.switch_to(block);
        fill(self);
        self.switch_to(before);
        block
    }

    /// Lets the access strategy do something.
    fn access<T>(&mut self, work: impl FnOnce(&mut dyn Strategy, &mut Self) -> T) -> T {
        let mut strategy = self.strategy.take().expect("a strategy does not ask for itself");
        let result = work(&mut *strategy, self);
        self.strategy = Some(strategy);
        result
    }

    pub(crate) fn register(&self, value: Value) -> VReg {
        VReg::from_u32(value.as_u32())
    }

    /// The pointer `base` bytes behind the cursor, as the last check of that base made it.
    pub(crate) fn pointer_behind(&mut self, base: Value) -> VReg {
        if let Some(&pointer) = self.pointers.get(&base) {
            return pointer;
        }
        let pointer = self.fresh();
        self.pointers.insert(base, pointer);
        pointer
    }

    /// Counts the packet; goes on in a block of its own. `ask`: it was not told what the packet claims.
    fn count(&mut self, index: Operand<VReg>, ask: bool) {
        let length = self.fresh();
        self.counted_length(length, ask);
        counters::count(self, index, length);
    }

    /// The packet's length for counters; may go on in a block of its own.
    pub(crate) fn counted_length(&mut self, dst: VReg, ask: bool) {
        self.access(|strategy, lowering| match ask {
            true => strategy.packet_length(lowering, dst),
            false => strategy.counted_length(lowering, dst),
        });
    }

    /// At most that, wherever it is assigned.
    pub(crate) fn most(&self, arg: Arg) -> u64 {
        self.facts.of(arg).most
    }

    /// `dst` = a field of `struct xdp_md`.
    pub(crate) fn load_context(&mut self, dst: VReg, offset: i16) {
        let base = Base::Reg(self.context);
        self.push(VInsn::Load { size: Size::U32, dst, base, offset });
    }

    /// `arg` for a 64-bit operation.
    pub(crate) fn operand(&mut self, arg: Arg) -> Operand<VReg> {
        match arg {
            Arg::Value(value) => Operand::Reg(self.register(value)),
            Arg::Const(constant) => self.constant(constant),
        }
    }

    /// `arg` for an operation on the lower 32 bits.
    fn operand32(&mut self, arg: Arg) -> Operand<VReg> {
        match arg {
            Arg::Const(constant) if u32::try_from(constant).is_ok() => Operand::Imm(constant as u32 as i32),
            other => self.operand(other),
        }
    }

    fn start_of(&mut self, block: Block) -> VBlockId {
        if let Some(start) = self.starts[block] {
            return start;
        }
        let start = self.new_block();
        self.starts[block] = Some(start);
        start
    }

    // ---- effects ----

    fn start_effects(&mut self) {
        let ops = self.flow.blocks.values().flat_map(|data| &data.ops);
        let any = ops.into_iter().any(|(op, _)| matches!(op, Op::Hit { .. } | Op::Count { .. }));
        if any && self.access(|strategy, _| strategy.restarts()) {
            let effects = Effects { done: self.fresh(), skip: self.fresh() };
            // The verifier must not walk what follows once for each number of effects.
            let context = self.context;
            for dst in [effects.done, effects.skip] {
                let data = self.fresh();
                self.push(VInsn::Load { size: Size::U32, dst: data, base: Base::Reg(context), offset: 0 });
                let right = Operand::Reg(data);
                self.alu(AluOp::Sub, dst, data, right);
            }
            self.effects = Some(effects);
        }
    }

    /// Does an effect, unless it was done before the body began anew.
    fn effect(&mut self, work: impl FnOnce(&mut Self)) {
        let Some(Effects { done, skip }) = self.effects else { return work(self) };
        let (skipping, doing, behind) = (self.new_cold_block(), self.new_block(), self.new_block());
        self.branch(Condition::Ne, skip, Operand::Imm(0), skipping, doing);
        self.switch_to(skipping);
        self.alu(AluOp::Sub, skip, skip, Operand::Imm(1));
        self.end(Terminator::Goto(behind));
        self.switch_to(doing);
        self.alu(AluOp::Add, done, done, Operand::Imm(1));
        work(self);
        self.end(Terminator::Goto(behind));
        self.switch_to(behind);
    }

    /// The body begins anew: what was done is to be left out.
    pub(crate) fn skip_done_effects(&mut self) {
        if let Some(Effects { done, skip }) = self.effects {
            self.mov(skip, Operand::Reg(done));
        }
    }

    // ---- blocks ----

    fn block(&mut self, block: Block) {
        let Some(place) = self.places[block] else { return };
        self.place = place;
        let start = self.start_of(block);
        self.switch_to(start);
        let data = &self.flow.blocks[block];
        for (op, span) in &data.ops {
            self.span = *span;
            self.op(op);
        }
        self.span = data.end_span;
        self.flow_end(&data.end);
    }

    fn op(&mut self, op: &Op) {
        match *op {
            Op::Copy { dst, src } => self.copy(dst, src),
            Op::Forget { dst, src, mask } => self.forget(dst, src, mask),
            Op::Alu { op, dst, left, right } => self.arithmetic(op, dst, left, right),
            Op::Swap { dst, src, size } => self.swap(dst, src, size),
            Op::Read { dst, offset, size } => self.read(dst, self.cursor, self.place, offset, size),
            Op::ReadAt { dst, base, offset, size } => {
                let pointer = self.pointer_behind(base);
                let place = self.place.advanced(Arg::Value(base), &self.facts);
                self.read(dst, pointer, place, offset, size);
            }
            Op::Advance { by } => {
                let (cursor, right) = (self.cursor, self.operand(by));
                self.alu(AluOp::Add, cursor, cursor, right);
                self.place = self.place.advanced(by, &self.facts);
            }
            Op::Keep { cell, src } => {
                let insn = self.cells.keep(cell, self.flow.cells[cell], self.register(src));
                self.push(insn);
            }
            Op::Recall { dst, cell } => {
                let insn = self.cells.recall(self.register(dst), cell, self.flow.cells[cell]);
                self.push(insn);
            }
            Op::Position { dst } => {
                self.of_packet(dst, |strategy, lowering, dst| strategy.position(lowering, dst))
            }
            Op::Remaining { dst } => {
                self.of_packet(dst, |strategy, lowering, dst| strategy.remaining(lowering, dst))
            }
            Op::Reachable { dst } => {
                self.of_packet(dst, |strategy, lowering, dst| strategy.reachable(lowering, dst))
            }
            Op::PacketLength { dst } => {
                self.of_packet(dst, |strategy, lowering, dst| strategy.packet_length(lowering, dst));
            }
            Op::Ifindex { dst } => self.load_context(self.register(dst), IFINDEX),
            Op::Queue { dst } => self.load_context(self.register(dst), QUEUE),
            Op::Claims { content } => {
                let content = self.register(content);
                self.access(|strategy, lowering| strategy.claims(lowering, content));
            }
            Op::Hit { rule, ask } => {
                if let Some(index) = self.rule_index(rule) {
                    self.effect(|lowering| lowering.count(Operand::Imm(index), ask));
                }
            }
            Op::Count { counter, ask } => {
                let index = self.counter_index(counter);
                self.effect(|lowering| lowering.count(Operand::Imm(index), ask));
            }
        }
    }

    fn of_packet(&mut self, dst: Value, work: impl FnOnce(&mut dyn Strategy, &mut Self, VReg)) {
        let dst = self.register(dst);
        self.access(|strategy, lowering| work(strategy, lowering, dst));
    }

    /// Reads in pieces, if the bytes may lie less aligned than the strategy can read them.
    fn read(&mut self, dst: Value, pointer: VReg, place: Place, offset: u32, size: Size) {
        let (dst, base) = (self.register(dst), Base::Reg(pointer));
        let pieces = self.access(|strategy, _| pieces(size, |done| strategy.alignment(place, offset + done)));
        let mut read: Option<VReg> = None;
        for (done, size) in pieces {
            let part = self.fresh();
            self.push(VInsn::Load { size, dst: part, base, offset: (offset + done) as i16 });
            read = Some(match read {
                None => part,
                Some(before) => self.join(before, part, done),
            });
        }
        if let Some(read) = read {
            self.mov(dst, Operand::Reg(read));
        }
    }

    /// `low` with `part` behind its `bytes` bytes.
    fn join(&mut self, low: VReg, part: VReg, bytes: u32) -> VReg {
        let (shifted, joined) = (self.fresh(), self.fresh());
        let right = Operand::Imm(bytes as i32 * 8);
        self.alu(AluOp::Lsh, shifted, part, right);
        let right = Operand::Reg(shifted);
        self.alu(AluOp::Or, joined, low, right);
        joined
    }

    pub(crate) fn rule_index(&self, rule: RuleId) -> Option<i32> {
        self.first_rule.map(|first| (first + rule.0) as i32)
    }

    pub(crate) fn counter_index(&self, counter: CounterId) -> i32 {
        (self.counters.first_named() + counter.as_u32()) as i32
    }

    fn copy(&mut self, dst: Value, src: Arg) {
        let dst = self.register(dst);
        match src {
            Arg::Const(imm) if i32::try_from(imm).is_err() => self.push(VInsn::LoadImm64 { dst, imm }),
            src => {
                let src = self.operand(src);
                self.mov(dst, src);
            }
        }
    }

    fn forget(&mut self, dst: Value, src: Arg, mask: u64) {
        let (dst, sum) = (self.register(dst), self.unknown_zero());
        let right = self.operand(src);
        self.alu(AluOp::Add, sum, sum, right);
        self.mask(dst, sum, mask);
    }

    fn arithmetic(&mut self, op: AluOp, dst: Value, left: Value, right: Arg) {
        let (dst, left) = (self.register(dst), self.register(left));
        let (op, right) = match (op, right) {
            (AluOp::Mul, Arg::Const(factor)) if factor.is_power_of_two() => {
                (AluOp::Lsh, Arg::Const(u64::from(factor.trailing_zeros())))
            }
            other => other,
        };
        // A mask of at most 32 bits clears the upper half, as 32-bit operations do.
        let narrow = op == AluOp::And && matches!(right, Arg::Const(mask) if u32::try_from(mask).is_ok());
        let (width, right) =
            if narrow { (Width::W32, self.operand32(right)) } else { (Width::W64, self.operand(right)) };
        self.push(VInsn::Alu { op, width, dst, left, right });
    }

    fn swap(&mut self, dst: Value, src: Value, size: Size) {
        let (dst, src) = (self.register(dst), self.register(src));
        let swap = match size {
            Size::U8 => return self.mov(dst, Operand::Reg(src)),
            Size::U16 => Swap::Be16,
            Size::U32 => Swap::Be32,
            Size::U64 => Swap::Be64,
        };
        self.push(VInsn::Swap { swap, dst, src });
    }

    // ---- ends ----

    fn flow_end(&mut self, end: &End) {
        match *end {
            End::Goto(target) => {
                let target = self.start_of(target);
                self.end(Terminator::Goto(target));
            }
            End::Branch { condition, width, left, right, then, otherwise } => {
                let (taken, fallthrough) = (self.start_of(then), self.start_of(otherwise));
                let left = self.register(left);
                let right = if width == Width::W32 { self.operand32(right) } else { self.operand(right) };
                let left = if self.flow.hide_tests { self.hidden(left, width) } else { left };
                self.end(Terminator::Branch { condition, width, left, right, taken, fallthrough });
            }
            End::Masked { left, size, mask, value, then, otherwise } => {
                let (then, otherwise) = (self.start_of(then), self.start_of(otherwise));
                self.masked(left, size, mask, value, then, otherwise);
            }
            End::Check { base, bytes, ok, short } => {
                let check = Check { base, bytes, ok: self.start_of(ok), short: self.start_of(short) };
                self.access(|strategy, lowering| strategy.check(lowering, check));
            }
            End::Seek { position, bytes, ok, short } => {
                let check = Check { base: None, bytes, ok: self.start_of(ok), short: self.start_of(short) };
                self.access(|strategy, lowering| strategy.seek(lowering, position, check));
            }
            End::Canon { ok, short } => {
                let (ok, short, place) = (self.start_of(ok), self.start_of(short), self.place);
                self.access(|strategy, lowering| strategy.canon(lowering, place, ok, short));
            }
            End::Finish { rule, verdict, ask } => self.finish(rule, verdict, ask),
        }
    }

    /// A copy of `register` that the verifier does not connect with it: what a test finds out stays with the copy.
    fn hidden(&mut self, register: VReg, width: Width) -> VReg {
        let dst = self.fresh();
        self.push(VInsn::Alu { op: AluOp::Or, width, dst, left: register, right: Operand::Imm(0) });
        dst
    }

    /// Branches by `left & mask == value`.
    fn masked(
        &mut self,
        left: Value,
        size: Size,
        mask: u64,
        value: u64,
        then: VBlockId,
        otherwise: VBlockId,
    ) {
        let width = if size == Size::U64 { Width::W64 } else { Width::W32 };
        let whole = mask == pktc_ir::layout::low_bits(size.bytes() * 8);
        let left = self.register(left);
        let (condition, left, right) = if whole && !self.flow.hide_tests {
            (Condition::Ne, left, Arg::Const(value))
        } else if whole {
            (Condition::Ne, self.combine(AluOp::Xor, left, value, width), Arg::Const(0))
        } else if value == 0 && !self.flow.hide_tests {
            (Condition::Set, left, Arg::Const(mask))
        } else {
            (Condition::Ne, self.combine(AluOp::And, left, mask, width), Arg::Const(value))
        };
        let right = if width == Width::W32 { self.operand32(right) } else { self.operand(right) };
        self.end(Terminator::Branch { condition, width, left, right, taken: otherwise, fallthrough: then });
    }

    fn combine(&mut self, op: AluOp, left: VReg, with: u64, width: Width) -> VReg {
        let right = if width == Width::W32 {
            self.operand32(Arg::Const(with))
        } else {
            self.operand(Arg::Const(with))
        };
        let dst = self.fresh();
        self.push(VInsn::Alu { op, width, dst, left, right });
        dst
    }
}

/// What a program returns for a verdict.
#[must_use]
pub fn xdp_action(verdict: Verdict) -> XdpAction {
    match verdict {
        Verdict::Abort => XdpAction::Aborted,
        Verdict::Drop => XdpAction::Drop,
        Verdict::Pass => XdpAction::Pass,
        Verdict::Tx => XdpAction::Tx,
        Verdict::Redirect => XdpAction::Redirect,
    }
}
