//! BPF over virtual registers: what this crate puts out and `codegen` turns into machine code.
//!
//! Registers may be assigned many times (codegen makes its own SSA form); on every path a register is written
//! before it is read. Arithmetic has three addresses. A block ends with exactly one [`Terminator`].
#![expect(missing_docs, reason = "each variant's example names its fields")]

use cranelift_entity::{PrimaryMap, entity_impl};
use pktc_bpf::{
    AluOp, Condition, Helper, MapDef, MapIndex, Operand, Section, Size, SubprogramIndex, Swap, Width,
};
use pktc_diagnostics::Span;

/// A virtual register: 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VReg(u32);
entity_impl!(VReg, "v");

/// A block of a [`VFunction`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VBlockId(u32);
entity_impl!(VBlockId, "b");

/// All programs of an object, with the maps that they share.
#[derive(Clone, Debug, Default)]
pub struct VModule {
    /// The programs.
    pub programs: Vec<VFunction>,
    /// What programs call: the functions that [`SubprogramIndex`] points into.
    pub subprograms: Vec<VFunction>,
    /// The maps that [`MapIndex`] points into.
    pub maps: Vec<MapDef>,
}

/// A program or a subprogram.
#[derive(Clone, Debug)]
pub struct VFunction {
    /// Its name.
    pub name: String,
    /// Where its name is declared; errors about the whole program point there.
    pub span: Span,
    /// Where it lies.
    pub section: Section,
    /// What it is called with, in r1 to r5. A program has one, the context.
    pub params: Vec<VReg>,
    /// How many registers there are.
    pub vregs: u32,
    /// Bytes below the frame pointer that the code itself uses ([`Base::Frame`]); spills lie below them.
    pub frame: u32,
    /// The blocks; the first is the entry. Their order is the wanted layout, cold ones go behind all others.
    pub blocks: PrimaryMap<VBlockId, VBlock>,
}

impl VFunction {
    /// Whether it calls a function of the module.
    #[must_use]
    pub fn calls_subprograms(&self) -> bool {
        let mut insns = self.blocks.values().flat_map(|block| &block.insns);
        insns.any(|(insn, _)| matches!(insn, VInsn::Call { callee: Callee::Subprogram(_), .. }))
    }
}

/// Straight code with one end.
#[derive(Clone, Debug)]
pub struct VBlock {
    /// What it does, each with its source.
    pub insns: Vec<(VInsn, Span)>,
    /// How it ends.
    pub end: Terminator,
    /// The source of the end.
    pub end_span: Span,
    /// Seldom reached: laid out behind the others.
    pub cold: bool,
}

/// What an address starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A pointer in a register.
    Reg(VReg),
    /// The frame pointer; offsets are negative, down to `-frame`.
    Frame,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VInsn {
    /// `dst = src`
    Mov { dst: VReg, src: Operand<VReg> },
    /// `dst = left op right`; `op` is not `Mov`
    Alu { op: AluOp, width: Width, dst: VReg, left: VReg, right: Operand<VReg> },
    /// `dst = -src`
    Neg { dst: VReg, src: VReg },
    /// `dst = be16 src`
    Swap { swap: Swap, dst: VReg, src: VReg },
    /// `dst = imm ll`
    LoadImm64 { dst: VReg, imm: u64 },
    /// `dst = map`
    LoadMap { dst: VReg, map: MapIndex },
    /// `dst = &map[0] + offset`
    LoadMapValue { dst: VReg, map: MapIndex, offset: u32 },
    /// `dst = fp + offset`
    FrameAddress { dst: VReg, offset: i16 },
    /// `dst = fp - fp`, a zero: of a pointer less itself no verifier knows anything.
    UnknownZero { dst: VReg },
    /// `dst = *(size *)(base + offset)`
    Load { size: Size, dst: VReg, base: Base, offset: i16 },
    /// `*(size *)(base + offset) = src`
    Store { size: Size, base: Base, offset: i16, src: Operand<VReg> },
    /// `lock *(size *)(base + offset) += src`
    AtomicAdd { size: Size, base: VReg, offset: i16, src: VReg },
    /// `dst = callee(args)`: at most 5, in r1 to r5
    Call { callee: Callee, dst: VReg, args: Vec<VReg> },
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the kernel.
    Helper(Helper),
    /// A function of the module.
    Subprogram(SubprogramIndex),
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminator {
    /// Goes on there.
    Goto(VBlockId),
    /// `if left condition right goto taken`, else on to `fallthrough` (which the kernel's verifier walks first).
    Branch {
        condition: Condition,
        width: Width,
        left: VReg,
        right: Operand<VReg>,
        taken: VBlockId,
        fallthrough: VBlockId,
    },
    /// Ends the program with that value.
    Exit(Operand<VReg>),
}
