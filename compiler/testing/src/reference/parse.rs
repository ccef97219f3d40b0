//! Parsing a frame by the declared headers: which headers are there, which are malformed, where they lie.
//!
//! Every selector is a branch of its own, so the headers of a frame form a tree; it is kept as a list in which
//! parents stand before their children and earlier branches before later ones. That order decides wherever two
//! branches hold the same header: the first present one is meant. A scope (a tunnel's packet, a quoted one) is
//! opened once, by the first header that is present there.

use std::collections::BTreeSet;
use std::ops::Range;

use pktc_semantics::typed::{
    Expr, ExprKind, Header, HeaderId, Next, NextKind, Program, Scope, Set, SetId, Target, UnionId,
};

use super::expression::{Operands, holds, number};
use super::layout::View;
use super::packet::Packet;
use super::value::Operand;

/// A header that was selected.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Which header.
    pub(crate) header: HeaderId,
    /// In which packet.
    pub(crate) scope: Scope,
    /// What selected it.
    pub(crate) parent: Option<usize>,
    /// How many of its kind stand before it on the way from outside, in the same scope.
    pub(crate) place: usize,
    /// Its first byte in the frame.
    pub(crate) start: usize,
    /// One past the last byte that it may use: the end of what encloses it, cut at the frame's end.
    pub(crate) bound: usize,
    /// Where it and its content lie; none: it is malformed (does not fit, is not valid, or is too deep).
    pub(crate) extent: Option<Extent>,
}

/// How far a present header reaches.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// Bytes of the header; more than there are, where it `needs` fewer.
    pub(crate) length: usize,
    /// What follows it, as far as it claims and the frame holds.
    pub(crate) content: Range<usize>,
    /// Whether it claims more than the frame holds.
    pub(crate) truncated: bool,
}

/// Parses the packet's frame, from `eth` on.
pub(crate) fn parse(packet: &mut Packet<'_>) {
    let bound = packet.frame.len();
    let mut parser = Parser { packet, opened: BTreeSet::new() };
    let root = parser.packet.program.root;
    parser.header(root, Scope::default(), 0..bound, None);
}

struct Parser<'a, 'p> {
    packet: &'a mut Packet<'p>,
    /// Scopes in which a header is present.
    opened: BTreeSet<Scope>,
}

impl<'p> Parser<'_, 'p> {
    /// Reads a selected header and all that it selects; says whether it is present.
    fn header(&mut self, id: HeaderId, scope: Scope, place: Range<usize>, parent: Option<usize>) -> bool {
        let start = place.start.min(place.end);
        let node = Node {
            header: id,
            scope,
            parent,
            place: self.before(parent, scope, &|other| other == id),
            start,
            bound: place.end,
            extent: None,
        };
        let too_deep = self.is_too_deep(&node);
        let index = self.packet.nodes.len();
        self.packet.nodes.push(node);
        if too_deep {
            return false;
        }
        let Some(extent) = self.measure(index) else { return false };
        let content = extent.content.clone();
        self.packet.nodes[index].extent = Some(extent);
        for target in self.targets(index) {
            self.follow(target, scope, content.clone(), index);
        }
        true
    }

    fn follow(&mut self, target: Target, from: Scope, content: Range<usize>, parent: usize) {
        let opened = target.scope.map_or(Some(from), |kind| from.opened(kind));
        let Some(scope) = opened else { return };
        if scope != from && self.opened.contains(&scope) {
            return;
        }
        if self.header(target.header, scope, content, Some(parent)) && scope != from {
            self.opened.insert(scope);
        }
    }

    /// How many headers of a kind stand before, in the same scope.
    fn before(&self, parent: Option<usize>, scope: Scope, kind: &dyn Fn(HeaderId) -> bool) -> usize {
        self.packet.path(parent).filter(|node| node.scope == scope && kind(node.header)).count()
    }

    /// Whether it is one more than `repeats` allows: of its unions, or without such a union, its own.
    fn is_too_deep(&self, node: &Node) -> bool {
        let program = self.packet.program;
        let unions = program.unions.values().filter(|union| union.members.contains(&node.header));
        let limits: Vec<_> = unions.filter_map(|union| union.repeats.map(|limit| (union, limit))).collect();
        if limits.is_empty() {
            return node.place >= program.headers[node.header].repeats as usize;
        }
        limits.iter().any(|(union, limit)| {
            self.before(node.parent, node.scope, &|other| union.members.contains(&other)) >= *limit as usize
        })
    }

    /// Where the header and its content lie; none if it does not fit or is not valid.
    fn measure(&self, index: usize) -> Option<Extent> {
        let node = &self.packet.nodes[index];
        let header = &self.packet.program.headers[node.header];
        let needs = self.packet.program.needs(node.header, node.scope);
        let mut view = self.packet.view(node);
        if view.bytes.len() < needs.unwrap_or(header.fixed_bytes) as usize {
            return None;
        }
        let length = header_length(header, needs.is_some(), &view)?;
        view.length = Some(length);
        let mut own = Declaring { packet: self.packet, scope: node.scope, view, content: 0..0 };
        let claim = claimed_end(node, header, &own);
        let content = node.start.saturating_add(length).min(node.bound);
        let end = claim.map_or(node.bound, |claim| claim.min(node.bound)).max(content);
        own.content = content..end;
        let is_asked = |valid: &Expr| needs.is_none() || !own.view.is_hidden(valid);
        let valid = header.valid.iter().all(|valid| !is_asked(valid) || holds(valid, &own));
        let truncated = claim.is_some_and(|claim| claim > self.packet.frame.len());
        valid.then_some(Extent { length, content: content..end, truncated })
    }

    /// What a present header selects, in order of its `next` lines, each header once.
    fn targets(&self, index: usize) -> Vec<Target> {
        let node = &self.packet.nodes[index];
        let header = &self.packet.program.headers[node.header];
        let own = self.packet.declaring(node);
        let mut targets = Vec::new();
        for target in header.next.iter().filter_map(|next| selected(next, &own)) {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        targets
    }
}

/// A header that says it is longer is malformed.
const LONGEST_HEADER: usize = 0xffff;

/// The header's length: none if it is below its unconditional fields, larger than any header, or beyond what there is, where it may not be
/// cut.
fn header_length(header: &Header, may_be_cut: bool, view: &View<'_>) -> Option<usize> {
    let hidden = header.length.as_ref().is_some_and(|length| view.is_hidden(length));
    if may_be_cut && hidden {
        return Some(view.bytes.len());
    }
    let length = view.declared_length()?;
    let fits = may_be_cut || length <= view.bytes.len();
    let range = header.fixed_bytes as usize..=LONGEST_HEADER;
    (fits && range.contains(&length)).then_some(length)
}

/// Where a selected header ends in the frame: a malformed one as far as it says itself, and was read.
pub(crate) fn header_end(packet: &Packet<'_>, node: &Node) -> usize {
    if let Some(extent) = &node.extent {
        return extent.content.start;
    }
    let fixed = packet.program.headers[node.header].fixed_bytes as usize;
    let length = packet.view(node).declared_length().unwrap_or(fixed).max(fixed);
    node.start.saturating_add(length).min(node.bound)
}

/// The end of the content that the header claims, perhaps beyond the frame; none: it claims nothing.
fn claimed_end(node: &Node, header: &Header, own: &Declaring<'_>) -> Option<usize> {
    let claim = header.claims.iter().find(|claim| claim.when.as_ref().is_none_or(|when| holds(when, own)))?;
    let bytes = number(&claim.value, own)?;
    Some(node.start.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX)))
}

fn selected(next: &Next, own: &Declaring<'_>) -> Option<Target> {
    if !next.when.as_ref().is_none_or(|when| holds(when, own)) {
        return None;
    }
    match &next.kind {
        NextKind::Always(target) => Some(*target),
        NextKind::By { value, edges } => edges.get(&number(value, own)?).copied(),
    }
}

/// What the expressions of a header's declaration read: its own fields and payload, and what stands before it.
pub(crate) struct Declaring<'a> {
    pub(crate) packet: &'a Packet<'a>,
    pub(crate) scope: Scope,
    pub(crate) view: View<'a>,
    pub(crate) content: Range<usize>,
}

impl Operands for Declaring<'_> {
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr.kind {
            ExprKind::Own(field) => self.view.field(field),
            ExprKind::OwnPayload { from, to } => self.packet.slice(&self.content, from, to, &expr.ty),
            _ => self.packet.operand(expr, self.scope),
        }
    }

    fn set(&self, id: SetId) -> Option<&Set> {
        self.packet.program.sets.get(id)
    }
}

/// The place of a node among the members of a union that stand before it.
pub(crate) fn place_in_union(packet: &Packet<'_>, node: &Node, program: &Program, union: UnionId) -> usize {
    let members = &program.unions[union].members;
    packet
        .path(node.parent)
        .filter(|other| other.scope == node.scope && members.contains(&other.header))
        .count()
}
