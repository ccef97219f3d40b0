//! The stages in order.

use pktc_codegen::{CodegenOptions, module::Module};
use pktc_diagnostics::{Diagnostic, FileId, SourceMap, codes, sort};
use pktc_ir::build::build_rules;
use pktc_ir::flow::Flow;
use pktc_ir::passes::{PASSES, bound_reach};
use pktc_ir::rule::RuleProgram;
use pktc_ir::specialise::{FlowOptions, build_flow};
use pktc_ir::verify::verify_flow;
use pktc_lower::{CounterLayout, lower};
use pktc_object::{CounterRange, Metadata};
use pktc_semantics::files::Files;
use pktc_semantics::rules::RuleTable;
use pktc_semantics::typed::{Program, Subject, XdpId};

use crate::metadata::describe;
use crate::options::{Level, Options};
use crate::stack::{save_stack, spare_verifier};

/// A checked source file with all that it uses.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The texts.
    pub sources: SourceMap,
    /// What is wrong, sorted.
    pub diagnostics: Vec<Diagnostic>,
    /// The program, if no error was found.
    pub program: Option<Program>,
    /// The file that was named.
    pub entry: FileId,
}

/// An object, and what is known of it.
#[derive(Clone, Debug)]
pub struct Built {
    /// The ELF object's bytes.
    pub object: Vec<u8>,
    /// What it says of itself.
    pub metadata: Metadata,
    /// The rules of each subject.
    pub rules: Vec<RuleTable>,
    /// Where the rules of each subject count.
    pub counters: Vec<Option<CounterRange>>,
    /// The machine code.
    pub module: Module,
}

/// Reads `path` and what it uses, and checks it.
#[must_use]
pub fn check(path: &str, files: &dyn Files) -> Checked {
    let mut sources = SourceMap::default();
    let pktc_semantics::Checked { program, diagnostics, entry } =
        pktc_semantics::check(path, files, &mut sources);
    Checked { sources, diagnostics, program, entry }
}

/// The programs of the file that was named, in its order.
#[must_use]
pub fn programs(checked: &Checked) -> Vec<XdpId> {
    let Some(program) = &checked.program else { return Vec::new() };
    program.xdps.iter().filter(|(_, xdp)| xdp.span.file == checked.entry).map(|(id, _)| id).collect()
}

/// Builds an object of `subjects`.
///
/// # Errors
/// What this version or the target cannot compile. A file with errors ([`Checked::program`] is `None`) gives its
/// diagnostics again.
pub fn build(checked: &Checked, subjects: &[Subject], options: &Options) -> Result<Built, Vec<Diagnostic>> {
    let program = program_of(checked)?;
    let rules = rule_programs(program, checked, subjects, options)?;
    let mut flows = flows(program, &rules, options)?;
    let codegen = CodegenOptions { optimise: options.level == Level::O2 };
    let (module, counters) = loop {
        let (virtual_code, counters) = lower(&flows, program.counters.len() as u32, options.access);
        match pktc_codegen::generate(virtual_code, &codegen) {
            Ok(module) => break (module, counters),
            Err(errors) => save_stack(&mut flows, errors)?,
        }
    };
    let ranges = counter_ranges(&rules, &counters);
    let metadata = describe(checked, program, &rules, &ranges, &counters);
    let object = pktc_object::write(&module, &metadata, &checked.sources).map_err(|error| {
        let span = rules
            .first()
            .map_or(pktc_diagnostics::Span { file: checked.entry, start: 0, end: 0 }, |rules| rules.span);
        vec![Diagnostic::error(codes::OBJECT, error.to_string(), span, "in the object of this program")]
    })?;
    let tables = rules.into_iter().map(|rules| rules.rules).collect();
    Ok(Built { object, metadata, rules: tables, counters: ranges, module })
}

pub(crate) fn program_of(checked: &Checked) -> Result<&Program, Vec<Diagnostic>> {
    checked.program.as_ref().ok_or_else(|| checked.diagnostics.clone())
}

/// Rule IR of each subject.
pub(crate) fn rule_programs(
    program: &Program,
    checked: &Checked,
    subjects: &[Subject],
    options: &Options,
) -> Result<Vec<RuleProgram>, Vec<Diagnostic>> {
    collect(subjects.iter().map(|&subject| {
        let mut rules = build_rules(program, &checked.sources, &program.subject(subject))?;
        rules.counters = options.counters.count(rules.counters);
        Ok(rules)
    }))
}

/// Flow IR of each program.
pub(crate) fn flows(
    program: &Program,
    rules: &[RuleProgram],
    options: &Options,
) -> Result<Vec<Flow>, Vec<Diagnostic>> {
    collect(rules.iter().map(|rules| {
        let mut flow = build_flow(program, rules, FlowOptions { claims: options.access.frags() })?;
        verified(&flow, "specialise");
        if options.level == Level::O2 {
            for (name, pass) in PASSES {
                pass(&mut flow);
                verified(&flow, name);
            }
        }
        bound_reach(&mut flow, options.access.reach());
        verified(&flow, "bound_reach");
        spare_verifier(&mut flow);
        Ok(flow)
    }))
}

/// In debug builds: what holds for every flow IR holds after `pass`.
pub(crate) fn verified(flow: &Flow, pass: &str) {
    if cfg!(debug_assertions) {
        let errors = verify_flow(flow);
        assert!(errors.is_empty(), "flow IR of {} after {pass}: {}", flow.name, errors.join("\n"));
    }
}

/// All results, or all errors.
fn collect<T>(results: impl Iterator<Item = Result<T, Vec<Diagnostic>>>) -> Result<Vec<T>, Vec<Diagnostic>> {
    let (mut values, mut diagnostics) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(more) => diagnostics.extend(more),
        }
    }
    if diagnostics.is_empty() {
        return Ok(values);
    }
    sort(&mut diagnostics);
    Err(diagnostics)
}

fn counter_ranges(rules: &[RuleProgram], counters: &CounterLayout) -> Vec<Option<CounterRange>> {
    let range = |(index, rules): (usize, &RuleProgram)| {
        let first = counters.first_rule(index)?;
        let count = rules.rules.rules().len() as u32;
        Some(CounterRange { map: CounterLayout::MAP_NAME.into(), first, count })
    };
    rules.iter().enumerate().map(range).collect()
}
