//! Lets variables that one block assigns and another reads wait in memory, each in a [`Cell`] as wide as it needs:
//! for programs that hold more at once than registers and 8-byte spill slots can.
//!
//! ```text
//! block1:                block1:
//!     x1 = read 0..1         x1 = read 0..1
//!     goto block2            cell0:8 = x1
//! block2:                    goto block2
//!     if x1 == 6 goto …  block2:
//!                            x1 = cell0:8
//!                            if x1 == 6 goto …
//! ```
//!
//! A block recalls a variable before it reads it first, and keeps what it assigned last if that is read behind the
//! block. Variables that are never alive together share a cell.
//!
//! Some stay where they are, because the kernel's verifier forgets of what lies in a cell all but its width: what
//! moves the cursor or is checked has bounds that make it an offset into the packet, and a count that did not grow
//! would make a loop endless.

use hashbrown::{HashMap, HashSet};

use cranelift_entity::SecondaryMap;
use pktc_bpf::{AluOp, Size};

use crate::decide::BitSet;
use crate::facts::{Fact, Facts};
use crate::flow::{Arg, Block, BlockData, Cell, End, Flow, Op, Value};
use crate::layout::low_bits;

/// See the module's text.
pub fn keep_in_cells(flow: &mut Flow) {
    let facts = Facts::new(flow);
    let waiting = Waiting::new(flow, &facts);
    let homes = choose_cells(flow, &waiting, &facts);
    for data in flow.blocks.values_mut() {
        let behind = waiting.read_behind(data);
        let home = |value: Value| waiting.index[value].map(|index| homes[index]);
        rewrite(data, home, |value| waiting.index[value].is_some_and(|index| behind.contains(index)));
    }
}

/// The variables that one block assigns and another reads, by index.
struct Waiting {
    values: Vec<Value>,
    index: SecondaryMap<Value, Option<usize>>,
    /// Those that a block, or one behind it, reads before it assigns them.
    at_start: SecondaryMap<Block, BitSet>,
}

impl Waiting {
    fn new(flow: &Flow, facts: &Facts) -> Self {
        let mut waiting =
            Waiting { values: Vec::new(), index: SecondaryMap::new(), at_start: SecondaryMap::new() };
        let staying = staying(flow, facts);
        let mut wanted = Vec::new();
        for (block, data) in flow.blocks.iter() {
            for value in read_first(data).filter(|value| !staying.contains(value)) {
                wanted.push((waiting.index_of(value), block));
            }
        }
        let assigned = waiting.assigned(flow);
        let leading = flow.predecessors();
        while let Some((index, block)) = wanted.pop() {
            if !waiting.at_start[block].contains(index) {
                waiting.at_start[block].insert(index);
                let before = leading[block].iter().filter(|&&before| !assigned[before].contains(index));
                wanted.extend(before.map(|&before| (index, before)));
            }
        }
        waiting
    }

    fn index_of(&mut self, value: Value) -> usize {
        *self.index[value].get_or_insert_with(|| {
            self.values.push(value);
            self.values.len() - 1
        })
    }

    fn assigned(&self, flow: &Flow) -> SecondaryMap<Block, BitSet> {
        let mut assigned: SecondaryMap<Block, BitSet> = SecondaryMap::new();
        for (block, data) in flow.blocks.iter() {
            let values = data.ops.iter().filter_map(|(op, _)| op.assigns());
            values.filter_map(|value| self.index[value]).for_each(|index| assigned[block].insert(index));
        }
        assigned
    }

    /// What is read behind a block.
    fn read_behind(&self, data: &BlockData) -> BitSet {
        let mut behind = BitSet::default();
        data.end.targets().into_iter().for_each(|target| behind.union(&self.at_start[target]));
        behind
    }

    /// Of each variable those that are still to be read where it is assigned.
    fn conflicts(&self, flow: &Flow) -> Vec<BitSet> {
        let mut conflicts = vec![BitSet::default(); self.values.len()];
        let read = |alive: &mut BitSet, value: Value| {
            self.index[value].iter().for_each(|&index| alive.insert(index))
        };
        for data in flow.blocks.values() {
            let mut alive = self.read_behind(data);
            data.end.reads().for_each(|value| read(&mut alive, value));
            for (op, _) in data.ops.iter().rev() {
                if let Some(index) = op.assigns().and_then(|value| self.index[value]) {
                    alive.remove(index);
                    conflicts[index].union(&alive);
                }
                op.reads().for_each(|value| read(&mut alive, value));
            }
        }
        conflicts
    }
}

/// The variables that stay, with those that they are computed from: their bounds come from there.
fn staying(flow: &Flow, facts: &Facts) -> HashSet<Value> {
    let mut staying = offsets(flow);
    staying.extend(counts(flow));
    let lost = |value: &Value| !is_told_by_width(facts.of(Arg::Value(*value)));
    loop {
        let before = staying.len();
        for (op, _) in flow.blocks.values().flat_map(|data| &data.ops) {
            let stays = op.assigns().is_some_and(|value| staying.contains(&value));
            if stays && !matches!(op, Op::Forget { .. }) {
                staying.extend(op.reads().filter(lost));
            }
        }
        if staying.len() == before {
            return staying;
        }
    }
}

/// Whether a cell's width says as much of what it holds.
fn is_told_by_width(fact: Fact) -> bool {
    fact.zeros == 0 && fact.most == low_bits(size(fact.most).bytes() * 8)
}

/// The variables by which the cursor moves, and those that are checked.
fn offsets(flow: &Flow) -> HashSet<Value> {
    let mut offsets = HashSet::new();
    for data in flow.blocks.values() {
        for (op, _) in &data.ops {
            if let Op::Advance { by: Arg::Value(by) } = *op {
                offsets.insert(by);
            }
        }
        let (base, bytes) = match data.end {
            End::Check { base, bytes, .. } => (base, Some(bytes)),
            End::Seek { bytes, .. } => (None, Some(bytes)),
            _ => (None, None),
        };
        offsets.extend(base);
        if let Some(Arg::Value(bytes)) = bytes {
            offsets.insert(bytes);
        }
    }
    offsets
}

/// The variables that are counted up and never forgotten.
fn counts(flow: &Flow) -> Vec<Value> {
    let (mut counted, mut forgotten) = (Vec::new(), HashSet::new());
    for (op, _) in flow.blocks.values().flat_map(|data| &data.ops) {
        match *op {
            Op::Alu { op: AluOp::Add, dst, left, right: Arg::Const(_) } if dst == left => counted.push(dst),
            Op::Forget { dst, .. } => _ = forgotten.insert(dst),
            _ => {}
        }
    }
    counted.retain(|value| !forgotten.contains(value));
    counted
}

/// The variables that a block reads before it assigns them.
fn read_first(data: &BlockData) -> impl Iterator<Item = Value> {
    let (mut held, mut first) = (HashSet::new(), Vec::new());
    for (op, _) in &data.ops {
        first.extend(op.reads().filter(|&value| held.insert(value)));
        held.extend(op.assigns());
    }
    first.extend(data.end.reads().filter(|&value| held.insert(value)));
    first.into_iter()
}

/// The cell of each variable, by index: the first of its size whose owners never are in its way.
fn choose_cells(flow: &mut Flow, waiting: &Waiting, facts: &Facts) -> Vec<Cell> {
    let conflicts = waiting.conflicts(flow);
    let conflict =
        |one: usize, other: usize| conflicts[one].contains(other) || conflicts[other].contains(one);
    let mut owners: SecondaryMap<Cell, Vec<usize>> = SecondaryMap::new();
    let mut homes = Vec::new();
    for (index, &value) in waiting.values.iter().enumerate() {
        let wanted = size(facts.of(Arg::Value(value)).most);
        let free = flow.cells.iter().find(|(cell, size)| {
            **size == wanted && !owners[*cell].iter().any(|&owner| conflict(owner, index))
        });
        let cell = free.map(|(cell, _)| cell).unwrap_or_else(|| flow.cells.push(wanted));
        owners[cell].push(index);
        homes.push(cell);
    }
    homes
}

/// The least size that holds `most`.
fn size(most: u64) -> Size {
    match most {
        0..=0xff => Size::U8,
        0x100..=0xffff => Size::U16,
        0x1_0000..=0xffff_ffff => Size::U32,
        _ => Size::U64,
    }
}

/// Puts in what a block recalls and keeps.
fn rewrite(data: &mut BlockData, home: impl Fn(Value) -> Option<Cell>, read_behind: impl Fn(Value) -> bool) {
    let ops = std::mem::take(&mut data.ops);
    let assigns = ops.iter().enumerate().filter_map(|(at, (op, _))| Some((op.assigns()?, at)));
    let last: HashMap<Value, usize> = assigns.collect();
    let mut held = HashSet::new();
    for (at, (op, span)) in ops.into_iter().enumerate() {
        let wanted = op.reads().filter(|&value| held.insert(value));
        data.ops.extend(wanted.filter_map(|dst| Some((Op::Recall { dst, cell: home(dst)? }, span))));
        let assigned = op.assigns();
        data.ops.push((op, span));
        held.extend(assigned);
        let kept = assigned.filter(|value| last[value] == at && read_behind(*value));
        data.ops.extend(kept.and_then(|src| Some((Op::Keep { cell: home(src)?, src }, span))));
    }
    let wanted = data.end.reads().filter(|&value| held.insert(value));
    data.ops.extend(wanted.filter_map(|dst| Some((Op::Recall { dst, cell: home(dst)? }, data.end_span))));
}

#[cfg(test)]
mod tests {
    use pktc_bpf::{Condition, Width};
    use pktc_semantics::typed::Verdict;

    use super::*;
    use crate::print::print_flow;
    use crate::verify::verify_flow;

    const VALUES: usize = 4;

    fn x(index: u32) -> Value {
        Value::from_u32(index)
    }

    fn read(dst: u32, size: Size) -> Op {
        Op::Read { dst: x(dst), offset: 0, size }
    }

    fn alu(op: AluOp, dst: u32, left: u32, right: u64) -> Op {
        Op::Alu { op, dst: x(dst), left: x(left), right: Arg::Const(right) }
    }

    fn check(bytes: Arg, ok: u32) -> End {
        End::Check { base: None, bytes, ok: Block::from_u32(ok), short: Block::from_u32(0) }
    }

    fn goto(block: u32) -> End {
        End::Goto(Block::from_u32(block))
    }

    /// Goes on to `then` in any case.
    fn test(left: u32, then: u32) -> End {
        let (then, right) = (Block::from_u32(then), Arg::Const(6));
        End::Branch {
            condition: Condition::Eq,
            width: Width::W64,
            left: x(left),
            right,
            then,
            otherwise: then,
        }
    }

    fn finish() -> End {
        End::Finish { rule: None, verdict: Verdict::Pass, ask: false }
    }

    /// What becomes of these blocks, as text.
    fn kept(blocks: Vec<(Vec<Op>, End)>) -> String {
        let mut flow = Flow::of(blocks, VALUES);
        assert_eq!(verify_flow(&flow), Vec::<String>::new());
        keep_in_cells(&mut flow);
        assert_eq!(verify_flow(&flow), Vec::<String>::new());
        print_flow(&flow)
    }

    #[test]
    fn a_variable_waits_in_a_cell_of_its_width() {
        let after = kept(vec![
            (vec![], check(Arg::Const(8), 1)),
            (vec![read(0, Size::U16), read(1, Size::U64), alu(AluOp::And, 2, 1, 15)], test(2, 2)),
            (vec![alu(AluOp::Add, 3, 0, 1)], test(3, 3)),
            (vec![], test(1, 4)),
            (vec![], finish()),
        ]);
        insta::assert_snapshot!(after, @r"
        flow t
        block0:
            check 8 goto block1 else block0
        block1:
            x0 = read 0..2
            cell0:16 = x0
            x1 = read 0..8
            cell1:64 = x1
            x2 = and x1, 0xf
            if x2 Eq 6 goto block2 else block2
        block2:
            x0 = cell0:16
            x3 = add x0, 1
            if x3 Eq 6 goto block3 else block3
        block3:
            x1 = cell1:64
            if x1 Eq 6 goto block4 else block4
        block4:
            finish pass
        ");
    }

    #[test]
    fn only_what_is_assigned_last_is_kept_and_only_if_it_is_read_behind() {
        let after = kept(vec![
            (vec![], check(Arg::Const(8), 1)),
            (vec![read(0, Size::U8), alu(AluOp::Xor, 0, 0, 3), read(1, Size::U8)], test(1, 2)),
            (vec![alu(AluOp::Xor, 0, 0, 3)], test(0, 3)),
            (vec![], finish()),
        ]);
        insta::assert_snapshot!(after, @r"
        flow t
        block0:
            check 8 goto block1 else block0
        block1:
            x0 = read 0..1
            x0 = xor x0, 3
            cell0:8 = x0
            x1 = read 0..1
            if x1 Eq 6 goto block2 else block2
        block2:
            x0 = cell0:8
            x0 = xor x0, 3
            if x0 Eq 6 goto block3 else block3
        block3:
            finish pass
        ");
    }

    #[test]
    fn variables_that_never_are_alive_together_share_a_cell() {
        let after = kept(vec![
            (vec![], check(Arg::Const(8), 1)),
            (vec![read(0, Size::U8), read(1, Size::U8)], test(0, 2)),
            (vec![], test(0, 3)),
            (vec![read(2, Size::U8)], test(1, 4)),
            (vec![], test(2, 5)),
            (vec![], finish()),
        ]);
        insta::assert_snapshot!(after, @r"
        flow t
        block0:
            check 8 goto block1 else block0
        block1:
            x0 = read 0..1
            cell0:8 = x0
            x1 = read 0..1
            cell1:8 = x1
            if x0 Eq 6 goto block2 else block2
        block2:
            x0 = cell0:8
            if x0 Eq 6 goto block3 else block3
        block3:
            x2 = read 0..1
            cell0:8 = x2
            x1 = cell1:8
            if x1 Eq 6 goto block4 else block4
        block4:
            x2 = cell0:8
            if x2 Eq 6 goto block5 else block5
        block5:
            finish pass
        ");
    }

    #[test]
    fn what_moves_the_cursor_stays_with_what_bounds_it() {
        let after = kept(vec![
            (vec![], check(Arg::Const(1), 1)),
            (vec![read(0, Size::U8), alu(AluOp::And, 1, 0, 15)], goto(2)),
            (vec![alu(AluOp::Lsh, 2, 1, 2)], check(Arg::Value(x(2)), 3)),
            (vec![Op::Advance { by: Arg::Value(x(2)) }], goto(4)),
            (vec![], test(0, 5)),
            (vec![], finish()),
        ]);
        insta::assert_snapshot!(after, @r"
        flow t
        block0:
            check 1 goto block1 else block0
        block1:
            x0 = read 0..1
            cell0:8 = x0
            x1 = and x0, 0xf
            goto block2
        block2:
            x2 = lsh x1, 2
            check x2 goto block3 else block0
        block3:
            advance x2
            goto block4
        block4:
            x0 = cell0:8
            if x0 Eq 6 goto block5 else block5
        block5:
            finish pass
        ");
    }

    #[test]
    fn the_count_of_a_loop_stays_and_what_is_forgotten_of_one_does_not() {
        let forget = |src| Op::Forget { dst: x(1), src, mask: 0xff };
        let after = kept(vec![
            (vec![Op::Copy { dst: x(0), src: Arg::Const(0) }, forget(Arg::Const(0))], goto(1)),
            (
                vec![alu(AluOp::Add, 0, 0, 1), alu(AluOp::Add, 1, 1, 1), forget(Arg::Value(x(1)))],
                End::Branch {
                    condition: Condition::Ge,
                    width: Width::W64,
                    left: x(0),
                    right: Arg::Const(8),
                    then: Block::from_u32(2),
                    otherwise: Block::from_u32(1),
                },
            ),
            (vec![], test(1, 3)),
            (vec![], finish()),
        ]);
        insta::assert_snapshot!(after, @r"
        flow t
        block0:
            x0 = 0
            x1 = forget 0 & 0xff
            cell0:64 = x1
            goto block1
        block1:
            x0 = add x0, 1
            x1 = cell0:64
            x1 = add x1, 1
            x1 = forget x1 & 0xff
            cell0:64 = x1
            if x0 Ge 8 goto block2 else block1
        block2:
            x1 = cell0:64
            if x1 Eq 6 goto block3 else block3
        block3:
            finish pass
        ");
    }
}
