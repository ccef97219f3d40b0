//! What the verifier would refuse whatever the program means. Checked on finished code in tests and debug builds.
//!
//! - every jump lands on an instruction, and nothing falls off the end;
//! - every instruction can be reached;
//! - every register that is read was written on every way there, and not lost to a call since;
//! - r10 is never written;
//! - accesses relative to r10 lie within the frame and are aligned.

use pktc_bpf::{Insn, Reg, Size, slots};

use crate::effects::{RegSet, reads, writes};
use crate::module::{MachineInsn, Program};

/// Checks `program`; an error says what is wrong at which instruction.
pub(crate) fn lint(program: &Program) -> Result<(), String> {
    let flow = Flow::new(program)?;
    for (index, insn) in program.insns.iter().enumerate() {
        let fail = |what: &str| Err(format!("{}: instruction {index}: {insn:?}: {what}", program.name));
        let Some(written) = flow.written[index] else { return fail("unreachable") };
        if let Some(reg) = reads(insn).without(written).first() {
            return fail(&format!("r{} is not written on every way here", reg.0));
        }
        if writes(insn).has(Reg::FP) {
            return fail("r10 is written");
        }
        if let Some((offset, size)) = frame_access(insn)
            && !fits_frame(offset, size, program.stack)
        {
            return fail("outside of the frame, or not aligned");
        }
    }
    Ok(())
}

/// The offset and size of an access relative to the frame pointer.
fn frame_access(insn: &MachineInsn) -> Option<(i16, Size)> {
    match *insn {
        Insn::Load { size, base: Reg::FP, offset, .. }
        | Insn::Store { size, base: Reg::FP, offset, .. }
        | Insn::AtomicAdd { size, base: Reg::FP, offset, .. } => Some((offset, size)),
        _ => None,
    }
}

fn fits_frame(offset: i16, size: Size, stack: u32) -> bool {
    let (offset, size) = (i64::from(offset), i64::from(size.bytes()));
    offset >= -i64::from(stack) && offset + size <= 0 && offset % size == 0
}

/// Which registers are written before each instruction, on every way there; `None` where none leads there.
struct Flow {
    written: Vec<Option<RegSet>>,
}

impl Flow {
    fn new(program: &Program) -> Result<Flow, String> {
        let insns = &program.insns;
        let mut flow = Flow { written: vec![None; insns.len()] };
        let starts: Vec<usize> =
            insns.iter().scan(0, |next, insn| Some(std::mem::replace(next, *next + slots(insn)))).collect();
        let params = (1..=program.params).map(Reg);
        let at_entry = params.fold(RegSet::default().with(Reg::FP), RegSet::with);
        let mut work = Vec::new();
        flow.reach(0, at_entry, &mut work)?;
        while let Some(index) = work.pop() {
            let insn = &insns[index];
            let before = flow.written[index].unwrap_or_default();
            let after = after(insn, before);
            let (target, goes_on) = match *insn {
                Insn::Goto { target } => (Some(target), false),
                Insn::Branch { target, .. } => (Some(target), true),
                Insn::Exit => (None, false),
                _ => (None, true),
            };
            if goes_on {
                flow.reach(index + 1, after, &mut work)?;
            }
            if let Some(target) = target {
                let slot = starts[index] as i64 + 1 + i64::from(target);
                let found = usize::try_from(slot).ok().and_then(|slot| starts.binary_search(&slot).ok());
                let to = found.ok_or_else(|| format!("instruction {index} jumps to no instruction"))?;
                flow.reach(to, after, &mut work)?;
            }
        }
        Ok(flow)
    }

    /// Notes that `written` holds on one way to `index`; what this changes is looked at again.
    fn reach(&mut self, index: usize, written: RegSet, work: &mut Vec<usize>) -> Result<(), String> {
        let known = self.written.get_mut(index).ok_or("the program goes on behind its end")?;
        let met = known.map_or(written, |known| known.intersection(written));
        if *known != Some(met) {
            *known = Some(met);
            work.push(index);
        }
        Ok(())
    }
}

/// What is written after `insn`: a call loses r1 to r5.
fn after(insn: &MachineInsn, before: RegSet) -> RegSet {
    match insn {
        Insn::Call { .. } | Insn::CallLocal { .. } | Insn::CallSubprogram { .. } => {
            before.without(RegSet::CALL).with(Reg::R0)
        }
        _ => writes(insn).iter().fold(before, RegSet::with),
    }
}

#[cfg(test)]
mod tests {
    use pktc_bpf::{AluOp, Condition, Helper, Operand, Section, Width};
    use pktc_diagnostics::{FileId, Span};

    use super::*;

    fn set(dst: u8, imm: i32) -> MachineInsn {
        Insn::Alu { op: AluOp::Mov, width: Width::W64, dst: Reg(dst), src: Operand::Imm(imm) }
    }

    fn when_zero(left: u8, target: i32) -> MachineInsn {
        let (condition, width) = (Condition::Eq, Width::W64);
        Insn::Branch { condition, width, left: Reg(left), right: Operand::Imm(0), target }
    }

    fn store(offset: i16, size: Size) -> MachineInsn {
        Insn::Store { size, base: Reg::FP, offset, src: Operand::Imm(0) }
    }

    #[track_caller]
    fn check(insns: &[MachineInsn], expected: Option<&str>) {
        let span = Span { file: FileId(0), start: 0, end: 0 };
        let (insns, lines) = (insns.to_vec(), vec![(0, span)]);
        let program = Program { name: "t".into(), section: Section::Xdp, params: 1, insns, lines, stack: 16 };
        match (lint(&program), expected) {
            (Ok(()), None) => {}
            (Err(error), Some(part)) if error.contains(part) => {}
            (result, _) => panic!("{result:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn takes_good_code() {
        check(&[set(0, 2), when_zero(1, 1), set(0, 1), Insn::Exit], None);
        check(&[store(-16, Size::U64), store(-1, Size::U8), set(0, 2), Insn::Exit], None);
    }

    #[test]
    fn refuses_what_the_verifier_refuses() {
        let call = Insn::Call { helper: Helper::KtimeGetNs };
        check(&[set(0, 2)], Some("behind its end"));
        check(&[set(0, 2), Insn::Exit, Insn::Exit], Some("unreachable"));
        check(
            &[Insn::LoadImm64 { dst: Reg(0), imm: 1 }, when_zero(0, -2), Insn::Exit],
            Some("no instruction"),
        );
        check(&[when_zero(1, 1), set(0, 1), Insn::Exit], Some("r0 is not written"));
        check(&[call, when_zero(1, 0), Insn::Exit], Some("r1 is not written"));
        check(&[set(10, 2), set(0, 0), Insn::Exit], Some("r10 is written"));
        check(&[store(-24, Size::U64), set(0, 0), Insn::Exit], Some("outside of the frame"));
        check(&[store(-6, Size::U32), set(0, 0), Insn::Exit], Some("not aligned"));
        check(&[store(-2, Size::U32), set(0, 0), Insn::Exit], Some("outside of the frame"));
    }
}
