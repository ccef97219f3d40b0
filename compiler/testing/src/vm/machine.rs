//! The interpreter: registers, calls, one instruction after the other.

use pktc_bpf::{AluOp, AtomicOp, Condition, Foreign, Insn, Operand, Reg, Size, Width};

use super::arithmetic;
use super::fault::{Fault, Problem};
use super::memory::Memory;
use super::program::Program;
use super::value::{Kind, Value};
use super::{BUDGET, FRAMES};

/// A program while it runs.
pub(super) struct Machine<'a> {
    pub(super) memory: &'a mut Memory,
    /// The clock, in nanoseconds.
    pub(super) now: u64,
    /// Seed of random numbers.
    pub(super) seed: u32,
    /// State of random numbers.
    pub(super) drawn: &'a mut u64,
    pub(super) regs: [Value; 11],
    callers: Vec<Caller>,
    executed: u64,
}

/// Where a subprogram returns to.
struct Caller {
    /// Index of the next instruction.
    next: u32,
    /// r6 to r9, which calls preserve.
    saved: [Value; 4],
}

/// Where an instruction leads.
enum Flow {
    Next,
    To(u32),
    Call(u32),
    Exit,
}

impl<'a> Machine<'a> {
    pub(super) fn new(memory: &'a mut Memory, now: u64, seed: u32, drawn: &'a mut u64) -> Self {
        memory.stack.reset();
        for map in &mut memory.maps {
            map.start_run();
        }
        let mut regs = [Value::UNSET; 11];
        regs[1] = Memory::context();
        regs[10] = memory.stack.frame_pointer();
        Machine { memory, now, seed, drawn, regs, callers: Vec::with_capacity(FRAMES), executed: 0 }
    }

    /// Runs `program` to its end: its return value, and how many instructions that took, either way.
    pub(super) fn run(mut self, program: &Program) -> (Result<u64, Fault>, u64) {
        let mut at = 0;
        let result = loop {
            match self.advance(program, at) {
                Ok(Some(next)) => at = next,
                Ok(None) => break self.return_value(),
                Err(problem) => break Err(problem),
            }
        };
        (result.map_err(|problem| program.fault(at as usize, problem)), self.executed)
    }

    /// Does the instruction at `at`: the index of the next, or none at the program's end.
    fn advance(&mut self, program: &Program, at: u32) -> Result<Option<u32>, Problem> {
        let insn = program.insns.get(at as usize).ok_or(Problem::PastEnd)?;
        if self.executed == BUDGET {
            return Err(Problem::Budget);
        }
        self.executed += 1;
        Ok(match self.step(insn)? {
            Flow::Next => Some(at + 1),
            Flow::To(target) => Some(target),
            Flow::Call(target) => {
                self.enter(at + 1)?;
                Some(target)
            }
            Flow::Exit => self.leave()?,
        })
    }

    fn return_value(&self) -> Result<u64, Problem> {
        self.read(Reg::R0)?.number().ok_or(Problem::PointerReturned)
    }

    fn step(&mut self, insn: &Insn<Reg, u32>) -> Result<Flow, Problem> {
        match *insn {
            Insn::Alu { op, width, dst, src } => self.alu(op, width, dst, src)?,
            Insn::Neg { width, dst } => self.change(dst, |value| arithmetic::negate(width, value))?,
            Insn::Swap { swap, dst } => self.change(dst, |value| arithmetic::swap(swap, value))?,
            Insn::LoadImm64 { dst, imm } => self.write(dst, Value::scalar(imm))?,
            Insn::LoadMap { dst, map } => self.write(dst, Value::pointer(Kind::Map(map.0 as u8), 0))?,
            Insn::LoadMapValue { dst, map, offset } => {
                let kind = Kind::MapValue { map: map.0 as u8, entry: 0 };
                self.write(dst, Value::pointer(kind, offset.into()))?;
            }
            Insn::Load { size, dst, base, offset } => {
                let value = self.memory.load(size, self.read(base)?, offset)?;
                self.write(dst, value)?;
            }
            Insn::Store { size, base, offset, src } => {
                let value = self.operand(src)?;
                self.memory.store(size, self.read(base)?, offset, value)?;
            }
            Insn::AtomicAdd { size, base, offset, src } => {
                self.atomic(size, base, offset, src, u64::wrapping_add)?;
            }
            Insn::Goto { target } => return Ok(Flow::To(target)),
            Insn::Branch { condition, width, left, right, target } => {
                let taken = self.compare(condition, width, left, right)?;
                return Ok(if taken { Flow::To(target) } else { Flow::Next });
            }
            Insn::Call { helper } => self.call_helper(helper)?,
            Insn::CallLocal { target } => return Ok(Flow::Call(target)),
            Insn::CallSubprogram { .. } => return Err(Problem::NotLinked),
            Insn::Exit => return Ok(Flow::Exit),
            Insn::Foreign(ref foreign) => return self.step_foreign(foreign),
        }
        Ok(Flow::Next)
    }

    fn step_foreign(&mut self, insn: &Foreign<Reg, u32>) -> Result<Flow, Problem> {
        match *insn {
            Foreign::SignedAlu { op, width, dst, src } => {
                let right = self.operand(src)?.number().ok_or(Problem::PointerArithmetic)?;
                self.change(dst, |left| arithmetic::signed_alu(op, width, left, right))?;
            }
            Foreign::MovSigned { from, width, dst, src } => {
                let value = self.read(src)?.number().ok_or(Problem::PointerArithmetic)?;
                self.write(dst, Value::scalar(arithmetic::extend_sign(from, width, value)))?;
            }
            Foreign::LoadSigned { size, dst, base, offset } => {
                let value = self.memory.load(size, self.read(base)?, offset)?;
                let value = value.number().ok_or(Problem::Context)?;
                self.write(dst, Value::scalar(arithmetic::extend_sign(size, Width::W64, value)))?;
            }
            Foreign::ByteSwap { size, dst } => self.change(dst, |value| arithmetic::reverse(size, value))?,
            Foreign::Atomic { op, size, base, offset, src } => self.atomic_op(op, size, base, offset, src)?,
            Foreign::GotoLong { target } => return Ok(Flow::To(target)),
            Foreign::CallNumber { number } => return Err(Problem::UnknownHelper(number)),
        }
        Ok(Flow::Next)
    }

    /// What a register holds, which must have been written.
    pub(super) fn read(&self, reg: Reg) -> Result<Value, Problem> {
        let value = self.regs[usize::from(reg.0)];
        if value.kind == Kind::Unset { Err(Problem::UnsetRegister) } else { Ok(value) }
    }

    fn write(&mut self, reg: Reg, value: Value) -> Result<(), Problem> {
        if reg == Reg::FP {
            return Err(Problem::FramePointerWritten);
        }
        self.regs[usize::from(reg.0)] = value;
        Ok(())
    }

    fn operand(&self, operand: Operand<Reg>) -> Result<Value, Problem> {
        match operand {
            Operand::Reg(reg) => self.read(reg),
            Operand::Imm(imm) => Ok(Value::scalar(i64::from(imm) as u64)),
        }
    }

    fn alu(&mut self, op: AluOp, width: Width, dst: Reg, src: Operand<Reg>) -> Result<(), Problem> {
        // A move does not read what it overwrites.
        let left = if op == AluOp::Mov { Value::UNSET } else { self.read(dst)? };
        let value = left.alu(op, width, self.operand(src)?)?;
        self.write(dst, value)
    }

    /// Replaces the number in a register.
    fn change(&mut self, reg: Reg, change: impl FnOnce(u64) -> u64) -> Result<(), Problem> {
        let number = self.read(reg)?.number().ok_or(Problem::PointerArithmetic)?;
        self.write(reg, Value::scalar(change(number)))
    }

    /// Whether a condition holds; a comparison of packet pointers with `data_end` teaches how far the packet goes.
    fn compare(
        &mut self,
        condition: Condition,
        width: Width,
        left: Reg,
        right: Operand<Reg>,
    ) -> Result<bool, Problem> {
        let (left, right) = (self.read(left)?, self.operand(right)?);
        let holds = arithmetic::holds(condition, width, left.bits, right.bits);
        let learned = match (left.kind, right.kind, width) {
            (Kind::Packet, Kind::PacketEnd, Width::W64) => reached(condition, holds, left),
            (Kind::PacketEnd, Kind::Packet, Width::W64) => reached(mirrored(condition), holds, right),
            _ => None,
        };
        if let Some(end) = learned {
            self.memory.packet.prove(end);
        }
        Ok(holds)
    }

    /// Replaces the number at an address by `change(number, src)` and gives back the old one.
    fn atomic(
        &mut self,
        size: Size,
        base: Reg,
        offset: i16,
        src: Reg,
        change: impl FnOnce(u64, u64) -> u64,
    ) -> Result<u64, Problem> {
        let operand = self.read(src)?.number().ok_or(Problem::PointerStored)?;
        let pointer = self.read(base)?;
        let old = self.memory.load_atomic(size, pointer, offset)?;
        self.memory.store(size, pointer, offset, Value::scalar(change(old, operand)))?;
        Ok(old)
    }

    fn atomic_op(
        &mut self,
        op: AtomicOp,
        size: Size,
        base: Reg,
        offset: i16,
        src: Reg,
    ) -> Result<(), Problem> {
        let width = if size == Size::U64 { Width::W64 } else { Width::W32 };
        let expected = match op {
            AtomicOp::CompareExchange => self.read(Reg::R0)?.number().ok_or(Problem::PointerArithmetic)?,
            _ => 0,
        };
        let old = self.atomic(size, base, offset, src, |old, operand| match op {
            AtomicOp::FetchAdd => old.wrapping_add(operand),
            AtomicOp::Or | AtomicOp::FetchOr => old | operand,
            AtomicOp::And | AtomicOp::FetchAnd => old & operand,
            AtomicOp::Xor | AtomicOp::FetchXor => old ^ operand,
            AtomicOp::Exchange => operand,
            AtomicOp::CompareExchange if arithmetic::truncate(width, expected) == old => operand,
            AtomicOp::CompareExchange => old,
        })?;
        match op {
            AtomicOp::Or | AtomicOp::And | AtomicOp::Xor => Ok(()),
            AtomicOp::FetchAdd
            | AtomicOp::FetchOr
            | AtomicOp::FetchAnd
            | AtomicOp::FetchXor
            | AtomicOp::Exchange => self.write(src, Value::scalar(old)),
            AtomicOp::CompareExchange => self.write(Reg::R0, Value::scalar(old)),
        }
    }

    /// Enters a subprogram, which sees r1 to r5 and its own frame.
    fn enter(&mut self, next: u32) -> Result<(), Problem> {
        self.memory.stack.enter()?;
        let [.., r6, r7, r8, r9, _] = self.regs;
        self.callers.push(Caller { next, saved: [r6, r7, r8, r9] });
        self.regs[6..=9].fill(Value::UNSET);
        self.regs[0] = Value::UNSET;
        self.regs[10] = self.memory.stack.frame_pointer();
        Ok(())
    }

    /// Leaves a subprogram, or the program.
    fn leave(&mut self) -> Result<Option<u32>, Problem> {
        let Some(caller) = self.callers.pop() else { return Ok(None) };
        if self.memory.stack.is_own(self.read(Reg::R0)?.kind) {
            return Err(Problem::PointerReturned);
        }
        self.memory.stack.leave();
        self.regs[1..=5].fill(Value::UNSET);
        self.regs[6..=9].copy_from_slice(&caller.saved);
        self.regs[10] = self.memory.stack.frame_pointer();
        Ok(Some(caller.next))
    }
}

/// How far the linear part goes at least, once `pointer condition data_end` is known to hold or not to
/// (`try_match_pkt_pointers`, `kernel/bpf/verifier.c`).
fn reached(condition: Condition, holds: bool, pointer: Value) -> Option<i64> {
    match (condition, holds) {
        (Condition::Gt, false) | (Condition::Le, true) => Some(pointer.offset()),
        (Condition::Ge, false) | (Condition::Lt, true) => Some(pointer.offset() + 1),
        _ => None,
    }
}

/// The condition with its sides exchanged, as far as it can teach something.
fn mirrored(condition: Condition) -> Condition {
    match condition {
        Condition::Gt => Condition::Lt,
        Condition::Ge => Condition::Le,
        Condition::Lt => Condition::Gt,
        Condition::Le => Condition::Ge,
        other => other,
    }
}
