//! The parse graph: which header can follow which, and which of them form a *group*, i.e. a union with `repeats`
//! whose members follow each other in any order (the IPv6 extension headers).

use std::ops::Range;

use cranelift_entity::{EntityRef, SecondaryMap};
use hashbrown::HashMap;
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
    reach: SecondaryMap<HeaderId, Found>,
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
        let targets: SecondaryMap<HeaderId, Vec<Target>> =
            program.headers.iter().map(|(id, header)| (id, targets(header))).collect();
        let mut reach = SecondaryMap::new();
        for header in program.headers.keys() {
            reach[header] = reachable(&targets, header, program.headers.len());
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

    /// The headers in whose lists the options of `header` stand.
    pub fn option_holders(&self, header: HeaderId) -> impl Iterator<Item = HeaderId> + '_ {
        let declared = self.header(header);
        let own = declared.options.iter().map(move |_| header);
        own.chain(declared.options_from.iter().copied())
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
        relative(scope, to.0).is_some_and(|inside| self.reach[header].contains((inside, to.1)))
    }

    /// Whether something behind `from` can open the packet `scope`.
    #[must_use]
    pub fn opens(&self, from: Scoped, scope: Scope) -> bool {
        let inside = relative(from.0, scope).filter(|&inside| inside != Scope::default());
        inside.is_some_and(|inside| self.reach[from.1].any_in(inside))
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

fn targets(header: &Header) -> Vec<Target> {
    header.next.iter().flat_map(edges).map(|(_, target)| target).collect()
}

fn reachable(targets: &SecondaryMap<HeaderId, Vec<Target>>, from: HeaderId, headers: usize) -> Found {
    let mut found = Found::none(headers);
    let mut open = vec![(Scope::default(), from)];
    while let Some((scope, header)) = open.pop() {
        for to in targets[header].iter().filter_map(|&target| entered(scope, target)) {
            if found.insert(to) {
                open.push(to);
            }
        }
    }
    found
}

/// Some of all headers of all packets that may lie in each other.
#[derive(Clone, Default)]
struct Found {
    headers: usize,
    /// Those of each packet together.
    is_in: Vec<bool>,
}

impl Found {
    fn none(headers: usize) -> Found {
        let packets = 2 * (usize::from(Scope::MAX_INNER) + 1);
        Found { headers, is_in: vec![false; packets * headers] }
    }

    fn of_packet(&self, scope: Scope) -> Range<usize> {
        let start = (2 * usize::from(scope.inner) + usize::from(scope.quoted)) * self.headers;
        start..start + self.headers
    }

    /// Whether it was not in.
    fn insert(&mut self, (scope, header): Scoped) -> bool {
        let place = self.of_packet(scope).start + header.index();
        !std::mem::replace(&mut self.is_in[place], true)
    }

    fn contains(&self, (scope, header): Scoped) -> bool {
        self.is_in[self.of_packet(scope).start + header.index()]
    }

    fn any_in(&self, scope: Scope) -> bool {
        self.is_in[self.of_packet(scope)].contains(&true)
    }
}
