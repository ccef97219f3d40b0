//! Random programs.

use pktc_semantics::typed::{HeaderId, Program};

use super::condition::Drawer;
use super::dice::Dice;
use super::sketch::Sketch;
use super::source::{Condition, Source, Stmt};

/// Rules of an ordinary program.
const MOST_RULES: usize = 20;
/// Rules of a long one.
const LONG: (usize, usize) = (100, 130);
/// So many of 100 programs are long.
const LONG_SHARE: usize = 3;
/// Of 100 rules of such a program, so many only count: or none would come to those at the end.
const COUNTING: usize = 70;
/// How deep `when`s nest.
const DEEPEST: usize = 2;

/// A program on what `declarations` (and stdlib) declare, with constants from `anchors`.
pub(super) fn draw(
    program: &Program,
    declarations: &[String],
    theme: &[HeaderId],
    anchors: &[Sketch<'_>],
    dice: &mut Dice,
) -> Source {
    let drawer = Drawer::new(program, theme.to_vec(), anchors, Dice::new(dice.number()));
    let is_long = dice.chance(LONG_SHARE);
    let (chains, counters, applied) = (Vec::new(), Vec::new(), Vec::new());
    let mut builder = Builder { drawer, chains, counters, labels: 0, applied, is_long };
    let rules = if is_long { dice.between(LONG.0, LONG.1) } else { dice.between(1, MOST_RULES) };
    let chains = if dice.chance(35) { dice.between(1, 2) } else { 0 };
    for _ in 0..chains {
        let name = builder.drawer.name("chain");
        let rules = dice.between(1, (rules / 4).clamp(1, 5));
        let body = builder.statements(rules, 1, true);
        builder.chains.push((name, body));
    }
    let mut body = builder.statements(rules, 0, false);
    for chain in builder.idle_chains() {
        let at = builder.drawer.dice.below(body.len() + 1);
        body.insert(at, Stmt::Apply(chain));
    }
    let default = builder.default();
    let Builder { drawer, chains, counters: names, .. } = builder;
    let mut all = declarations.to_vec();
    all.extend(drawer.declarations);
    all.extend(names.iter().map(|name| format!("counter {name};")));
    Source { declarations: all, chains, counters: !dice.chance(8), default, body }
}

struct Builder<'a> {
    drawer: Drawer<'a>,
    chains: Vec<(String, Vec<Stmt>)>,
    counters: Vec<String>,
    labels: usize,
    applied: Vec<String>,
    is_long: bool,
}

impl Builder<'_> {
    /// Statements with so many rules.
    fn statements(&mut self, rules: usize, depth: usize, in_chain: bool) -> Vec<Stmt> {
        let mut body = Vec::new();
        let mut left = rules;
        while left > 0 {
            let chain = self.chain();
            match self.drawer.dice.weighted(&[(80, 'r'), (12, 'w'), (8, 'a')]) {
                'w' if depth < DEEPEST => {
                    let inside = self.drawer.dice.between(1, left.min(4));
                    left -= inside;
                    body.push(self.when(inside, depth, in_chain));
                }
                'a' if chain.is_some() => body.extend(chain.map(Stmt::Apply)),
                _ => {
                    left -= 1;
                    body.push(self.rule(in_chain));
                }
            }
        }
        body
    }

    /// A chain to apply: one that is not applied yet, mostly.
    fn chain(&mut self) -> Option<String> {
        let names: Vec<String> = self.chains.iter().map(|(name, _)| name.clone()).collect();
        let name = self.drawer.dice.pick(&names)?.clone();
        let again = self.applied.contains(&name);
        if again && !self.drawer.dice.chance(25) {
            return None;
        }
        self.applied.push(name.clone());
        Some(name)
    }

    /// The chains that nothing applies yet.
    fn idle_chains(&self) -> Vec<String> {
        let names = self.chains.iter().map(|(name, _)| name);
        names.filter(|name| !self.applied.contains(name)).cloned().collect()
    }

    fn when(&mut self, rules: usize, depth: usize, in_chain: bool) -> Stmt {
        let Some(anchor) = self.drawer.dice.pick(self.drawer.anchors) else { return self.rule(in_chain) };
        let operand = self.drawer.operand(anchor);
        let known = self.drawer.certain.len();
        let condition = match operand.guard.clone() {
            Some(guard) if self.drawer.dice.chance(60) => {
                self.drawer.certain.push(operand);
                Condition::Atom(guard)
            }
            _ => self.drawer.condition(1, anchor),
        };
        let body = self.statements(rules, depth + 1, in_chain);
        self.drawer.certain.truncate(known);
        Stmt::When { condition, body }
    }

    fn rule(&mut self, in_chain: bool) -> Stmt {
        let anchors = self.drawer.anchors;
        let depth = self.drawer.dice.weighted(&[(3, 0), (4, 1), (2, 2), (1, 3)]);
        let condition = match self.drawer.dice.pick(anchors) {
            Some(anchor) => self.drawer.condition(depth, anchor),
            None => Condition::Atom("eth".into()),
        };
        self.labels += 1;
        let label = self.drawer.dice.chance(60).then(|| format!("r{}", self.labels));
        let actions = self.actions(in_chain);
        Stmt::Rule { label, condition, actions }
    }

    fn verdict(&mut self) -> &'static str {
        self.drawer.dice.weighted(&[(45, "drop"), (33, "pass"), (13, "tx"), (9, "abort")])
    }

    fn counter(&mut self) -> String {
        if let Some(name) = self.drawer.dice.pick(&self.counters)
            && self.drawer.dice.chance(50)
        {
            return name.clone();
        }
        let name = self.drawer.name("n");
        self.counters.push(name.clone());
        name
    }

    fn actions(&mut self, in_chain: bool) -> String {
        let verdict = self.verdict();
        if self.is_long && self.drawer.dice.chance(COUNTING) {
            return format!("count {}", self.counter());
        }
        match self.drawer.dice.weighted(&[(60, 'v'), (12, 'b'), (15, 'c'), (6, 'a'), (7, 'r')]) {
            'b' => format!("count {}, {verdict}", self.counter()),
            'c' => format!("count {}", self.counter()),
            'a' => match self.chain() {
                Some(chain) if self.drawer.dice.chance(50) => format!("apply {chain}"),
                Some(chain) => format!("apply {chain}, {verdict}"),
                None => verdict.into(),
            },
            'r' if in_chain => "return".into(),
            _ => verdict.into(),
        }
    }

    fn default(&mut self) -> String {
        let verdict = self.verdict();
        if self.drawer.dice.chance(20) {
            format!("count {}, {verdict}", self.counter())
        } else {
            verdict.into()
        }
    }
}
