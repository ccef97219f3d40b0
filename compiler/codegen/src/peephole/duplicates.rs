//! Blocks that do the same: mostly the moves of edges that lead to one place.

use hashbrown::HashMap;

use cranelift_entity::SecondaryMap;
use pktc_lower::vcode::VBlockId;

use crate::emit::{End, MachineFunction};
use crate::module::MachineInsn;

/// What a block does.
type Content = (Vec<MachineInsn>, End);

/// Lets jumps to a block go to an earlier one that does the same; the other is then out of reach. A block that a
/// branch falls through into stays: to jump instead would cost an instruction.
pub(super) fn merge_duplicates(function: &mut MachineFunction) {
    while merge_once(function) {}
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
        let (End::Goto(target) | End::Branch { taken: target, .. }) = &mut block.end else { continue };
        if let Some(first) = leader[*target] {
            (*target, merged) = (first, true);
        }
    }
    merged
}
