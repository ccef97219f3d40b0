//! Numbers and conditions as operations: those of rules over loaded slots, those of declarations over the header
//! at the cursor.

use pktc_bpf::{AluOp, Condition, Size, Width};
use pktc_semantics::typed::{
    BinaryOp, CompareOp, Element, Expr, ExprKind, FieldIndex, Index, Instance, Position, SetId,
    Value as Constant,
};

use super::bounds::{least, most};
use super::parse::Parsing;
use super::{Here, Specialiser};
use crate::flow::{Arg, Block, End, Op, Value};
use crate::layout::{Container, low_bits, static_bit, swap_bytes};
use crate::ranges;
use crate::rule::{Num, Place, SlotId};

impl Specialiser<'_> {
    // ---- rules ----

    /// A number of a rule.
    pub(super) fn number(&mut self, num: &Num) -> Arg {
        match num {
            Num::Const(value) => Arg::Const(*value),
            Num::Slot(slot) => Arg::Value(self.slot(*slot)),
            Num::Bits { slot, shift, width } => {
                let (src, size) = (self.slot(*slot), self.slot_size(*slot));
                Arg::Value(self.extract(src, size, *shift, *width))
            }
            Num::PacketLength => Arg::Value(self.fresh(|dst| Op::PacketLength { dst })),
            Num::Ifindex => Arg::Value(self.fresh(|dst| Op::Ifindex { dst })),
            Num::Queue => Arg::Value(self.fresh(|dst| Op::Queue { dst })),
            Num::Binary { op, left, right } => {
                let (left, right) = (self.number(left), self.number(right));
                self.arithmetic(*op, left, right)
            }
        }
    }

    pub(super) fn slot_size(&self, slot: SlotId) -> Size {
        self.outlook.rules.slots[slot].size()
    }

    fn fresh(&mut self, op: impl FnOnce(Value) -> Op) -> Value {
        let dst = self.value("");
        self.op(op(dst));
        dst
    }

    /// `width` bits, `shift` above the lowest, of `size` bytes as they lie in the packet.
    pub(super) fn extract(&mut self, src: Value, size: Size, shift: u32, width: u32) -> Value {
        let mut value = src;
        if size != Size::U8 {
            value = self.fresh(|dst| Op::Swap { dst, src, size });
        }
        if shift > 0 {
            let (left, right) = (value, Arg::Const(u64::from(shift)));
            value = self.fresh(|dst| Op::Alu { op: AluOp::Rsh, dst, left, right });
        }
        if shift + width < size.bytes() * 8 {
            let (left, right) = (value, Arg::Const(low_bits(width)));
            value = self.fresh(|dst| Op::Alu { op: AluOp::And, dst, left, right });
        }
        value
    }

    /// `left op right` in 64 bits; shifts by 64 or more give 0.
    fn arithmetic(&mut self, op: BinaryOp, left: Arg, right: Arg) -> Arg {
        if let (Arg::Const(left), Arg::Const(right)) = (left, right) {
            return Arg::Const(fold(op, left, right));
        }
        let left = self.in_value(left);
        let alu = match op {
            BinaryOp::Or => AluOp::Or,
            BinaryOp::Xor => AluOp::Xor,
            BinaryOp::And => AluOp::And,
            BinaryOp::Add => AluOp::Add,
            BinaryOp::Subtract => AluOp::Sub,
            BinaryOp::Multiply => AluOp::Mul,
            BinaryOp::ShiftLeft => return self.shift(AluOp::Lsh, left, right),
            BinaryOp::ShiftRight => return self.shift(AluOp::Rsh, left, right),
        };
        Arg::Value(self.fresh(|dst| Op::Alu { op: alu, dst, left, right }))
    }

    fn shift(&mut self, op: AluOp, left: Value, right: Arg) -> Arg {
        match right {
            Arg::Const(by) if by >= 64 => Arg::Const(0),
            Arg::Const(_) => Arg::Value(self.fresh(|dst| Op::Alu { op, dst, left, right })),
            Arg::Value(by) => {
                // The instruction takes the lowest six bits only.
                let result = self.value("");
                let (whole, shifted, join) = (self.new_block(), self.new_block(), self.new_block());
                let (condition, width) = (Condition::Gt, Width::W64);
                self.end(End::Branch {
                    condition,
                    width,
                    left: by,
                    right: Arg::Const(63),
                    then: whole,
                    otherwise: shifted,
                });
                self.current = whole;
                self.op(Op::Copy { dst: result, src: Arg::Const(0) });
                self.end(End::Goto(join));
                self.current = shifted;
                self.op(Op::Alu { op, dst: result, left, right });
                self.end(End::Goto(join));
                self.current = join;
                Arg::Value(result)
            }
        }
    }

    pub(super) fn in_value(&mut self, arg: Arg) -> Value {
        match arg {
            Arg::Value(value) => value,
            Arg::Const(_) => self.fresh(|dst| Op::Copy { dst, src: arg }),
        }
    }

    /// Branches by `left op right`.
    pub(super) fn compare(
        &mut self,
        op: CompareOp,
        left: Arg,
        right: Arg,
        width: Width,
        then: Block,
        otherwise: Block,
    ) {
        let (op, left, right) = match (left, right) {
            (Arg::Const(a), Arg::Const(b)) => {
                let target = if holds(op, a, b) { then } else { otherwise };
                return self.end(End::Goto(target));
            }
            (Arg::Const(_), Arg::Value(value)) => (mirrored(op), value, left),
            (Arg::Value(value), right) => (op, value, right),
        };
        // Where it holds is walked first: a match ends soon.
        let unless = match op {
            CompareOp::Equal => Condition::Ne,
            CompareOp::NotEqual => Condition::Eq,
            CompareOp::Less => Condition::Ge,
            CompareOp::LessEqual => Condition::Gt,
            CompareOp::Greater => Condition::Le,
            CompareOp::GreaterEqual => Condition::Lt,
        };
        self.end(End::Branch { condition: unless, width, left, right, then: otherwise, otherwise: then });
    }

    /// Branches by whether `value` lies in one of `merged` (sorted, apart): a tree of comparisons.
    pub(super) fn in_ranges(
        &mut self,
        value: Value,
        merged: &[(u64, u64)],
        width: Width,
        then: Block,
        otherwise: Block,
    ) {
        let mut edges = ranges::edges(merged);
        if width == Width::W32 {
            edges.retain(|&edge| edge <= low_bits(32));
        }
        self.range_tree(value, &edges, false, width, then, otherwise);
    }

    /// `edges`: where membership changes, ascending; `inside`: whether what lies below the first is in. Each
    /// comparison halves what is left, so nothing is asked that is already known.
    fn range_tree(
        &mut self,
        value: Value,
        edges: &[u64],
        inside: bool,
        width: Width,
        then: Block,
        otherwise: Block,
    ) {
        let (here, beyond) = if inside { (then, otherwise) } else { (otherwise, then) };
        match *edges {
            [] => self.end(End::Goto(here)),
            [edge] => self.compare(CompareOp::Less, Arg::Value(value), Arg::Const(edge), width, here, beyond),
            [only, next] if next == only + 1 => {
                self.compare(CompareOp::Equal, Arg::Value(value), Arg::Const(only), width, beyond, here);
            }
            _ => {
                // An even number of edges below keeps single values (two edges) in one piece.
                let middle = if edges.len() > 2 { (edges.len() / 2) & !1 } else { 0 };
                let (below, above) = (self.new_block(), self.new_block());
                let edge = edges[middle];
                self.compare(CompareOp::Less, Arg::Value(value), Arg::Const(edge), width, below, above);
                self.current = below;
                self.range_tree(value, &edges[..middle], inside, width, then, otherwise);
                self.current = above;
                self.range_tree(value, &edges[middle + 1..], !inside, width, then, otherwise);
            }
        }
    }

    // ---- declarations ----

    /// A number in terms of the header at the cursor.
    pub(super) fn own_number(&mut self, parsing: &mut Parsing<'_>, expr: &Expr) -> Arg {
        match &expr.kind {
            ExprKind::Const(Constant::Uint(value)) => Arg::Const(*value),
            ExprKind::Const(Constant::Bool(value)) => Arg::Const(u64::from(*value)),
            ExprKind::Own(field) => self.own_field(parsing, *field),
            ExprKind::Binary { op, left, right } => {
                let left = self.own_number(parsing, left);
                let right = self.own_number(parsing, right);
                self.arithmetic(*op, left, right)
            }
            ExprKind::OwnPayload { from, to } => {
                let mut known = parsing.behind.iter();
                let value = known.find(|(bytes, _)| *bytes == (*from, *to)).map(|&(_, value)| value);
                value.map_or(Arg::Const(0), Arg::Value)
            }
            ExprKind::Field { instance, field } => Arg::Value(self.cited(parsing, *instance, *field)),
            _ => {
                self.not_yet("a header whose declaration asks for more than its own fields");
                Arg::Const(0)
            }
        }
    }

    /// A field of the header at the cursor.
    pub(super) fn own_field(&mut self, parsing: &mut Parsing<'_>, field: FieldIndex) -> Arg {
        if static_bit(&parsing.header.fields[field]).is_none() {
            return Arg::Value(self.remembered(parsing.place, field));
        }
        match self.own_container(parsing, field) {
            Some((value, found)) => Arg::Value(self.extract(value, found.size, found.shift, found.width)),
            None => Arg::Const(0),
        }
    }

    /// A field of a header that stands before, which was kept there.
    fn cited(&mut self, parsing: &Parsing<'_>, instance: Instance, field: FieldIndex) -> Value {
        let Index::At(index) = instance.index else {
            self.not_yet("a declaration that reads the last of several headers");
            return self.kind;
        };
        let scope = parsing.place.scope;
        self.remembered(Place { scope, header: instance.header, index }, field)
    }

    pub(super) fn remembered(&mut self, place: Place, field: FieldIndex) -> Value {
        if let Some(&value) = self.remembered.get(&(place, field)) {
            return value;
        }
        let name = crate::rule::field_name(self.outlook.graph.header(place.header), field);
        let value = self.value(name);
        self.remembered.insert((place, field), value);
        value
    }

    /// Goes on in a new block only if those bytes are behind the header, with their value known.
    fn guard_payload(
        &mut self,
        parsing: &mut Parsing<'_>,
        (from, to): (u32, u32),
        absent: Block,
        here: &Here,
    ) {
        let sizes = [Size::U8, Size::U16, Size::U32, Size::U64];
        let Some(size) = sizes.into_iter().find(|size| size.bytes() == to - from) else {
            return self.not_yet("a declaration that reads so many bytes behind its header");
        };
        let value = self.value("payload");
        self.at_payload(parsing, to, absent, here, |this, parsing| {
            let read = this.fresh(|dst| match parsing.length {
                Arg::Const(length) => Op::Read { dst, offset: length as u32 + from, size },
                Arg::Value(base) => Op::ReadAt { dst, base, offset: from, size },
            });
            let src = Arg::Value(this.extract(read, size, 0, size.bytes() * 8));
            this.op(Op::Copy { dst: value, src });
        });
        parsing.behind.push(((from, to), value));
    }

    fn own_container(&mut self, parsing: &mut Parsing<'_>, field: FieldIndex) -> Option<(Value, Container)> {
        let declared = &parsing.header.fields[field];
        let sure = declared.when.is_none() || parsing.guarded.contains(&field);
        let plain = static_bit(declared).filter(|_| sure);
        let found = plain.and_then(|bit| Container::new(bit, declared.bits, parsing.checked));
        let Some(found) = found else {
            self.not_yet("a header whose declaration reads a field that is not always there");
            return None;
        };
        Some((self.load(parsing, found.offset, found.size), found))
    }

    /// Branches by a condition on the header at the cursor.
    pub(super) fn own_condition(
        &mut self,
        parsing: &mut Parsing<'_>,
        expr: &Expr,
        then: Block,
        otherwise: Block,
        here: &Here,
    ) {
        self.preload(parsing, expr);
        let before = parsing.clone();
        self.own_branch(parsing, expr, then, otherwise, here);
        let found = |parsing: &Parsing<'_>| (parsing.checked, parsing.guarded.len(), parsing.behind.len());
        if found(parsing) != found(&before) {
            // That was found out on one way only.
            *parsing = before;
        }
    }

    /// Loads all that `expr` reads and that is there for sure, so that the loads are made on every way through it.
    fn preload(&mut self, parsing: &mut Parsing<'_>, expr: &Expr) {
        match &expr.kind {
            ExprKind::Own(field) if self.is_sure(parsing, *field) => {
                self.own_container(parsing, *field);
            }
            ExprKind::Not(inner) | ExprKind::In { value: inner, .. } => self.preload(parsing, inner),
            ExprKind::And(parts) | ExprKind::Or(parts) => {
                parts.iter().for_each(|part| self.preload(parsing, part))
            }
            ExprKind::Compare { left, right, .. } | ExprKind::Binary { left, right, .. } => {
                self.preload(parsing, left);
                self.preload(parsing, right);
            }
            _ => {}
        }
    }

    /// Whether nothing has to be asked to read `field`.
    fn is_sure(&self, parsing: &Parsing<'_>, field: FieldIndex) -> bool {
        let declared = &parsing.header.fields[field];
        let end = static_bit(declared).map_or(u32::MAX, |bit| (bit + declared.bits).div_ceil(8));
        declared.when.is_none() && end <= parsing.checked || parsing.guarded.contains(&field)
    }

    /// Goes on in a new block only if what `expr` reads is there and it has a value.
    pub(super) fn guard(&mut self, parsing: &mut Parsing<'_>, expr: &Expr, absent: Block, here: &Here) {
        match &expr.kind {
            ExprKind::Own(field) if !self.is_sure(parsing, *field) => {
                self.guard_field(parsing, *field, absent, here);
            }
            ExprKind::Compare { left, right, .. } | ExprKind::Binary { left, right, .. } => {
                self.guard(parsing, left, absent, here);
                self.guard(parsing, right, absent, here);
                if matches!(expr.kind, ExprKind::Binary { op: BinaryOp::Subtract, .. }) {
                    self.guard_difference(parsing, left, right, absent);
                }
            }
            ExprKind::In { value, .. } => self.guard(parsing, value, absent, here),
            ExprKind::OwnPayload { from, to }
                if !parsing.behind.iter().any(|(bytes, _)| *bytes == (*from, *to)) =>
            {
                self.guard_payload(parsing, (*from, *to), absent, here);
            }
            _ => {}
        }
    }

    /// Goes on in a new block only if `left - right` is not below zero, where it has no value.
    fn guard_difference(&mut self, parsing: &mut Parsing<'_>, left: &Expr, right: &Expr, absent: Block) {
        if least(parsing.header, Some(left)) < most(parsing.header, Some(right)) {
            let left = self.own_number(parsing, left);
            let (left, right) = (self.in_value(left), self.own_number(parsing, right));
            self.leave_if(left, Condition::Lt, right, absent);
        }
    }

    fn guard_field(&mut self, parsing: &mut Parsing<'_>, field: FieldIndex, absent: Block, here: &Here) {
        let header = parsing.header;
        let declared = &header.fields[field];
        if let Some(when) = &declared.when {
            let there = self.new_block();
            self.own_condition(parsing, when, there, absent, here);
            self.current = there;
        }
        match &declared.position {
            Position::Start { bits, plus } if plus.is_empty() => {
                let end = (bits + declared.bits).div_ceil(8);
                if end > parsing.checked {
                    self.must_fit(parsing, Arg::Const(u64::from(end)), absent);
                    parsing.checked = end;
                }
            }
            Position::End { bits } => self.load_from_end(parsing, field, *bits, absent, here),
            Position::Start { .. } => {
                self.not_yet("a header whose declaration reads a field whose place varies");
            }
        }
        parsing.guarded.push(field);
    }

    /// Loads a field that stands `bits` before the header's end.
    fn load_from_end(
        &mut self,
        parsing: &mut Parsing<'_>,
        field: FieldIndex,
        bits: u32,
        absent: Block,
        here: &Here,
    ) {
        let width = parsing.header.fields[field].bits;
        let Some(found) = Container::new(0, width, bits / 8).filter(|_| bits.is_multiple_of(8)) else {
            return self.not_yet("a header whose declaration reads a field of this width at its end");
        };
        let place = parsing.place;
        let dst = self.remembered(place, field);
        let length = self.in_value(parsing.length);
        let right = Arg::Const(u64::from(bits / 8));
        let distance = Arg::Value(self.fresh(|dst| Op::Alu { op: AluOp::Sub, dst, left: length, right }));
        let size = found.size;
        self.far_from(parsing, distance, size.bytes(), absent, here, |this, _| {
            let src = this.fresh(|dst| Op::Read { dst, offset: 0, size });
            let src = Arg::Value(this.extract(src, size, found.shift, found.width));
            this.op(Op::Copy { dst, src });
        });
    }

    fn own_branch(
        &mut self,
        parsing: &mut Parsing<'_>,
        expr: &Expr,
        then: Block,
        otherwise: Block,
        here: &Here,
    ) {
        if let Some(holds) = parsing.is_decided(expr) {
            return self.end(End::Goto(if holds { then } else { otherwise }));
        }
        match &expr.kind {
            ExprKind::Const(Constant::Bool(value)) => {
                self.end(End::Goto(if *value { then } else { otherwise }))
            }
            ExprKind::Not(inner) => self.own_branch(parsing, inner, otherwise, then, here),
            ExprKind::And(parts) => {
                for part in parts {
                    let next = self.new_block();
                    self.own_branch(parsing, part, next, otherwise, here);
                    self.current = next;
                }
                self.end(End::Goto(then));
            }
            ExprKind::Or(parts) => {
                for part in parts {
                    let next = self.new_block();
                    // What one alternative finds out does not hold where it fails.
                    self.own_condition(parsing, part, then, next, here);
                    self.current = next;
                }
                self.end(End::Goto(otherwise));
            }
            ExprKind::Own(field) => {
                self.guard(parsing, expr, otherwise, here);
                self.own_bits(parsing, *field, 0, otherwise, then);
            }
            ExprKind::Compare { op, left, right } => {
                self.guard(parsing, expr, otherwise, here);
                self.own_compare(parsing, *op, left, right, then, otherwise)
            }
            ExprKind::In { value, set, negated } => {
                self.guard(parsing, expr, otherwise, here);
                let (then, otherwise) = if *negated { (otherwise, then) } else { (then, otherwise) };
                let value = self.own_number(parsing, value);
                let value = self.in_value(value);
                let merged = self.number_set(*set);
                self.in_ranges(value, &merged, Width::W64, then, otherwise);
            }
            _ => {
                self.not_yet("a header whose declaration asks for more than its own fields");
                self.end(End::Goto(otherwise));
            }
        }
    }

    fn own_compare(
        &mut self,
        parsing: &mut Parsing<'_>,
        op: CompareOp,
        left: &Expr,
        right: &Expr,
        then: Block,
        otherwise: Block,
    ) {
        let (yes, no) = if op == CompareOp::NotEqual { (otherwise, then) } else { (then, otherwise) };
        if matches!(op, CompareOp::Equal | CompareOp::NotEqual)
            && let ExprKind::Const(Constant::Uint(value)) = right.kind
            && let ExprKind::Own(field) = left.kind
            && static_bit(&parsing.header.fields[field]).is_some()
        {
            return self.own_bits(parsing, field, value, yes, no);
        }
        let left = self.own_number(parsing, left);
        let right = self.own_number(parsing, right);
        self.compare(op, left, right, Width::W64, then, otherwise);
    }

    /// Branches by `field == value`, without a change of byte order.
    pub(super) fn own_bits(
        &mut self,
        parsing: &mut Parsing<'_>,
        field: FieldIndex,
        value: u64,
        then: Block,
        otherwise: Block,
    ) {
        let Some((left, found)) = self.own_container(parsing, field) else {
            return self.end(End::Goto(otherwise));
        };
        if value > low_bits(found.width) {
            return self.end(End::Goto(otherwise));
        }
        let (mask, value) =
            (swap_bytes(found.mask(), found.size), swap_bytes(value << found.shift, found.size));
        self.end(End::Masked { left, size: found.size, mask, value, then, otherwise });
    }

    fn number_set(&self, set: SetId) -> Vec<(u64, u64)> {
        let elements = &self.outlook.graph.program.sets[set].elements;
        ranges::merge(elements.iter().filter_map(Element::as_number_range))
    }
}

pub(super) fn fold(op: BinaryOp, left: u64, right: u64) -> u64 {
    match op {
        BinaryOp::Or => left | right,
        BinaryOp::Xor => left ^ right,
        BinaryOp::And => left & right,
        BinaryOp::Add => left.wrapping_add(right),
        BinaryOp::Subtract => left.wrapping_sub(right),
        BinaryOp::Multiply => left.wrapping_mul(right),
        BinaryOp::ShiftLeft => u32::try_from(right).ok().and_then(|by| left.checked_shl(by)).unwrap_or(0),
        BinaryOp::ShiftRight => u32::try_from(right).ok().and_then(|by| left.checked_shr(by)).unwrap_or(0),
    }
}

fn holds(op: CompareOp, left: u64, right: u64) -> bool {
    match op {
        CompareOp::Equal => left == right,
        CompareOp::NotEqual => left != right,
        CompareOp::Less => left < right,
        CompareOp::LessEqual => left <= right,
        CompareOp::Greater => left > right,
        CompareOp::GreaterEqual => left >= right,
    }
}

/// The comparison that holds for `(b, a)` where `op` holds for `(a, b)`.
fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Equal | CompareOp::NotEqual => op,
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessEqual => CompareOp::GreaterEqual,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterEqual => CompareOp::LessEqual,
    }
}
