//! Cells: where variables wait between blocks, in a per-CPU array that all programs of an object share. A packet's
//! program is not interrupted by another's on its CPU, and it writes each cell before it reads it.
//!
//! A map and not the stack, because the kernel's verifier knows nothing of what lies there: of the stack it follows
//! each byte, and walks what comes behind once for every way in which cells may be filled.

use cranelift_entity::SecondaryMap;
use pktc_bpf::{CELLS, Condition, MapDef, MapIndex, MapKind, Operand, Size, ValueLayout};
use pktc_ir::flow::{Cell, Flow};

use crate::function::Lowering;
use crate::maps;
use crate::vcode::{Base, Terminator, VInsn, VReg};

/// The cells of a program.
pub(crate) struct Cells {
    /// Will hold the address of the array's entry.
    pointer: VReg,
    /// Bytes from there.
    offsets: SecondaryMap<Cell, i16>,
}

impl Cells {
    pub(crate) fn new(flow: &Flow, pointer: VReg) -> Self {
        let (mut offsets, mut next) = (SecondaryMap::new(), 0_u32);
        // The widest first: all are aligned, without holes.
        for wanted in [Size::U64, Size::U32, Size::U16, Size::U8] {
            for (cell, _) in flow.cells.iter().filter(|(_, size)| **size == wanted) {
                offsets[cell] = next as i16;
                next += wanted.bytes();
            }
        }
        Cells { pointer, offsets }
    }

    /// Gives `src` to a cell.
    pub(crate) fn keep(&self, cell: Cell, size: Size, src: VReg) -> VInsn {
        let base = Base::Reg(self.pointer);
        VInsn::Store { size, base, offset: self.offsets[cell], src: Operand::Reg(src) }
    }

    /// `dst` = what a cell holds
    pub(crate) fn recall(&self, dst: VReg, cell: Cell, size: Size) -> VInsn {
        VInsn::Load { size, dst, base: Base::Reg(self.pointer), offset: self.offsets[cell] }
    }
}

/// The array, if a program has cells: one entry, as large as the largest needs.
pub(crate) fn map(flows: &[Flow]) -> Option<MapDef> {
    let bytes = flows.iter().map(Flow::cell_bytes).max().filter(|&bytes| bytes > 0)?;
    Some(MapDef {
        name: CELLS.into(),
        kind: MapKind::PerCpuArray,
        key_size: 4,
        value_size: bytes,
        max_entries: 1,
        flags: 0,
        layout: ValueLayout::Bytes,
        content: None,
    })
}

/// Looks the array's entry up for the whole program, which goes on in a new block.
pub(crate) fn find(lowering: &mut Lowering<'_>, map: MapIndex) {
    let (entry, pointer) = (maps::look_up(lowering, map, Operand::Imm(0)), lowering.cells.pointer);
    lowering.mov(pointer, Operand::Reg(entry));
    let (found, absent) = (lowering.new_block(), lowering.new_cold_block());
    lowering.branch(Condition::Eq, pointer, Operand::Imm(0), absent, found);
    lowering.switch_to(absent);
    // An array has its entries: only the verifier asks.
    lowering.end(Terminator::Exit(Operand::Imm(0)));
    lowering.switch_to(found);
}
