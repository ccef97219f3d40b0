//! Values while a program is evaluated: how they compare, and what sets hold.

use std::cmp::Ordering;
use std::net::{Ipv4Addr, Ipv6Addr};

use pktc_semantics::typed::{CompareOp, Element, Type, Value};

/// A value of an operand. That an operand has none is `Option::None` around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A number, an enum's member, or a truth value (0 or 1).
    Number(u64),
    /// A MAC address, first byte highest.
    Mac(u64),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A tuple.
    Tuple(Vec<Operand>),
}

impl Operand {
    /// A truth value.
    pub(crate) fn truth(holds: bool) -> Self {
        Operand::Number(u64::from(holds))
    }

    /// Whether it is true: any number but 0.
    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Operand::Number(number) if *number != 0)
    }

    /// A constant of the program.
    pub(crate) fn constant(value: &Value) -> Self {
        match value {
            Value::Bool(holds) => Operand::truth(*holds),
            Value::Uint(number) => Operand::Number(*number),
            Value::Mac(address) => Operand::Mac(*address),
            Value::Ipv4(address) => Operand::Ipv4(*address),
            Value::Ipv6(address) => Operand::Ipv6(*address),
            Value::Bytes(bytes) => Operand::Bytes(bytes.clone()),
        }
    }

    /// What `bytes` from the packet mean as a `ty`; numbers are in network order. Numbers of more than
    /// 64 bits, and addresses of another length than theirs, are none.
    pub(crate) fn from_bytes(ty: &Type, bytes: &[u8]) -> Option<Self> {
        let number =
            || (bytes.len() <= 8).then(|| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)));
        match ty {
            Type::Bool | Type::Uint { .. } | Type::Enum(_) => number().map(Operand::Number),
            Type::Mac => number().map(Operand::Mac),
            Type::Ipv4 => <[u8; 4]>::try_from(bytes).ok().map(|octets| Operand::Ipv4(octets.into())),
            Type::Ipv6 => <[u8; 16]>::try_from(bytes).ok().map(|octets| Operand::Ipv6(octets.into())),
            Type::Bytes => Some(Operand::Bytes(bytes.to_vec())),
            Type::Ip | Type::Tuple(_) => None,
        }
    }

    /// The wire form: a number in eight bytes, of which a field takes the last bits.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Operand::Number(number) | Operand::Mac(number) => number.to_be_bytes().to_vec(),
            Operand::Ipv4(address) => address.octets().to_vec(),
            Operand::Ipv6(address) => address.octets().to_vec(),
            Operand::Bytes(bytes) => bytes.clone(),
            Operand::Tuple(parts) => parts.iter().flat_map(Operand::to_bytes).collect(),
        }
    }

    /// `self op other`. Values of two kinds (an IPv4 and an IPv6 address) are unequal and in no order.
    pub(crate) fn compare(&self, op: CompareOp, other: &Operand) -> bool {
        let order = self.order(other);
        match op {
            CompareOp::Equal => order == Some(Ordering::Equal),
            CompareOp::NotEqual => order != Some(Ordering::Equal),
            CompareOp::Less => order == Some(Ordering::Less),
            CompareOp::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            CompareOp::Greater => order == Some(Ordering::Greater),
            CompareOp::GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }

    fn order(&self, other: &Operand) -> Option<Ordering> {
        match (self, other) {
            (Operand::Number(left), Operand::Number(right)) | (Operand::Mac(left), Operand::Mac(right)) => {
                Some(left.cmp(right))
            }
            (Operand::Ipv4(left), Operand::Ipv4(right)) => Some(left.cmp(right)),
            (Operand::Ipv6(left), Operand::Ipv6(right)) => Some(left.cmp(right)),
            (Operand::Bytes(left), Operand::Bytes(right)) => Some(left.cmp(right)),
            (Operand::Tuple(left), Operand::Tuple(right)) => left
                .iter()
                .zip(right)
                .map(|(left, right)| left.order(right))
                .find(|&order| order != Some(Ordering::Equal))
                .unwrap_or(Some(Ordering::Equal)),
            _ => None,
        }
    }

    /// Whether it lies in `element`, both ends included.
    pub(crate) fn is_in(&self, element: &Element) -> bool {
        match (self, element) {
            (Operand::Number(value), Element::Uint { low, high })
            | (Operand::Mac(value), Element::Mac { low, high }) => (low..=high).contains(&value),
            (Operand::Ipv4(value), Element::Ipv4 { low, high }) => (low..=high).contains(&value),
            (Operand::Ipv6(value), Element::Ipv6 { low, high }) => (low..=high).contains(&value),
            (Operand::Bytes(value), Element::Bytes { low, high }) => {
                value.len() == low.len() && (low..=high).contains(&value)
            }
            (Operand::Tuple(values), Element::Tuple(elements)) => {
                values.len() == elements.len()
                    && values
                        .iter()
                        .zip(elements)
                        .all(|(value, element)| element.as_ref().is_none_or(|element| value.is_in(element)))
            }
            _ => false,
        }
    }
}
