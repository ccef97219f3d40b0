//! A header's payload in paths: all of it, slices, its length.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, PathStep, PathStepKind};

use crate::checker::{Checker, Env};
use crate::path::Place;
use crate::typed::{ExprKind, Instance, Type};

/// The longest payload that a slice may reach into: no IP datagram is longer.
const LONGEST_PAYLOAD: u64 = 65_535;

impl<'a> Checker<'a> {
    /// What stands behind `h.payload`: nothing, a slice, or `.len`.
    pub(crate) fn payload_place(
        &mut self,
        instance: Instance,
        steps: &'a [PathStep],
        env: &Env<'a>,
    ) -> Option<Place<'a>> {
        let Some((step, rest)) = steps.split_first() else {
            return Some(Place::Value(ExprKind::Payload(instance), Type::Bytes));
        };
        match &step.kind {
            PathStepKind::Slice(from, to) => {
                let (from, to) = self.slice_range(from, to, step.span, env)?;
                self.end_of_path(rest, "a slice")?;
                Some(Place::Value(ExprKind::PayloadSlice { instance, from, to }, Type::Bytes))
            }
            PathStepKind::Dot(word) if word.text == "len" => {
                self.end_of_path(rest, "a number")?;
                Some(Place::Value(ExprKind::PayloadLength(instance), Type::Uint { bits: 32 }))
            }
            PathStepKind::Dot(word) => {
                self.unknown_field("payload", word, Some("payload.len".into()));
                None
            }
            PathStepKind::Index(_) | PathStepKind::Call(_) => {
                let diagnostic = Diagnostic::error(
                    codes::UNKNOWN_FIELD,
                    "one byte of a payload is a slice too",
                    step.span,
                    "not a slice",
                )
                .with_help("write `payload[0..1]` for the first byte");
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
