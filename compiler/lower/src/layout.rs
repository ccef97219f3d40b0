//! The order of blocks: each behind the one that falls through to it, as far as that goes.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

use crate::vcode::{Terminator, VBlock, VBlockId};

/// Sorts the blocks of a function, the entry first, and leaves out those that nothing reaches.
pub(crate) fn order_blocks(mut blocks: PrimaryMap<VBlockId, VBlock>) -> PrimaryMap<VBlockId, VBlock> {
    let order = trace(&blocks);
    let mut renamed: SecondaryMap<VBlockId, VBlockId> = SecondaryMap::with_default(VBlockId::new(0));
    for (new, &old) in order.iter().enumerate() {
        renamed[old] = VBlockId::new(new);
    }
    let mut ordered = PrimaryMap::with_capacity(order.len());
    for old in order {
        let block = &mut blocks[old];
        let (insns, end) = (std::mem::take(&mut block.insns), rename(&block.end, &renamed));
        ordered.push(VBlock { insns, end, end_span: block.end_span, cold: block.cold });
    }
    ordered
}

/// So many instructions of one way come in a row, then what branches off from them: so that the branches of a list of
/// thousands of rules do not all lead behind its end.
const LONGEST_STRETCH: usize = 1000;

/// A stretch of one way that is placed.
struct Stretch {
    /// What branches off from it.
    sides: Vec<VBlockId>,
    /// Where the way goes on.
    rest: Option<VBlockId>,
}

struct Tracer<'a> {
    blocks: &'a PrimaryMap<VBlockId, VBlock>,
    order: Vec<VBlockId>,
    /// Those in `order`, and those where a way goes on later.
    taken: SecondaryMap<VBlockId, bool>,
}

fn trace(blocks: &PrimaryMap<VBlockId, VBlock>) -> Vec<VBlockId> {
    let mut tracer = Tracer { blocks, order: Vec::with_capacity(blocks.len()), taken: SecondaryMap::new() };
    let mut open = vec![tracer.stretch(VBlockId::new(0))];
    while let Some(mut stretch) = open.pop() {
        if let Some(side) = stretch.sides.pop() {
            open.push(stretch);
            if !tracer.taken[side] {
                open.push(tracer.stretch(side));
            }
        } else if let Some(rest) = stretch.rest {
            open.push(tracer.stretch(rest));
        }
    }
    tracer.order
}

impl Tracer<'_> {
    /// Places the way from `start` on.
    fn stretch(&mut self, start: VBlockId) -> Stretch {
        let mut stretch = Stretch { sides: Vec::new(), rest: None };
        let (mut next, mut length) = (Some(start), 0);
        while let Some(block) = next {
            self.taken[block] = true;
            self.order.push(block);
            length += self.blocks[block].insns.len() + 1;
            next = match self.blocks[block].end {
                Terminator::Goto(target) => Some(target),
                Terminator::Branch { taken, fallthrough, .. } => {
                    stretch.sides.push(taken);
                    Some(fallthrough)
                }
                Terminator::Exit(_) => None,
            };
            next = next.filter(|&block| !self.taken[block]);
            if let Some(block) = next.filter(|_| length > LONGEST_STRETCH) {
                self.taken[block] = true;
                stretch.rest = Some(block);
                break;
            }
        }
        stretch
    }
}

fn rename(end: &Terminator, to: &SecondaryMap<VBlockId, VBlockId>) -> Terminator {
    match end {
        Terminator::Goto(target) => Terminator::Goto(to[*target]),
        &Terminator::Branch { condition, width, left, right, taken, fallthrough } => Terminator::Branch {
            condition,
            width,
            left,
            right,
            taken: to[taken],
            fallthrough: to[fallthrough],
        },
        Terminator::Exit(value) => Terminator::Exit(*value),
    }
}
