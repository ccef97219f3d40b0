//! Chains and programs: statements, rules, and their order.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, Path, PathStepKind, StmtKind, XdpItem};

use crate::certain::Facts;
use crate::checker::Checker;
use crate::expr::constant_bool;
use crate::names::{Space, SymbolKind};
use crate::suggest::nearest;
use crate::typed::{Action, ActionKind, ChainId, Expr, OnVerdict, Rule, Stmt, Verdict, XdpId};

/// The largest priority of a program: libxdp keeps it as a signed number of 32 bits.
const MAX_PRIORITY: u32 = i32::MAX as u32;

/// The block whose statements are being checked.
pub(crate) struct Block<'a> {
    pub(crate) unit: usize,
    /// Whether `return` has something to return to.
    pub(crate) is_chain: bool,
    /// The labels so far, and where they stand.
    labels: Vec<(&'a str, Span)>,
    /// How many rules have none.
    unlabelled: u32,
}

impl<'a> Block<'a> {
    fn new(unit: usize, is_chain: bool) -> Self {
        Block { unit, is_chain, labels: Vec::new(), unlabelled: 0 }
    }
}

impl<'a> Checker<'a> {
    /// Checks the chains.
    pub(crate) fn chains(&mut self) {
        for (id, unit, body) in std::mem::take(&mut self.decls.chains) {
            let mut block = Block::new(unit, true);
            let body = self.statements(body, &mut block, &Facts::default());
            self.program.chains[id].body = body;
        }
        self.reject_chain_circles();
    }

    /// Checks the programs.
    pub(crate) fn xdps(&mut self) {
        for (id, unit, items) in std::mem::take(&mut self.decls.xdps) {
            let mut block = Block::new(unit, false);
            let mut body = Vec::new();
            let mut reached = Reached::default();
            for item in items {
                if let Some(stmt) = self.xdp_item(id, item, &mut block) {
                    self.follow(&mut reached, &stmt, item_span(item));
                    body.push(stmt);
                }
            }
            self.defaults(id, items, &mut block);
            self.warn_of_later_fragments(id, &body);
            self.program.xdps[id].body = body;
        }
    }

    fn xdp_item(&mut self, id: XdpId, item: &'a XdpItem, block: &mut Block<'a>) -> Option<Stmt> {
        match item {
            XdpItem::Default { .. } => None,
            XdpItem::CountersOff { .. } => {
                self.program.xdps[id].counters = false;
                None
            }
            XdpItem::Priority { value, span } => {
                self.priority(id, *value, *span);
                None
            }
            XdpItem::ChainOn { verdicts, span } => {
                self.chain_on(id, verdicts, *span);
                None
            }
            XdpItem::On { verdicts, actions, span } => {
                self.on_verdict(id, verdicts, actions, *span, block);
                None
            }
            XdpItem::Stmt(stmt) => self.statement(stmt, block, &Facts::default()),
        }
    }

    fn priority(&mut self, id: XdpId, value: u64, span: Span) {
        if self.program.xdps[id].priority.is_some() {
            self.second_clause("priority", span);
        }
        match u32::try_from(value).ok().filter(|&value| value <= MAX_PRIORITY) {
            Some(value) => self.program.xdps[id].priority = Some(value),
            None => {
                let title = format!("{value} is no priority");
                let label = format!("at most {MAX_PRIORITY}");
                self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, span, label));
            }
        }
    }

    fn chain_on(&mut self, id: XdpId, verdicts: &[(Verdict, Span)], span: Span) {
        if self.program.xdps[id].chain_on.is_some() {
            self.second_clause("chain on", span);
        }
        let verdicts = self.each_once(verdicts);
        self.program.xdps[id].chain_on = Some(verdicts);
    }

    fn second_clause(&mut self, name: &str, span: Span) {
        let title = format!("a program has one `{name}`");
        self.report(Diagnostic::error(codes::ACTION_ORDER, title, span, "a second one"));
    }

    /// The verdicts of a list; warns of one that stands in it twice.
    fn each_once(&mut self, verdicts: &[(Verdict, Span)]) -> Vec<Verdict> {
        let mut known: Vec<Verdict> = Vec::new();
        for &(verdict, span) in verdicts {
            if known.contains(&verdict) {
                let title = format!("`{}` stands in this list twice", self.text(span));
                let diagnostic = Diagnostic::warning(codes::DUPLICATE, title, span, "again here");
                self.report(diagnostic.with_help("remove one of them"));
            } else {
                known.push(verdict);
            }
        }
        known
    }

    fn on_verdict(
        &mut self,
        id: XdpId,
        verdicts: &[(Verdict, Span)],
        actions: &'a [ast::Action],
        span: Span,
        block: &Block<'a>,
    ) {
        let verdicts = self.each_once(verdicts);
        let actions = self.actions(actions, block);
        for action in &actions {
            if !matches!(action.kind, ActionKind::Count(_)) {
                let title = "the verdict is there already";
                let diagnostic =
                    Diagnostic::error(codes::ACTION_ORDER, title, action.span, "not behind `on`")
                        .with_help("`on` counts: `on drop => count refused;`");
                self.report(diagnostic);
            }
        }
        self.program.xdps[id].on.push(OnVerdict { verdicts, actions, span });
    }

    fn defaults(&mut self, id: XdpId, items: &'a [XdpItem], block: &mut Block<'a>) {
        let mut defaults = items.iter().filter_map(|item| match item {
            XdpItem::Default { actions, span } => Some((actions, *span)),
            _ => None,
        });
        let name = self.program.xdps[id].span;
        let Some((actions, span)) = defaults.next() else {
            let title = format!("`{}` has no `default`", self.program.xdps[id].name);
            let diagnostic = Diagnostic::error(
                codes::DEFAULT_VERDICT,
                title,
                name,
                "what becomes of a packet that no rule decides?",
            )
            .with_help("add `default pass;` or `default drop;`");
            self.report(diagnostic);
            return;
        };
        for (_, again) in defaults {
            let title = "a program has one `default`";
            let diagnostic = Diagnostic::error(codes::DEFAULT_VERDICT, title, again, "a second one")
                .with_label(span, "the first");
            self.report(diagnostic);
        }
        let typed = self.actions(actions, block);
        let decides = matches!(typed.last(), Some(Action { kind: ActionKind::Verdict(_), .. }));
        if !decides && typed.len() == actions.len() {
            let title = "`default` does not decide";
            let diagnostic =
                Diagnostic::error(codes::DEFAULT_VERDICT, title, span, "its last action is no verdict")
                    .with_help("end it with `pass`, `drop`, `abort` or `tx`");
            self.report(diagnostic);
        }
        self.program.xdps[id].default = typed;
        self.program.xdps[id].default_span = span;
    }

    fn statements(&mut self, body: &'a [ast::Stmt], block: &mut Block<'a>, facts: &Facts) -> Vec<Stmt> {
        let mut typed = Vec::new();
        let mut reached = Reached::default();
        for stmt in body {
            if let Some(checked) = self.statement(stmt, block, facts) {
                self.follow(&mut reached, &checked, stmt.span);
                typed.push(checked);
            }
        }
        typed
    }

    fn statement(&mut self, stmt: &'a ast::Stmt, block: &mut Block<'a>, facts: &Facts) -> Option<Stmt> {
        match &stmt.kind {
            StmtKind::Rule { label, condition, actions } => {
                self.rule(stmt, label.as_ref(), condition, actions, block, facts).map(Stmt::Rule)
            }
            StmtKind::When { condition, body } => {
                let condition = self.rule_condition(condition, block, facts);
                let inside = condition.as_ref().map(|condition| facts.clone().and(&self.facts(condition)));
                let body = self.statements(body, block, inside.as_ref().unwrap_or(facts));
                Some(Stmt::When { condition: condition?, body })
            }
            StmtKind::Apply { chain } => {
                let chain = self.chain_named(chain, block)?;
                Some(Stmt::Apply { chain, span: stmt.span })
            }
        }
    }

    fn rule_condition(&mut self, condition: &'a ast::Expr, block: &Block<'a>, facts: &Facts) -> Option<Expr> {
        let typed = self.condition(condition, &Self::env(block.unit))?;
        self.check_certain(&typed, facts, condition.span);
        Some(typed)
    }

    fn rule(
        &mut self,
        stmt: &'a ast::Stmt,
        label: Option<&'a ast::Word>,
        condition: &'a ast::Expr,
        actions: &'a [ast::Action],
        block: &mut Block<'a>,
        facts: &Facts,
    ) -> Option<Rule> {
        match label {
            Some(label) => self.label(label, block),
            None => block.unlabelled += 1,
        }
        let condition = self.rule_condition(condition, block, facts);
        let count = actions.len();
        let actions = self.actions(actions, block);
        let word = Span { end: stmt.span.start + 4, ..stmt.span };
        (actions.len() == count).then_some(())?;
        Some(Rule {
            label: label.map(|label| label.text.clone()),
            unlabelled: if label.is_some() { 0 } else { block.unlabelled },
            span: label.map_or(word, |label| label.span),
            condition: condition?,
            actions,
        })
    }

    fn label(&mut self, label: &'a ast::Word, block: &mut Block<'a>) {
        if let Some((_, first)) = block.labels.iter().find(|(known, _)| *known == label.text) {
            let title = format!("two rules are labelled `{}`", label.text);
            let diagnostic = Diagnostic::error(codes::NAME_CLASH, title, label.span, "again here")
                .with_label(*first, "first here")
                .with_note("counters and reports know a rule by its label")
                .with_help("give this rule another label");
            self.report(diagnostic);
        }
        block.labels.push((&label.text, label.span));
    }

    /// The chain that a path names: `bogons`, `lib.bogons`.
    pub(crate) fn chain_named(&mut self, path: &'a Path, block: &Block<'a>) -> Option<ChainId> {
        let head = &path.head;
        let (found, name) = match path.steps.as_slice() {
            [] => (self.lookup(Space::Block, block.unit, &head.text), head),
            [ast::PathStep { kind: PathStepKind::Dot(name), .. }]
                if self.is_library(block.unit, &head.text) =>
            {
                (self.lookup_in_library(Space::Block, block.unit, &head.text, &name.text), name)
            }
            _ => {
                let title = format!("`{}` is no chain", head.text);
                let diagnostic =
                    Diagnostic::error(codes::WRONG_NAME, title, head.span, "`apply` takes a chain")
                        .with_help("write `apply NAME;`, or `apply lib.NAME;` for one of `use … as lib;`");
                self.report(diagnostic);
                return None;
            }
        };
        match found.map(|id| self.symbols[id].kind) {
            Some(SymbolKind::Chain(id)) => Some(id),
            Some(kind) => {
                let title = format!("`{}` is {}, not a chain", name.text, kind.describe());
                let label = "`apply` takes a chain";
                self.report(Diagnostic::error(codes::WRONG_NAME, title, name.span, label));
                None
            }
            None => {
                let library = (!path.steps.is_empty()).then_some(head.text.as_str());
                if self.may_be_unread(block.unit, library) {
                    return None;
                }
                let known =
                    self.visible(Space::Block, block.unit, |kind| matches!(kind, SymbolKind::Chain(_)));
                let near = nearest(&name.text, known);
                self.unknown(&format!("chain `{}`", name.text), name.span, near);
                None
            }
        }
    }

    /// Warns of what stands behind a rule that decides every packet.
    fn follow(&mut self, reached: &mut Reached, stmt: &Stmt, span: Span) {
        if let Some(end) = reached.end
            && !reached.reported
        {
            reached.reported = true;
            let diagnostic = Diagnostic::warning(
                codes::UNREACHABLE,
                "no packet comes here",
                span,
                "this and what follows is never reached",
            )
            .with_label(end, "this decides every packet")
            .with_help("move the rule that decides everything to the end, or remove what follows it");
            self.report(diagnostic);
        }
        if let Stmt::Rule(rule) = stmt
            && constant_bool(&rule.condition) == Some(true)
            && matches!(
                rule.actions.last(),
                Some(Action { kind: ActionKind::Verdict(_) | ActionKind::Return, .. })
            )
        {
            reached.end = reached.end.or(Some(span));
        }
    }
}

/// How far packets come in a list of statements.
#[derive(Default)]
struct Reached {
    /// The rule that lets none further.
    end: Option<Span>,
    /// Whether that was said.
    reported: bool,
}

fn item_span(item: &XdpItem) -> Span {
    match item {
        XdpItem::Stmt(stmt) => stmt.span,
        XdpItem::Default { span, .. }
        | XdpItem::Priority { span, .. }
        | XdpItem::ChainOn { span, .. }
        | XdpItem::CountersOff { span }
        | XdpItem::On { span, .. } => *span,
    }
}
