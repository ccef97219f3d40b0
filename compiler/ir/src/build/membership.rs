//! Membership in fixed sets.

use std::net::Ipv6Addr;

use hashbrown::HashMap;
use pktc_bpf::Size;
use pktc_diagnostics::Span;
use pktc_semantics::typed::{CompareOp, Element, Expr, SetId};

use super::RuleBuilder;
use super::operand::{Operand, Wide};
use crate::layout::{low_bits, swap_bytes};
use crate::ranges;
use crate::rule::{Cond, Num, SlotId, Test};

/// Parts of a tuple in a set; `None` is anything.
type Row<'e> = &'e [Option<Element>];

impl RuleBuilder<'_> {
    /// `value in set`.
    pub(super) fn member(&mut self, value: &Expr, set: SetId, negated: bool, span: Span) -> Cond {
        let elements: Vec<&Element> = self.program.sets[set].elements.iter().collect();
        self.operand(value, &mut |this, operand| {
            let cond = this.is_one_of(&operand, &elements, span);
            if negated { Cond::negate(cond) } else { cond }
        })
    }

    /// Whether `operand` lies in one of `elements`; those of another kind hold nothing like it.
    pub(super) fn is_one_of(&mut self, operand: &Operand, elements: &[&Element], span: Span) -> Cond {
        let elements_of = elements.iter().copied();
        match operand {
            Operand::Ipv6(wide) => {
                wide_member(*wide, ranges::merge(elements_of.filter_map(ipv6_range)), span)
            }
            Operand::Ipv4(num) => {
                self.num_member(num.clone(), ranges::merge(elements_of.filter_map(ipv4_range)), span)
            }
            Operand::Mac(num) | Operand::Num(num) => {
                let merged = ranges::merge(elements_of.filter_map(Element::as_number_range));
                self.num_member(num.clone(), merged, span)
            }
            Operand::Bytes(slots) => self.bytes_member(slots, elements, span),
            Operand::Varying(bytes) => self.varying_member(bytes, elements, span),
            Operand::Text(text) => Cond::Const(
                elements_of
                    .filter_map(string_range)
                    .any(|(low, high)| low.len() == text.len() && (low..=high).contains(&text.as_slice())),
            ),
            Operand::Cond(cond) => {
                let merged = ranges::merge(elements_of.filter_map(Element::as_number_range));
                let holds = |bit: u64| merged.iter().any(|&(low, high)| (low..=high).contains(&bit));
                Cond::choose(cond.clone(), Cond::Const(holds(1)), Cond::Const(holds(0)))
            }
            Operand::Tuple(parts) => {
                let rows: Vec<Row<'_>> = elements_of.filter_map(tuple_parts).collect();
                self.tuple_member(parts, &rows, span)
            }
        }
    }

    /// Whether each of `parts` lies in its part of one of `rows`. Rows that begin alike are asked together, and the last
    /// parts of such are one membership.
    fn tuple_member(&mut self, parts: &[Operand], rows: &[Row<'_>], span: Span) -> Cond {
        match parts {
            [] => Cond::Const(!rows.is_empty()),
            [last] => {
                let elements: Option<Vec<&Element>> = rows.iter().map(|row| row[0].as_ref()).collect();
                elements.map_or(Cond::Const(true), |elements| self.is_one_of(last, &elements, span))
            }
            [first, others @ ..] => Cond::or(by_first(rows).into_iter().map(|(element, rows)| {
                let element = element.as_ref();
                let begins = element.map_or(Cond::Const(true), |it| self.is_one_of(first, &[it], span));
                match begins {
                    Cond::Const(false) => begins,
                    begins => Cond::and([begins, self.tuple_member(others, &rows, span)]),
                }
            })),
        }
    }

    fn bytes_member(&mut self, slots: &[(SlotId, Size)], elements: &[&Element], span: Span) -> Cond {
        let length = slots.iter().map(|(_, size)| size.bytes()).sum::<u32>();
        let strings = elements.iter().copied().filter_map(string_range);
        let strings = strings.filter(|(low, _)| low.len() == length as usize);
        if length <= 8 {
            let as_number = |text: &[u8]| text.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            let numbers = elements.iter().copied().filter_map(Element::as_number_range);
            let merged =
                ranges::merge(strings.map(|(low, high)| (as_number(low), as_number(high))).chain(numbers));
            let num = self.number(Operand::Bytes(slots.to_vec()), span);
            return self.num_member(num, merged, span);
        }
        Cond::or(strings.map(|(low, high)| {
            if low == high {
                return self.text_equal(slots, low, span);
            }
            let from_low = self.text_or_beyond(CompareOp::Greater, slots, low, span);
            Cond::and([from_low, self.text_or_beyond(CompareOp::Less, slots, high, span)])
        }))
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

fn ipv4_range(element: &Element) -> Option<(u64, u64)> {
    match element {
        Element::Ipv4 { low, high } => Some((u64::from(low.to_bits()), u64::from(high.to_bits()))),
        _ => None,
    }
}

fn ipv6_range(element: &Element) -> Option<(u128, u128)> {
    match element {
        Element::Ipv6 { low, high } => Some((low.to_bits(), high.to_bits())),
        _ => None,
    }
}

fn string_range(element: &Element) -> Option<(&[u8], &[u8])> {
    match element {
        Element::Bytes { low, high } => Some((low, high)),
        _ => None,
    }
}

fn tuple_parts(element: &Element) -> Option<Row<'_>> {
    match element {
        Element::Tuple(parts) => Some(parts),
        _ => None,
    }
}

/// The rows by their first part, in order, without it.
fn by_first<'e>(rows: &[Row<'e>]) -> Vec<(&'e Option<Element>, Vec<Row<'e>>)> {
    let mut places: HashMap<&Option<Element>, usize> = HashMap::new();
    let mut groups: Vec<(&Option<Element>, Vec<Row<'e>>)> = Vec::new();
    for (first, others) in rows.iter().filter_map(|row| row.split_first()) {
        let place = *places.entry(first).or_insert(groups.len());
        if place == groups.len() {
            groups.push((first, Vec::new()));
        }
        groups[place].1.push(others);
    }
    groups
}
