//! Short ways to write virtual code, and to compile and run it.

use cranelift_entity::{EntityRef, PrimaryMap};
use pktc_bpf::{AluOp, Condition, Helper, Operand, Section, Size, Width};
use pktc_codegen::module::Program;
use pktc_codegen::{CodegenOptions, generate};
use pktc_diagnostics::{Diagnostic, FileId, Span};
use pktc_lower::vcode::{Base, Callee, Terminator, VBlock, VBlockId, VFunction, VInsn, VModule, VReg};

use crate::world::CONTEXT_SIZE;
use crate::{machine, virtual_machine};

pub(crate) const OPTIMISED: CodegenOptions = CodegenOptions { optimise: true };
pub(crate) const PLAIN: CodegenOptions = CodegenOptions { optimise: false };

/// A function under construction, and the block that instructions are added to.
pub(crate) struct Builder {
    pub(crate) function: VFunction,
    pub(crate) at: VBlockId,
    /// The source of the next instruction: each has its own.
    next_span: u32,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        let span = Span { file: FileId(0), start: 0, end: 0 };
        let function = VFunction {
            name: "t".into(),
            span,
            section: Section::Xdp,
            params: vec![VReg::new(0)],
            vregs: 1,
            frame: 0,
            blocks: PrimaryMap::new(),
        };
        let mut builder = Builder { function, at: VBlockId::new(0), next_span: 1 };
        builder.at = builder.block();
        builder
    }

    pub(crate) fn context(&self) -> VReg {
        self.function.params[0]
    }

    pub(crate) fn reg(&mut self) -> VReg {
        self.function.vregs += 1;
        VReg::new(self.function.vregs as usize - 1)
    }

    /// A new block that ends the program with 0 until it is given another end.
    pub(crate) fn block(&mut self) -> VBlockId {
        let (end, end_span) = (Terminator::Exit(Operand::Imm(0)), self.span());
        self.function.blocks.push(VBlock { insns: Vec::new(), end, end_span, cold: false })
    }

    fn span(&mut self) -> Span {
        self.next_span += 1;
        Span { file: FileId(0), start: self.next_span - 1, end: self.next_span }
    }

    pub(crate) fn push(&mut self, insn: VInsn) {
        let span = self.span();
        self.function.blocks[self.at].insns.push((insn, span));
    }

    /// Ends the current block, and goes on in `next`.
    pub(crate) fn end(&mut self, end: Terminator, next: VBlockId) {
        self.function.blocks[self.at].end = end;
        self.at = next;
    }

    pub(crate) fn goto(&mut self, target: VBlockId, next: VBlockId) {
        self.end(Terminator::Goto(target), next);
    }

    /// `if left condition right goto taken`; goes on in a new block behind it.
    pub(crate) fn branch(&mut self, condition: Condition, left: VReg, right: Operand<VReg>, taken: VBlockId) {
        let fallthrough = self.block();
        let width = Width::W64;
        self.end(Terminator::Branch { condition, width, left, right, taken, fallthrough }, fallthrough);
    }

    pub(crate) fn exit(&mut self, verdict: Operand<VReg>) {
        self.end(Terminator::Exit(verdict), self.at);
    }

    pub(crate) fn set(&mut self, dst: VReg, imm: i32) {
        self.push(VInsn::Mov { dst, src: Operand::Imm(imm) });
    }

    pub(crate) fn copy(&mut self, dst: VReg, src: VReg) {
        self.push(VInsn::Mov { dst, src: Operand::Reg(src) });
    }

    pub(crate) fn constant(&mut self, imm: i32) -> VReg {
        let dst = self.reg();
        self.set(dst, imm);
        dst
    }

    pub(crate) fn alu(&mut self, op: AluOp, left: VReg, right: Operand<VReg>) -> VReg {
        let dst = self.reg();
        self.alu_to(op, dst, left, right);
        dst
    }

    pub(crate) fn alu_to(&mut self, op: AluOp, dst: VReg, left: VReg, right: Operand<VReg>) {
        self.push(VInsn::Alu { op, width: Width::W64, dst, left, right });
    }

    /// A byte of the context.
    pub(crate) fn load(&mut self, offset: i16) -> VReg {
        let dst = self.reg();
        let base = Base::Reg(self.context());
        self.push(VInsn::Load { size: Size::U8, dst, base, offset });
        dst
    }

    pub(crate) fn call(&mut self, helper: Helper, args: &[VReg]) -> VReg {
        let dst = self.reg();
        self.push(VInsn::Call { callee: Callee::Helper(helper), dst, args: args.to_vec() });
        dst
    }

    /// The sum of `regs`: a use of each, in order.
    pub(crate) fn sum(&mut self, regs: &[VReg]) -> VReg {
        let mut sum = regs[0];
        for &reg in &regs[1..] {
            sum = self.alu(AluOp::Add, sum, Operand::Reg(reg));
        }
        sum
    }

    pub(crate) fn compile(&self, options: &CodegenOptions) -> Program {
        compile(&self.function, options).expect("it compiles")
    }
}

pub(crate) fn compile(function: &VFunction, options: &CodegenOptions) -> Result<Program, Vec<Diagnostic>> {
    let module = VModule { programs: vec![function.clone()], ..VModule::default() };
    let module = generate(module, options)?;
    Ok(module.programs.into_iter().next().expect("a program each"))
}

/// Memory in which each byte differs.
pub(crate) fn input() -> [u8; CONTEXT_SIZE] {
    std::array::from_fn(|index| (index as u8).wrapping_mul(3).wrapping_add(1))
}

/// Compiles both ways, runs, and checks that the verdict is `expected` and all else is as virtual code has it.
/// Returns the optimised program, and how many of its instructions ran.
#[track_caller]
pub(crate) fn check(builder: &Builder, expected: u64) -> (Program, u64) {
    let meant = virtual_machine::run(&builder.function, &input());
    assert_eq!(meant.verdict, expected, "what the virtual code means");
    let (plain, _) = machine::run(&builder.compile(&PLAIN), &input());
    assert_eq!(plain, meant, "without optimisation");
    let program = builder.compile(&OPTIMISED);
    let (optimised, executed) = machine::run(&program, &input());
    assert_eq!(optimised, meant, "optimised");
    (program, executed)
}
