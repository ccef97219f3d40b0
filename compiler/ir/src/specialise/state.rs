//! What is known of the packet at one point of the program, at compile time.

use pktc_semantics::typed::{HeaderId, Scope, UnionId};

use crate::decide::{BitSet, Needs};
use crate::graph::{Graph, Scoped, edges, entered};
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
    /// Packets inside this one that a header was found in: nothing else opens them.
    pub(super) opened: Vec<Scope>,
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
    Follow { place: Place, next: usize, enclosed: bool, counts: Counts, taken: Vec<Scoped> },
    /// A member of a repeating union was selected and starts at the cursor.
    Group { first: Place, union: UnionId, enclosed: bool, counts: Counts },
    /// A header is present; its option list is to be read.
    Options { place: Place, enclosed: bool },
    /// Whether the item is there is in a value.
    Stored { item: ItemId },
}

impl Pending {
    /// The header that the cursor must stand at to go on with it.
    pub(super) fn at(&self) -> Option<Place> {
        match self {
            Pending::Header { place, .. }
            | Pending::Follow { place, .. }
            | Pending::Options { place, .. } => Some(*place),
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
            Item::Member { scope, union, .. } => self.graph.program.unions[*union]
                .members
                .iter()
                .any(|&member| self.leads_to_header(pending, (*scope, member))),
            Item::Option { place, .. } | Item::BrokenOptions(place) => self.leads_to_options(pending, *place),
        }
    }

    fn leads_to_options(&self, pending: &Pending, wanted: Place) -> bool {
        if let Pending::Options { place, .. } = pending {
            return *place == wanted;
        }
        let holders = &self.graph.header(wanted.header).options_from;
        self.leads_to_place(pending, wanted)
            || holders.iter().any(|&holder| self.leads_to_header(pending, (wanted.scope, holder)))
    }

    fn leads_to_place(&self, pending: &Pending, wanted: Place) -> bool {
        match pending {
            Pending::Header { place, .. } if place.scoped() == wanted.scoped() => {
                wanted.index == place.index || wanted.index > place.index && self.graph.recurs(place.header)
            }
            Pending::Follow { place, .. }
                if place.scoped() == wanted.scoped() && wanted.index <= place.index =>
            {
                false
            }
            other => self.leads_to_header(other, wanted.scoped()),
        }
    }

    /// Whether following `pending` can meet `header`, malformed or not.
    pub(super) fn leads_to_header(&self, pending: &Pending, header: Scoped) -> bool {
        self.heads(pending).into_iter().any(|head| head == header || self.graph.leads(head, header))
    }

    /// Whether following `pending` can open the packet `scope`.
    pub(super) fn can_open(&self, pending: &Pending, scope: Scope) -> bool {
        let inside = pending.at().is_some_and(|place| place.scope == scope);
        let mut heads = self.heads(pending).into_iter();
        !inside && heads.any(|head| head.0 == scope || self.graph.opens(head, scope))
    }

    /// The headers that following `pending` starts with.
    fn heads(&self, pending: &Pending) -> Vec<Scoped> {
        match pending {
            Pending::Header { place, .. } => vec![place.scoped()],
            Pending::Follow { place, next, .. } => {
                let edges = edges(&self.graph.header(place.header).next[*next]);
                edges.into_iter().filter_map(|(_, target)| entered(place.scope, target)).collect()
            }
            Pending::Group { first, union, .. } => {
                let members = &self.graph.program.unions[*union].members;
                members.iter().map(|&member| (first.scope, member)).collect()
            }
            Pending::Options { .. } | Pending::Stored { .. } => Vec::new(),
        }
    }

    /// Whether following `pending` can decide anything that is needed.
    pub(super) fn matters(&self, pending: &Pending, needs: &Needs, opened: &[Scope]) -> bool {
        let scopes = opened.iter().filter(|&&scope| self.can_open(pending, scope));
        let closed: Vec<Scope> = scopes.copied().collect();
        let open = |scope: Scope| {
            !closed.iter().any(|closed| closed.inner <= scope.inner && closed.quoted <= scope.quoted)
        };
        let items = needs.items.iter().map(ItemId::new);
        items
            .filter(|&item| open(self.rules.items[item].scope()))
            .any(|item| self.leads_to_item(pending, item))
            || needs.malformed.iter().any(|suspects| {
                let mut headers = suspects.headers.iter();
                open(suspects.scope)
                    && headers.any(|&header| self.leads_to_header(pending, (suspects.scope, header)))
            })
    }

    /// Forgets what no longer matters, so that more ways meet.
    pub(super) fn restrict(&self, mut state: State, needs: &Needs) -> State {
        state.present = needs.items.both(&state.present);
        state.stored = needs.items.both(&state.stored);
        let State { pending, opened, .. } = &mut state;
        pending.retain(|pending| self.matters(pending, needs, opened));
        let (pending, opened) = (&state.pending, &mut state.opened);
        opened.retain(|&scope| pending.iter().any(|pending| self.can_open(pending, scope)));
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
