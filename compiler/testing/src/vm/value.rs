//! What a register holds: 64 bits, and what they are.
//!
//! Pointers carry their region with them, so that arithmetic cannot lead from one region into another whatever
//! the numbers are. The numbers that programs can see (differences, comparisons) are those of regions that lie
//! far apart.

use pktc_bpf::{AluOp, Width};

use super::arithmetic;
use super::fault::Problem;

/// What the bits of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing was written.
    Unset,
    /// A number.
    Scalar,
    /// The context, `struct xdp_md`.
    Context,
    /// A place in the linear part of the packet.
    Packet,
    /// `data_end`: to compare with only.
    PacketEnd,
    /// A place in the frame of that depth; the address of the region is its end, the frame pointer.
    Stack(u8),
    /// A map.
    Map(u8),
    /// A place in a value of a map.
    MapValue { map: u8, entry: u32 },
}

impl Kind {
    /// The address of the region's start.
    pub(super) fn address(self) -> u64 {
        let region = |number: u8| u64::from(number) << 56;
        match self {
            Kind::Unset | Kind::Scalar => 0,
            Kind::Context => region(0x10),
            Kind::Packet | Kind::PacketEnd => region(0x20),
            Kind::Stack(depth) => region(0x30 + depth),
            Kind::Map(map) => region(0x40) + (u64::from(map) << 8),
            Kind::MapValue { map, entry } => region(0x50) + (u64::from(map) << 48) + (u64::from(entry) << 20),
        }
    }

    fn is_pointer(self) -> bool {
        !matches!(self, Kind::Unset | Kind::Scalar)
    }

    /// Numbers may be added to it.
    fn is_movable(self) -> bool {
        matches!(self, Kind::Context | Kind::Packet | Kind::Stack(_) | Kind::MapValue { .. })
    }

    /// A difference to `other` means something.
    fn is_comparable(self, other: Kind) -> bool {
        let packet = |kind| matches!(kind, Kind::Packet | Kind::PacketEnd);
        self == other || (packet(self) && packet(other))
    }
}

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// The number or address.
    pub(super) bits: u64,
    /// What it is.
    pub(super) kind: Kind,
}

impl Value {
    pub(super) const UNSET: Value = Value { bits: 0, kind: Kind::Unset };

    pub(super) fn scalar(bits: u64) -> Value {
        Value { bits, kind: Kind::Scalar }
    }

    /// A pointer `offset` bytes into a region.
    pub(super) fn pointer(kind: Kind, offset: u64) -> Value {
        Value { bits: kind.address().wrapping_add(offset), kind }
    }

    pub(super) fn is_pointer(self) -> bool {
        self.kind.is_pointer()
    }

    /// Bytes from the region's start.
    pub(super) fn offset(self) -> i64 {
        self.bits.wrapping_sub(self.kind.address()) as i64
    }

    /// The number, which a pointer is not.
    pub(super) fn number(self) -> Option<u64> {
        (self.kind == Kind::Scalar).then_some(self.bits)
    }

    /// `self op right`, by the verifier's rules about pointers (`adjust_reg_min_max_vals`).
    pub(super) fn alu(self, op: AluOp, width: Width, right: Value) -> Result<Value, Problem> {
        let bits = arithmetic::alu(op, width, self.bits, right.bits);
        match (op, width) {
            (AluOp::Mov, Width::W64) => Ok(right),
            // The low half of a pointer is a number.
            (AluOp::Mov, Width::W32) => Ok(Value::scalar(bits)),
            _ => match (self.is_pointer(), right.is_pointer()) {
                (false, false) => Ok(Value::scalar(bits)),
                (left, _) => self.pointer_alu(op, width, right, left).map(|kind| Value { bits, kind }),
            },
        }
    }

    /// What arithmetic with at least one pointer gives.
    fn pointer_alu(
        self,
        op: AluOp,
        width: Width,
        right: Value,
        left_is_pointer: bool,
    ) -> Result<Kind, Problem> {
        match (op, left_is_pointer, right.is_pointer()) {
            (AluOp::Sub, true, true) if self.kind.is_comparable(right.kind) => Ok(Kind::Scalar),
            (AluOp::Sub, true, true) => Err(Problem::UnrelatedPointers),
            (AluOp::Add | AluOp::Sub, true, false) if width == Width::W64 && self.kind.is_movable() => {
                Ok(self.kind)
            }
            (AluOp::Add, false, true) if width == Width::W64 && right.kind.is_movable() => Ok(right.kind),
            _ => Err(Problem::PointerArithmetic),
        }
    }
}
