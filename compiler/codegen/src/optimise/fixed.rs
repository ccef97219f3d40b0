//! Values that must survive a call and also be in a certain register somewhere.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_entity::SecondaryMap;
use pktc_bpf::Operand;
use pktc_diagnostics::Span;
use pktc_lower::vcode::{Terminator, VBlockId, VInsn, VReg};

use crate::operands::{definition, end_uses, uses};
use crate::ssa::Ssa;

/// Copies a value that lives across a call right before it is passed to a helper or returned. Otherwise the
/// allocator takes the argument's register for the value and moves it to a surviving one at every place that
/// makes it, instead of making it there.
pub(super) fn copy_before_fixed_uses(ssa: &mut Ssa) {
    let crossing = values_across_calls(ssa);
    if crossing.is_empty() {
        return;
    }
    let ids: Vec<VBlockId> = ssa.function.blocks.keys().collect();
    for id in ids {
        let mut insns = Vec::with_capacity(ssa.function.blocks[id].insns.len());
        for (mut insn, span) in std::mem::take(&mut ssa.function.blocks[id].insns) {
            if let VInsn::Call { args, .. } = &mut insn {
                for arg in args.iter_mut().filter(|arg| crossing.contains(arg)) {
                    *arg = copy(ssa, *arg, span, &mut insns);
                }
            }
            insns.push((insn, span));
        }
        let span = ssa.function.blocks[id].end_span;
        if let Terminator::Exit(Operand::Reg(verdict)) = ssa.function.blocks[id].end
            && crossing.contains(&verdict)
        {
            let copy = copy(ssa, verdict, span, &mut insns);
            ssa.function.blocks[id].end = Terminator::Exit(Operand::Reg(copy));
        }
        ssa.function.blocks[id].insns = insns;
    }
}

fn copy(ssa: &mut Ssa, src: VReg, span: Span, insns: &mut Vec<(VInsn, Span)>) -> VReg {
    let dst = ssa.new_value();
    insns.push((VInsn::Mov { dst, src: Operand::Reg(src) }, span));
    dst
}

/// Where a value is made and used: block and instruction. A parameter is made before the first instruction,
/// ends of blocks come behind the last.
#[derive(Default)]
struct Life {
    made: Option<(VBlockId, Option<usize>)>,
    last_uses: BTreeMap<VBlockId, usize>,
}

/// Of the values with uses in fixed registers, those that live across a call.
fn values_across_calls(ssa: &Ssa) -> BTreeSet<VReg> {
    let mut calls: SecondaryMap<VBlockId, Vec<usize>> = SecondaryMap::new();
    let mut lives: BTreeMap<VReg, Life> = BTreeMap::new();
    for (id, block) in &ssa.function.blocks {
        for (index, (insn, _)) in block.insns.iter().enumerate() {
            if let VInsn::Call { args, .. } = insn {
                calls[id].push(index);
                lives.extend(args.iter().map(|&arg| (arg, Life::default())));
            }
        }
        if let Terminator::Exit(Operand::Reg(verdict)) = block.end {
            lives.insert(verdict, Life::default());
        }
    }
    find_lives(ssa, &mut lives);
    lives.into_iter().filter(|(_, life)| life.crosses(ssa, &calls)).map(|(value, _)| value).collect()
}

fn find_lives(ssa: &Ssa, lives: &mut BTreeMap<VReg, Life>) {
    for (id, block) in &ssa.function.blocks {
        let mut made = |value: VReg, index: Option<usize>| {
            if let Some(life) = lives.get_mut(&value) {
                life.made = Some((id, index));
            }
        };
        ssa.params[id].iter().for_each(|&param| made(param, None));
        for (index, (insn, _)) in block.insns.iter().enumerate() {
            definition(insn).into_iter().for_each(|value| made(value, Some(index)));
        }
        let mut used = |value: VReg, index: usize| {
            if let Some(life) = lives.get_mut(&value) {
                life.last_uses.insert(id, index);
            }
        };
        for (index, (insn, _)) in block.insns.iter().enumerate() {
            uses(insn, |value| used(value, index));
        }
        let end = block.insns.len();
        end_uses(&block.end, |value| used(value, end));
        ssa.args[id].iter().for_each(|&value| used(value, end));
    }
}

impl Life {
    /// Whether a call lies between where the value is made and a use.
    fn crosses(&self, ssa: &Ssa, calls: &SecondaryMap<VBlockId, Vec<usize>>) -> bool {
        // Parameters are made by no instruction.
        let (home, made) = self.made.unwrap_or((crate::graph::entry(), None));
        let called = |id: VBlockId, from: Option<usize>, to: usize| {
            calls[id].iter().any(|&call| from.is_none_or(|from| call > from) && call < to)
        };
        let mut seen = BTreeSet::new();
        let mut work = Vec::new();
        for (&id, &last) in &self.last_uses {
            let from = made.filter(|_| id == home);
            if called(id, from, last) {
                return true;
            }
            if id != home {
                work.extend(&ssa.preds[id]);
            }
        }
        while let Some(id) = work.pop() {
            if seen.insert(id) {
                let from = made.filter(|_| id == home);
                if called(id, from, usize::MAX) {
                    return true;
                }
                if id != home {
                    work.extend(&ssa.preds[id]);
                }
            }
        }
        false
    }
}
