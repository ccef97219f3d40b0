//! Judging what a test expects.

use std::collections::BTreeMap;

use pktc_diagnostics::{Diagnostic, codes};
use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::Outcome;

use super::{Decision, Sent, Session, word};

/// What of `outcomes` did not come about. The checker has seen to it that something was sent, and that counts
/// add up to what was.
pub(super) fn judge(session: &Session<'_>, outcomes: &[Outcome], sent: &Sent) -> Vec<Diagnostic> {
    let mut left = sent.decisions.clone();
    let mut failures = Vec::new();
    // What names a rule chooses first: `25 pass by a, 1 pass` may mean 26 passes by `a`.
    let (named, others): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.by.is_some());
    for outcome in named.into_iter().chain(others) {
        let wanted = outcome.count.unwrap_or(sent.decisions.len() as u64);
        let found = take(session, outcome, wanted, &mut left);
        if found < wanted {
            failures.push(too_few(session, outcome, (found, wanted), sent));
        }
    }
    failures
}

/// Takes up to `wanted` decisions that are as `outcome` says; says how many there were.
fn take(session: &Session<'_>, outcome: &Outcome, wanted: u64, left: &mut Vec<Decision>) -> u64 {
    let mut found = 0;
    left.retain(|decision| {
        let is_called = |name: &String| session.is_called(decision.rule, name);
        let as_said = decision.verdict == outcome.verdict && outcome.by.as_ref().is_none_or(is_called);
        let taken = as_said && found < wanted;
        found += u64::from(taken);
        !taken
    });
    found
}

fn too_few(session: &Session<'_>, outcome: &Outcome, (found, wanted): (u64, u64), sent: &Sent) -> Diagnostic {
    let by = outcome.by.as_ref().map(|name| format!(" by `{name}`")).unwrap_or_default();
    let expected = format!("{}{by}", word(outcome.verdict));
    let got = summary(session, &sent.decisions);
    let (title, label) = if sent.decisions.len() == 1 && wanted == 1 {
        (format!("expected {expected}, got {got}"), "this did not come about".to_owned())
    } else {
        (format!("expected {wanted} {expected}, got {found}"), format!("all together: {got}"))
    };
    let diagnostic =
        Diagnostic::error(codes::EXPECTATION, title, outcome.span, label).with_label(sent.span, "sent here");
    match deciding_rules(&sent.decisions)[..] {
        [rule] => diagnostic.with_label(session.rules.info(rule).span, decided_here(rule)),
        _ => diagnostic,
    }
}

fn decided_here(rule: RuleId) -> &'static str {
    if rule == RuleId::DEFAULT { "no rule decided, so it came to this" } else { "this rule decided" }
}

fn deciding_rules(decisions: &[Decision]) -> Vec<RuleId> {
    let mut rules: Vec<_> = decisions.iter().map(|decision| decision.rule).collect();
    rules.sort();
    rules.dedup();
    rules
}

/// `pass by default`, or `25 pass by default, 1 drop by amp`.
fn summary(session: &Session<'_>, decisions: &[Decision]) -> String {
    let mut counts = BTreeMap::new();
    for decision in decisions {
        *counts.entry((decision.rule, word(decision.verdict))).or_insert(0u64) += 1;
    }
    let parts = counts.iter().map(|((rule, verdict), count)| {
        let count = if decisions.len() == 1 { String::new() } else { format!("{count} ") };
        match *verdict {
            "return" => format!("{count}return"),
            verdict => format!("{count}{verdict} by `{}`", session.rules.info(*rule).name),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}
