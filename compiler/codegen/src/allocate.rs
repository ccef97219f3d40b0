//! Gives values registers and stack slots, with regalloc2.
//!
//! What the machine wants is said as constraints: arithmetic overwrites its left operand, a call takes r1 to r5,
//! leaves its result in r0 and loses r1 to r5, parameters arrive in r1 to r5, a program ends with its verdict in r0.
//! r10 is the frame pointer and never allocated. No register has to be saved for a caller, so r6 to r9 differ
//! from the others only by surviving calls; they are given away last, as is r0, which verdicts want.

use cranelift_entity::EntityRef;
use pktc_bpf::Operand as Source;
use pktc_lower::vcode::{Terminator, VBlockId, VInsn, VReg};
use regalloc2::{
    Block, Function, Inst, InstRange, MachineEnv, Operand, Output, PReg, PRegSet, RegClass, RegallocOptions,
};

use crate::graph::entry;
use crate::operands::{targets, uses};
use crate::ssa::Ssa;

/// The registers that a call takes its arguments in, and loses.
const ARGUMENTS: std::ops::RangeInclusive<usize> = 1..=5;

/// A machine register as regalloc2 names it.
fn machine(number: usize) -> PReg {
    PReg::new(number, RegClass::Int)
}

/// A value as regalloc2 names it.
fn value(reg: VReg) -> regalloc2::VReg {
    regalloc2::VReg::new(reg.index(), RegClass::Int)
}

/// The places of all values.
pub(crate) struct Allocation {
    /// What the allocator worked on. A block's instructions are those of the virtual block and its end; before
    /// those of the entry block stands one that makes the parameters.
    pub(crate) input: Input,
    /// What it found.
    pub(crate) output: Output,
}

impl Allocation {
    /// Bytes of stack that a function with `frame` bytes of its own needs, and where its spill slots start.
    pub(crate) fn stack(&self, frame: u32) -> (u32, u32) {
        let spills_start = frame.next_multiple_of(8);
        (spills_start + 8 * self.output.num_spillslots as u32, spills_start)
    }
}

/// Allocates. An error is a mistake of the compiler, in words.
pub(crate) fn allocate(ssa: &Ssa) -> Result<Allocation, String> {
    let input = Input::new(ssa);
    let environment = environment();
    let options = RegallocOptions { validate_ssa: cfg!(debug_assertions), ..RegallocOptions::default() };
    let output = regalloc2::run(&input, &environment, &options).map_err(|error| error.to_string())?;
    if cfg!(debug_assertions) {
        let mut checker = regalloc2::checker::Checker::new(&input, &environment);
        checker.prepare(&output);
        checker.run().map_err(|errors| format!("{errors:?}"))?;
    }
    Ok(Allocation { input, output })
}

fn environment() -> MachineEnv {
    let first: PRegSet = ARGUMENTS.map(machine).collect();
    let last: PRegSet = [0, 6, 7, 8, 9].map(machine).into_iter().collect();
    MachineEnv {
        preferred_regs_by_class: [first, PRegSet::empty(), PRegSet::empty()],
        non_preferred_regs_by_class: [last, PRegSet::empty(), PRegSet::empty()],
        scratch_by_class: [None; 3],
        fixed_stack_slots: Vec::new(),
    }
}

/// What an instruction is to the allocator besides its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Call,
    Branch,
    Exit,
}

/// A function in the terms of regalloc2, all blocks' instructions in one row.
pub(crate) struct Input {
    kinds: Vec<Kind>,
    operands: Vec<Operand>,
    /// Where each instruction's operands start; one more at the end.
    starts: Vec<usize>,
    blocks: Vec<InputBlock>,
    values: usize,
}

struct InputBlock {
    insns: InstRange,
    succs: Vec<Block>,
    preds: Vec<Block>,
    params: Vec<regalloc2::VReg>,
    args: Vec<regalloc2::VReg>,
}

impl Input {
    fn new(ssa: &Ssa) -> Input {
        let mut input = Input {
            kinds: Vec::new(),
            operands: Vec::new(),
            starts: vec![0],
            blocks: Vec::with_capacity(ssa.function.blocks.len()),
            values: ssa.function.vregs as usize,
        };
        for (id, block) in &ssa.function.blocks {
            let first = Inst::new(input.kinds.len());
            if id == entry() {
                let params = ssa.function.params.iter().zip(ARGUMENTS);
                let made = params.map(|(&param, reg)| Operand::reg_fixed_def(value(param), machine(reg)));
                input.operands.extend(made);
                input.finish(Kind::Plain);
            }
            for (insn, _) in &block.insns {
                input.push(insn);
            }
            input.push_end(&block.end);
            let to_block = |id: VBlockId| Block::new(id.index());
            input.blocks.push(InputBlock {
                insns: InstRange::new(first, Inst::new(input.kinds.len())),
                succs: targets(&block.end).map(to_block).collect(),
                preds: ssa.preds[id].iter().copied().map(to_block).collect(),
                params: ssa.params[id].iter().copied().map(value).collect(),
                args: ssa.args[id].iter().copied().map(value).collect(),
            });
        }
        input
    }

    fn finish(&mut self, kind: Kind) {
        self.kinds.push(kind);
        self.starts.push(self.operands.len());
    }

    /// Adds the operands of an instruction in the order in which [`crate::emit`] takes them: what it reads as
    /// [`uses`] gives it, then what it writes.
    fn push(&mut self, insn: &VInsn) {
        match insn {
            VInsn::Call { dst, args, .. } => {
                let fixed = args.iter().zip(ARGUMENTS);
                self.operands.extend(fixed.map(|(&arg, to)| Operand::reg_fixed_use(value(arg), machine(to))));
                self.operands.push(Operand::reg_fixed_def(value(*dst), machine(0)));
                return self.finish(Kind::Call);
            }
            // `r - r` is a zero that the verifier must not know. Kernels were tried with two registers, so the
            // right one stays alive beside the result.
            VInsn::Alu { dst, left, right: Source::Reg(right), .. } if left == right => {
                self.operands.push(Operand::reg_use(value(*left)));
                self.operands.push(Operand::reg_use_at_end(value(*right)));
                self.operands.push(Operand::reg_reuse_def(value(*dst), 0));
            }
            VInsn::Alu { dst, .. } | VInsn::Neg { dst, .. } | VInsn::Swap { dst, .. } => {
                uses(insn, |reg| self.operands.push(Operand::reg_use(value(reg))));
                self.operands.push(Operand::reg_reuse_def(value(*dst), 0));
            }
            VInsn::Mov { dst, .. }
            | VInsn::LoadImm64 { dst, .. }
            | VInsn::LoadMap { dst, .. }
            | VInsn::LoadMapValue { dst, .. }
            | VInsn::FrameAddress { dst, .. }
            | VInsn::UnknownZero { dst }
            | VInsn::Load { dst, .. } => {
                uses(insn, |reg| self.operands.push(Operand::reg_use(value(reg))));
                self.operands.push(Operand::reg_def(value(*dst)));
            }
            VInsn::Store { .. } | VInsn::AtomicAdd { .. } => {
                uses(insn, |reg| self.operands.push(Operand::reg_use(value(reg))));
            }
        }
        self.finish(Kind::Plain);
    }

    fn push_end(&mut self, end: &Terminator) {
        match end {
            Terminator::Goto(_) => self.finish(Kind::Branch),
            Terminator::Branch { left, right, .. } => {
                self.operands.push(Operand::reg_use(value(*left)));
                if let Source::Reg(right) = right {
                    self.operands.push(Operand::reg_use(value(*right)));
                }
                self.finish(Kind::Branch);
            }
            Terminator::Exit(verdict) => {
                if let Source::Reg(verdict) = verdict {
                    self.operands.push(Operand::reg_fixed_use(value(*verdict), machine(0)));
                }
                self.finish(Kind::Exit);
            }
        }
    }
}

impl Function for Input {
    fn num_insts(&self) -> usize {
        self.kinds.len()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn entry_block(&self) -> Block {
        Block::new(0)
    }

    fn block_insns(&self, block: Block) -> InstRange {
        self.blocks[block.index()].insns
    }

    fn block_succs(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].succs
    }

    fn block_preds(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].preds
    }

    fn block_params(&self, block: Block) -> &[regalloc2::VReg] {
        &self.blocks[block.index()].params
    }

    fn is_ret(&self, insn: Inst) -> bool {
        self.kinds[insn.index()] == Kind::Exit
    }

    fn is_branch(&self, insn: Inst) -> bool {
        self.kinds[insn.index()] == Kind::Branch
    }

    fn branch_blockparams(&self, block: Block, _: Inst, _: usize) -> &[regalloc2::VReg] {
        &self.blocks[block.index()].args
    }

    fn inst_operands(&self, insn: Inst) -> &[Operand] {
        &self.operands[self.starts[insn.index()]..self.starts[insn.index() + 1]]
    }

    fn inst_clobbers(&self, insn: Inst) -> PRegSet {
        match self.kinds[insn.index()] {
            Kind::Call => ARGUMENTS.map(machine).collect(),
            Kind::Plain | Kind::Branch | Kind::Exit => PRegSet::empty(),
        }
    }

    fn num_vregs(&self) -> usize {
        self.values
    }

    fn spillslot_size(&self, _: RegClass) -> usize {
        1
    }
}
