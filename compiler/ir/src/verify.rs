//! What holds for every flow IR, checked between passes in debug builds and in tests:
//!
//! - every way on leads to a block that exists (a block that no way leads to may hold anything);
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

    const FINISH: End = End::Finish { rule: None, verdict: Verdict::Pass, ask: false };

    fn x(index: usize) -> Value {
        Value::new(index)
    }

    fn one(dst: Value) -> Op {
        Op::Copy { dst, src: Arg::Const(1) }
    }

    fn read(offset: u32) -> Op {
        Op::Read { dst: x(1), offset, size: Size::U32 }
    }

    fn read_at(offset: u32) -> Op {
        Op::ReadAt { dst: x(1), base: x(0), offset, size: Size::U32 }
    }

    /// Goes on to the first block if there are `bytes`, to the second if not.
    fn check(base: Option<Value>, bytes: u64, ok: usize, short: usize) -> End {
        End::Check { base, bytes: Arg::Const(bytes), ok: Block::new(ok), short: Block::new(short) }
    }

    fn errors(blocks: Vec<(Vec<Op>, End)>) -> Vec<String> {
        let mut flow = Flow::of(blocks, 2);
        flow.cells.push(Size::U8);
        verify_flow(&flow)
    }

    #[test]
    fn ways_lead_to_blocks() {
        let missing = errors(vec![(vec![], End::Goto(Block::new(7)))]);
        assert_eq!(missing, ["block0: goes to block7, which does not exist"]);
        assert!(errors(vec![(vec![], FINISH), (vec![read(0)], FINISH)]).is_empty(), "nothing leads there");
    }

    #[test]
    fn a_value_is_assigned_on_every_way_before_it_is_read() {
        let reads = Op::Advance { by: Arg::Value(x(0)) };
        let blocks = |short| {
            vec![
                (vec![], check(None, 1, 1, short)),
                (vec![one(x(0))], End::Goto(Block::new(2))),
                (vec![reads.clone()], FINISH),
            ]
        };
        assert_eq!(errors(blocks(2)), ["block2: Advance { by: Value(x0) } reads x0 before it is assigned"]);
        assert!(errors(blocks(1)).is_empty());
        let end = check(Some(x(0)), 1, 1, 1);
        let at_the_end = errors(vec![(vec![], end), (vec![], FINISH)]);
        assert_eq!(at_the_end, ["block0: reads x0 () before it is assigned"]);
    }

    #[test]
    fn a_cell_is_given_something_on_every_way_before_it_is_asked() {
        let cell = Cell::new(0);
        let blocks = |short| {
            vec![
                (vec![one(x(0))], check(None, 1, 1, short)),
                (vec![Op::Keep { cell, src: x(0) }], End::Goto(Block::new(2))),
                (vec![Op::Recall { dst: x(0), cell }], FINISH),
            ]
        };
        assert_eq!(errors(blocks(2)), ["block2: Recall { dst: x0, cell: cell0 } recalls what was not kept"]);
        assert!(errors(blocks(1)).is_empty());
    }

    #[test]
    fn a_read_lies_below_what_was_checked_since_the_cursor_moved() {
        let blocks = |ops, short| vec![(vec![], check(None, 8, 1, short)), (ops, FINISH), (vec![], FINISH)];
        assert!(errors(blocks(vec![read(4)], 2)).is_empty());
        let beyond = |checked| {
            format!(
                "block1: Read {{ dst: x1, offset: 4, size: U32 }} reads beyond the {checked} bytes checked"
            )
        };
        assert_eq!(errors(blocks(vec![read(4)], 1)), [beyond(0)], "not on every way");
        assert_eq!(errors(blocks(vec![Op::Advance { by: Arg::Const(1) }, read(4)], 2)), [beyond(0)]);
        assert!(!errors(blocks(vec![read(5)], 2)).is_empty());
    }

    #[test]
    fn a_read_behind_a_base_follows_a_check_of_that_base() {
        let blocks = |ops, base| {
            vec![(vec![one(x(0)), one(x(1))], check(base, 8, 1, 2)), (ops, FINISH), (vec![], FINISH)]
        };
        assert!(errors(blocks(vec![read_at(4)], Some(x(0)))).is_empty());
        let beyond =
            "block1: ReadAt { dst: x1, base: x0, offset: 4, size: U32 } reads beyond what was checked";
        assert_eq!(errors(blocks(vec![read_at(4)], None)), [beyond]);
        assert_eq!(errors(blocks(vec![read_at(4)], Some(x(1)))), [beyond]);
        assert_eq!(errors(blocks(vec![one(x(0)), read_at(4)], Some(x(0)))), [beyond], "another base since");
        assert!(!errors(blocks(vec![read_at(5)], Some(x(0)))).is_empty());
    }
}
