//! What machine code does. Strict: what was never written, or lost to a call, must not be read.

use pktc_bpf::{AluOp, Insn, Operand, Reg, slots};
use pktc_codegen::module::{MachineInsn, Program};

use crate::world::{
    CONTEXT, CONTEXT_SIZE, FRAME, MOST_STEPS, Outcome, World, alu, argument_count, holds, map_address,
    operand, swap,
};

/// Runs `program`: what it does, and how many instructions that took.
pub(crate) fn run(program: &Program, input: &[u8; CONTEXT_SIZE]) -> (Outcome, u64) {
    let mut by_slot = Vec::new();
    for insn in &program.insns {
        by_slot.push(Some(*insn));
        by_slot.extend((1..slots(insn)).map(|_| None));
    }
    let mut machine = Machine { regs: [None; 11], world: World::new(input, program.stack) };
    machine.regs[1] = Some(CONTEXT);
    machine.regs[10] = Some(FRAME);
    let mut at = 0_usize;
    for executed in 1..MOST_STEPS {
        let insn = by_slot[at].expect("jumps land on instructions");
        at += slots(&insn);
        match insn {
            Insn::Goto { target } => at = jump(at, target),
            Insn::Branch { condition, width, left, right, target } => {
                if holds(condition, width, machine.get(left), machine.operand(right)) {
                    at = jump(at, target);
                }
            }
            Insn::Exit => {
                let verdict = machine.get(Reg::R0);
                return (machine.world.outcome(verdict), executed);
            }
            insn => machine.step(&insn),
        }
    }
    panic!("machine code does not end");
}

/// The slot `target` slots from `next`.
fn jump(next: usize, target: i32) -> usize {
    assert!(i16::try_from(target).is_ok(), "jumps have 16 bits");
    next.checked_add_signed(target as isize).expect("jumps stay in the program")
}

struct Machine {
    regs: [Option<u64>; 11],
    world: World,
}

impl Machine {
    fn get(&self, reg: Reg) -> u64 {
        self.regs[usize::from(reg.0)].expect("a register is written before it is read")
    }

    fn operand(&self, src: Operand<Reg>) -> u64 {
        operand(src, |reg| self.get(reg))
    }

    fn address(&self, base: Reg, offset: i16) -> u64 {
        self.get(base).wrapping_add_signed(offset.into())
    }

    fn step(&mut self, insn: &MachineInsn) {
        let (dst, value) = match *insn {
            Insn::Alu { op: AluOp::Mov, width, dst, src } => {
                (dst, alu(AluOp::Mov, width, 0, self.operand(src)))
            }
            Insn::Alu { op, width, dst, src } => (dst, alu(op, width, self.get(dst), self.operand(src))),
            Insn::Neg { width, dst } => (dst, alu(AluOp::Sub, width, 0, self.get(dst))),
            Insn::Swap { swap: kind, dst } => (dst, swap(kind, self.get(dst))),
            Insn::LoadImm64 { dst, imm } => (dst, imm),
            Insn::LoadMap { dst, map } => (dst, map_address(map.0, None)),
            Insn::LoadMapValue { dst, map, offset } => (dst, map_address(map.0, Some(offset))),
            Insn::Load { size, dst, base, offset } => {
                (dst, self.world.load(size, self.address(base, offset)))
            }
            Insn::Store { size, base, offset, src } => {
                let (address, value) = (self.address(base, offset), self.operand(src));
                return self.world.store(size, address, value);
            }
            Insn::AtomicAdd { size, base, offset, src } => {
                let (address, add) = (self.address(base, offset), self.get(src));
                let sum = self.world.load(size, address).wrapping_add(add);
                return self.world.store(size, address, sum);
            }
            Insn::Call { helper } => {
                let args = (1..=argument_count(helper)).map(|reg| self.get(Reg(reg as u8))).collect();
                let result = self.world.call(helper, args);
                self.regs[1..=5].fill(None);
                (Reg::R0, result)
            }
            Insn::Goto { .. } | Insn::Branch { .. } | Insn::Exit => unreachable!("handled by the loop"),
            Insn::CallLocal { .. } | Insn::CallSubprogram { .. } | Insn::Foreign(_) => {
                panic!("{insn:?} is never emitted")
            }
        };
        assert_ne!(dst, Reg::FP, "the frame pointer is read only");
        self.regs[usize::from(dst.0)] = Some(value);
    }
}
