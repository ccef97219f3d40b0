//! Machine instructions, still in blocks: what the allocator decided, written down.

use cranelift_entity::{EntityRef, PrimaryMap};
use pktc_bpf::{AluOp, Condition, Insn, Operand, Reg, Size, Width};
use pktc_diagnostics::Span;
use pktc_lower::vcode::{Base, Callee, Terminator, VBlock, VBlockId, VFunction, VInsn};
use regalloc2::{Block, Edit, InstOrEdit};

use crate::allocate::Allocation;
use crate::effects::RegSet;
use crate::module::MachineInsn;

/// A program in blocks.
pub(crate) struct MachineFunction {
    /// The first is the entry.
    pub(crate) blocks: PrimaryMap<VBlockId, MachineBlock>,
    /// Bytes of stack that the code itself uses, rounded up to words; spill slots are the words below.
    pub(crate) frame: u32,
}

/// Straight code with one end.
pub(crate) struct MachineBlock {
    pub(crate) insns: Vec<(MachineInsn, Span)>,
    pub(crate) end: End,
    pub(crate) end_span: Span,
    pub(crate) cold: bool,
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Goto(VBlockId),
    Branch { test: Test, taken: VBlockId, fallthrough: VBlockId },
    Exit,
}

/// What a branch asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Test {
    pub(crate) condition: Condition,
    pub(crate) width: Width,
    pub(crate) left: Reg,
    pub(crate) right: Operand<Reg>,
}

/// Writes down `function` with the registers and slots of `allocation`. An error is a mistake of the compiler.
pub(crate) fn emit(function: &VFunction, allocation: &Allocation) -> Result<MachineFunction, String> {
    let (_, frame) = allocation.stack(function.frame);
    let mut blocks = PrimaryMap::with_capacity(function.blocks.len());
    for (id, block) in &function.blocks {
        let mut writer = Writer { frame, insns: Vec::with_capacity(block.insns.len()) };
        let end = writer.write_block(id, block, allocation)?;
        blocks.push(MachineBlock { insns: writer.insns, end, end_span: block.end_span, cold: block.cold });
    }
    Ok(MachineFunction { blocks, frame })
}

/// The writing of one block.
struct Writer {
    frame: u32,
    insns: Vec<(MachineInsn, Span)>,
}

impl Writer {
    fn write_block(&mut self, id: VBlockId, block: &VBlock, allocation: &Allocation) -> Result<End, String> {
        let Allocation { input, output } = allocation;
        let mut rest = block.insns.iter();
        let mut end = None;
        let first = regalloc2::Function::block_insns(input, Block::new(id.index())).first();
        for item in output.block_insts_and_edits(input, Block::new(id.index())) {
            let next_span = rest.as_slice().first().map_or(block.end_span, |&(_, span)| span);
            match item {
                InstOrEdit::Edit(&Edit::Move { from, to }) => self.write_move(from, to, next_span)?,
                InstOrEdit::Inst(inst) if id == crate::graph::entry() && inst == first => {}
                InstOrEdit::Inst(inst) => {
                    let places = Places(output.inst_allocs(inst));
                    match rest.next() {
                        Some((insn, span)) => self.write(insn, &places, *span)?,
                        None => end = Some(self.write_end(block, &places)?),
                    }
                }
            }
        }
        end.ok_or_else(|| format!("block {id} has no end"))
    }

    fn write_move(
        &mut self,
        from: regalloc2::Allocation,
        to: regalloc2::Allocation,
        span: Span,
    ) -> Result<(), String> {
        let insn = match (from.as_stack(), to.as_stack()) {
            _ if from == to => return Ok(()),
            (None, None) => copy(register(to)?, register(from)?),
            (None, Some(slot)) => Insn::Store {
                size: Size::U64,
                base: Reg::FP,
                offset: self.slot(slot)?,
                src: Operand::Reg(register(from)?),
            },
            (Some(slot), None) => {
                Insn::Load { size: Size::U64, dst: register(to)?, base: Reg::FP, offset: self.slot(slot)? }
            }
            (Some(_), Some(_)) => return Err("a move from stack to stack".into()),
        };
        self.insns.push((insn, span));
        Ok(())
    }

    /// The place of a spill slot below the frame pointer.
    fn slot(&self, slot: regalloc2::SpillSlot) -> Result<i16, String> {
        let below = self.frame as usize + 8 * (slot.index() + 1);
        i16::try_from(below).map(|below| -below).map_err(|_| "too many spill slots".into())
    }

    fn write(&mut self, insn: &VInsn, places: &Places<'_>, span: Span) -> Result<(), String> {
        let machine = match *insn {
            VInsn::Mov { src: Operand::Imm(imm), .. } => constant(places.dst()?, imm.into()),
            VInsn::Mov { src: Operand::Reg(_), .. } if places.reg(0)? == places.dst()? => return Ok(()),
            VInsn::Mov { src: Operand::Reg(_), .. } => copy(places.dst()?, places.reg(0)?),
            VInsn::Alu { op, width, right, .. } => {
                Insn::Alu { op, width, dst: places.dst()?, src: places.operand(right, 1)? }
            }
            VInsn::Neg { .. } => Insn::Neg { width: Width::W64, dst: places.dst()? },
            VInsn::Swap { swap, .. } => Insn::Swap { swap, dst: places.dst()? },
            VInsn::LoadImm64 { imm, .. } => constant(places.dst()?, imm.cast_signed()),
            VInsn::LoadMap { map, .. } => Insn::LoadMap { dst: places.dst()?, map },
            VInsn::LoadMapValue { map, offset, .. } => Insn::LoadMapValue { dst: places.dst()?, map, offset },
            VInsn::UnknownZero { .. } => {
                let dst = places.dst()?;
                self.insns.push((copy(dst, Reg::FP), span));
                Insn::Alu { op: AluOp::Sub, width: Width::W64, dst, src: Operand::Reg(Reg::FP) }
            }
            VInsn::FrameAddress { offset, .. } => {
                self.insns.push((copy(places.dst()?, Reg::FP), span));
                let (dst, src) = (places.dst()?, Operand::Imm(offset.into()));
                Insn::Alu { op: AluOp::Add, width: Width::W64, dst, src }
            }
            VInsn::Load { size, base, offset, .. } => {
                Insn::Load { size, dst: places.dst()?, base: places.base(base)?, offset }
            }
            VInsn::Store { size, base, offset, src } => {
                let index = usize::from(matches!(base, Base::Reg(_)));
                Insn::Store { size, base: places.base(base)?, offset, src: places.operand(src, index)? }
            }
            VInsn::AtomicAdd { size, offset, .. } => {
                Insn::AtomicAdd { size, base: places.reg(0)?, offset, src: places.reg(1)? }
            }
            VInsn::Call { callee: Callee::Helper(helper), .. } => Insn::Call { helper },
            VInsn::Call { callee: Callee::Subprogram(subprogram), ref args, .. } => {
                Insn::CallSubprogram { subprogram, arguments: args.len() as u8 }
            }
        };
        self.insns.push((machine, span));
        Ok(())
    }

    fn write_end(&mut self, block: &VBlock, places: &Places<'_>) -> Result<End, String> {
        Ok(match block.end {
            Terminator::Goto(target) => End::Goto(target),
            Terminator::Branch { condition, width, right, taken, fallthrough, .. } => {
                let test = Test { condition, width, left: places.reg(0)?, right: places.operand(right, 1)? };
                End::Branch { test, taken, fallthrough }
            }
            Terminator::Exit(verdict) => {
                if let Operand::Imm(imm) = verdict {
                    self.insns.push((constant(Reg::R0, imm.into()), block.end_span));
                }
                End::Exit
            }
        })
    }
}

/// Where the operands of an instruction are: those that it reads in order, then the one that it writes.
struct Places<'a>(&'a [regalloc2::Allocation]);

impl Places<'_> {
    fn reg(&self, index: usize) -> Result<Reg, String> {
        self.0.get(index).ok_or_else(|| format!("no operand {index}")).and_then(|&place| register(place))
    }

    fn dst(&self) -> Result<Reg, String> {
        self.reg(self.0.len().wrapping_sub(1))
    }

    fn base(&self, base: Base) -> Result<Reg, String> {
        match base {
            Base::Reg(_) => self.reg(0),
            Base::Frame => Ok(Reg::FP),
        }
    }

    fn operand<R>(&self, operand: Operand<R>, index: usize) -> Result<Operand<Reg>, String> {
        match operand {
            Operand::Reg(_) => self.reg(index).map(Operand::Reg),
            Operand::Imm(imm) => Ok(Operand::Imm(imm)),
        }
    }
}

fn register(place: regalloc2::Allocation) -> Result<Reg, String> {
    let reg = place.as_reg().ok_or_else(|| format!("{place} is no register"))?;
    Ok(Reg(reg.hw_enc() as u8))
}

impl End {
    /// The registers that it reads.
    pub(crate) fn reads(&self) -> RegSet {
        match self {
            End::Goto(_) => RegSet::default(),
            End::Exit => RegSet::default().with(Reg::R0),
            End::Branch { test, .. } => match test.right {
                Operand::Reg(right) => RegSet::default().with(test.left).with(right),
                Operand::Imm(_) => RegSet::default().with(test.left),
            },
        }
    }

    /// The blocks that it may go on to.
    pub(crate) fn targets(&self) -> impl Iterator<Item = VBlockId> + use<> {
        match *self {
            End::Goto(target) => [Some(target), None],
            End::Branch { taken, fallthrough, .. } => [Some(fallthrough), Some(taken)],
            End::Exit => [None, None],
        }
        .into_iter()
        .flatten()
    }

    /// Lets it go on to other blocks.
    pub(crate) fn redirect(&mut self, mut new: impl FnMut(VBlockId) -> VBlockId) {
        match self {
            End::Goto(target) => *target = new(*target),
            End::Branch { taken, fallthrough, .. } => {
                *fallthrough = new(*fallthrough);
                *taken = new(*taken);
            }
            End::Exit => {}
        }
    }
}

/// `dst = src`
pub(crate) fn copy(dst: Reg, src: Reg) -> MachineInsn {
    Insn::Alu { op: AluOp::Mov, width: Width::W64, dst, src: Operand::Reg(src) }
}

/// The shortest way to `dst = value`: an immediate is sign-extended by a wide move and zero-extended by a narrow
/// one.
fn constant(dst: Reg, value: i64) -> MachineInsn {
    let short = |width, imm| Insn::Alu { op: AluOp::Mov, width, dst, src: Operand::Imm(imm) };
    match (i32::try_from(value), u32::try_from(value)) {
        (Ok(imm), _) => short(Width::W64, imm),
        (_, Ok(imm)) => short(Width::W32, imm.cast_signed()),
        (Err(_), Err(_)) => Insn::LoadImm64 { dst, imm: value.cast_unsigned() },
    }
}
