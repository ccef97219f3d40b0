//! Typed program to rule IR.

mod bytes;
mod compare;
mod condition;
mod known;
mod membership;
mod operand;
mod options;

use hashbrown::HashMap;

use cranelift_entity::PrimaryMap;
use pktc_diagnostics::{Diagnostic, SourceMap, Span, codes};
use pktc_semantics::rules::RuleTable;
use pktc_semantics::typed::{
    self, BytesOf, CounterId, Expr, ExprKind, Instance, Malformed, OptionRef, Program, Scope, Verdict, Xdp,
};
use pktc_semantics::walk;

use crate::rule::{Action, Cond, Item, ItemId, Node, RuleProgram, Slot, SlotId};

/// Builds the rule IR of `xdp`.
///
/// # Errors
/// What this version cannot compile, each with its place.
pub fn build_rules(
    program: &Program,
    sources: &SourceMap,
    xdp: &Xdp,
) -> Result<RuleProgram, Vec<Diagnostic>> {
    let mut builder = RuleBuilder {
        program,
        rules: RuleTable::new(program, sources, xdp),
        items: PrimaryMap::new(),
        slots: PrimaryMap::new(),
        item_keys: HashMap::new(),
        slot_keys: HashMap::new(),
        known: Vec::new(),
        forms: known::Forms::none(xdp.span),
        diagnostics: Vec::new(),
    };
    let body = builder.body(&xdp.body);
    let default = builder.actions(&xdp.default);
    if !builder.diagnostics.is_empty() {
        return Err(builder.diagnostics);
    }
    Ok(RuleProgram {
        name: xdp.name.clone(),
        span: xdp.span,
        items: builder.items,
        slots: builder.slots,
        body,
        default,
        default_span: xdp.default_span,
        on: xdp.on.iter().flat_map(counted_in).collect(),
        counters: xdp.counters,
        rules: builder.rules,
    })
}

struct RuleBuilder<'a> {
    program: &'a Program,
    rules: RuleTable,
    items: PrimaryMap<ItemId, Item>,
    slots: PrimaryMap<SlotId, Slot>,
    item_keys: HashMap<String, ItemId>,
    slot_keys: HashMap<Slot, SlotId>,
    /// What is present or absent wherever the operand being built has a value.
    known: Vec<(ItemId, bool)>,
    forms: known::Forms,
    diagnostics: Vec<Diagnostic>,
}

impl RuleBuilder<'_> {
    fn body(&mut self, body: &[typed::Stmt]) -> Vec<Node> {
        body.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: &typed::Stmt) -> Node {
        match stmt {
            typed::Stmt::Rule(rule) => {
                let condition = self.whole_condition(&rule.condition);
                let actions = self.actions(&rule.actions);
                Node::Rule { id: self.rules.id(rule), condition, actions, span: rule.span }
            }
            typed::Stmt::When { condition, body } => {
                let condition = self.whole_condition(condition);
                Node::When { condition, body: self.body(body) }
            }
            typed::Stmt::Apply { chain, .. } => {
                let chain = &self.program.chains[*chain];
                Node::Chain { name: chain.name.clone(), body: self.body(&chain.body) }
            }
        }
    }

    /// A rule's or a `when`'s condition; refuses what this version does not compile.
    fn whole_condition(&mut self, condition: &Expr) -> Cond {
        let before = self.diagnostics.len();
        walk(condition, &mut |part| {
            // The kernel's verifier would give up on nearly all of them.
            if scope_of(part).inner > 1 {
                self.not_yet("a packet in a tunnel inside a tunnel", part.span);
            }
        });
        if self.diagnostics.len() > before { Cond::Const(false) } else { self.condition(condition) }
    }

    fn actions(&mut self, actions: &[typed::Action]) -> Vec<Action> {
        actions.iter().map(|action| self.action(action)).collect()
    }

    fn action(&mut self, action: &typed::Action) -> Action {
        match action.kind {
            typed::ActionKind::Verdict(verdict) => Action::Verdict(verdict),
            typed::ActionKind::Return => Action::Return,
            typed::ActionKind::Count(counter) => Action::Count(counter),
            typed::ActionKind::Apply(chain) => {
                let chain = &self.program.chains[chain];
                Action::Chain { name: chain.name.clone(), body: self.body(&chain.body) }
            }
        }
    }

    fn not_yet(&mut self, what: &str, span: Span) {
        let title = format!("{what}: not yet compiled by this version of pktc");
        self.diagnostics.push(
            Diagnostic::error(codes::NOT_YET, title, span, "not yet")
                .with_note("the reference engine (`pktc run --engine reference`) already knows it"),
        );
    }
}

/// What packets with the verdicts of `on` are counted in.
fn counted_in(on: &typed::OnVerdict) -> impl Iterator<Item = (Verdict, CounterId)> {
    let counters = on.actions.iter().filter_map(|action| match action.kind {
        typed::ActionKind::Count(counter) => Some(counter),
        typed::ActionKind::Verdict(_) | typed::ActionKind::Return | typed::ActionKind::Apply(_) => None,
    });
    counters.flat_map(|counter| on.verdicts.iter().map(move |&verdict| (verdict, counter)))
}

/// Which packet an operand itself asks.
fn scope_of(operand: &Expr) -> Scope {
    match operand.kind {
        ExprKind::Malformed(
            Malformed::Header(Instance { scope, .. })
            | Malformed::Packet(scope)
            | Malformed::Union { scope, .. },
        ) => scope,
        ExprKind::Field { instance, .. }
        | ExprKind::Present(instance)
        | ExprKind::Truncated(instance)
        | ExprKind::PayloadLength(instance)
        | ExprKind::Payload(instance)
        | ExprKind::PayloadSlice { instance, .. }
        | ExprKind::Option { option: OptionRef { instance, .. }, .. }
        | ExprKind::OptionsMalformed(instance)
        | ExprKind::Bytes { of: BytesOf::Field { instance, .. } | BytesOf::Options(instance), .. } => {
            instance.scope
        }
        ExprKind::UnionField { instance, .. }
        | ExprKind::UnionPresent(instance)
        | ExprKind::Bytes { of: BytesOf::UnionPayload(instance), .. } => instance.scope,
        _ => Scope::default(),
    }
}
