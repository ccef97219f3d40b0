//! Which registers machine instructions read and write. Of foreign instructions, which no pass makes, it says
//! "all", so that the lint refuses them.

use pktc_bpf::{AluOp, Helper, Insn, Operand, Reg};

use crate::module::MachineInsn;

/// A set of machine registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegSet(u16);

impl RegSet {
    /// What a call loses or overwrites: r0 to r5.
    pub(crate) const CALL: RegSet = RegSet(0b11_1111);
    /// All of r0 to r10.
    pub(crate) const ALL: RegSet = RegSet(0x7ff);

    pub(crate) fn with(self, reg: Reg) -> RegSet {
        RegSet(self.0 | 1 << reg.0)
    }

    pub(crate) fn without(self, other: RegSet) -> RegSet {
        RegSet(self.0 & !other.0)
    }

    pub(crate) fn union(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }

    pub(crate) fn intersection(self, other: RegSet) -> RegSet {
        RegSet(self.0 & other.0)
    }

    pub(crate) fn has(self, reg: Reg) -> bool {
        self.0 & 1 << reg.0 != 0
    }

    /// The lowest register of the set.
    pub(crate) fn first(self) -> Option<Reg> {
        (self.0 != 0).then(|| Reg(self.0.trailing_zeros() as u8))
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Reg> {
        (0..=Reg::FP.0).map(Reg).filter(move |&reg| self.has(reg))
    }
}

impl FromIterator<Reg> for RegSet {
    fn from_iter<I: IntoIterator<Item = Reg>>(regs: I) -> RegSet {
        regs.into_iter().fold(RegSet::default(), RegSet::with)
    }
}

/// The registers that `insn` reads.
pub(crate) fn reads(insn: &MachineInsn) -> RegSet {
    let set = |regs: &[Reg]| regs.iter().copied().collect::<RegSet>();
    let and = |set: RegSet, operand| match operand {
        Operand::Reg(reg) => set.with(reg),
        Operand::Imm(_) => set,
    };
    match *insn {
        Insn::Alu { op: AluOp::Mov, src, .. } => and(RegSet::default(), src),
        Insn::Alu { dst, src, .. } => and(set(&[dst]), src),
        Insn::Neg { dst, .. } | Insn::Swap { dst, .. } => set(&[dst]),
        Insn::LoadImm64 { .. } | Insn::LoadMap { .. } | Insn::LoadMapValue { .. } => RegSet::default(),
        Insn::Load { base, .. } => set(&[base]),
        Insn::Store { base, src, .. } => and(set(&[base]), src),
        Insn::AtomicAdd { base, src, .. } => set(&[base, src]),
        Insn::Goto { .. } => RegSet::default(),
        Insn::Branch { left, right, .. } => and(set(&[left]), right),
        Insn::Call { helper } => (1..=argument_count(helper)).map(Reg).collect(),
        Insn::CallSubprogram { arguments, .. } => (1..=arguments).map(Reg).collect(),
        Insn::CallLocal { .. } => RegSet::default(),
        Insn::Exit => set(&[Reg::R0]),
        Insn::Foreign(_) => RegSet::ALL,
    }
}

/// The registers whose content `insn` changes or loses.
pub(crate) fn writes(insn: &MachineInsn) -> RegSet {
    match *insn {
        Insn::Alu { dst, .. }
        | Insn::Neg { dst, .. }
        | Insn::Swap { dst, .. }
        | Insn::LoadImm64 { dst, .. }
        | Insn::LoadMap { dst, .. }
        | Insn::LoadMapValue { dst, .. }
        | Insn::Load { dst, .. } => RegSet::default().with(dst),
        Insn::Call { .. } | Insn::CallLocal { .. } | Insn::CallSubprogram { .. } => RegSet::CALL,
        Insn::Foreign(_) => RegSet::ALL,
        Insn::Store { .. }
        | Insn::AtomicAdd { .. }
        | Insn::Goto { .. }
        | Insn::Branch { .. }
        | Insn::Exit => RegSet::default(),
    }
}

/// Lets `insn` use `to` wherever it names `from`. Not for what takes certain registers: calls, `exit`.
pub(crate) fn rename(insn: &mut MachineInsn, from: Reg, to: Reg) {
    let rename = |reg: &mut Reg| {
        if *reg == from {
            *reg = to;
        }
    };
    let rename_operand = |operand: &mut Operand<Reg>| {
        if let Operand::Reg(reg) = operand {
            rename(reg);
        }
    };
    match insn {
        Insn::Alu { dst, src, .. } => {
            rename(dst);
            rename_operand(src);
        }
        Insn::Neg { dst, .. }
        | Insn::Swap { dst, .. }
        | Insn::LoadImm64 { dst, .. }
        | Insn::LoadMap { dst, .. }
        | Insn::LoadMapValue { dst, .. } => rename(dst),
        Insn::Load { dst, base, .. } => {
            rename(dst);
            rename(base);
        }
        Insn::Store { base, src, .. } => {
            rename(base);
            rename_operand(src);
        }
        Insn::AtomicAdd { base, src, .. } => {
            rename(base);
            rename(src);
        }
        Insn::Branch { left, right, .. } => {
            rename(left);
            rename_operand(right);
        }
        Insn::Goto { .. }
        | Insn::Call { .. }
        | Insn::CallLocal { .. }
        | Insn::CallSubprogram { .. }
        | Insn::Exit
        | Insn::Foreign(_) => {}
    }
}

/// Lets `insn` read other registers, where it reads without writing and any register does.
pub(crate) fn redirect_reads(insn: &mut MachineInsn, other: impl Fn(Reg) -> Reg) {
    let redirect = |reg: &mut Reg, own: Option<Reg>| {
        let new = other(*reg);
        // What is subtracted from itself stands in two registers on purpose.
        if Some(new) != own {
            *reg = new;
        }
    };
    match insn {
        Insn::Alu { dst, src: Operand::Reg(src), .. } => redirect(src, Some(*dst)),
        Insn::Load { base, .. } => redirect(base, None),
        Insn::Store { base, src, .. } => {
            redirect(base, None);
            if let Operand::Reg(src) = src {
                redirect(src, None);
            }
        }
        Insn::AtomicAdd { base, src, .. } => {
            redirect(base, None);
            redirect(src, None);
        }
        _ => {}
    }
}

/// How many arguments a helper takes (`include/uapi/linux/bpf.h`).
fn argument_count(helper: Helper) -> u8 {
    match helper {
        Helper::KtimeGetNs | Helper::GetPrandomU32 | Helper::GetSmpProcessorId => 0,
        Helper::XdpGetBuffLen => 1,
        Helper::MapLookupElem | Helper::MapDeleteElem => 2,
        Helper::MapUpdateElem | Helper::XdpLoadBytes | Helper::XdpStoreBytes => 4,
    }
}
