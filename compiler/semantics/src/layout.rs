//! Where the fields of a header lie.

use pktc_diagnostics::{Diagnostic, Span, codes};

use crate::checker::Checker;
use crate::structure::{disjoint, same_condition};
use crate::typed::{Field, FieldIndex, HeaderId, Position, Program, Type};

/// The longest header that fields may form, in bytes: offsets in a packet stay below 0x7fff.
const MAX_BYTES: u32 = 2048;

impl Checker<'_> {
    /// Gives the fields of a header their places, once their `when`s are known.
    pub(crate) fn lay_out_header(&mut self, id: HeaderId) {
        let mut fields = std::mem::take(&mut self.program.headers[id].fields);
        self.lay_out(&mut fields);
        let bits: u32 =
            wire(&fields).filter(|(_, field)| field.when.is_none()).map(|(_, field)| field.bits).sum();
        let header = &mut self.program.headers[id];
        header.fields = fields;
        header.fixed_bytes = bits / 8;
        let (name, span) = (header.name.clone(), header.span);
        if !bits.is_multiple_of(8) {
            let title = format!("the fields of `{name}` end in the middle of a byte");
            let label = format!("{bits} bits are {} bytes and {} bits", bits / 8, bits % 8);
            let diagnostic = Diagnostic::error(codes::BAD_LAYOUT, title, span, label)
                .with_help(format!("declare the bits that are missing: `_: u{};`", 8 - bits % 8));
            self.report(diagnostic);
        }
        if bits / 8 > MAX_BYTES {
            let title = format!("`{name}` is too long");
            let label = format!("{} bytes of fields, at most {MAX_BYTES} are read", bits / 8);
            self.report(Diagnostic::error(codes::BAD_LAYOUT, title, span, label));
        }
    }

    /// Gives fields their places: all that are no views, in wire order.
    pub(crate) fn lay_out(&mut self, fields: &mut [Field]) {
        let rest = fields.iter().position(|field| field.bits == 0 && !field.is_view);
        for index in 0..fields.len() {
            if fields[index].is_view {
                continue;
            }
            let position = match rest {
                Some(rest) if index > rest => self.place_from_end(fields, index),
                _ => place_from_start(&self.program, fields, index),
            };
            fields[index].position = position;
            self.check_alignment(&fields[index]);
        }
    }

    fn place_from_end(&mut self, fields: &[Field], index: FieldIndex) -> Position {
        let behind = wire(fields).filter(|&(at, _)| at >= index);
        let mut bits = 0;
        for (_, field) in behind {
            bits += field.bits;
            let title = if field.bits == 0 {
                "two fields take what is left"
            } else if field.when.is_some() {
                "a field behind one of variable length cannot be conditional"
            } else {
                continue;
            };
            self.report(Diagnostic::error(codes::BAD_LAYOUT, title, field.span, "where would it start?"));
        }
        Position::End { bits }
    }

    fn check_alignment(&mut self, field: &Field) {
        let start = match &field.position {
            Position::Start { bits, .. } => *bits,
            Position::End { bits } => (8 - bits % 8) % 8,
        };
        let bytes = matches!(field.ty, Type::Bytes | Type::Mac | Type::Ipv4 | Type::Ipv6);
        let (title, label) = if bytes && !start.is_multiple_of(8) {
            ("this field does not start with a byte", "addresses and bytes do")
        } else if !bytes && start % 8 + field.bits > 64 {
            ("this field touches more than eight bytes", "a number lies in eight bytes at most")
        } else {
            return;
        };
        let note = format!("it starts at bit {} of its byte", start % 8);
        self.report(Diagnostic::error(codes::BAD_LAYOUT, title, field.span, label).with_note(note));
    }

    /// Where a view of adjacent bits lies, and how wide it is.
    pub(crate) fn view(
        &mut self,
        fields: &[Field],
        first: FieldIndex,
        last: FieldIndex,
        span: Span,
    ) -> Option<(Position, u32)> {
        let covered = fields.get(first..=last)?;
        let one_when = covered.windows(2).all(|pair| match (&pair[0].when, &pair[1].when) {
            (None, None) => true,
            (Some(a), Some(b)) => same_condition(&self.program, a, b),
            _ => false,
        });
        if !one_when || covered.iter().any(|field| field.bits == 0 || field.is_view) {
            let title = "a view covers fields that are always there together";
            self.report(Diagnostic::error(codes::BAD_LAYOUT, title, span, "not these"));
            return None;
        }
        Some((fields[first].position.clone(), covered.iter().map(|field| field.bits).sum()))
    }
}

fn place_from_start(program: &Program, fields: &[Field], index: FieldIndex) -> Position {
    let (mut bits, mut plus) = (0, Vec::new());
    for (at, before) in wire(fields).filter(|&(at, _)| at < index) {
        match (&before.when, &fields[index].when) {
            (None, _) => bits += before.bits,
            (Some(a), Some(b)) if same_condition(program, a, b) => bits += before.bits,
            (Some(a), Some(b)) if disjoint(program, a, b) => {}
            (Some(_), _) => plus.push(at),
        }
    }
    Position::Start { bits, plus }
}

/// The fields that lie in the packet one behind the other.
fn wire(fields: &[Field]) -> impl Iterator<Item = (FieldIndex, &Field)> {
    fields.iter().enumerate().filter(|(_, field)| !field.is_view)
}
