//! Values that are made in one register only to be moved to another, or that nobody reads.

use cranelift_entity::SecondaryMap;
use pktc_bpf::{AluOp, Insn, Operand, Reg, Width};
use pktc_diagnostics::Span;
use pktc_lower::vcode::VBlockId;

use crate::effects::{RegSet, reads, rename, writes};
use crate::emit::{MachineBlock, MachineFunction};
use crate::module::MachineInsn;

/// How far a move is looked back from for what makes its value.
const FURTHEST: usize = 32;

/// Lets instructions make their value where a move puts it, where nothing else needs it in between; removes
/// what makes a value that nobody reads. Until nothing changes: what one block no longer reads may be all that
/// another made it for.
pub(super) fn remove_detours(function: &mut MachineFunction) {
    while remove_once(function) {}
}

fn remove_once(function: &mut MachineFunction) -> bool {
    let live = live_at_start(function);
    let mut removed = false;
    for block in function.blocks.values_mut() {
        let mut after = live_behind(block, &live);
        let mut keep = vec![true; block.insns.len()];
        for index in (0..block.insns.len()).rev() {
            let insn = block.insns[index].0;
            let detour = || as_copy(&insn).filter(|&(_, src)| !after.has(src));
            if makes_only(&insn).is_some_and(|dst| !after.has(dst))
                || detour().is_some_and(|(dst, src)| retarget(&mut block.insns[..index], src, dst))
            {
                (keep[index], removed) = (false, true);
            } else {
                after = before(&insn, after);
            }
        }
        let mut keep = keep.into_iter();
        block.insns.retain(|_| keep.next().unwrap_or(true));
    }
    removed
}

/// The register that `insn` writes, if it does nothing else.
fn makes_only(insn: &MachineInsn) -> Option<Reg> {
    if takes_certain_registers(insn) { None } else { writes(insn).first() }
}

/// Whether it is a call, whose registers are given; or not one of ours.
fn takes_certain_registers(insn: &MachineInsn) -> bool {
    let call = matches!(insn, Insn::Call { .. } | Insn::CallLocal { .. } | Insn::CallSubprogram { .. });
    call || matches!(insn, Insn::Foreign(_))
}

fn as_copy(insn: &MachineInsn) -> Option<(Reg, Reg)> {
    match *insn {
        Insn::Alu { op: AluOp::Mov, width: Width::W64, dst, src: Operand::Reg(src) } => Some((dst, src)),
        _ => None,
    }
}

/// Lets the last instructions of `insns` that work on `from` work on `to`; whether that could be done.
fn retarget(insns: &mut [(MachineInsn, Span)], from: Reg, to: Reg) -> bool {
    let Some(start) = find_maker(insns, from, to) else { return false };
    insns[start..].iter_mut().for_each(|(insn, _)| rename(insn, from, to));
    true
}

/// The instruction that makes the value in `from`, if `to` is free from there on.
fn find_maker(insns: &[(MachineInsn, Span)], from: Reg, to: Reg) -> Option<usize> {
    for (index, (insn, _)) in insns.iter().enumerate().rev().take(FURTHEST) {
        let (reads, writes) = (reads(insn), writes(insn));
        if takes_certain_registers(insn) && (reads.union(writes).has(from) || writes.has(to)) {
            return None;
        }
        if writes.has(from) && !reads.has(from) {
            return Some(index);
        }
        if reads.union(writes).has(to) {
            return None;
        }
    }
    None
}

/// The registers that are needed at the start of each block.
fn live_at_start(function: &MachineFunction) -> SecondaryMap<VBlockId, RegSet> {
    let mut live: SecondaryMap<VBlockId, RegSet> = SecondaryMap::new();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        // Blocks stand in reverse postorder: backwards, one round does for what has no loops.
        for (id, block) in function.blocks.iter().rev() {
            let behind = live_behind(block, &live);
            let at_start = block.insns.iter().rev().fold(behind, |after, (insn, _)| before(insn, after));
            changed |= std::mem::replace(&mut live[id], at_start) != at_start;
        }
    }
    live
}

/// The registers that are needed by the end of a block and behind it.
fn live_behind(block: &MachineBlock, live: &SecondaryMap<VBlockId, RegSet>) -> RegSet {
    block.end.targets().fold(block.end.reads(), |behind, target| behind.union(live[target]))
}

/// The registers that are needed before `insn` when those of `after` are behind it.
fn before(insn: &MachineInsn, after: RegSet) -> RegSet {
    after.without(writes(insn)).union(reads(insn))
}
