//! The parse graph: what a header's presence says about others, and which headers bare `malformed` asks.
//!
//! What is certain where a header is present is what is certain on *every* way to it: the greatest solution of
//! `certain(h) = {h, its unions} ∪ ⋂ certain(parent)`, found by starting from "everything" and taking away.

use hashbrown::HashMap;
use std::collections::BTreeSet;

use cranelift_entity::EntityRef;
use pktc_syntax::ast;

use crate::checker::Checker;
use crate::structure::walk;
use crate::typed::{
    BytesOf, Expr, ExprKind, Header, HeaderId, Malformed, NextKind, OptionRef, Program, Target, Type,
    UnionFieldKind, UnionId,
};

/// What is certain where a header is present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Implied {
    /// Headers, itself among them.
    pub(crate) headers: BTreeSet<HeaderId>,
    /// Unions.
    pub(crate) unions: BTreeSet<UnionId>,
    /// Union fields with a `when` that presence proves: `tcp` proves `ip.proto`.
    pub(crate) fields: BTreeSet<(UnionId, usize)>,
}

impl Implied {
    fn intersect(&mut self, other: &Implied) {
        self.headers.retain(|it| other.headers.contains(it));
        self.unions.retain(|it| other.unions.contains(it));
        self.fields.retain(|it| other.fields.contains(it));
    }
}

/// What presence implies.
#[derive(Default)]
pub(crate) struct Graph {
    /// In the outer packet, which starts with `eth`.
    outer: HashMap<HeaderId, Implied>,
    /// In a tunnel's or a quoted packet, which may start with any header that an edge into one leads to.
    nested: HashMap<HeaderId, Implied>,
    /// Which headers open a tunnel's packet, and which a quoted one.
    openers: HashMap<ast::Scope, Vec<HeaderId>>,
}

impl Graph {
    /// What is certain in a packet where `header` is present in it; nothing else for one that no edge leads to.
    pub(crate) fn of_header(&self, header: HeaderId, is_nested: bool) -> Implied {
        let implied = if is_nested { &self.nested } else { &self.outer };
        implied.get(&header).cloned().unwrap_or_default()
    }

    /// What is certain in a packet where one of its headers opens a packet of that kind.
    pub(crate) fn of_opener(&self, kind: ast::Scope, is_nested: bool) -> Implied {
        let openers = self.openers.get(&kind).into_iter().flatten();
        common(openers.map(|&opener| self.of_header(opener, is_nested)))
    }

    /// What is certain where one of a union's members is present.
    pub(crate) fn of_union(&self, program: &Program, union: UnionId, is_nested: bool) -> Implied {
        let members = program.unions[union].members.iter();
        let mut all = common(members.map(|&member| self.of_header(member, is_nested)));
        all.unions.insert(union);
        all
    }
}

/// What all have in common.
fn common(mut all: impl Iterator<Item = Implied>) -> Implied {
    let mut common = all.next().unwrap_or_default();
    all.for_each(|other| common.intersect(&other));
    common
}

impl Checker<'_> {
    /// Builds what later steps ask of the parse graph.
    pub(crate) fn build_graph(&mut self) {
        let root = self.program.headers.iter().find(|(_, header)| header.name == "eth");
        if let Some((root, _)) = root {
            self.program.root = root;
            let transport = self.program.unions.values().find(|union| union.name == "l4");
            self.program.transport = transport.map_or_else(Vec::new, |union| union.members.clone());
            let (inner, quoted) =
                (entries(&self.program, ast::Scope::Inner), entries(&self.program, ast::Scope::Quoted));
            self.program.packet_headers = packet_headers(&self.program, &[root]);
            self.program.inner_headers = packet_headers(&self.program, &inner);
            self.program.quoted_headers = packet_headers(&self.program, &quoted);
            self.graph = Graph {
                outer: implied(&self.program, &[root]),
                nested: implied(&self.program, &[inner, quoted].concat()),
                openers: [ast::Scope::Inner, ast::Scope::Quoted]
                    .map(|kind| (kind, openers(&self.program, kind)))
                    .into(),
            };
        }
    }
}

/// The edges out of a header, with the enum of the selector where there is one.
pub(crate) fn edges(header: &Header) -> impl Iterator<Item = (Target, Option<&Type>)> {
    header.next.iter().flat_map(|next| {
        let (always, by) = match &next.kind {
            NextKind::Always(target) => (Some((*target, None)), None),
            NextKind::By { value, edges } => {
                (None, Some(edges.values().map(|target| (*target, Some(&value.ty)))))
            }
        };
        always.into_iter().chain(by.into_iter().flatten())
    })
}

/// The headers that an edge into a packet of that kind leads to.
fn entries(program: &Program, kind: ast::Scope) -> Vec<HeaderId> {
    let all = program.headers.values().flat_map(edges);
    let entries: BTreeSet<_> =
        all.filter(|(target, _)| target.scope == Some(kind)).map(|(target, _)| target.header).collect();
    entries.into_iter().collect()
}

/// The headers that have such an edge.
fn openers(program: &Program, kind: ast::Scope) -> Vec<HeaderId> {
    let opens = |header| edges(header).any(|(target, _)| target.scope == Some(kind));
    program.headers.iter().filter(|(_, header)| opens(header)).map(|(id, _)| id).collect()
}

/// `starts` and what is reached from them in the same packet, but not from a transport header; parents first.
fn packet_headers(program: &Program, starts: &[HeaderId]) -> Vec<HeaderId> {
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for &start in starts {
        visit(program, start, &mut seen, &mut order);
    }
    order.reverse();
    order
}

/// Depth first, children before their parents where no circle leads back.
fn visit(program: &Program, header: HeaderId, seen: &mut BTreeSet<HeaderId>, order: &mut Vec<HeaderId>) {
    if !seen.insert(header) {
        return;
    }
    if !program.transport.contains(&header) {
        for (target, _) in edges(&program.headers[header]).filter(|(target, _)| target.scope.is_none()) {
            visit(program, target.header, seen, order);
        }
    }
    order.push(header);
}

/// What is certain in a packet that starts with one of `starts`.
fn implied(program: &Program, starts: &[HeaderId]) -> HashMap<HeaderId, Implied> {
    let parents = parents(program);
    let everything = Implied {
        headers: program.headers.keys().collect(),
        unions: program.unions.keys().collect(),
        fields: program
            .unions
            .iter()
            .flat_map(|(id, union)| (0..union.fields.len()).map(move |field| (id, field)))
            .collect(),
    };
    let own: Vec<Implied> =
        program.headers.keys().map(|header| own_facts(program, &parents, header)).collect();
    let mut implied: HashMap<HeaderId, Implied> =
        program.headers.keys().map(|header| (header, everything.clone())).collect();
    loop {
        let mut changed = false;
        for header in program.headers.keys() {
            let new = from_parents(
                &own[header.index()],
                &parents[header.index()],
                &implied,
                starts.contains(&header),
            );
            if implied.get(&header) != Some(&new) {
                implied.insert(header, new);
                changed = true;
            }
        }
        if !changed {
            return implied;
        }
    }
}

/// A header's own facts with what all its parents agree on.
fn from_parents(
    own: &Implied,
    parents: &[HeaderId],
    implied: &HashMap<HeaderId, Implied>,
    is_start: bool,
) -> Implied {
    let mut facts = own.clone();
    if is_start {
        // Nothing in this packet selected it, so that no field of it did.
        facts.fields.clear();
        return facts;
    }
    let mut all = parents.iter().filter_map(|parent| implied.get(parent));
    let Some(first) = all.next() else { return facts };
    let mut common = first.clone();
    all.for_each(|parent| common.intersect(parent));
    facts.headers.extend(common.headers);
    facts.unions.extend(common.unions);
    facts.fields.extend(common.fields);
    facts
}

/// For each header, those in the same packet that lead to it.
fn parents(program: &Program) -> Vec<Vec<HeaderId>> {
    let mut parents = vec![Vec::new(); program.headers.len()];
    for (from, header) in &program.headers {
        for (target, _) in edges(header).filter(|(target, _)| target.scope.is_none()) {
            let list: &mut Vec<HeaderId> = &mut parents[target.header.index()];
            if !list.contains(&from) {
                list.push(from);
            }
        }
    }
    parents
}

fn own_facts(program: &Program, parents: &[Vec<HeaderId>], header: HeaderId) -> Implied {
    let mut facts = Implied::default();
    facts.headers.insert(header);
    for (id, union) in &program.unions {
        if union.members.contains(&header) {
            facts.unions.insert(id);
        }
        for (index, field) in union.fields.iter().enumerate() {
            let proves = field.when.is_some()
                && !parents[header.index()].is_empty()
                && proves_field(program, parents, header, id, index);
            if proves {
                facts.fields.insert((id, index));
            }
        }
    }
    facts
}

/// Whether a header is selected only by values of the enum that a union's field has, and is none of the headers
/// that the field's value may come from: then the field had that very value.
fn proves_field(
    program: &Program,
    parents: &[Vec<HeaderId>],
    header: HeaderId,
    union: UnionId,
    index: usize,
) -> bool {
    let field = &program.unions[union].fields[index];
    let UnionFieldKind::Alternatives(alternatives) = &field.kind else { return false };
    let mut mentioned = BTreeSet::new();
    mentioned.extend(program.unions[union].members.iter().copied());
    for expr in alternatives.iter().chain(&field.when) {
        mention(program, expr, &mut mentioned);
    }
    let all_by_enum = parents[header.index()].iter().all(|&parent| {
        edges(&program.headers[parent])
            .filter(|(target, _)| target.header == header && target.scope.is_none())
            .all(|(_, ty)| ty == Some(&field.ty))
    });
    matches!(field.ty, Type::Enum(_)) && !mentioned.contains(&header) && all_by_enum
}

/// The headers that an expression reads.
pub(crate) fn mention(program: &Program, expr: &Expr, found: &mut BTreeSet<HeaderId>) {
    walk(expr, &mut |part| match &part.kind {
        ExprKind::Field { instance, .. }
        | ExprKind::Present(instance)
        | ExprKind::Truncated(instance)
        | ExprKind::PayloadLength(instance)
        | ExprKind::Payload(instance)
        | ExprKind::PayloadSlice { instance, .. }
        | ExprKind::Option { option: OptionRef { instance, .. }, .. }
        | ExprKind::OptionsMalformed(instance)
        | ExprKind::Bytes { of: BytesOf::Field { instance, .. } | BytesOf::Options(instance), .. }
        | ExprKind::Malformed(Malformed::Header(instance)) => {
            found.insert(instance.header);
        }
        _ => found.extend(union_of(part).into_iter().flat_map(|id| &program.unions[id].members)),
    });
}

/// The union that an expression itself asks.
pub(crate) fn union_of(expr: &Expr) -> Option<UnionId> {
    match &expr.kind {
        ExprKind::UnionField { instance, .. } | ExprKind::UnionPresent(instance) => Some(instance.union),
        ExprKind::Bytes { of: BytesOf::UnionPayload(instance), .. } => Some(instance.union),
        ExprKind::Malformed(Malformed::Union { union, .. }) => Some(*union),
        _ => None,
    }
}
