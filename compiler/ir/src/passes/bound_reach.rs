//! Pins the cursor down ([`End::Canon`]) where it comes to a header whose checks might lie farther from where it
//! was pinned down last than an access strategy can follow: a window of so many bytes, or the largest offset that
//! the kernel's verifier accepts.

use cranelift_entity::{EntityRef, SecondaryMap};

use crate::cursor::{cursor_places, place_at_end};
use crate::facts::Facts;
use crate::flow::{Arg, Block, BlockData, End, Flow, Op};

/// See the module's text; `reach` is in bytes.
pub fn bound_reach(flow: &mut Flow, reach: u64) {
    let facts = Facts::new(flow);
    while let Some(block) = out_of_reach(flow, &facts, reach) {
        pin_before_check(flow, block);
    }
}

/// Pins the cursor down before the check that `block` ends with: what lies too far fails like what is not there.
fn pin_before_check(flow: &mut Flow, block: Block) {
    let data = &flow.blocks[block];
    let (end, end_span) = (data.end.clone(), data.end_span);
    let End::Check { short, .. } = end else { return };
    let ok = flow.blocks.push(BlockData { ops: Vec::new(), end, end_span });
    flow.blocks[block].end = End::Canon { ok, short };
}

/// The first check of a header with a check that is too far.
fn out_of_reach(flow: &Flow, facts: &Facts, reach: u64) -> Option<Block> {
    let places = cursor_places(flow, facts);
    let leading = flow.predecessors();
    let first = first_checks(flow);
    flow.blocks.iter().find_map(|(block, data)| {
        let End::Check { base, bytes, .. } = data.end else { return None };
        let farthest = |block: Block| Some(place_at_end(flow, block, places[block]?, facts).farthest);
        let base = base.map_or(0, |base| facts.of(Arg::Value(base)).most);
        let span = facts.of(bytes).most.saturating_add(base).min(reach);
        if farthest(block)? + span <= reach {
            return None;
        }
        let mut checks = checks_before(flow, &leading, block).into_iter();
        checks.find(|&check| first[check] && farthest(check).is_some_and(|farthest| farthest + span > reach))
    })
}

fn moves(flow: &Flow, block: Block) -> bool {
    flow.blocks[block].ops.iter().any(|(op, _)| matches!(op, Op::Advance { .. }))
}

/// The blocks that end with a check at the place where `block` checks, itself among them.
fn checks_before(flow: &Flow, leading: &SecondaryMap<Block, Vec<Block>>, block: Block) -> Vec<Block> {
    let pins = |block: Block| matches!(flow.blocks[block].end, End::Canon { .. } | End::Seek { .. });
    let (mut found, mut seen, mut open) = (vec![block], vec![block], vec![block]);
    while let Some(block) = open.pop() {
        if moves(flow, block) {
            continue;
        }
        for &before in &leading[block] {
            if seen.contains(&before) || pins(before) {
                continue;
            }
            seen.push(before);
            open.push(before);
            if matches!(flow.blocks[before].end, End::Check { .. }) {
                found.push(before);
            }
        }
    }
    found
}

/// Of each block: whether nothing was checked before its end since the cursor moved, on no way to it.
fn first_checks(flow: &Flow) -> SecondaryMap<Block, bool> {
    let mut entry: SecondaryMap<Block, Option<bool>> = SecondaryMap::new();
    let mut at_end: SecondaryMap<Block, bool> = SecondaryMap::new();
    entry[Block::new(0)] = Some(true);
    let mut open = vec![Block::new(0)];
    while let Some(block) = open.pop() {
        let first = moves(flow, block) || entry[block] == Some(true);
        at_end[block] = first;
        for target in flow.blocks[block].end.targets() {
            let after = match flow.blocks[block].end {
                End::Check { ok, .. } | End::Seek { ok, .. } if ok == target => false,
                End::Canon { .. } | End::Seek { .. } => true,
                _ => first,
            };
            let merged = after && entry[target] != Some(false);
            if entry[target] != Some(merged) {
                entry[target] = Some(merged);
                open.push(target);
            }
        }
    }
    at_end
}
