//! Comparisons.

use pktc_bpf::Size;
use pktc_diagnostics::Span;
use pktc_semantics::typed::{CompareOp, Expr};

use super::RuleBuilder;
use super::operand::{Operand, Wide};
use crate::layout::{low_bits, swap_bytes};
use crate::rule::{Cond, Num, SlotId, Test};

impl RuleBuilder<'_> {
    /// `left op right`.
    pub(super) fn compare(&mut self, op: CompareOp, left: &Expr, right: &Expr, span: Span) -> Cond {
        self.operand(left, &mut |this, left| {
            this.operand(right, &mut |this, right| this.compare_operands(op, left.clone(), right, span))
        })
    }

    fn compare_operands(&mut self, op: CompareOp, left: Operand, right: Operand, span: Span) -> Cond {
        match op {
            CompareOp::Equal => self.equal(left, right, span),
            CompareOp::NotEqual => Cond::negate(self.equal(left, right, span)),
            CompareOp::Less | CompareOp::LessEqual | CompareOp::Greater | CompareOp::GreaterEqual => {
                let (left, right) = (self.number(left, span), self.number(right, span));
                Cond::Test(Test::Compare { op, left, right }, span)
            }
        }
    }

    pub(super) fn equal(&mut self, left: Operand, right: Operand, span: Span) -> Cond {
        match (left, right) {
            (Operand::Ipv4(_), Operand::Ipv6(_)) | (Operand::Ipv6(_), Operand::Ipv4(_)) => Cond::Const(false),
            (Operand::Ipv6(left), Operand::Ipv6(right)) => self.wide_equal(left, right, span),
            (Operand::Varying(bytes), other) | (other, Operand::Varying(bytes)) => {
                self.varying_equal(&bytes, &other, span)
            }
            (Operand::Text(left), Operand::Text(right)) => Cond::Const(left == right),
            (Operand::Bytes(slots), Operand::Text(text)) | (Operand::Text(text), Operand::Bytes(slots)) => {
                self.text_equal(&slots, &text, span)
            }
            (Operand::Bytes(left), Operand::Bytes(right)) if left.len() == right.len() => {
                let pairs = left.into_iter().zip(right);
                let raw = |slot| Num::Slot(slot);
                Cond::and(pairs.map(|((a, _), (b, _))| {
                    Cond::Test(Test::Compare { op: CompareOp::Equal, left: raw(a), right: raw(b) }, span)
                }))
            }
            (Operand::Cond(left), Operand::Cond(right)) => {
                let other = Cond::negate(right.clone());
                Cond::choose(left, right, other)
            }
            (Operand::Cond(cond), Operand::Num(Num::Const(bit)))
            | (Operand::Num(Num::Const(bit)), Operand::Cond(cond)) => {
                if bit == 0 {
                    Cond::negate(cond)
                } else {
                    cond
                }
            }
            (left, right) => {
                let (left, right) = (self.number(left, span), self.number(right, span));
                self.num_equal(left, right, span)
            }
        }
    }

    pub(super) fn text_equal(&mut self, slots: &[(SlotId, Size)], text: &[u8], span: Span) -> Cond {
        if slots.iter().map(|(_, size)| size.bytes() as usize).sum::<usize>() != text.len() {
            return Cond::Const(false);
        }
        let mut rest = text;
        Cond::and(slots.iter().map(|&(slot, size)| {
            let (chunk, behind) = rest.split_at(size.bytes() as usize);
            rest = behind;
            let value = chunk.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            Cond::Test(Test::Bytes { slot, mask: low_bits(size.bytes() * 8), value }, span)
        }))
    }

    /// Whether `slots` equal `text`, which is as long, or lie on that side of it; byte by byte from the first.
    pub(super) fn text_or_beyond(
        &mut self,
        side: CompareOp,
        slots: &[(SlotId, Size)],
        text: &[u8],
        span: Span,
    ) -> Cond {
        let Some((&(slot, size), slots)) = slots.split_first() else { return Cond::Const(true) };
        let (chunk, text) = text.split_at(size.bytes() as usize);
        let left = Num::Bits { slot, shift: 0, width: size.bytes() * 8 };
        let right = chunk.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        let equal = self.num_is(left.clone(), right, span);
        let rest = self.text_or_beyond(side, slots, text, span);
        let beyond = Cond::Test(Test::Compare { op: side, left, right: Num::Const(right) }, span);
        Cond::or([beyond, Cond::and([equal, rest])])
    }

    fn wide_equal(&mut self, left: Wide, right: Wide, span: Span) -> Cond {
        let half = |slot, bits: u64| {
            Cond::Test(Test::Bytes { slot, mask: u64::MAX, value: bits.swap_bytes() }, span)
        };
        let same = |a, b| {
            let (left, right) = (Num::Slot(a), Num::Slot(b));
            Cond::Test(Test::Compare { op: CompareOp::Equal, left, right }, span)
        };
        match (left, right) {
            (Wide::Const(a), Wide::Const(b)) => Cond::Const(a == b),
            (Wide::Slots(high, low), Wide::Const(value)) | (Wide::Const(value), Wide::Slots(high, low)) => {
                Cond::and([half(low, value as u64), half(high, (value >> 64) as u64)])
            }
            (Wide::Slots(h1, l1), Wide::Slots(h2, l2)) => Cond::and([same(l1, l2), same(h1, h2)]),
        }
    }

    /// `left == right`, where one is bits of a slot and the other a constant as one masked comparison.
    pub(super) fn num_equal(&mut self, left: Num, right: Num, span: Span) -> Cond {
        match (left, right) {
            (Num::Const(a), Num::Const(b)) => Cond::Const(a == b),
            (Num::Const(value), other) | (other, Num::Const(value)) => self.num_is(other, value, span),
            (left, right) => Cond::Test(Test::Compare { op: CompareOp::Equal, left, right }, span),
        }
    }

    pub(super) fn num_is(&mut self, num: Num, value: u64, span: Span) -> Cond {
        match split(&num, value) {
            Some(None) => Cond::Const(false),
            Some(Some(parts)) => Cond::and(parts.into_iter().map(|(slot, mask, value)| {
                let size = self.slots[slot].size();
                let (mask, value) = (swap_bytes(mask, size), swap_bytes(value, size));
                Cond::Test(Test::Bytes { slot, mask, value }, span)
            })),
            None => {
                let (left, right) = (num, Num::Const(value));
                Cond::Test(Test::Compare { op: CompareOp::Equal, left, right }, span)
            }
        }
    }

    pub(super) fn num_compare_ge(&mut self, left: Num, right: Num, span: Span) -> Cond {
        match (&left, &right) {
            (Num::Const(a), Num::Const(b)) => Cond::Const(a >= b),
            _ => Cond::Test(Test::Compare { op: CompareOp::GreaterEqual, left, right }, span),
        }
    }
}

/// `num == value` as masked comparisons of slots, in host order; `Some(None)` if it can never hold, `None` if it
/// has no such form.
fn split(num: &Num, value: u64) -> Option<Option<Vec<(SlotId, u64, u64)>>> {
    use pktc_semantics::typed::BinaryOp;
    match num {
        Num::Bits { slot, shift, width } => {
            let fits = value <= low_bits(*width);
            Some(fits.then(|| vec![(*slot, low_bits(*width) << shift, value << shift)]))
        }
        Num::Binary { op: BinaryOp::And, left, right } => {
            let (Num::Bits { slot, shift, .. }, Num::Const(mask)) = (&**left, &**right) else { return None };
            let Num::Bits { width, .. } = **left else { return None };
            let mask = mask & low_bits(width);
            if value & !mask != 0 {
                return Some(None);
            }
            Some(Some(vec![(*slot, mask << shift, value << shift)]))
        }
        Num::Binary { op: BinaryOp::Or, left, right } => {
            let Num::Binary { op: BinaryOp::ShiftLeft, left: high, right: by } = &**left else { return None };
            let (Num::Const(by), Num::Bits { width, .. }) = (&**by, &**right) else { return None };
            if *by != u64::from(*width) {
                return None;
            }
            let (Some(high), Some(low)) =
                (split(high, value >> by)?, split(right, value & low_bits(*width))?)
            else {
                return Some(None);
            };
            Some(Some(low.into_iter().chain(high).collect()))
        }
        Num::Const(_) | Num::Slot(_) | Num::PacketLength | Num::Ifindex | Num::Queue | Num::Binary { .. } => {
            None
        }
    }
}
