//! Instructions as text, in the syntax of the kernel's verifier (`kernel/bpf/disasm.c`): what a listing shows can
//! be searched for in the verifier's log.
//!
//! Only references to maps differ, since the log shows addresses: `map[2]` is the map with index 2,
//! `map[2][0]+8` an address inside its first value.

use std::fmt::Write as _;

use crate::{AluOp, AtomicOp, Condition, Foreign, Insn, Operand, Reg, SignedOp, Size, Swap, Width};

/// An instruction as text. Jumps show their distance in slots from the next instruction, as the verifier does.
#[must_use]
pub fn disassemble(insn: &Insn<Reg, i32>) -> String {
    match *insn {
        Insn::Alu { op, width, dst, src } => {
            format!("{} {} {}", reg(width, dst), alu_sign(op), operand(width, src))
        }
        Insn::Neg { width, dst } => format!("{0} = -{0}", reg(width, dst)),
        Insn::Swap { swap, dst } => format!("r{0} = {1} r{0}", dst.0, swap_name(swap)),
        Insn::LoadImm64 { dst, imm } => format!("r{} = {imm:#x}", dst.0),
        Insn::LoadMap { dst, map } => format!("r{} = map[{}]", dst.0, map.0),
        Insn::LoadMapValue { dst, map, offset } => format!("r{} = map[{}][0]+{offset}", dst.0, map.0),
        Insn::Load { size, dst, base, offset } => {
            format!("r{} = {}", dst.0, place("u", size, base, offset))
        }
        Insn::Store { size, base, offset, src } => {
            format!("{} = {}", place("u", size, base, offset), operand(Width::W64, src))
        }
        Insn::AtomicAdd { size, base, offset, src } => {
            format!("lock {} += r{}", place("u", size, base, offset), src.0)
        }
        Insn::Goto { target } => format!("goto pc{target:+}"),
        Insn::Branch { condition, width, left, right, target } => {
            let right = match right {
                Operand::Reg(right) => reg(width, right),
                Operand::Imm(imm) => format!("{imm:#x}"),
            };
            format!("if {} {} {right} goto pc{target:+}", reg(width, left), condition_sign(condition))
        }
        Insn::Call { helper } => format!("call {}#{}", helper.name(), helper as u32),
        Insn::CallLocal { target } => format!("call pc{target:+}"),
        Insn::CallSubprogram { subprogram, .. } => format!("call subprogram[{}]", subprogram.0),
        Insn::Exit => "exit".into(),
        Insn::Foreign(ref foreign) => disassemble_foreign(foreign),
    }
}

/// A program as text: a line an instruction, each with the number of its first slot.
#[must_use]
pub fn listing(insns: &[Insn<Reg, i32>]) -> String {
    let mut text = String::new();
    let mut slot = 0;
    for insn in insns {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{slot:4}: {}", disassemble(insn));
        slot += crate::slots(insn);
    }
    text
}

fn disassemble_foreign(insn: &Foreign<Reg, i32>) -> String {
    match *insn {
        Foreign::SignedAlu { op, width, dst, src } => {
            let sign = match op {
                SignedOp::Div => "s/=",
                SignedOp::Mod => "s%=",
            };
            format!("{} {sign} {}", reg(width, dst), operand(width, src))
        }
        Foreign::MovSigned { from, width, dst, src } => {
            format!("{} = (s{}){}", reg(width, dst), from.bytes() * 8, reg(width, src))
        }
        Foreign::LoadSigned { size, dst, base, offset } => {
            format!("r{} = {}", dst.0, place("s", size, base, offset))
        }
        Foreign::ByteSwap { size, dst } => format!("r{0} = bswap{1} r{0}", dst.0, size.bytes() * 8),
        Foreign::Atomic { op, size, base, offset, src } => atomic(op, size, base, offset, src),
        Foreign::GotoLong { target } => format!("gotol pc{target:+}"),
        Foreign::CallNumber { number } => format!("call unknown#{number}"),
    }
}

fn atomic(op: AtomicOp, size: Size, base: Reg, offset: i16, src: Reg) -> String {
    let name = match op {
        AtomicOp::Or => return format!("lock {} |= r{}", place("u", size, base, offset), src.0),
        AtomicOp::And => return format!("lock {} &= r{}", place("u", size, base, offset), src.0),
        AtomicOp::Xor => return format!("lock {} ^= r{}", place("u", size, base, offset), src.0),
        AtomicOp::FetchAdd => "fetch_add",
        AtomicOp::FetchOr => "fetch_or",
        AtomicOp::FetchAnd => "fetch_and",
        AtomicOp::FetchXor => "fetch_xor",
        AtomicOp::Exchange => "xchg",
        AtomicOp::CompareExchange => "cmpxchg",
    };
    let wide = if size == Size::U64 { "64" } else { "" };
    let pointer = format!("(u{} *)(r{} {offset:+})", size.bytes() * 8, base.0);
    match op {
        AtomicOp::CompareExchange => format!("r0 = atomic{wide}_{name}({pointer}, r0, r{})", src.0),
        _ => format!("r{0} = atomic{wide}_{name}({pointer}, r{0})", src.0),
    }
}

fn reg(width: Width, reg: Reg) -> String {
    let letter = match width {
        Width::W32 => 'w',
        Width::W64 => 'r',
    };
    format!("{letter}{}", reg.0)
}

fn operand(width: Width, operand: Operand<Reg>) -> String {
    match operand {
        Operand::Reg(src) => reg(width, src),
        Operand::Imm(imm) => imm.to_string(),
    }
}

fn place(sign: &str, size: Size, base: Reg, offset: i16) -> String {
    format!("*({sign}{} *)(r{} {offset:+})", size.bytes() * 8, base.0)
}

fn alu_sign(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "+=",
        AluOp::Sub => "-=",
        AluOp::Mul => "*=",
        AluOp::Div => "/=",
        AluOp::Or => "|=",
        AluOp::And => "&=",
        AluOp::Lsh => "<<=",
        AluOp::Rsh => ">>=",
        AluOp::Mod => "%=",
        AluOp::Xor => "^=",
        AluOp::Mov => "=",
        AluOp::Arsh => "s>>=",
    }
}

fn condition_sign(condition: Condition) -> &'static str {
    match condition {
        Condition::Eq => "==",
        Condition::Ne => "!=",
        Condition::Gt => ">",
        Condition::Ge => ">=",
        Condition::Lt => "<",
        Condition::Le => "<=",
        Condition::Set => "&",
        Condition::Sgt => "s>",
        Condition::Sge => "s>=",
        Condition::Slt => "s<",
        Condition::Sle => "s<=",
    }
}

fn swap_name(swap: Swap) -> &'static str {
    match swap {
        Swap::Be16 => "be16",
        Swap::Be32 => "be32",
        Swap::Be64 => "be64",
        Swap::Le16 => "le16",
        Swap::Le32 => "le32",
        Swap::Le64 => "le64",
    }
}
