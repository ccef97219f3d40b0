//! BPF over virtual registers to machine code: register allocation, the stack frame, branches.
//!
//! [`generate`] is the list of stages; what holds after each:
//!
//! 1. `cleanup`: every block can be reached, none is empty without need; cold blocks are last.
//! 2. `edges`: no critical edges; nothing jumps to the entry.
//! 3. `ssa`: every register is written once; joins have parameters; copies are gone.
//! 4. `optimise` (optional): constants are in the instructions or next to their uses; no dead code.
//! 5. `allocate`: every value has a machine register or a stack slot at every point.
//! 6. `emit`: machine instructions in blocks.
//! 7. `peephole` (optional): no move whose destination holds the value already or could have got it at once.
//! 8. `layout`: instructions in a row, that of a long program so that the JIT comes to an end (`steady`).
//! 9. `branch`: every jump has a distance that 16 bits hold.
//! 10. `lint` (tests and debug builds): what the verifier refuses in any program is not there.

mod allocate;
mod branch;
mod cleanup;
mod edges;
mod effects;
mod emit;
mod graph;
mod layout;
mod lint;
mod listing;
pub mod module;
mod operands;
mod optimise;
mod peephole;
mod ssa;
mod steady;

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_lower::vcode::{VFunction, VInsn, VModule};

use edges::Split;
pub use listing::listing;
use module::{MachineInsn, Module, Program};

/// Bytes of stack that a program has on every kernel (`MAX_BPF_STACK`).
pub const STACK_SIZE: u32 = 512;

/// What a subprogram takes of it: up to 6.1 a multiple of 32, even if it uses none (`check_max_stack_depth`).
const CALLED: u32 = 32;

/// 8-byte slots of code that a program may have (`BPF_COMPLEXITY_LIMIT_INSNS`, since 5.2).
pub const LONGEST_PROGRAM: usize = 1_000_000;

/// What code generation may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodegenOptions {
    /// Whether the optional passes run.
    pub optimise: bool,
}

/// Turns virtual code into machine code.
///
/// # Errors
///
/// A program that needs more stack or is longer than kernels take (with its span). Virtual code that breaks
/// the contract of [`pktc_lower::vcode`] gives an error that names the mistake as one of the compiler.
pub fn generate(module: VModule, options: &CodegenOptions) -> Result<Module, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut generate_all = |functions: Vec<VFunction>| {
        let generated = functions.into_iter().map(|function| generate_program(function, options));
        let kept = generated.filter_map(|program| program.map_err(|error| diagnostics.push(*error)).ok());
        kept.collect()
    };
    let (programs, subprograms) = (generate_all(module.programs), generate_all(module.subprograms));
    if diagnostics.is_empty() {
        Ok(Module { programs, subprograms, maps: module.maps })
    } else {
        Err(diagnostics)
    }
}

fn generate_program(function: VFunction, options: &CodegenOptions) -> Result<Program, Box<Diagnostic>> {
    let (name, span, section) = (function.name.clone(), function.span, function.section);
    let params = function.params.len() as u8;
    let limit = stack_limit(&function);
    let broken = |what: String| Box::new(broken(&name, span, &what));
    let function = cleanup::clean_up(function);
    let Split { function, layout } = edges::split_critical_edges(function);
    let mut ssa = ssa::build_ssa(function).map_err(|unwritten| {
        let what = format!("{} is read but not written on every way there", unwritten.reg);
        Box::new(self::broken(&name, unwritten.span, &what))
    })?;
    if options.optimise {
        optimise::optimise(&mut ssa);
    }
    check_length(&name, span, shortest_length(&ssa.function), " or more")?;
    let allocation = allocate::allocate(&ssa).map_err(broken)?;
    let (stack, _) = allocation.stack(ssa.function.frame);
    check_stack(&name, span, stack, limit)?;
    let mut function = emit::emit(&ssa.function, &allocation).map_err(broken)?;
    if options.optimise {
        peephole::tidy_moves(&mut function);
    }
    let row = layout::lay_out(function, &layout, options.optimise);
    let code = branch::resolve_distances(&row).map_err(|failure| match failure {
        branch::Failure::TooFar => Box::new(too_far(&name, span)),
        branch::Failure::Broken(what) => broken(what.into()),
    })?;
    check_length(&name, span, code.iter().map(|(insn, _)| pktc_bpf::slots(insn)).sum(), "")?;
    let (insns, lines) = split_lines(code);
    let program = Program { name: name.clone(), section, params, insns, lines, stack };
    if cfg!(debug_assertions) {
        lint::lint(&program).map_err(broken)?;
    }
    Ok(program)
}

/// Splits instructions from their sources, of which each stands where it starts to hold.
fn split_lines(code: Vec<(MachineInsn, Span)>) -> (Vec<MachineInsn>, Vec<(usize, Span)>) {
    let (mut insns, mut lines) = (Vec::with_capacity(code.len()), Vec::<(usize, Span)>::new());
    for (index, (insn, span)) in code.into_iter().enumerate() {
        insns.push(insn);
        if lines.last().is_none_or(|&(_, last)| last != span) {
            lines.push((index, span));
        }
    }
    (insns, lines)
}

/// Bytes of stack that `function` may use.
fn stack_limit(function: &VFunction) -> u32 {
    if function.calls_subprograms() { STACK_SIZE - CALLED } else { STACK_SIZE }
}

fn check_stack(name: &str, span: Span, used: u32, limit: u32) -> Result<(), Box<Diagnostic>> {
    if used <= limit {
        return Ok(());
    }
    let title = format!("program `{name}` needs {used} bytes of stack, of {limit} that there are");
    let diagnostic = Diagnostic::error(codes::STACK_FULL, title, span, "this program keeps too much at once")
        .with_note(
            "What a comparison computes, and lengths of headers, take a word of stack each while they are needed.",
        )
        .with_help("Write long comparisons as several shorter ones, or split the rules over two programs.");
    Err(Box::new(diagnostic))
}

/// How many instructions `function` becomes at least: what is much too long need not be allocated.
fn shortest_length(function: &VFunction) -> usize {
    let insns = function.blocks.values().flat_map(|block| &block.insns);
    insns.filter(|(insn, _)| !matches!(insn, VInsn::Mov { .. })).count()
}

/// What to do about a program that is too long.
const SPLIT: &str = "put values that many rules compare into a set, or split the rules over several programs";

fn check_length(name: &str, span: Span, slots: usize, more: &str) -> Result<(), Box<Diagnostic>> {
    if slots <= LONGEST_PROGRAM {
        return Ok(());
    }
    let title =
        format!("program `{name}` has {slots} instructions{more}, and kernels take {LONGEST_PROGRAM}");
    let diagnostic =
        Diagnostic::error(codes::PROGRAM_TOO_LONG, title, span, "this program is too long").with_help(SPLIT);
    Err(Box::new(diagnostic))
}

fn too_far(name: &str, span: Span) -> Diagnostic {
    let title = format!("program `{name}` is so long that its jumps do not reach their targets");
    Diagnostic::error(codes::PROGRAM_TOO_LONG, title, span, "this program is too long")
        .with_note("a jump goes over 32767 instructions at most, and there are too many longer ones")
        .with_help(SPLIT)
}

/// A mistake of the compiler that shows in `name`.
fn broken(name: &str, span: Span, what: &str) -> Diagnostic {
    let title = format!("pktc made code for `{name}` that it cannot finish");
    Diagnostic::error(codes::BROKEN_CODE, title, span, "while compiling this")
        .with_note(what)
        .with_help("This is a mistake in pktc, not in your program: please report it with the source.")
}
