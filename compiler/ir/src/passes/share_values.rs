//! Computes and reads nothing twice along a way without joins.
//!
//! ```text
//! x1 = read 0..1        x1 = read 0..1
//! x2 = and x1, 0xf      x2 = and x1, 0xf
//! …                     …
//! x3 = and x1, 0xf      x3 = x2
//! ```
//!
//! What is known where a block ends holds in each block that only it leads to. Values may be assigned again, so
//! what is known speaks of a value together with how often it was assigned on the way.

use hashbrown::HashMap;

use cranelift_entity::{EntityRef, SecondaryMap};
use pktc_bpf::{AluOp, Size};

use crate::flow::{Arg, Block, End, Flow, Op, Value};

/// More than that is forgotten: a long list of rules would otherwise be copied for each rule.
const MOST: usize = 256;

/// A value as it was at one time.
type Version = (Value, u32);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Version(Version),
    Const(u64),
}

/// What is computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Alu(AluOp, Version, Source),
    Swap(Version, Size),
    Read { cursor: u32, base: Option<Version>, offset: u32, size: Size },
    PacketLength,
}

#[derive(Clone, Default)]
struct Known {
    results: HashMap<Key, Version>,
    versions: HashMap<Value, u32>,
    /// Values that are copies of others.
    copies: HashMap<Value, Version>,
    cursor: u32,
}

impl Known {
    /// The value that `value` is a copy of, or itself.
    fn version(&self, value: Value) -> Version {
        match self.copies.get(&value) {
            Some(&(of, version)) if self.current(of) == version => (of, version),
            _ => (value, self.current(value)),
        }
    }

    fn current(&self, value: Value) -> u32 {
        self.versions.get(&value).copied().unwrap_or(0)
    }

    fn source(&self, arg: Arg) -> Source {
        match arg {
            Arg::Value(value) => Source::Version(self.version(value)),
            Arg::Const(constant) => Source::Const(constant),
        }
    }

    fn key(&self, op: &Op) -> Option<(Key, Value)> {
        Some(match *op {
            Op::Alu { op, dst, left, right } => (Key::Alu(op, self.version(left), self.source(right)), dst),
            Op::Swap { dst, src, size } => (Key::Swap(self.version(src), size), dst),
            Op::Read { dst, offset, size } => {
                (Key::Read { cursor: self.cursor, base: None, offset, size }, dst)
            }
            Op::ReadAt { dst, base, offset, size } => {
                (Key::Read { cursor: self.cursor, base: Some(self.version(base)), offset, size }, dst)
            }
            Op::PacketLength { dst } => (Key::PacketLength, dst),
            Op::Copy { .. }
            | Op::Forget { .. }
            | Op::Advance { .. }
            | Op::Position { .. }
            | Op::Remaining { .. }
            | Op::Reachable { .. }
            | Op::Ifindex { .. }
            | Op::Queue { .. }
            | Op::Claims { .. }
            | Op::Keep { .. }
            | Op::Recall { .. }
            | Op::Hit { .. }
            | Op::Count { .. } => return None,
        })
    }

    fn assign(&mut self, dst: Value) {
        *self.versions.entry(dst).or_insert(0) += 1;
        self.copies.remove(&dst);
    }

    fn copy(&mut self, dst: Value, src: Value) {
        let of = self.version(src);
        if of.0 != dst {
            self.assign(dst);
            self.copies.insert(dst, of);
        }
    }

    fn step(&mut self, op: &mut Op) {
        if let Some((key, dst)) = self.key(op) {
            return self.result(op, key, dst);
        }
        match *op {
            Op::Advance { .. } => self.cursor += 1,
            Op::Copy { dst, src: Arg::Value(src) } => self.copy(dst, src),
            _ => op.assigns().into_iter().for_each(|dst| self.assign(dst)),
        }
    }

    fn result(&mut self, op: &mut Op, key: Key, dst: Value) {
        let known =
            self.results.get(&key).copied().filter(|&(value, version)| self.current(value) == version);
        if let Some((src, _)) = known {
            *op = Op::Copy { dst, src: Arg::Value(src) };
            return self.copy(dst, src);
        }
        self.assign(dst);
        if self.results.len() < MOST {
            self.results.insert(key, (dst, self.current(dst)));
        }
    }
}

/// See the module's text.
pub(super) fn share_values(flow: &mut Flow) {
    let mut leading: SecondaryMap<Block, u32> = SecondaryMap::new();
    for data in flow.blocks.values() {
        data.end.targets().into_iter().for_each(|target| leading[target] += 1);
    }
    let joins: Vec<Block> =
        flow.blocks.keys().filter(|&block| leading[block] != 1 || block.index() == 0).collect();
    for join in joins {
        let mut open = vec![(join, Known::default())];
        while let Some((block, mut known)) = open.pop() {
            let data = &mut flow.blocks[block];
            data.ops.iter_mut().for_each(|(op, _)| known.step(op));
            if matches!(data.end, End::Seek { .. } | End::Canon { .. }) {
                known.cursor += 1;
            }
            let only =
                data.end.targets().into_iter().filter(|&target| leading[target] == 1 && target.index() != 0);
            open.extend(only.map(|target| (target, known.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use pktc_semantics::typed::Verdict;

    use super::*;

    fn share(ops: Vec<Op>) -> Vec<Op> {
        let mut flow =
            Flow::of(vec![(ops, End::Finish { rule: None, verdict: Verdict::Pass, ask: false })], 8);
        share_values(&mut flow);
        flow.blocks[Block::new(0)].ops.iter().map(|(op, _)| op.clone()).collect()
    }

    fn x(index: u32) -> Value {
        Value::from_u32(index)
    }

    fn read(dst: u32) -> Op {
        Op::Read { dst: x(dst), offset: 0, size: Size::U8 }
    }

    fn and(dst: u32, left: u32) -> Op {
        Op::Alu { op: AluOp::And, dst: x(dst), left: x(left), right: Arg::Const(15) }
    }

    fn copy(dst: u32, src: u32) -> Op {
        Op::Copy { dst: x(dst), src: Arg::Value(x(src)) }
    }

    #[test]
    fn repeated_computations_become_copies() {
        assert_eq!(share(vec![read(0), and(1, 0), and(2, 0)]), [read(0), and(1, 0), copy(2, 1)]);
    }

    #[test]
    fn a_moved_cursor_reads_anew() {
        let advance = Op::Advance { by: Arg::Const(4) };
        assert_eq!(share(vec![read(0), advance.clone(), read(1)]), [read(0), advance, read(1)]);
    }

    #[test]
    fn an_assigned_operand_or_result_counts_as_another() {
        let set = Op::Copy { dst: x(0), src: Arg::Const(7) };
        assert_eq!(
            share(vec![read(0), and(1, 0), set.clone(), and(2, 0)]),
            [read(0), and(1, 0), set, and(2, 0)]
        );
        let lost = Op::Copy { dst: x(1), src: Arg::Const(7) };
        assert_eq!(
            share(vec![read(0), and(1, 0), lost.clone(), and(2, 0)]),
            [read(0), and(1, 0), lost, and(2, 0)]
        );
    }
}
