//! Entries of arrays.

use pktc_bpf::{Helper, MapIndex, Operand, Size};

use crate::function::Lowering;
use crate::vcode::{Base, Callee, VInsn, VReg};

/// Bytes of stack for an array's index.
pub(crate) const FRAME: u32 = 8;
const KEY: i16 = -8;

/// The address of entry `index` of an array, or 0.
pub(crate) fn look_up(lowering: &mut Lowering<'_>, array: MapIndex, index: Operand<VReg>) -> VReg {
    let (map, key) = (lowering.fresh(), lowering.fresh());
    lowering.push(VInsn::Store { size: Size::U32, base: Base::Frame, offset: KEY, src: index });
    lowering.push(VInsn::LoadMap { dst: map, map: array });
    lowering.push(VInsn::FrameAddress { dst: key, offset: KEY });
    lowering.call(Callee::Helper(Helper::MapLookupElem), vec![map, key])
}
