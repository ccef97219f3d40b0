//! Puts the blocks in a row. The order is the given one, cold blocks last; but a branch's fall-through side
//! follows it wherever it is still free to, else its other side, and the branch is inverted. Not in long programs: the
//! verifier walks the fall-through side first, and how many branches it keeps pending (at most 8192) hangs on that.

use cranelift_entity::SecondaryMap;
use pktc_bpf::Insn;
use pktc_diagnostics::Span;
use pktc_lower::vcode::VBlockId;

use crate::emit::{End, MachineBlock, MachineFunction, Test};
use crate::graph::{entry, follow};
use crate::module::MachineInsn;
use crate::steady::{SETTLES, steady};

/// The longest tail (with a verdict's move, without `exit`) that is repeated to save a jump to it.
const LONGEST_REPEATED_TAIL: usize = 2;

/// An instruction in a row whose distances are not known yet.
#[derive(Clone, Copy)]
pub(crate) enum Item {
    /// One that goes on to the next, or `exit`.
    Plain(MachineInsn),
    Goto(VBlockId),
    Branch(Test, VBlockId),
}

/// A program in a row.
pub(crate) struct Row {
    pub(crate) items: Vec<(Item, Span)>,
    /// The index of each block's first item.
    pub(crate) starts: SecondaryMap<VBlockId, usize>,
}

/// Puts the blocks in a row, as `wanted` has them; with `repeat_tails`, short ends are repeated instead of jumped
/// to.
pub(crate) fn lay_out(mut function: MachineFunction, wanted: &[VBlockId], repeat_tails: bool) -> Row {
    skip_empty(&mut function);
    let mut order = order(&mut function, wanted);
    if repeat_tails {
        order = repeat_short_tails(&mut function, &order);
        let keep = reachable(&function);
        order.retain(|&id| keep[id]);
    }
    let whole = row(&function, &order);
    if whole.items.len() <= SETTLES {
        return whole;
    }
    let order = steady(&mut function, order, &whole);
    row(&function, &order)
}

/// Lets jumps to blocks that only jump on go where those lead; a branch to one place becomes a jump.
pub(crate) fn skip_empty(function: &mut MachineFunction) {
    let mut hops: SecondaryMap<VBlockId, Option<VBlockId>> = SecondaryMap::new();
    for (id, block) in &function.blocks {
        if let (true, End::Goto(target)) = (block.insns.is_empty(), block.end) {
            hops[id] = Some(target);
        }
    }
    let skip = |id| follow(id, |id| hops[id]);
    for block in function.blocks.values_mut() {
        block.end.redirect(skip);
        if let End::Branch { taken, fallthrough, .. } = block.end
            && taken == fallthrough
        {
            block.end = End::Goto(taken);
        }
    }
}

fn reachable(function: &MachineFunction) -> SecondaryMap<VBlockId, bool> {
    let mut seen = SecondaryMap::with_capacity(function.blocks.len());
    let mut work = vec![entry()];
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut seen[id], true) {
            work.extend(function.blocks[id].end.targets());
        }
    }
    seen
}

/// The reachable blocks in the order of the row.
fn order(function: &mut MachineFunction, wanted: &[VBlockId]) -> Vec<VBlockId> {
    let keep = reachable(function);
    let may_invert = function.blocks.values().map(|block| block.insns.len() + 1).sum::<usize>() <= SETTLES;
    let mut placed: SecondaryMap<VBlockId, bool> = SecondaryMap::new();
    let mut order = Vec::with_capacity(function.blocks.len());
    let kept = wanted.iter().copied().filter(|&id| keep[id]);
    let (cold, warm): (Vec<_>, Vec<_>) = kept.partition(|&id| function.blocks[id].cold && id != entry());
    for id in warm.into_iter().chain(cold) {
        let mut next = Some(id).filter(|&id| !placed[id]);
        while let Some(id) = next {
            placed[id] = true;
            order.push(id);
            next = follower(function, id, may_invert, |next| !placed[next]);
        }
    }
    order
}

/// What stands best right behind the block `id` of what is still `free` to: of a branch one side, which then is the
/// one that it falls through to.
fn follower(
    function: &mut MachineFunction,
    id: VBlockId,
    may_invert: bool,
    free: impl Fn(VBlockId) -> bool,
) -> Option<VBlockId> {
    let End::Branch { test, taken, fallthrough } = function.blocks[id].end else { return None };
    let cold = function.blocks[id].cold;
    let free = |next| free(next) && function.blocks[next].cold == cold;
    if free(fallthrough) {
        return Some(fallthrough);
    }
    if !may_invert || !free(taken) {
        return None;
    }
    let test = Test { condition: test.condition.inverse()?, ..test };
    function.blocks[id].end = End::Branch { test, taken: fallthrough, fallthrough: taken };
    Some(taken)
}

/// Where a block goes without a jump of its own, if it stands right before that.
fn natural_next(block: &MachineBlock) -> Option<VBlockId> {
    match block.end {
        End::Goto(target) => Some(target),
        End::Branch { fallthrough, .. } => Some(fallthrough),
        End::Exit => None,
    }
}

/// Repeats short ends where a jump to them would be executed; returns the order with the repeated ones.
fn repeat_short_tails(function: &mut MachineFunction, order: &[VBlockId]) -> Vec<VBlockId> {
    let mut new_order = Vec::with_capacity(order.len());
    for (index, &id) in order.iter().enumerate() {
        new_order.push(id);
        let Some(next) = natural_next(&function.blocks[id]) else { continue };
        let tail = &function.blocks[next];
        let short = tail.end == End::Exit && tail.insns.len() <= LONGEST_REPEATED_TAIL;
        if !short || order.get(index + 1) == Some(&next) {
            continue;
        }
        let (insns, end_span) = (tail.insns.clone(), tail.end_span);
        let block = &mut function.blocks[id];
        match &mut block.end {
            End::Goto(_) => {
                block.insns.extend(insns);
                (block.end, block.end_span) = (End::Exit, end_span);
            }
            End::Branch { .. } => {
                let cold = block.cold;
                let copy = function.blocks.push(MachineBlock { insns, end: End::Exit, end_span, cold });
                if let End::Branch { fallthrough, .. } = &mut function.blocks[id].end {
                    *fallthrough = copy;
                }
                new_order.push(copy);
            }
            End::Exit => {}
        }
    }
    new_order
}

/// Blocks in a row, with the jumps between those that do not stand where the one before goes on.
fn row(function: &MachineFunction, order: &[VBlockId]) -> Row {
    let mut row = Row { items: Vec::new(), starts: SecondaryMap::new() };
    for (index, &id) in order.iter().enumerate() {
        let block = &function.blocks[id];
        row.starts[id] = row.items.len();
        row.items.extend(block.insns.iter().map(|&(insn, span)| (Item::Plain(insn), span)));
        if let End::Branch { test, taken, .. } = block.end {
            row.items.push((Item::Branch(test, taken), block.end_span));
        }
        match natural_next(block) {
            Some(next) if order.get(index + 1) == Some(&next) => {}
            Some(next) => row.items.push((Item::Goto(next), block.end_span)),
            None => row.items.push((Item::Plain(Insn::Exit), block.end_span)),
        }
    }
    row
}
