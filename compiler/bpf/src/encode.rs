//! Instructions to bytes, little-endian, with the places where maps and subprograms go.
//!
//! A reference to a map becomes a 64-bit constant as ELF wants it before relocation: `src` 0, the immediate 0
//! (or the offset inside the value, which loaders add to the symbol's place), and a [`Relocation`] for
//! `R_BPF_64_64` against the map's symbol. Loaders then fill in `src` and the file descriptor. A call of a
//! subprogram has the immediate -1 and a [`Relocation`] for `R_BPF_64_32` against the function's symbol.

use std::fmt;

use crate::opcode::{self as op, SOURCE_REG};
use crate::{
    AluOp, Condition, Foreign, Insn, MapIndex, Operand, Reg, SignedOp, Size, SubprogramIndex, Swap, Width,
};

/// Bytes of a slot; an instruction takes one or two.
pub const SLOT: usize = 8;

/// Encoded instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The instructions.
    pub bytes: Vec<u8>,
    /// Where maps and subprograms go, ascending.
    pub relocations: Vec<Relocation>,
}

/// An instruction that refers to something else of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where its first slot lies in [`Code::bytes`].
    pub offset: usize,
    /// What it refers to.
    pub target: Target,
}

/// What an instruction refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The 64-bit constant stands for the map.
    Map(MapIndex),
    /// The 64-bit constant stands for a place inside the map's value, whose offset the immediate holds already.
    MapValue(MapIndex),
    /// The subprogram is called.
    Subprogram(SubprogramIndex),
}

impl Code {
    /// Notes that the next instruction refers to `target`.
    fn refer(&mut self, target: Target) {
        self.relocations.push(Relocation { offset: self.bytes.len(), target });
    }
}

/// An instruction that has no encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// Its index among the instructions.
    pub index: usize,
    /// What does not fit.
    pub reason: &'static str,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {} cannot be encoded: {}", self.index, self.reason)
    }
}

impl std::error::Error for EncodeError {}

/// Encodes `insns`.
///
/// # Errors
/// If a jump is longer than its 16 bits, a register is above r10, or an operand's size is none that the
/// instruction has.
pub fn encode(insns: &[Insn<Reg, i32>]) -> Result<Code, EncodeError> {
    let mut code = Code::default();
    for (index, insn) in insns.iter().enumerate() {
        encode_one(insn, &mut code).map_err(|reason| EncodeError { index, reason })?;
    }
    Ok(code)
}

/// How many 8-byte slots `insn` takes: 1, or 2 for 64-bit constants.
#[must_use]
pub fn slots<R, T>(insn: &Insn<R, T>) -> usize {
    match insn {
        Insn::LoadImm64 { .. } | Insn::LoadMap { .. } | Insn::LoadMapValue { .. } => 2,
        Insn::Alu { .. }
        | Insn::Neg { .. }
        | Insn::Swap { .. }
        | Insn::Load { .. }
        | Insn::Store { .. }
        | Insn::AtomicAdd { .. }
        | Insn::Goto { .. }
        | Insn::Branch { .. }
        | Insn::Call { .. }
        | Insn::CallLocal { .. }
        | Insn::CallSubprogram { .. }
        | Insn::Exit
        | Insn::Foreign(_) => 1,
    }
}

/// The five parts of a slot.
#[derive(Clone, Copy, Default)]
struct Slot {
    code: u8,
    dst: u8,
    src: u8,
    offset: i16,
    imm: i32,
}

impl Slot {
    fn new(code: u8) -> Slot {
        Slot { code, ..Slot::default() }
    }

    fn dst(self, reg: Reg) -> Slot {
        Slot { dst: reg.0, ..self }
    }

    fn src(self, reg: Reg) -> Slot {
        Slot { src: reg.0, ..self }
    }

    fn offset(self, offset: i16) -> Slot {
        Slot { offset, ..self }
    }

    fn imm(self, imm: i32) -> Slot {
        Slot { imm, ..self }
    }

    fn operand(self, operand: Operand<Reg>) -> Slot {
        match operand {
            Operand::Reg(reg) => Slot { code: self.code | SOURCE_REG, ..self }.src(reg),
            Operand::Imm(imm) => self.imm(imm),
        }
    }
}

type Encoded = Result<Slot, &'static str>;

fn encode_one(insn: &Insn<Reg, i32>, code: &mut Code) -> Result<(), &'static str> {
    let slot = match *insn {
        Insn::LoadImm64 { dst, imm } => return wide(code, dst, imm as u32 as i32, (imm >> 32) as i32),
        Insn::LoadMap { dst, map } => {
            code.refer(Target::Map(map));
            return wide(code, dst, 0, 0);
        }
        Insn::LoadMapValue { dst, map, offset } => {
            code.refer(Target::MapValue(map));
            return wide(code, dst, offset.cast_signed(), 0);
        }
        Insn::Alu { op, width, dst, src } => alu(op, width, dst, src),
        Insn::Neg { width, dst } => Slot::new(alu_class(width) | op::NEG).dst(dst),
        Insn::Swap { swap, dst } => byte_order(swap, dst),
        Insn::Load { size, dst, base, offset } => memory(op::LDX | op::MODE_MEM, size, dst, base, offset),
        Insn::Store { size, base, offset, src } => store(size, base, offset, src),
        Insn::AtomicAdd { size, base, offset, src } => atomic(0, size, base, offset, src)?,
        Insn::Goto { target } => Slot::new(op::JMP | op::JA).offset(short(target)?),
        Insn::Branch { condition, width, left, right, target } => {
            branch(condition, width, left, right, target)?
        }
        Insn::Call { helper } => Slot::new(op::JMP | op::CALL).imm(helper as i32),
        Insn::CallLocal { target } => call_local(target),
        Insn::CallSubprogram { subprogram, .. } => {
            code.refer(Target::Subprogram(subprogram));
            call_local(-1)
        }
        Insn::Exit => Slot::new(op::JMP | op::EXIT),
        Insn::Foreign(ref foreign) => encode_foreign(foreign)?,
    };
    push(code, slot)
}

fn encode_foreign(insn: &Foreign<Reg, i32>) -> Encoded {
    Ok(match *insn {
        Foreign::SignedAlu { op, width, dst, src } => {
            let op = match op {
                SignedOp::Div => AluOp::Div,
                SignedOp::Mod => AluOp::Mod,
            };
            alu(op, width, dst, src).offset(1)
        }
        Foreign::MovSigned { from, width, dst, src } => {
            let known = matches!((from, width), (Size::U8 | Size::U16, _) | (Size::U32, Width::W64));
            if !known {
                return Err("a signed move starts from 8 or 16 bits, or from 32 to 64");
            }
            alu(AluOp::Mov, width, dst, Operand::Reg(src)).offset(from.bytes() as i16 * 8)
        }
        Foreign::LoadSigned { size: Size::U64, .. } => return Err("a load of 64 bits has no sign to extend"),
        Foreign::LoadSigned { size, dst, base, offset } => {
            memory(op::LDX | op::MODE_MEM_SIGNED, size, dst, base, offset)
        }
        Foreign::ByteSwap { size: Size::U8, .. } => return Err("one byte has no order"),
        Foreign::ByteSwap { size, dst } => {
            Slot::new(op::ALU64 | op::END).dst(dst).imm(size.bytes() as i32 * 8)
        }
        Foreign::Atomic { op: operation, size, base, offset, src } => {
            atomic(op::atomic_code(operation), size, base, offset, src)?
        }
        Foreign::GotoLong { target } => Slot::new(op::JMP32 | op::JA).imm(target),
        Foreign::CallNumber { number } => Slot::new(op::JMP | op::CALL).imm(number as i32),
    })
}

fn alu_class(width: Width) -> u8 {
    match width {
        Width::W32 => op::ALU32,
        Width::W64 => op::ALU64,
    }
}

fn alu(operation: AluOp, width: Width, dst: Reg, src: Operand<Reg>) -> Slot {
    Slot::new(alu_class(width) | op::alu_code(operation)).dst(dst).operand(src)
}

fn byte_order(swap: Swap, dst: Reg) -> Slot {
    let (big, bits) = match swap {
        Swap::Be16 => (true, 16),
        Swap::Be32 => (true, 32),
        Swap::Be64 => (true, 64),
        Swap::Le16 => (false, 16),
        Swap::Le32 => (false, 32),
        Swap::Le64 => (false, 64),
    };
    let order = if big { SOURCE_REG } else { 0 };
    Slot::new(op::ALU32 | op::END | order).dst(dst).imm(bits)
}

fn memory(code: u8, size: Size, dst: Reg, base: Reg, offset: i16) -> Slot {
    Slot::new(code | op::size_code(size)).dst(dst).src(base).offset(offset)
}

fn store(size: Size, base: Reg, offset: i16, src: Operand<Reg>) -> Slot {
    let code = op::MODE_MEM | op::size_code(size);
    match src {
        Operand::Reg(src) => Slot::new(op::STX | code).dst(base).src(src).offset(offset),
        Operand::Imm(imm) => Slot::new(op::ST | code).dst(base).offset(offset).imm(imm),
    }
}

fn atomic(operation: i32, size: Size, base: Reg, offset: i16, src: Reg) -> Encoded {
    if !matches!(size, Size::U32 | Size::U64) {
        return Err("atomic operations take 4 or 8 bytes");
    }
    Ok(memory(op::STX | op::MODE_ATOMIC, size, base, src, offset).imm(operation))
}

fn branch(condition: Condition, width: Width, left: Reg, right: Operand<Reg>, target: i32) -> Encoded {
    let class = match width {
        Width::W32 => op::JMP32,
        Width::W64 => op::JMP,
    };
    let code = class | op::condition_code(condition);
    Ok(Slot::new(code).dst(left).operand(right).offset(short(target)?))
}

fn short(target: i32) -> Result<i16, &'static str> {
    i16::try_from(target).map_err(|_| "the jump is longer than 32,767 slots")
}

fn wide(code: &mut Code, dst: Reg, low: i32, high: i32) -> Result<(), &'static str> {
    let first = op::LD | op::MODE_IMM | op::size_code(Size::U64);
    push(code, Slot::new(first).dst(dst).imm(low))?;
    push(code, Slot::new(0).imm(high))
}

fn call_local(distance: i32) -> Slot {
    Slot::new(op::JMP | op::CALL).src(Reg(op::PSEUDO_CALL)).imm(distance)
}

fn push(code: &mut Code, slot: Slot) -> Result<(), &'static str> {
    if slot.dst > Reg::FP.0 || slot.src > Reg::FP.0 {
        return Err("there are no registers above r10");
    }
    code.bytes.extend([slot.code, slot.dst | slot.src << 4]);
    code.bytes.extend(slot.offset.to_le_bytes());
    code.bytes.extend(slot.imm.to_le_bytes());
    Ok(())
}
