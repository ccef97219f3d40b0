//! A program made ready to run: decoded once, with jumps that point at instructions.

use pktc_bpf::{Insn, Reg, disassemble, slots};

use super::fault::{Fault, Problem, VmError};

/// A program.
pub(super) struct Program {
    /// Jump targets are indices of this list.
    pub(super) insns: Vec<Insn<Reg, u32>>,
    /// The same with the distances of machine code, to name instructions in faults.
    machine: Vec<Insn<Reg, i32>>,
    /// The first slot of each.
    slots: Vec<usize>,
}

impl Program {
    pub(super) fn new(machine: Vec<Insn<Reg, i32>>) -> Result<Program, VmError> {
        let mut starts = Vec::with_capacity(machine.len());
        let mut by_slot = Vec::with_capacity(machine.len());
        for (index, insn) in machine.iter().enumerate() {
            starts.push(by_slot.len());
            by_slot.push(Some(index as u32));
            by_slot.resize(starts[index] + slots(insn), None);
        }
        let resolve = |slot: usize, distance: i32| {
            let target = slot as i64 + 1 + i64::from(distance);
            let index = usize::try_from(target).ok().and_then(|target| *by_slot.get(target)?);
            index.ok_or(VmError::Target { slot })
        };
        let insns =
            machine.iter().zip(&starts).map(|(insn, slot)| insn.try_retarget(|to| resolve(*slot, to)));
        let insns = insns.collect::<Result<_, _>>()?;
        Ok(Program { insns, machine, slots: starts })
    }

    /// The slot of the first instruction that refers to a map which is not among `maps` ones.
    pub(super) fn missing_map(&self, maps: usize) -> Option<usize> {
        let missing = |insn: &Insn<Reg, u32>| match insn {
            Insn::LoadMap { map, .. } | Insn::LoadMapValue { map, .. } => map.0 as usize >= maps,
            _ => false,
        };
        self.insns.iter().position(missing).map(|index| self.slots[index])
    }

    /// The fault of the instruction at `index`, which may be behind the last.
    pub(super) fn fault(&self, index: usize, problem: Problem) -> Fault {
        let insn = self.machine.get(index).map(disassemble).unwrap_or_default();
        let end = || self.slots.last().map_or(0, |last| last + 1);
        Fault { slot: self.slots.get(index).copied().unwrap_or_else(end), insn, problem }
    }
}
