//! One header: does it fit, is it valid, what of it is needed.
//!
//! Checks of the header's own fields read them at the cursor. `left`, where something encloses the header, is
//! how many bytes from its start on are claimed for it: a header must fit both in the packet and in that.

use hashbrown::HashMap;

use cranelift_entity::EntityRef;
use pktc_bpf::{AluOp, Condition, Size, Width};
use pktc_semantics::typed::{Expr, FieldIndex, Header, HeaderId, Scope};

use super::bounds::{
    LONGEST_HEADER, least, length_mask, longest, most, own_end, selects_by_payload, shortest, static_length,
};
use super::follow::Following;
use super::state::{Counts, Pending, State};
use super::{Here, Specialiser};
use crate::flow::{Arg, Block, End, Op, Value};
use crate::layout::{condition_key, conditional_groups, low_bits};
use crate::rule::{Item, ItemId, Part, Place, Reach, Slot, SlotId};

/// Loads of the header at the cursor that are already made on this way.
#[derive(Clone, Default)]
pub(super) struct Loaded(HashMap<(u32, Size), Value>);

impl<'h> Parsing<'h> {
    /// A header of which nothing is known.
    pub(super) fn new(place: Place, header: &'h Header) -> Self {
        Parsing {
            place,
            header,
            needs: None,
            enclosed: false,
            base: None,
            checked: 0,
            loaded: Loaded::default(),
            length: Arg::Const(0),
            end_matters: false,
            content: None,
            guarded: Vec::new(),
            decided: Vec::new(),
            behind: Vec::new(),
            wanted: Vec::new(),
        }
    }

    /// Whether it is known that `condition` holds, or that it does not.
    pub(super) fn is_decided(&self, condition: &Expr) -> Option<bool> {
        if self.decided.is_empty() {
            return None;
        }
        let key = condition_key(condition);
        self.decided.iter().find(|(known, _)| *known == key).map(|&(_, holds)| holds)
    }
}

impl Loaded {
    /// Whether that load is made.
    pub(super) fn has(&self, offset: u32, size: Size) -> bool {
        self.0.contains_key(&(offset, size))
    }
}

/// A header that is being parsed.
#[derive(Clone)]
pub(super) struct Parsing<'h> {
    pub(super) place: Place,
    pub(super) header: &'h Header,
    /// How many bytes make it present, if it may be cut.
    pub(super) needs: Option<u32>,
    /// Whether `left` holds.
    pub(super) enclosed: bool,
    /// Where it starts, behind the cursor; none: there.
    pub(super) base: Option<Value>,
    /// Bytes from its start that are known to exist.
    pub(super) checked: u32,
    pub(super) loaded: Loaded,
    pub(super) length: Arg,
    /// Whether something ahead asks where it ends.
    pub(super) end_matters: bool,
    /// How many bytes from its start on it claims, once that is computed.
    pub(super) content: Option<Value>,
    /// Fields that are not always there, but are on this way.
    pub(super) guarded: Vec<FieldIndex>,
    /// Conditions on its fields that hold or do not hold on this way, by their [`condition_key`].
    pub(super) decided: Vec<(String, bool)>,
    /// Bytes of the payload that were read on this way.
    pub(super) behind: Vec<((u32, u32), Value)>,
    /// The header's loads that rules ahead read as well.
    pub(super) wanted: Vec<(u32, Size, SlotId)>,
}

/// Headers of at most that length lie, with what is read behind them, in what any access strategy reaches.
pub(super) const NEAR: u64 = 64;

impl<'a> Specialiser<'a> {
    pub(super) fn parse_header(&mut self, place: Place, enclosed: bool, counts: Counts, here: &Here) {
        let mut parsing = self.parsing(place, enclosed, here);
        let short = self.malformed_block(place, here);
        self.fits(&mut parsing, short);
        let here = &self.tell_claims(&mut parsing, here);
        self.remember_cited(&mut parsing, here);
        let broken = self.malformed_block(place, here);
        if let Some(next) = self.only_leads_on(place, enclosed, here) {
            let following = Following { place, next, enclosed, counts, taken: Vec::new() };
            return self.dispatch(parsing, &following, true, here);
        }
        self.is_valid(&mut parsing, broken, here);
        self.is_whole(&mut parsing, broken);
        let mut state = here.rest.clone();
        self.now_present(&mut parsing, &mut state, counts, here);
        let parts = self.needed_parts(place, here);
        self.resolve_parts(&parts, parsing, state, here);
    }

    /// Where nothing ahead asks of the header at `place` but what follows one of its `next` lines: that line.
    /// A header that is broken and one that selects nothing then come to the same, so selecting comes first.
    fn only_leads_on(&self, place: Place, enclosed: bool, here: &Here) -> Option<usize> {
        let elsewhere = |pending: &Pending| self.outlook.can_open(pending, place.scope);
        if here.rest.pending.iter().any(elsewhere) {
            return None;
        }
        let asked = here.needs.items.iter().any(|item| self.owner(ItemId::new(item)) == Some(place));
        let malformed = here.needs.ask_malformed(place.scope, place.header);
        let lengths = [Slot::HeaderLength(place), Slot::PayloadLength(place), Slot::Truncated(place)];
        if asked || malformed || !self.needed_slots(here, |slot| lengths.contains(slot)).is_empty() {
            return None;
        }
        let header = self.outlook.graph.header(place.header);
        let mut matter = (0..header.next.len()).filter(|&next| {
            let follow = Pending::Follow { place, next, enclosed, counts: Vec::new(), taken: Vec::new() };
            self.outlook.matters(&follow, &here.needs, &here.rest.opened)
        });
        let only = matter.next()?;
        // Behind the header is only where it is known to end.
        (matter.next().is_none() && !selects_by_payload(&header.next[only])).then_some(only)
    }

    pub(super) fn shortest(&self, scope: Scope, header: HeaderId) -> u32 {
        let graph = self.outlook.graph;
        shortest(graph.header(header), graph.program.needs(header, scope))
    }

    /// Starts on the header at `place`.
    pub(super) fn parsing(&self, place: Place, enclosed: bool, here: &Here) -> Parsing<'a> {
        let wanted =
            self.needed_slots(here, |slot| matches!(slot, Slot::Bytes { place: of, .. } if *of == place));
        let wanted = wanted.into_iter().filter_map(|id| match self.outlook.rules.slots[id] {
            Slot::Bytes { offset, size, .. } => Some((offset, size, id)),
            Slot::Payload { .. }
            | Slot::HeaderLength(_)
            | Slot::PayloadLength(_)
            | Slot::Truncated(_)
            | Slot::Member { .. }
            | Slot::OptionLength { .. }
            | Slot::OptionBytes { .. } => None,
        });
        Parsing {
            needs: self.outlook.graph.program.needs(place.header, place.scope),
            enclosed,
            end_matters: self.end_matters(place, here),
            wanted: wanted.collect(),
            ..Parsing::new(place, self.outlook.graph.header(place.header))
        }
    }

    /// Whether something ahead asks for what lies behind the header at `place`.
    fn end_matters(&self, place: Place, here: &Here) -> bool {
        let behind = |slot: &Slot| match slot {
            Slot::Payload { place: of, .. } => *of == place,
            Slot::HeaderLength(of) | Slot::PayloadLength(of) | Slot::Truncated(of) => *of == place,
            Slot::Bytes { .. }
            | Slot::Member { .. }
            | Slot::OptionLength { .. }
            | Slot::OptionBytes { .. } => false,
        };
        let follows = |next: usize| {
            let (counts, taken) = (Vec::new(), Vec::new());
            let follow = Pending::Follow { place, next, enclosed: false, counts, taken };
            self.outlook.matters(&follow, &here.needs, &here.rest.opened)
        };
        let header = self.outlook.graph.header(place.header);
        let by_length = |(_, part): &(ItemId, Part)| matches!(part.reach, Reach::Whole { .. });
        !self.needed_slots(here, behind).is_empty()
            || self.needed_parts(place, here).iter().any(by_length)
            || !self.needed_options(place, here).is_empty()
            || (0..header.next.len()).any(follows)
    }

    /// Where the parse goes on when the header at `place` is malformed.
    pub(super) fn malformed_block(&mut self, place: Place, here: &Here) -> Block {
        let mut state = here.rest.clone();
        state.malformed.push(place);
        self.block_for(here.decision, state)
    }

    /// Goes on in a new block only if the header at the cursor fits and is valid; sets its length.
    pub(super) fn fits_and_valid(&mut self, parsing: &mut Parsing<'_>, broken: Block, here: &Here) {
        self.fits(parsing, broken);
        self.is_valid(parsing, broken, here);
        self.is_whole(parsing, broken);
    }

    /// Goes on in a new block only if the least of the header is there.
    fn fits(&mut self, parsing: &mut Parsing<'_>, broken: Block) {
        let shortest = shortest(parsing.header, parsing.needs);
        if shortest > 0 {
            self.must_fit(parsing, Arg::Const(u64::from(shortest)), broken);
            parsing.checked = shortest;
        }
    }

    /// Keeps the fields that declarations of headers behind this one speak of.
    fn remember_cited(&mut self, parsing: &mut Parsing<'_>, here: &Here) {
        let (graph, place) = (self.outlook.graph, parsing.place);
        let cited = graph.cited(place.header).filter(|&(reader, _)| {
            let (place, counts) = (Place { header: reader, ..place }, Counts::new());
            let pending = Pending::Header { place, enclosed: false, counts };
            self.outlook.matters(&pending, &here.needs, &here.rest.opened)
        });
        let mut fields: Vec<FieldIndex> = cited.map(|(_, field)| field).collect();
        fields.dedup();
        for field in fields {
            let dst = self.remembered(place, field);
            let src = self.own_field(parsing, field);
            self.op(Op::Copy { dst, src });
        }
    }

    /// Tells counters what the outermost header with a length claims, whether it is valid or not.
    fn tell_claims(&mut self, parsing: &mut Parsing<'_>, here: &Here) -> Here {
        let mut here = here.clone();
        if self.claims && !parsing.enclosed && !parsing.header.claims.is_empty() {
            parsing.content = self.content(parsing, &here);
            parsing.content.into_iter().for_each(|content| self.op(Op::Claims { content }));
            here.rest.claimed = true;
        }
        here
    }

    /// Goes on in a new block only if the header's `valid` clauses hold and its length is one; sets its length.
    pub(super) fn is_valid(&mut self, parsing: &mut Parsing<'_>, broken: Block, here: &Here) {
        for condition in &parsing.header.valid {
            let ok = self.new_block();
            let (checked, loaded) = (parsing.checked, parsing.loaded.clone());
            self.reach_own(parsing, condition, ok);
            self.own_condition(parsing, condition, ok, broken, here);
            self.current = ok;
            if parsing.checked != checked {
                (parsing.checked, parsing.loaded) = (checked, loaded);
            }
        }
        parsing.length = self.own_length(parsing, broken, here);
    }

    /// Goes on in a new block only if the fields that `condition` reads are there: where a header may be cut
    /// (`needs`), what asks for more is not asked.
    fn reach_own(&mut self, parsing: &mut Parsing<'_>, condition: &Expr, cut: Block) {
        let end = own_end(parsing.header, condition);
        if end > parsing.checked {
            self.must_fit(parsing, Arg::Const(u64::from(end)), cut);
            parsing.checked = end;
        }
    }

    /// Goes on in a new block only if all of the header is there.
    pub(super) fn is_whole(&mut self, parsing: &mut Parsing<'_>, broken: Block) {
        let known = Arg::Const(u64::from(shortest(parsing.header, parsing.needs)));
        if parsing.needs.is_none() && parsing.length != known {
            self.must_fit(parsing, parsing.length, broken);
            if let Arg::Const(length) = parsing.length {
                parsing.checked = parsing.checked.max(length as u32);
            }
        }
    }

    /// `bytes` from the cursor on must exist and be claimed.
    pub(super) fn must_fit(&mut self, parsing: &Parsing<'_>, bytes: Arg, short: Block) {
        // What is not claimed is asked first: that it lies in the packet may have to be asked twice.
        if parsing.enclosed {
            self.leave_if(self.left, Condition::Slt, bytes, short);
        }
        let ok = self.new_block();
        self.end(End::Check { base: None, bytes, ok, short });
        self.current = ok;
    }

    /// The header's length in bytes, as its fields say.
    fn own_length(&mut self, parsing: &mut Parsing<'_>, broken: Block, here: &Here) -> Arg {
        let header = parsing.header;
        if let Some(length) = static_length(header) {
            return Arg::Const(length);
        }
        let fixed = u64::from(header.fixed_bytes);
        let Some(length) = &header.length else {
            let whole = parsing.needs.is_none();
            return if whole || parsing.end_matters {
                let length = self.header_values(parsing.place).length;
                self.length_of_fields(parsing, length, here);
                Arg::Value(length)
            } else {
                Arg::Const(fixed)
            };
        };
        if own_end(header, length) > parsing.checked {
            return self.length_that_may_be_cut(parsing, length, broken, here);
        }
        self.declared_length(parsing, length, broken, here)
    }

    /// Of a header that may be cut before what says its length: all that there is, where it is. What follows such a
    /// header starts at the end of all, so that length moves the cursor.
    fn length_that_may_be_cut(
        &mut self,
        parsing: &mut Parsing<'_>,
        length: &Expr,
        broken: Block,
        here: &Here,
    ) -> Arg {
        if !parsing.end_matters {
            return Arg::Const(u64::from(parsing.header.fixed_bytes));
        }
        let (cut, join, checked) = (self.new_block(), self.new_block(), parsing.checked);
        let loaded = parsing.loaded.clone();
        self.reach_own(parsing, length, cut);
        let result = self.declared_length(parsing, length, broken, here);
        self.end(End::Goto(join));
        self.current = cut;
        let dst = self.header_values(parsing.place).length;
        self.op(Op::Remaining { dst });
        if parsing.enclosed {
            self.at_most(dst, self.left);
        }
        // The bytes that were asked for are not all there, so this takes nothing off; the verifier sees a bound.
        let missed = u64::from(own_end(parsing.header, length)).saturating_sub(1);
        let right = Arg::Const(low_bits(64 - missed.leading_zeros()));
        self.op(Op::Alu { op: AluOp::And, dst, left: dst, right });
        self.end(End::Goto(join));
        self.current = join;
        (parsing.checked, parsing.loaded) = (checked, loaded);
        result
    }

    fn declared_length(
        &mut self,
        parsing: &mut Parsing<'_>,
        length: &Expr,
        broken: Block,
        here: &Here,
    ) -> Arg {
        let header = parsing.header;
        let fixed = u64::from(header.fixed_bytes);
        let (smallest, largest) = (least(header, Some(length)), most(header, Some(length)));
        self.guard(parsing, length, broken, here);
        let src = self.own_number(parsing, length);
        let length = self.header_values(parsing.place).length;
        self.op(Op::Copy { dst: length, src });
        if smallest < fixed {
            self.leave_if(length, Condition::Lt, Arg::Const(fixed), broken);
        }
        if largest > LONGEST_HEADER {
            self.leave_if(length, Condition::Gt, Arg::Const(LONGEST_HEADER), broken);
        }
        Arg::Value(length)
    }

    /// Goes on in a new block only if that comparison does not hold.
    pub(super) fn leave_if(&mut self, left: Value, condition: Condition, right: Arg, then: Block) {
        let (otherwise, width) = (self.new_block(), Width::W64);
        self.end(End::Branch { condition, width, left, right, then, otherwise });
        self.current = otherwise;
    }

    /// `dst` = how many bytes the fields take that are there.
    pub(super) fn length_of_fields(&mut self, parsing: &mut Parsing<'_>, dst: Value, here: &Here) {
        let header = parsing.header;
        let fixed = u64::from(header.fixed_bytes);
        let groups = conditional_groups(header);
        let sum = self.value("");
        self.op(Op::Copy { dst: sum, src: Arg::Const(fixed) });
        for (first, bits) in groups {
            let Some(when) = &header.fields[first].when else { continue };
            let (there, join) = (self.new_block(), self.new_block());
            self.own_condition(parsing, when, there, join, here);
            self.current = there;
            let right = Arg::Const(u64::from(bits / 8));
            self.op(Op::Alu { op: AluOp::Add, dst: sum, left: sum, right });
            self.end(End::Goto(join));
            self.current = join;
        }
        // A sum that grows tells no bound of itself.
        let right = Arg::Const(low_bits(64 - longest(header).leading_zeros()));
        self.op(Op::Alu { op: AluOp::And, dst, left: sum, right });
    }

    /// Notes that the header is present: loads what is needed of it, and makes what follows it pending.
    fn now_present(&mut self, parsing: &mut Parsing<'_>, state: &mut State, counts: Counts, here: &Here) {
        let place = parsing.place;
        if place.scope != Scope::default() && !state.opened.contains(&place.scope) {
            state.opened.push(place.scope);
            state.opened.sort_unstable();
        }
        if let Some(item) = self.item_of(place) {
            state.present.insert(item.index());
            self.load_slots(parsing, item, here);
        }
        self.load_lengths(parsing, here);
        let enclosed = parsing.enclosed;
        let options = parsing.header.options.iter().map(|_| Pending::Options { place, enclosed });
        let follows: Vec<Pending> = options
            .chain((0..parsing.header.next.len()).map(|next| {
                let counts = counts.clone();
                Pending::Follow { place, next, enclosed, counts, taken: Vec::new() }
            }))
            .filter(|follow| self.outlook.matters(follow, &here.needs, &state.opened))
            .collect();
        if follows.is_empty() {
            return;
        }
        let values = self.header_values(place);
        if follows.len() > 1 || !state.pending.is_empty() {
            self.op(Op::Position { dst: values.position });
            if parsing.enclosed {
                self.op(Op::Copy { dst: values.left, src: Arg::Value(self.left) });
            }
            self.look_alike(parsing, values.left);
        }
        state.cursor = Some(place);
        // What follows this header comes before what other branches left behind.
        state.pending.splice(0..0, follows);
    }

    /// What is kept of the header for later tells the verifier nothing of the way here but what bounds the cursor.
    fn look_alike(&mut self, parsing: &Parsing<'_>, left: Value) {
        if !self.sparing {
            return;
        }
        if let Arg::Value(length) = parsing.length {
            self.forget(length, parsing.length, length_mask(parsing.header, parsing.needs.is_some()));
        }
        if parsing.enclosed {
            self.forget(left, Arg::Value(left), u64::MAX);
        }
    }

    pub(super) fn item_of(&self, place: Place) -> Option<ItemId> {
        let items = &self.outlook.rules.items;
        items.iter().find(|(_, item)| matches!(item, Item::Header(at) if *at == place)).map(|(id, _)| id)
    }

    /// Loads the slots that hang on `item` and are read ahead.
    pub(super) fn load_slots(&mut self, parsing: &mut Parsing<'_>, item: ItemId, here: &Here) {
        for slot in self.needed_slots(here, |slot| hangs_on(slot, item)) {
            match self.outlook.rules.slots[slot] {
                Slot::Bytes { offset, size, .. } => {
                    let dst = self.slot(slot);
                    match parsing.loaded.0.get(&(offset, size)) {
                        Some(&src) if src != dst => self.op(Op::Copy { dst, src: Arg::Value(src) }),
                        Some(_) => {}
                        None => self.op(Op::Read { dst, offset, size }),
                    }
                    parsing.loaded.0.insert((offset, size), dst);
                }
                Slot::Payload { offset, size, .. } => {
                    let dst = self.slot(slot);
                    match parsing.length {
                        Arg::Const(length) => self.op(Op::Read { dst, offset: offset + length as u32, size }),
                        Arg::Value(base) => self.op(Op::ReadAt { dst, base, offset, size }),
                    }
                }
                Slot::HeaderLength(_)
                | Slot::PayloadLength(_)
                | Slot::Truncated(_)
                | Slot::Member { .. }
                | Slot::OptionLength { .. }
                | Slot::OptionBytes { .. } => {}
            }
        }
    }

    /// Lets `slot` have a value, which nobody asks for before it gets another.
    pub(super) fn clear_slot(&mut self, slot: SlotId) {
        let (dst, size) = (self.slot(slot), self.slot_size(slot));
        self.forget(dst, Arg::Const(0), low_bits(size.bytes() * 8));
    }

    pub(super) fn needed_slots(&self, here: &Here, wanted: impl Fn(&Slot) -> bool) -> Vec<SlotId> {
        let slots = here.needs.slots.iter().map(SlotId::new);
        slots.filter(|&slot| wanted(&self.outlook.rules.slots[slot])).collect()
    }

    /// How many bytes from the header's start on are claimed for header and content, by itself and by what
    /// encloses it; `None` if nothing claims any.
    pub(super) fn content(&mut self, parsing: &mut Parsing<'_>, here: &Here) -> Option<Value> {
        if parsing.header.claims.is_empty() {
            return parsing.enclosed.then_some(self.left);
        }
        if parsing.content.is_some() {
            return parsing.content;
        }
        /// More than any packet holds.
        const ENDLESS: u64 = 1 << 30;
        let unclaimed = if parsing.enclosed { Arg::Value(self.left) } else { Arg::Const(ENDLESS) };
        let content = self.claimed(parsing, unclaimed, here);
        if parsing.enclosed {
            self.at_most(content, self.left);
        }
        Some(content)
    }

    /// How many bytes from its start on the header itself claims; `unclaimed` where it claims none.
    fn claimed(&mut self, parsing: &mut Parsing<'_>, unclaimed: Arg, here: &Here) -> Value {
        let header = parsing.header;
        let content = self.value("content");
        let done = self.new_block();
        for claim in &header.claims {
            let otherwise = self.new_block();
            let before = parsing.loaded.clone();
            if let Some(when) = &claim.when {
                let holds = self.new_block();
                self.own_condition(parsing, when, holds, otherwise, here);
                self.current = holds;
            }
            let src = self.own_number(parsing, &claim.value);
            self.op(Op::Copy { dst: content, src });
            self.end(End::Goto(done));
            if claim.when.is_none() {
                self.current = done;
                return content;
            }
            parsing.loaded = before;
            self.current = otherwise;
        }
        self.op(Op::Copy { dst: content, src: unclaimed });
        self.end(End::Goto(done));
        self.current = done;
        content
    }

    /// Computes the needed lengths of the header's payload.
    pub(super) fn load_lengths(&mut self, parsing: &mut Parsing<'_>, here: &Here) {
        let place = parsing.place;
        let lengths = [Slot::HeaderLength(place), Slot::PayloadLength(place), Slot::Truncated(place)];
        for slot in self.needed_slots(here, |slot| lengths.contains(slot)) {
            let dst = self.slot(slot);
            match self.outlook.rules.slots[slot] {
                Slot::HeaderLength(_) => self.forget(dst, parsing.length, LONGEST_HEADER),
                Slot::Truncated(_) => self.truncated(dst, parsing, here),
                _ => {
                    let content = self.content(parsing, here);
                    self.payload_length(dst, content, parsing.length);
                }
            }
        }
    }

    fn truncated(&mut self, dst: Value, parsing: &mut Parsing<'_>, here: &Here) {
        self.op(Op::Copy { dst, src: Arg::Const(0) });
        if parsing.header.claims.is_empty() {
            return;
        }
        let content = self.claimed(parsing, Arg::Const(0), here);
        let join = self.new_block();
        let remaining = self.beyond_reach(content, join);
        let cut = self.new_block();
        let (condition, width, right) = (Condition::Slt, Width::W64, Arg::Value(content));
        self.end(End::Branch { condition, width, left: remaining, right, then: cut, otherwise: join });
        self.current = cut;
        self.op(Op::Copy { dst, src: Arg::Const(1) });
        self.end(End::Goto(join));
        self.current = join;
    }

    fn payload_length(&mut self, dst: Value, content: Option<Value>, length: Arg) {
        match content {
            Some(content) => {
                let join = self.new_block();
                self.op(Op::Copy { dst, src: Arg::Value(content) });
                let remaining = self.beyond_reach(content, join);
                self.at_most(dst, remaining);
                self.end(End::Goto(join));
                self.current = join;
            }
            None => self.op(Op::Remaining { dst }),
        }
        self.op(Op::Alu { op: AluOp::Sub, dst, left: dst, right: length });
        let (negative, join) = (self.new_block(), self.new_block());
        let (condition, width) = (Condition::Slt, Width::W64);
        self.end(End::Branch {
            condition,
            width,
            left: dst,
            right: Arg::Const(0),
            then: negative,
            otherwise: join,
        });
        self.current = negative;
        self.op(Op::Copy { dst, src: Arg::Const(0) });
        self.end(End::Goto(join));
        self.current = join;
    }

    /// Goes on in a new block only where `content` passes what is known to be there, and asks how much is.
    fn beyond_reach(&mut self, content: Value, within: Block) -> Value {
        let (reachable, remaining) = (self.value("reachable"), self.value("remaining"));
        self.op(Op::Reachable { dst: reachable });
        let beyond = self.new_block();
        let (condition, width, right) = (Condition::Sgt, Width::W64, Arg::Value(reachable));
        self.end(End::Branch { condition, width, left: content, right, then: beyond, otherwise: within });
        self.current = beyond;
        self.op(Op::Remaining { dst: remaining });
        remaining
    }

    fn at_most(&mut self, dst: Value, limit: Value) {
        let (cut, join) = (self.new_block(), self.new_block());
        let (condition, width) = (Condition::Sgt, Width::W64);
        self.end(End::Branch {
            condition,
            width,
            left: dst,
            right: Arg::Value(limit),
            then: cut,
            otherwise: join,
        });
        self.current = cut;
        self.op(Op::Copy { dst, src: Arg::Value(limit) });
        self.end(End::Goto(join));
        self.current = join;
    }

    /// A load of the header at the cursor, made once on each way.
    pub(super) fn load(&mut self, parsing: &mut Parsing<'_>, offset: u32, size: Size) -> Value {
        if let Some(&value) = parsing.loaded.0.get(&(offset, size)) {
            return value;
        }
        let wanted = parsing.wanted.iter().find(|(at, of, _)| (*at, *of) == (offset, size));
        let dst = match wanted {
            Some(&(_, _, slot)) => self.slot(slot),
            None => self.value(""),
        };
        self.op(match parsing.base {
            Some(base) => Op::ReadAt { dst, base, offset, size },
            None => Op::Read { dst, offset, size },
        });
        parsing.loaded.0.insert((offset, size), dst);
        dst
    }
}

/// Whether `slot` is bytes that are there where `item` is.
pub(super) fn hangs_on(slot: &Slot, item: ItemId) -> bool {
    match slot {
        Slot::Bytes { item: of, .. }
        | Slot::Payload { item: of, .. }
        | Slot::OptionLength { item: of, .. }
        | Slot::OptionBytes { item: of, .. } => *of == item,
        Slot::HeaderLength(_) | Slot::PayloadLength(_) | Slot::Truncated(_) | Slot::Member { .. } => false,
    }
}
