//! The graph of a function's blocks: predecessors, orders, dominators.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use pktc_lower::vcode::{VBlock, VBlockId, VFunction};

use crate::operands::{targets, targets_mut};

/// Longest way that [`follow`] goes; also what ends it in a loop of empty blocks.
const MAX_HOPS: u32 = 64;

/// The entry: always the first block.
pub(crate) fn entry() -> VBlockId {
    VBlockId::new(0)
}

/// Where a jump to `block` ends when blocks that only jump on (`hop` says where to) are skipped.
pub(crate) fn follow(mut block: VBlockId, hop: impl Fn(VBlockId) -> Option<VBlockId>) -> VBlockId {
    for _ in 0..MAX_HOPS {
        let Some(next) = hop(block) else { break };
        block = next;
    }
    block
}

/// The predecessors of each block, once for each edge, the last first: for a join far down (a tail that all rules
/// of a long list share), those that look for dominators then go up a step at a time instead of all the way for
/// each predecessor.
pub(crate) fn predecessors(function: &VFunction) -> SecondaryMap<VBlockId, Vec<VBlockId>> {
    let mut preds: SecondaryMap<VBlockId, Vec<VBlockId>> = SecondaryMap::with_capacity(function.blocks.len());
    for (id, block) in function.blocks.iter().rev() {
        for target in targets(&block.end) {
            preds[target].push(id);
        }
    }
    preds
}

/// The blocks that can be reached from the entry.
pub(crate) fn reachable(function: &VFunction) -> SecondaryMap<VBlockId, bool> {
    let mut seen = SecondaryMap::with_capacity(function.blocks.len());
    let mut work = vec![entry()];
    seen[entry()] = true;
    while let Some(id) = work.pop() {
        for target in targets(&function.blocks[id].end) {
            if !std::mem::replace(&mut seen[target], true) {
                work.push(target);
            }
        }
    }
    seen
}

/// What the blocks are called after [`reorder`].
pub(crate) fn new_names(order: &[VBlockId]) -> SecondaryMap<VBlockId, VBlockId> {
    let mut names = SecondaryMap::with_default(entry());
    for (index, &id) in order.iter().enumerate() {
        names[id] = VBlockId::new(index);
    }
    names
}

/// Keeps the blocks that `order` names, in that order, and renames them accordingly.
pub(crate) fn reorder(mut function: VFunction, order: &[VBlockId]) -> VFunction {
    let renamed = new_names(order);
    let mut old: Vec<Option<VBlock>> = function.blocks.into_iter().map(|(_, block)| Some(block)).collect();
    let mut blocks = PrimaryMap::with_capacity(order.len());
    for &id in order {
        let Some(mut block) = old[id.index()].take() else { continue };
        for target in targets_mut(&mut block.end) {
            *target = renamed[*target];
        }
        blocks.push(block);
    }
    function.blocks = blocks;
    function
}

/// The dominator tree of a function without unreachable blocks.
pub(crate) struct Dominators {
    /// Each block's parent; the entry is its own.
    parent: SecondaryMap<VBlockId, VBlockId>,
    /// The children of each block.
    pub(crate) children: SecondaryMap<VBlockId, Vec<VBlockId>>,
}

impl Dominators {
    /// Builds it by iteration over a reverse postorder (Cooper, Harvey, Kennedy: A Simple, Fast Dominance
    /// Algorithm, 2001).
    pub(crate) fn new(function: &VFunction, preds: &SecondaryMap<VBlockId, Vec<VBlockId>>) -> Dominators {
        let postorder = postorder(function);
        let mut number = SecondaryMap::with_default(0_usize);
        for (index, &id) in postorder.iter().enumerate() {
            number[id] = index;
        }
        let mut parent: SecondaryMap<VBlockId, Option<VBlockId>> = SecondaryMap::new();
        parent[entry()] = Some(entry());
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for &id in postorder.iter().rev().filter(|&&id| id != entry()) {
                let done = preds[id].iter().copied().filter(|&pred| parent[pred].is_some());
                let new = done.reduce(|a, b| common(a, b, &number, &parent));
                changed |= parent[id] != new;
                parent[id] = new;
            }
        }
        let mut tree =
            Dominators { parent: SecondaryMap::with_default(entry()), children: SecondaryMap::new() };
        for id in function.blocks.keys().filter(|&id| id != entry()) {
            let up = parent[id].unwrap_or(entry());
            tree.parent[id] = up;
            tree.children[up].push(id);
        }
        tree
    }

    /// The dominance frontier of each block: the joins where what the block defines meets something else.
    pub(crate) fn frontiers(
        &self,
        preds: &SecondaryMap<VBlockId, Vec<VBlockId>>,
        blocks: impl Iterator<Item = VBlockId>,
    ) -> SecondaryMap<VBlockId, Vec<VBlockId>> {
        let mut frontiers: SecondaryMap<VBlockId, Vec<VBlockId>> = SecondaryMap::new();
        for join in blocks.filter(|&id| preds[id].len() > 1) {
            for &pred in &preds[join] {
                let mut at = pred;
                // What is above a block that already has this join has it as well.
                while at != self.parent[join] && frontiers[at].last() != Some(&join) {
                    frontiers[at].push(join);
                    at = self.parent[at];
                }
            }
        }
        frontiers
    }
}

/// The lowest block that dominates both.
fn common(
    mut a: VBlockId,
    mut b: VBlockId,
    number: &SecondaryMap<VBlockId, usize>,
    parent: &SecondaryMap<VBlockId, Option<VBlockId>>,
) -> VBlockId {
    while a != b {
        let lower = if number[a] < number[b] { &mut a } else { &mut b };
        *lower = parent[*lower].unwrap_or(entry());
    }
    a
}

/// The reachable blocks, each behind all that it leads to (but for loops); a branch right behind its
/// fall-through side.
pub(crate) fn postorder(function: &VFunction) -> Vec<VBlockId> {
    let targets = |id: VBlockId| targets(&function.blocks[id].end).rev();
    let mut order = Vec::with_capacity(function.blocks.len());
    let mut seen: SecondaryMap<VBlockId, bool> = SecondaryMap::with_capacity(function.blocks.len());
    seen[entry()] = true;
    let mut stack = vec![(entry(), targets(entry()))];
    while let Some((id, rest)) = stack.last_mut() {
        match rest.next() {
            Some(target) if !seen[target] => {
                seen[target] = true;
                stack.push((target, targets(target)));
            }
            Some(_) => {}
            None => {
                order.push(*id);
                stack.pop();
            }
        }
    }
    order
}
