//! What virtual code means: the evaluator that machine code is compared with.

use cranelift_entity::EntityRef;
use pktc_bpf::Operand;
use pktc_lower::vcode::{Base, Callee, Terminator, VBlockId, VFunction, VInsn, VReg};

use crate::world::{
    CONTEXT, CONTEXT_SIZE, FRAME, MOST_STEPS, Outcome, World, alu, holds, map_address, operand, swap,
};

/// Runs `function`; panics where it breaks the contract of virtual code.
pub(crate) fn run(function: &VFunction, input: &[u8; CONTEXT_SIZE]) -> Outcome {
    let mut machine =
        Machine { regs: vec![None; function.vregs as usize], world: World::new(input, function.frame) };
    machine.set(function.params[0], CONTEXT);
    let mut at = VBlockId::new(0);
    for _ in 0..MOST_STEPS {
        let block = &function.blocks[at];
        block.insns.iter().for_each(|(insn, _)| machine.step(insn));
        match block.end {
            Terminator::Goto(target) => at = target,
            Terminator::Branch { condition, width, left, right, taken, fallthrough } => {
                let holds = holds(condition, width, machine.get(left), machine.operand(right));
                at = if holds { taken } else { fallthrough };
            }
            Terminator::Exit(verdict) => {
                let verdict = machine.operand(verdict);
                return machine.world.outcome(verdict);
            }
        }
    }
    panic!("virtual code does not end");
}

struct Machine {
    regs: Vec<Option<u64>>,
    world: World,
}

impl Machine {
    fn get(&self, reg: VReg) -> u64 {
        self.regs[reg.index()].expect("a register is written before it is read")
    }

    fn set(&mut self, reg: VReg, value: u64) {
        self.regs[reg.index()] = Some(value);
    }

    fn operand(&self, src: Operand<VReg>) -> u64 {
        operand(src, |reg| self.get(reg))
    }

    fn address(&self, base: Base, offset: i16) -> u64 {
        let base = match base {
            Base::Reg(reg) => self.get(reg),
            Base::Frame => FRAME,
        };
        base.wrapping_add_signed(offset.into())
    }

    fn step(&mut self, insn: &VInsn) {
        let (dst, value) = match *insn {
            VInsn::Mov { dst, src } => (dst, self.operand(src)),
            VInsn::Alu { op, width, dst, left, right } => {
                (dst, alu(op, width, self.get(left), self.operand(right)))
            }
            VInsn::Neg { dst, src } => (dst, self.get(src).wrapping_neg()),
            VInsn::Swap { swap: kind, dst, src } => (dst, swap(kind, self.get(src))),
            VInsn::LoadImm64 { dst, imm } => (dst, imm),
            VInsn::LoadMap { dst, map } => (dst, map_address(map.0, None)),
            VInsn::LoadMapValue { dst, map, offset } => (dst, map_address(map.0, Some(offset))),
            VInsn::UnknownZero { dst } => (dst, 0),
            VInsn::FrameAddress { dst, offset } => (dst, FRAME.wrapping_add_signed(offset.into())),
            VInsn::Load { size, dst, base, offset } => {
                (dst, self.world.load(size, self.address(base, offset)))
            }
            VInsn::Call { callee: Callee::Helper(helper), dst, ref args } => {
                let args = args.iter().map(|&arg| self.get(arg)).collect();
                (dst, self.world.call(helper, args))
            }
            VInsn::Call { callee: Callee::Subprogram(_), .. } => panic!("{insn:?} is in no test"),
            VInsn::Store { size, base, offset, src } => {
                let (address, value) = (self.address(base, offset), self.operand(src));
                return self.world.store(size, address, value);
            }
            VInsn::AtomicAdd { size, base, offset, src } => {
                let (address, add) = (self.address(Base::Reg(base), offset), self.get(src));
                let sum = self.world.load(size, address).wrapping_add(add);
                return self.world.store(size, address, sum);
            }
        };
        self.set(dst, value);
    }
}
