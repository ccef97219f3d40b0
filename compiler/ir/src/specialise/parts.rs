//! Parts: bytes of a header, or behind it, that are not always there.

use cranelift_entity::EntityRef;
use pktc_bpf::{AluOp, Condition, Size};
use pktc_semantics::typed::{Expr, ExprKind};

use super::bounds::longest;
use super::parse::{NEAR, Parsing, hangs_on};
use super::state::{Pending, State};
use super::{Here, Specialiser};
use crate::flow::{Arg, Block, End, Op};
use crate::layout::condition_key;
use crate::rule::{Item, ItemId, Part, Place, Reach, Slot, SlotId};

/// So many parts of one header split the way.
const FEW_PARTS: usize = 4;

/// So many bytes are reached at once by any access strategy, from where the cursor is pinned down on.
const REACH: u64 = 192;

/// Bytes that lie too far to be reached from the header are read together in pieces of that size.
const FAR_READS: u32 = 64;

impl Specialiser<'_> {
    pub(super) fn needed_parts(&self, place: Place, here: &Here) -> Vec<(ItemId, Part)> {
        let items = here.needs.items.iter().map(ItemId::new);
        items
            .filter_map(|id| match &self.outlook.rules.items[id] {
                Item::Part(part) if part.place == place => Some((id, part.clone())),
                Item::Part(_)
                | Item::Header(_)
                | Item::Member { .. }
                | Item::Option { .. }
                | Item::BrokenOptions(_) => None,
            })
            .collect()
    }

    /// Finds out which parts are there. A few split the way; many would split it into too many, so which are there
    /// is stored, as well as where an option list would be read on each way.
    pub(super) fn resolve_parts(
        &mut self,
        parts: &[(ItemId, Part)],
        mut parsing: Parsing<'_>,
        mut state: State,
        here: &Here,
    ) {
        if parts.len() <= FEW_PARTS && self.needed_options(parsing.place, here).is_empty() {
            return self.split_by_parts(parts, parsing, state, here);
        }
        for &(item, _) in parts {
            self.store_absent(item);
            for slot in self.needed_slots(here, |slot| hangs_on(slot, item)) {
                self.clear_slot(slot);
            }
            state.pending.push(Pending::Stored { item });
        }
        parts.iter().for_each(|&(item, _)| self.store_presence(&mut parsing, item, here));
        let block = self.block_for(here.decision, state);
        self.end(End::Goto(block));
    }

    /// Splits the way for each part that may or may not be there.
    fn split_by_parts(
        &mut self,
        parts: &[(ItemId, Part)],
        mut parsing: Parsing<'_>,
        state: State,
        here: &Here,
    ) {
        let Some(((item, part), others)) = parts.split_first() else {
            let block = self.block_for(here.decision, state);
            return self.end(End::Goto(block));
        };
        let (absent, mut without) = (self.new_block(), parsing.clone());
        self.take_part(&mut parsing, *item, part, absent, here);
        if let Some(when) = &part.when {
            parsing.decided.extend(decided(when, true));
            if parsing.needs.is_none() && part.reach == Reach::Fields {
                // All of the header is there, so only the condition can be false.
                without.decided.extend(decided(when, false));
            }
        }
        let mut with = state.clone();
        with.present.insert(item.index());
        self.split_by_parts(others, parsing, with, here);
        self.current = absent;
        self.split_by_parts(others, without, state, here);
    }

    /// Goes on in a new block only if `part` is there, with its slots loaded.
    pub(super) fn take_part(
        &mut self,
        parsing: &mut Parsing<'_>,
        item: ItemId,
        part: &Part,
        absent: Block,
        here: &Here,
    ) {
        if let Some(when) = &part.when {
            let there = self.new_block();
            self.own_condition(parsing, when, there, absent, here);
            self.current = there;
        }
        match part.reach {
            Reach::Payload => return self.take_payload(parsing, item, part.end, absent, here),
            Reach::Whole { behind } => self.must_be_whole(parsing, part.end + behind, absent),
            Reach::Fields => {}
        }
        if u64::from(part.end) > REACH {
            return self.load_far(parsing, Arg::Const(0), (item, part.end), absent, here);
        }
        if part.end > parsing.checked {
            self.must_fit(parsing, Arg::Const(u64::from(part.end)), absent);
            parsing.checked = part.end;
        }
        self.load_slots(parsing, item, here);
    }

    /// Goes on in a new block only if all of the header is there, and it is `least` bytes long.
    fn must_be_whole(&mut self, parsing: &mut Parsing<'_>, least: u32, absent: Block) {
        let length = self.in_value(parsing.length);
        let known = self.unlinked(length);
        self.leave_if(known, Condition::Lt, Arg::Const(u64::from(least)), absent);
        if parsing.needs.is_some() {
            self.must_fit(parsing, Arg::Value(length), absent);
        }
    }

    /// The same for the first `end` bytes behind the header.
    fn take_payload(
        &mut self,
        parsing: &mut Parsing<'_>,
        item: ItemId,
        end: u32,
        absent: Block,
        here: &Here,
    ) {
        let before = Some(longest(parsing.header)).filter(|&longest| longest <= NEAR).unwrap_or(0);
        if before + u64::from(end) > REACH {
            self.must_be_claimed(parsing, end, absent, here);
            return self.load_far(parsing, parsing.length, (item, end), absent, here);
        }
        self.at_payload(parsing, end, absent, here, |this, parsing| this.load_slots(parsing, item, here));
    }

    /// Goes on in a new block only if `end` bytes are there behind `from`, with the slots of `item` among them loaded.
    /// They may be too many to be reached at once.
    fn load_far(
        &mut self,
        parsing: &mut Parsing<'_>,
        from: Arg,
        (item, end): (ItemId, u32),
        absent: Block,
        here: &Here,
    ) {
        let slots = self.needed_slots(here, |slot| hangs_on(slot, item));
        let reads = slots.into_iter().filter_map(|slot| match self.outlook.rules.slots[slot] {
            Slot::Bytes { offset, size, .. } | Slot::Payload { offset, size, .. } => {
                Some((slot, offset, size))
            }
            _ => None,
        });
        let mut reads: Vec<_> = reads.collect();
        reads.sort_unstable_by_key(|&(slot, offset, _)| (offset, slot));
        let ends =
            |reads: &[(SlotId, u32, Size)]| reads.iter().map(|(_, offset, size)| offset + size.bytes()).max();
        if ends(&reads) != Some(end) {
            let distance = self.sum(from, u64::from(end - 1));
            self.far_from(parsing, distance, 1, absent, here, |_, _| {});
        }
        for together in
            reads.chunk_by(|(_, before, _), (_, offset, _)| before / FAR_READS == offset / FAR_READS)
        {
            let first = together[0].1;
            let (distance, bytes) =
                (self.sum(from, u64::from(first)), ends(together).unwrap_or(first) - first);
            self.far_from(parsing, distance, bytes, absent, here, |this, _| {
                for &(slot, offset, size) in together {
                    let dst = this.slot(slot);
                    this.op(Op::Read { dst, offset: offset - first, size });
                }
            });
        }
    }

    /// Goes on in a new block only if `end` bytes behind the header are claimed.
    fn must_be_claimed(&mut self, parsing: &mut Parsing<'_>, end: u32, absent: Block, here: &Here) {
        if let Some(content) = self.content(parsing, here) {
            let right = self.sum(parsing.length, u64::from(end));
            self.leave_if(content, Condition::Slt, right, absent);
        }
    }

    /// Goes on in a new block only if there are `end` bytes behind the header: there `read` may read them, behind
    /// `parsing.length`, and nothing else.
    pub(super) fn at_payload(
        &mut self,
        parsing: &mut Parsing<'_>,
        end: u32,
        absent: Block,
        here: &Here,
        read: impl FnOnce(&mut Self, &mut Parsing<'_>),
    ) {
        self.must_be_claimed(parsing, end, absent, here);
        if longest(parsing.header) > NEAR {
            return self.far_from(parsing, parsing.length, end, absent, here, read);
        }
        let ok = self.new_block();
        let (base, bytes) = match parsing.length {
            Arg::Const(length) => (None, Arg::Const(length + u64::from(end))),
            Arg::Value(length) => (Some(length), Arg::Const(u64::from(end))),
        };
        self.end(End::Check { base, bytes, ok, short: absent });
        self.current = ok;
        read(self, parsing);
    }

    /// Goes on in a new block only if there are `end` bytes `distance` behind the cursor, which may be farther than
    /// what can be reached from there: goes there for `read`, for which the header is 0 bytes long, and back.
    pub(super) fn far_from(
        &mut self,
        parsing: &mut Parsing<'_>,
        distance: Arg,
        end: u32,
        absent: Block,
        here: &Here,
        read: impl FnOnce(&mut Self, &mut Parsing<'_>),
    ) {
        let position = self.value("position");
        self.op(Op::Position { dst: position });
        self.op(Op::Advance { by: distance });
        let (there, ok, missing, back) =
            (self.new_block(), self.new_block(), self.new_block(), self.new_block());
        self.end(End::Goto(there));
        self.current = there;
        self.end(End::Check { base: None, bytes: Arg::Const(u64::from(end)), ok, short: missing });
        let bytes = Arg::Const(u64::from(parsing.checked));
        // The header was there before, so going back cannot fail.
        let lost = self.block_for(here.decision, State { cursor: None, ..here.rest.clone() });
        self.current = missing;
        self.end(End::Seek { position, bytes, ok: absent, short: lost });
        self.current = ok;
        let header = std::mem::replace(&mut parsing.length, Arg::Const(0));
        read(self, parsing);
        parsing.length = header;
        self.end(End::Seek { position, bytes, ok: back, short: lost });
        self.current = back;
    }

    /// `left + right`, which the verifier does not connect with `left` (from 6.12 on it otherwise does): what is asked of
    /// the sum would give `left` bounds that do not fit what it knows of its bits.
    fn sum(&mut self, left: Arg, right: u64) -> Arg {
        match left {
            Arg::Const(left) => Arg::Const(left + right),
            Arg::Value(left) => {
                let (dst, left) = (self.value(""), self.unlinked(left));
                self.op(Op::Alu { op: AluOp::Add, dst, left, right: Arg::Const(right) });
                Arg::Value(dst)
            }
        }
    }
}

/// What is known of `condition` and its parts where it holds, or does not.
fn decided(condition: &Expr, holds: bool) -> Vec<(String, bool)> {
    match &condition.kind {
        ExprKind::Not(inner) => decided(inner, !holds),
        ExprKind::And(parts) if holds => parts.iter().flat_map(|part| decided(part, true)).collect(),
        ExprKind::Or(parts) if !holds => parts.iter().flat_map(|part| decided(part, false)).collect(),
        _ => vec![(condition_key(condition), holds)],
    }
}
