//! Which registers virtual code reads and writes. The only place that knows, so that passes cannot disagree.

use pktc_bpf::Operand;
use pktc_lower::vcode::{Base, Terminator, VBlockId, VInsn, VReg};

/// Matches an instruction once for both `&` and `&mut` (binding modes carry over) and visits what it reads.
macro_rules! visit_uses {
    ($insn:expr, $visit:expr) => {
        match $insn {
            VInsn::LoadImm64 { .. }
            | VInsn::LoadMap { .. }
            | VInsn::LoadMapValue { .. }
            | VInsn::FrameAddress { .. }
            | VInsn::UnknownZero { .. } => {}
            VInsn::Mov { src, .. } => visit_operand!(src, $visit),
            VInsn::Neg { src, .. } | VInsn::Swap { src, .. } => $visit(src),
            VInsn::Alu { left, right, .. } => {
                $visit(left);
                visit_operand!(right, $visit);
            }
            VInsn::Load { base, .. } => visit_base!(base, $visit),
            VInsn::Store { base, src, .. } => {
                visit_base!(base, $visit);
                visit_operand!(src, $visit);
            }
            VInsn::AtomicAdd { base, src, .. } => {
                $visit(base);
                $visit(src);
            }
            VInsn::Call { args, .. } => {
                for arg in args {
                    $visit(arg);
                }
            }
        }
    };
}

macro_rules! visit_operand {
    ($operand:expr, $visit:expr) => {
        if let Operand::Reg(reg) = $operand {
            $visit(reg);
        }
    };
}

macro_rules! visit_base {
    ($base:expr, $visit:expr) => {
        if let Base::Reg(reg) = $base {
            $visit(reg);
        }
    };
}

macro_rules! visit_end_uses {
    ($end:expr, $visit:expr) => {
        match $end {
            Terminator::Goto(_) => {}
            Terminator::Branch { left, right, .. } => {
                $visit(left);
                visit_operand!(right, $visit);
            }
            Terminator::Exit(value) => visit_operand!(value, $visit),
        }
    };
}

/// Calls `visit` with every register that `insn` reads, in order.
pub(crate) fn uses(insn: &VInsn, mut visit: impl FnMut(VReg)) {
    let mut visit = |reg: &VReg| visit(*reg);
    visit_uses!(insn, visit);
}

/// Calls `visit` with every place in `insn` that names a register to read, in order.
pub(crate) fn uses_mut(insn: &mut VInsn, mut visit: impl FnMut(&mut VReg)) {
    visit_uses!(insn, visit);
}

/// Calls `visit` with every register that `end` reads, in order.
pub(crate) fn end_uses(end: &Terminator, mut visit: impl FnMut(VReg)) {
    let mut visit = |reg: &VReg| visit(*reg);
    visit_end_uses!(end, visit);
}

/// Calls `visit` with every place in `end` that names a register to read, in order.
pub(crate) fn end_uses_mut(end: &mut Terminator, mut visit: impl FnMut(&mut VReg)) {
    visit_end_uses!(end, visit);
}

/// Matches once for both `&` and `&mut`: what an instruction writes.
macro_rules! written {
    ($insn:expr) => {
        match $insn {
            VInsn::Mov { dst, .. }
            | VInsn::Alu { dst, .. }
            | VInsn::Neg { dst, .. }
            | VInsn::Swap { dst, .. }
            | VInsn::LoadImm64 { dst, .. }
            | VInsn::LoadMap { dst, .. }
            | VInsn::LoadMapValue { dst, .. }
            | VInsn::FrameAddress { dst, .. }
            | VInsn::UnknownZero { dst }
            | VInsn::Load { dst, .. }
            | VInsn::Call { dst, .. } => Some(dst),
            VInsn::Store { .. } | VInsn::AtomicAdd { .. } => None,
        }
    };
}

/// The register that `insn` writes.
pub(crate) fn definition(insn: &VInsn) -> Option<VReg> {
    written!(insn).copied()
}

/// The place in `insn` that names the register to write.
pub(crate) fn definition_mut(insn: &mut VInsn) -> Option<&mut VReg> {
    written!(insn)
}

/// Whether `insn` does nothing but write its register, so that it may go when nobody reads that.
pub(crate) fn is_pure(insn: &VInsn) -> bool {
    match insn {
        VInsn::Mov { .. }
        | VInsn::Alu { .. }
        | VInsn::Neg { .. }
        | VInsn::Swap { .. }
        | VInsn::LoadImm64 { .. }
        | VInsn::LoadMap { .. }
        | VInsn::LoadMapValue { .. }
        | VInsn::FrameAddress { .. }
        | VInsn::UnknownZero { .. }
        | VInsn::Load { .. } => true,
        VInsn::Store { .. } | VInsn::AtomicAdd { .. } | VInsn::Call { .. } => false,
    }
}

/// The places in `end` that name blocks; of a branch the fall-through side first.
pub(crate) fn targets_mut(end: &mut Terminator) -> impl Iterator<Item = &mut VBlockId> {
    match end {
        Terminator::Goto(target) => [Some(target), None],
        Terminator::Branch { taken, fallthrough, .. } => [Some(fallthrough), Some(taken)],
        Terminator::Exit(_) => [None, None],
    }
    .into_iter()
    .flatten()
}

/// The blocks that `end` may go on to; of a branch the fall-through side first.
pub(crate) fn targets(end: &Terminator) -> impl DoubleEndedIterator<Item = VBlockId> + use<> {
    match *end {
        Terminator::Goto(target) => [Some(target), None],
        Terminator::Branch { taken, fallthrough, .. } => [Some(fallthrough), Some(taken)],
        Terminator::Exit(_) => [None, None],
    }
    .into_iter()
    .flatten()
}
