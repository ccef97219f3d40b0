//! The order of blocks: each behind the one that falls through to it, as far as that goes.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

use crate::vcode::{Terminator, VBlock, VBlockId};

/// Sorts the blocks of a function, the entry first, and leaves out those that nothing reaches.
pub(crate) fn order_blocks(mut blocks: PrimaryMap<VBlockId, VBlock>) -> PrimaryMap<VBlockId, VBlock> {
    let order = trace(&blocks);
    let mut renamed: SecondaryMap<VBlockId, VBlockId> = SecondaryMap::with_default(VBlockId::new(0));
    for (new, &old) in order.iter().enumerate() {
        renamed[old] = VBlockId::new(new);
    }
    let mut ordered = PrimaryMap::with_capacity(order.len());
    for old in order {
        let block = &mut blocks[old];
        let (insns, end) = (std::mem::take(&mut block.insns), rename(&block.end, &renamed));
        ordered.push(VBlock { insns, end, end_span: block.end_span, cold: block.cold });
    }
    ordered
}

fn trace(blocks: &PrimaryMap<VBlockId, VBlock>) -> Vec<VBlockId> {
    let mut placed: SecondaryMap<VBlockId, bool> = SecondaryMap::new();
    let mut order = Vec::with_capacity(blocks.len());
    let mut open = vec![VBlockId::new(0)];
    while let Some(start) = open.pop() {
        let mut next = Some(start);
        while let Some(block) = next.filter(|&block| !placed[block]) {
            placed[block] = true;
            order.push(block);
            next = match blocks[block].end {
                Terminator::Goto(target) => Some(target),
                Terminator::Branch { taken, fallthrough, .. } => {
                    open.push(taken);
                    Some(fallthrough)
                }
                Terminator::Exit(_) => None,
            };
        }
    }
    order
}

fn rename(end: &Terminator, to: &SecondaryMap<VBlockId, VBlockId>) -> Terminator {
    match end {
        Terminator::Goto(target) => Terminator::Goto(to[*target]),
        &Terminator::Branch { condition, width, left, right, taken, fallthrough } => Terminator::Branch {
            condition,
            width,
            left,
            right,
            taken: to[taken],
            fallthrough: to[fallthrough],
        },
        Terminator::Exit(value) => Terminator::Exit(*value),
    }
}
