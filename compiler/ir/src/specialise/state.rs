//! What is known of the packet at one point of the program, at compile time.

use pktc_semantics::typed::{HeaderId, UnionId};

use crate::decide::{BitSet, Needs};
use crate::graph::Graph;
use crate::rule::{Item, ItemId, Place, RuleProgram};
use cranelift_entity::EntityRef;

/// Knowledge: an item that is neither present nor reachable by what is pending is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// What is there.
    pub(super) present: BitSet,
    /// Items whose presence is in a value, whether it is known here or not.
    pub(super) stored: BitSet,
    /// Headers that are malformed, sorted; one stands for all that no question tells apart.
    pub(super) malformed: Vec<Place>,
    /// What is still to be parsed.
    pub(super) pending: Vec<Pending>,
    /// The header at whose start the cursor stands, while something pending wants to know.
    pub(super) cursor: Option<Place>,
    /// Whether it was told what the packet claims ([`crate::flow::Op::Claims`]).
    pub(super) claimed: bool,
}

/// How often headers that can follow themselves have been met, so that their `repeats` end the parse.
pub(super) type Counts = Vec<(HeaderId, u8)>;

/// Something still to be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pending {
    /// A header was selected and starts at the cursor.
    Header { place: Place, enclosed: bool, counts: Counts },
    /// A header is present; one of its `next` lines is to be followed. `taken`: what the lines before it chose.
    Follow { place: Place, next: usize, enclosed: bool, counts: Counts, taken: Vec<HeaderId> },
    /// A member of a repeating union was selected and starts at the cursor.
    Group { first: Place, union: UnionId, enclosed: bool, counts: Counts },
    /// Whether the item is there is in a value.
    Stored { item: ItemId },
}

impl Pending {
    /// The header that the cursor must stand at to go on with it.
    pub(super) fn at(&self) -> Option<Place> {
        match self {
            Pending::Header { place, .. } | Pending::Follow { place, .. } => Some(*place),
            Pending::Group { first, .. } => Some(*first),
            Pending::Stored { .. } => None,
        }
    }
}

/// Answers what can still be learnt from what is pending.
pub(super) struct Outlook<'a> {
    pub(super) graph: &'a Graph<'a>,
    pub(super) rules: &'a RuleProgram,
}

impl Outlook<'_> {
    /// Whether following `pending` can decide `item`.
    pub(super) fn leads_to_item(&self, pending: &Pending, item: ItemId) -> bool {
        if let Pending::Stored { item: stored } = pending {
            return *stored == item;
        }
        match &self.rules.items[item] {
            Item::Header(place) => self.leads_to_place(pending, *place),
            Item::Part(part) => self.leads_to_place(pending, part.place),
            Item::Member { union, .. } => self.graph.program.unions[*union]
                .members
                .iter()
                .any(|&member| self.leads_to_header(pending, member)),
        }
    }

    fn leads_to_place(&self, pending: &Pending, wanted: Place) -> bool {
        match pending {
            Pending::Header { place, .. } if place.header == wanted.header => {
                wanted.index == place.index
                    || wanted.index > place.index && self.graph.follows(place.header, place.header)
            }
            Pending::Follow { place, .. } if place.header == wanted.header && wanted.index <= place.index => {
                false
            }
            other => self.leads_to_header(other, wanted.header),
        }
    }

    /// Whether following `pending` can meet `header`, malformed or not.
    pub(super) fn leads_to_header(&self, pending: &Pending, header: HeaderId) -> bool {
        match pending {
            Pending::Header { place, .. } => {
                place.header == header || self.graph.follows(place.header, header)
            }
            Pending::Follow { place, next, .. } => {
                crate::graph::edges(&self.graph.header(place.header).next[*next])
                    .into_iter()
                    .any(|(_, target)| target == header || self.graph.follows(target, header))
            }
            Pending::Group { union, .. } => {
                let members = &self.graph.program.unions[*union].members;
                members.iter().any(|&member| member == header || self.graph.follows(member, header))
            }
            Pending::Stored { .. } => false,
        }
    }

    /// Whether following `pending` can decide anything that is needed.
    pub(super) fn matters(&self, pending: &Pending, needs: &Needs) -> bool {
        needs.items.iter().any(|item| self.leads_to_item(pending, ItemId::new(item)))
            || needs
                .malformed
                .iter()
                .flat_map(|suspects| &suspects.headers)
                .any(|&header| self.leads_to_header(pending, header))
    }

    /// Forgets what no longer matters, so that more ways meet.
    pub(super) fn restrict(&self, mut state: State, needs: &Needs) -> State {
        state.present = needs.items.both(&state.present);
        state.stored = needs.items.both(&state.stored);
        state.pending.retain(|pending| self.matters(pending, needs));
        state.malformed = state.malformed.iter().filter_map(|&place| representative(place, needs)).collect();
        state.malformed.sort_unstable();
        state.malformed.dedup();
        if state.pending.iter().all(|pending| pending.at().is_none()) {
            state.cursor = None;
        }
        state
    }
}

/// The first place that every question in `needs` treats like `place`; `None` if none asks for it.
pub(super) fn representative(place: Place, needs: &Needs) -> Option<Place> {
    let asked = |place: Place| -> Vec<bool> {
        needs.malformed.iter().map(|suspects| suspects.include(place)).collect()
    };
    let pattern = asked(place);
    let of_packet = needs.malformed.iter().filter(|suspects| suspects.scope == place.scope);
    let candidates = of_packet.flat_map(|suspects| {
        let indices = [0, place.index].into_iter().chain(suspects.index);
        let at = move |header| indices.clone().map(move |index| Place { scope: place.scope, header, index });
        suspects.headers.iter().copied().flat_map(at)
    });
    candidates.filter(|&candidate| asked(candidate) == pattern).min().filter(|_| pattern.contains(&true))
}
