//! What programs with direct access do not see of packets in several buffers.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_semantics::typed::{Expr, ExprKind, PacketField, Program, Stmt, Xdp};
use pktc_semantics::walk;

use crate::options::{Access, Options};
use crate::pipeline::{Checked, programs};

/// A note a program of the file that was named, if it decides or counts otherwise where a packet lies in several
/// buffers.
#[must_use]
pub fn unseen(checked: &Checked, options: &Options) -> Vec<Diagnostic> {
    match (options.access, &checked.program) {
        (Access::Direct, Some(program)) => {
            programs(checked).iter().filter_map(|&id| note(program, &program.xdps[id], options)).collect()
        }
        _ => Vec::new(),
    }
}

fn note(program: &Program, xdp: &Xdp, options: &Options) -> Option<Diagnostic> {
    let counts = options.counters.count(xdp.counters);
    let mut uses = Vec::new();
    body(program, &xdp.body, &mut uses);
    if uses.is_empty() && !counts {
        return None;
    }
    let title = format!("`{}` sees only the first buffer of a packet that lies in several", xdp.name);
    let mut diagnostic = Diagnostic::note(codes::UNSEEN, title, xdp.span, "its access is direct");
    for (text, span) in uses {
        diagnostic = diagnostic.with_label(span, text);
    }
    if counts {
        diagnostic = diagnostic.with_note("the bytes that its rules count are those of the first buffer");
    }
    Some(diagnostic.with_help("`--access auto` sees all of it, on kernels from 5.18 on"))
}

/// What is said of uses, with the first place of each.
type Uses = Vec<(&'static str, Span)>;

fn body(program: &Program, statements: &[Stmt], uses: &mut Uses) {
    for statement in statements {
        match statement {
            Stmt::Rule(rule) => condition(&rule.condition, uses),
            Stmt::When { condition: when, body: inner } => {
                condition(when, uses);
                body(program, inner, uses);
            }
            Stmt::Apply { chain, .. } => body(program, &program.chains[*chain].body, uses),
        }
    }
}

fn condition(condition: &Expr, uses: &mut Uses) {
    walk(condition, &mut |part| {
        if let Some(text) = consequence(&part.kind)
            && uses.iter().all(|(other, _)| *other != text)
        {
            uses.push((text, part.span));
        }
    });
}

/// What it means that only the first buffer is seen; none: nothing.
fn consequence(kind: &ExprKind) -> Option<&'static str> {
    match kind {
        ExprKind::Field { .. }
        | ExprKind::UnionField { .. }
        | ExprKind::Present(_)
        | ExprKind::UnionPresent(_) => Some("a header that is not wholly in that buffer is absent"),
        ExprKind::Option { .. } => Some("an option beyond that buffer is absent"),
        ExprKind::Bytes { .. } => Some("these bytes end with that buffer"),
        ExprKind::OptionsMalformed(_) | ExprKind::Malformed(_) => {
            Some("a header that goes beyond that buffer is malformed")
        }
        ExprKind::Truncated(_) => Some("true where the packet claims more than that buffer holds"),
        ExprKind::Packet(PacketField::Length) => Some("this is the length of that buffer"),
        ExprKind::PayloadLength(_) | ExprKind::Payload(_) | ExprKind::PayloadSlice { .. } => {
            Some("the payload ends with that buffer")
        }
        ExprKind::Packet(PacketField::Ifindex | PacketField::Queue)
        | ExprKind::Const(_)
        | ExprKind::Own(_)
        | ExprKind::OwnPayload { .. }
        | ExprKind::Not(_)
        | ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::Compare { .. }
        | ExprKind::In { .. }
        | ExprKind::Binary { .. }
        | ExprKind::Default { .. }
        | ExprKind::Tuple(_) => None,
    }
}
