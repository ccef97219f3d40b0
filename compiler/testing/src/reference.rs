//! The reference evaluator: what a typed program means, written for obviousness.
//!
//! It reads the typed program alone and shares no code with the stages behind it, so it is the oracle that the
//! emitted objects are compared with. A packet is parsed whole, by the declarations ([`parse`]); rules are then
//! tried one after the other against what was found ([`packet`]), with the operators of [`expression`].

mod expression;
mod layout;
mod options;
mod packet;
mod parse;
mod value;

use std::collections::{BTreeSet, HashMap};

use pktc_diagnostics::SourceMap;
use pktc_semantics::rules::{RuleId, RuleTable};
use pktc_semantics::typed::{Action, ActionKind, ChainId, CounterId, Program, Stmt, Verdict, Xdp};

pub(crate) use expression::{Operands, holds, number, walk};
pub(crate) use layout::{View, takes_rest, write_bits};
pub(crate) use value::Operand;

use crate::engine::{Engine, EngineError, Env, Outcome};
use packet::Packet;
use parse::{Node, header_end};

/// Packets and bytes.
type Count = (u64, u64);

/// The reference engine for one program.
///
/// It takes every packet; [`Env::linear`] and [`Env::fragment`] do not change what it says, and it counts
/// whether or not the program says `counters off`.
#[derive(Clone, Debug)]
pub struct Reference {
    program: Program,
    subject: Xdp,
    rules: RuleTable,
    by_rule: Vec<Count>,
    by_name: HashMap<CounterId, Count>,
}

impl Reference {
    /// An engine that runs `subject`, as [`Program::subject`] gives it.
    #[must_use]
    pub fn new(program: &Program, sources: &SourceMap, subject: &Xdp) -> Self {
        let rules = RuleTable::new(program, sources, subject);
        let by_rule = vec![(0, 0); rules.rules().len()];
        let by_name = HashMap::new();
        Reference { program: program.clone(), subject: subject.clone(), rules, by_rule, by_name }
    }

    /// Packets and bytes that a named counter has counted so far.
    #[must_use]
    pub fn counter(&self, counter: CounterId) -> (u64, u64) {
        self.by_name.get(&counter).copied().unwrap_or_default()
    }
}

/// Where the last of the packet's headers ends, in bytes from its start: what rules read of it besides payloads lies
/// before.
#[must_use]
pub fn headers_end(program: &Program, packet: &[u8], env: &Env) -> usize {
    let packet = Packet::new(program, packet, env);
    packet.nodes.iter().map(|node| header_end(&packet, node)).max().unwrap_or(0)
}

/// Where the packet ends as its outermost header with a length says, in bytes from its start, at most the frame's;
/// `None` if no header does.
#[must_use]
pub fn claims_end(program: &Program, packet: &[u8], env: &Env) -> Option<usize> {
    let packet = Packet::new(program, packet, env);
    let claims = |node: &&Node| !program.headers[node.header].claims.is_empty();
    packet.nodes.iter().find(claims)?.extent.as_ref().map(|extent| extent.content.end)
}

impl Engine for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn run(&mut self, packet: &[u8], env: &Env) -> Result<Outcome, EngineError> {
        let parsed = Packet::new(&self.program, packet, env);
        let mut run =
            Run { program: &self.program, rules: &self.rules, packet: parsed, held: vec![], counted: vec![] };
        let decided = run.program(&self.subject);
        let Run { held, counted, .. } = run;
        let add = |count: &mut Count| *count = (count.0 + 1, count.1 + packet.len() as u64);
        held.iter().for_each(|rule| add(&mut self.by_rule[rule.0 as usize]));
        counted.iter().for_each(|&counter| add(self.by_name.entry(counter).or_default()));
        let Some((verdict, rule)) = decided else {
            return Err(EngineError::Fault(format!("`default` of `{}` gives no verdict", self.subject.name)));
        };
        let hits = held.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        Ok(Outcome { verdict, rule, hits })
    }

    fn counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError> {
        Ok(self.by_rule.clone())
    }
}

/// One packet on its way through the rules.
struct Run<'a> {
    program: &'a Program,
    rules: &'a RuleTable,
    packet: Packet<'a>,
    /// Rules whose condition held, in order; a chain applied twice may have one in it twice.
    held: Vec<RuleId>,
    /// Named counters that counted, in order.
    counted: Vec<CounterId>,
}

/// How statements or actions ended.
enum Flow {
    /// What comes next is done.
    On,
    /// The chain is left.
    Return,
    /// The program ends.
    Decided(Verdict, RuleId),
}

impl Run<'_> {
    fn program(&mut self, subject: &Xdp) -> Option<(Verdict, RuleId)> {
        let (verdict, rule) = self.decide(subject)?;
        for on in subject.on.iter().filter(|on| on.verdicts.contains(&verdict)) {
            self.actions(&on.actions, rule);
        }
        Some((verdict, rule))
    }

    fn decide(&mut self, subject: &Xdp) -> Option<(Verdict, RuleId)> {
        if let Flow::Decided(verdict, rule) = self.body(&subject.body) {
            return Some((verdict, rule));
        }
        self.held.push(RuleId::DEFAULT);
        match self.actions(&subject.default, RuleId::DEFAULT) {
            Flow::Decided(verdict, rule) => Some((verdict, rule)),
            Flow::On | Flow::Return => None,
        }
    }

    fn body(&mut self, body: &[Stmt]) -> Flow {
        for stmt in body {
            let flow = match stmt {
                Stmt::Rule(rule) if holds(&rule.condition, &self.packet) => {
                    let id = self.rules.id(rule);
                    self.held.push(id);
                    self.actions(&rule.actions, id)
                }
                Stmt::When { condition, body } if holds(condition, &self.packet) => self.body(body),
                Stmt::Rule(_) | Stmt::When { .. } => Flow::On,
                Stmt::Apply { chain, .. } => self.chain(*chain),
            };
            if !matches!(flow, Flow::On) {
                return flow;
            }
        }
        Flow::On
    }

    fn chain(&mut self, chain: ChainId) -> Flow {
        let program = self.program;
        match self.body(&program.chains[chain].body) {
            Flow::On | Flow::Return => Flow::On,
            decided @ Flow::Decided(..) => decided,
        }
    }

    fn actions(&mut self, actions: &[Action], rule: RuleId) -> Flow {
        for action in actions {
            let flow = match action.kind {
                ActionKind::Verdict(verdict) => Flow::Decided(verdict, rule),
                ActionKind::Return => Flow::Return,
                ActionKind::Count(counter) => {
                    self.counted.push(counter);
                    Flow::On
                }
                ActionKind::Apply(chain) => self.chain(chain),
            };
            if !matches!(flow, Flow::On) {
                return flow;
            }
        }
        Flow::On
    }
}
