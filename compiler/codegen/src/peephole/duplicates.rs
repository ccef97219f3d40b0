//! Blocks that do the same: mostly the moves of edges that lead to one place.

use hashbrown::HashMap;

use cranelift_entity::SecondaryMap;
use pktc_lower::vcode::VBlockId;

use crate::emit::{End, MachineFunction};
use crate::layout::skip_empty;
use crate::module::MachineInsn;

/// What a block does.
type Content = (Vec<MachineInsn>, End);

/// Lets jumps to a block go to an earlier one that does the same; the other is then out of reach.
pub(super) fn merge_duplicates(function: &mut MachineFunction) {
    skip_empty(function);
    while merge_once(function) {
        skip_empty(function);
    }
}

fn merge_once(function: &mut MachineFunction) -> bool {
    let mut leaders: HashMap<Content, VBlockId> = HashMap::new();
    let mut leader: SecondaryMap<VBlockId, Option<VBlockId>> = SecondaryMap::new();
    for (id, block) in &function.blocks {
        let content = (block.insns.iter().map(|&(insn, _)| insn).collect(), block.end);
        leader[id] = Some(*leaders.entry(content).or_insert(id)).filter(|&first| first != id);
    }
    let mut merged = false;
    for block in function.blocks.values_mut() {
        block.end.redirect(|target| match leader[target] {
            Some(first) => {
                merged = true;
                first
            }
            None => target,
        });
    }
    merged
}
