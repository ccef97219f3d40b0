//! The option list of a header that is being composed.

use pktc_diagnostics::{Diagnostic, codes};
use pktc_semantics::typed::{
    Expr, ExprKind, Field, FieldIndex, HeaderId, Options, PacketOption, Position, Program, Set, SetId, Value,
};

use crate::reference::{Operand, Operands, number, write_bits};

/// The bytes of these options, one behind the other.
pub(super) fn bytes(
    program: &Program,
    header: HeaderId,
    options: &[PacketOption],
) -> Result<Vec<u8>, Box<Diagnostic>> {
    let Some(declared) = &program.headers[header].options else { return Ok(Vec::new()) };
    let mut list = Vec::new();
    for option in options {
        list.extend(option_bytes(declared, option)?);
    }
    Ok(list)
}

fn option_bytes(declared: &Options, option: &PacketOption) -> Result<Vec<u8>, Box<Diagnostic>> {
    let is_single = declared.end.contains(&option.kind) || declared.pad.contains(&option.kind);
    if is_single {
        return Ok(vec![option.kind as u8]);
    }
    let start: u32 = declared.fields.iter().map(|field| field.bits).sum();
    let values = option.declared.map(|at| &declared.options[at]);
    let length = values.map_or(0, |values| values.bytes()).max(start.div_ceil(8)) as usize;
    let mut bytes = vec![0; length];
    if let Some(values) = values {
        option.values.iter().for_each(|(at, value)| put(&mut bytes, &values.fields[*at], value));
    }
    bytes.extend(&option.content);
    let mut own = Own { declared, numbers: vec![0; declared.fields.len()] };
    own.numbers[declared.kind] = option.kind;
    for (field, value) in &option.fields {
        if let Value::Uint(number) = value {
            own.numbers[*field] = *number;
        }
    }
    let is_given = |field: FieldIndex| option.fields.iter().any(|(given, _)| *given == field);
    if !own.say_length(bytes.len(), is_given) {
        let title = format!("no length of this option says {} bytes", bytes.len());
        let refused = Diagnostic::error(codes::PACKET, title, option.span, "too long");
        return Err(Box::new(refused.with_help("Make it shorter, or give its length by hand.")));
    }
    for (field, number) in declared.fields.iter().zip(&own.numbers) {
        put(&mut bytes, field, &Value::Uint(*number));
    }
    Ok(bytes)
}

fn put(bytes: &mut [u8], field: &Field, value: &Value) {
    let (Position::Start { bits, .. } | Position::End { bits }) = &field.position;
    write_bits(bytes, *bits as usize, field.bits as usize, &Operand::constant(value).to_bytes());
}

/// The numbers in the fields that an option starts with.
struct Own<'a> {
    declared: &'a Options,
    numbers: Vec<u64>,
}

impl Own<'_> {
    /// Chooses the field that is not given so that the option has `length` bytes; whether that can be said.
    fn say_length(&mut self, length: usize, is_given: impl Fn(FieldIndex) -> bool) -> bool {
        let kind = self.declared.kind;
        let free = (0..self.numbers.len()).find(|&field| field != kind && !is_given(field));
        let Some(free) = free else { return true };
        let bits = self.declared.fields[free].bits.min(16);
        for value in 0..1_u64 << bits {
            self.numbers[free] = value;
            if number(&self.declared.length, self) == Some(length as u64) {
                return true;
            }
        }
        false
    }
}

impl Operands for Own<'_> {
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr.kind {
            ExprKind::Own(field) => self.numbers.get(field).copied().map(Operand::Number),
            _ => None,
        }
    }

    fn set(&self, _: SetId) -> Option<&Set> {
        None
    }
}
