//! A header's payload and other bytes of varying number in paths: all of them, slices, their length.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, PathStep, PathStepKind};

use crate::checker::{Checker, Env};
use crate::path::Place;
use crate::typed::{BytesAsk, BytesOf, ExprKind, Instance, Type};

/// The longest payload that a slice may reach into: no IP datagram is longer.
const LONGEST_PAYLOAD: u64 = 65_535;

impl<'a> Checker<'a> {
    /// `h.payload` with what stands behind it.
    pub(crate) fn payload_place(
        &mut self,
        instance: Instance,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<Place<'a>> {
        let ask = self.bytes_ask("payload", steps, env)?;
        let kind = match ask {
            BytesAsk::All => ExprKind::Payload(instance),
            BytesAsk::Length => ExprKind::PayloadLength(instance),
            BytesAsk::Slice { from, to } => ExprKind::PayloadSlice { instance, from, to },
        };
        Some(Place::Value(kind, asked_type(ask)))
    }

    /// Bytes called `name` with what stands behind them.
    pub(crate) fn bytes_place(
        &mut self,
        of: BytesOf,
        name: &str,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<Place<'a>> {
        let ask = self.bytes_ask(name, steps, env)?;
        Some(Place::Value(ExprKind::Bytes { of, ask }, asked_type(ask)))
    }

    /// What stands behind bytes called `name`: nothing, a slice, or `.len`.
    fn bytes_ask(&mut self, name: &str, steps: &'a [PathStep], env: &Env<'a>) -> Option<BytesAsk> {
        let Some((step, rest)) = steps.split_first() else { return Some(BytesAsk::All) };
        match &step.kind {
            PathStepKind::Slice(from, to) => {
                let (from, to) = self.slice_range(from, to, step.span, env)?;
                self.end_of_path(rest, "a slice")?;
                Some(BytesAsk::Slice { from, to })
            }
            PathStepKind::Dot(word) if word.text == "len" => {
                self.end_of_path(rest, "a number")?;
                Some(BytesAsk::Length)
            }
            PathStepKind::Dot(word) => {
                self.unknown_field(name, word, Some(format!("{name}.len")));
                None
            }
            PathStepKind::Index(_) | PathStepKind::Call(_) => {
                let diagnostic = Diagnostic::error(
                    codes::UNKNOWN_FIELD,
                    "one byte is a slice too",
                    step.span,
                    "not a slice",
                )
                .with_help(format!("write `{name}[0..1]` for the first byte"));
                self.report(diagnostic);
                None
            }
        }
    }

    /// The bounds of a slice, which are constants.
    pub(crate) fn slice_range(
        &mut self,
        from: &'a ast::Expr,
        to: &'a ast::Expr,
        span: Span,
        env: &Env<'a>,
    ) -> Option<(u32, u32)> {
        let from = self.constant_number(from, env);
        let to = self.constant_number(to, env);
        let (from, to) = (from?, to?);
        let fix = if from >= to {
            "a slice ends before its second number: `[0..4]` is the first four bytes"
        } else if to > LONGEST_PAYLOAD {
            "no payload is longer than 65535 bytes"
        } else {
            return Some((from as u32, to as u32));
        };
        let title = format!("the slice `[{from}..{to}]` holds nothing");
        self.report(Diagnostic::error(codes::EMPTY_RANGE, title, span, "never has a value").with_help(fix));
        None
    }
}

fn asked_type(ask: BytesAsk) -> Type {
    match ask {
        BytesAsk::All | BytesAsk::Slice { .. } => Type::Bytes,
        BytesAsk::Length => Type::Uint { bits: 32 },
    }
}
