//! Rule identities: one numbering of a program's rules that all stages and engines share.

use hashbrown::HashMap;

use pktc_diagnostics::{SourceMap, Span};

use crate::typed::{ActionKind, ChainId, Program, Rule, Stmt, Subject, Xdp};

/// A rule of one program: an index into [`RuleTable::rules`] and into the program's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

impl RuleId {
    /// What remains when no rule decided.
    pub const DEFAULT: RuleId = RuleId(0);
}

/// What reports say of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// What identifies it over replacements: `label`, `chain.label`, `@2`, `chain.@2`, `default`.
    pub identity: String,
    /// What people read: `label`, `chain.label`, or `@LINE` without a label; `default`.
    pub name: String,
    /// Where it is declared.
    pub span: Span,
    /// Whether its actions end the program, unless a chain among them does before.
    pub ends: bool,
}

/// The rules of one program: `default`, then in textual order; a chain's rules stand where it is first applied,
/// once, however often it is applied.
#[derive(Clone, Debug)]
pub struct RuleTable {
    rules: Vec<RuleInfo>,
    by_span: HashMap<Span, RuleId>,
}

impl RuleTable {
    /// Numbers the rules of `xdp`.
    #[must_use]
    pub fn new(program: &Program, sources: &SourceMap, xdp: &Xdp) -> Self {
        let name = "default".to_owned();
        let default = RuleInfo { identity: name.clone(), name, span: xdp.default_span, ends: true };
        let table = RuleTable { rules: vec![default], by_span: HashMap::new() };
        let mut numbering = Numbering { program, sources, table, seen: Vec::new() };
        numbering.body(&xdp.body, None);
        numbering.actions(&xdp.default);
        numbering.table
    }

    /// Numbers the rules of `subject`.
    #[must_use]
    pub fn of(program: &Program, sources: &SourceMap, subject: Subject) -> Self {
        Self::new(program, sources, &program.subject(subject))
    }

    /// All of them; the index is the [`RuleId`].
    #[must_use]
    pub fn rules(&self) -> &[RuleInfo] {
        &self.rules
    }

    /// What reports say of `id`.
    #[must_use]
    pub fn info(&self, id: RuleId) -> &RuleInfo {
        &self.rules[id.0 as usize]
    }

    /// The number of `rule`, which belongs to the program or to a chain that it applies.
    ///
    /// # Panics
    /// If it belongs to another program.
    #[must_use]
    pub fn id(&self, rule: &Rule) -> RuleId {
        self.by_span[&rule.span]
    }
}

struct Numbering<'a> {
    program: &'a Program,
    sources: &'a SourceMap,
    table: RuleTable,
    seen: Vec<ChainId>,
}

impl Numbering<'_> {
    fn body(&mut self, body: &[Stmt], chain: Option<&str>) {
        for stmt in body {
            match stmt {
                Stmt::Rule(rule) => {
                    self.rule(rule, chain);
                    self.actions(&rule.actions);
                }
                Stmt::When { body, .. } => self.body(body, chain),
                Stmt::Apply { chain, .. } => self.chain(*chain),
            }
        }
    }

    fn actions(&mut self, actions: &[crate::typed::Action]) {
        for action in actions {
            match action.kind {
                ActionKind::Apply(chain) => self.chain(chain),
                ActionKind::Verdict(_) | ActionKind::Return | ActionKind::Count(_) => {}
            }
        }
    }

    fn chain(&mut self, id: ChainId) {
        if self.seen.contains(&id) {
            return;
        }
        self.seen.push(id);
        let chain = &self.program.chains[id];
        self.body(&chain.body, Some(&chain.name));
    }

    fn rule(&mut self, rule: &Rule, chain: Option<&str>) {
        let prefixed = |name: String| chain.map_or(name.clone(), |chain| format!("{chain}.{name}"));
        let line = self.sources.position(rule.span).line;
        let (identity, name) = match &rule.label {
            Some(label) => (prefixed(label.clone()), prefixed(label.clone())),
            None => (prefixed(format!("@{}", rule.unlabelled)), format!("@{line}")),
        };
        self.table.by_span.insert(rule.span, RuleId(self.table.rules.len() as u32));
        let ends = matches!(rule.actions.last(), Some(last) if matches!(last.kind, ActionKind::Verdict(_)));
        self.table.rules.push(RuleInfo { identity, name, span: rule.span, ends });
    }
}
