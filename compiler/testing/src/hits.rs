//! Which rules held, told from their counters.

use std::ops::Range;

use pktc_driver::Built;
use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::Verdict;

use crate::engine::Outcome;

/// Where a program's rules count, and what is known of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCounters {
    /// The map's name.
    pub map: String,
    /// The first rule's entry; an entry is two u64, packets and bytes.
    pub first: u32,
    /// For each rule whether it ends the program where it holds, unless a chain that it applies does.
    pub ends: Vec<bool>,
}

impl RuleCounters {
    /// Those of the program with that index; `None` if its rules do not count.
    #[must_use]
    pub fn of(built: &Built, program: usize) -> Option<Self> {
        let range = built.counters.get(program)?.as_ref()?;
        let ends = built.rules[program].rules().iter().map(|rule| rule.ends).collect();
        Some(RuleCounters { map: range.map.clone(), first: range.first, ends })
    }

    /// The rules' entries.
    #[must_use]
    pub fn entries(&self) -> Range<u32> {
        self.first..self.first + self.ends.len() as u32
    }

    /// The deciding rule and all rules that held, from each rule's packets and bytes before and after one packet.
    fn decide(&self, before: &[(u64, u64)], after: &[(u64, u64)]) -> (RuleId, Vec<RuleId>) {
        let grown = before.iter().zip(after).enumerate().filter(|(_, (before, after))| before.0 != after.0);
        let hits: Vec<RuleId> = grown.map(|(id, _)| RuleId(id as u32)).collect();
        (self.decider(&hits), hits)
    }

    /// The rule that decided, of all that held: the default if it counted, else the last that ends the program. Two
    /// that do hold only where the second is in a chain that the first applies; it is told from the first by its
    /// number if the chain is not applied before as well.
    #[must_use]
    pub fn decider(&self, hits: &[RuleId]) -> RuleId {
        let mut ending = hits.iter().copied().filter(|rule| self.ends.get(rule.0 as usize) == Some(&true));
        if hits.contains(&RuleId::DEFAULT) {
            RuleId::DEFAULT
        } else {
            ending.next_back().unwrap_or(RuleId::DEFAULT)
        }
    }
}

/// What a packet came to, by the rules' counters before and after it. Without counters no rule is told.
pub(crate) fn outcome(
    verdict: Verdict,
    counters: Option<&RuleCounters>,
    before: &[(u64, u64)],
    after: &[(u64, u64)],
) -> Outcome {
    let (rule, hits) =
        counters.map_or((RuleId::DEFAULT, Vec::new()), |counters| counters.decide(before, after));
    Outcome { verdict, rule, hits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(ends: &[bool]) -> RuleCounters {
        RuleCounters { map: "rules".into(), first: 0, ends: ends.into() }
    }

    fn ids(ids: &[u32]) -> Vec<RuleId> {
        ids.iter().copied().map(RuleId).collect()
    }

    #[test]
    fn the_rule_that_ends_the_program_decides() {
        let before = [(5, 0), (1, 60), (0, 0), (7, 0)];
        let after = [(5, 0), (2, 120), (0, 0), (8, 64)];
        assert_eq!(counters(&[true, false, true, true]).decide(&before, &after), (RuleId(3), ids(&[1, 3])));
        assert_eq!(counters(&[true, true, true, false]).decide(&before, &after), (RuleId(1), ids(&[1, 3])));
    }

    #[test]
    fn the_default_decides_where_it_counted() {
        let counters = counters(&[true, true]);
        assert_eq!(counters.decide(&[(5, 0), (1, 0)], &[(6, 0), (2, 0)]), (RuleId::DEFAULT, ids(&[0, 1])));
    }

    #[test]
    fn where_nothing_counted_nothing_is_known() {
        assert_eq!(counters(&[true]).decide(&[(1, 1)], &[(1, 1)]), (RuleId::DEFAULT, vec![]));
    }
}
