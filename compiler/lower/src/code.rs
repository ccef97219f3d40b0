//! Code under construction: blocks, the one that instructions are added to, and the source that they come from.

use cranelift_entity::{EntityRef, PrimaryMap};
use pktc_bpf::{AluOp, Condition, Operand, Size, Width};
use pktc_diagnostics::Span;

use crate::vcode::{Base, Callee, Terminator, VBlock, VBlockId, VInsn, VReg};

/// See the module's text.
pub(crate) struct Code {
    blocks: PrimaryMap<VBlockId, VBlock>,
    current: VBlockId,
    /// The source of what is added.
    pub(crate) span: Span,
    vregs: u32,
}

impl Code {
    /// No blocks yet; `vregs` registers that there are.
    pub(crate) fn new(span: Span, vregs: u32) -> Self {
        Code { blocks: PrimaryMap::new(), current: VBlockId::new(0), span, vregs }
    }

    /// The blocks, and how many registers there are.
    pub(crate) fn finish(self) -> (PrimaryMap<VBlockId, VBlock>, u32) {
        (self.blocks, self.vregs)
    }

    pub(crate) fn new_block(&mut self) -> VBlockId {
        let end = Terminator::Exit(Operand::Imm(0));
        self.blocks.push(VBlock { insns: Vec::new(), end, end_span: self.span, cold: false })
    }

    /// A block that is laid out behind the others.
    pub(crate) fn new_cold_block(&mut self) -> VBlockId {
        let block = self.new_block();
        self.blocks[block].cold = true;
        block
    }

    /// The block that instructions are added to.
    pub(crate) fn current(&self) -> VBlockId {
        self.current
    }

    pub(crate) fn switch_to(&mut self, block: VBlockId) {
        self.current = block;
    }

    pub(crate) fn push(&mut self, insn: VInsn) {
        self.blocks[self.current].insns.push((insn, self.span));
    }

    pub(crate) fn end(&mut self, end: Terminator) {
        let block = &mut self.blocks[self.current];
        (block.end, block.end_span) = (end, self.span);
    }

    pub(crate) fn fresh(&mut self) -> VReg {
        self.vregs += 1;
        VReg::from_u32(self.vregs - 1)
    }

    /// Ends the block: compares 64-bit numbers.
    pub(crate) fn branch(
        &mut self,
        condition: Condition,
        left: VReg,
        right: Operand<VReg>,
        taken: VBlockId,
        fallthrough: VBlockId,
    ) {
        self.end(Terminator::Branch { condition, width: Width::W64, left, right, taken, fallthrough });
    }

    /// Goes on in a new block, in which `register` is at most `limit`.
    pub(crate) fn must_be_at_most(&mut self, register: VReg, limit: i32, beyond: VBlockId) {
        let within = self.new_block();
        self.branch(Condition::Gt, register, Operand::Imm(limit), beyond, within);
        self.switch_to(within);
    }

    /// `dst = left op right`, of 64 bits
    pub(crate) fn alu(&mut self, op: AluOp, dst: VReg, left: VReg, right: Operand<VReg>) {
        self.push(VInsn::Alu { op, width: Width::W64, dst, left, right });
    }

    /// `dst = src`
    pub(crate) fn mov(&mut self, dst: VReg, src: Operand<VReg>) {
        self.push(VInsn::Mov { dst, src });
    }

    /// `dst = src & mask`
    pub(crate) fn mask(&mut self, dst: VReg, src: VReg, mask: u64) {
        // A mask of at most 32 bits clears the upper half, as 32-bit operations do.
        let (width, right) = match u32::try_from(mask) {
            Ok(narrow) => (Width::W32, Operand::Imm(narrow.cast_signed())),
            Err(_) => (Width::W64, self.constant(mask)),
        };
        self.push(VInsn::Alu { op: AluOp::And, width, dst, left: src, right });
    }

    /// `constant` for a 64-bit operation.
    pub(crate) fn constant(&mut self, constant: u64) -> Operand<VReg> {
        match i32::try_from(constant) {
            Ok(small) => Operand::Imm(small),
            Err(_) => {
                let dst = self.fresh();
                self.push(VInsn::LoadImm64 { dst, imm: constant });
                Operand::Reg(dst)
            }
        }
    }

    /// A new register with [`VInsn::UnknownZero`].
    pub(crate) fn unknown_zero(&mut self) -> VReg {
        let dst = self.fresh();
        self.push(VInsn::UnknownZero { dst });
        dst
    }

    /// A new register with what `callee` gives.
    pub(crate) fn call(&mut self, callee: Callee, args: Vec<VReg>) -> VReg {
        let dst = self.fresh();
        self.push(VInsn::Call { callee, dst, args });
        dst
    }

    /// A new register with a word of the frame.
    pub(crate) fn load_word(&mut self, offset: i16) -> VReg {
        let dst = self.fresh();
        self.push(VInsn::Load { size: Size::U64, dst, base: Base::Frame, offset });
        dst
    }

    pub(crate) fn store_word(&mut self, offset: i16, value: VReg) {
        let src = Operand::Reg(value);
        self.push(VInsn::Store { size: Size::U64, base: Base::Frame, offset, src });
    }
}
