//! Long programs that the kernel's x86 JIT translates.
//!
//! The JIT goes over a program again and again until its length no longer changes: jumps shrink to the form with one
//! byte as what they jump over shrinks. Each pass sees the addresses of this pass behind a jump, and those of the
//! last pass before it, so a short jump *back* may look longer in one pass than in the one before, and grow again.
//! From the sixteenth pass on the JIT takes it that nothing grows any more, and refuses the program where something
//! does ("unexpected jmp_cond padding", `ENOTSUPP`; 5.12 to 6.18). Only long programs come that far.
//!
//! Nothing grows where each jump back is certainly long, or leads to the beginning, before which nothing changes its
//! length. So what short jumps back want comes to stand there: a step on the way to each head of a short loop, and
//! one `exit`, which the JIT takes for the target of all the others.
//!
//! ```text
//! goto entry; r0 = VERDICT; exit; goto loop_1; goto loop_2; …; entry: …
//! ```

use cranelift_entity::SecondaryMap;
use pktc_lower::vcode::VBlockId;

use crate::emit::{End, MachineBlock, MachineFunction};
use crate::graph::entry;
use crate::layout::Row;

/// Programs up to this many instructions settle before the sixteenth pass.
pub(crate) const SETTLES: usize = 4096;

/// Jumps over this many instructions are long in any pass: the shortest are translated to two bytes each, and a
/// short jump goes 128 bytes back.
const CERTAINLY_FAR: usize = 80;

/// The order of the row with the short jumps back of a long program led over its beginning.
///
/// `row`: what `order` comes to.
pub(crate) fn steady(function: &mut MachineFunction, order: Vec<VBlockId>, row: &Row) -> Vec<VBlockId> {
    let start_span = function.blocks[entry()].end_span;
    let jump = |target| MachineBlock {
        insns: Vec::new(),
        end: End::Goto(target),
        end_span: start_span,
        cold: false,
    };
    let mut front = vec![function.blocks.push(jump(entry()))];
    let exit = shortest_exit(function, &order);
    front.extend(exit);
    let mut steps: SecondaryMap<VBlockId, Option<VBlockId>> = SecondaryMap::new();
    for (position, &id) in order.iter().enumerate() {
        let next = order.get(position + 1).map_or(row.items.len(), |&next| row.starts[next]);
        let mut end = function.blocks[id].end;
        end.redirect(|target| {
            let start = row.starts[target];
            if start >= next || next - start >= CERTAINLY_FAR {
                return target;
            }
            *steps[target].get_or_insert_with(|| {
                let step = function.blocks.push(jump(target));
                front.push(step);
                step
            })
        });
        function.blocks[id].end = end;
    }
    front.extend(order.into_iter().filter(|&id| Some(id) != exit));
    front
}

/// The shortest block that ends the program.
fn shortest_exit(function: &MachineFunction, order: &[VBlockId]) -> Option<VBlockId> {
    let ends = order.iter().copied().filter(|&id| id != entry() && function.blocks[id].end == End::Exit);
    ends.min_by_key(|&id| function.blocks[id].insns.len())
}
