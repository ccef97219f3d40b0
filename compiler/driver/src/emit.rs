//! A stage's result as text, for `--emit`.

use pktc_diagnostics::Diagnostic;
use pktc_semantics::typed::Subject;

use crate::options::Options;
use crate::pipeline::{Checked, build, flows, program_of, programs, rule_programs};

/// The stages that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Emit {
    /// The tokens of the file.
    Tokens,
    /// Its syntax tree.
    Ast,
    /// The typed program.
    Typed,
    /// Rule IR.
    Rules,
    /// Flow IR.
    Flow,
    /// Machine code with the source lines that it comes from.
    Asm,
    /// The object's sections, symbols, maps, types and code.
    Object,
}

impl Emit {
    /// All stages, from left to right.
    pub const ALL: [Emit; 7] =
        [Emit::Tokens, Emit::Ast, Emit::Typed, Emit::Rules, Emit::Flow, Emit::Asm, Emit::Object];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Emit::Tokens => "tokens",
            Emit::Ast => "ast",
            Emit::Typed => "typed",
            Emit::Rules => "rules",
            Emit::Flow => "flow",
            Emit::Asm => "asm",
            Emit::Object => "object",
        }
    }
}

/// Shows `stage` of the file's programs.
///
/// # Errors
/// The diagnostics of a stage up to it that failed. Tokens and syntax trees are shown of files with errors, too.
pub fn emit(checked: &Checked, stage: Emit, options: &Options) -> Result<String, Vec<Diagnostic>> {
    let text = checked.sources.text(checked.entry);
    match stage {
        Emit::Tokens => Ok(pktc_syntax::dump_tokens(checked.entry, text)),
        Emit::Ast => Ok(pktc_syntax::dump_ast(&pktc_syntax::parse(checked.entry, text).0)),
        Emit::Typed => Ok(pktc_semantics::dump(program_of(checked)?)),
        Emit::Rules | Emit::Flow => emit_ir(checked, stage, options),
        Emit::Asm => {
            let built = build(checked, &subjects(checked), options)?;
            let functions = built.module.programs.iter().chain(&built.module.subprograms);
            let listings = functions.map(|function| pktc_codegen::listing(function, &checked.sources));
            Ok(listings.collect::<Vec<_>>().join("\n"))
        }
        Emit::Object => {
            let built = build(checked, &subjects(checked), options)?;
            Ok(pktc_object::dump(&built.object).unwrap_or_else(|error| error.to_string()))
        }
    }
}

fn subjects(checked: &Checked) -> Vec<Subject> {
    programs(checked).into_iter().map(Subject::Xdp).collect()
}

fn emit_ir(checked: &Checked, stage: Emit, options: &Options) -> Result<String, Vec<Diagnostic>> {
    let program = program_of(checked)?;
    let rules = rule_programs(program, checked, &subjects(checked), options)?;
    if stage == Emit::Rules {
        return Ok(rules.iter().map(|rules| pktc_ir::print::print_rules(program, rules)).collect());
    }
    Ok(flows(program, &rules, options)?.iter().map(pktc_ir::print::print_flow).collect())
}
