//! What both evaluators share: memory, helpers, and the meaning of single operations.

use pktc_bpf::{AluOp, Condition, Helper, Operand, Size, Swap, Width};

/// The address that the context register holds.
pub(crate) const CONTEXT: u64 = 0x1_0000;
/// Bytes of memory at [`CONTEXT`].
pub(crate) const CONTEXT_SIZE: usize = 128;
/// The address in the frame pointer.
pub(crate) const FRAME: u64 = 0x2_0000;
/// Instructions after which a run counts as endless.
pub(crate) const MOST_STEPS: u64 = 1_000_000;

/// What a run shows to the outside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) verdict: u64,
    /// The memory at [`CONTEXT`] at the end.
    pub(crate) memory: Vec<u8>,
    /// Each call with its arguments.
    pub(crate) calls: Vec<(Helper, Vec<u64>)>,
}

/// Memory and calls of a run.
pub(crate) struct World {
    pub(crate) memory: Vec<u8>,
    /// Bytes below [`FRAME`], the last one right below; `None`: not written.
    pub(crate) stack: Vec<Option<u8>>,
    pub(crate) calls: Vec<(Helper, Vec<u64>)>,
}

impl World {
    pub(crate) fn new(input: &[u8; CONTEXT_SIZE], stack: u32) -> World {
        World { memory: input.to_vec(), stack: vec![None; stack as usize], calls: Vec::new() }
    }

    pub(crate) fn outcome(self, verdict: u64) -> Outcome {
        Outcome { verdict, memory: self.memory, calls: self.calls }
    }

    /// A helper's result depends on its arguments and on how many calls went before.
    pub(crate) fn call(&mut self, helper: Helper, args: Vec<u64>) -> u64 {
        let start = helper as u64 + 1000 * self.calls.len() as u64;
        let mix = |hash: u64, arg: &u64| (hash ^ arg).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
        let result = args.iter().fold(start, mix);
        self.calls.push((helper, args));
        result
    }

    pub(crate) fn load(&self, size: Size, address: u64) -> u64 {
        let bytes: Vec<u8> = (0..u64::from(size.bytes())).map(|index| self.byte(address + index)).collect();
        bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    fn byte(&self, address: u64) -> u8 {
        match self.stack_index(address) {
            Some(index) => self.stack[index].expect("stack is written before it is read"),
            None => self.memory[usize::try_from(address - CONTEXT).expect("an address in memory")],
        }
    }

    pub(crate) fn store(&mut self, size: Size, address: u64, value: u64) {
        for (index, &byte) in value.to_le_bytes()[..size.bytes() as usize].iter().enumerate() {
            let address = address + index as u64;
            match self.stack_index(address) {
                Some(index) => self.stack[index] = Some(byte),
                None => self.memory[usize::try_from(address - CONTEXT).expect("an address in memory")] = byte,
            }
        }
    }

    fn stack_index(&self, address: u64) -> Option<usize> {
        let lowest = FRAME - self.stack.len() as u64;
        (lowest..FRAME).contains(&address).then(|| (address - lowest) as usize)
    }
}

/// How many arguments a helper takes.
pub(crate) fn argument_count(helper: Helper) -> usize {
    match helper {
        Helper::KtimeGetNs | Helper::GetPrandomU32 | Helper::GetSmpProcessorId => 0,
        Helper::XdpGetBuffLen => 1,
        Helper::MapLookupElem | Helper::MapDeleteElem => 2,
        Helper::MapUpdateElem | Helper::XdpLoadBytes | Helper::XdpStoreBytes => 4,
    }
}

pub(crate) fn operand<R>(operand: Operand<R>, read: impl FnOnce(R) -> u64) -> u64 {
    match operand {
        Operand::Reg(reg) => read(reg),
        Operand::Imm(imm) => i64::from(imm).cast_unsigned(),
    }
}

pub(crate) fn alu(op: AluOp, width: Width, a: u64, b: u64) -> u64 {
    match width {
        Width::W64 => alu64(op, a, b),
        Width::W32 => alu32(op, a as u32, b as u32).into(),
    }
}

fn alu64(op: AluOp, a: u64, b: u64) -> u64 {
    match op {
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mul => a.wrapping_mul(b),
        AluOp::Div => a.checked_div(b).unwrap_or(0),
        AluOp::Or => a | b,
        AluOp::And => a & b,
        AluOp::Lsh => a.wrapping_shl(b as u32),
        AluOp::Rsh => a.wrapping_shr(b as u32),
        AluOp::Mod => a.checked_rem(b).unwrap_or(a),
        AluOp::Xor => a ^ b,
        AluOp::Mov => b,
        AluOp::Arsh => a.cast_signed().wrapping_shr(b as u32).cast_unsigned(),
    }
}

fn alu32(op: AluOp, a: u32, b: u32) -> u32 {
    match op {
        AluOp::Lsh => a.wrapping_shl(b),
        AluOp::Rsh => a.wrapping_shr(b),
        AluOp::Arsh => a.cast_signed().wrapping_shr(b).cast_unsigned(),
        _ => alu64(op, a.into(), b.into()) as u32,
    }
}

pub(crate) fn swap(swap: Swap, value: u64) -> u64 {
    match swap {
        Swap::Be16 => (value as u16).swap_bytes().into(),
        Swap::Be32 => (value as u32).swap_bytes().into(),
        Swap::Be64 => value.swap_bytes(),
        Swap::Le16 => (value as u16).into(),
        Swap::Le32 => (value as u32).into(),
        Swap::Le64 => value,
    }
}

pub(crate) fn holds(condition: Condition, width: Width, a: u64, b: u64) -> bool {
    let signed = |value: u64| match width {
        Width::W64 => value.cast_signed(),
        Width::W32 => (value as u32).cast_signed().into(),
    };
    let (signed_a, signed_b) = (signed(a), signed(b));
    let (a, b) = match width {
        Width::W64 => (a, b),
        Width::W32 => (a & 0xffff_ffff, b & 0xffff_ffff),
    };
    match condition {
        Condition::Eq => a == b,
        Condition::Ne => a != b,
        Condition::Gt => a > b,
        Condition::Ge => a >= b,
        Condition::Lt => a < b,
        Condition::Le => a <= b,
        Condition::Set => a & b != 0,
        Condition::Sgt => signed_a > signed_b,
        Condition::Sge => signed_a >= signed_b,
        Condition::Slt => signed_a < signed_b,
        Condition::Sle => signed_a <= signed_b,
    }
}

/// What loads of maps give; only that both evaluators agree matters.
pub(crate) fn map_address(map: u32, offset: Option<u32>) -> u64 {
    0x7000_0000 + 0x1_0000 * u64::from(map) + offset.map_or(0, |offset| 8 + u64::from(offset))
}
