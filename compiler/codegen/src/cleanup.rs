//! Tidies the graph before anything else looks at it: the verifier refuses code that cannot be reached
//! ("unreachable insn"), and every block that is not there saves a jump.

use cranelift_entity::SecondaryMap;
use pktc_lower::vcode::{Terminator, VBlockId, VFunction};

use crate::graph::{entry, follow, predecessors, reachable, reorder};
use crate::operands::targets_mut;

/// Skips empty blocks, ends programs where a jump leads to nothing but the end, joins blocks that only follow each other, drops unreachable ones, puts cold ones last.
pub(crate) fn clean_up(mut function: VFunction) -> VFunction {
    skip_empty(&mut function);
    let keep = reachable(&function);
    let order: Vec<VBlockId> = function.blocks.keys().filter(|&id| keep[id]).collect();
    let mut function = reorder(function, &order);
    let order = join_chains(&mut function);
    reorder(function, &order)
}

/// Lets jumps to blocks that only jump on go where those lead; a branch to one place becomes a jump, a jump to a
/// block that only ends the program ends it itself.
fn skip_empty(function: &mut VFunction) {
    let mut hops: SecondaryMap<VBlockId, Option<VBlockId>> = SecondaryMap::new();
    for (id, block) in &function.blocks {
        if let (true, Terminator::Goto(target)) = (block.insns.is_empty(), &block.end) {
            hops[id] = Some(*target);
        }
    }
    for block in function.blocks.values_mut() {
        for target in targets_mut(&mut block.end) {
            *target = follow(*target, |id| hops[id]);
        }
        if let Terminator::Branch { taken, fallthrough, .. } = block.end
            && taken == fallthrough
        {
            block.end = Terminator::Goto(taken);
        }
    }
    for id in function.blocks.keys() {
        if let Terminator::Goto(target) = function.blocks[id].end
            && let target = &function.blocks[target]
            && let (true, Terminator::Exit(_)) = (target.insns.is_empty(), &target.end)
        {
            let (end, end_span) = (target.end.clone(), target.end_span);
            let block = &mut function.blocks[id];
            (block.end, block.end_span) = (end, end_span);
        }
    }
}

/// Appends to each block what only it goes on to; returns the blocks that are left, cold ones last.
fn join_chains(function: &mut VFunction) -> Vec<VBlockId> {
    let preds = predecessors(function);
    let mut joined: SecondaryMap<VBlockId, bool> = SecondaryMap::new();
    for id in function.blocks.keys() {
        while !joined[id]
            && let Terminator::Goto(next) = function.blocks[id].end
            && next != id
            && next != entry()
            && preds[next].len() == 1
        {
            joined[next] = true;
            let tail = &mut function.blocks[next];
            let insns = std::mem::take(&mut tail.insns);
            let (end, end_span) = (tail.end.clone(), tail.end_span);
            let head = &mut function.blocks[id];
            head.insns.extend(insns);
            (head.end, head.end_span) = (end, end_span);
        }
    }
    let left = function.blocks.keys().filter(|&id| !joined[id]);
    let (cold, warm): (Vec<_>, Vec<_>) = left.partition(|&id| function.blocks[id].cold && id != entry());
    [warm, cold].concat()
}
