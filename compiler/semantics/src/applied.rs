//! What chains apply: no chain comes round to itself, and no program grows beyond measure where chains are written out.

use cranelift_entity::SecondaryMap;
use pktc_diagnostics::{Diagnostic, Span, codes};

use crate::checker::Checker;
use crate::typed::{ActionKind, ChainId, Stmt};

/// Rules that a program may have once every chain is written out where it is applied.
const MOST_RULES: usize = 200_000;

impl Checker<'_> {
    /// Reports chains that lead back to themselves.
    pub(crate) fn reject_chain_circles(&mut self) {
        let mut done = Vec::new();
        for id in self.program.chains.keys().collect::<Vec<_>>() {
            let mut open = Vec::new();
            if let Some((from, span)) = self.circle_from(id, &mut open, &mut done) {
                let (chain, name) = (&self.program.chains[from], self.program.chains[id].name.clone());
                let title = format!("the chain `{name}` applies itself");
                let diagnostic = Diagnostic::error(codes::RECURSION, title, span, "this leads back to it")
                    .with_label(chain.span, "in this chain")
                    .with_note("every program ends, so no chain can come round to itself");
                self.report(diagnostic);
            }
        }
    }

    /// The `apply` that closes a circle through chains that are not `done` yet.
    fn circle_from(
        &self,
        id: ChainId,
        open: &mut Vec<ChainId>,
        done: &mut Vec<ChainId>,
    ) -> Option<(ChainId, Span)> {
        if done.contains(&id) {
            return None;
        }
        open.push(id);
        let mut applied = Vec::new();
        applied_in(&self.program.chains[id].body, &mut applied);
        for (next, span) in applied {
            if open.contains(&next) {
                done.append(open);
                return Some((id, span));
            }
            if let Some(found) = self.circle_from(next, open, done) {
                return Some(found);
            }
        }
        open.pop();
        done.push(id);
        None
    }

    /// Reports programs and chains that are too much once the chains in them are written out; no chain comes round
    /// to itself.
    pub(crate) fn reject_too_many_rules(&mut self) {
        let mut sizes = SecondaryMap::new();
        let chains: Vec<_> = self.program.chains.keys().collect();
        let mut found = None;
        for id in chains {
            if self.written_out(id, &mut sizes) > MOST_RULES {
                let chain = &self.program.chains[id];
                found = found.or(Some((chain.name.clone(), chain.span)));
            }
        }
        for xdp in self.program.xdps.values() {
            if self.rules_in(&xdp.body, &mut sizes) > MOST_RULES {
                found = found.or(Some((xdp.name.clone(), xdp.span)));
            }
        }
        if let Some((name, span)) = found {
            let title = format!("`{name}` has more than {MOST_RULES} rules once its chains are written out");
            let diagnostic = Diagnostic::error(codes::TOO_COMPLEX, title, span, "too many rules")
                .with_note("a chain is written out wherever it is applied, with all chains that it applies")
                .with_help("apply a chain once, behind a `when` that covers all its packets");
            self.report(diagnostic);
        }
    }

    fn written_out(&self, id: ChainId, sizes: &mut SecondaryMap<ChainId, Option<usize>>) -> usize {
        if let Some(size) = sizes[id] {
            return size;
        }
        let size = self.rules_in(&self.program.chains[id].body, sizes);
        sizes[id] = Some(size);
        size
    }

    fn rules_in(&self, body: &[Stmt], sizes: &mut SecondaryMap<ChainId, Option<usize>>) -> usize {
        let mut applied = Vec::new();
        applied_in(body, &mut applied);
        applied.into_iter().fold(own_rules(body), |sum, (chain, _)| {
            // An empty chain counts as well: it is looked at wherever it is applied.
            sum.saturating_add(self.written_out(chain, sizes)).saturating_add(1)
        })
    }
}

fn own_rules(body: &[Stmt]) -> usize {
    body.iter().fold(0, |sum, stmt| match stmt {
        Stmt::Rule(_) => sum + 1,
        Stmt::When { body, .. } => sum + own_rules(body),
        Stmt::Apply { .. } => sum,
    })
}

/// The chains that statements apply, and where.
fn applied_in(body: &[Stmt], found: &mut Vec<(ChainId, Span)>) {
    for stmt in body {
        match stmt {
            Stmt::Rule(rule) => found.extend(rule.actions.iter().filter_map(|action| match action.kind {
                ActionKind::Apply(chain) => Some((chain, action.span)),
                ActionKind::Verdict(_) | ActionKind::Return | ActionKind::Count(_) => None,
            })),
            Stmt::When { body, .. } => applied_in(body, found),
            Stmt::Apply { chain, span } => found.push((*chain, *span)),
        }
    }
}
