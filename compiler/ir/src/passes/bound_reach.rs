//! Pins the cursor down ([`End::Canon`]) where it comes to a header whose checks might lie farther from where it
//! was pinned down last than an access strategy can follow: a window of so many bytes, or the largest offset that
//! the kernel's verifier accepts.

use cranelift_entity::SecondaryMap;

use crate::cursor::{cursor_places, place_at_end};
use crate::facts::Facts;
use crate::flow::{Arg, Block, End, Flow, Op};

/// See the module's text; `reach` is in bytes.
pub fn bound_reach(flow: &mut Flow, reach: u64) {
    let facts = Facts::new(flow);
    while let Some((block, ok)) = out_of_reach(flow, &facts, reach) {
        let short = first_short(flow, ok);
        flow.blocks[block].end = End::Canon { ok, short };
    }
}

/// A block that moves the cursor to a header with a check that is too far, and where it goes on.
fn out_of_reach(flow: &Flow, facts: &Facts, reach: u64) -> Option<(Block, Block)> {
    let places = cursor_places(flow, facts);
    let leading = predecessors(flow);
    flow.blocks.iter().find_map(|(block, data)| {
        let End::Check { base, bytes, .. } = data.end else { return None };
        let farthest = place_at_end(flow, block, places[block]?, facts).farthest;
        let base = base.map_or(0, |base| facts.of(Arg::Value(base)).most);
        let span = facts.of(bytes).most.saturating_add(base).min(reach);
        if farthest + span <= reach {
            return None;
        }
        let movers = movers(flow, &leading, block);
        movers.into_iter().find_map(|mover| {
            let farthest = place_at_end(flow, mover, places[mover]?, facts).farthest;
            match flow.blocks[mover].end {
                End::Goto(ok) if farthest + span > reach => Some((mover, ok)),
                _ => None,
            }
        })
    })
}

fn predecessors(flow: &Flow) -> SecondaryMap<Block, Vec<Block>> {
    let mut leading: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for (block, data) in flow.blocks.iter() {
        data.end.targets().into_iter().for_each(|target| leading[target].push(block));
    }
    leading
}

/// The blocks that move the cursor to where `block` checks.
fn movers(flow: &Flow, leading: &SecondaryMap<Block, Vec<Block>>, block: Block) -> Vec<Block> {
    let moves = |block: Block| flow.blocks[block].ops.iter().any(|(op, _)| matches!(op, Op::Advance { .. }));
    let pins = |block: Block| matches!(flow.blocks[block].end, End::Canon { .. } | End::Seek { .. });
    let (mut found, mut seen, mut open) = (Vec::new(), vec![block], vec![block]);
    while let Some(block) = open.pop() {
        for &before in &leading[block] {
            if seen.contains(&before) || pins(before) {
                continue;
            }
            seen.push(before);
            if moves(before) {
                found.push(before);
            } else {
                open.push(before);
            }
        }
    }
    found
}

/// Where the first check behind `block` goes when it fails: the header is not there.
fn first_short(flow: &Flow, mut block: Block) -> Block {
    loop {
        match flow.blocks[block].end {
            End::Check { short, .. } | End::Seek { short, .. } | End::Canon { short, .. } => return short,
            End::Goto(next) => block = next,
            End::Branch { otherwise, .. } | End::Masked { otherwise, .. } => block = otherwise,
            End::Finish { .. } => return block,
        }
    }
}
