//! What is known of values wherever they are assigned: an upper bound, and a power of two that divides them.

use cranelift_entity::SecondaryMap;
use pktc_bpf::{AluOp, Size};

use crate::flow::{Arg, Flow, Op, Value};
use crate::layout::low_bits;

/// Of one value, over all its assignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// It is at most that.
    pub most: u64,
    /// So many of its lowest bits are 0.
    pub zeros: u32,
}

const NOTHING: Fact = Fact { most: u64::MAX, zeros: 0 };

impl Fact {
    fn of(constant: u64) -> Fact {
        Fact { most: constant, zeros: constant.trailing_zeros() }
    }

    /// What is left to know where it was this, and is `now` that.
    fn widened(self, now: Fact) -> Fact {
        let most = if self.most == now.most { now.most } else { NOTHING.most };
        Fact { most, zeros: if self.zeros == now.zeros { now.zeros } else { NOTHING.zeros } }
    }

    fn either(self, other: Fact) -> Fact {
        Fact { most: self.most.max(other.most), zeros: self.zeros.min(other.zeros) }
    }
}

/// The facts of all values of a flow.
#[derive(Clone, Debug)]
pub struct Facts(SecondaryMap<Value, Option<Fact>>);

impl Facts {
    /// Reads `flow`.
    #[must_use]
    pub fn new(flow: &Flow) -> Self {
        /// Values that still grow after so many rounds are counted up in a loop.
        const ROUNDS: u32 = 8;
        let mut facts = Facts(SecondaryMap::new());
        for round in 0.. {
            if !facts.round(flow, round >= ROUNDS) {
                break;
            }
        }
        facts
    }

    /// What is known of `arg`.
    #[must_use]
    pub fn of(&self, arg: Arg) -> Fact {
        match arg {
            Arg::Const(constant) => Fact::of(constant),
            Arg::Value(value) => self.0[value].unwrap_or(NOTHING),
        }
    }

    fn round(&mut self, flow: &Flow, give_up: bool) -> bool {
        let mut changed = false;
        for data in flow.blocks.values() {
            for (op, _) in &data.ops {
                let Some((dst, found)) = self.result(op) else { continue };
                let merged = self.0[dst].map_or(found, |before| before.either(found));
                if self.0[dst] != Some(merged) {
                    let before = self.0[dst].unwrap_or(merged);
                    self.0[dst] = Some(if give_up { before.widened(merged) } else { merged });
                    changed = true;
                }
            }
        }
        changed
    }

    fn result(&self, op: &Op) -> Option<(Value, Fact)> {
        let sized = |size: Size| Fact { most: low_bits(size.bytes() * 8), zeros: 0 };
        Some(match *op {
            Op::Copy { dst, src } => (dst, self.known(src)?),
            Op::Forget { dst, mask, .. } => (dst, Fact { most: mask, zeros: mask.trailing_zeros() }),
            Op::Alu { op, dst, left, right } => {
                (dst, arithmetic(op, self.known(Arg::Value(left))?, self.known(right)?, right))
            }
            Op::Swap { dst, size, .. } | Op::Read { dst, size, .. } | Op::ReadAt { dst, size, .. } => {
                (dst, sized(size))
            }
            Op::Ifindex { dst } | Op::Queue { dst } => (dst, sized(Size::U32)),
            Op::Position { dst }
            | Op::Remaining { dst }
            | Op::Reachable { dst }
            | Op::PacketLength { dst } => (dst, NOTHING),
            // What is recalled was assigned to the same value before.
            Op::Recall { .. } | Op::Keep { .. } => return None,
            Op::Advance { .. } | Op::Claims { .. } | Op::Hit { .. } | Op::Count { .. } => return None,
        })
    }

    /// `None` while nothing was assigned yet.
    fn known(&self, arg: Arg) -> Option<Fact> {
        match arg {
            Arg::Const(constant) => Some(Fact::of(constant)),
            Arg::Value(value) => self.0[value],
        }
    }
}

fn arithmetic(op: AluOp, left: Fact, right: Fact, by: Arg) -> Fact {
    let both = left.zeros.min(right.zeros);
    match (op, by) {
        (AluOp::Add, _) => {
            left.most.checked_add(right.most).map_or(NOTHING, |most| Fact { most, zeros: both })
        }
        (AluOp::Mul, _) => {
            let zeros = left.zeros.saturating_add(right.zeros).min(64);
            left.most.checked_mul(right.most).map_or(NOTHING, |most| Fact { most, zeros })
        }
        (AluOp::And, _) => Fact { most: left.most.min(right.most), zeros: left.zeros.max(right.zeros) },
        (AluOp::Or | AluOp::Xor, _) => {
            let bits = 64 - left.most.max(right.most).leading_zeros();
            Fact { most: low_bits(bits), zeros: both }
        }
        (AluOp::Lsh, Arg::Const(shift)) if shift < u64::from(left.most.leading_zeros()) => {
            Fact { most: left.most << shift, zeros: (left.zeros + shift as u32).min(64) }
        }
        (AluOp::Rsh, Arg::Const(shift)) if shift < 64 => {
            Fact { most: left.most >> shift, zeros: left.zeros.saturating_sub(shift as u32) }
        }
        (AluOp::Rsh, _) => Fact { most: left.most, zeros: 0 },
        _ => NOTHING,
    }
}
