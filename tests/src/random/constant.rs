//! Constants as the language writes them, near the values that a packet holds.

use std::net::{Ipv4Addr, Ipv6Addr};

use pktc_semantics::typed::{Program, Type};

use super::dice::{Dice, ones};
use super::meaning::{greatest, width};

/// A value and its type; of an address, its family; of bytes, 16 at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Constant {
    pub(super) ty: Type,
    /// How many bits it may have.
    pub(super) bits: u32,
    pub(super) value: u128,
}

impl Constant {
    /// A value of type `ty`, cut to its width; an address of either family is one of IPv6.
    pub(super) fn new(program: &Program, ty: Type, value: u128) -> Self {
        let (bits, ty) = (width(program, &ty), if ty == Type::Ip { Type::Ipv6 } else { ty });
        Constant { ty, bits, value: value & ones(bits) }
    }

    /// `bytes` bytes, 16 at most.
    pub(super) fn bytes(bytes: u32, value: u128) -> Self {
        Constant { ty: Type::Bytes, bits: bytes * 8, value: value & ones(bytes * 8) }
    }

    /// The value itself, mostly; else one beside it, one with another bit, or any.
    pub(super) fn near(&self, dice: &mut Dice) -> Self {
        let value = match dice.below(16) {
            0 => self.value.wrapping_add(1),
            1 => self.value.wrapping_sub(1),
            2 => self.value ^ 1 << dice.below(self.bits.max(1) as usize),
            3 => dice.bits(self.bits),
            _ => self.value,
        };
        Constant { value: value & ones(self.bits), ..self.clone() }
    }

    /// As it is written; a member of an enum by its name, now and then.
    pub(super) fn text(&self, program: &Program, dice: &mut Dice) -> String {
        match &self.ty {
            Type::Enum(id) => {
                let mut members = program.enums[*id].members.iter();
                match members.find(|(_, value)| u128::from(*value) == self.value) {
                    Some((name, _)) if dice.chance(80) => name.clone(),
                    _ => number(self.value, dice),
                }
            }
            Type::Mac => mac(self.value),
            Type::Ipv4 => Ipv4Addr::from_bits(self.value as u32).to_string(),
            Type::Ipv6 | Type::Ip => Ipv6Addr::from_bits(self.value).to_string(),
            Type::Bool => (self.value == 1).to_string(),
            Type::Bytes => string(&self.value.to_be_bytes()[16 - self.bits as usize / 8..]),
            Type::Uint { .. } | Type::Tuple(_) => number(self.value, dice),
        }
    }

    /// The prefix of `length` bits that it is in, for addresses.
    pub(super) fn prefix(&self, program: &Program, length: u32, dice: &mut Dice) -> String {
        let length = length.min(self.bits);
        let host = ones(self.bits - length);
        let network = Constant { value: self.value & !host & ones(self.bits), ..self.clone() };
        format!("{}/{length}", network.text(program, dice))
    }

    /// An element of a set that may hold it: a value, a range or a prefix.
    pub(super) fn element(&self, program: &Program, dice: &mut Dice) -> String {
        let is_address = matches!(self.ty, Type::Mac | Type::Ipv4 | Type::Ipv6);
        if is_address && dice.chance(45) {
            let length = dice.between(0, self.bits as usize) as u32;
            return self.near(dice).prefix(program, length, dice);
        }
        let near = self.near(dice);
        // Ranges of longer strings are for a later version.
        if (self.ty == Type::Bytes && self.bits > 64) || !dice.chance(35) {
            return near.text(program, dice);
        }
        let below = dice.bits((self.bits / 3).max(1)).min(near.value);
        let above = dice.bits((self.bits / 3).max(1)).min(ones(self.bits) - near.value);
        let low = Constant { value: near.value - below, ..self.clone() };
        let high = Constant { value: near.value + above, ..self.clone() };
        format!("{}-{}", low.text(program, dice), high.text(program, dice))
    }
}

/// A number in one of the ways to write it.
fn number(value: u128, dice: &mut Dice) -> String {
    debug_assert!(value <= greatest(64), "numbers have 64 bits");
    match dice.below(8) {
        0 | 1 => format!("{value:#x}"),
        2 if value < 256 => format!("{value:#b}"),
        3 if value > 0 && value.is_multiple_of(1000) => format!("{}k", value / 1000),
        _ => value.to_string(),
    }
}

/// `02:00:00:00:00:01`
fn mac(value: u128) -> String {
    let bytes = value.to_be_bytes();
    bytes[10..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// Bytes as a string.
fn string(bytes: &[u8]) -> String {
    let escaped = |&byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", byte as char),
        0x20..=0x7e => (byte as char).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    format!("\"{}\"", bytes.iter().map(escaped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_languages() {
        assert_eq!(mac(0x0200_0000_00ab), "02:00:00:00:00:ab");
        assert_eq!(string(b"a\"\\\x00\xff"), "\"a\\\"\\\\\\x00\\xff\"");
    }

    #[test]
    fn an_element_lies_in_its_type() {
        let mut dice = Dice::new(1);
        let constant = |ty, bits, value| Constant { ty, bits, value };
        for value in [0, 1, 255] {
            let constant = constant(Type::Uint { bits: 8 }, 8, value);
            for _ in 0..200 {
                let near = constant.near(&mut dice);
                assert!(near.value < 256, "{}", near.value);
            }
        }
    }
}
