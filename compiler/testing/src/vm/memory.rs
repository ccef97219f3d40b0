//! All that a program can reach: context, packet, stack, maps. Every access goes through here and is checked.

use pktc_bpf::Size;

use super::fault::Problem;
use super::map::Map;
use super::packet::Packet;
use super::stack::Stack;
use super::value::{Kind, Value};

/// The regions.
pub(super) struct Memory {
    pub(super) packet: Packet,
    pub(super) stack: Stack,
    pub(super) maps: Vec<Map>,
    /// `ingress_ifindex` of the context.
    pub(super) ifindex: u32,
    /// `rx_queue_index` of the context.
    pub(super) queue: u32,
}

impl Memory {
    /// The context's address.
    pub(super) fn context() -> Value {
        Value::pointer(Kind::Context, 0)
    }

    /// `*(size *)(pointer + offset)`
    pub(super) fn load(&self, size: Size, pointer: Value, offset: i16) -> Result<Value, Problem> {
        let at = pointer.offset().wrapping_add(offset.into());
        let len = size.bytes() as usize;
        let bytes = match pointer.kind {
            Kind::Context => return self.load_context(size, pointer, offset),
            Kind::Stack(depth) => return self.stack.load(depth, at, size),
            Kind::Packet => self.packet.bytes(at, len)?,
            Kind::MapValue { map, entry } => self.maps[usize::from(map)].bytes(entry, at, len)?,
            Kind::Scalar => return Err(Problem::NotAPointer),
            Kind::Unset | Kind::PacketEnd | Kind::Map(_) => return Err(Problem::NotMemory),
        };
        let mut wide = [0; 8];
        wide[..len].copy_from_slice(bytes);
        Ok(Value::scalar(u64::from_le_bytes(wide)))
    }

    /// `*(size *)(pointer + offset) = value`
    pub(super) fn store(
        &mut self,
        size: Size,
        pointer: Value,
        offset: i16,
        value: Value,
    ) -> Result<(), Problem> {
        let at = pointer.offset().wrapping_add(offset.into());
        if let Kind::Stack(depth) = pointer.kind {
            return self.stack.store(depth, at, size, value);
        }
        if value.is_pointer() {
            return Err(Problem::PointerStored);
        }
        let len = size.bytes() as usize;
        let place = match pointer.kind {
            Kind::Packet => self.packet.bytes_mut(at, len)?,
            Kind::MapValue { map, entry } => self.maps[usize::from(map)].bytes_mut(entry, at, len)?,
            Kind::Context => return Err(Problem::Context),
            Kind::Scalar => return Err(Problem::NotAPointer),
            Kind::Unset | Kind::PacketEnd | Kind::Map(_) | Kind::Stack(_) => return Err(Problem::NotMemory),
        };
        place.copy_from_slice(&value.bits.to_le_bytes()[..len]);
        Ok(())
    }

    /// The number at an address for an atomic operation, which then stores another.
    pub(super) fn load_atomic(&self, size: Size, pointer: Value, offset: i16) -> Result<u64, Problem> {
        let at = pointer.offset().wrapping_add(offset.into());
        match pointer.kind {
            Kind::Packet => return Err(Problem::AtomicOnPacket),
            _ if at.rem_euclid(size.bytes().into()) != 0 => return Err(Problem::Misaligned),
            _ => {}
        }
        self.load(size, pointer, offset)?.number().ok_or(Problem::PointerArithmetic)
    }

    /// Bytes that a helper reads.
    pub(super) fn bytes(&self, pointer: Value, len: usize) -> Result<&[u8], Problem> {
        let at = pointer.offset();
        match pointer.kind {
            Kind::Stack(depth) => self.stack.bytes(depth, at, len),
            Kind::Packet => self.packet.bytes(at, len),
            Kind::MapValue { map, entry } => self.maps[usize::from(map)].bytes(entry, at, len),
            Kind::Scalar => Err(Problem::NotAPointer),
            Kind::Unset | Kind::Context | Kind::PacketEnd | Kind::Map(_) => Err(Problem::NotMemory),
        }
    }

    /// Bytes that a helper writes.
    pub(super) fn bytes_mut(&mut self, pointer: Value, len: usize) -> Result<&mut [u8], Problem> {
        let at = pointer.offset();
        match pointer.kind {
            Kind::Stack(depth) => self.stack.bytes_mut(depth, at, len),
            Kind::Packet => self.packet.bytes_mut(at, len),
            Kind::MapValue { map, entry } => self.maps[usize::from(map)].bytes_mut(entry, at, len),
            Kind::Scalar => Err(Problem::NotAPointer),
            Kind::Unset | Kind::Context | Kind::PacketEnd | Kind::Map(_) => Err(Problem::NotMemory),
        }
    }

    /// A field of `struct xdp_md`. The kernel turns a 4-byte load of `data` into a load of the whole pointer;
    /// `egress_ifindex` is for programs in device maps only (`xdp_is_valid_access`, `net/core/filter.c`).
    fn load_context(&self, size: Size, pointer: Value, offset: i16) -> Result<Value, Problem> {
        if pointer != Memory::context() || size != Size::U32 {
            return Err(Problem::Context);
        }
        match offset {
            // data; data_meta, since no packet has metadata.
            0 | 8 => Ok(Value::pointer(Kind::Packet, 0)),
            4 => Ok(Value::pointer(Kind::PacketEnd, self.packet.linear() as u64)),
            12 => Ok(Value::scalar(self.ifindex.into())),
            16 => Ok(Value::scalar(self.queue.into())),
            _ => Err(Problem::Context),
        }
    }
}
