//! Decision graph to flow IR, by following each way through the program with what is known there.
//!
//! The same decision reached with the same [`State`] is one block; with another state it is another block, in
//! which tests that the state answers cost nothing. Parsing is lazy: a test that needs to know of a header makes
//! one step of the parse ([`parse`], [`follow`], [`group`]), each outcome of which is a new state, and the same
//! test is tried again there. A state keeps only what the decisions ahead ask for, so ways that differ in nothing
//! that matters meet again.
//!
//! Where a header is present, the slots that decisions ahead read are loaded at once, so no decision needs the
//! cursor, and nothing behind the parse holds a pointer.

mod bounds;
mod follow;
mod generalise;
mod group;
mod number;
mod options;
mod parse;
mod parts;
mod state;
mod test;

use hashbrown::HashMap;
use std::rc::Rc;

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_semantics::typed::{FieldIndex, HeaderId, Program, Scope};

use crate::decide::{Decision, DecisionGraph, Needs, Step, build_decisions};
use crate::flow::{Block, BlockData, End, Flow, Op, Value};
use crate::graph::Graph;
use crate::rule::{ItemId, Place, RuleProgram, SlotId, Test};
use state::{Outlook, Pending, State};

/// From so many tests on, tests must not mark what they read ([`Flow::hide_tests`]).
const MANY_TESTS: usize = 64;

/// What a flow must tell besides its verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowOptions {
    /// Whether counters need to know what lengths packets claim ([`Op::Claims`]), as not all of a packet may be reached.
    pub claims: bool,
}

/// Builds the flow IR of `rules`.
///
/// # Errors
/// What this version cannot compile, each with its place.
pub fn build_flow(
    program: &Program,
    rules: &RuleProgram,
    options: FlowOptions,
) -> Result<Flow, Vec<Diagnostic>> {
    let flow = specialise(program, rules, options, false)?;
    if flow.blocks.len() < generalise::BUDGET {
        return Ok(flow);
    }
    specialise(program, rules, options, true)
}

/// `sparing`: a few instructions more at each header spare the kernel's verifier states.
fn specialise(
    program: &Program,
    rules: &RuleProgram,
    options: FlowOptions,
    sparing: bool,
) -> Result<Flow, Vec<Diagnostic>> {
    let graph = Graph::new(program);
    let decisions = build_decisions(rules);
    let tests = decisions.steps.values().filter(|(step, _)| matches!(step, Step::Test { .. })).count();
    let counts = rules.counters
        || !rules.on.is_empty()
        || decisions.steps.values().any(|(step, _)| matches!(step, Step::Count { .. }));
    let flow = Flow {
        name: rules.name.clone(),
        span: rules.span,
        blocks: PrimaryMap::new(),
        values: PrimaryMap::new(),
        cells: PrimaryMap::new(),
        on: rules.on.clone(),
        counters: rules.counters,
        rules: rules.rules.rules().len() as u32,
        hide_tests: sparing || tests > MANY_TESTS,
    };
    let mut specialiser = Specialiser {
        outlook: Outlook { graph: &graph, rules },
        decisions: &decisions,
        flow,
        known: HashMap::new(),
        states: SecondaryMap::new(),
        open: Vec::new(),
        current: Block::new(0),
        span: rules.span,
        slots: SecondaryMap::new(),
        items: SecondaryMap::new(),
        headers: HashMap::new(),
        remembered: HashMap::new(),
        claims: options.claims && counts,
        sparing,
        left: Value::new(0),
        kind: Value::new(0),
        diagnostics: Vec::new(),
    };
    specialiser.run(program.root);
    if specialiser.diagnostics.is_empty() { Ok(specialiser.flow) } else { Err(specialiser.diagnostics) }
}

/// What is kept of a header while something is still to follow it.
#[derive(Clone, Copy)]
struct HeaderValues {
    /// Its length in bytes.
    length: Value,
    /// Its distance from the packet's start.
    position: Value,
    /// How many bytes from its start on enclosing headers claim.
    left: Value,
}

struct Specialiser<'a> {
    outlook: Outlook<'a>,
    decisions: &'a DecisionGraph,
    flow: Flow,
    known: HashMap<(Decision, State), Block>,
    /// How many states each decision is reached with.
    states: SecondaryMap<Decision, u32>,
    /// Blocks still to be filled.
    open: Vec<(Block, Decision, State)>,
    /// The block that is being filled, and the source of what is added.
    current: Block,
    span: Span,
    slots: SecondaryMap<SlotId, Option<Value>>,
    /// Whether an item of a group is there.
    items: SecondaryMap<ItemId, Option<Value>>,
    headers: HashMap<Place, HeaderValues>,
    /// Fields that declarations of other headers speak of, or that lie before a header's end.
    remembered: HashMap<(Place, FieldIndex), Value>,
    /// Whether [`Op::Claims`] is asked for.
    claims: bool,
    /// See [`specialise`].
    sparing: bool,
    /// How many bytes from the cursor's header on enclosing headers claim, where they claim any.
    left: Value,
    /// What selected the header at the cursor, within a group.
    kind: Value,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Specialiser<'a> {
    fn run(&mut self, root: HeaderId) {
        self.left = self.flow.values.push("left".into());
        self.kind = self.flow.values.push("kind".into());
        let place = Place { scope: Scope::default(), header: root, index: 0 };
        let counts = Vec::new();
        let start = State {
            pending: vec![Pending::Header { place, enclosed: false, counts }],
            cursor: Some(place),
            ..State::default()
        };
        let entry = self.decisions.entry;
        let start = self.outlook.restrict(start, &self.decisions.needs[entry]);
        self.specialised(entry, start);
        while let Some((block, decision, state)) = self.open.pop() {
            self.current = block;
            self.fill(decision, state);
        }
    }

    /// The block that goes on with `decision`, knowing `state`.
    fn block_for(&mut self, decision: Decision, state: State) -> Block {
        let state = self.outlook.restrict(state, &self.decisions.needs[decision]);
        self.generalised(decision, state)
    }

    /// The block that goes on with `decision`, knowing just `state`.
    fn specialised(&mut self, decision: Decision, state: State) -> Block {
        let key = (decision, state);
        if let Some(&block) = self.known.get(&key) {
            return block;
        }
        let block = self.new_block();
        self.states[decision] += 1;
        self.open.push((block, decision, key.1.clone()));
        self.known.insert(key, block);
        block
    }

    fn fill(&mut self, start: Decision, state: State) {
        let mut decision = start;
        loop {
            let (step, span) = &self.decisions.steps[decision];
            self.span = *span;
            match step {
                Step::Finish { rule, verdict } => {
                    let ask = self.asks(&state);
                    return self.end(End::Finish { rule: *rule, verdict: *verdict, ask });
                }
                Step::Hit { rule, next } => {
                    self.op(Op::Hit { rule: *rule, ask: self.asks(&state) });
                    decision = *next;
                }
                Step::Count { counter, next } => {
                    self.op(Op::Count { counter: *counter, ask: self.asks(&state) });
                    decision = *next;
                }
                Step::Test { test, then, otherwise } => match self.answer(test, &state) {
                    Answer::Known(true) => decision = *then,
                    Answer::Known(false) => decision = *otherwise,
                    // Others may come here with the same knowledge.
                    Answer::Open(_) | Answer::Runtime if decision != start => {
                        let block = self.block_for(decision, state);
                        return self.end(End::Goto(block));
                    }
                    Answer::Open(pending) => return self.advance(pending, state, decision),
                    Answer::Runtime => {
                        if let Some(pending) = self.wanted_early(decision, &state) {
                            return self.advance(pending, state, decision);
                        }
                        let then = self.block_for(*then, state.clone());
                        let otherwise = self.block_for(*otherwise, state);
                        return self.test(test, then, otherwise);
                    }
                },
            }
        }
    }

    /// Whether counters must ask for the packet's length.
    fn asks(&self, state: &State) -> bool {
        self.claims && !state.claimed
    }

    /// What is to be parsed before a test though the test does not ask for it: many tests ahead do, and each that
    /// came first would have a parse of its own.
    fn wanted_early(&self, decision: Decision, state: &State) -> Option<usize> {
        let often = &self.decisions.needs[decision].often;
        let leads = |pending: &Pending| {
            let parses = !matches!(pending, Pending::Stored { .. });
            parses && often.iter().any(|item| self.outlook.leads_to_item(pending, ItemId::new(item)))
        };
        state.pending.iter().position(leads)
    }

    fn answer(&self, test: &Test, state: &State) -> Answer {
        match test {
            Test::Present(item) => self.answer_present(*item, state),
            Test::Malformed(suspects) => {
                if state.malformed.iter().any(|&place| suspects.include(place)) {
                    return Answer::Known(true);
                }
                let open = |pending: &Pending| {
                    let mut headers = suspects.headers.iter();
                    headers.any(|&header| self.outlook.leads_to_header(pending, (suspects.scope, header)))
                };
                state.pending.iter().position(open).map_or(Answer::Known(false), Answer::Open)
            }
            Test::Bytes { .. } | Test::Compare { .. } | Test::Ranges { .. } | Test::WideRanges { .. } => {
                Answer::Runtime
            }
        }
    }

    fn answer_present(&self, item: ItemId, state: &State) -> Answer {
        if state.present.contains(item.index()) {
            return Answer::Known(true);
        }
        let pending = &state.pending;
        let stored = pending.iter().position(|pending| *pending == Pending::Stored { item });
        let open = || pending.iter().position(|pending| self.outlook.leads_to_item(pending, item));
        stored.or_else(open).map_or(Answer::Known(false), Answer::Open)
    }

    /// Makes one step with `state.pending[index]`; all outcomes try `decision` again.
    fn advance(&mut self, index: usize, mut state: State, decision: Decision) {
        // What starts at the cursor is nowhere else to be found again: it comes before all that moves the cursor.
        let starts = |pending: &Pending| matches!(pending, Pending::Header { .. } | Pending::Group { .. });
        let moves = !matches!(state.pending[index], Pending::Stored { .. });
        let index = state.pending.iter().position(starts).filter(|_| moves).unwrap_or(index);
        let pending = state.pending.remove(index);
        let here = Here { decision, needs: self.decisions.needs[decision].clone(), rest: state };
        match pending {
            Pending::Header { place, enclosed, counts } => self.parse_header(place, enclosed, counts, &here),
            Pending::Follow { place, next, enclosed, counts, taken } => {
                self.follow(follow::Following { place, next, enclosed, counts, taken }, &here);
            }
            Pending::Group { first, union, enclosed, counts } => {
                self.parse_group(first, union, enclosed, counts, &here)
            }
            Pending::Options { place, enclosed } => self.parse_options(place, enclosed, &here),
            Pending::Stored { item } => self.recall(item, &here),
        }
    }

    // ---- building blocks ----

    fn new_block(&mut self) -> Block {
        let end = End::Finish { rule: None, verdict: pktc_semantics::typed::Verdict::Abort, ask: false };
        self.flow.blocks.push(BlockData { ops: Vec::new(), end, end_span: self.span })
    }

    fn op(&mut self, op: Op) {
        self.flow.blocks[self.current].ops.push((op, self.span));
    }

    fn end(&mut self, end: End) {
        let block = &mut self.flow.blocks[self.current];
        (block.end, block.end_span) = (end, self.span);
    }

    fn value(&mut self, name: impl Into<String>) -> Value {
        self.flow.values.push(name.into())
    }

    fn not_yet(&mut self, what: &str) {
        let title = format!("{what}: not yet compiled by this version of pktc");
        self.diagnostics.push(
            Diagnostic::error(codes::NOT_YET, title, self.span, "needed here")
                .with_note("the reference engine (`pktc run --engine reference`) already knows it"),
        );
    }

    fn slot(&mut self, slot: SlotId) -> Value {
        if let Some(value) = self.slots[slot] {
            return value;
        }
        let name = crate::print::slot_name(self.outlook.graph.program, &self.outlook.rules.slots[slot]);
        let value = self.value(name);
        self.slots[slot] = Some(value);
        value
    }

    fn header_values(&mut self, place: Place) -> HeaderValues {
        if let Some(&values) = self.headers.get(&place) {
            return values;
        }
        let name = self.outlook.graph.header(place.header).name.clone();
        let values = HeaderValues {
            length: self.value(format!("{name}.length")),
            position: self.value(format!("{name}.position")),
            left: self.value(format!("{name}.left")),
        };
        self.headers.insert(place, values);
        values
    }
}

/// What a state says of a test.
enum Answer {
    /// It is decided.
    Known(bool),
    /// Following that pending thing may decide it.
    Open(usize),
    /// Its values are loaded: the packet decides.
    Runtime,
}

/// Where a parse step was asked for, and what is known besides it.
#[derive(Clone)]
struct Here {
    decision: Decision,
    needs: Rc<Needs>,
    rest: State,
}
