//! Comparisons and membership.

use std::net::Ipv6Addr;

use pktc_bpf::Size;
use pktc_diagnostics::Span;
use pktc_semantics::typed::{CompareOp, Element, Expr, SetId};

use super::RuleBuilder;
use super::operand::{Operand, Wide};
use crate::layout::{low_bits, swap_bytes};
use crate::ranges;
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

    fn equal(&mut self, left: Operand, right: Operand, span: Span) -> Cond {
        match (left, right) {
            (Operand::Ipv4(_), Operand::Ipv6(_)) | (Operand::Ipv6(_), Operand::Ipv4(_)) => Cond::Const(false),
            (Operand::Ipv6(left), Operand::Ipv6(right)) => self.wide_equal(left, right, span),
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

    fn text_equal(&mut self, slots: &[(SlotId, Size)], text: &[u8], span: Span) -> Cond {
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

    fn num_is(&mut self, num: Num, value: u64, span: Span) -> Cond {
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

    /// `value in set`.
    pub(super) fn member(&mut self, value: &Expr, set: SetId, negated: bool, span: Span) -> Cond {
        self.operand(value, &mut |this, operand| {
            let cond = this.member_operand(operand, set, span);
            if negated { Cond::negate(cond) } else { cond }
        })
    }

    fn member_operand(&mut self, operand: Operand, set: SetId, span: Span) -> Cond {
        let elements = &self.program.sets[set].elements;
        match operand {
            Operand::Ipv6(wide) => {
                let merged = ranges::merge(elements.iter().filter_map(|element| match element {
                    Element::Ipv6 { low, high } => Some((low.to_bits(), high.to_bits())),
                    _ => None,
                }));
                wide_member(wide, merged, span)
            }
            Operand::Ipv4(num) => {
                let merged = ranges::merge(elements.iter().filter_map(|element| match element {
                    Element::Ipv4 { low, high } => {
                        Some((u64::from(low.to_bits()), u64::from(high.to_bits())))
                    }
                    _ => None,
                }));
                self.num_member(num, merged, span)
            }
            Operand::Mac(num) | Operand::Num(num) => {
                let merged = ranges::merge(elements.iter().filter_map(Element::as_number_range));
                self.num_member(num, merged, span)
            }
            Operand::Bytes(slots) => self.bytes_member(&slots, &elements.clone(), span),
            Operand::Text(_) | Operand::Cond(_) => {
                self.not_yet("membership of this value", span);
                Cond::Const(false)
            }
        }
    }

    fn bytes_member(&mut self, slots: &[(SlotId, Size)], elements: &[Element], span: Span) -> Cond {
        let length = slots.iter().map(|(_, size)| size.bytes()).sum::<u32>();
        let strings = elements.iter().filter_map(|element| match element {
            Element::Bytes { low, high } if low.len() == length as usize => Some((low, high)),
            _ => None,
        });
        if length <= 8 {
            let as_number = |text: &Vec<u8>| text.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            let numbers = elements.iter().filter_map(Element::as_number_range);
            let merged =
                ranges::merge(strings.map(|(low, high)| (as_number(low), as_number(high))).chain(numbers));
            let num = self.number(Operand::Bytes(slots.to_vec()), span);
            return self.num_member(num, merged, span);
        }
        let strings: Vec<_> = strings.map(|(low, high)| (low.clone(), high.clone())).collect();
        if strings.iter().any(|(low, high)| low != high) {
            self.not_yet("a range of strings longer than 8 bytes", span);
        }
        Cond::or(strings.iter().map(|(text, _)| self.text_equal(slots, text, span)))
    }

    fn num_member(&mut self, num: Num, merged: Vec<(u64, u64)>, span: Span) -> Cond {
        if let Num::Const(value) = num {
            return Cond::Const(merged.iter().any(|&(low, high)| (low..=high).contains(&value)));
        }
        let most = if let Num::Bits { width, .. } = num { low_bits(width) } else { u64::MAX };
        let possible = merged.into_iter().filter(|&(low, _)| low <= most);
        let merged: Vec<_> = possible.map(|(low, high)| (low, high.min(most))).collect();
        if let Some(parts) = self.masked_alternatives(&num, &merged, span) {
            return Cond::or(parts);
        }
        if merged.is_empty() {
            Cond::Const(false)
        } else {
            Cond::Test(Test::Ranges { value: num, ranges: merged }, span)
        }
    }

    /// A few values and prefixes as masked comparisons, without a change of byte order.
    fn masked_alternatives(&mut self, num: &Num, merged: &[(u64, u64)], span: Span) -> Option<Vec<Cond>> {
        const FEW: usize = 4;
        let Num::Bits { slot, shift, width } = *num else {
            let single = merged.len() <= FEW && merged.iter().all(|(low, high)| low == high);
            return single
                .then(|| merged.iter().map(|&(value, _)| self.num_is(num.clone(), value, span)).collect());
        };
        if merged.len() > FEW {
            return None;
        }
        let size = self.slots[slot].size();
        let as_prefix = |&(low, high): &(u64, u64)| {
            let free = low ^ high;
            let aligned = (free & (free.wrapping_add(1))) == 0 && low & free == 0;
            aligned.then_some((low_bits(width) & !free, low))
        };
        let prefixes: Vec<_> = merged.iter().map(as_prefix).collect::<Option<_>>()?;
        Some(
            prefixes
                .into_iter()
                .map(|(mask, value)| {
                    if mask == 0 {
                        return Cond::Const(true);
                    }
                    let (mask, value) = (swap_bytes(mask << shift, size), swap_bytes(value << shift, size));
                    Cond::Test(Test::Bytes { slot, mask, value }, span)
                })
                .collect(),
        )
    }
}

fn wide_member(wide: Wide, merged: Vec<(u128, u128)>, span: Span) -> Cond {
    match wide {
        Wide::Const(value) => Cond::Const(merged.iter().any(|&(low, high)| (low..=high).contains(&value))),
        Wide::Slots(..) if merged.is_empty() => Cond::Const(false),
        Wide::Slots(..) if merged == [(0, u128::from(Ipv6Addr::from_bits(u128::MAX)))] => Cond::Const(true),
        Wide::Slots(high, low) => Cond::Test(Test::WideRanges { high, low, ranges: merged }, span),
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
