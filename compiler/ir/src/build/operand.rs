//! Operands: each form that an operand can take is handed to a continuation, and the conditions under which it
//! has that form (and has a value at all) are wrapped around what comes back.

use pktc_bpf::Size;
use pktc_diagnostics::Span;
use pktc_semantics::typed::{
    BinaryOp, BytesOf, Expr, ExprKind, Field, FieldIndex, Header, Index, Instance, OptionAsk, OptionRef,
    PacketField, Position, Scope, Type, UnionFieldKind, UnionInstance, Value,
};

use super::RuleBuilder;
use super::bytes::Varying;
use crate::layout::{Container, certain_bytes, condition_key, low_bits, static_bit};
use crate::rule::{Cond, ItemId, Num, Part, Place, Reach, Slot, SlotId};

/// What an operand turned out to be.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// A number.
    Num(Num),
    /// An IPv4 address as a number.
    Ipv4(Num),
    /// An IPv6 address.
    Ipv6(Wide),
    /// A MAC address as a number.
    Mac(Num),
    /// Bytes of the packet, in loads of at most 8.
    Bytes(Vec<(SlotId, Size)>),
    /// Bytes whose number varies.
    Varying(Varying),
    /// Constant bytes.
    Text(Vec<u8>),
    /// A condition.
    Cond(Cond),
    /// A tuple, which only sets hold.
    Tuple(Vec<Operand>),
}

/// 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wide {
    /// Their halves as they lie in the packet.
    Slots(SlotId, SlotId),
    /// A constant.
    Const(u128),
}

pub(super) type Then<'k, 'b> = &'k mut dyn FnMut(&mut RuleBuilder<'b>, Operand) -> Cond;

impl<'b> RuleBuilder<'b> {
    pub(super) fn operand(&mut self, expr: &Expr, then: Then<'_, 'b>) -> Cond {
        if !self.one_more_form() {
            return Cond::Const(false);
        }
        match &expr.kind {
            ExprKind::Const(value) => then(self, constant(value)),
            ExprKind::Field { instance, field } => self.field(*instance, *field, expr.span, then),
            ExprKind::UnionField { instance, field } => self.union_field(*instance, *field, expr, then),
            ExprKind::Packet(field) => then(self, Operand::Num(packet_field(*field))),
            ExprKind::PayloadLength(instance) => {
                self.of_header(*instance, expr.span, Slot::PayloadLength, then)
            }
            ExprKind::Truncated(instance) => self.of_header(*instance, expr.span, Slot::Truncated, then),
            ExprKind::Payload(instance) => {
                self.payload(*instance, expr.span, &mut |this, bytes| then(this, Operand::Varying(bytes)))
            }
            ExprKind::PayloadSlice { instance, from, to } => {
                self.payload(*instance, expr.span, &mut |this, bytes| {
                    this.slice(&bytes, *from..*to, expr.span, then)
                })
            }
            ExprKind::Bytes { of, ask } => self.bytes(*of, *ask, expr.span, then),
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right, expr.span, then),
            ExprKind::Default { value, otherwise } => self.default(value, otherwise, then),
            ExprKind::Present(_)
            | ExprKind::UnionPresent(_)
            | ExprKind::Malformed(_)
            | ExprKind::Not(_)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Compare { .. }
            | ExprKind::In { .. } => {
                let cond = self.condition(expr);
                then(self, Operand::Cond(cond))
            }
            ExprKind::Own(_) | ExprKind::OwnPayload { .. } => {
                self.not_yet("this operand", expr.span);
                Cond::Const(false)
            }
            ExprKind::Tuple(parts) => self.tuple(parts, &[], then),
            ExprKind::Option { option, ask: OptionAsk::Present } => {
                let cond = self.option(*option, expr.span, &mut |_, _, _| Cond::Const(true));
                then(self, Operand::Cond(cond))
            }
            ExprKind::Option { option, ask: OptionAsk::Length } => {
                self.option(*option, expr.span, &mut |this, place, item| {
                    let length = this.slot(Slot::OptionLength { place, kind: option.kind, item });
                    then(this, Operand::Num(Num::Slot(length)))
                })
            }
            ExprKind::Option { option, ask: OptionAsk::Value { list, option: declared, field } } => {
                let options = self.program.headers[*list].options.as_ref();
                let Some(options) = options else { return Cond::Const(false) };
                self.option_value(*option, &options.options[*declared], *field, expr.span, then)
            }
            ExprKind::OptionsMalformed(instance) => {
                let cond = self.options_malformed(*instance, expr.span);
                then(self, Operand::Cond(cond))
            }
        }
    }

    /// The tuple of `known` and the values of `parts`.
    fn tuple(&mut self, parts: &[Expr], known: &[Operand], then: Then<'_, 'b>) -> Cond {
        let Some((first, others)) = parts.split_first() else {
            return then(self, Operand::Tuple(known.to_vec()));
        };
        self.operand(first, &mut |this, operand| {
            let known = [known, &[operand]].concat();
            this.tuple(others, &known, then)
        })
    }

    fn has_value(&mut self, expr: &Expr) -> Cond {
        self.operand(expr, &mut |_, _| Cond::Const(true))
    }

    fn default(&mut self, value: &Expr, otherwise: &Expr, then: Then<'_, 'b>) -> Cond {
        let there = self.has_value(value);
        self.either(there, |this, holds| this.operand(if holds { value } else { otherwise }, then))
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: Span, then: Then<'_, 'b>) -> Cond {
        self.operand(left, &mut |this, left| {
            let left = this.number(left, span);
            this.operand(right, &mut |this, right| {
                let (left, right) = (left.clone(), this.number(right, span));
                let enough = match op {
                    BinaryOp::Subtract => this.num_compare_ge(left.clone(), right.clone(), span),
                    BinaryOp::Or
                    | BinaryOp::Xor
                    | BinaryOp::And
                    | BinaryOp::ShiftLeft
                    | BinaryOp::ShiftRight
                    | BinaryOp::Add
                    | BinaryOp::Multiply => Cond::Const(true),
                };
                let num = Num::Binary { op, left: Box::new(left), right: Box::new(right) };
                let rest = then(this, Operand::Num(num));
                Cond::and([enough, rest])
            })
        })
    }

    /// `operand` as a number.
    pub(super) fn number(&mut self, operand: Operand, span: Span) -> Num {
        match operand {
            Operand::Num(num) | Operand::Ipv4(num) | Operand::Mac(num) => num,
            Operand::Bytes(slots) if slots.iter().map(|(_, size)| size.bytes()).sum::<u32>() <= 8 => {
                joined(&slots)
            }
            Operand::Text(text) if text.len() <= 8 => {
                Num::Const(text.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
            }
            Operand::Bytes(_)
            | Operand::Text(_)
            | Operand::Ipv6(_)
            | Operand::Cond(_)
            | Operand::Varying(_)
            | Operand::Tuple(_) => {
                self.not_yet("this as a number", span);
                Num::Const(0)
            }
        }
    }

    fn union_field(&mut self, at: UnionInstance, field: usize, expr: &Expr, then: Then<'_, 'b>) -> Cond {
        let union = &self.program.unions[at.union];
        let declared = &union.fields[field];
        let value = match &declared.kind {
            UnionFieldKind::Member(_) if union.repeats.is_some() => {
                let index = match at.index {
                    Index::At(index) => Some(index),
                    Index::Last => None,
                };
                let item = self.member_item(at.scope, at.union, index.unwrap_or(0));
                let slot = self.slot(Slot::Member { scope: at.scope, union: at.union, index, field });
                self.given(item, expr.span, |this| then(this, Operand::Num(Num::Slot(slot))))
            }
            UnionFieldKind::Member(fields) => self.member_alternatives(at, &fields.clone(), expr.span, then),
            UnionFieldKind::Alternatives(alternatives) => {
                self.alternatives(at, alternatives, expr.span, then)
            }
        };
        match &declared.when {
            Some(when) => Cond::and([self.condition(&rescoped(when, at.scope)), value]),
            None => value,
        }
    }

    fn member_alternatives(
        &mut self,
        at: UnionInstance,
        fields: &std::collections::BTreeMap<pktc_semantics::typed::HeaderId, FieldIndex>,
        span: Span,
        then: Then<'_, 'b>,
    ) -> Cond {
        let members = self.program.unions[at.union].members.clone();
        let mut choices = Vec::new();
        for header in members {
            let Some(&field) = fields.get(&header) else { continue };
            let instance = Instance { scope: at.scope, header, index: Index::At(0) };
            let Some(item) = self.header_item(instance) else { continue };
            choices.push((vec![item], (instance, field)));
        }
        self.first_of(choices, span, |this, (instance, field)| this.field(instance, field, span, then))
    }

    fn alternatives(
        &mut self,
        at: UnionInstance,
        alternatives: &[Expr],
        span: Span,
        then: Then<'_, 'b>,
    ) -> Cond {
        let mut choices = Vec::new();
        for alternative in alternatives {
            let alternative = rescoped(alternative, at.scope);
            let mut items = Vec::new();
            self.headers_of(&alternative, &mut items);
            choices.push((items, alternative));
        }
        self.first_of(choices, span, |this, alternative| this.operand(&alternative, then))
    }

    /// The items of all headers that `expr` reads.
    fn headers_of(&mut self, expr: &Expr, into: &mut Vec<ItemId>) {
        let item = match &expr.kind {
            ExprKind::Field { instance, .. }
            | ExprKind::PayloadLength(instance)
            | ExprKind::Payload(instance)
            | ExprKind::Truncated(instance)
            | ExprKind::Option { option: OptionRef { instance, .. }, .. }
            | ExprKind::OptionsMalformed(instance)
            | ExprKind::Bytes { of: BytesOf::Field { instance, .. } | BytesOf::Options(instance), .. }
            | ExprKind::PayloadSlice { instance, .. } => self.header_item(*instance),
            ExprKind::UnionField { instance, .. } => {
                let index = match instance.index {
                    Index::At(index) => index,
                    Index::Last => 0,
                };
                Some(self.member_item(instance.scope, instance.union, index))
            }
            _ => None,
        };
        into.extend(item.filter(|item| !into.contains(item)));
        for part in parts_of(expr) {
            self.headers_of(part, into);
        }
    }

    fn of_header(
        &mut self,
        instance: Instance,
        span: Span,
        slot: fn(Place) -> Slot,
        then: Then<'_, 'b>,
    ) -> Cond {
        let (Some(item), Some(place)) = (self.header_item(instance), self.place(instance)) else {
            return self.last(instance, span, &mut |this, at| this.of_header(at, span, slot, then));
        };
        let slot = self.slot(slot(place));
        self.given(item, span, |this| then(this, Operand::Num(Num::Slot(slot))))
    }

    /// Where a field of `instance` lies, with the conditions for it to be there.
    fn field(&mut self, instance: Instance, field: FieldIndex, span: Span, then: Then<'_, 'b>) -> Cond {
        let header = &self.program.headers[instance.header];
        let declared = &header.fields[field];
        let (Some(present), Some(place)) = (self.header_item(instance), self.place(instance)) else {
            return self.last(instance, span, &mut |this, at| this.field(at, field, span, then));
        };
        let Some(placements) = placements(header, declared) else {
            self.not_yet("a field whose place varies so much", span);
            return Cond::Const(false);
        };
        let needs = self.program.needs(instance.header, instance.scope);
        let certain = certain_bytes(header, needs);
        let mut choices = Vec::new();
        for (when, bit) in placements {
            let end = (bit + declared.bits).div_ceil(8);
            let (item, limit) = if when.is_none() && end <= certain {
                (present, certain)
            } else {
                let end = if needs.is_some() { end } else { part_end(header, declared, end) };
                (self.part_item(Part { place, when, end, reach: Reach::Fields }), end)
            };
            let at = |offset, size| Slot::Bytes { place, item, offset, size };
            let Some(operand) = self.field_operand(declared, bit, limit, &at) else {
                self.not_yet("a field of this width", span);
                return Cond::Const(false);
            };
            choices.push((vec![item], operand));
        }
        self.given(present, span, |this| this.first_of(choices, span, |this, operand| then(this, operand)))
    }

    /// `of` the innermost of a header's instances.
    pub(super) fn last(
        &mut self,
        instance: Instance,
        span: Span,
        of: &mut dyn FnMut(&mut RuleBuilder<'b>, Instance) -> Cond,
    ) -> Cond {
        let repeats = self.program.headers[instance.header].repeats;
        let mut choices = Vec::new();
        for index in (0..repeats as u8).rev() {
            let at = Instance { index: Index::At(index), ..instance };
            choices.extend(self.header_item(at).map(|item| (vec![item], at)));
        }
        self.first_of(choices, span, |this, at| of(this, at))
    }

    /// The value of a field that starts at `bit`; `at` makes the slot of so many bytes at an offset, and there are
    /// `limit` bytes.
    pub(super) fn field_operand(
        &mut self,
        field: &Field,
        bit: u32,
        limit: u32,
        at: &dyn Fn(u32, Size) -> Slot,
    ) -> Option<Operand> {
        let byte = bit / 8;
        Some(match field.ty {
            Type::Ipv6 => {
                Operand::Ipv6(Wide::Slots(self.slot(at(byte, Size::U64)), self.slot(at(byte + 8, Size::U64))))
            }
            Type::Mac => {
                let (high, low) = (self.slot(at(byte, Size::U32)), self.slot(at(byte + 4, Size::U16)));
                Operand::Mac(joined(&[(high, Size::U32), (low, Size::U16)]))
            }
            Type::Bytes => {
                Operand::Bytes(self.chunks(field.bits / 8, |offset, size| at(byte + offset, size)))
            }
            Type::Bool | Type::Uint { .. } | Type::Enum(_) | Type::Ipv4 | Type::Ip | Type::Tuple(_) => {
                let num = match Container::new(bit, field.bits, limit) {
                    Some(found) => {
                        let (offset, size) = (found.offset, found.size);
                        let slot = self.slot(at(offset, size));
                        Num::Bits { slot, shift: found.shift, width: found.width }
                    }
                    None => self.spread(bit, field.bits, at)?,
                };
                if field.ty == Type::Ipv4 { Operand::Ipv4(num) } else { Operand::Num(num) }
            }
        })
    }

    /// `width` bits that no one load holds without reading beyond them; `None` beyond 8 bytes.
    fn spread(&mut self, bit: u32, width: u32, at: &dyn Fn(u32, Size) -> Slot) -> Option<Num> {
        let (first, end) = (bit / 8, (bit + width).div_ceil(8));
        if end - first > 8 {
            return None;
        }
        let whole = joined(&self.chunks(end - first, |offset, size| at(first + offset, size)));
        let below = end * 8 - bit - width;
        if below == 0 && bit.is_multiple_of(8) {
            return Some(whole);
        }
        let by =
            |op, left, right| Num::Binary { op, left: Box::new(left), right: Box::new(Num::Const(right)) };
        Some(by(BinaryOp::And, by(BinaryOp::ShiftRight, whole, u64::from(below)), low_bits(width)))
    }

    pub(super) fn slot(&mut self, slot: Slot) -> SlotId {
        *self.slot_keys.entry(slot).or_insert_with(|| self.slots.push(slot))
    }
}

/// Where a field can lie: a condition on the header's own fields for each bit at which it may start. `None`: it is
/// counted from the header's end, or there are too many.
pub(super) fn placements(header: &Header, field: &Field) -> Option<Vec<(Option<Expr>, u32)>> {
    /// Fields before it that may be missing, so that all combinations stay few.
    const MANY: usize = 4;
    let Position::Start { bits, plus } = &field.position else { return None };
    let mut groups: Vec<(&Expr, u32)> = Vec::new();
    for before in plus.iter().map(|&before| &header.fields[before]) {
        let when = before.when.as_ref()?;
        match groups.iter_mut().find(|(known, _)| condition_key(known) == condition_key(when)) {
            Some((_, bits)) => *bits += before.bits,
            None => groups.push((when, before.bits)),
        }
    }
    if groups.len() > MANY {
        return None;
    }
    let mut placements = vec![(field.when.iter().cloned().collect::<Vec<_>>(), *bits)];
    for (when, bits) in groups {
        let missing = Expr { kind: ExprKind::Not(Box::new(when.clone())), ..when.clone() };
        let both = |(conditions, bit): (Vec<Expr>, u32)| {
            let with = |condition: &Expr| [conditions.clone(), vec![condition.clone()]].concat();
            [(with(when), bit + bits), (with(&missing), bit)]
        };
        placements = placements.into_iter().flat_map(both).collect();
    }
    Some(placements.into_iter().map(|(conditions, bit)| (all_of(conditions), bit)).collect())
}

fn all_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    if conditions.len() < 2 {
        return conditions.pop();
    }
    let (ty, span) = (conditions[0].ty.clone(), conditions[0].span);
    Some(Expr { kind: ExprKind::And(conditions), ty, span })
}

/// How far a field's part reaches where the header cannot be cut: all fields under one condition come together.
fn part_end(header: &Header, field: &Field, end: u32) -> u32 {
    let Some(when) = field.when.as_ref() else { return end };
    let key = condition_key(when);
    let group = header
        .fields
        .iter()
        .filter(|other| !other.is_view && other.when.as_ref().is_some_and(|when| condition_key(when) == key));
    group.filter_map(|other| Some((static_bit(other)? + other.bits).div_ceil(8))).fold(end, u32::max)
}

/// Slots one behind the other as one big-endian number.
fn joined(slots: &[(SlotId, Size)]) -> Num {
    let parts =
        slots.iter().map(|&(slot, size)| (Num::Bits { slot, shift: 0, width: size.bytes() * 8 }, size));
    let joined = parts.reduce(|(high, _), (low, size)| {
        let shift = Box::new(Num::Const(u64::from(size.bytes() * 8)));
        let shifted = Num::Binary { op: BinaryOp::ShiftLeft, left: Box::new(high), right: shift };
        (Num::Binary { op: BinaryOp::Or, left: Box::new(shifted), right: Box::new(low) }, size)
    });
    joined.map_or(Num::Const(0), |(num, _)| num)
}

fn constant(value: &Value) -> Operand {
    match value {
        Value::Bool(value) => Operand::Cond(Cond::Const(*value)),
        Value::Uint(value) => Operand::Num(Num::Const(*value)),
        Value::Mac(value) => Operand::Mac(Num::Const(*value)),
        Value::Ipv4(value) => Operand::Ipv4(Num::Const(u64::from(value.to_bits()))),
        Value::Ipv6(value) => Operand::Ipv6(Wide::Const(value.to_bits())),
        Value::Bytes(value) => Operand::Text(value.clone()),
    }
}

fn packet_field(field: PacketField) -> Num {
    match field {
        PacketField::Length => Num::PacketLength,
        PacketField::Ifindex => Num::Ifindex,
        PacketField::Queue => Num::Queue,
    }
}

/// The expressions directly below `expr`.
fn parts_of(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Not(inner) | ExprKind::In { value: inner, .. } => vec![inner],
        ExprKind::And(parts) | ExprKind::Or(parts) | ExprKind::Tuple(parts) => parts.iter().collect(),
        ExprKind::Compare { left, right, .. } | ExprKind::Binary { left, right, .. } => vec![left, right],
        // The left side of a default may well be absent.
        ExprKind::Default { otherwise, .. } => vec![otherwise],
        ExprKind::Const(_)
        | ExprKind::Field { .. }
        | ExprKind::UnionField { .. }
        | ExprKind::Own(_)
        | ExprKind::OwnPayload { .. }
        | ExprKind::Present(_)
        | ExprKind::UnionPresent(_)
        | ExprKind::Malformed(_)
        | ExprKind::Truncated(_)
        | ExprKind::Packet(_)
        | ExprKind::PayloadLength(_)
        | ExprKind::Payload(_)
        | ExprKind::PayloadSlice { .. }
        | ExprKind::Option { .. }
        | ExprKind::OptionsMalformed(_)
        | ExprKind::Bytes { .. } => Vec::new(),
    }
}

/// `expr` of a union's declaration, as a use in `scope` means it.
fn rescoped(expr: &Expr, scope: Scope) -> Expr {
    let mut expr = expr.clone();
    if scope != Scope::default() {
        shift_scope(&mut expr, scope);
    }
    expr
}

fn shift_scope(expr: &mut Expr, scope: Scope) {
    match &mut expr.kind {
        ExprKind::Field { instance, .. }
        | ExprKind::Present(instance)
        | ExprKind::Truncated(instance)
        | ExprKind::PayloadLength(instance)
        | ExprKind::Payload(instance)
        | ExprKind::PayloadSlice { instance, .. }
        | ExprKind::Option { option: OptionRef { instance, .. }, .. }
        | ExprKind::OptionsMalformed(instance)
        | ExprKind::Bytes { of: BytesOf::Field { instance, .. } | BytesOf::Options(instance), .. } => {
            instance.scope = scope;
        }
        ExprKind::UnionField { instance, .. }
        | ExprKind::UnionPresent(instance)
        | ExprKind::Bytes { of: BytesOf::UnionPayload(instance), .. } => instance.scope = scope,
        ExprKind::Malformed(pktc_semantics::typed::Malformed::Header(instance)) => instance.scope = scope,
        ExprKind::Malformed(pktc_semantics::typed::Malformed::Union { scope: old, .. }) => *old = scope,
        ExprKind::Malformed(pktc_semantics::typed::Malformed::Packet(_))
        | ExprKind::Const(_)
        | ExprKind::Own(_)
        | ExprKind::OwnPayload { .. }
        | ExprKind::Packet(_) => {}
        ExprKind::Not(inner) | ExprKind::In { value: inner, .. } => shift_scope(inner, scope),
        ExprKind::And(parts) | ExprKind::Or(parts) | ExprKind::Tuple(parts) => {
            parts.iter_mut().for_each(|part| shift_scope(part, scope));
        }
        ExprKind::Compare { left, right, .. }
        | ExprKind::Binary { left, right, .. }
        | ExprKind::Default { value: left, otherwise: right } => {
            shift_scope(left, scope);
            shift_scope(right, scope);
        }
    }
}
