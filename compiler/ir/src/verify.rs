//! What holds for every flow IR, checked between passes in debug builds and in tests:
//!
//! - every way on leads to a block that exists, and some way leads to each block that does more than wait;
//! - on every path a value is assigned before it is read, and a cell is given something before it is asked;
//! - a read lies below what was checked since the cursor last moved, on every path;
//! - a read behind a base follows a check of that base.

use cranelift_entity::{EntityRef, SecondaryMap};

use crate::decide::BitSet;
use crate::flow::{Arg, Block, End, Flow, Op, Value};

/// What holds at a point of every path to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    assigned: BitSet,
    kept: BitSet,
    checked: u32,
    base: Option<(Value, u32)>,
}

/// Checks `flow`; an empty list is a pass.
#[must_use]
pub fn verify_flow(flow: &Flow) -> Vec<String> {
    let mut at: SecondaryMap<Block, Option<Known>> = SecondaryMap::new();
    let entry = Block::new(0);
    at[entry] = Some(Known::default());
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
    let (assigned, kept) = (a.assigned.both(&b.assigned), a.kept.both(&b.kept));
    let base = match (a.base, b.base) {
        (Some((value, first)), Some((same, second))) if value == same => Some((value, first.min(second))),
        _ => None,
    };
    Known { assigned, kept, checked: a.checked.min(b.checked), base }
}

/// What holds on each way out of `block`.
fn walk(flow: &Flow, block: Block, mut known: Known, errors: &mut Vec<String>) -> Vec<(Block, Known)> {
    let data = &flow.blocks[block];
    for (op, _) in &data.ops {
        step(block, op, &mut known, errors);
    }
    for value in data.end.reads() {
        if !known.assigned.contains(value.index()) {
            errors.push(format!("{block}: reads {value} ({}) before it is assigned", flow.values[value]));
        }
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
    for value in op.reads() {
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
        Op::Keep { cell, .. } => known.kept.insert(cell.index()),
        Op::Recall { cell, .. } if !known.kept.contains(cell.index()) => {
            errors.push(format!("{block}: {op:?} recalls what was not kept"));
        }
        _ => {}
    }
    if let Some(value) = op.assigns() {
        known.assigned.insert(value.index());
        known.base = known.base.filter(|(base, _)| *base != value);
    }
}

#[cfg(test)]
mod tests {
    use pktc_bpf::Size;
    use pktc_semantics::typed::Verdict;

    use super::*;
    use crate::flow::Cell;

    #[test]
    fn a_cell_is_given_something_on_every_way_before_it_is_asked() {
        let (value, cell) = (Value::new(0), Cell::new(0));
        let read = Op::Copy { dst: value, src: Arg::Const(1) };
        let end = End::Finish { rule: None, verdict: Verdict::Pass, ask: false };
        let blocks = vec![
            (
                vec![read],
                End::Check { base: None, bytes: Arg::Const(1), ok: Block::new(1), short: Block::new(2) },
            ),
            (vec![Op::Keep { cell, src: value }], End::Goto(Block::new(2))),
            (vec![Op::Recall { dst: value, cell }], end),
        ];
        let mut flow = Flow::of(blocks, 1);
        flow.cells.push(Size::U8);
        assert_eq!(verify_flow(&flow), ["block2: Recall { dst: x0, cell: cell0 } recalls what was not kept"]);
        flow.blocks[Block::new(0)].end = End::Goto(Block::new(1));
        assert_eq!(verify_flow(&flow), Vec::<String>::new());
    }
}
