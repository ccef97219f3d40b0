//! Constants: into the instructions that can hold them, and the rest next to their uses, so that they take no
//! register in between.

use hashbrown::HashMap;

use cranelift_entity::SecondaryMap;
use pktc_bpf::{AluOp, Condition, Operand, Width};
use pktc_diagnostics::Span;
use pktc_lower::vcode::{Terminator, VBlockId, VInsn, VReg};

use crate::operands::{definition, definition_mut, end_uses_mut, uses_mut};
use crate::ssa::Ssa;

/// The values that are known.
type Known = SecondaryMap<VReg, Option<i64>>;

/// Replaces operands with known values by immediates. Stores keep their registers: older kernels track what a
/// register stores, but not a constant that is stored directly (before 6.3 only zero).
pub(super) fn fold_constants(ssa: &mut Ssa) {
    let known = known_values(ssa);
    for block in ssa.function.blocks.values_mut() {
        for (insn, _) in &mut block.insns {
            if let VInsn::Alu { op, width, left, right, .. } = insn {
                fold_alu(*op, *width, left, right, &known);
            }
        }
        fold_end(&mut block.end, &known);
    }
}

fn known_values(ssa: &Ssa) -> Known {
    let mut known = Known::new();
    for (insn, _) in ssa.function.blocks.values().flat_map(|block| &block.insns) {
        match *insn {
            VInsn::Mov { dst, src: Operand::Imm(imm) } => known[dst] = Some(imm.into()),
            VInsn::LoadImm64 { dst, imm } => known[dst] = Some(imm.cast_signed()),
            _ => {}
        }
    }
    known
}

fn fold_alu(op: AluOp, width: Width, left: &mut VReg, right: &mut Operand<VReg>, known: &Known) {
    let Operand::Reg(reg) = *right else { return };
    let immediate = |reg: VReg| immediate(known[reg]?, width).filter(|&imm| may_be_immediate(op, width, imm));
    if let Some(imm) = immediate(reg) {
        *right = Operand::Imm(imm);
    } else if is_commutative(op)
        && let Some(imm) = immediate(*left)
    {
        (*left, *right) = (reg, Operand::Imm(imm));
    }
}

fn fold_end(end: &mut Terminator, known: &Known) {
    match end {
        Terminator::Branch { condition, width, left, right, .. } => {
            let Operand::Reg(reg) = *right else { return };
            let immediate = |reg: VReg| immediate(known[reg]?, *width);
            if let Some(imm) = immediate(reg) {
                *right = Operand::Imm(imm);
            } else if let Some(imm) = immediate(*left) {
                (*left, *right, *condition) = (reg, Operand::Imm(imm), mirrored(*condition));
            }
        }
        Terminator::Exit(value) => {
            if let Operand::Reg(reg) = *value
                && let Some(imm) = known[reg].and_then(|value| immediate(value, Width::W64))
            {
                *value = Operand::Imm(imm);
            }
        }
        Terminator::Goto(_) => {}
    }
}

/// The immediate that means `value` in an operation of that width: all 32 bits count in the narrow ones, the
/// sign is extended in the wide ones.
fn immediate(value: i64, width: Width) -> Option<i32> {
    match width {
        Width::W32 => Some(value as i32),
        Width::W64 => i32::try_from(value).ok(),
    }
}

/// The verifier refuses to divide by an immediate 0 and to shift by an immediate beyond the width, while both
/// are defined in a register.
fn may_be_immediate(op: AluOp, width: Width, imm: i32) -> bool {
    let bits = match width {
        Width::W32 => 32,
        Width::W64 => 64,
    };
    match op {
        AluOp::Div | AluOp::Mod => imm != 0,
        AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => (0..bits).contains(&imm),
        AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::Or | AluOp::And | AluOp::Xor | AluOp::Mov => true,
    }
}

/// Whether `a op b` is `b op a`.
pub(super) fn is_commutative(op: AluOp) -> bool {
    match op {
        AluOp::Add | AluOp::Mul | AluOp::Or | AluOp::And | AluOp::Xor => true,
        AluOp::Sub | AluOp::Div | AluOp::Lsh | AluOp::Rsh | AluOp::Mod | AluOp::Mov | AluOp::Arsh => false,
    }
}

/// The condition that holds for `b, a` when `condition` holds for `a, b`.
fn mirrored(condition: Condition) -> Condition {
    match condition {
        Condition::Eq | Condition::Ne | Condition::Set => condition,
        Condition::Gt => Condition::Lt,
        Condition::Ge => Condition::Le,
        Condition::Lt => Condition::Gt,
        Condition::Le => Condition::Ge,
        Condition::Sgt => Condition::Slt,
        Condition::Sge => Condition::Sle,
        Condition::Slt => Condition::Sgt,
        Condition::Sle => Condition::Sge,
    }
}

/// Makes constants and fixed addresses anew where they are used in another block or behind a call: that costs
/// as much as the move or reload that would be needed otherwise, and frees a register on the way.
pub(super) fn sink_constants(ssa: &mut Ssa) {
    let makers = makers(ssa);
    let ids: Vec<VBlockId> = ssa.function.blocks.keys().collect();
    for id in ids {
        let mut sink = Sink { ssa: &mut *ssa, makers: &makers, available: HashMap::new(), insns: Vec::new() };
        sink.run(id);
    }
}

/// How each value is made, if it is a constant or a fixed address.
fn makers(ssa: &Ssa) -> SecondaryMap<VReg, Option<VInsn>> {
    let mut makers = SecondaryMap::new();
    for (insn, _) in ssa.function.blocks.values().flat_map(|block| &block.insns) {
        if is_fixed(insn)
            && let Some(dst) = definition(insn)
        {
            makers[dst] = Some(insn.clone());
        }
    }
    makers
}

/// Whether `insn` gives the same value wherever it stands.
fn is_fixed(insn: &VInsn) -> bool {
    matches!(
        insn,
        VInsn::Mov { src: Operand::Imm(_), .. }
            | VInsn::LoadImm64 { .. }
            | VInsn::LoadMap { .. }
            | VInsn::LoadMapValue { .. }
            | VInsn::FrameAddress { .. }
    )
}

/// The rewriting of one block.
struct Sink<'a> {
    ssa: &'a mut Ssa,
    makers: &'a SecondaryMap<VReg, Option<VInsn>>,
    /// The value that holds each constant since the last call in this block.
    available: HashMap<VReg, VReg>,
    /// The new code.
    insns: Vec<(VInsn, Span)>,
}

impl Sink<'_> {
    fn run(&mut self, id: VBlockId) {
        for (mut insn, span) in std::mem::take(&mut self.ssa.function.blocks[id].insns) {
            uses_mut(&mut insn, |reg| self.renew(reg, span));
            if let VInsn::Call { .. } = insn {
                self.available.clear();
            }
            if is_fixed(&insn)
                && let Some(dst) = definition(&insn)
            {
                self.available.insert(dst, dst);
            }
            self.insns.push((insn, span));
        }
        let span = self.ssa.function.blocks[id].end_span;
        let mut end = self.ssa.function.blocks[id].end.clone();
        end_uses_mut(&mut end, |reg| self.renew(reg, span));
        let mut args = std::mem::take(&mut self.ssa.args[id]);
        args.iter_mut().for_each(|reg| self.renew(reg, span));
        self.ssa.args[id] = args;
        let block = &mut self.ssa.function.blocks[id];
        block.end = end;
        block.insns = std::mem::take(&mut self.insns);
    }

    /// Lets a use of a constant read a value that is made in this block.
    fn renew(&mut self, reg: &mut VReg, span: Span) {
        let Some(maker) = &self.makers[*reg] else { return };
        if let Some(&value) = self.available.get(reg) {
            *reg = value;
            return;
        }
        let value = self.ssa.new_value();
        let mut insn = maker.clone();
        if let Some(dst) = definition_mut(&mut insn) {
            *dst = value;
        }
        self.insns.push((insn, span));
        self.available.insert(*reg, value);
        *reg = value;
    }
}
