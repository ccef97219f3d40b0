//! One header of a packet that is being composed.

use std::collections::BTreeSet;

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_semantics::typed::{Expr, ExprKind, FieldDefault, FieldIndex, Header, HeaderId, Program, Value};

use crate::reference::{Operand, View, holds, number, takes_rest, walk, write_bits};

/// How often fields that depend on the length, and the length on them, are gone round before giving up.
const ROUNDS: usize = 4;

/// A header with its fields' values so far.
#[derive(Clone)]
pub(super) struct Form<'a> {
    program: &'a Program,
    pub(super) id: HeaderId,
    pub(super) header: &'a Header,
    pub(super) span: Span,
    values: Vec<Option<Operand>>,
    given: BTreeSet<FieldIndex>,
    /// Its option list.
    options: Vec<u8>,
    length: usize,
}

/// Why a length was not computed.
pub(super) enum Missed {
    /// No field is left to choose.
    NotAsked,
    /// The field cannot say so much.
    TooMuch(FieldIndex),
}

impl<'a> Form<'a> {
    /// The header with the fields that are given, else their defaults, and its own length.
    pub(super) fn new(
        program: &'a Program,
        id: HeaderId,
        fields: &[(FieldIndex, Value)],
        options: Vec<u8>,
        span: Span,
    ) -> Result<Self, Box<Diagnostic>> {
        let header = &program.headers[id];
        let default = |field: &pktc_semantics::typed::Field| match &field.default {
            FieldDefault::Value(value) => Some(Operand::constant(value)),
            FieldDefault::Zero | FieldDefault::Checksum { .. } => None,
        };
        let mut values: Vec<_> = header.fields.iter().map(default).collect();
        for (field, value) in fields {
            values[*field] = Some(Operand::constant(value));
        }
        let given = fields.iter().map(|(field, _)| *field).collect();
        let mut form = Form { program, id, header, span, values, given, options, length: 0 };
        form.settle_length()?;
        form.check_given()?;
        Ok(form)
    }

    /// Its bytes as they are so far.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        let (views, fields): (Vec<_>, Vec<_>) =
            (0..self.values.len()).partition(|&field| self.header.fields[field].is_view);
        // A view that is given overrules defaults; a field that is given overrules views.
        let given = fields.iter().filter(|&&field| self.is_given(field));
        for &field in fields.iter().chain(&views).chain(given) {
            self.write(&mut bytes, field);
        }
        if let Some(start) = self.view(&bytes).field_bytes() {
            // As many as the length has room for.
            bytes.iter_mut().skip(start).zip(&self.options).for_each(|(to, &from)| *to = from);
        }
        bytes
    }

    fn write(&self, bytes: &mut [u8], field: FieldIndex) {
        let Some(value) = &self.values[field] else { return };
        let Some((start, width)) = self.view(bytes).bits(field) else { return };
        let mut value = value.to_bytes();
        if matches!(self.values[field], Some(Operand::Bytes(_))) {
            value.resize(width / 8, 0);
        }
        let width = width.min(value.len() * 8);
        if start + width <= bytes.len() * 8 {
            write_bits(bytes, start, width, &value);
        }
    }

    /// `bytes` as this header.
    pub(super) fn view<'b>(&self, bytes: &'b [u8]) -> View<'b>
    where
        'a: 'b,
    {
        View { program: self.program, header: self.header, bytes, length: Some(self.length) }
    }

    /// Whether a condition on its own fields holds.
    pub(super) fn holds(&self, condition: &Expr) -> bool {
        holds(condition, &self.view(&self.bytes()))
    }

    /// The declarations.
    pub(super) fn program(&self) -> &'a Program {
        self.program
    }

    pub(super) fn is_given(&self, field: FieldIndex) -> bool {
        self.given.contains(&field)
    }

    pub(super) fn set(&mut self, field: FieldIndex, value: u64) {
        self.values[field] = Some(Operand::Number(value));
    }

    pub(super) fn field_name(&self, field: FieldIndex) -> &'a str {
        self.header.fields[field].name.as_deref().unwrap_or("_")
    }

    /// Chooses the length: room for all fields, and no more than the declaration's steps ask.
    pub(super) fn settle_length(&mut self) -> Result<(), Box<Diagnostic>> {
        // At first, conditional fields that are given count as there: they may need a length to be there.
        let mut needed = self.room(|form, field| form.is_given(field) || form.is_there(field));
        for _ in 0..ROUNDS {
            self.length = needed;
            if let Some(length) = &self.header.length {
                match self.solve(length, needed) {
                    Ok(_) => self.length = self.number(length).unwrap_or(needed as u64) as usize,
                    // A length that is given adds no bytes; one that no field chooses is as declared.
                    Err(Missed::NotAsked) if own_fields(length).iter().any(|&field| self.is_given(field)) => {
                    }
                    Err(Missed::NotAsked) => {
                        self.length = self.number(length).map_or(needed, |bytes| needed.max(bytes as usize));
                    }
                    Err(Missed::TooMuch(field)) => return Err(Box::new(self.does_not_fit(field, needed))),
                }
            }
            let again = self.room(Self::is_there);
            if again == needed {
                return Ok(());
            }
            needed = again;
        }
        let title = format!("no length of `{}` suits these fields", self.header.name);
        let label = "its fields depend on its length, and that on them";
        let refused = Diagnostic::error(codes::PACKET, title, self.span, label);
        Err(Box::new(refused.with_help("Give the field that holds the length by hand.")))
    }

    /// Bytes of the unconditional fields, of the conditional ones that are there, of the rest as given, and of the
    /// options.
    fn room(&self, is_there: impl Fn(&Self, FieldIndex) -> bool) -> usize {
        let mut bits = 0;
        for (index, field) in self.header.fields.iter().enumerate().filter(|(_, field)| !field.is_view) {
            if takes_rest(field) {
                bits += self.values[index].as_ref().map_or(0, |value| value.to_bytes().len() * 8);
            } else if field.when.is_some() && is_there(self, index) {
                bits += field.bits as usize;
            }
        }
        self.header.fixed_bytes as usize + bits.div_ceil(8) + self.options.len()
    }

    fn is_there(&self, field: FieldIndex) -> bool {
        // Conditions read fields that stand before; before the length is known, those are all there is.
        let form = Form { length: self.length.max(self.header.fixed_bytes as usize), ..self.clone() };
        form.view(&form.bytes()).is_there(field)
    }

    fn check_given(&self) -> Result<(), Box<Diagnostic>> {
        let Some(&field) = self.given.iter().find(|&&field| !self.is_there(field)) else { return Ok(()) };
        let (header, name) = (&self.header.name, self.field_name(field));
        let title = format!("this `{header}` has no field `{name}`");
        let declared = &self.header.fields[field];
        let when = declared.when.as_ref().map_or(declared.span, |when| when.span);
        let refused = Diagnostic::error(codes::PACKET, title, self.span, format!("`{name}` is given here"))
            .with_label(when, format!("`{name}` is there only then"))
            .with_help(format!("Give the fields that bring `{name}` about as well, or leave it out."));
        Err(Box::new(refused))
    }

    /// Chooses the one field of `expr` that is not given so that `expr` is `target`, or the least above it that
    /// its steps allow. Says whether it is `target` itself.
    pub(super) fn solve(&mut self, expr: &Expr, target: usize) -> Result<bool, Missed> {
        let fields = own_fields(expr);
        let mut free = fields.difference(&self.given);
        let (Some(&field), None) = (free.next(), free.next()) else { return Err(Missed::NotAsked) };
        let bits = self.header.fields[field].bits;
        let top = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let target = target as u64;
        let most = self.number_with(expr, field, top).ok_or(Missed::NotAsked)?;
        let step = self.number_with(expr, field, top - 1).and_then(|less| most.checked_sub(less));
        let step = step.filter(|&step| step > 0).ok_or(Missed::NotAsked)?;
        let above = most.checked_sub(target).ok_or(Missed::TooMuch(field))?;
        self.set(field, top - (above / step).min(top));
        Ok(self.number(expr) == Some(target))
    }

    fn number(&self, expr: &Expr) -> Option<u64> {
        number(expr, &self.view(&self.bytes()))
    }

    fn number_with(&self, expr: &Expr, field: FieldIndex, value: u64) -> Option<u64> {
        let mut form = self.clone();
        form.set(field, value);
        form.number(expr)
    }

    /// The error that `field` cannot say `bytes`.
    pub(super) fn does_not_fit(&self, field: FieldIndex, bytes: usize) -> Diagnostic {
        let (header, name) = (&self.header.name, self.field_name(field));
        let title = format!("`{header}.{name}` cannot say {bytes} bytes");
        let label = format!("this header and what follows it have {bytes} bytes");
        Diagnostic::error(codes::PACKET, title, self.span, label).with_help(format!(
            "Make the packet shorter, or give the field by hand, as in `{header}({name}: 0)`."
        ))
    }
}

/// The fields that `expr` reads.
fn own_fields(expr: &Expr) -> BTreeSet<FieldIndex> {
    let mut fields = BTreeSet::new();
    walk(expr, &mut |part| {
        if let ExprKind::Own(field) = part.kind {
            fields.insert(field);
        }
    });
    fields
}
