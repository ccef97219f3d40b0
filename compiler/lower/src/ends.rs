//! The ends of a program: rules share those that count, so that a rule itself only says which it is.
//!
//! ```text
//! rule: index, verdict ─┬─ told what the packet claims ─► length ─┬─► counts rule `index` ─► counts the verdict ─► exit
//!                       └─ not told ─► asks for the length ───────┘
//! ```

use pktc_bpf::Operand;
use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::Verdict;

use crate::counters;
use crate::function::{Lowering, xdp_action};
use crate::vcode::{Terminator, VBlockId, VReg};

/// The ends that were asked for.
pub(crate) struct Ends {
    /// How long the packet is that they count.
    length: VReg,
    tails: Vec<Tail>,
    /// Where the packet is counted by its verdict alone, which then is returned.
    verdicts: Vec<(Verdict, VBlockId)>,
    /// Blocks that find out the length for the block behind them; by whether they have to ask.
    measured: Vec<((VBlockId, bool), VBlockId)>,
}

/// An end that rules share: counts the rule.
#[derive(Clone, Copy)]
struct Tail {
    /// Only for that verdict, which counts by itself.
    only: Option<Verdict>,
    block: VBlockId,
    index: VReg,
    verdict: VReg,
}

impl Ends {
    /// None yet; `length`: a register for theirs.
    pub(crate) fn new(length: VReg) -> Self {
        Ends { length, tails: Vec::new(), verdicts: Vec::new(), measured: Vec::new() }
    }
}

impl Lowering<'_> {
    /// Ends the block and the program. `ask`: the packet's length was not told by what it claims.
    pub(crate) fn finish(&mut self, rule: Option<RuleId>, verdict: Verdict, ask: bool) {
        let counts = self.flow.on.iter().any(|(on, _)| *on == verdict);
        let end = match rule.and_then(|rule| self.rule_index(rule)) {
            Some(index) => {
                let tail = self.tail(counts.then_some(verdict));
                self.mov(tail.index, Operand::Imm(index));
                if tail.only.is_none() {
                    self.mov(tail.verdict, exit_code(verdict));
                }
                Terminator::Goto(self.measured(tail.block, ask))
            }
            None if counts => {
                let counting = self.verdict_end(verdict);
                Terminator::Goto(self.measured(counting, ask))
            }
            None => Terminator::Exit(exit_code(verdict)),
        };
        self.end(end);
    }

    fn tail(&mut self, only: Option<Verdict>) -> Tail {
        if let Some(tail) = self.ends.tails.iter().find(|tail| tail.only == only) {
            return *tail;
        }
        let tail = Tail { only, block: self.new_block(), index: self.fresh(), verdict: self.fresh() };
        self.ends.tails.push(tail);
        tail
    }

    fn verdict_end(&mut self, verdict: Verdict) -> VBlockId {
        if let Some(&(_, block)) = self.ends.verdicts.iter().find(|(of, _)| *of == verdict) {
            return block;
        }
        let block = self.new_block();
        self.ends.verdicts.push((verdict, block));
        block
    }

    fn measured(&mut self, counting: VBlockId, ask: bool) -> VBlockId {
        if let Some(&(_, block)) = self.ends.measured.iter().find(|(of, _)| *of == (counting, ask)) {
            return block;
        }
        let block = self.new_block();
        self.ends.measured.push(((counting, ask), block));
        block
    }

    /// Writes the ends that were asked for.
    pub(crate) fn shared_ends(&mut self) {
        self.span = self.flow.span;
        let length = self.ends.length;
        for ((counting, ask), block) in self.ends.measured.clone() {
            self.switch_to(block);
            self.counted_length(length, ask);
            self.end(Terminator::Goto(counting));
        }
        for tail in self.ends.tails.clone() {
            self.switch_to(tail.block);
            counters::count(self, Operand::Reg(tail.index), length);
            let end = match tail.only {
                Some(verdict) => Terminator::Goto(self.verdict_end(verdict)),
                None => Terminator::Exit(Operand::Reg(tail.verdict)),
            };
            self.end(end);
        }
        for (verdict, block) in self.ends.verdicts.clone() {
            self.switch_to(block);
            for &(_, counter) in self.flow.on.iter().filter(|(on, _)| *on == verdict) {
                let index = Operand::Imm(self.counter_index(counter));
                counters::count(self, index, length);
            }
            self.end(Terminator::Exit(exit_code(verdict)));
        }
    }
}

fn exit_code(verdict: Verdict) -> Operand<VReg> {
    Operand::Imm(xdp_action(verdict) as i32)
}
