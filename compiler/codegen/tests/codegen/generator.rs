//! Random virtual code that ends and keeps the contract: nested decisions, loops with a bound, joins at which
//! several registers meet, calls, memory, the frame.

use pktc_bpf::{AluOp, Condition, Helper, MapIndex, Operand, Size, Swap, Width};
use pktc_lower::vcode::{Base, Callee, Terminator, VFunction, VInsn, VReg};

use crate::builder::Builder;

/// A seeded source of numbers (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

const FRAME_SLOTS: usize = 4;
const OPS: [AluOp; 11] = [
    AluOp::Add,
    AluOp::Sub,
    AluOp::Mul,
    AluOp::Div,
    AluOp::Or,
    AluOp::And,
    AluOp::Lsh,
    AluOp::Rsh,
    AluOp::Mod,
    AluOp::Xor,
    AluOp::Arsh,
];
const CONDITIONS: [Condition; 11] = [
    Condition::Eq,
    Condition::Ne,
    Condition::Gt,
    Condition::Ge,
    Condition::Lt,
    Condition::Le,
    Condition::Set,
    Condition::Sgt,
    Condition::Sge,
    Condition::Slt,
    Condition::Sle,
];
const SIZES: [Size; 4] = [Size::U8, Size::U16, Size::U32, Size::U64];
const SWAPS: [Swap; 6] = [Swap::Be16, Swap::Be32, Swap::Be64, Swap::Le16, Swap::Le32, Swap::Le64];
const IMMEDIATES: [i32; 8] = [0, 1, 2, 7, 255, -1, i32::MAX, i32::MIN];

/// A program; the same for the same seed.
pub(crate) fn generate(seed: u64) -> VFunction {
    let mut random = Random::new(seed);
    let mut code = Builder::new();
    code.function.frame = 8 * FRAME_SLOTS as u32;
    let variables = 2 + random.below(14);
    let mut generator = Generator { code, random, variables: Vec::new(), statements: 60 };
    for slot in 0..FRAME_SLOTS {
        let offset = -8 * (slot as i16 + 1);
        generator.code.push(VInsn::Store {
            size: Size::U64,
            base: Base::Frame,
            offset,
            src: Operand::Imm(slot as i32),
        });
    }
    for index in 0..variables {
        let variable = generator.code.load(8 * index as i16);
        generator.variables.push(variable);
    }
    generator.statements(0);
    let result = generator.code.sum(&generator.variables.clone());
    generator.code.exit(Operand::Reg(result));
    generator.code.function
}

struct Generator {
    code: Builder,
    random: Random,
    /// Registers that are always written; most are written again and again.
    variables: Vec<VReg>,
    /// How many statements may still be made.
    statements: u32,
}

impl Generator {
    fn variable(&mut self) -> VReg {
        self.random.pick(&self.variables)
    }

    /// Where a result goes: mostly over a variable, sometimes to one of its own.
    fn destination(&mut self) -> VReg {
        if self.random.below(6) > 0 || self.variables.len() > 24 { self.variable() } else { self.code.reg() }
    }

    fn width(&mut self) -> Width {
        self.random.pick(&[Width::W32, Width::W64])
    }

    fn operand(&mut self) -> Operand<VReg> {
        if self.random.below(3) == 0 {
            Operand::Imm(self.random.pick(&IMMEDIATES))
        } else {
            Operand::Reg(self.variable())
        }
    }

    fn statements(&mut self, depth: u32) {
        for _ in 0..1 + self.random.below(8) {
            if self.statements == 0 {
                return;
            }
            self.statements -= 1;
            match self.random.below(20) {
                0..3 if depth < 4 => self.decision(depth),
                3 if depth < 3 => self.repetition(depth),
                4 if depth > 0 => self.early_exit(),
                5 | 6 => self.call(),
                7 | 8 => self.memory(),
                9 => self.rotation(),
                10 | 11 => self.fixed(),
                _ => self.arithmetic(),
            }
        }
    }

    /// What is made in one arm only is not known behind it.
    fn nested(&mut self, depth: u32) {
        let known = self.variables.len();
        self.statements(depth + 1);
        self.variables.truncate(known);
    }

    fn decision(&mut self, depth: u32) {
        let (taken, fallthrough, join) = (self.code.block(), self.code.block(), self.code.block());
        self.code.function.blocks[taken].cold = self.random.below(4) == 0;
        let end = Terminator::Branch {
            condition: self.random.pick(&CONDITIONS),
            width: self.width(),
            left: self.variable(),
            right: self.operand(),
            taken,
            // Sometimes there is no second arm, which makes a critical edge.
            fallthrough: if self.random.below(2) == 0 { join } else { fallthrough },
        };
        self.code.end(end, taken);
        self.nested(depth);
        self.code.goto(join, fallthrough);
        self.nested(depth);
        self.code.goto(join, join);
    }

    fn repetition(&mut self, depth: u32) {
        let (head, done) = (self.code.block(), self.code.block());
        let turns = self.code.reg();
        self.code.set(turns, 1 + self.random.below(4) as i32);
        self.code.goto(head, head);
        self.nested(depth);
        self.code.alu_to(AluOp::Sub, turns, turns, Operand::Imm(1));
        let (taken, fallthrough) = if self.random.below(2) == 0 { (done, head) } else { (head, done) };
        let condition = if taken == done { Condition::Eq } else { Condition::Ne };
        let (width, right) = (Width::W64, Operand::Imm(0));
        self.code.end(Terminator::Branch { condition, width, left: turns, right, taken, fallthrough }, done);
    }

    fn early_exit(&mut self) {
        let (taken, fallthrough) = (self.code.block(), self.code.block());
        let (condition, width) = (self.random.pick(&CONDITIONS), self.width());
        let (left, right) = (self.variable(), self.operand());
        self.code.end(Terminator::Branch { condition, width, left, right, taken, fallthrough }, taken);
        let verdict = self.operand();
        self.code.exit(verdict);
        self.code.at = fallthrough;
    }

    fn call(&mut self) {
        let (helper, count) = self.random.pick(&[
            (Helper::KtimeGetNs, 0),
            (Helper::XdpGetBuffLen, 1),
            (Helper::MapLookupElem, 2),
            (Helper::MapUpdateElem, 4),
        ]);
        let args = (0..count).map(|_| self.variable()).collect();
        let dst = self.destination();
        self.finish(VInsn::Call { callee: Callee::Helper(helper), dst, args }, dst);
    }

    fn memory(&mut self) {
        let size = self.random.pick(&SIZES);
        let (base, offset) = if self.random.below(2) == 0 {
            (Base::Frame, -8 * (1 + self.random.below(FRAME_SLOTS) as i16))
        } else {
            (Base::Reg(self.code.context()), 8 * self.random.below(16) as i16)
        };
        match self.random.below(5) {
            0 | 1 => {
                let dst = self.destination();
                self.finish(VInsn::Load { size, dst, base, offset }, dst);
            }
            2 | 3 => {
                let src = self.operand();
                self.code.push(VInsn::Store { size, base, offset, src });
            }
            _ => {
                let (base, src) = (self.code.context(), self.variable());
                self.code.push(VInsn::AtomicAdd { size: Size::U64, base, offset: offset.abs(), src });
            }
        }
    }

    /// Exchanges variables, which makes joins and loops permute registers.
    fn rotation(&mut self) {
        let kept = self.code.reg();
        let places: Vec<VReg> = (0..2 + self.random.below(4)).map(|_| self.variable()).collect();
        self.code.copy(kept, places[0]);
        for pair in places.windows(2) {
            self.code.copy(pair[0], pair[1]);
        }
        self.code.copy(places[places.len() - 1], kept);
    }

    /// Constants and addresses.
    fn fixed(&mut self) {
        let dst = self.destination();
        let insn = match self.random.below(6) {
            0 => VInsn::LoadImm64 { dst, imm: self.random.next() >> self.random.below(64) },
            1 => VInsn::LoadMap { dst, map: MapIndex(self.random.below(3) as u32) },
            2 => VInsn::LoadMapValue { dst, map: MapIndex(0), offset: self.random.below(64) as u32 },
            3 => VInsn::FrameAddress { dst, offset: -8 },
            4 => VInsn::UnknownZero { dst },
            _ => VInsn::Mov { dst, src: Operand::Imm(self.random.pick(&IMMEDIATES)) },
        };
        self.finish(insn, dst);
    }

    fn arithmetic(&mut self) {
        let (op, width, left, right) =
            (self.random.pick(&OPS), self.width(), self.variable(), self.operand());
        let right = match (op, right) {
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Imm(imm)) => Operand::Imm(imm & 31),
            (AluOp::Div | AluOp::Mod, Operand::Imm(0)) => Operand::Imm(3),
            (_, right) => right,
        };
        let dst = self.destination();
        let insn = match self.random.below(8) {
            0 => VInsn::Neg { dst, src: left },
            1 => VInsn::Swap { swap: self.random.pick(&SWAPS), dst, src: left },
            2 => VInsn::Mov { dst, src: right },
            _ => VInsn::Alu { op, width, dst, left, right },
        };
        self.finish(insn, dst);
    }

    fn finish(&mut self, insn: VInsn, dst: VReg) {
        self.code.push(insn);
        if !self.variables.contains(&dst) {
            self.variables.push(dst);
        }
    }
}
