//! The packet: a linear part that programs read directly, and the rest, which only helpers reach.
//!
//! Programs may touch only bytes that a comparison with `data_end` has covered. The kernel keeps what it learned
//! with each pointer; here it is one number, the highest end that a passed comparison has proven, so that a
//! program which the kernel accepts is never stopped.
//!
//! How the bytes behind the linear part are cut into fragments makes no difference to any helper, so they are kept
//! in one piece.

use super::fault::Problem;

/// Above this, offsets and lengths are refused by `bpf_xdp_pointer` (`net/core/filter.c`).
const MOST: u64 = 0xffff;

const EFAULT: i64 = -14;
const EINVAL: i64 = -22;

/// A packet.
#[derive(Default)]
pub(super) struct Packet {
    bytes: Vec<u8>,
    linear: usize,
    checked: usize,
}

impl Packet {
    /// Replaces it by `bytes`, of which at most `linear` are in the linear part.
    pub(super) fn reset(&mut self, bytes: &[u8], linear: Option<usize>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.linear = linear.map_or(bytes.len(), |linear| linear.min(bytes.len()));
        self.checked = 0;
    }

    /// Length of all parts.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Length of the linear part.
    pub(super) fn linear(&self) -> usize {
        self.linear
    }

    /// All bytes.
    pub(super) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// A comparison has proven that the linear part reaches to `end`.
    pub(super) fn prove(&mut self, end: i64) {
        let end = usize::try_from(end).unwrap_or(0).min(self.linear);
        self.checked = self.checked.max(end);
    }

    /// Bytes of the linear part.
    pub(super) fn bytes(&self, offset: i64, len: usize) -> Result<&[u8], Problem> {
        let start = self.inside(offset, len)?;
        Ok(&self.bytes[start..start + len])
    }

    /// Bytes of the linear part, to write.
    pub(super) fn bytes_mut(&mut self, offset: i64, len: usize) -> Result<&mut [u8], Problem> {
        let start = self.inside(offset, len)?;
        Ok(&mut self.bytes[start..start + len])
    }

    fn inside(&self, offset: i64, len: usize) -> Result<usize, Problem> {
        let start = usize::try_from(offset).ok();
        let inside = start.filter(|start| start.checked_add(len).is_some_and(|end| end <= self.checked));
        let to = offset.saturating_add(len as i64);
        inside.ok_or(Problem::PacketUnchecked { from: offset, to, checked: self.checked })
    }

    /// The bytes that `bpf_xdp_load_bytes` and `bpf_xdp_store_bytes` reach, or the error that they return.
    pub(super) fn reach(&mut self, offset: u64, len: u64) -> Result<&mut [u8], i64> {
        // Both are 32-bit arguments.
        let (offset, len) = (offset & 0xffff_ffff, len & 0xffff_ffff);
        if offset > MOST || len > MOST {
            return Err(EFAULT);
        }
        self.bytes.get_mut(offset as usize..(offset + len) as usize).ok_or(EINVAL)
    }
}
