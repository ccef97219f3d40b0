//! What declared expressions yield for given bytes, as far as drawing needs it.
//!
//! This is no oracle, and no outcome is compared with it: it finds lengths that fit, and constants that are near
//! what a packet holds. Where it does not know it says so, and something random is taken instead.

use pktc_semantics::typed::{
    BinaryOp, CompareOp, Element, Expr, ExprKind, FieldIndex, Header, Position, Program, Type, Value,
};

use super::dice::ones;

/// Where the fields come from that an expression reads.
pub(super) trait Leaves {
    /// The value of a field, a length and the like.
    fn leaf(&self, expr: &Expr) -> Option<u128>;
    /// The declarations.
    fn program(&self) -> &Program;
}

/// The value of `expr`; a condition is 0 or 1.
pub(super) fn value(expr: &Expr, leaves: &dyn Leaves) -> Option<u128> {
    match &expr.kind {
        ExprKind::Const(value) => constant(value),
        ExprKind::Not(inner) => Some(u128::from(!holds(inner, leaves))),
        ExprKind::And(parts) => Some(u128::from(parts.iter().all(|part| holds(part, leaves)))),
        ExprKind::Or(parts) => Some(u128::from(parts.iter().any(|part| holds(part, leaves)))),
        ExprKind::Compare { op, left, right } => {
            Some(u128::from(compare(*op, value(left, leaves)?, value(right, leaves)?)))
        }
        ExprKind::In { value: member, set, negated } => {
            let member = value(member, leaves)?;
            let mut elements = leaves.program().sets[*set].elements.iter();
            Some(u128::from(elements.any(|element| contains(element, member)) != *negated))
        }
        ExprKind::Binary { op, left, right } => arithmetic(*op, value(left, leaves)?, value(right, leaves)?),
        ExprKind::Default { value: first, otherwise } => {
            value(first, leaves).or_else(|| value(otherwise, leaves))
        }
        _ => leaves.leaf(expr),
    }
}

/// Whether a condition is true.
pub(super) fn holds(expr: &Expr, leaves: &dyn Leaves) -> bool {
    value(expr, leaves) == Some(1)
}

fn constant(value: &Value) -> Option<u128> {
    match value {
        Value::Bool(value) => Some(u128::from(*value)),
        Value::Uint(value) | Value::Mac(value) => Some(u128::from(*value)),
        Value::Ipv4(address) => Some(u128::from(address.to_bits())),
        Value::Ipv6(address) => Some(address.to_bits()),
        Value::Bytes(bytes) => Some(number(bytes)).filter(|_| bytes.len() <= 16),
    }
}

/// Bytes as a number, the first highest.
pub(super) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |sum, &byte| sum << 8 | u128::from(byte))
}

fn contains(element: &Element, value: u128) -> bool {
    let (low, high) = match element {
        Element::Uint { low, high } | Element::Mac { low, high } => (u128::from(*low), u128::from(*high)),
        Element::Ipv4 { low, high } => (u128::from(low.to_bits()), u128::from(high.to_bits())),
        Element::Ipv6 { low, high } => (low.to_bits(), high.to_bits()),
        Element::Bytes { .. } | Element::Tuple(_) => return false,
    };
    (low..=high).contains(&value)
}

fn compare(op: CompareOp, left: u128, right: u128) -> bool {
    match op {
        CompareOp::Equal => left == right,
        CompareOp::NotEqual => left != right,
        CompareOp::Less => left < right,
        CompareOp::LessEqual => left <= right,
        CompareOp::Greater => left > right,
        CompareOp::GreaterEqual => left >= right,
    }
}

/// Arithmetic in 64 bits.
pub(super) fn arithmetic(op: BinaryOp, left: u128, right: u128) -> Option<u128> {
    let (left, right) = (left as u64, right as u64);
    let shift = |shifted: fn(u64, u32) -> Option<u64>| {
        u32::try_from(right).ok().and_then(|right| shifted(left, right)).unwrap_or(0)
    };
    let result = match op {
        BinaryOp::Or => left | right,
        BinaryOp::Xor => left ^ right,
        BinaryOp::And => left & right,
        BinaryOp::ShiftLeft => shift(u64::checked_shl),
        BinaryOp::ShiftRight => shift(u64::checked_shr),
        BinaryOp::Add => left.wrapping_add(right),
        BinaryOp::Subtract => left.checked_sub(right)?,
        BinaryOp::Multiply => left.wrapping_mul(right),
    };
    Some(u128::from(result))
}

/// A header over bytes that start with it.
#[derive(Clone, Copy)]
pub(super) struct Laid<'a> {
    pub(super) program: &'a Program,
    pub(super) header: &'a Header,
    pub(super) bytes: &'a [u8],
}

impl Laid<'_> {
    /// The field's first bit and its width, if it is there and its place is known.
    pub(super) fn place(&self, index: FieldIndex) -> Option<(usize, usize)> {
        let field = &self.header.fields[index];
        if !self.is_there(index) || field.bits == 0 {
            return None;
        }
        let start = match &field.position {
            Position::Start { bits, plus } => {
                let width = |&before: &FieldIndex| self.header.fields[before].bits;
                bits + plus.iter().filter(|&&before| self.is_there(before)).map(width).sum::<u32>()
            }
            Position::End { bits } => (self.length()? as u32 * 8).checked_sub(*bits)?,
        };
        Some((start as usize, field.bits as usize))
    }

    fn is_there(&self, index: FieldIndex) -> bool {
        self.header.fields[index].when.as_ref().is_none_or(|when| holds(when, self))
    }

    /// The field's value, if it has at most 128 bits.
    pub(super) fn get(&self, index: FieldIndex) -> Option<u128> {
        let (start, width) = self.place(index).filter(|&(_, width)| width <= 128)?;
        read(self.bytes, start, width)
    }

    /// The bytes of the fields that are there.
    pub(super) fn size(&self) -> usize {
        let fields = self.header.fields.iter().enumerate();
        let conditional = fields.filter(|&(index, field)| {
            field.when.is_some() && !field.is_view && field.bits > 0 && self.is_there(index)
        });
        let bits: u32 = conditional.map(|(_, field)| field.bits).sum();
        self.header.fixed_bytes as usize + bits as usize / 8
    }

    /// The header's length in bytes.
    pub(super) fn length(&self) -> Option<usize> {
        match &self.header.length {
            Some(length) => usize::try_from(value(length, self)?).ok(),
            None => Some(self.size()),
        }
    }
}

impl Leaves for Laid<'_> {
    fn leaf(&self, expr: &Expr) -> Option<u128> {
        match expr.kind {
            ExprKind::Own(field) => self.get(field),
            _ => None,
        }
    }

    fn program(&self) -> &Program {
        self.program
    }
}

/// `width` bits from bit `start` on, 128 at most; none if they are not all there.
pub(super) fn read(bytes: &[u8], start: usize, width: usize) -> Option<u128> {
    if start + width > bytes.len() * 8 {
        return None;
    }
    let bit = |at: usize| u128::from(bytes[at / 8] >> (7 - at % 8) & 1);
    Some((start..start + width).fold(0, |sum, at| sum << 1 | bit(at)))
}

/// Puts the low `width` bits of `value` at bit `start`; bits that lie beyond the bytes are lost.
pub(super) fn write(bytes: &mut [u8], start: usize, width: usize, value: u128) {
    for at in 0..width {
        let (to, bit) = (start + at, width - 1 - at);
        let set = bit < 128 && value >> bit & 1 == 1;
        if let Some(byte) = bytes.get_mut(to / 8) {
            let mask = 1 << (7 - to % 8);
            *byte = if set { *byte | mask } else { *byte & !mask };
        }
    }
}

/// The fields of the declaring header that an expression reads.
pub(super) fn own_fields(expr: &Expr) -> Vec<FieldIndex> {
    match &expr.kind {
        ExprKind::Own(field) => vec![*field],
        ExprKind::Not(inner) | ExprKind::In { value: inner, .. } => own_fields(inner),
        ExprKind::And(parts) | ExprKind::Or(parts) => parts.iter().flat_map(own_fields).collect(),
        ExprKind::Compare { left, right, .. }
        | ExprKind::Binary { left, right, .. }
        | ExprKind::Default { value: left, otherwise: right } => {
            [left, right].into_iter().flat_map(|part| own_fields(part)).collect()
        }
        _ => Vec::new(),
    }
}

/// How many bits a value of this type has; 0 for what is of any length.
pub(super) fn width(program: &Program, ty: &Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Uint { bits } => u32::from(*bits),
        Type::Enum(id) => u32::from(program.enums[*id].bits),
        Type::Mac => 48,
        Type::Ipv4 => 32,
        Type::Ipv6 | Type::Ip => 128,
        Type::Bytes | Type::Tuple(_) => 0,
    }
}

/// The greatest number of so many bits, 64 at most.
pub(super) fn greatest(bits: u32) -> u128 {
    ones(bits.min(64))
}
