//! Numbers in either byte order, from bytes that may end anywhere.

use pcap_file::Endianness;

/// Reads numbers one after the other; at the end of the bytes there is none.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    order: Endianness,
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8], order: Endianness) -> Self {
        Fields { bytes, order }
    }

    /// Reads other bytes in the same order.
    pub(super) fn over(&self, bytes: &'a [u8]) -> Self {
        Fields { bytes, order: self.order }
    }

    /// The bytes that have not been read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let bytes = self.array()?;
        Some(match self.order {
            Endianness::Big => u16::from_be_bytes(bytes),
            Endianness::Little => u16::from_le_bytes(bytes),
        })
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(match self.order {
            Endianness::Big => u32::from_be_bytes(bytes),
            Endianness::Little => u32::from_le_bytes(bytes),
        })
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        let bytes = self.array()?;
        Some(match self.order {
            Endianness::Big => i64::from_be_bytes(bytes),
            Endianness::Little => i64::from_le_bytes(bytes),
        })
    }
}
