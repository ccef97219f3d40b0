//! What a header selects to follow it: one `next` line.

use pktc_bpf::{AluOp, Condition, Width};
use pktc_semantics::exclude_each_other;
use pktc_semantics::typed::{Expr, ExprKind, HeaderId, Next, NextKind, Scope, UnionId};

use super::bounds::{shortest, static_length};
use super::parse::Parsing;
use super::state::{Counts, Pending, State};
use super::{Here, Specialiser};
use crate::flow::{Arg, Block, End, Op, Value};
use crate::graph::{Scoped, edges, entered};
use crate::rule::Place;

/// A `next` line that is being followed.
pub(super) struct Following {
    pub(super) place: Place,
    pub(super) next: usize,
    pub(super) enclosed: bool,
    pub(super) counts: Counts,
    /// What the lines before it chose.
    pub(super) taken: Vec<Scoped>,
}

/// Where a value leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Header(Scoped),
    Group(Scope, UnionId),
}

impl Target {
    /// Which packet it is in.
    fn scope(self) -> Scope {
        match self {
            Target::Header((scope, _)) | Target::Group(scope, _) => scope,
        }
    }
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
            self.own_condition(&mut parsing, when, holds, nothing, here);
            self.current = holds;
        }
        let targets = self.targets(following, here);
        let entries: Vec<_> = targets.iter().map(|_| self.new_block()).collect();
        self.select(&mut parsing, next, &targets, &entries, nothing, here);
        let (loaded, checked) = (parsing.loaded.clone(), parsing.checked);
        for ((_, target), entry) in targets.iter().zip(entries) {
            self.current = entry;
            (parsing.loaded, parsing.checked) = (loaded.clone(), checked);
            if unchecked {
                self.is_valid(&mut parsing, nothing, here);
                if !self.asks_for_all_before(*target, here) {
                    self.is_whole(&mut parsing, nothing);
                }
            }
            self.enter(&mut parsing, following, *target, here);
        }
    }

    /// Whether `target`, where it does not fit, comes to the same as if nothing led to it: then its own check
    /// covers that all before it is there.
    fn asks_for_all_before(&self, target: Target, here: &Here) -> bool {
        match target {
            Target::Header((scope, header)) => {
                self.shortest(scope, header) > 0 && !here.needs.ask_malformed(scope, header)
            }
            Target::Group(..) => false,
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
        here: &Here,
    ) {
        let value = match &next.kind {
            NextKind::Always(_) => {
                return self.end(End::Goto(entries.first().copied().unwrap_or(nothing)));
            }
            NextKind::By { value, .. } => value,
        };
        let number = match value.kind {
            ExprKind::Own(_) => None,
            _ => Some(self.selector(parsing, value, nothing, here)),
        };
        for ((values, _), &entry) in targets.iter().zip(entries) {
            for &wanted in values {
                let other = self.new_block();
                match (&value.kind, number) {
                    (ExprKind::Own(field), None) => self.own_bits(parsing, *field, wanted, entry, other),
                    (_, number) => self.if_kind(number.unwrap_or(self.kind), wanted, entry, other),
                }
                self.current = other;
            }
        }
        self.end(End::Goto(nothing));
    }

    /// What selects, where that is more than one of the header's fields.
    fn selector(&mut self, parsing: &mut Parsing<'_>, value: &Expr, nothing: Block, here: &Here) -> Value {
        self.guard(parsing, value, nothing, here);
        let src = self.own_number(parsing, value);
        self.in_value(src)
    }

    /// Makes sure that the cursor stands at the header that was parsed before.
    pub(super) fn return_to(&mut self, parsing: &mut Parsing<'_>, here: &Here) {
        let values = self.header_values(parsing.place);
        parsing.length = static_length(parsing.header).map_or(Arg::Value(values.length), Arg::Const);
        parsing.checked = match parsing.length {
            Arg::Const(length) if parsing.needs.is_none() => length as u32,
            Arg::Const(_) | Arg::Value(_) => shortest(parsing.header, parsing.needs),
        };
        if here.rest.cursor == Some(parsing.place) {
            return;
        }
        let ok = self.new_block();
        // It was there before, so this cannot fail.
        let short = self.block_for(here.decision, State { cursor: None, ..here.rest.clone() });
        let bytes =
            if parsing.needs.is_some() { Arg::Const(u64::from(parsing.checked)) } else { parsing.length };
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
        for (value, target) in edges(&header.next[following.next]) {
            let Some(to) = entered(following.place.scope, target) else { continue };
            let opens = to.0 != following.place.scope;
            if following.taken.contains(&to) || opens && here.rest.opened.contains(&to.0) {
                continue;
            }
            let group = self.outlook.graph.group(to.1).map(|union| Target::Group(to.0, union));
            let target = group.unwrap_or(Target::Header(to));
            let pending = self.pending_for(target, false, Vec::new());
            if !self.outlook.matters(&pending, &here.needs, &here.rest.opened) {
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
        let Target::Header((_, header)) = target else { return RARE + 1 };
        let unions = self.outlook.graph.program.unions.values().filter(|union| union.repeats.is_none());
        unions
            .filter_map(|union| union.members.iter().position(|&member| member == header))
            .min()
            .unwrap_or(RARE)
    }

    fn pending_for(&self, target: Target, enclosed: bool, counts: Counts) -> Pending {
        match target {
            Target::Header((scope, header)) => {
                let place = Place { scope, header, index: count_of(&counts, header) };
                Pending::Header { place, enclosed, counts }
            }
            Target::Group(scope, union) => {
                let header = self.outlook.graph.program.unions[union].members[0];
                let first = Place { scope, header, index: 0 };
                Pending::Group { first, union, enclosed, counts }
            }
        }
    }

    /// Moves behind the header, to `target`.
    fn enter(&mut self, parsing: &mut Parsing<'_>, following: &Following, target: Target, here: &Here) {
        let mut state = here.rest.clone();
        self.drop_excluded(following, &mut state);
        let opens = target.scope() != following.place.scope;
        // What is in another packet is counted there.
        let counts = if opens { Counts::new() } else { following.counts.clone() };
        if let Target::Header(to) = target {
            self.mark_taken(following, to, &mut state);
            let index = count_of(&counts, to.1);
            if index >= self.outlook.graph.header(to.1).repeats as u8 {
                let place = Place { scope: to.0, header: to.1, index };
                let broken = self.malformed_block(place, &Here { rest: state, ..here.clone() });
                return self.end(End::Goto(broken));
            }
        }
        if let Target::Group(..) = target {
            self.note_kind(parsing, following);
        }
        let content = self.content(parsing, here);
        let enclosed = content.is_some();
        if let Some(content) = content {
            let (op, dst) = (AluOp::Sub, self.left);
            self.op(Op::Alu { op, dst, left: content, right: parsing.length });
        }
        self.op(Op::Advance { by: parsing.length });
        if opens || self.sparing {
            self.pin(here);
        }
        let mut pending = self.pending_for(target, enclosed, counts);
        if let (Target::Header(to), Pending::Header { counts, .. }) = (target, &mut pending) {
            self.count(to.1, counts);
        }
        state.cursor = pending.at();
        state.pending.insert(0, pending);
        let block = self.block_for(here.decision, state);
        self.end(End::Goto(block));
    }

    /// Where one `next` line selected something, others of the header cannot.
    fn drop_excluded(&self, following: &Following, state: &mut State) {
        let graph = self.outlook.graph;
        let lines = &graph.header(following.place.header).next;
        state.pending.retain(|pending| match pending {
            Pending::Follow { place, next, .. } if *place == following.place => {
                !exclude_each_other(graph.program, &lines[following.next], &lines[*next])
            }
            _ => true,
        });
    }

    /// The ways to a packet inside this one, or to any header in a large program, are many: the verifier sees one.
    fn pin(&mut self, here: &Here) {
        let ok = self.new_block();
        let short = self.block_for(here.decision, State { cursor: None, ..here.rest.clone() });
        self.end(End::Canon { ok, short });
        self.current = ok;
    }

    /// Later lines of the same header may choose the same: that is the same instance.
    fn mark_taken(&self, following: &Following, header: Scoped, state: &mut State) {
        for pending in &mut state.pending {
            if let Pending::Follow { place, taken, .. } = pending
                && *place == following.place
                && let Err(at) = taken.binary_search(&header)
            {
                taken.insert(at, header);
            }
        }
    }

    /// Counts `header` if it can come again behind itself, and forgets what cannot come again behind it.
    fn count(&self, header: HeaderId, counts: &mut Counts) {
        let graph = self.outlook.graph;
        if graph.recurs(header) {
            match counts.iter_mut().find(|(of, _)| *of == header) {
                Some((_, count)) => *count += 1,
                None => counts.push((header, 1)),
            }
        }
        let outer = Scope::default();
        counts.retain(|&(of, _)| of == header || graph.leads((outer, header), (outer, of)));
        counts.sort_unstable();
    }

    /// `kind` = what selected the group's first member. The verifier would walk the group once for each value.
    fn note_kind(&mut self, parsing: &mut Parsing<'_>, following: &Following) {
        let NextKind::By { value, .. } = &parsing.header.next[following.next].kind else { return };
        let mask = super::bounds::most(parsing.header, Some(value));
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

fn count_of(counts: &Counts, header: HeaderId) -> u8 {
    counts.iter().find(|(of, _)| *of == header).map_or(0, |&(_, count)| count)
}
