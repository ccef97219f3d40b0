//! Bytes whose number varies: payloads, option lists, and fields that take what is left of a header.

use std::ops::Range;

use pktc_bpf::Size;
use pktc_diagnostics::Span;
use pktc_semantics::typed::{
    BinaryOp, BytesAsk, BytesOf, CompareOp, Element, Expr, Field, Header, Index, Instance, Position,
    UnionInstance,
};

use super::RuleBuilder;
use super::operand::{Operand, Then, placements};
use crate::layout::conditional_groups;
use crate::rule::{Cond, Num, Part, Place, Reach, Slot, Test};

/// Bytes whose number varies, where they are there.
#[derive(Clone, Debug)]
pub(super) struct Varying {
    place: Place,
    lie: Lie,
    /// How many.
    length: Num,
}

/// Where they lie.
#[derive(Clone, Debug)]
enum Lie {
    /// Behind the header.
    Payload,
    /// In it, where `when` holds: from so many bytes behind its start on, up to so many before its end.
    Header { when: Option<Expr>, start: u32, behind: u32 },
}

impl<'b> RuleBuilder<'b> {
    /// What is asked of bytes whose number varies.
    pub(super) fn bytes(&mut self, of: BytesOf, ask: BytesAsk, span: Span, then: Then<'_, 'b>) -> Cond {
        let mut answer = |this: &mut RuleBuilder<'b>, bytes: Varying| match ask {
            BytesAsk::All => then(this, Operand::Varying(bytes)),
            BytesAsk::Length => then(this, Operand::Num(bytes.length)),
            BytesAsk::Slice { from, to } => this.slice(&bytes, from..to, span, then),
        };
        match of {
            BytesOf::Field { instance, field } => {
                let header = &self.program.headers[instance.header];
                let rest = rest_of(header, &header.fields[field]);
                self.in_header(instance, rest, span, &mut answer)
            }
            BytesOf::Options(instance) => {
                let header = &self.program.headers[instance.header];
                let all = (None, header.fixed_bytes, 0);
                let rest = conditional_groups(header).is_empty().then(|| vec![all]);
                self.in_header(instance, rest, span, &mut answer)
            }
            BytesOf::UnionPayload(instance) => self.union_payload(instance, span, &mut answer),
        }
    }

    /// What `then` comes to for the payload of `instance`.
    pub(super) fn payload(
        &mut self,
        instance: Instance,
        span: Span,
        then: &mut dyn FnMut(&mut RuleBuilder<'b>, Varying) -> Cond,
    ) -> Cond {
        let (Some(present), Some(place)) = (self.header_item(instance), self.place(instance)) else {
            return self.last(instance, span, &mut |this, at| this.payload(at, span, then));
        };
        let length = Num::Slot(self.slot(Slot::PayloadLength(place)));
        self.given(present, span, |this| then(this, Varying { place, lie: Lie::Payload, length }))
    }

    fn union_payload(
        &mut self,
        at: UnionInstance,
        span: Span,
        then: &mut dyn FnMut(&mut RuleBuilder<'b>, Varying) -> Cond,
    ) -> Cond {
        if self.program.unions[at.union].repeats.is_some() {
            self.not_yet("the payload of a member of a repeating union", span);
        }
        let members = self.program.unions[at.union].members.clone();
        let of = |header| Instance { scope: at.scope, header, index: Index::At(0) };
        let choices: Vec<_> = members
            .into_iter()
            .filter_map(|header| Some((vec![self.header_item(of(header))?], of(header))))
            .collect();
        self.first_of(choices, span, |this, instance| this.payload(instance, span, then))
    }

    /// The same for bytes of the header itself, which lie in one of the places of `rest`.
    fn in_header(
        &mut self,
        instance: Instance,
        rest: Option<Vec<(Option<Expr>, u32, u32)>>,
        span: Span,
        then: &mut dyn FnMut(&mut RuleBuilder<'b>, Varying) -> Cond,
    ) -> Cond {
        let Some(rest) = rest else {
            self.not_yet("bytes whose place varies so much", span);
            return Cond::Const(false);
        };
        let (Some(present), Some(place)) = (self.header_item(instance), self.place(instance)) else {
            return self
                .last(instance, span, &mut |this, at| this.in_header(at, Some(rest.clone()), span, then));
        };
        let whole = Num::Slot(self.slot(Slot::HeaderLength(place)));
        let mut choices = Vec::new();
        for (when, start, behind) in rest {
            let reach = Reach::Whole { behind };
            let item = self.part_item(Part { place, when: when.clone(), end: start, reach });
            let less = Num::Const(u64::from(start + behind));
            let length =
                Num::Binary { op: BinaryOp::Subtract, left: Box::new(whole.clone()), right: Box::new(less) };
            let lie = Lie::Header { when, start, behind };
            choices.push((vec![item], Varying { place, lie, length }));
        }
        self.given(present, span, |this| this.first_of(choices, span, |this, bytes| then(this, bytes)))
    }

    /// So many of the bytes, if there are so many.
    pub(super) fn slice(
        &mut self,
        bytes: &Varying,
        Range { start: from, end: to }: Range<u32>,
        span: Span,
        then: Then<'_, 'b>,
    ) -> Cond {
        let place = bytes.place;
        let (item, chunks) = match &bytes.lie {
            Lie::Payload => {
                let item = self.part_item(Part { place, when: None, end: to, reach: Reach::Payload });
                let at = |offset, size| Slot::Payload { place, item, offset: from + offset, size };
                (item, self.chunks(to - from, at))
            }
            Lie::Header { when, start, behind } => {
                let (reach, end) = (Reach::Whole { behind: *behind }, start + to);
                let item = self.part_item(Part { place, when: when.clone(), end, reach });
                let at = |offset, size| Slot::Bytes { place, item, offset: start + from + offset, size };
                (item, self.chunks(to - from, at))
            }
        };
        self.given(item, span, |this| then(this, Operand::Bytes(chunks)))
    }

    /// Whether all of `bytes` equal `other`.
    pub(super) fn varying_equal(&mut self, bytes: &Varying, other: &Operand, span: Span) -> Cond {
        let length = match other {
            Operand::Text(text) => text.len() as u32,
            Operand::Bytes(slots) => slots.iter().map(|(_, size)| size.bytes()).sum(),
            _ => {
                self.not_yet("a comparison of bytes whose number varies with others of that kind", span);
                return Cond::Const(false);
            }
        };
        self.of_length(bytes, length, span, &mut |this, operand| this.equal(operand, other.clone(), span))
    }

    /// Whether all of `bytes` lie in one of `elements`.
    pub(super) fn varying_member(&mut self, bytes: &Varying, elements: &[&Element], span: Span) -> Cond {
        let mut lengths: Vec<u32> = elements
            .iter()
            .filter_map(|element| match element {
                Element::Bytes { low, .. } => Some(low.len() as u32),
                _ => None,
            })
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        Cond::or(lengths.into_iter().map(|length| {
            self.of_length(bytes, length, span, &mut |this, operand| this.is_one_of(&operand, elements, span))
        }))
    }

    /// What `then` comes to for all of `bytes`, if there are `length` of them.
    fn of_length(&mut self, bytes: &Varying, length: u32, span: Span, then: Then<'_, 'b>) -> Cond {
        let (op, left, right) = (CompareOp::Equal, bytes.length.clone(), Num::Const(u64::from(length)));
        let as_long = Cond::Test(Test::Compare { op, left, right }, span);
        let same = match length {
            0 => then(self, Operand::Text(Vec::new())),
            length => self.slice(bytes, 0..length, span, then),
        };
        Cond::and([as_long, same])
    }

    /// Slots for `length` bytes, one behind the other.
    pub(super) fn chunks(
        &mut self,
        length: u32,
        make: impl Fn(u32, Size) -> Slot,
    ) -> Vec<(crate::rule::SlotId, Size)> {
        let mut chunks = Vec::new();
        let mut offset = 0;
        while offset < length {
            let size = [Size::U64, Size::U32, Size::U16]
                .into_iter()
                .find(|size| size.bytes() <= length - offset)
                .unwrap_or(Size::U8);
            chunks.push((self.slot(make(offset, size)), size));
            offset += size.bytes();
        }
        chunks
    }
}

/// Where a field lies that takes what is left of a header: under which condition, from which byte on, up to how many
/// before the header's end.
fn rest_of(header: &Header, field: &Field) -> Option<Vec<(Option<Expr>, u32, u32)>> {
    let behind = header.fields.iter().filter_map(|field| match field.position {
        Position::End { bits } => Some(bits / 8),
        Position::Start { .. } => None,
    });
    let behind = behind.max().unwrap_or(0);
    let places = placements(header, field)?.into_iter();
    Some(places.map(|(when, bit)| (when, bit / 8, behind)).collect())
}
