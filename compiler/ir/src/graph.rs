//! The parse graph: which header can follow which, and which of them form a *group*, i.e. a union with `repeats`
//! whose members follow each other in any order (the IPv6 extension headers).

use std::collections::{HashMap, HashSet};

use cranelift_entity::SecondaryMap;
use pktc_semantics::typed::{Header, HeaderId, Next, NextKind, Program, UnionId};

/// What the parser needs to know of the declarations.
pub struct Graph<'a> {
    /// The declarations.
    pub program: &'a Program,
    group_of: HashMap<HeaderId, UnionId>,
    reach: SecondaryMap<HeaderId, HashSet<HeaderId>>,
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
        Graph { program, group_of, reach }
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

    /// Whether `to` can follow `from`, directly or not, in the same packet; a header follows itself only in a cycle.
    #[must_use]
    pub fn follows(&self, from: HeaderId, to: HeaderId) -> bool {
        self.reach[from].contains(&to)
    }
}

/// The headers of the same packet that an edge of `next` leads to, with the values that select them.
pub fn edges(next: &Next) -> Vec<(Option<u64>, HeaderId)> {
    match &next.kind {
        NextKind::By { edges, .. } => edges
            .iter()
            .filter(|(_, target)| target.scope.is_none())
            .map(|(&value, target)| (Some(value), target.header))
            .collect(),
        NextKind::Always(target) if target.scope.is_none() => vec![(None, target.header)],
        NextKind::Always(_) => Vec::new(),
    }
}

fn reachable(program: &Program, from: HeaderId) -> HashSet<HeaderId> {
    let mut found = HashSet::new();
    let mut open = vec![from];
    while let Some(header) = open.pop() {
        for next in &program.headers[header].next {
            for (_, target) in edges(next) {
                if found.insert(target) {
                    open.push(target);
                }
            }
        }
    }
    found
}
