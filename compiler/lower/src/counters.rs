//! Counters: one per-CPU array for all programs of an object, an entry `{packets, bytes}` for each rule and each
//! named counter.

use pktc_bpf::{AluOp, Condition, MapDef, MapIndex, MapKind, Operand, Size, ValueLayout, Width};
use pktc_ir::flow::Flow;

use crate::function::Lowering;
use crate::maps;
use crate::vcode::{Base, Terminator, VInsn, VReg};

/// Which entry of the counters' array belongs to what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterLayout {
    first_rules: Vec<Option<u32>>,
    first_named: u32,
    entries: u32,
}

impl CounterLayout {
    /// The counters' array is the object's first map.
    pub const MAP: MapIndex = MapIndex(0);
    /// Its name in the kernel.
    pub const MAP_NAME: &'static str = "pktc_counters";

    pub(crate) fn new(flows: &[Flow], named: u32) -> Self {
        let mut entries = 0;
        let first_rules = flows.iter().map(|flow| {
            flow.counters.then(|| {
                entries += flow.rules;
                entries - flow.rules
            })
        });
        let first_rules = first_rules.collect();
        CounterLayout { first_rules, first_named: entries, entries: entries + named }
    }

    /// The entry of the program's `default`, its other rules behind it; `None` if its rules do not count.
    #[must_use]
    pub fn first_rule(&self, program: usize) -> Option<u32> {
        self.first_rules[program]
    }

    /// The entry of the first named counter.
    #[must_use]
    pub fn first_named(&self) -> u32 {
        self.first_named
    }

    pub(crate) fn maps(&self) -> Vec<MapDef> {
        if self.entries == 0 {
            return Vec::new();
        }
        vec![MapDef {
            name: Self::MAP_NAME.into(),
            kind: MapKind::PerCpuArray,
            key_size: 4,
            value_size: 16,
            max_entries: self.entries,
            flags: 0,
            layout: ValueLayout::U64s(vec!["packets", "bytes"]),
            content: None,
        }]
    }
}

/// Counts a packet of `length` bytes in the entry whose number is in `index`.
pub(crate) fn count(lowering: &mut Lowering<'_>, index: Operand<VReg>, length: VReg) {
    let entry = maps::look_up(lowering, CounterLayout::MAP, index);
    let (found, done) = (lowering.new_block(), lowering.new_block());
    lowering.end(Terminator::Branch {
        condition: Condition::Eq,
        width: Width::W64,
        left: entry,
        right: Operand::Imm(0),
        taken: done,
        fallthrough: found,
    });
    lowering.switch_to(found);
    add(lowering, entry, 0, Operand::Imm(1));
    add(lowering, entry, 8, Operand::Reg(length));
    lowering.end(Terminator::Goto(done));
    lowering.switch_to(done);
}

/// Only this CPU writes the entry, and a packet's program is not interrupted by another's.
fn add(lowering: &mut Lowering<'_>, entry: VReg, offset: i16, right: Operand<VReg>) {
    let (before, after, base) = (lowering.fresh(), lowering.fresh(), Base::Reg(entry));
    lowering.push(VInsn::Load { size: Size::U64, dst: before, base, offset });
    lowering.alu(AluOp::Add, after, before, right);
    lowering.push(VInsn::Store { size: Size::U64, base, offset, src: Operand::Reg(after) });
}
