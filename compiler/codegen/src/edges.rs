//! Gives every edge from a block with several ends to a block with several beginnings a block of its own, where
//! register allocation can put moves. Those that stay empty vanish in [`crate::layout`].

use cranelift_entity::SecondaryMap;
use pktc_lower::vcode::{Terminator, VBlock, VBlockId, VFunction};

use crate::graph::{entry, new_names, postorder, predecessors, reorder};

/// A function without critical edges and without jumps to its entry.
pub(crate) struct Split {
    /// Its blocks stand in reverse postorder, as register allocation and its checker want them.
    pub(crate) function: VFunction,
    /// The order in which they are to be laid out.
    pub(crate) layout: Vec<VBlockId>,
}

/// Splits the critical edges, and makes an entry that nothing jumps to.
pub(crate) fn split_critical_edges(function: VFunction) -> Split {
    let mut function = separate_entry(function);
    let preds = predecessors(&function);
    let old: Vec<VBlockId> = function.blocks.keys().collect();
    let fallen_into = fallen_into(&function, &old);
    let mut places = Places::default();
    for &id in &old {
        let Terminator::Branch { mut taken, mut fallthrough, .. } = function.blocks[id].end else { continue };
        if preds[fallthrough].len() > 1 {
            fallthrough = edge_block(&mut function, id, fallthrough);
            places.after[id] = Some(fallthrough);
        }
        if preds[taken].len() > 1 {
            let new = edge_block(&mut function, id, taken);
            if fallen_into[taken] {
                places.last.push(new);
            } else {
                places.before[taken].push(new);
            }
            taken = new;
        }
        set_targets(&mut function.blocks[id], taken, fallthrough);
    }
    let mut order = postorder(&function);
    order.reverse();
    let names = new_names(&order);
    let layout = places.order(&old).into_iter().map(|id| names[id]).collect();
    Split { function: reorder(function, &order), layout }
}

/// The new blocks, by where they stand in the layout.
#[derive(Default)]
struct Places {
    /// Behind the branch that falls through into it.
    after: SecondaryMap<VBlockId, Option<VBlockId>>,
    /// Before the target, which nothing else falls into.
    before: SecondaryMap<VBlockId, Vec<VBlockId>>,
    /// Behind all blocks, where a jump back is needed.
    last: Vec<VBlockId>,
}

impl Places {
    fn order(&self, old: &[VBlockId]) -> Vec<VBlockId> {
        let mut order = Vec::with_capacity(2 * old.len());
        for &id in old {
            order.extend(&self.before[id]);
            order.push(id);
            order.extend(self.after[id]);
        }
        order.extend(&self.last);
        order
    }
}

/// Puts an empty block before the entry if something jumps to the entry.
fn separate_entry(mut function: VFunction) -> VFunction {
    if predecessors(&function)[entry()].is_empty() {
        return function;
    }
    let first = &function.blocks[entry()];
    let block =
        VBlock { insns: Vec::new(), end: Terminator::Goto(entry()), end_span: first.end_span, cold: false };
    let new = function.blocks.push(block);
    let order: Vec<VBlockId> =
        std::iter::once(new).chain(function.blocks.keys().filter(|&id| id != new)).collect();
    reorder(function, &order)
}

/// The blocks that the one before them goes on to without a jump.
fn fallen_into(function: &VFunction, order: &[VBlockId]) -> SecondaryMap<VBlockId, bool> {
    let mut fallen_into = SecondaryMap::new();
    for pair in order.windows(2) {
        let next = match function.blocks[pair[0]].end {
            Terminator::Goto(target) => Some(target),
            Terminator::Branch { fallthrough, .. } => Some(fallthrough),
            Terminator::Exit(_) => None,
        };
        fallen_into[pair[1]] |= next == Some(pair[1]);
    }
    fallen_into
}

/// An empty block from `from` to `to`; as seldom reached as both.
fn edge_block(function: &mut VFunction, from: VBlockId, to: VBlockId) -> VBlockId {
    let cold = function.blocks[from].cold || function.blocks[to].cold;
    let end_span = function.blocks[from].end_span;
    function.blocks.push(VBlock { insns: Vec::new(), end: Terminator::Goto(to), end_span, cold })
}

fn set_targets(block: &mut VBlock, new_taken: VBlockId, new_fallthrough: VBlockId) {
    if let Terminator::Branch { taken, fallthrough, .. } = &mut block.end {
        (*taken, *fallthrough) = (new_taken, new_fallthrough);
    }
}
