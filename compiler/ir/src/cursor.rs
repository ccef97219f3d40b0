//! Where the cursor may stand, at each block: how far from where it was last pinned down, and on which byte of four.

use cranelift_entity::{EntityRef, SecondaryMap};

use crate::facts::Facts;
use crate::flow::{Arg, Block, End, Flow, Op};

/// What is known of the cursor's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// At most so many bytes behind the packet's start, or behind where [`End::Canon`] or [`End::Seek`] left it.
    pub farthest: u64,
    /// 4, 2 or 1: the remainder is known for that.
    pub modulus: u32,
    /// The distance from the packet's start, modulo that.
    pub remainder: u32,
}

impl Place {
    const START: Place = Place { farthest: 0, modulus: 4, remainder: 0 };
    /// Farther than any packet reaches.
    const FAR: u64 = 1 << 20;

    /// Moves on.
    #[must_use]
    pub fn advanced(self, by: Arg, facts: &Facts) -> Place {
        let fact = facts.of(by);
        let farthest = self.farthest.saturating_add(fact.most).min(Self::FAR);
        match by {
            Arg::Const(by) => {
                Place { farthest, remainder: (self.remainder + by as u32) % self.modulus, ..self }
            }
            Arg::Value(_) => Place { farthest, ..self }.coarsened(1 << fact.zeros.min(2)),
        }
    }

    fn coarsened(self, modulus: u32) -> Place {
        let modulus = self.modulus.min(modulus);
        Place { modulus, remainder: self.remainder % modulus, ..self }
    }

    fn met(self, other: Place) -> Place {
        let farthest = self.farthest.max(other.farthest);
        let modulus = self.modulus.min(other.modulus);
        let modulus = [4, 2, 1]
            .into_iter()
            .find(|&m| m <= modulus && self.remainder % m == other.remainder % m)
            .unwrap_or(1);
        Place { farthest, ..self }.coarsened(modulus)
    }
}

/// The cursor's place where each block starts; `None` for blocks that nothing reaches.
#[must_use]
pub fn cursor_places(flow: &Flow, facts: &Facts) -> SecondaryMap<Block, Option<Place>> {
    let mut places: SecondaryMap<Block, Option<Place>> = SecondaryMap::new();
    places[Block::new(0)] = Some(Place::START);
    let mut open = vec![Block::new(0)];
    while let Some(block) = open.pop() {
        let Some(start) = places[block] else { continue };
        let data = &flow.blocks[block];
        let end = place_at_end(flow, block, start, facts);
        for target in data.end.targets() {
            let there = behind(&data.end, target, end);
            let merged = places[target].map_or(there, |before| before.met(there));
            if places[target] != Some(merged) {
                places[target] = Some(merged);
                open.push(target);
            }
        }
    }
    places
}

/// The cursor's place where `block` ends, if it starts at `start`.
#[must_use]
pub fn place_at_end(flow: &Flow, block: Block, start: Place, facts: &Facts) -> Place {
    flow.blocks[block].ops.iter().fold(start, |place, (op, _)| match op {
        Op::Advance { by } => place.advanced(*by, facts),
        _ => place,
    })
}

fn behind(end: &End, target: Block, place: Place) -> Place {
    match *end {
        End::Canon { ok, .. } if ok == target => Place { farthest: 0, ..place },
        // A saved position says nothing of its remainder.
        End::Seek { .. } => Place { farthest: 0, modulus: 1, remainder: 0 },
        _ => place,
    }
}
