//! The stack: a frame of 512 bytes a function.
//!
//! A frame knows which of its bytes were written since its function was entered, and which of its 8-byte slots
//! hold pointers.

use pktc_bpf::Size;

use super::FRAMES;
use super::fault::Problem;
use super::value::{Kind, Value};

/// Bytes of a frame (`MAX_BPF_STACK`).
const FRAME: usize = 512;

/// Bytes of a slot that can hold a pointer.
const SLOT: usize = 8;

/// The frames of a program and the functions that it has called.
pub(super) struct Stack {
    frames: Vec<Frame>,
    depth: u8,
}

struct Frame {
    bytes: [u8; FRAME],
    /// A bit a byte.
    written: [u64; FRAME / 64],
    /// What each slot holds; meaningful where its bytes are written.
    kinds: [Kind; FRAME / SLOT],
}

impl Stack {
    pub(super) fn new() -> Stack {
        let frame =
            || Frame { bytes: [0; FRAME], written: [0; FRAME / 64], kinds: [Kind::Scalar; FRAME / SLOT] };
        Stack { frames: (0..FRAMES).map(|_| frame()).collect(), depth: 0 }
    }

    /// Forgets all frames but an empty first one.
    pub(super) fn reset(&mut self) {
        self.depth = 0;
        self.frames[0].written = [0; FRAME / 64];
    }

    /// The frame pointer of the running function.
    pub(super) fn frame_pointer(&self) -> Value {
        Value::pointer(Kind::Stack(self.depth), 0)
    }

    /// Whether `kind` is a place in the running function's own frame.
    pub(super) fn is_own(&self, kind: Kind) -> bool {
        kind == Kind::Stack(self.depth)
    }

    /// Enters a function.
    pub(super) fn enter(&mut self) -> Result<(), Problem> {
        if usize::from(self.depth) + 1 == FRAMES {
            return Err(Problem::CallDepth);
        }
        self.depth += 1;
        self.frames[usize::from(self.depth)].written = [0; FRAME / 64];
        Ok(())
    }

    /// Leaves a function that was entered.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The value of `size` bytes at `offset` from frame `depth`'s pointer.
    pub(super) fn load(&self, depth: u8, offset: i64, size: Size) -> Result<Value, Problem> {
        let start = aligned(offset, size)?;
        let len = size.bytes() as usize;
        let frame = &self.frames[usize::from(depth)];
        frame.require_written(start, len)?;
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&frame.bytes[start..start + len]);
        let bits = u64::from_le_bytes(bytes);
        match (frame.kinds[start / SLOT], size) {
            (Kind::Scalar, _) => Ok(Value::scalar(bits)),
            (kind, Size::U64) => Ok(Value { bits, kind }),
            _ => Err(Problem::PartOfPointer),
        }
    }

    /// Stores `value` in `size` bytes at `offset` from frame `depth`'s pointer.
    pub(super) fn store(&mut self, depth: u8, offset: i64, size: Size, value: Value) -> Result<(), Problem> {
        if value.is_pointer() && size != Size::U64 {
            return Err(Problem::PointerStored);
        }
        let start = aligned(offset, size)?;
        let len = size.bytes() as usize;
        let frame = &mut self.frames[usize::from(depth)];
        frame.overwrite(start, len).copy_from_slice(&value.bits.to_le_bytes()[..len]);
        frame.kinds[start / SLOT] = value.kind;
        Ok(())
    }

    /// Bytes that a helper reads.
    pub(super) fn bytes(&self, depth: u8, offset: i64, len: usize) -> Result<&[u8], Problem> {
        let start = inside(offset, len)?;
        let frame = &self.frames[usize::from(depth)];
        frame.require_written(start, len)?;
        let slots = start / SLOT..(start + len).div_ceil(SLOT);
        if frame.kinds[slots].iter().any(|kind| *kind != Kind::Scalar) {
            return Err(Problem::PartOfPointer);
        }
        Ok(&frame.bytes[start..start + len])
    }

    /// Bytes that a helper writes.
    pub(super) fn bytes_mut(&mut self, depth: u8, offset: i64, len: usize) -> Result<&mut [u8], Problem> {
        let start = inside(offset, len)?;
        Ok(self.frames[usize::from(depth)].overwrite(start, len))
    }
}

impl Frame {
    /// The bytes to be written; what else lay in their slots is no pointer any more.
    fn overwrite(&mut self, start: usize, len: usize) -> &mut [u8] {
        for byte in start..start + len {
            self.written[byte / 64] |= 1 << (byte % 64);
        }
        self.kinds[start / SLOT..(start + len).div_ceil(SLOT)].fill(Kind::Scalar);
        &mut self.bytes[start..start + len]
    }

    fn require_written(&self, start: usize, len: usize) -> Result<(), Problem> {
        let written = |byte: usize| self.written[byte / 64] >> (byte % 64) & 1 == 1;
        if (start..start + len).all(written) { Ok(()) } else { Err(Problem::UnwrittenStack) }
    }
}

/// The place of `len` bytes in a frame.
fn inside(offset: i64, len: usize) -> Result<usize, Problem> {
    let start = offset.checked_add(FRAME as i64).and_then(|start| usize::try_from(start).ok());
    let inside = start.filter(|start| start.checked_add(len).is_some_and(|end| end <= FRAME));
    inside.ok_or_else(|| Problem::OutOfBounds { region: "stack".into(), from: offset, len: len as u64 })
}

/// The place of an access, which the kernel wants aligned on the stack, on every machine.
fn aligned(offset: i64, size: Size) -> Result<usize, Problem> {
    let start = inside(offset, size.bytes() as usize)?;
    if start.is_multiple_of(size.bytes() as usize) { Ok(start) } else { Err(Problem::Misaligned) }
}
