//! Machine code: what this crate puts out and `object` writes.

use pktc_bpf::{Insn, MapDef, Reg, Section};
use pktc_diagnostics::Span;

/// Machine instructions.
pub type MachineInsn = Insn<Reg, i32>;

/// All programs of an object, with the maps that they share.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The programs; each is a function of its own in the section `xdp` (or `xdp.frags`).
    pub programs: Vec<Program>,
    /// What they call: the functions that [`pktc_bpf::SubprogramIndex`] points into, in the section `.text`.
    pub subprograms: Vec<Program>,
    /// The maps that [`pktc_bpf::MapIndex`] points into.
    pub maps: Vec<MapDef>,
}

/// A program or a subprogram.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub section: Section,
    /// How many parameters it has, in r1 to r5. A program has one, the context.
    pub params: u8,
    /// Its instructions; jump targets count 8-byte slots from the next instruction.
    pub insns: Vec<MachineInsn>,
    /// Where instructions come from: ascending indices into `insns`, the first is 0; each holds until the next.
    pub lines: Vec<(usize, Span)>,
    /// Bytes of stack used.
    pub stack: u32,
}
