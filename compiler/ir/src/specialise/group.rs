//! A repeating union: members in any order, as a loop.
//!
//! Which members come, and in which order, only the packet knows; so what rules ask of them is stored in values
//! that start as opaque zeros, and is recalled behind the loop ([`Specialiser::recall`]). Members of one shape
//! share their code; all shapes meet before the cursor moves, so that the kernel's verifier sees one state a turn.

use std::collections::BTreeMap;

use cranelift_entity::EntityRef;
use pktc_bpf::{AluOp, Condition, Width};
use pktc_semantics::typed::{
    Expr, ExprKind, Header, HeaderId, Next, NextKind, Options, Scope, Target, UnionFieldKind, UnionId,
};

use super::bounds::shortest;
use super::options::{Asked, Turns};
use super::parse::{Parsing, hangs_on};
use super::state::{Counts, Pending, State};
use super::{Here, Specialiser};
use crate::flow::{Arg, Block, End, Op, Value};
use crate::graph::Scoped;
use crate::layout::{condition_key, low_bits};
use crate::rule::{Item, ItemId, Part, Place, Slot, SlotId};

/// Of flags and counts up to a union's `repeats` nobody knows more than that.
pub(super) const FLAG: u64 = 0xff;

/// What headers claim of a packet is less, and what is left of it is not below zero.
const LEFT: u64 = 0x7fff_ffff;

/// The loop that is being built.
struct Loop {
    union: UnionId,
    scope: Scope,
    enclosed: bool,
    /// Turns so far.
    count: Value,
    /// Options in all its lists so far, where rules ask for some.
    options: Option<Turns>,
    /// Members of each kind so far, where rules ask for them.
    seen: BTreeMap<HeaderId, Value>,
    /// The current member's length.
    length: Value,
    /// Where the cursor moves on, with `length` and `kind` set.
    step: Block,
    /// A member does not fit, is not valid, or is one too many.
    bad: Block,
    /// A member lets nothing follow.
    stopped: Block,
}

/// Members that share their code.
struct Shape {
    members: Vec<(u64, HeaderId)>,
}

impl Specialiser<'_> {
    pub(super) fn parse_group(
        &mut self,
        first: Place,
        union: UnionId,
        enclosed: bool,
        counts: Counts,
        here: &Here,
    ) {
        let canon = self.new_block();
        let lost = self.block_for(here.decision, State { cursor: None, ..here.rest.clone() });
        self.end(End::Canon { ok: canon, short: lost });
        self.current = canon;
        let entry = canon;
        let (head, step, bad, stopped) =
            (self.new_block(), self.new_block(), self.new_block(), self.new_block());
        let (count, length) = (self.value("count"), self.value("member.length"));
        let mut group = Loop {
            union,
            scope: first.scope,
            enclosed,
            count,
            options: None,
            seen: BTreeMap::new(),
            length,
            step,
            bad,
            stopped,
        };
        self.current = entry;
        if enclosed {
            // Claimed or not: the verifier sees one state.
            self.forget(self.left, Arg::Value(self.left), LEFT);
        }
        self.start_values(&mut group, here);
        self.end(End::Goto(head));

        self.current = head;
        self.one_more_member(&group);
        let shapes = self.shapes(&group, here);
        self.turn(&group, &shapes, here);
        self.step(&group, head, counts, here);
        self.current = bad;
        self.bad_member(&group, here);
        self.current = stopped;
        let state = self.behind(&group, here);
        let block = self.block_for(here.decision, state);
        self.end(End::Goto(block));
    }

    /// Goes on in a new block only if one more member may come.
    fn one_more_member(&mut self, group: &Loop) {
        let (count, repeats) = (group.count, Arg::Const(self.repeats(group)));
        match group.options {
            Some(Turns::Fuelled { fuel, most, .. }) => {
                let known = self.unlinked(count);
                self.leave_if(known, Condition::Ge, repeats, group.bad);
                self.count_unknown(count);
                self.burn(fuel, most, group.bad);
            }
            Some(Turns::Counted(_)) | None => {
                self.leave_if(count, Condition::Ge, repeats, group.bad);
                self.op(Op::Alu { op: AluOp::Add, dst: count, left: count, right: Arg::Const(1) });
            }
        }
    }

    /// How many members may follow each other.
    fn repeats(&self, group: &Loop) -> u64 {
        u64::from(self.outlook.graph.program.unions[group.union].repeats.unwrap_or(1))
    }

    /// Where the kinds of a group's members lead: by the first member's selector, which all members share.
    fn member_values(&self, union: UnionId) -> BTreeMap<u64, HeaderId> {
        let graph = self.outlook.graph;
        let members = &graph.program.unions[union].members;
        let nexts = members.iter().flat_map(|&member| &graph.header(member).next);
        let stays = |target: &Target| target.scope.is_none() && members.contains(&target.header);
        let edges = nexts.flat_map(crate::graph::edges).filter(|(_, target)| stays(target));
        edges.filter_map(|(value, target)| Some((value?, target.header))).collect()
    }

    /// Members alike in all that their code does come together, unless rules ask for them by name.
    fn shapes(&self, group: &Loop, here: &Here) -> Vec<Shape> {
        let mut shapes: Vec<(String, Shape)> = Vec::new();
        for (value, member) in self.member_values(group.union) {
            let header = self.outlook.graph.header(member);
            let mut key = shape_key(header);
            if !self.items_of((group.scope, member), here).is_empty() {
                key.push_str(&header.name);
            } else if let (Some(options), Some(_)) = (&header.options, group.options) {
                key.push_str(&options_key(options));
            }
            match shapes.iter_mut().find(|(known, _)| *known == key) {
                Some((_, shape)) => shape.members.push((value, member)),
                None => shapes.push((key, Shape { members: vec![(value, member)] })),
            }
        }
        // The shape that most share is walked first by the verifier: the others then are covered by it.
        shapes.sort_by_key(|(_, shape)| std::cmp::Reverse(shape.members.len()));
        shapes.into_iter().map(|(_, shape)| shape).collect()
    }

    fn items_of(&self, header: Scoped, here: &Here) -> Vec<ItemId> {
        let items = here.needs.items.iter().map(ItemId::new);
        items.filter(|&item| self.owner(item).is_some_and(|place| place.scoped() == header)).collect()
    }

    pub(super) fn owner(&self, item: ItemId) -> Option<Place> {
        match &self.outlook.rules.items[item] {
            Item::Header(place) | Item::Option { place, .. } | Item::BrokenOptions(place) => Some(*place),
            Item::Part(part) => Some(part.place),
            Item::Member { .. } => None,
        }
    }

    /// The items that the loop decides.
    fn group_items(&self, group: &Loop, here: &Here) -> Vec<ItemId> {
        let members = &self.outlook.graph.program.unions[group.union].members;
        let items = here.needs.items.iter().map(ItemId::new);
        items
            .filter(|&item| match &self.outlook.rules.items[item] {
                Item::Header(place) => place.scope == group.scope && members.contains(&place.header),
                Item::Part(Part { place, .. }) => {
                    place.scope == group.scope && members.contains(&place.header)
                }
                Item::Member { scope, union, .. } => (*scope, *union) == (group.scope, group.union),
                Item::Option { place, .. } | Item::BrokenOptions(place) => {
                    place.scope == group.scope && self.may_have_options_in(place.header, members)
                }
            })
            .collect()
    }

    pub(super) fn stored(&mut self, item: ItemId) -> Value {
        if let Some(value) = self.items[item] {
            return value;
        }
        let value = self.value(format!("{item}"));
        self.items[item] = Some(value);
        value
    }

    fn start_values(&mut self, group: &mut Loop, here: &Here) {
        let items = self.group_items(group, here);
        self.op(Op::Copy { dst: group.count, src: Arg::Const(0) });
        if items.iter().any(|&item| self.outlook.rules.items[item].in_options_of().is_some()) {
            self.start_options(group);
        }
        for item in items {
            self.store_absent(item);
            let members = &self.outlook.graph.program.unions[group.union].members;
            if let Some(place) = self.owner(item)
                && members.contains(&place.header)
                && !group.seen.contains_key(&place.header)
            {
                let dst = self.value(format!("{}.count", self.outlook.graph.header(place.header).name));
                self.forget(dst, Arg::Const(0), FLAG);
                group.seen.insert(place.header, dst);
            }
        }
        let stored = self.group_slots(group, here);
        for slot in stored {
            self.clear_slot(slot);
        }
    }

    /// Counts the options of all lists together: were each list counted by itself, the verifier would walk each turn of
    /// it in each turn of the group.
    fn start_options(&mut self, group: &mut Loop) {
        let (turns, fuel) = (self.value("option.turns"), self.value("fuel"));
        self.forget(turns, Arg::Const(0), FLAG);
        self.forget(group.count, Arg::Const(0), FLAG);
        self.op(Op::Copy { dst: fuel, src: Arg::Const(0) });
        let most = self.repeats(group) + Options::MOST as u64;
        group.options = Some(Turns::Fuelled { turns, fuel, most });
    }

    fn group_slots(&self, group: &Loop, here: &Here) -> Vec<SlotId> {
        let members = &self.outlook.graph.program.unions[group.union].members;
        self.needed_slots(here, |slot| match slot {
            Slot::Bytes { place, .. }
            | Slot::Payload { place, .. }
            | Slot::HeaderLength(place)
            | Slot::PayloadLength(place)
            | Slot::Truncated(place) => place.scope == group.scope && members.contains(&place.header),
            Slot::Member { scope, union, .. } => (*scope, *union) == (group.scope, group.union),
            Slot::OptionLength { place, .. } | Slot::OptionBytes { place, .. } => {
                place.scope == group.scope && self.may_have_options_in(place.header, members)
            }
        })
    }

    /// Whether the options of `header` may stand in the lists of one of `members`.
    fn may_have_options_in(&self, header: HeaderId, members: &[HeaderId]) -> bool {
        self.outlook.graph.option_holders(header).any(|holder| members.contains(&holder))
    }

    /// What is asked of the option list of a member of that kind.
    fn asked_of_list(&self, group: &Loop, member: HeaderId, here: &Here) -> Vec<Asked> {
        let items = here.needs.items.iter().map(ItemId::new);
        let asked = items.filter_map(|item| {
            let place = self.outlook.rules.items[item].in_options_of()?;
            let may = place.scope == group.scope && self.may_have_options_in(place.header, &[member]);
            let is_one = place.header == member && place.index != Place::LAST;
            let only = group.seen.get(&member).filter(|_| is_one).map(|&seen| (seen, u64::from(place.index)));
            may.then_some(Asked { item, only })
        });
        asked.collect()
    }

    /// One member: dispatches by its kind.
    fn turn(&mut self, group: &Loop, shapes: &[Shape], here: &Here) {
        let entries: Vec<Block> = shapes.iter().map(|_| self.new_block()).collect();
        for (shape, &entry) in shapes.iter().zip(&entries) {
            if std::ptr::eq(shape, &raw const shapes[shapes.len() - 1]) {
                self.end(End::Goto(entry));
                break;
            }
            let other = self.new_block();
            let values = crate::ranges::merge(shape.members.iter().map(|&(value, _)| (value, value)));
            self.in_ranges(self.kind, &values, Width::W32, entry, other);
            self.current = other;
        }
        for (shape, entry) in shapes.iter().zip(entries) {
            self.current = entry;
            self.member(group, shape, here);
        }
    }

    fn member(&mut self, group: &Loop, shape: &Shape, here: &Here) {
        let header = shape.members[0].1;
        let place = Place { scope: group.scope, header, index: 0 };
        let mut parsing = self.parsing(place, group.enclosed, here);
        parsing.wanted.clear();
        self.fits_and_valid(&mut parsing, group.bad, here);
        if !parsing.header.claims.is_empty() {
            self.not_yet("a repeating union whose members claim a length");
        }
        let [next] = parsing.header.next.as_slice() else {
            self.not_yet("a repeating union whose members have several `next` lines");
            return self.end(End::Goto(group.stopped));
        };
        self.record(group, shape, &mut parsing, here);
        self.op(Op::Copy { dst: group.length, src: parsing.length });
        self.next_kind(&mut parsing, next);
        match &next.when {
            Some(when) => self.own_condition(&mut parsing, when, group.step, group.stopped, here),
            None => self.end(End::Goto(group.step)),
        }
    }

    fn next_kind(&mut self, parsing: &mut Parsing<'_>, next: &Next) {
        let NextKind::By { value, .. } = &next.kind else {
            return self.not_yet("a repeating union whose members do not select by a value");
        };
        let src = self.own_number(parsing, value);
        self.op(Op::Copy { dst: self.kind, src });
    }

    /// Stores what rules ask of this member.
    fn record(&mut self, group: &Loop, shape: &Shape, parsing: &mut Parsing<'_>, here: &Here) {
        self.record_as_member(group, shape, parsing, here);
        let header = shape.members[0].1;
        if let Some(turns) = group.options {
            let asked = self.asked_of_list(group, header, here);
            self.start_last(header, &asked);
            self.read_options(parsing, asked, turns, here);
        }
        let Some(&seen) = group.seen.get(&header) else { return };
        let mut places: Vec<Place> = self
            .items_of((group.scope, header), here)
            .into_iter()
            .filter_map(|item| self.owner(item))
            .collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            if place.index == Place::LAST {
                self.record_last(group, place, parsing, here);
                continue;
            }
            let (this, other) = (self.new_block(), self.new_block());
            let left = self.unlinked(seen);
            let (condition, width, right) = (Condition::Eq, Width::W64, Arg::Const(u64::from(place.index)));
            self.end(End::Branch { condition, width, left, right, then: this, otherwise: other });
            self.current = this;
            let mut instance = self.parsing(place, group.enclosed, here);
            (instance.checked, instance.length) = (parsing.checked, parsing.length);
            instance.loaded = parsing.loaded.clone();
            self.record_instance(&mut instance, here);
            self.end(End::Goto(other));
            self.current = other;
        }
        self.op(Op::Alu { op: AluOp::Add, dst: seen, left: seen, right: Arg::Const(1) });
        self.forget(seen, Arg::Value(seen), FLAG);
    }

    /// What was stored of the options of the last of its kind is no more: here is another.
    fn start_last(&mut self, member: HeaderId, asked: &[Asked]) {
        for &Asked { item, .. } in asked {
            let place = self.outlook.rules.items[item].in_options_of();
            if place.is_some_and(|place| place.header == member && place.index == Place::LAST) {
                self.store_absent(item);
            }
        }
    }

    /// Stores the member in place of those of its kind before it.
    fn record_last(&mut self, group: &Loop, place: Place, parsing: &Parsing<'_>, here: &Here) {
        for item in self.items_of(place.scoped(), here) {
            let is_option = self.outlook.rules.items[item].in_options_of().is_some();
            if self.owner(item) == Some(place) && !is_option {
                self.store_absent(item);
            }
        }
        let mut instance = self.parsing(place, group.enclosed, here);
        (instance.checked, instance.length) = (parsing.checked, parsing.length);
        instance.loaded = parsing.loaded.clone();
        self.record_instance(&mut instance, here);
    }

    fn record_instance(&mut self, parsing: &mut Parsing<'_>, here: &Here) {
        let mut items = self.items_of(parsing.place.scoped(), here);
        items.retain(|&item| self.owner(item) == Some(parsing.place));
        items.retain(|&item| self.outlook.rules.items[item].in_options_of().is_none());
        for item in items {
            self.store_presence(parsing, item, here);
        }
        self.load_lengths(parsing, here);
    }

    /// Stores that `item` is absent, until it is found.
    pub(super) fn store_absent(&mut self, item: ItemId) {
        self.store_flag(item, 0);
    }

    /// Stores whether `item` is there.
    pub(super) fn store_flag(&mut self, item: ItemId, flag: u64) {
        let dst = self.stored(item);
        self.forget(dst, Arg::Const(flag), FLAG);
    }

    /// Stores that `item` is there, with its slots, if it is.
    pub(super) fn store_presence(&mut self, parsing: &mut Parsing<'_>, item: ItemId, here: &Here) {
        let part: Option<Part> = match &self.outlook.rules.items[item] {
            Item::Part(part) => Some(part.clone()),
            Item::Header(_) | Item::Member { .. } | Item::Option { .. } | Item::BrokenOptions(_) => None,
        };
        let join = self.new_block();
        let before = parsing.clone();
        match &part {
            Some(part) => self.take_part(parsing, item, part, join, here),
            None => self.load_slots(parsing, item, here),
        }
        self.unlink_slots(item, here);
        self.store_flag(item, 1);
        self.end(End::Goto(join));
        self.current = join;
        if part.is_some() {
            // Not on every way here.
            *parsing = before;
        }
    }

    /// What selects the next member must not tell the verifier what was stored.
    fn unlink_slots(&mut self, item: ItemId, here: &Here) {
        for slot in self.needed_slots(here, |slot| hangs_on(slot, item)) {
            self.unlink_slot(slot);
        }
    }

    /// What tests found out of a slot's value is forgotten.
    pub(super) fn unlink_slot(&mut self, slot: SlotId) {
        let (dst, size) = (self.slot(slot), self.slot_size(slot));
        self.forget(dst, Arg::Value(dst), low_bits(size.bytes() * 8));
    }

    /// Stores the member as the union's n-th and as its last.
    fn record_as_member(&mut self, group: &Loop, shape: &Shape, parsing: &mut Parsing<'_>, here: &Here) {
        for slot in self.group_slots(group, here) {
            let Slot::Member { index, field, .. } = self.outlook.rules.slots[slot] else { continue };
            let Some(value) = self.member_field(group, shape, field) else { continue };
            let mask = super::bounds::most(parsing.header, Some(&value));
            let src = self.own_number(parsing, &value);
            let dst = self.slot(slot);
            self.at_index(group, index, |this| this.forget(dst, src, mask));
        }
        for item in self.group_items(group, here) {
            let Item::Member { index, .. } = self.outlook.rules.items[item] else { continue };
            let dst = self.stored(item);
            self.at_index(group, Some(index), |this| this.forget(dst, Arg::Const(1), FLAG));
        }
    }

    /// Does `then` in the turn of the union's member `index`; `None`: in every turn.
    fn at_index(&mut self, group: &Loop, index: Option<u8>, then: impl FnOnce(&mut Self)) {
        let Some(index) = index else { return then(self) };
        let (this, other) = (self.new_block(), self.new_block());
        let left = if group.options.is_some() { self.unlinked(group.count) } else { group.count };
        let (condition, width, right) = (Condition::Eq, Width::W64, Arg::Const(u64::from(index) + 1));
        self.end(End::Branch { condition, width, left, right, then: this, otherwise: other });
        self.current = this;
        then(self);
        self.end(End::Goto(other));
        self.current = other;
    }

    /// The union's field as the shape's headers have it.
    fn member_field(&mut self, group: &Loop, shape: &Shape, field: usize) -> Option<Expr> {
        let (_, header) = shape.members[0];
        let union = &self.outlook.graph.program.unions[group.union];
        let UnionFieldKind::Member(fields) = &union.fields[field].kind else {
            self.not_yet("a computed field of a repeating union");
            return None;
        };
        let &own = fields.get(&header)?;
        let declared = &self.outlook.graph.header(header).fields[own];
        Some(Expr { kind: ExprKind::Own(own), ty: declared.ty.clone(), span: declared.span })
    }

    /// Moves behind the member: on to the next one, or out.
    fn step(&mut self, group: &Loop, head: Block, counts: Counts, here: &Here) {
        self.current = group.step;
        self.forget(group.length, Arg::Value(group.length), self.length_mask(group.union));
        let length = Arg::Value(group.length);
        if group.enclosed {
            self.op(Op::Alu { op: AluOp::Sub, dst: self.left, left: self.left, right: length });
            self.forget(self.left, Arg::Value(self.left), LEFT);
        }
        self.op(Op::Advance { by: length });
        let (canon, state) = (self.new_block(), self.behind(group, here));
        let lost = self.block_for(here.decision, state);
        self.end(End::Canon { ok: canon, short: lost });
        self.current = canon;
        let kinds =
            crate::ranges::merge(self.member_values(group.union).into_keys().map(|value| (value, value)));
        let upper = self.new_block();
        let kind = self.unlinked(self.kind);
        self.in_ranges(kind, &kinds, Width::W32, head, upper);
        self.current = upper;
        for (value, (scope, header)) in self.upper_headers(group, here) {
            let (entry, other) = (self.new_block(), self.new_block());
            self.if_kind(kind, value, entry, other);
            self.current = entry;
            let mut state = self.behind(group, here);
            let place = Place { scope, header, index: 0 };
            let counts = if scope == group.scope { counts.clone() } else { Counts::new() };
            state.cursor = Some(place);
            state.pending.insert(0, Pending::Header { place, enclosed: group.enclosed, counts });
            let block = self.block_for(here.decision, state);
            self.end(End::Goto(block));
            self.current = other;
        }
        let state = self.behind(group, here);
        let block = self.block_for(here.decision, state);
        self.end(End::Goto(block));
    }

    /// The bits that the length of a member can have.
    fn length_mask(&self, union: UnionId) -> u64 {
        let members = &self.outlook.graph.program.unions[union].members;
        let lengths = members.iter().map(|&member| {
            let header = self.outlook.graph.header(member);
            let (shortest, length) = (u64::from(shortest(header, header.needs)), header.length.as_ref());
            let zeros = length.map_or(shortest.trailing_zeros(), super::bounds::zeros);
            (super::bounds::most(header, length).max(shortest), zeros)
        });
        let (most, zeros) =
            lengths.fold((0, 64), |(most, zeros), (more, fewer)| (most.max(more), zeros.min(fewer)));
        low_bits(64 - most.leading_zeros()) & !low_bits(zeros)
    }

    /// A copy that the verifier does not connect with `value`: what tests of it find out must not tell turns apart.
    pub(super) fn unlinked(&mut self, value: Value) -> Value {
        let copy = self.value("");
        self.op(Op::Alu { op: AluOp::Or, dst: copy, left: value, right: Arg::Const(0) });
        copy
    }

    pub(super) fn forget(&mut self, dst: Value, src: Arg, mask: u64) {
        self.op(Op::Forget { dst, src, mask });
    }

    /// What can follow the group and matters.
    fn upper_headers(&self, group: &Loop, here: &Here) -> Vec<(u64, Scoped)> {
        let graph = self.outlook.graph;
        let members = &graph.program.unions[group.union].members;
        let nexts = members.iter().flat_map(|&member| &graph.header(member).next);
        let entered = |(value, target): (Option<u64>, Target)| {
            Some((value?, crate::graph::entered(group.scope, target)?))
        };
        let upper: BTreeMap<u64, Scoped> = nexts.flat_map(crate::graph::edges).filter_map(entered).collect();
        let matters = |(scope, header): Scoped| {
            let place = Place { scope, header, index: 0 };
            let pending = Pending::Header { place, enclosed: true, counts: Vec::new() };
            self.outlook.matters(&pending, &here.needs, &here.rest.opened)
                && (scope == group.scope || !here.rest.opened.contains(&scope))
        };
        let leaves = |(scope, header): Scoped| scope != group.scope || !members.contains(&header);
        upper.into_iter().filter(|&(_, to)| leaves(to) && matters(to)).collect()
    }

    /// A malformed member: which one, as far as rules tell them apart.
    fn bad_member(&mut self, group: &Loop, here: &Here) {
        let scope = group.scope;
        let mut classes: Vec<(Place, Vec<u64>)> = Vec::new();
        for (value, member) in self.member_values(group.union) {
            let place = Place { scope, header: member, index: 0 };
            let Some(class) = super::state::representative(place, &here.needs) else { continue };
            match classes.iter_mut().find(|(known, _)| *known == class) {
                Some((_, values)) => values.push(value),
                None => classes.push((class, vec![value])),
            }
        }
        let all: usize = classes.iter().map(|(_, values)| values.len()).sum();
        let complete = all == self.member_values(group.union).len();
        let count = classes.len();
        for (nth, (class, values)) in classes.into_iter().enumerate() {
            let mut state = self.behind(group, here);
            state.malformed.push(class);
            let block = self.block_for(here.decision, state);
            if complete && nth + 1 == count {
                return self.end(End::Goto(block));
            }
            let other = self.new_block();
            let values = crate::ranges::merge(values.into_iter().map(|value| (value, value)));
            self.in_ranges(self.kind, &values, Width::W32, block, other);
            self.current = other;
        }
        let state = self.behind(group, here);
        let block = self.block_for(here.decision, state);
        self.end(End::Goto(block));
    }

    /// What is known behind the loop: what it stored is to be recalled.
    fn behind(&self, group: &Loop, here: &Here) -> State {
        let mut state = State { cursor: None, ..here.rest.clone() };
        state.pending.extend(self.group_items(group, here).into_iter().map(|item| Pending::Stored { item }));
        state
    }

    /// Splits the way by a stored presence.
    pub(super) fn recall(&mut self, item: ItemId, here: &Here) {
        let left = self.stored(item);
        let mut rest = here.rest.clone();
        rest.stored.insert(item.index());
        let mut with = rest.clone();
        with.present.insert(item.index());
        let then = self.block_for(here.decision, with);
        let otherwise = self.block_for(here.decision, rest);
        let (condition, width) = (Condition::Ne, Width::W64);
        self.end(End::Branch { condition, width, left, right: Arg::Const(0), then, otherwise });
    }
}

/// A text that members share whose code is the same.
fn shape_key(header: &Header) -> String {
    let part = |expr: Option<&Expr>| expr.map(condition_key);
    let valid: Vec<String> = header.valid.iter().map(condition_key).collect();
    let next: Vec<_> = header
        .next
        .iter()
        .map(|next| {
            let by = match &next.kind {
                NextKind::By { value, .. } => condition_key(value),
                NextKind::Always(target) => format!("{target:?}"),
            };
            (by, part(next.when.as_ref()))
        })
        .collect();
    let layout: Vec<_> =
        header.fields.iter().take(2).map(|field| (field.bits, field.position.clone())).collect();
    format!(
        "{:?} {:?} {:?} {valid:?} {next:?} {layout:?}",
        shortest(header, header.needs),
        header.needs,
        part(header.length.as_ref())
    )
}

/// A text that members share whose option lists are read alike.
fn options_key(options: &Options) -> String {
    let layout: Vec<_> = options.fields.iter().map(|field| (field.bits, field.position.clone())).collect();
    let Options { kind, length, end, pad, .. } = options;
    format!("{layout:?} {kind} {} {end:?} {pad:?}", condition_key(length))
}
