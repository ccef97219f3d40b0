//! Removes what nobody reads.

use cranelift_entity::SecondaryMap;
use pktc_lower::vcode::{VBlockId, VReg};

use crate::operands::{definition, end_uses, is_pure, uses};
use crate::ssa::Ssa;

/// Where a value comes from.
#[derive(Clone, Copy)]
enum Origin {
    Insn(VBlockId, usize),
    Param(VBlockId, usize),
}

/// Removes instructions and parameters whose value reaches no effect and no end of a block.
pub(super) fn remove_dead(ssa: &mut Ssa) {
    let wanted = wanted_values(ssa);
    for block in ssa.function.blocks.values_mut() {
        block.insns.retain(|(insn, _)| !is_pure(insn) || definition(insn).is_none_or(|dst| wanted[dst]));
    }
    let ids: Vec<VBlockId> = ssa.params.keys().collect();
    for id in ids {
        for index in (0..ssa.params[id].len()).rev() {
            if !wanted[ssa.params[id][index]] {
                ssa.remove_param(id, index);
            }
        }
    }
}

/// Walks back from the effects.
fn wanted_values(ssa: &Ssa) -> SecondaryMap<VReg, bool> {
    let mut origins: SecondaryMap<VReg, Option<Origin>> = SecondaryMap::new();
    let mut work = Vec::new();
    for (id, block) in &ssa.function.blocks {
        for (index, &param) in ssa.params[id].iter().enumerate() {
            origins[param] = Some(Origin::Param(id, index));
        }
        for (index, (insn, _)) in block.insns.iter().enumerate() {
            if !is_pure(insn) {
                uses(insn, |reg| work.push(reg));
            }
            if let Some(dst) = definition(insn) {
                origins[dst] = Some(Origin::Insn(id, index));
            }
        }
        end_uses(&block.end, |reg| work.push(reg));
    }
    let mut wanted: SecondaryMap<VReg, bool> = SecondaryMap::new();
    while let Some(reg) = work.pop() {
        if std::mem::replace(&mut wanted[reg], true) {
            continue;
        }
        match origins[reg] {
            Some(Origin::Insn(id, index)) => {
                uses(&ssa.function.blocks[id].insns[index].0, |reg| work.push(reg));
            }
            Some(Origin::Param(id, index)) => {
                work.extend(ssa.preds[id].iter().map(|&pred| ssa.args[pred][index]));
            }
            None => {}
        }
    }
    wanted
}
