//! Bytes to instructions: all of the instruction set's versions 1 to 4 that compilers emit for XDP.
//!
//! As strict as the kernel: what an instruction does not use must be 0, so that whatever decodes encodes to the
//! same bytes again (references to maps aside). A 64-bit constant with the `src` of a map is a reference to the
//! map whose index is its file descriptor, as loaders that number maps themselves write it.

use std::fmt;

use crate::opcode::{self as op, SOURCE_REG};
use crate::{AluOp, Foreign, Helper, Insn, MapIndex, Operand, Reg, SLOT, SignedOp, Size, Swap, Width};

/// A slot that is no instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Which 8-byte slot.
    pub slot: usize,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What is wrong.
    pub reason: &'static str,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} (", self.slot)?;
        for (i, byte) in self.bytes.iter().enumerate() {
            write!(f, "{}{byte:02x}", if i == 0 { "" } else { " " })?;
        }
        write!(f, ") is no instruction: {}", self.reason)
    }
}

impl std::error::Error for DecodeError {}

/// Decodes `bytes`.
///
/// # Errors
/// At the first slot that is no instruction, or none that an XDP program may contain.
pub fn decode(bytes: &[u8]) -> Result<Vec<Insn<Reg, i32>>, DecodeError> {
    let mut insns = Vec::with_capacity(bytes.len() / SLOT);
    let mut slot = 0;
    while slot * SLOT < bytes.len() {
        let rest = &bytes[slot * SLOT..];
        let error = |reason| DecodeError { slot, bytes: rest[..rest.len().min(SLOT)].to_vec(), reason };
        let first = Parts::read(rest).ok_or_else(|| error("it is cut off"))?;
        let insn = if first.code == WIDE {
            let second = Parts::read(&rest[SLOT..]).ok_or_else(|| error("its second slot is missing"))?;
            wide(first, second)
        } else {
            first.decode()
        };
        let insn = insn.map_err(error)?;
        slot += crate::slots(&insn);
        insns.push(insn);
    }
    Ok(insns)
}

/// The opcode of 64-bit constants.
const WIDE: u8 = 0x18;

type Decoded = Result<Insn<Reg, i32>, &'static str>;

const UNKNOWN: &str = "unknown opcode";
const UNUSED: &str = "a field that it does not use is not 0";

/// The five parts of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Parts {
    code: u8,
    dst: Reg,
    src: Reg,
    offset: i16,
    imm: i32,
}

impl Parts {
    fn read(bytes: &[u8]) -> Option<Parts> {
        let [code, regs, o0, o1, i0, i1, i2, i3] = *bytes.first_chunk::<SLOT>()?;
        Some(Parts {
            code,
            dst: Reg(regs & 15),
            src: Reg(regs >> 4),
            offset: i16::from_le_bytes([o0, o1]),
            imm: i32::from_le_bytes([i0, i1, i2, i3]),
        })
    }

    fn decode(self) -> Decoded {
        if self.dst > Reg::FP || self.src > Reg::FP {
            return Err("there are no registers above r10");
        }
        match self.code & 7 {
            op::ALU32 => self.alu(Width::W32),
            op::ALU64 => self.alu(Width::W64),
            op::JMP => self.jump(Width::W64),
            op::JMP32 => self.jump(Width::W32),
            op::LDX => self.load(),
            op::ST => self.store_immediate(),
            op::STX => self.store_register(),
            _ => Err("loads of class LD other than 64-bit constants are for sockets only"),
        }
    }

    fn operation(self) -> u8 {
        self.code & 0xf0
    }

    fn mode(self) -> u8 {
        self.code & 0xe0
    }

    fn size(self) -> Result<Size, &'static str> {
        op::size(self.code & 0x18).ok_or(UNKNOWN)
    }

    fn register_source(self) -> bool {
        self.code & SOURCE_REG != 0
    }

    /// The second operand, whose other form must be absent.
    fn operand(self) -> Result<Operand<Reg>, &'static str> {
        match self.register_source() {
            true if self.imm == 0 => Ok(Operand::Reg(self.src)),
            false if self.src == Reg::R0 => Ok(Operand::Imm(self.imm)),
            _ => Err(UNUSED),
        }
    }

    fn alu(self, width: Width) -> Decoded {
        match self.operation() {
            op::END => self.byte_order(width),
            op::NEG => {
                self.unused(
                    self.register_source() || self.src != Reg::R0 || self.offset != 0 || self.imm != 0,
                )?;
                Ok(Insn::Neg { width, dst: self.dst })
            }
            code => {
                let operation = op::alu_op(code).ok_or(UNKNOWN)?;
                let src = self.operand()?;
                if self.offset == 0 {
                    return Ok(Insn::Alu { op: operation, width, dst: self.dst, src });
                }
                self.signed(operation, width, src).map(Insn::Foreign)
            }
        }
    }

    /// The forms that version 4 tells from the older ones by `offset`.
    fn signed(self, op: AluOp, width: Width, src: Operand<Reg>) -> Result<Foreign<Reg, i32>, &'static str> {
        let dst = self.dst;
        match (op, self.offset, src, width) {
            (AluOp::Div, 1, ..) => Ok(Foreign::SignedAlu { op: SignedOp::Div, width, dst, src }),
            (AluOp::Mod, 1, ..) => Ok(Foreign::SignedAlu { op: SignedOp::Mod, width, dst, src }),
            (AluOp::Mov, 8, Operand::Reg(src), _) => {
                Ok(Foreign::MovSigned { from: Size::U8, width, dst, src })
            }
            (AluOp::Mov, 16, Operand::Reg(src), _) => {
                Ok(Foreign::MovSigned { from: Size::U16, width, dst, src })
            }
            (AluOp::Mov, 32, Operand::Reg(src), Width::W64) => {
                Ok(Foreign::MovSigned { from: Size::U32, width, dst, src })
            }
            _ => Err(UNUSED),
        }
    }

    fn byte_order(self, width: Width) -> Decoded {
        self.unused(self.src != Reg::R0 || self.offset != 0)?;
        let dst = self.dst;
        let swap = match (width, self.register_source(), self.imm) {
            (Width::W32, true, 16) => Swap::Be16,
            (Width::W32, true, 32) => Swap::Be32,
            (Width::W32, true, 64) => Swap::Be64,
            (Width::W32, false, 16) => Swap::Le16,
            (Width::W32, false, 32) => Swap::Le32,
            (Width::W32, false, 64) => Swap::Le64,
            (Width::W64, false, 16) => return Ok(Insn::Foreign(Foreign::ByteSwap { size: Size::U16, dst })),
            (Width::W64, false, 32) => return Ok(Insn::Foreign(Foreign::ByteSwap { size: Size::U32, dst })),
            (Width::W64, false, 64) => return Ok(Insn::Foreign(Foreign::ByteSwap { size: Size::U64, dst })),
            _ => return Err("byte order is changed in 16, 32 or 64 bits"),
        };
        Ok(Insn::Swap { swap, dst })
    }

    fn jump(self, width: Width) -> Decoded {
        let no_regs = self.dst == Reg::R0 && self.src == Reg::R0 && !self.register_source();
        match (self.operation(), width) {
            (op::JA, Width::W64) => {
                self.unused(!no_regs || self.imm != 0)?;
                Ok(Insn::Goto { target: self.offset.into() })
            }
            (op::JA, Width::W32) => {
                self.unused(!no_regs || self.offset != 0)?;
                Ok(Insn::Foreign(Foreign::GotoLong { target: self.imm }))
            }
            (op::CALL, Width::W64) => self.call(),
            (op::EXIT, Width::W64) => {
                self.unused(!no_regs || self.offset != 0 || self.imm != 0)?;
                Ok(Insn::Exit)
            }
            (code, _) => {
                let condition = op::condition(code).ok_or(UNKNOWN)?;
                let right = self.operand()?;
                Ok(Insn::Branch { condition, width, left: self.dst, right, target: self.offset.into() })
            }
        }
    }

    fn call(self) -> Decoded {
        self.unused(self.dst != Reg::R0 || self.offset != 0)?;
        if self.register_source() {
            return Err("calls through a register are refused by the kernel");
        }
        match self.src.0 {
            0 => {
                let number = self.imm as u32;
                let known = Helper::from_number(number).map(|helper| Insn::Call { helper });
                Ok(known.unwrap_or(Insn::Foreign(Foreign::CallNumber { number })))
            }
            op::PSEUDO_CALL => Ok(Insn::CallLocal { target: self.imm }),
            _ => Err("calls of kernel functions are not supported"),
        }
    }

    fn load(self) -> Decoded {
        self.unused(self.imm != 0)?;
        let (size, dst, base, offset) = (self.size()?, self.dst, self.src, self.offset);
        match (self.mode(), size) {
            (op::MODE_MEM, _) => Ok(Insn::Load { size, dst, base, offset }),
            (op::MODE_MEM_SIGNED, Size::U8 | Size::U16 | Size::U32) => {
                Ok(Insn::Foreign(Foreign::LoadSigned { size, dst, base, offset }))
            }
            _ => Err(UNKNOWN),
        }
    }

    fn store_immediate(self) -> Decoded {
        if self.mode() != op::MODE_MEM {
            return Err(UNKNOWN);
        }
        self.unused(self.src != Reg::R0)?;
        let src = Operand::Imm(self.imm);
        Ok(Insn::Store { size: self.size()?, base: self.dst, offset: self.offset, src })
    }

    fn store_register(self) -> Decoded {
        let (size, base, offset, src) = (self.size()?, self.dst, self.offset, self.src);
        match (self.mode(), size) {
            (op::MODE_MEM, _) => {
                self.unused(self.imm != 0)?;
                Ok(Insn::Store { size, base, offset, src: Operand::Reg(src) })
            }
            (op::MODE_ATOMIC, Size::U32 | Size::U64) if self.imm == 0 => {
                Ok(Insn::AtomicAdd { size, base, offset, src })
            }
            (op::MODE_ATOMIC, Size::U32 | Size::U64) => {
                let op = op::atomic_op(self.imm).ok_or("unknown atomic operation")?;
                Ok(Insn::Foreign(Foreign::Atomic { op, size, base, offset, src }))
            }
            _ => Err(UNKNOWN),
        }
    }

    fn unused(self, present: bool) -> Result<(), &'static str> {
        if present { Err(UNUSED) } else { Ok(()) }
    }
}

fn wide(first: Parts, second: Parts) -> Decoded {
    let empty = Parts { code: 0, dst: Reg::R0, src: Reg::R0, offset: 0, imm: second.imm };
    if first.dst > Reg::FP {
        return Err("there are no registers above r10");
    }
    if first.offset != 0 || second != empty {
        return Err(UNUSED);
    }
    let (dst, map) = (first.dst, MapIndex(first.imm as u32));
    match first.src.0 {
        0 => {
            let imm = u64::from(first.imm as u32) | u64::from(second.imm as u32) << 32;
            Ok(Insn::LoadImm64 { dst, imm })
        }
        op::PSEUDO_MAP_FD if second.imm == 0 => Ok(Insn::LoadMap { dst, map }),
        op::PSEUDO_MAP_VALUE => Ok(Insn::LoadMapValue { dst, map, offset: second.imm as u32 }),
        _ => Err("64-bit constants other than numbers, maps and their values are not supported"),
    }
}
