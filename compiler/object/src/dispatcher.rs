//! The program that calls up to ten others in turn, as libxdp's protocol for several programs on one interface has
//! it: a function for each, which a loaded program then takes the place of, and a map that says which verdicts lead
//! on to the next.
//!
//! ```text
//! xdp_dispatcher:  verdict = prog0(ctx); if not in the verdicts that lead on from 0: return it
//!                  verdict = prog1(ctx); …
//!                  return pass
//! ```

use pktc_bpf::{AluOp, Condition, EncodeError, Insn, MapIndex, Operand, Reg, Size, Width, XdpAction};
use pktc_codegen::module::MachineInsn;

use crate::btf::{Encoder, TypeId};
use crate::types::context;

/// The name of the dispatcher, by which it is recognised.
const NAME: &str = "xdp_dispatcher";
/// Bytes in the configuration before the verdicts that lead on, a 32-bit set for each program.
const CHAIN_ACTIONS: u32 = 4;
/// What a function returns while no program stands in its place; it leads on.
const NO_VERDICT: i32 = 31;
/// `bpf_xdp_adjust_tail`
const ADJUST_TAIL: u32 = 65;

/// A dispatcher's code and types; the reference to its configuration is to be filled in.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    /// Its name in the kernel.
    pub name: &'static str,
    /// Instructions of 8 bytes: the dispatcher and behind it the functions.
    pub code: Vec<u8>,
    /// Byte offset of the instruction that loads the address of the configuration, the value of a one-element array.
    pub reference: usize,
    /// The section `.BTF`.
    pub btf: Vec<u8>,
    /// For the dispatcher and each function its first instruction's number and its type: `bpf_func_info`.
    pub functions: Vec<[u32; 2]>,
}

impl Dispatcher {
    /// A dispatcher for `programs` programs.
    ///
    /// # Errors
    /// Never, for at most ten: its instructions have encodings.
    pub fn new(programs: usize) -> Result<Self, EncodeError> {
        let mut insns = entry(programs as i32);
        let mut starts = vec![0];
        for _ in 0..programs {
            starts.push(insns.iter().map(pktc_bpf::slots).sum::<usize>() as u32);
            insns.extend(place());
        }
        let encoded = pktc_bpf::encode(&insns)?;
        let (btf, types) = describe(programs);
        let functions = std::iter::zip(starts, types).map(|(start, ty)| [start, ty.0]).collect();
        let reference = encoded.relocations.first().map_or(0, |relocation| relocation.offset);
        Ok(Dispatcher { name: NAME, code: encoded.bytes, reference, btf, functions })
    }

    /// The type of the function that a program takes the place of: its own, or of the dispatcher itself where the
    /// program is the only one.
    #[must_use]
    pub fn target(&self, place: usize) -> u32 {
        let only = self.functions.len() == 2;
        self.functions[if only { 0 } else { place + 1 }][1]
    }
}

/// The dispatcher's own function.
fn entry(programs: i32) -> Vec<MachineInsn> {
    /// The slots of a step.
    const STEP: i32 = 7;
    /// The slots of a function that a program takes the place of.
    const PLACE: i32 = 4;
    let (context, config, set) = (Reg(6), Reg(7), Reg(2));
    let mov = |width, dst, src| Insn::Alu { op: AluOp::Mov, width, dst, src };
    let mut insns = vec![
        mov(Width::W64, context, Operand::Reg(Reg::R1)),
        Insn::LoadMapValue { dst: config, map: MapIndex(0), offset: 0 },
    ];
    for n in 0..programs {
        // From behind the call: the rest of this step, the steps behind it, the end, the functions before this one.
        let distance = (STEP - 2) + (programs - 1 - n) * STEP + 2 + n * PLACE;
        let last = (programs - 1 - n) * STEP + 1;
        let offset = (CHAIN_ACTIONS + 4 * n as u32) as i16;
        insns.extend([
            mov(Width::W64, Reg::R1, Operand::Reg(context)),
            Insn::CallLocal { target: distance },
            Insn::Load { size: Size::U32, dst: set, base: config, offset },
            mov(Width::W32, Reg::R1, Operand::Imm(1)),
            Insn::Alu { op: AluOp::Lsh, width: Width::W32, dst: Reg::R1, src: Operand::Reg(Reg::R0) },
            Insn::Alu { op: AluOp::And, width: Width::W32, dst: Reg::R1, src: Operand::Reg(set) },
            Insn::Branch {
                condition: Condition::Eq,
                width: Width::W64,
                left: Reg::R1,
                right: Operand::Imm(0),
                target: last,
            },
        ]);
    }
    insns.extend([mov(Width::W64, Reg::R0, Operand::Imm(XdpAction::Pass as i32)), Insn::Exit]);
    insns
}

/// A function that a program takes the place of. Kernels from 6.13 let a program that changes packets only take the
/// place of a function that does, so it calls a helper that might.
fn place() -> [MachineInsn; 4] {
    let set = |dst, imm| Insn::Alu { op: AluOp::Mov, width: Width::W64, dst, src: Operand::Imm(imm) };
    [
        set(Reg(2), 0),
        Insn::Foreign(pktc_bpf::Foreign::CallNumber { number: ADJUST_TAIL }),
        set(Reg::R0, NO_VERDICT),
        Insn::Exit,
    ]
}

/// The types: `int xdp_dispatcher(struct xdp_md *ctx)`, and `prog0`, `prog1` … alike.
fn describe(programs: usize) -> (Vec<u8>, Vec<TypeId>) {
    let mut btf = Encoder::new();
    let context = context(&mut btf);
    let int = btf.signed_int();
    let places = (0..programs).map(|n| format!("prog{n}"));
    let names = std::iter::once(NAME.to_owned()).chain(places);
    let types = names.map(|name| btf.function(&name, ("ctx", context), int)).collect();
    (btf.finish(), types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_and_every_way_out_ends_where_it_should() {
        for programs in 1..=10 {
            let dispatcher = Dispatcher::new(programs).expect("it can be encoded");
            let slots: Vec<&[u8]> = dispatcher.code.chunks_exact(8).collect();
            let starts: Vec<usize> = dispatcher.functions.iter().map(|[start, _]| *start as usize).collect();
            let calls = slots.iter().enumerate().filter(|(_, slot)| slot[0] == 0x85 && slot[1] >> 4 == 1);
            let targets = calls
                .map(|(at, slot)| at + 1 + i32::from_le_bytes([slot[4], slot[5], slot[6], slot[7]]) as usize);
            assert_eq!(targets.collect::<Vec<_>>(), starts[1..]);
            let ways = slots.iter().enumerate().filter(|(_, slot)| slot[0] == 0x15);
            for (at, slot) in ways {
                let target = at + 1 + i16::from_le_bytes([slot[2], slot[3]]) as usize;
                assert_eq!(slots[target][0], 0x95, "an exit");
            }
            assert_eq!(slots[dispatcher.reference / 8][0], 0x18);
        }
    }

    #[test]
    fn the_only_program_takes_the_place_of_the_dispatcher() {
        let one = Dispatcher::new(1).expect("it can be encoded");
        assert_eq!(one.target(0), one.functions[0][1]);
        let two = Dispatcher::new(2).expect("it can be encoded");
        assert_eq!((two.target(0), two.target(1)), (two.functions[1][1], two.functions[2][1]));
    }
}
