//! Forgetting on purpose: once a program has many blocks, what is known moves from states into values.
//!
//! Each state that a decision is reached with is a block, and what states tell apart can multiply. Beyond
//! [`BUDGET`] blocks, a way to a decision that has [`FEW_STATES`] already first stores which of the needed items are there (a *bridge*), and then
//! goes on knowing none of them: all such ways meet, and each question recalls its answer from the value. That
//! costs a branch a question, and code that grows with the program instead of with its states.

use cranelift_entity::EntityRef;

use super::Specialiser;
use super::parse::hangs_on;
use super::state::{Pending, State};
use crate::decide::{BitSet, Decision, Step};
use crate::flow::{Block, End};
use crate::rule::{Item, ItemId, Slot, SlotId, Test};

/// So many blocks may be specialised, whatever it is for.
pub(super) const BUDGET: usize = 3000;

/// So many states of one decision are told apart beyond that: a long list of simple rules has few.
const FEW_STATES: u32 = 2;

impl Specialiser<'_> {
    /// The block that goes on with `decision`, knowing `state` (restricted to what matters) or less.
    pub(super) fn generalised(&mut self, decision: Decision, mut state: State) -> Block {
        if self.flow.blocks.len() < BUDGET || self.states[decision] < FEW_STATES {
            // Until then it only keeps ways apart.
            state.stored = BitSet::default();
            return self.specialised(decision, state);
        }
        let key = (decision, state);
        if let Some(&block) = self.known.get(&key) {
            return block;
        }
        let (general, there, absent) = self.forgetting(decision, &key.1);
        if there.is_empty() && absent.is_empty() {
            return self.specialised(decision, general);
        }
        let target = self.specialised(decision, general);
        let bridge = self.bridge(decision, &there, &absent, target);
        self.known.insert(key, bridge);
        bridge
    }

    /// `state` with all that may be forgotten in values, and the items whose values are still to be stored: those
    /// that are there, those that are not.
    fn forgetting(&self, decision: Decision, state: &State) -> (State, Vec<ItemId>, Vec<ItemId>) {
        let asked = match &self.decisions.steps[decision].0 {
            Step::Test { test: Test::Present(item), .. } => Some(*item),
            _ => None,
        };
        let (mut general, mut there, mut absent) = (state.clone(), Vec::new(), Vec::new());
        for item in self.decisions.needs[decision].items.iter().map(ItemId::new) {
            if state.pending.contains(&Pending::Stored { item }) {
                general.stored.insert(item.index());
                continue;
            }
            let present = state.present.contains(item.index());
            let open = state.pending.iter().any(|pending| self.outlook.leads_to_item(pending, item));
            if open && !present || asked == Some(item) {
                continue;
            }
            if !state.stored.contains(item.index()) {
                if present { there.push(item) } else { absent.push(item) }
            }
            general.stored.insert(item.index());
            general.pending.push(Pending::Stored { item });
        }
        general.present = BitSet::default();
        if let Some(item) = asked.filter(|item| state.present.contains(item.index())) {
            general.present.insert(item.index());
        }
        general.pending.sort_by_key(|pending| match pending {
            Pending::Stored { item } => Some(*item),
            Pending::Header { .. }
            | Pending::Follow { .. }
            | Pending::Group { .. }
            | Pending::Options { .. } => None,
        });
        (general, there, absent)
    }

    /// A block that stores what is there, on the way to `target`.
    fn bridge(&mut self, decision: Decision, there: &[ItemId], absent: &[ItemId], target: Block) -> Block {
        let before = self.current;
        let bridge = self.new_block();
        self.current = bridge;
        for (items, flag) in [(there, 1), (absent, 0)] {
            items.iter().for_each(|&item| self.store_flag(item, flag));
        }
        let mut slots: Vec<SlotId> = self.decisions.needs[decision].slots.iter().map(SlotId::new).collect();
        slots.retain(|&slot| absent.iter().any(|&item| self.lacks_value(slot, item)));
        slots.into_iter().for_each(|slot| self.clear_slot(slot));
        self.end(End::Goto(target));
        self.current = before;
        bridge
    }

    /// Whether `slot` has no value where `item` is absent.
    fn lacks_value(&self, slot: SlotId, item: ItemId) -> bool {
        match (&self.outlook.rules.slots[slot], &self.outlook.rules.items[item]) {
            (
                slot @ (Slot::Bytes { .. }
                | Slot::Payload { .. }
                | Slot::OptionLength { .. }
                | Slot::OptionBytes { .. }),
                _,
            ) => hangs_on(slot, item),
            (Slot::HeaderLength(of) | Slot::PayloadLength(of) | Slot::Truncated(of), Item::Header(place)) => {
                of == place
            }
            (Slot::Member { union: of, index, .. }, Item::Member { union, index: at, .. }) => {
                of == union && index.unwrap_or(0) == *at
            }
            (
                Slot::HeaderLength(_) | Slot::PayloadLength(_) | Slot::Truncated(_) | Slot::Member { .. },
                _,
            ) => false,
        }
    }
}
