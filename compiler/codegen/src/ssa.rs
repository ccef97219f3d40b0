//! Static single assignment: registers that are written several times become values written once, joined by
//! block parameters. Register allocation wants it, and every pass on values is simple in it.
//!
//! Parameters are placed where the iterated dominance frontier of a register's writes meets its life (pruned),
//! so a register that is written once costs nothing. A copy is only another name for its source and vanishes.
//! Blocks with parameters are only entered by [`Terminator::Goto`], because critical edges are split before.

use cranelift_entity::{EntityRef, SecondaryMap};
use pktc_diagnostics::Span;
use pktc_lower::vcode::{VBlockId, VFunction, VInsn, VReg};

use crate::graph::{Dominators, entry, predecessors};
use crate::operands::{definition, definition_mut, end_uses, end_uses_mut, targets, uses, uses_mut};

/// A function whose registers are values: each is written once, by an instruction or as a parameter, and
/// that dominates all its uses.
pub(crate) struct Ssa {
    /// The code.
    pub(crate) function: VFunction,
    /// The predecessors of each block.
    pub(crate) preds: SecondaryMap<VBlockId, Vec<VBlockId>>,
    /// The parameters of each block.
    pub(crate) params: SecondaryMap<VBlockId, Vec<VReg>>,
    /// What a block gives to the parameters of the only block that it goes on to.
    pub(crate) args: SecondaryMap<VBlockId, Vec<VReg>>,
}

/// A register is read that is not written on every way there.
#[derive(Debug)]
pub(crate) struct Unwritten {
    pub(crate) reg: VReg,
    pub(crate) span: Span,
}

/// Brings `function` into this form. It has no unreachable block and no critical edge.
pub(crate) fn build_ssa(function: VFunction) -> Result<Ssa, Unwritten> {
    let preds = predecessors(&function);
    let dominators = Dominators::new(&function, &preds);
    let params = place_params(&function, &preds, &dominators);
    let mut ssa = Renamer::new(function, preds, params).rename(&dominators)?;
    remove_trivial_params(&mut ssa);
    Ok(ssa)
}

/// Where a register that is written several times is written and where its value is wanted from before.
#[derive(Clone, Default)]
struct Life {
    writes: Vec<VBlockId>,
    wanted: Vec<VBlockId>,
}

/// Blocks are gone through one by one, each in its order.
impl Life {
    fn write_in(&mut self, id: VBlockId) {
        if self.writes.last() != Some(&id) {
            self.writes.push(id);
        }
    }

    fn read_in(&mut self, id: VBlockId) {
        if self.writes.last() != Some(&id) && self.wanted.last() != Some(&id) {
            self.wanted.push(id);
        }
    }
}

/// For each block the registers that need a parameter there.
fn place_params(
    function: &VFunction,
    preds: &SecondaryMap<VBlockId, Vec<VBlockId>>,
    dominators: &Dominators,
) -> SecondaryMap<VBlockId, Vec<VReg>> {
    let frontiers = dominators.frontiers(preds, function.blocks.keys());
    let mut params: SecondaryMap<VBlockId, Vec<VReg>> = SecondaryMap::new();
    let mut live = Marks::default();
    let mut writes = Marks::default();
    for (reg, life) in lives(function) {
        writes.clear();
        life.writes.iter().for_each(|&id| _ = writes.set(id));
        live.clear();
        let mut work: Vec<VBlockId> = life.wanted.into_iter().filter(|&id| live.set(id)).collect();
        while let Some(id) = work.pop() {
            work.extend(preds[id].iter().copied().filter(|&pred| !writes.has(pred) && live.set(pred)));
        }
        let mut work = life.writes;
        while let Some(id) = work.pop() {
            for &join in &frontiers[id] {
                if live.has(join) && params[join].last() != Some(&reg) {
                    params[join].push(reg);
                    work.push(join);
                }
            }
        }
    }
    params
}

/// A set of blocks that is emptied in no time.
#[derive(Default)]
struct Marks {
    round: u32,
    rounds: SecondaryMap<VBlockId, u32>,
}

impl Marks {
    fn clear(&mut self) {
        self.round += 1;
    }

    /// Adds `id`; whether it is new.
    fn set(&mut self, id: VBlockId) -> bool {
        std::mem::replace(&mut self.rounds[id], self.round) != self.round
    }

    fn has(&self, id: VBlockId) -> bool {
        self.rounds[id] == self.round
    }
}

/// The registers that are written more than once.
fn lives(function: &VFunction) -> impl Iterator<Item = (VReg, Life)> {
    let mut count: SecondaryMap<VReg, u32> = SecondaryMap::new();
    for &param in &function.params {
        count[param] = 1;
    }
    for (insn, _) in function.blocks.values().flat_map(|block| &block.insns) {
        if let Some(reg) = definition(insn) {
            count[reg] += 1;
        }
    }
    let mut lives: SecondaryMap<VReg, Life> = SecondaryMap::new();
    for &param in &function.params {
        lives[param].writes.push(entry());
    }
    for (id, block) in &function.blocks {
        let several = |reg: VReg| count[reg] > 1;
        for (insn, _) in &block.insns {
            uses(insn, |reg| {
                if several(reg) {
                    lives[reg].read_in(id)
                }
            });
            if let Some(reg) = definition(insn).filter(|&reg| several(reg)) {
                lives[reg].write_in(id);
            }
        }
        end_uses(&block.end, |reg| {
            if several(reg) {
                lives[reg].read_in(id)
            }
        });
    }
    count.keys().filter(move |&reg| count[reg] > 1).map(move |reg| (reg, lives[reg].clone()))
}

/// Gives every write a value of its own, in a walk over the dominator tree.
struct Renamer {
    ssa: Ssa,
    /// The value that each register has at this point of the walk.
    current: SecondaryMap<VReg, Option<VReg>>,
    /// What `current` was, to be put back when the walk leaves a block.
    undo: Vec<(VReg, Option<VReg>)>,
    /// How many values there are.
    values: u32,
    /// The registers that each block has parameters for.
    params: SecondaryMap<VBlockId, Vec<VReg>>,
}

/// A step of the walk over the dominator tree.
enum Step {
    Enter(VBlockId),
    /// Puts back what was changed since `undo` had that length.
    Leave(usize),
}

impl Renamer {
    fn new(
        function: VFunction,
        preds: SecondaryMap<VBlockId, Vec<VBlockId>>,
        params: SecondaryMap<VBlockId, Vec<VReg>>,
    ) -> Renamer {
        let ssa = Ssa { function, preds, params: SecondaryMap::new(), args: SecondaryMap::new() };
        Renamer { ssa, current: SecondaryMap::new(), undo: Vec::new(), values: 0, params }
    }

    fn rename(mut self, dominators: &Dominators) -> Result<Ssa, Unwritten> {
        let params = std::mem::take(&mut self.ssa.function.params);
        self.ssa.function.params = params.into_iter().map(|param| self.define(param)).collect();
        let mut steps = vec![Step::Enter(entry())];
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(id) => {
                    steps.push(Step::Leave(self.undo.len()));
                    self.rename_block(id)?;
                    steps.extend(dominators.children[id].iter().rev().map(|&child| Step::Enter(child)));
                }
                Step::Leave(length) => {
                    for (reg, value) in self.undo.drain(length..).rev() {
                        self.current[reg] = value;
                    }
                }
            }
        }
        self.ssa.function.vregs = self.values;
        Ok(self.ssa)
    }

    fn rename_block(&mut self, id: VBlockId) -> Result<(), Unwritten> {
        let params = std::mem::take(&mut self.params[id]);
        self.ssa.params[id] = params.iter().map(|&reg| self.define(reg)).collect();
        self.params[id] = params;
        let old = std::mem::take(&mut self.ssa.function.blocks[id].insns);
        let mut insns = Vec::with_capacity(old.len());
        for (mut insn, span) in old {
            let mut failed = None;
            uses_mut(&mut insn, |reg| failed = failed.or(self.read(reg)));
            check(failed, span)?;
            if let VInsn::Mov { dst, src: pktc_bpf::Operand::Reg(src) } = insn {
                self.set(dst, src);
                continue;
            }
            if let Some(dst) = definition_mut(&mut insn) {
                *dst = self.define(*dst);
            }
            insns.push((insn, span));
        }
        self.rename_end(id)?;
        self.ssa.function.blocks[id].insns = insns;
        Ok(())
    }

    fn rename_end(&mut self, id: VBlockId) -> Result<(), Unwritten> {
        let span = self.ssa.function.blocks[id].end_span;
        let mut end = self.ssa.function.blocks[id].end.clone();
        let mut failed = None;
        end_uses_mut(&mut end, |reg| failed = failed.or(self.read(reg)));
        check(failed, span)?;
        for target in targets(&end) {
            let mut args = self.params[target].clone();
            args.iter_mut().for_each(|reg| failed = failed.or(self.read(reg)));
            check(failed, span)?;
            self.ssa.args[id].extend(args);
        }
        self.ssa.function.blocks[id].end = end;
        Ok(())
    }

    /// Replaces a register by its value; returns it if it has none.
    fn read(&self, reg: &mut VReg) -> Option<VReg> {
        match self.current[*reg] {
            Some(value) => {
                *reg = value;
                None
            }
            None => Some(*reg),
        }
    }

    fn define(&mut self, reg: VReg) -> VReg {
        let value = VReg::new(self.values as usize);
        self.values += 1;
        self.set(reg, value);
        value
    }

    fn set(&mut self, reg: VReg, value: VReg) {
        let old = self.current[reg].replace(value);
        self.undo.push((reg, old));
    }
}

fn check(failed: Option<VReg>, span: Span) -> Result<(), Unwritten> {
    failed.map_or(Ok(()), |reg| Err(Unwritten { reg, span }))
}

/// Removes parameters that are given the same value by all predecessors (besides themselves).
fn remove_trivial_params(ssa: &mut Ssa) {
    let mut same: SecondaryMap<VReg, Option<VReg>> = SecondaryMap::new();
    let joins: Vec<VBlockId> = ssa.params.keys().filter(|&id| !ssa.params[id].is_empty()).collect();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &id in &joins {
            let mut index = 0;
            while index < ssa.params[id].len() {
                match only_value(ssa, id, index, &same) {
                    Some(value) => {
                        let param = ssa.params[id][index];
                        ssa.remove_param(id, index);
                        same[param] = Some(value);
                        changed = true;
                    }
                    None => index += 1,
                }
            }
        }
    }
    for (id, block) in &mut ssa.function.blocks {
        let find = |reg: &mut VReg| *reg = resolve(*reg, &same);
        block.insns.iter_mut().for_each(|(insn, _)| uses_mut(insn, find));
        end_uses_mut(&mut block.end, find);
        ssa.args[id].iter_mut().for_each(find);
    }
}

/// The one value that parameter `index` of `id` can have, if there is but one.
fn only_value(
    ssa: &Ssa,
    id: VBlockId,
    index: usize,
    same: &SecondaryMap<VReg, Option<VReg>>,
) -> Option<VReg> {
    let param = ssa.params[id][index];
    let mut only = None;
    for &pred in &ssa.preds[id] {
        let value = resolve(ssa.args[pred][index], same);
        if value != param && *only.get_or_insert(value) != value {
            return None;
        }
    }
    only
}

fn resolve(mut reg: VReg, same: &SecondaryMap<VReg, Option<VReg>>) -> VReg {
    while let Some(value) = same[reg] {
        reg = value;
    }
    reg
}

impl Ssa {
    /// Removes a parameter and what the predecessors give to it.
    pub(crate) fn remove_param(&mut self, id: VBlockId, index: usize) {
        self.params[id].remove(index);
        for &pred in &self.preds[id] {
            self.args[pred].remove(index);
        }
    }

    /// A value that no one uses yet.
    pub(crate) fn new_value(&mut self) -> VReg {
        let value = VReg::new(self.function.vregs as usize);
        self.function.vregs += 1;
        value
    }
}
