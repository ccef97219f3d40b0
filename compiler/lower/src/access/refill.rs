//! The subprogram that fills a window on its caller's stack: `refill(ctx, position, window)` loads as much of the
//! packet from byte `position` on as the window takes, and gives how many bytes that are: 0 if there are none.
//!
//! One for all places that need it: they are many in programs with tunnels or long chains of headers, and seldom
//! reached.

use pktc_bpf::{AluOp, Condition, Helper, Operand, Section, SubprogramIndex};
use pktc_diagnostics::Span;

use crate::code::Code;
use crate::vcode::{Callee, Terminator, VFunction, VReg};

/// The only subprogram that there is.
const INDEX: SubprogramIndex = SubprogramIndex(0);
const NAME: &str = "pktc_refill";

/// The least mask that takes a window's length.
const MASK: u64 = 0xff;

/// Calls it: a new register with how many bytes there are, of which the verifier knows the most.
pub(super) fn call(code: &mut Code, context: VReg, position: VReg, window: VReg) -> VReg {
    // From 6.15 on the verifier takes it that a call reads r1 to r5: what was left in r4 and r5 would keep states apart.
    let unused = code.fresh();
    code.mov(unused, Operand::Imm(0));
    code.call(Callee::Subprogram(INDEX), vec![context, position, window, unused, unused])
}

/// A new register with `count`, which is at most a window's length. The verifier sees one kind of number, whatever the
/// count was, and walks what follows once.
pub(super) fn forget_count(code: &mut Code, count: VReg) -> VReg {
    let forgotten = code.unknown_zero();
    code.alu(AluOp::Add, forgotten, forgotten, Operand::Reg(count));
    code.mask(forgotten, forgotten, MASK);
    forgotten
}

/// The subprogram for windows of `bytes` bytes; `span`: what its instructions are said to come from.
pub(crate) fn function(bytes: u32, span: Span) -> VFunction {
    let params = [0, 1, 2].map(VReg::from_u32);
    let [context, position, window] = params;
    let mut code = Code::new(span, params.len() as u32);
    let (entry, some, cut, load) = (code.new_block(), code.new_block(), code.new_block(), code.new_block());
    let (none, done) = (code.new_block(), code.new_block());
    let count = code.fresh();
    code.switch_to(entry);
    let total = code.call(Callee::Helper(Helper::XdpGetBuffLen), vec![context]);
    code.alu(AluOp::Sub, count, total, Operand::Reg(position));
    code.branch(Condition::Slt, count, Operand::Imm(1), none, some);
    code.switch_to(some);
    code.branch(Condition::Sgt, count, Operand::Imm(bytes.cast_signed()), cut, load);
    code.switch_to(cut);
    code.mov(count, Operand::Imm(bytes.cast_signed()));
    code.end(Terminator::Goto(load));
    code.switch_to(load);
    let loader = Callee::Helper(Helper::XdpLoadBytes);
    let error = code.call(loader, vec![context, position, window, count]);
    code.branch(Condition::Ne, error, Operand::Imm(0), none, done);
    code.switch_to(none);
    code.mov(count, Operand::Imm(0));
    code.end(Terminator::Goto(done));
    code.switch_to(done);
    let count = forget_count(&mut code, count);
    code.end(Terminator::Exit(Operand::Reg(count)));
    let params = params.to_vec();
    let (blocks, vregs) = code.finish();
    VFunction { name: NAME.into(), span, section: Section::Text, params, vregs, frame: 0, blocks }
}
