//! What a header selects to follow it: one `next` line.

use pktc_bpf::{AluOp, Condition, Width};
use pktc_semantics::typed::{ExprKind, HeaderId, Next, NextKind, Scope, UnionId};

use super::parse::{Parsing, shortest, static_length};
use super::state::{Counts, Pending, State};
use super::{Here, Specialiser};
use crate::flow::{Arg, Block, End, Op, Value};
use crate::graph::edges;
use crate::rule::Place;

/// A `next` line that is being followed.
pub(super) struct Following {
    pub(super) place: Place,
    pub(super) next: usize,
    pub(super) enclosed: bool,
    pub(super) counts: Counts,
    /// What the lines before it chose.
    pub(super) taken: Vec<HeaderId>,
}

/// Where a value leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Header(HeaderId),
    Group(UnionId),
}

impl Specialiser<'_> {
    pub(super) fn follow(&mut self, following: Following, here: &Here) {
        let mut parsing = self.parsing(following.place, following.enclosed, here);
        self.return_to(&mut parsing, here);
        let mut here = here.clone();
        here.rest.cursor = Some(following.place);
        self.dispatch(parsing, &following, false, &here);
    }

    /// Goes where the header's `next` line leads. `unchecked`: that the header is valid and whole is still to be
    /// asked; if it is not, that comes to the same as if it led nowhere.
    pub(super) fn dispatch(
        &mut self,
        mut parsing: Parsing<'_>,
        following: &Following,
        unchecked: bool,
        here: &Here,
    ) {
        let next = &parsing.header.next[following.next];
        let nothing = self.block_for(here.decision, here.rest.clone());
        if let Some(when) = &next.when {
            let holds = self.new_block();
            self.own_condition(&mut parsing, when, holds, nothing);
            self.current = holds;
        }
        let targets = self.targets(following, here);
        let entries: Vec<_> = targets.iter().map(|_| self.new_block()).collect();
        self.select(&mut parsing, next, &targets, &entries, nothing);
        let (loaded, checked) = (parsing.loaded.clone(), parsing.checked);
        for ((_, target), entry) in targets.iter().zip(entries) {
            self.current = entry;
            (parsing.loaded, parsing.checked) = (loaded.clone(), checked);
            if unchecked {
                self.is_valid(&mut parsing, nothing);
                if !self.asks_for_all_before(*target, following.place.scope, here) {
                    self.is_whole(&mut parsing, nothing);
                }
            }
            self.enter(&mut parsing, following, *target, here);
        }
    }

    /// Whether `target`, where it does not fit, comes to the same as if nothing led to it: then its own check
    /// covers that all before it is there.
    fn asks_for_all_before(&self, target: Target, scope: Scope, here: &Here) -> bool {
        match target {
            Target::Header(header) => {
                shortest(self.outlook.graph.header(header)) > 0 && !here.needs.ask_malformed(scope, header)
            }
            Target::Group(_) => false,
        }
    }

    /// Branches to the entry of whatever is selected.
    fn select(
        &mut self,
        parsing: &mut Parsing<'_>,
        next: &Next,
        targets: &[(Vec<u64>, Target)],
        entries: &[Block],
        nothing: Block,
    ) {
        let field = match &next.kind {
            NextKind::Always(_) => {
                return self.end(End::Goto(entries.first().copied().unwrap_or(nothing)));
            }
            NextKind::By { value, .. } => match value.kind {
                ExprKind::Own(field) => field,
                _ => {
                    self.not_yet("a header that is selected by more than one field");
                    return self.end(End::Goto(nothing));
                }
            },
        };
        for ((values, _), &entry) in targets.iter().zip(entries) {
            for &value in values {
                let other = self.new_block();
                self.own_bits(parsing, field, value, entry, other);
                self.current = other;
            }
        }
        self.end(End::Goto(nothing));
    }

    /// Makes sure that the cursor stands at the header that was parsed before.
    fn return_to(&mut self, parsing: &mut Parsing<'_>, here: &Here) {
        let values = self.header_values(parsing.place);
        parsing.length = static_length(parsing.header).map_or(Arg::Value(values.length), Arg::Const);
        parsing.checked = match parsing.length {
            Arg::Const(length) if parsing.header.needs.is_none() => length as u32,
            Arg::Const(_) | Arg::Value(_) => shortest(parsing.header),
        };
        if here.rest.cursor == Some(parsing.place) {
            return;
        }
        let ok = self.new_block();
        // It was there before, so this cannot fail.
        let short = self.block_for(here.decision, State { cursor: None, ..here.rest.clone() });
        let bytes = if parsing.header.needs.is_some() {
            Arg::Const(u64::from(parsing.checked))
        } else {
            parsing.length
        };
        self.end(End::Seek { position: values.position, bytes, ok, short });
        self.current = ok;
        if let Arg::Value(_) = bytes {
            let (ok, bytes) = (self.new_block(), Arg::Const(u64::from(parsing.checked)));
            self.end(End::Check { base: None, bytes, ok, short });
            self.current = ok;
        }
        if parsing.enclosed {
            self.op(Op::Copy { dst: self.left, src: Arg::Value(values.left) });
        }
    }

    /// The values that lead to something that matters, by where they lead.
    fn targets(&self, following: &Following, here: &Here) -> Vec<(Vec<u64>, Target)> {
        let header = self.outlook.graph.header(following.place.header);
        let mut targets: Vec<(Vec<u64>, Target)> = Vec::new();
        for (value, to) in edges(&header.next[following.next]) {
            if following.taken.contains(&to) {
                continue;
            }
            let target = self.outlook.graph.group(to).map_or(Target::Header(to), Target::Group);
            let pending = self.pending_for(following.place, target, false, Vec::new());
            if !self.outlook.matters(&pending, &here.needs) {
                continue;
            }
            match targets.iter_mut().find(|(_, known)| *known == target) {
                Some((values, _)) => values.extend(value),
                None => targets.push((value.into_iter().collect(), target)),
            }
        }
        targets.sort_by_key(|(_, target)| self.rarity(*target));
        targets
    }

    /// What to ask for first: the members of unions, in their order (`ip`, `l4`), are what most packets have;
    /// groups hold what few have.
    fn rarity(&self, target: Target) -> usize {
        /// More than a union has members.
        const RARE: usize = 1000;
        let Target::Header(header) = target else { return RARE + 1 };
        let unions = self.outlook.graph.program.unions.values().filter(|union| union.repeats.is_none());
        unions
            .filter_map(|union| union.members.iter().position(|&member| member == header))
            .min()
            .unwrap_or(RARE)
    }

    fn pending_for(&self, parent: Place, target: Target, enclosed: bool, counts: Counts) -> Pending {
        match target {
            Target::Header(header) => {
                let place = Place { scope: parent.scope, header, index: count_of(&counts, header) };
                Pending::Header { place, enclosed, counts }
            }
            Target::Group(union) => {
                let header = self.outlook.graph.program.unions[union].members[0];
                let first = Place { scope: parent.scope, header, index: 0 };
                Pending::Group { first, union, enclosed, counts }
            }
        }
    }

    /// Moves behind the header, to `target`.
    fn enter(&mut self, parsing: &mut Parsing<'_>, following: &Following, target: Target, here: &Here) {
        let mut state = here.rest.clone();
        if let Target::Header(header) = target {
            self.mark_taken(following, header, &mut state);
            let too_deep =
                count_of(&following.counts, header) >= self.outlook.graph.header(header).repeats as u8;
            if too_deep {
                let index = count_of(&following.counts, header);
                let place = Place { scope: following.place.scope, header, index };
                let broken = self.malformed_block(place, &Here { rest: state, ..copy_of(here) });
                return self.end(End::Goto(broken));
            }
        }
        if let Target::Group(_) = target {
            self.note_kind(parsing, following);
        }
        let content = self.content(parsing);
        let enclosed = content.is_some();
        if let Some(content) = content {
            let (op, dst) = (AluOp::Sub, self.left);
            self.op(Op::Alu { op, dst, left: content, right: parsing.length });
        }
        self.op(Op::Advance { by: parsing.length });
        let counts = self.counts_behind(following, target);
        let pending = match target {
            Target::Header(header) => {
                let index = count_of(&following.counts, header);
                let place = Place { scope: following.place.scope, header, index };
                Pending::Header { place, enclosed, counts }
            }
            Target::Group(_) => self.pending_for(following.place, target, enclosed, counts),
        };
        state.cursor = pending.at();
        state.pending.insert(0, pending);
        let block = self.block_for(here.decision, state);
        self.end(End::Goto(block));
    }

    /// Later lines of the same header may choose the same: that is the same instance.
    fn mark_taken(&self, following: &Following, header: HeaderId, state: &mut State) {
        for pending in &mut state.pending {
            if let Pending::Follow { place, taken, .. } = pending
                && *place == following.place
                && let Err(at) = taken.binary_search(&header)
            {
                taken.insert(at, header);
            }
        }
    }

    /// Counts `target` if it can come again behind itself.
    fn counts_behind(&self, following: &Following, target: Target) -> Counts {
        let mut counts = following.counts.clone();
        if let Target::Header(header) = target {
            if self.outlook.graph.follows(header, header) {
                match counts.iter_mut().find(|(of, _)| *of == header) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((header, 1)),
                }
            }
            counts.retain(|&(of, _)| of == header || self.outlook.graph.follows(header, of));
            counts.sort_unstable();
        }
        counts
    }

    /// `kind` = what selected the group's first member. The verifier would walk the group once for each value.
    fn note_kind(&mut self, parsing: &mut Parsing<'_>, following: &Following) {
        let NextKind::By { value, .. } = &parsing.header.next[following.next].kind else { return };
        let mask = super::number::most(parsing.header, Some(value));
        let src = self.own_number(parsing, value);
        self.op(Op::Forget { dst: self.kind, src, mask });
        for &(offset, size, slot) in &parsing.wanted {
            if parsing.loaded.has(offset, size) {
                self.unlink_slot(slot);
            }
        }
    }

    /// Branches by `kind == value`.
    pub(super) fn if_kind(&mut self, kind: Value, value: u64, then: Block, otherwise: Block) {
        let (condition, width) = (Condition::Eq, Width::W32);
        self.end(End::Branch { condition, width, left: kind, right: Arg::Const(value), then, otherwise });
    }
}

fn copy_of(here: &Here) -> Here {
    Here { decision: here.decision, needs: here.needs.clone(), rest: State::default() }
}

fn count_of(counts: &Counts, header: HeaderId) -> u8 {
    counts.iter().find(|(of, _)| *of == header).map_or(0, |&(_, count)| count)
}
