//! Which operand of a commutative operation the machine overwrites.

use cranelift_entity::SecondaryMap;
use pktc_bpf::Operand;
use pktc_lower::vcode::{VBlockId, VInsn, VReg};

use super::constants::is_commutative;
use crate::operands::{definition, end_uses, uses};
use crate::ssa::Ssa;

/// Puts an operand on the left that is not needed any more, where the other is: machine arithmetic overwrites
/// its left operand, so that this saves a copy. What is used in several blocks is taken to be needed.
pub(super) fn swap_operands(ssa: &mut Ssa) {
    let elsewhere = used_elsewhere(ssa);
    let mut seen: SecondaryMap<VReg, bool> = SecondaryMap::new();
    for (id, block) in &mut ssa.function.blocks {
        end_uses(&block.end, |reg| seen[reg] = true);
        ssa.args[id].iter().for_each(|&reg| seen[reg] = true);
        for (insn, _) in block.insns.iter_mut().rev() {
            if let VInsn::Alu { op, left, right: Operand::Reg(right), .. } = insn
                && is_commutative(*op)
            {
                let dies = |reg: VReg| !elsewhere[reg] && !seen[reg];
                if dies(*right) && !dies(*left) {
                    std::mem::swap(left, right);
                }
            }
            uses(insn, |reg| seen[reg] = true);
        }
    }
}

/// The values that are used in another block than they are made in.
fn used_elsewhere(ssa: &Ssa) -> SecondaryMap<VReg, bool> {
    let mut homes: SecondaryMap<VReg, Option<VBlockId>> = SecondaryMap::new();
    for (id, block) in &ssa.function.blocks {
        let made = block.insns.iter().filter_map(|(insn, _)| definition(insn));
        for reg in made.chain(ssa.params[id].iter().copied()) {
            homes[reg] = Some(id);
        }
    }
    let mut elsewhere: SecondaryMap<VReg, bool> = SecondaryMap::new();
    for (id, block) in &ssa.function.blocks {
        let mut used = |reg: VReg| elsewhere[reg] |= homes[reg] != Some(id);
        block.insns.iter().for_each(|(insn, _)| uses(insn, &mut used));
        end_uses(&block.end, &mut used);
        ssa.args[id].iter().for_each(|&reg| used(reg));
    }
    elsewhere
}
