//! The parse graph: which header can follow which, and which of them form a *group*, i.e. a union with `repeats`
//! whose members follow each other in any order (the IPv6 extension headers).

use std::collections::{HashMap, HashSet};

use cranelift_entity::SecondaryMap;
use pktc_semantics::typed::{
    ExprKind, FieldIndex, Header, HeaderId, Next, NextKind, Program, Scope, Target, UnionId,
};
use pktc_semantics::walk;

/// A header of one of the packets that may lie in each other.
pub type Scoped = (Scope, HeaderId);

/// What the parser needs to know of the declarations.
pub struct Graph<'a> {
    /// The declarations.
    pub program: &'a Program,
    group_of: HashMap<HeaderId, UnionId>,
    /// What can follow a header of the outer packet, directly or not.
    reach: SecondaryMap<HeaderId, HashSet<Scoped>>,
    /// Fields of a header that the declaration of another one reads: by whom, and which.
    cited: SecondaryMap<HeaderId, Vec<(HeaderId, FieldIndex)>>,
}

impl<'a> Graph<'a> {
    /// Reads the declarations.
    #[must_use]
    pub fn new(program: &'a Program) -> Self {
        let mut group_of = HashMap::new();
        for (id, union) in program.unions.iter().filter(|(_, union)| union.repeats.is_some()) {
            group_of.extend(union.members.iter().map(|&member| (member, id)));
        }
        let mut reach = SecondaryMap::new();
        for header in program.headers.keys() {
            reach[header] = reachable(program, header);
        }
        Graph { program, group_of, reach, cited: citations(program) }
    }

    /// The declaration of `header`.
    #[must_use]
    pub fn header(&self, header: HeaderId) -> &'a Header {
        &self.program.headers[header]
    }

    /// The repeating union that `header` is a member of.
    #[must_use]
    pub fn group(&self, header: HeaderId) -> Option<UnionId> {
        self.group_of.get(&header).copied()
    }

    /// Fields of `header` that the declarations of others read: by whom, and which.
    pub fn cited(&self, header: HeaderId) -> impl Iterator<Item = (HeaderId, FieldIndex)> + '_ {
        self.cited[header].iter().copied()
    }

    /// Whether `header` can follow itself in the same packet.
    #[must_use]
    pub fn recurs(&self, header: HeaderId) -> bool {
        self.leads((Scope::default(), header), (Scope::default(), header))
    }

    /// Whether `to` can follow `from`, directly or not; a header follows itself only in a cycle.
    #[must_use]
    pub fn leads(&self, from: Scoped, to: Scoped) -> bool {
        let (scope, header) = from;
        relative(scope, to.0).is_some_and(|inside| self.reach[header].contains(&(inside, to.1)))
    }

    /// Whether something behind `from` can open the packet `scope`.
    #[must_use]
    pub fn opens(&self, from: Scoped, scope: Scope) -> bool {
        let inside = relative(from.0, scope).filter(|&inside| inside != Scope::default());
        inside.is_some_and(|inside| self.reach[from.1].iter().any(|&(of, _)| of == inside))
    }
}

/// `to` as seen from `from`; `None`: it does not lie in there.
fn relative(from: Scope, to: Scope) -> Option<Scope> {
    if from.quoted {
        return (from == to).then_some(Scope::default());
    }
    Some(Scope { inner: to.inner.checked_sub(from.inner)?, quoted: to.quoted })
}

/// Where an edge from a header of the packet `scope` leads; `None`: what it would open is not parsed.
#[must_use]
pub fn entered(scope: Scope, target: Target) -> Option<Scoped> {
    let scope = target.scope.map_or(Some(scope), |kind| scope.opened(kind))?;
    Some((scope, target.header))
}

/// The headers that an edge of `next` leads to, with the values that select them.
pub fn edges(next: &Next) -> Vec<(Option<u64>, Target)> {
    match &next.kind {
        NextKind::By { edges, .. } => edges.iter().map(|(&value, &target)| (Some(value), target)).collect(),
        NextKind::Always(target) => vec![(None, *target)],
    }
}

fn citations(program: &Program) -> SecondaryMap<HeaderId, Vec<(HeaderId, FieldIndex)>> {
    let mut cited: SecondaryMap<HeaderId, Vec<(HeaderId, FieldIndex)>> = SecondaryMap::new();
    for (reader, header) in &program.headers {
        let whens = header.next.iter().filter_map(|next| next.when.as_ref());
        let claims = header.claims.iter().flat_map(|claim| claim.when.iter().chain([&claim.value]));
        for expr in whens.chain(claims).chain(&header.valid).chain(&header.length) {
            walk(expr, &mut |part| {
                if let ExprKind::Field { instance, field } = part.kind {
                    cited[instance.header].push((reader, field));
                }
            });
        }
    }
    cited
}

fn reachable(program: &Program, from: HeaderId) -> HashSet<Scoped> {
    let mut found = HashSet::new();
    let mut open = vec![(Scope::default(), from)];
    while let Some((scope, header)) = open.pop() {
        let targets = program.headers[header].next.iter().flat_map(edges);
        for to in targets.filter_map(|(_, target)| entered(scope, target)) {
            if found.insert(to) {
                open.push(to);
            }
        }
    }
    found
}
