//! Where a header's fields lie, and reading and writing them in its bytes.

use pktc_semantics::typed::{Expr, ExprKind, Field, FieldIndex, Header, Position, Program, Set, SetId};

use super::expression::{Operands, holds, number, walk};
use super::value::Operand;

/// A header over its bytes.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    /// For its sets.
    pub(crate) program: &'a Program,
    /// Which header.
    pub(crate) header: &'a Header,
    /// What there is of it, and perhaps what follows: a field beyond has no value.
    pub(crate) bytes: &'a [u8],
    /// How long it is, once that is known; may be more than `bytes`.
    pub(crate) length: Option<usize>,
}

impl<'a> View<'a> {
    /// Whether the field's `when` holds.
    pub(crate) fn is_there(&self, field: FieldIndex) -> bool {
        self.header.fields[field].when.as_ref().is_none_or(|when| holds(when, self))
    }

    /// The field's first bit and how many it has, though they may lie beyond the bytes. None: its `when` is
    /// false, or its place depends on a length that is not known.
    pub(crate) fn bits(&self, index: FieldIndex) -> Option<(usize, usize)> {
        let field = &self.header.fields[index];
        if !self.is_there(index) {
            return None;
        }
        let start = match &field.position {
            Position::Start { bits, plus } => {
                let width = |&before: &FieldIndex| self.header.fields[before].bits as usize;
                let extra: usize = plus.iter().filter(|&&before| self.is_there(before)).map(width).sum();
                *bits as usize + extra
            }
            Position::End { bits } => (self.length? * 8).checked_sub(*bits as usize)?,
        };
        let width = if takes_rest(field) {
            (self.length? * 8).checked_sub(start + bits_behind_rest(self.header))?
        } else {
            field.bits as usize
        };
        Some((start, width))
    }

    /// The field's value: none where its `when` is false, or it lies beyond the header or the bytes.
    pub(crate) fn field(&self, index: FieldIndex) -> Option<Operand> {
        let (start, width) = self.bits(index)?;
        let available = self.length.unwrap_or(usize::MAX).min(self.bytes.len());
        if start + width > available * 8 {
            return None;
        }
        Operand::from_bytes(&self.header.fields[index].ty, &read_bits(self.bytes, start, width))
    }

    /// The bytes of its fields, without what `length` may add: none if its rest takes all.
    pub(crate) fn field_bytes(&self) -> Option<usize> {
        if self.header.fields.iter().any(takes_rest) {
            return None;
        }
        let conditional = (0..self.header.fields.len()).filter(|&index| {
            let field = &self.header.fields[index];
            !field.is_view && field.when.is_some() && self.is_there(index)
        });
        let bits: usize = conditional.map(|index| self.header.fields[index].bits as usize).sum();
        Some(self.header.fixed_bytes as usize + bits.div_ceil(8))
    }

    /// Whether `expr` reads a field that is there, but beyond the bytes.
    pub(crate) fn is_hidden(&self, expr: &Expr) -> bool {
        let mut hidden = false;
        walk(expr, &mut |part| {
            if let ExprKind::Own(field) = part.kind {
                hidden |= self.bits(field).is_some_and(|(start, width)| start + width > self.bytes.len() * 8);
            }
        });
        hidden
    }

    /// The header's declared length, or that of its fields. None: it has no value.
    pub(crate) fn declared_length(&self) -> Option<usize> {
        match &self.header.length {
            Some(length) => number(length, self).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            None => Some(self.field_bytes().unwrap_or(self.bytes.len())),
        }
    }
}

impl Operands for View<'_> {
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr.kind {
            ExprKind::Own(field) => self.field(field),
            _ => None,
        }
    }

    fn set(&self, id: SetId) -> Option<&Set> {
        self.program.sets.get(id)
    }
}

/// Whether the field is `bytes` without a length, which takes what is left of the header.
pub(crate) fn takes_rest(field: &Field) -> bool {
    field.bits == 0 && !field.is_view
}

/// The bits of the fields behind the one that takes the rest.
pub(crate) fn bits_behind_rest(header: &Header) -> usize {
    let behind = header.fields.iter().filter_map(|field| match field.position {
        Position::End { bits } => Some(bits as usize),
        Position::Start { .. } => None,
    });
    behind.max().unwrap_or(0)
}

/// `width` bits from bit `start` on, right-aligned in as many bytes as they need.
pub(crate) fn read_bits(bytes: &[u8], start: usize, width: usize) -> Vec<u8> {
    let mut read = vec![0; width.div_ceil(8)];
    let padding = read.len() * 8 - width;
    for bit in 0..width {
        let from = start + bit;
        let set = bytes[from / 8] >> (7 - from % 8) & 1;
        let to = padding + bit;
        read[to / 8] |= set << (7 - to % 8);
    }
    read
}

/// Puts the last `width` bits of `value` at bit `start`.
pub(crate) fn write_bits(bytes: &mut [u8], start: usize, width: usize, value: &[u8]) {
    for bit in 0..width {
        let from = value.len() * 8 + bit - width;
        let set = value[from / 8] >> (7 - from % 8) & 1;
        let to = start + bit;
        let mask = 1 << (7 - to % 8);
        bytes[to / 8] = if set == 1 { bytes[to / 8] | mask } else { bytes[to / 8] & !mask };
    }
}
