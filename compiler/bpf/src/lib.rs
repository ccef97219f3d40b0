//! The BPF instruction set: instructions over any kind of register and target, maps, helpers.

mod insn;
mod map;

pub use insn::{AluOp, Condition, Helper, Insn, Operand, Reg, Size, Swap, Width};
pub use map::{MapDef, MapIndex, MapKind, ValueLayout};
