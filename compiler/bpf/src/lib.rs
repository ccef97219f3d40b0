//! The BPF instruction set: instructions over any kind of register and target, maps, helpers, what XDP programs
//! return; bytes to instructions and back, and their text.

mod action;
mod decode;
mod disassemble;
mod encode;
mod insn;
mod map;
mod opcode;
mod section;

pub use action::XdpAction;
pub use decode::{DecodeError, decode};
pub use disassemble::{disassemble, listing};
pub use encode::{Code, EncodeError, Relocation, SLOT, Target, encode, slots};
pub use insn::{
    AluOp, AtomicOp, Condition, Foreign, Helper, Insn, Operand, Reg, SignedOp, Size, SubprogramIndex, Swap,
    Width,
};
pub use map::{CELLS, MapDef, MapIndex, MapKind, ValueLayout};
pub use section::Section;
