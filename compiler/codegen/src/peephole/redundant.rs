//! Moves, spills and reloads whose destination already holds the value, and reads of copies.

use hashbrown::HashMap;

use pktc_bpf::{AluOp, Insn, Operand, Reg, Size, Width};

use crate::effects::{redirect_reads, writes};
use crate::emit::{End, MachineFunction, copy};
use crate::module::MachineInsn;

/// Removes the former in every block, and lets the latter read the original, so that the copy may go. Only spill slots
/// are looked at: what the code itself stores and loads is left as lowering wrote it.
pub(super) fn remove_redundant_moves(function: &mut MachineFunction) {
    let frame = function.frame;
    for block in function.blocks.values_mut() {
        let mut contents = Contents::new(frame);
        block.insns.retain_mut(|(insn, _)| {
            redirect_reads(insn, |reg| contents.original(reg));
            contents.step(insn)
        });
        if let End::Branch { test, .. } = &mut block.end {
            test.left = contents.original(test.left);
            if let Operand::Reg(right) = &mut test.right {
                *right = contents.original(*right);
            }
        }
    }
}

/// What registers and spill slots hold: equal numbers, equal values.
struct Contents {
    regs: [u32; 11],
    /// The number that was next when each register was written.
    since: [u32; 11],
    slots: HashMap<i16, u32>,
    constants: HashMap<i64, u32>,
    /// The next number that stands for nothing yet.
    next: u32,
    /// Bytes below the frame pointer that are no spill slots.
    frame: u32,
}

impl Contents {
    fn new(frame: u32) -> Contents {
        let regs = std::array::from_fn(|index| index as u32);
        let since = [0; 11];
        Contents {
            regs,
            since,
            slots: HashMap::new(),
            constants: HashMap::new(),
            next: regs.len() as u32,
            frame,
        }
    }

    /// Goes over an instruction, perhaps for a cheaper one; whether it is needed.
    fn step(&mut self, insn: &mut MachineInsn) -> bool {
        match *insn {
            Insn::Alu { op: AluOp::Mov, width: Width::W64, dst, src: Operand::Reg(src) } => {
                self.put(dst, self.number(src))
            }
            Insn::Alu { op: AluOp::Mov, width, dst, src: Operand::Imm(imm) } => {
                let value = match width {
                    Width::W64 => i64::from(imm),
                    Width::W32 => i64::from(imm.cast_unsigned()),
                };
                let fresh = self.fresh();
                let number = *self.constants.entry(value).or_insert(fresh);
                self.put(dst, number)
            }
            Insn::Store { size: Size::U64, base: Reg::FP, offset, src: Operand::Reg(src) }
                if self.is_spill(offset) =>
            {
                let number = self.number(src);
                self.slots.insert(offset, number) != Some(number)
            }
            Insn::Load { size: Size::U64, dst, base: Reg::FP, offset } if self.is_spill(offset) => {
                let fresh = self.fresh();
                let number = *self.slots.entry(offset).or_insert(fresh);
                if let Some(holder) = self.regs.iter().position(|&held| held == number) {
                    *insn = copy(dst, Reg(holder as u8));
                }
                self.put(dst, number)
            }
            _ => {
                for reg in writes(insn).iter() {
                    let fresh = self.fresh();
                    self.put(reg, fresh);
                }
                true
            }
        }
    }

    fn number(&self, reg: Reg) -> u32 {
        self.regs[usize::from(reg.0)]
    }

    /// Lets `reg` hold a value; whether it did not already.
    fn put(&mut self, reg: Reg, number: u32) -> bool {
        let changed = std::mem::replace(&mut self.regs[usize::from(reg.0)], number) != number;
        if changed {
            self.since[usize::from(reg.0)] = self.fresh();
        }
        changed
    }

    /// Of the registers that hold what `reg` holds, the one that was written first.
    fn original(&self, reg: Reg) -> Reg {
        let holders = (0..=Reg::FP.0).map(Reg).filter(|&holder| self.number(holder) == self.number(reg));
        holders.min_by_key(|holder| self.since[usize::from(holder.0)]).unwrap_or(reg)
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn is_spill(&self, offset: i16) -> bool {
        i64::from(offset) < -i64::from(self.frame)
    }
}
