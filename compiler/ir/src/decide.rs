//! The decision graph: rule IR with its control flow written out, still without any parsing.
//!
//! Each node is one test with two ways on, or one effect. Nodes are made behind what they lead to, so an index
//! is always larger than those of the nodes that follow: one pass in index order sees what follows first.
#![expect(missing_docs, reason = "each variant's example names its fields")]

use std::rc::Rc;

use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};
use pktc_diagnostics::Span;
use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::{CounterId, HeaderId, Scope, Verdict};

use crate::rule::{Action, Cond, Item, ItemId, Node, Num, RuleProgram, Slot, SlotId, Suspects, Test};

/// A node of the graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision(u32);
entity_impl!(Decision, "decision");

/// What a node does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Asks, and goes on by the answer.
    Test { test: Test, then: Decision, otherwise: Decision },
    /// A rule's condition held.
    Hit { rule: RuleId, next: Decision },
    /// Counts.
    Count { counter: CounterId, next: Decision },
    /// Ends the program; counts the rule that decided, unless it has counted before.
    Finish { rule: Option<RuleId>, verdict: Verdict },
}

/// What a node and all that may follow it ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Presence.
    pub items: BitSet,
    /// Values.
    pub slots: BitSet,
    /// The headers whose malformation is asked, sorted.
    pub malformed: Vec<Suspects>,
    /// Items that many tests may be the first to ask for.
    pub often: BitSet,
}

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    /// Adds `index`.
    pub fn insert(&mut self, index: usize) {
        if self.0.len() <= index / 64 {
            self.0.resize(index / 64 + 1, 0);
        }
        self.0[index / 64] |= 1 << (index % 64);
    }

    /// Takes `index` out.
    pub fn remove(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
            self.trim();
        }
    }

    /// Equal sets must be equal words.
    fn trim(&mut self) {
        let used = self.0.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        self.0.truncate(used);
    }

    /// Whether `index` is in it.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Adds all of `other`.
    pub fn union(&mut self, other: &BitSet) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    /// What is in both.
    #[must_use]
    pub fn both(&self, other: &BitSet) -> BitSet {
        let mut both = BitSet(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect());
        both.trim();
        both
    }

    /// Its numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let rest = std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
            rest.take_while(|&bits| bits != 0).map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}

/// A whole program.
pub struct DecisionGraph {
    /// The nodes.
    pub steps: PrimaryMap<Decision, (Step, Span)>,
    /// What each node and all behind it need.
    pub needs: PrimaryMap<Decision, Rc<Needs>>,
    /// Where it starts.
    pub entry: Decision,
}

/// An item that so many tests may be the first to ask for is asked often.
const OFTEN: usize = 4;

/// Writes out the control flow of `program`.
#[must_use]
pub fn build_decisions(program: &RuleProgram) -> DecisionGraph {
    let mut builder = Builder { steps: PrimaryMap::new() };
    let decided = Decider { rule: RuleId::DEFAULT, span: program.default_span, counts: true };
    // `default` ends with a verdict, so nothing follows it.
    let nothing = builder.push(Step::Finish { rule: None, verdict: Verdict::Abort }, program.default_span);
    let default = builder.actions(&program.default, decided, nothing, nothing);
    let entry = builder.body(&program.body, default, default);
    let steps = builder.steps;
    let mut needs: PrimaryMap<Decision, Rc<Needs>> = PrimaryMap::new();
    let mut askers: PrimaryMap<Decision, Rc<Askers>> = PrimaryMap::new();
    for (decision, (step, _)) in &steps {
        let own = askers_of(decision, step, &askers);
        needs.push(needs_of(program, step, &own, &needs));
        askers.push(own);
    }
    DecisionGraph { steps, needs, entry }
}

/// Of each item, which tests may be the first to ask for it: ascending, [`OFTEN`] of them at most.
type Askers = Vec<Vec<Decision>>;

fn askers_of(decision: Decision, step: &Step, known: &PrimaryMap<Decision, Rc<Askers>>) -> Rc<Askers> {
    let (test, then, otherwise) = match step {
        Step::Finish { .. } => return Rc::default(),
        Step::Hit { next, .. } | Step::Count { next, .. } => return known[*next].clone(),
        Step::Test { test, then, otherwise } => (test, &known[*then], &known[*otherwise]),
    };
    let mut askers = then.clone();
    if !Rc::ptr_eq(then, otherwise) {
        merge_askers(Rc::make_mut(&mut askers), otherwise);
    }
    if let Test::Present(item) = test {
        let askers = Rc::make_mut(&mut askers);
        askers.resize(askers.len().max(item.index() + 1), Vec::new());
        askers[item.index()] = vec![decision];
    }
    askers
}

fn merge_askers(askers: &mut Askers, others: &Askers) {
    askers.resize(askers.len().max(others.len()), Vec::new());
    for (askers, others) in askers.iter_mut().zip(others) {
        askers.extend(others);
        askers.sort_unstable();
        askers.dedup();
        askers.truncate(OFTEN);
    }
}

#[derive(Clone, Copy)]
struct Decider {
    rule: RuleId,
    span: Span,
    counts: bool,
}

struct Builder {
    steps: PrimaryMap<Decision, (Step, Span)>,
}

impl Builder {
    fn push(&mut self, step: Step, span: Span) -> Decision {
        self.steps.push((step, span))
    }

    /// `leave`: where `return` leads.
    fn body(&mut self, body: &[Node], next: Decision, leave: Decision) -> Decision {
        body.iter().rev().fold(next, |next, node| match node {
            Node::Rule { id, condition, actions, span } => {
                let decider = Decider { rule: *id, span: *span, counts: true };
                let held = self.rule_actions(actions, decider, next, leave);
                self.cond(condition, held, next)
            }
            Node::When { condition, body } => {
                let inside = self.body(body, next, leave);
                self.cond(condition, inside, next)
            }
            Node::Chain { body, .. } => self.body(body, next, next),
        })
    }

    fn rule_actions(
        &mut self,
        actions: &[Action],
        decider: Decider,
        next: Decision,
        leave: Decision,
    ) -> Decision {
        let may_end_before = actions.iter().any(|action| matches!(action, Action::Chain { .. }));
        if matches!(actions.last(), Some(Action::Verdict(_))) && !may_end_before {
            return self.actions(actions, decider, next, leave);
        }
        // The rule counts where its condition held, whatever follows: a verdict behind that must not count again.
        let rest = self.actions(actions, Decider { counts: false, ..decider }, next, leave);
        self.push(Step::Hit { rule: decider.rule, next: rest }, decider.span)
    }

    fn actions(&mut self, actions: &[Action], decider: Decider, next: Decision, leave: Decision) -> Decision {
        actions.iter().rev().fold(next, |next, action| match action {
            Action::Verdict(verdict) => {
                let rule = decider.counts.then_some(decider.rule);
                self.push(Step::Finish { rule, verdict: *verdict }, decider.span)
            }
            Action::Return => leave,
            Action::Count(counter) => self.push(Step::Count { counter: *counter, next }, decider.span),
            Action::Chain { body, .. } => self.body(body, next, next),
        })
    }

    fn cond(&mut self, cond: &Cond, then: Decision, otherwise: Decision) -> Decision {
        match cond {
            Cond::Const(true) => then,
            Cond::Const(false) => otherwise,
            Cond::Test(test, span) => self.push(Step::Test { test: test.clone(), then, otherwise }, *span),
            Cond::Not(inner) => self.cond(inner, otherwise, then),
            Cond::And(parts) => parts.iter().rev().fold(then, |then, part| self.cond(part, then, otherwise)),
            Cond::Or(parts) => {
                parts.iter().rev().fold(otherwise, |otherwise, part| self.cond(part, then, otherwise))
            }
            Cond::If(parts) => {
                let [cond, first, second] = &**parts;
                let first = self.cond(first, then, otherwise);
                let second = self.cond(second, then, otherwise);
                self.cond(cond, first, second)
            }
        }
    }
}

fn needs_of(
    program: &RuleProgram,
    step: &Step,
    askers: &Askers,
    known: &PrimaryMap<Decision, Rc<Needs>>,
) -> Rc<Needs> {
    match step {
        Step::Finish { .. } => Rc::default(),
        Step::Hit { next, .. } | Step::Count { next, .. } => known[*next].clone(),
        Step::Test { test, then, otherwise } => {
            let mut needs = (*known[*then]).clone();
            needs.add(&known[*otherwise]);
            needs.add_test(program, test);
            needs.often = BitSet::default();
            let often = askers.iter().enumerate().filter(|(_, askers)| askers.len() >= OFTEN);
            often.for_each(|(item, _)| needs.often.insert(item));
            Rc::new(needs)
        }
    }
}

impl Needs {
    /// Whether it matters that some `header` of that packet is malformed.
    #[must_use]
    pub fn ask_malformed(&self, scope: Scope, header: HeaderId) -> bool {
        self.malformed.iter().any(|suspects| suspects.include_kind(scope, header))
    }

    fn add(&mut self, other: &Needs) {
        self.items.union(&other.items);
        self.slots.union(&other.slots);
        other.malformed.iter().for_each(|who| self.add_malformed(who.clone()));
    }

    fn add_malformed(&mut self, who: Suspects) {
        if let Err(place) = self.malformed.binary_search(&who) {
            self.malformed.insert(place, who);
        }
    }

    fn add_test(&mut self, program: &RuleProgram, test: &Test) {
        match test {
            Test::Present(item) => self.add_item(program, *item),
            Test::Malformed(suspects) => self.add_malformed(suspects.clone()),
            Test::Bytes { slot, .. } => self.add_slot(program, *slot),
            Test::Compare { left, right, .. } => {
                self.add_num(program, left);
                self.add_num(program, right);
            }
            Test::Ranges { value, .. } => self.add_num(program, value),
            Test::WideRanges { high, low, .. } => {
                self.add_slot(program, *high);
                self.add_slot(program, *low);
            }
        }
    }

    fn add_num(&mut self, program: &RuleProgram, num: &Num) {
        match num {
            Num::Bits { slot, .. } | Num::Slot(slot) => self.add_slot(program, *slot),
            Num::Binary { left, right, .. } => {
                self.add_num(program, left);
                self.add_num(program, right);
            }
            Num::Const(_) | Num::PacketLength | Num::Ifindex | Num::Queue => {}
        }
    }

    fn add_item(&mut self, program: &RuleProgram, item: ItemId) {
        self.items.insert(item.index());
        let of_header = match &program.items[item] {
            Item::Part(part) => Some(part.place),
            other => other.in_options_of(),
        };
        if let Some(of) = of_header {
            // That is looked for where its header is parsed.
            let mut items = program.items.iter();
            let owner = items.find(|(_, other)| matches!(other, Item::Header(place) if *place == of));
            if let Some((owner, _)) = owner {
                self.items.insert(owner.index());
            }
        }
    }

    fn add_slot(&mut self, program: &RuleProgram, slot: SlotId) {
        self.slots.insert(slot.index());
        match program.slots[slot] {
            Slot::Bytes { item, .. }
            | Slot::Payload { item, .. }
            | Slot::OptionLength { item, .. }
            | Slot::OptionBytes { item, .. } => self.add_item(program, item),
            Slot::HeaderLength(_) | Slot::PayloadLength(_) | Slot::Truncated(_) | Slot::Member { .. } => {}
        }
    }
}
