//! Tests of rules over loaded slots.

use pktc_bpf::{Size, Width};
use pktc_semantics::typed::CompareOp;

use super::Specialiser;
use crate::flow::{Arg, Block, End, Value};
use crate::layout::low_bits;
use crate::ranges;
use crate::rule::{Num, SlotId, Test};

impl Specialiser<'_> {
    /// Branches by `test`; all that it reads is loaded.
    pub(super) fn test(&mut self, test: &Test, then: Block, otherwise: Block) {
        match test {
            Test::Bytes { slot, mask, value } => {
                let (left, size) = (self.slot(*slot), self.slot_size(*slot));
                self.end(End::Masked { left, size, mask: *mask, value: *value, then, otherwise });
            }
            Test::Compare { op, left, right } => {
                let width = if self.bits(left).max(self.bits(right)) <= 32 { Width::W32 } else { Width::W64 };
                let (left, right) = (self.number(left), self.number(right));
                self.compare(*op, left, right, width, then, otherwise);
            }
            Test::Ranges { value, ranges } => {
                let bits = self.bits(value);
                let width = if bits <= 32 { Width::W32 } else { Width::W64 };
                let value = self.number(value);
                let value = self.in_value(value);
                // Nothing is above the largest number that the value can be.
                let open = |high: u64| if high >= low_bits(bits) { u64::MAX } else { high };
                let ranges: Vec<_> = ranges.iter().map(|&(low, high)| (low, open(high))).collect();
                self.in_ranges(value, &ranges, width, then, otherwise);
            }
            Test::WideRanges { high, low, ranges } => self.wide_ranges(*high, *low, ranges, then, otherwise),
            Test::Present(_) | Test::Malformed(_) => unreachable!("states answer these"),
        }
    }

    /// An upper bound of how many bits `num` has.
    fn bits(&self, num: &Num) -> u32 {
        match num {
            Num::Const(value) => 64 - value.leading_zeros(),
            Num::Bits { width, .. } => *width,
            Num::Slot(slot) => self.slot_size(*slot).bytes() * 8,
            Num::PacketLength | Num::Ifindex | Num::Queue => 32,
            Num::Binary { .. } => 64,
        }
    }

    fn wide_ranges(
        &mut self,
        high: SlotId,
        low: SlotId,
        merged: &[(u128, u128)],
        then: Block,
        otherwise: Block,
    ) {
        let size = Size::U64;
        let (high, low) = (self.slot(high), self.slot(low));
        let high = self.extract(high, size, 0, 64);
        let low = self.extract(low, size, 0, 64);
        self.wide_tree(high, low, &ranges::edges(merged), false, then, otherwise);
    }

    /// `edges`: where membership changes; `inside`: whether what lies below the first is in.
    fn wide_tree(
        &mut self,
        high: Value,
        low: Value,
        edges: &[u128],
        inside: bool,
        then: Block,
        otherwise: Block,
    ) {
        if edges.is_empty() {
            return self.end(End::Goto(if inside { then } else { otherwise }));
        }
        let middle = edges.len() / 2;
        let (below, above) = (self.new_block(), self.new_block());
        self.wide_less(high, low, edges[middle], below, above);
        self.current = below;
        self.wide_tree(high, low, &edges[..middle], inside, then, otherwise);
        self.current = above;
        let flips = (middle + 1) % 2 == 1;
        self.wide_tree(high, low, &edges[middle + 1..], inside != flips, then, otherwise);
    }

    /// Branches by `(high, low) < edge`.
    fn wide_less(&mut self, high: Value, low: Value, edge: u128, below: Block, above: Block) {
        let (edge_high, edge_low) = ((edge >> 64) as u64, edge as u64);
        let width = Width::W64;
        if edge_low == 0 {
            return self.compare(
                CompareOp::Less,
                Arg::Value(high),
                Arg::Const(edge_high),
                width,
                below,
                above,
            );
        }
        let (not_less, equal) = (self.new_block(), self.new_block());
        self.compare(CompareOp::Less, Arg::Value(high), Arg::Const(edge_high), width, below, not_less);
        self.current = not_less;
        self.compare(CompareOp::Equal, Arg::Value(high), Arg::Const(edge_high), width, equal, above);
        self.current = equal;
        self.compare(CompareOp::Less, Arg::Value(low), Arg::Const(edge_low), width, below, above);
    }
}
