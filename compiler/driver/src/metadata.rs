//! What an object says of itself.

use pktc_ir::rule::RuleProgram;
use pktc_lower::{CounterLayout, xdp_action};
use pktc_object::{CounterInfo, CounterRange, Metadata, ProgramInfo, RuleInfo, SCHEMA, SetInfo, SourceInfo};
use pktc_semantics::typed::{Program, Verdict};
use sha2::{Digest, Sha256};

use crate::pipeline::Checked;

/// The metadata of an object with these programs.
pub(crate) fn describe(
    checked: &Checked,
    program: &Program,
    rules: &[RuleProgram],
    ranges: &[Option<CounterRange>],
    counters: &CounterLayout,
) -> Metadata {
    let word = |&verdict: &Verdict| xdp_action(verdict).word().to_owned();
    let programs = rules.iter().zip(ranges).map(|(rules, range)| {
        let declared = program.xdps.values().find(|xdp| xdp.span == rules.span);
        let chain_on = declared.and_then(|xdp| xdp.chain_on.as_ref());
        ProgramInfo {
            chain_on: chain_on.map(|verdicts| verdicts.iter().map(word).collect()),
            counters: range.clone(),
            name: rules.name.clone(),
            priority: declared.and_then(|xdp| xdp.priority),
            rules: rule_infos(checked, rules),
        }
    });
    let text = checked.sources.text(checked.entry);
    let sha256 = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    Metadata {
        counters: counter_infos(checked, program, counters),
        programs: programs.collect(),
        schema: SCHEMA,
        sets: set_infos(program),
        source: SourceInfo { path: checked.sources.name(checked.entry).into(), sha256 },
    }
}

fn rule_infos(checked: &Checked, rules: &RuleProgram) -> Vec<RuleInfo> {
    let infos = rules.rules.rules().iter().enumerate();
    infos
        .map(|(id, rule)| RuleInfo {
            file: checked.sources.name(rule.span.file).into(),
            id: id as u32,
            identity: rule.identity.clone(),
            line: checked.sources.position(rule.span).line,
            name: rule.name.clone(),
        })
        .collect()
}

fn counter_infos(checked: &Checked, program: &Program, counters: &CounterLayout) -> Vec<CounterInfo> {
    let named = program.counters.iter().enumerate();
    named
        .map(|(index, (_, counter))| CounterInfo {
            file: checked.sources.name(counter.span.file).into(),
            index: counters.first_named() + index as u32,
            line: checked.sources.position(counter.span).line,
            map: CounterLayout::MAP_NAME.into(),
            name: counter.name.clone(),
        })
        .collect()
}

fn set_infos(program: &Program) -> Vec<SetInfo> {
    let named = program.sets.values().filter_map(|set| Some((set.name.clone()?, set)));
    named
        .map(|(name, set)| SetInfo {
            elements: set.elements.len() as u64,
            name,
            ty: program.type_text(&set.ty),
        })
        .collect()
}
