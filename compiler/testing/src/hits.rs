//! Which rules held, told from their counters.

use pktc_semantics::rules::RuleId;

/// The deciding rule and all rules that held, from each rule's packets and bytes before and after one packet.
///
/// The default decided if it counted; else the last rule that counted, since a rule that ends the program is the
/// last one that is asked. Where nothing counted (objects without counters) the answer is the default, without hits.
#[must_use]
pub fn decide(before: &[(u64, u64)], after: &[(u64, u64)]) -> (RuleId, Vec<RuleId>) {
    let grown = before.iter().zip(after).enumerate().filter(|(_, (before, after))| before.0 != after.0);
    let hits: Vec<RuleId> = grown.map(|(id, _)| RuleId(id as u32)).collect();
    let last = hits.last().copied().unwrap_or(RuleId::DEFAULT);
    let rule = if hits.contains(&RuleId::DEFAULT) { RuleId::DEFAULT } else { last };
    (rule, hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[u32]) -> Vec<RuleId> {
        ids.iter().copied().map(RuleId).collect()
    }

    #[test]
    fn the_last_rule_that_counted_decides() {
        let before = [(5, 0), (1, 60), (0, 0), (7, 0)];
        let after = [(5, 0), (2, 120), (0, 0), (8, 64)];
        assert_eq!(decide(&before, &after), (RuleId(3), ids(&[1, 3])));
    }

    #[test]
    fn the_default_decides_where_it_counted() {
        assert_eq!(decide(&[(5, 0), (1, 0)], &[(6, 0), (2, 0)]), (RuleId::DEFAULT, ids(&[0, 1])));
    }

    #[test]
    fn without_counters_nothing_is_known() {
        assert_eq!(decide(&[], &[]), (RuleId::DEFAULT, vec![]));
        assert_eq!(decide(&[(1, 1)], &[(1, 1)]), (RuleId::DEFAULT, vec![]));
    }
}
