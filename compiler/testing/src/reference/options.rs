//! Option lists, read from their start to their end or to a break.

use pktc_semantics::typed::{Expr, ExprKind, Field, FieldIndex, OptionDecl, Options, Position, Set, SetId};

use super::expression::{Operands, number};
use super::layout::{View, read_bits};
use super::value::Operand;

/// An option that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: u64,
    /// Its first byte in the header.
    pub(crate) start: usize,
    /// Bytes, all of it.
    pub(crate) length: usize,
}

/// What a list holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) options: Vec<Found>,
    /// It was left before its end, because an option was cut or too short, or one too many.
    pub(crate) is_broken: bool,
}

impl List {
    /// How many options were read, whole or not.
    pub(crate) fn begun(&self) -> usize {
        self.options.len() + usize::from(self.is_broken)
    }
}

/// The bytes of a present header's option list; none if it is cut short.
pub(crate) fn list_bytes<'a>(view: &View<'a>) -> Option<(usize, &'a [u8])> {
    let (start, end) = (view.field_bytes()?, view.length?);
    Some((start, view.bytes.get(start..end)?))
}

/// Reads the option list of a present header, in front of which `before` options were read in lists that count together
/// with it.
pub(crate) fn read(view: &View<'_>, declared: &Options, before: usize) -> List {
    let mut list = List::default();
    let Some((first, bytes)) = list_bytes(view) else { return list };
    let mut at = 0;
    while at < bytes.len() {
        let own = Own { declared, bytes: &bytes[at..] };
        let may_follow = before + list.options.len() < Options::MOST;
        let Some(kind) = own.field(declared.kind).filter(|_| may_follow) else {
            list.is_broken = true;
            return list;
        };
        let is_single = declared.end.contains(&kind) || declared.pad.contains(&kind);
        let length = if is_single { Some(1) } else { own.length() };
        let Some(length) = length else {
            list.is_broken = true;
            return list;
        };
        list.options.push(Found { kind, start: first + at, length });
        if declared.end.contains(&kind) {
            return list;
        }
        at += length;
    }
    list
}

/// A value of an option, if the option is as long as its declaration asks.
pub(crate) fn value(
    view: &View<'_>,
    found: Found,
    option: &OptionDecl,
    field: FieldIndex,
) -> Option<Operand> {
    let bytes = view.bytes.get(found.start..found.start + found.length)?;
    if found.length != option.bytes() as usize {
        return None;
    }
    let field = &option.fields[field];
    Operand::from_bytes(&field.ty, &field_bytes(bytes, field)?)
}

/// What an option's length is computed from: the fields that it starts with.
struct Own<'a> {
    declared: &'a Options,
    /// From the option's start to the list's end.
    bytes: &'a [u8],
}

impl Own<'_> {
    fn field(&self, field: FieldIndex) -> Option<u64> {
        let bytes = field_bytes(self.bytes, &self.declared.fields[field])?;
        Some(bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    /// The option's length; none if it is too short, or cut.
    fn length(&self) -> Option<usize> {
        let fields: u32 = self.declared.fields.iter().map(|field| field.bits).sum();
        let length = usize::try_from(number(&self.declared.length, self)?).ok()?;
        (length >= fields.div_ceil(8) as usize && length <= self.bytes.len()).then_some(length)
    }
}

impl Operands for Own<'_> {
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr.kind {
            ExprKind::Own(field) => self.field(field).map(Operand::Number),
            _ => None,
        }
    }

    fn set(&self, _: SetId) -> Option<&Set> {
        None
    }
}

/// The bits of a field of an option; none if they lie beyond `bytes`.
fn field_bytes(bytes: &[u8], field: &Field) -> Option<Vec<u8>> {
    let (Position::Start { bits, .. } | Position::End { bits }) = &field.position;
    let (start, width) = (*bits as usize, field.bits as usize);
    (start + width <= bytes.len() * 8).then(|| read_bits(bytes, start, width))
}
