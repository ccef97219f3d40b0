//! An option list: a loop over its options, which stores what rules ask of them.
//!
//! What a packet's list holds, and in which order, only the packet knows; so what is found is stored in values that
//! start as opaque zeros, and is recalled behind the loop ([`Specialiser::recall`]). The list of a header that is near
//! enough is read from the header's start, where the cursor stays; in a longer one the cursor moves from option to
//! option, and goes back in the end. Where an option starts, how long it is and how much of the list is left is
//! forgotten each turn, so that the kernel's verifier sees one state a turn, whatever the option was.

use pktc_bpf::{AluOp, Condition};
use pktc_semantics::typed::{Header, Options};

use cranelift_entity::EntityRef;

use super::bounds::{field_end, least, longest};
use super::group::FLAG;
use super::parse::{NEAR, Parsing, hangs_on};
use super::state::{Pending, State};
use super::{Here, Specialiser};
use crate::flow::{Arg, Block, End, Op, Value};
use crate::layout::{conditional_groups, low_bits};
use crate::rule::{Item, ItemId, Place, Slot, SlotId};

/// A list that is being read.
struct Walk<'h> {
    declared: &'h Options,
    /// What each option starts with, as a header.
    option: &'h Header,
    /// What is asked of the list.
    asked: Vec<Asked>,
    /// Where the option starts behind the header's start; none: the cursor stands there.
    at: Option<Value>,
    /// Bytes from the option's start to the list's end.
    rest: Value,
    turns: Turns,
    /// Bytes of the option.
    length: Value,
    /// The bits that numbers of bytes of the list can have.
    bits: u64,
    /// Goes on behind the option, with `length` set.
    step: Block,
    /// The option is cut, too short, or one too many.
    broken: Block,
    /// The list has ended.
    done: Block,
}

/// What is asked of a list.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// An item of options.
    pub(super) item: ItemId,
    /// Only where that value is that number.
    pub(super) only: Option<(Value, u64)>,
}

/// How many options were read so far.
#[derive(Clone, Copy)]
pub(super) enum Turns {
    /// Of this list: the kernel's verifier counts along.
    Counted(Value),
    /// Of all lists in a loop: it does not, and sees by `fuel` alone that all this ends.
    Fuelled { turns: Value, fuel: Value, most: u64 },
}

impl Specialiser<'_> {
    /// What is asked of the option lists of the header at `place`.
    pub(super) fn needed_options(&self, place: Place, here: &Here) -> Vec<ItemId> {
        let items = here.needs.items.iter().map(ItemId::new);
        items.filter(|&item| self.outlook.rules.items[item].in_options_of() == Some(place)).collect()
    }

    /// Reads the option list of a header that is present.
    pub(super) fn parse_options(&mut self, place: Place, enclosed: bool, here: &Here) {
        let mut parsing = self.parsing(place, enclosed, here);
        self.return_to(&mut parsing, here);
        let items = self.needed_options(place, here);
        for &item in &items {
            self.store_absent(item);
            self.needed_slots(here, |slot| hangs_on(slot, item))
                .into_iter()
                .for_each(|it| self.clear_slot(it));
        }
        let turns = self.value("option.turns");
        self.op(Op::Copy { dst: turns, src: Arg::Const(0) });
        let asked = items.iter().map(|&item| Asked { item, only: None }).collect();
        self.read_options(&mut parsing, asked, Turns::Counted(turns), here);
        let mut state = State { cursor: Some(place), ..here.rest.clone() };
        state.pending.extend(items.into_iter().map(|item| Pending::Stored { item }));
        let block = self.block_for(here.decision, state);
        self.end(End::Goto(block));
    }

    /// Reads the option list of the header at the cursor, if it has one; goes on in a new block, with the cursor at the
    /// header again.
    pub(super) fn read_options(
        &mut self,
        parsing: &mut Parsing<'_>,
        asked: Vec<Asked>,
        turns: Turns,
        here: &Here,
    ) {
        let Some(declared) = &parsing.header.options else { return };
        let is_near = longest(parsing.header) <= NEAR;
        let walk = Walk {
            declared,
            option: &option_header(declared, parsing.header),
            asked,
            at: is_near.then(|| self.value("option.at")),
            rest: self.value("option.rest"),
            turns,
            length: self.value("option.length"),
            bits: low_bits(64 - longest(parsing.header).leading_zeros()),
            step: self.new_block(),
            broken: self.new_block(),
            done: self.new_block(),
        };
        let position = self.value("position");
        self.op(Op::Position { dst: position });
        self.enter_list(&walk, parsing, here);
        self.current = walk.broken;
        self.note_broken(&walk);
        self.end(End::Goto(walk.done));
        self.current = walk.done;
        self.go_back(position, parsing, here);
    }

    /// Stores that the list is broken, where that is asked.
    fn note_broken(&mut self, walk: &Walk<'_>) {
        for &Asked { item, only } in &walk.asked {
            if let Item::BrokenOptions(_) = self.outlook.rules.items[item] {
                let behind = self.new_block();
                self.must_be(only, behind);
                self.store_flag(item, 1);
                self.end(End::Goto(behind));
                self.current = behind;
            }
        }
    }

    /// Goes on in a new block only where the value is that number.
    fn must_be(&mut self, only: Option<(Value, u64)>, other: Block) {
        if let Some((value, number)) = only {
            let value = self.unlinked(value);
            self.leave_if(value, Condition::Ne, Arg::Const(number), other);
        }
    }

    /// Moves the cursor back to the header.
    fn go_back(&mut self, position: Value, parsing: &Parsing<'_>, here: &Here) {
        let bytes = Arg::Const(u64::from(parsing.checked));
        // The header was there before, so going back cannot fail.
        let short = self.block_for(here.decision, State { cursor: None, ..here.rest.clone() });
        let ok = self.new_block();
        self.end(End::Seek { position, bytes, ok, short });
        self.current = ok;
    }

    /// Ends the block: goes to the list's first option, and reads all.
    fn enter_list(&mut self, walk: &Walk<'_>, parsing: &mut Parsing<'_>, here: &Here) {
        let start = self.list_start(parsing, here);
        let length = self.in_value(parsing.length);
        if parsing.needs.is_some() || matches!(start, Arg::Value(_)) {
            self.leave_if(length, Condition::Lt, start, walk.done);
        }
        if parsing.needs.is_some() {
            // A header that is cut has no list.
            self.must_fit(parsing, Arg::Value(length), walk.done);
        }
        self.set_forgotten(walk, walk.rest, AluOp::Sub, length, start);
        let head = self.new_block();
        match walk.at {
            Some(at) => self.forget(at, start, walk.bits),
            None => self.op(Op::Advance { by: start }),
        }
        self.end(End::Canon { ok: head, short: walk.broken });
        self.current = head;
        self.read_option(walk, parsing.place, here);
        self.current = walk.step;
        self.behind_option(walk, head);
    }

    /// Where the list starts behind the header's start.
    fn list_start(&mut self, parsing: &mut Parsing<'_>, here: &Here) -> Arg {
        if conditional_groups(parsing.header).is_empty() {
            return Arg::Const(u64::from(parsing.header.fixed_bytes));
        }
        let start = self.value("options.start");
        self.length_of_fields(parsing, start, here);
        Arg::Value(start)
    }

    /// Ends the block: goes to an option, where the cursor was moved to it or it is known where it starts.
    fn end_before_option(&mut self, walk: &Walk<'_>, head: Block) {
        self.end(match walk.at {
            Some(_) => End::Goto(head),
            None => End::Canon { ok: head, short: walk.broken },
        });
    }

    /// Moves on behind the option.
    fn behind_option(&mut self, walk: &Walk<'_>, head: Block) {
        let length = Arg::Value(walk.length);
        self.set_forgotten(walk, walk.rest, AluOp::Sub, walk.rest, length);
        match walk.at {
            Some(at) => self.set_forgotten(walk, at, AluOp::Add, at, length),
            None => self.op(Op::Advance { by: length }),
        }
        self.end_before_option(walk, head);
    }

    /// `dst = left op right`, a number of bytes of the list, of which nobody knows more.
    fn set_forgotten(&mut self, walk: &Walk<'_>, dst: Value, op: AluOp, left: Value, right: Arg) {
        let result = self.value("");
        self.op(Op::Alu { op, dst: result, left, right });
        self.forget(dst, Arg::Value(result), walk.bits);
    }

    /// One option, or the list's end.
    fn read_option(&mut self, walk: &Walk<'_>, place: Place, here: &Here) {
        self.leave_if(walk.rest, Condition::Eq, Arg::Const(0), walk.done);
        self.one_more_option(walk);
        let mut option = Parsing { base: walk.at, ..Parsing::new(place, walk.option) };
        let kind = walk.declared.kind;
        self.reach_in_option(walk, &mut option, field_end(&walk.option.fields[kind]));
        let ends = walk.declared.end.iter().map(|&kind| (kind, walk.done));
        let singles = ends.chain(walk.declared.pad.iter().map(|&kind| (kind, walk.step)));
        for (single, next) in singles {
            let (this, other) = (self.new_block(), self.new_block());
            self.own_bits(&mut option, kind, single, this, other);
            self.current = this;
            self.forget(walk.length, Arg::Const(1), walk.bits);
            self.note_option(walk, single, next, here);
            self.current = other;
        }
        self.read_length(walk, &mut option, here);
        for asked in self.longer_kinds(walk) {
            let (this, other) = (self.new_block(), self.new_block());
            self.own_bits(&mut option, kind, asked, this, other);
            self.current = this;
            self.note_option(walk, asked, walk.step, here);
            self.current = other;
        }
        self.end(End::Goto(walk.step));
    }

    /// Goes on in a new block only if one more option may be read.
    fn one_more_option(&mut self, walk: &Walk<'_>) {
        let most = Arg::Const(Options::MOST as u64);
        match walk.turns {
            Turns::Counted(turns) => {
                self.leave_if(turns, Condition::Ge, most, walk.broken);
                self.op(Op::Alu { op: AluOp::Add, dst: turns, left: turns, right: Arg::Const(1) });
            }
            Turns::Fuelled { turns, fuel, most: enough } => {
                let known = self.unlinked(turns);
                self.leave_if(known, Condition::Ge, most, walk.broken);
                self.count_unknown(turns);
                self.burn(fuel, enough, walk.broken);
            }
        }
    }

    /// `turns += 1`, and nobody knows it.
    pub(super) fn count_unknown(&mut self, turns: Value) {
        self.op(Op::Alu { op: AluOp::Add, dst: turns, left: turns, right: Arg::Const(1) });
        self.forget(turns, Arg::Value(turns), FLAG);
    }

    /// One more turn of loops in each other, of `enough` together. There are no more, but the verifier does not know that.
    pub(super) fn burn(&mut self, fuel: Value, enough: u64, end: Block) {
        self.leave_if(fuel, Condition::Ge, Arg::Const(enough), end);
        self.op(Op::Alu { op: AluOp::Add, dst: fuel, left: fuel, right: Arg::Const(1) });
    }

    /// The kinds of more than one byte that are asked for.
    fn longer_kinds(&self, walk: &Walk<'_>) -> Vec<u64> {
        let asked = walk.asked.iter().filter_map(|asked| self.kind_of(asked.item));
        let is_longer = |kind: &u64| !walk.declared.end.contains(kind) && !walk.declared.pad.contains(kind);
        let mut kinds: Vec<u64> = asked.filter(is_longer).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// The kind that an item asks for.
    fn kind_of(&self, item: ItemId) -> Option<u64> {
        match self.outlook.rules.items[item] {
            Item::Option { kind, .. } => Some(kind),
            Item::Header(_) | Item::Part(_) | Item::Member { .. } | Item::BrokenOptions(_) => None,
        }
    }

    /// Goes on in a new block only if the first `bytes` of the option are in the list.
    fn reach_in_option(&mut self, walk: &Walk<'_>, option: &mut Parsing<'_>, bytes: u32) {
        if bytes <= option.checked {
            return;
        }
        let wanted = Arg::Const(u64::from(bytes));
        if bytes > 1 {
            let rest = self.unlinked(walk.rest);
            self.leave_if(rest, Condition::Lt, wanted, walk.broken);
        }
        self.check_option(walk, bytes, walk.broken);
        option.checked = bytes;
    }

    /// Goes on in a new block, in which the first `bytes` of the option may be read. The header is there as a whole, so
    /// only the verifier asks.
    fn check_option(&mut self, walk: &Walk<'_>, bytes: u32, short: Block) {
        let ok = self.new_block();
        self.end(End::Check { base: walk.at, bytes: Arg::Const(u64::from(bytes)), ok, short });
        self.current = ok;
    }

    /// Sets the option's length; goes on in a new block only if it is one and the list holds so much.
    fn read_length(&mut self, walk: &Walk<'_>, option: &mut Parsing<'_>, here: &Here) {
        let fields = walk.option.fixed_bytes;
        self.reach_in_option(walk, option, fields);
        self.guard(option, &walk.declared.length, walk.broken, here);
        let length = self.own_number(option, &walk.declared.length);
        let length = self.in_value(length);
        if least(walk.option, Some(&walk.declared.length)) < u64::from(fields) {
            self.leave_if(length, Condition::Lt, Arg::Const(u64::from(fields)), walk.broken);
        }
        let rest = self.unlinked(walk.rest);
        self.leave_if(length, Condition::Gt, Arg::Value(rest), walk.broken);
        self.forget(walk.length, Arg::Value(length), walk.bits);
    }

    /// Ends the block: stores what is asked of an option of `kind`, and goes to `next`.
    fn note_option(&mut self, walk: &Walk<'_>, kind: u64, next: Block, here: &Here) {
        let of_kind = walk.asked.iter().filter(|asked| self.kind_of(asked.item) == Some(kind));
        for Asked { item, only } in of_kind.copied().collect::<Vec<_>>() {
            let behind = self.new_block();
            self.must_be(only, behind);
            self.note_first(walk, item, behind, here);
            self.current = behind;
        }
        self.end(End::Goto(next));
    }

    /// Ends the block: stores what is asked of the option for `item`, if it is the first, and goes to `next`.
    fn note_first(&mut self, walk: &Walk<'_>, item: ItemId, next: Block, here: &Here) {
        let seen = self.stored(item);
        let seen = self.unlinked(seen);
        self.leave_if(seen, Condition::Ne, Arg::Const(0), next);
        self.store_flag(item, 1);
        let slots = self.needed_slots(here, |slot| hangs_on(slot, item));
        for &slot in &slots {
            if let Slot::OptionLength { .. } = self.outlook.rules.slots[slot] {
                let dst = self.slot(slot);
                self.forget(dst, Arg::Value(walk.length), low_bits(16));
            }
        }
        self.read_values(walk, &slots, next);
        self.end(End::Goto(next));
    }

    /// Reads the bytes of the option that are asked for, if it has them all; goes on in a new block, or to `next`.
    fn read_values(&mut self, walk: &Walk<'_>, slots: &[SlotId], next: Block) {
        let values = slots.iter().filter_map(|&slot| match self.outlook.rules.slots[slot] {
            Slot::OptionBytes { offset, size, .. } => Some((slot, offset, size)),
            _ => None,
        });
        let values: Vec<_> = values.collect();
        let Some(end) = values.iter().map(|(_, offset, size)| offset + size.bytes()).max() else { return };
        let length = self.unlinked(walk.length);
        self.leave_if(length, Condition::Lt, Arg::Const(u64::from(end)), next);
        self.check_option(walk, end, next);
        for (slot, offset, size) in values {
            let dst = self.slot(slot);
            self.op(match walk.at {
                Some(base) => Op::ReadAt { dst, base, offset, size },
                None => Op::Read { dst, offset, size },
            });
            self.unlink_slot(slot);
        }
    }
}

/// What each option of a list starts with, as a header.
fn option_header(options: &Options, of: &Header) -> Header {
    let ends = options.fields.iter().map(field_end);
    Header {
        fields: options.fields.clone(),
        fixed_bytes: ends.max().unwrap_or(0),
        length: Some(options.length.clone()),
        ..Header::empty(format!("{}.option", of.name), String::new(), of.span)
    }
}
