//! What holds for every flow IR, checked between passes in debug builds and in tests:
//!
//! - every way on leads to a block that exists, and some way leads to each block that does more than wait;
//! - on every path a value is assigned before it is read;
//! - a read lies below what was checked since the cursor last moved, on every path;
//! - a read behind a base follows a check of that base.

use cranelift_entity::{EntityRef, SecondaryMap};

use crate::decide::BitSet;
use crate::flow::{Arg, Block, End, Flow, Op, Value};

/// What holds at a point of every path to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    assigned: BitSet,
    checked: u32,
    base: Option<(Value, u32)>,
}

/// Checks `flow`; an empty list is a pass.
#[must_use]
pub fn verify_flow(flow: &Flow) -> Vec<String> {
    let mut at: SecondaryMap<Block, Option<Known>> = SecondaryMap::new();
    let entry = Block::new(0);
    at[entry] = Some(Known { assigned: BitSet::default(), checked: 0, base: None });
    let mut open = vec![entry];
    while let Some(block) = open.pop() {
        let Some(known) = at[block].clone() else { continue };
        for (target, after) in walk(flow, block, known, &mut Vec::new()) {
            if !flow.blocks.is_valid(target) {
                return vec![format!("{block}: goes to {target}, which does not exist")];
            }
            let merged = at[target].as_ref().map_or(after.clone(), |before| meet(before, &after));
            if at[target].as_ref() != Some(&merged) {
                at[target] = Some(merged);
                open.push(target);
            }
        }
    }
    let mut errors = Vec::new();
    for block in flow.blocks.keys() {
        if let Some(known) = at[block].clone() {
            walk(flow, block, known, &mut errors);
        }
    }
    errors
}

fn meet(a: &Known, b: &Known) -> Known {
    let assigned = a.assigned.both(&b.assigned);
    let base = match (a.base, b.base) {
        (Some((value, first)), Some((same, second))) if value == same => Some((value, first.min(second))),
        _ => None,
    };
    Known { assigned, checked: a.checked.min(b.checked), base }
}

/// What holds on each way out of `block`.
fn walk(flow: &Flow, block: Block, mut known: Known, errors: &mut Vec<String>) -> Vec<(Block, Known)> {
    let data = &flow.blocks[block];
    for (op, _) in &data.ops {
        step(block, op, &mut known, errors);
    }
    let mut read = |value: Value| {
        if !known.assigned.contains(value.index()) {
            errors.push(format!("{block}: reads {value} ({}) before it is assigned", flow.values[value]));
        }
    };
    let mut read_arg = |arg: Arg| {
        if let Arg::Value(value) = arg {
            read(value);
        }
    };
    match data.end {
        End::Branch { left, right, .. } => {
            read_arg(Arg::Value(left));
            read_arg(right);
        }
        End::Masked { left, .. } => read_arg(Arg::Value(left)),
        End::Check { base, bytes, .. } => {
            base.map(Arg::Value).into_iter().chain([bytes]).for_each(read_arg);
        }
        End::Seek { position, bytes, .. } => {
            read_arg(Arg::Value(position));
            read_arg(bytes);
        }
        End::Goto(_) | End::Canon { .. } | End::Finish { .. } => {}
    }
    ways(&data.end, &known)
}

fn ways(end: &End, known: &Known) -> Vec<(Block, Known)> {
    let lost = Known { checked: 0, base: None, ..known.clone() };
    match *end {
        End::Check { base: None, bytes: Arg::Const(bytes), ok, short } => {
            let checked = known.checked.max(bytes as u32);
            vec![(ok, Known { checked, ..known.clone() }), (short, known.clone())]
        }
        End::Check { base: Some(base), bytes: Arg::Const(bytes), ok, short } => {
            vec![(ok, Known { base: Some((base, bytes as u32)), ..known.clone() }), (short, known.clone())]
        }
        End::Seek { bytes: Arg::Const(bytes), ok, short, .. } => {
            vec![(ok, Known { checked: bytes as u32, ..lost.clone() }), (short, lost)]
        }
        End::Seek { ok, short, .. } | End::Canon { ok, short } => vec![(ok, lost.clone()), (short, lost)],
        End::Goto(_) | End::Branch { .. } | End::Masked { .. } | End::Check { .. } | End::Finish { .. } => {
            end.targets().into_iter().map(|target| (target, known.clone())).collect()
        }
    }
}

fn step(block: Block, op: &Op, known: &mut Known, errors: &mut Vec<String>) {
    let (reads, writes) = operands(op);
    for value in reads {
        if !known.assigned.contains(value.index()) {
            errors.push(format!("{block}: {op:?} reads {value} before it is assigned"));
        }
    }
    match *op {
        Op::Read { offset, size, .. } if offset + size.bytes() > known.checked => {
            errors.push(format!("{block}: {op:?} reads beyond the {} bytes checked", known.checked));
        }
        Op::ReadAt { base, offset, size, .. }
            if known.base.is_none_or(|(of, bytes)| of != base || offset + size.bytes() > bytes) =>
        {
            errors.push(format!("{block}: {op:?} reads beyond what was checked"));
        }
        Op::Advance { .. } => (known.checked, known.base) = (0, None),
        _ => {}
    }
    if let Some(value) = writes {
        known.assigned.insert(value.index());
        known.base = known.base.filter(|(base, _)| *base != value);
    }
}

/// What an operation reads and writes.
fn operands(op: &Op) -> (Vec<Value>, Option<Value>) {
    let value = |arg: Arg| match arg {
        Arg::Value(value) => Some(value),
        Arg::Const(_) => None,
    };
    match *op {
        Op::Copy { dst, src } => (value(src).into_iter().collect(), Some(dst)),
        Op::Alu { dst, left, right, .. } => ([left].into_iter().chain(value(right)).collect(), Some(dst)),
        Op::Swap { dst, src, .. } => (vec![src], Some(dst)),
        Op::ReadAt { dst, base, .. } => (vec![base], Some(dst)),
        Op::Forget { dst, src, .. } => (value(src).into_iter().collect(), Some(dst)),
        Op::Read { dst, .. }
        | Op::Position { dst }
        | Op::Remaining { dst }
        | Op::Reachable { dst }
        | Op::PacketLength { dst }
        | Op::Ifindex { dst }
        | Op::Queue { dst } => (Vec::new(), Some(dst)),
        Op::Advance { by } => (value(by).into_iter().collect(), None),
        Op::Claims { content } => (vec![content], None),
        Op::Hit { .. } | Op::Count { .. } => (Vec::new(), None),
    }
}
