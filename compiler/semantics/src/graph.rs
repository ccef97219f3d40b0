//! The parse graph: what a header's presence says about others, and which headers bare `malformed` asks.
//!
//! What is certain where a header is present is what is certain on *every* way to it: the greatest solution of
//! `certain(h) = {h, its unions} ∪ ⋂ certain(parent)`, found by starting from "everything" and taking away.

use std::collections::{BTreeSet, HashMap};

use cranelift_entity::EntityRef;

use crate::checker::Checker;
use crate::structure::walk;
use crate::typed::{
    Expr, ExprKind, Header, HeaderId, Malformed, NextKind, Program, Target, Type, UnionFieldKind, UnionId,
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
    implied: HashMap<HeaderId, Implied>,
}

impl Graph {
    /// What is certain where `header` is present; nothing else for one that no edge leads to.
    pub(crate) fn of_header(&self, header: HeaderId) -> Implied {
        self.implied.get(&header).cloned().unwrap_or_default()
    }

    /// What is certain where one of a union's members is present.
    pub(crate) fn of_union(&self, program: &Program, union: UnionId) -> Implied {
        let mut members = program.unions[union].members.iter().map(|&member| self.of_header(member));
        let mut all = members.next().unwrap_or_default();
        members.for_each(|member| all.intersect(&member));
        all.unions.insert(union);
        all
    }
}

impl Checker<'_> {
    /// Builds what later steps ask of the parse graph.
    pub(crate) fn build_graph(&mut self) {
        let root = self.program.headers.iter().find(|(_, header)| header.name == "eth");
        if let Some((root, _)) = root {
            self.program.root = root;
            self.program.packet_headers = packet_headers(&self.program);
            self.graph = Graph { implied: implied(&self.program) };
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

/// `root` and what is reached from it in the outer packet, but not from a transport header; parents first.
fn packet_headers(program: &Program) -> Vec<HeaderId> {
    let transport = program.unions.values().find(|union| union.name == "l4");
    let transport = transport.map_or(&[][..], |union| union.members.as_slice());
    let mut order = Vec::new();
    visit(program, transport, program.root, &mut BTreeSet::new(), &mut order);
    order.reverse();
    order
}

/// Depth first, children before their parents where no circle leads back.
fn visit(
    program: &Program,
    transport: &[HeaderId],
    header: HeaderId,
    seen: &mut BTreeSet<HeaderId>,
    order: &mut Vec<HeaderId>,
) {
    if !seen.insert(header) {
        return;
    }
    if !transport.contains(&header) {
        for (target, _) in edges(&program.headers[header]).filter(|(target, _)| target.scope.is_none()) {
            visit(program, transport, target.header, seen, order);
        }
    }
    order.push(header);
}

fn implied(program: &Program) -> HashMap<HeaderId, Implied> {
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
                header == program.root,
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
    is_root: bool,
) -> Implied {
    let mut facts = own.clone();
    if is_root {
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
        ExprKind::Malformed(Malformed::Union { union, .. }) => Some(*union),
        _ => None,
    }
}
