//! Modules written by hand, one for each thing that an object can hold.

use pktc_bpf::{
    AluOp, Condition, Helper, Insn, MapDef, MapIndex, MapKind, Operand, Reg, Section, Size, SubprogramIndex,
    ValueLayout, Width,
};
use pktc_codegen::module::{MachineInsn, Module, Program};
use pktc_diagnostics::{SourceMap, Span};
use pktc_object::{CounterRange, Metadata, ProgramInfo, RuleInfo, SCHEMA, SourceInfo};

/// The source that all instructions of the modules come from.
pub(crate) const SOURCE: &str = "xdp edge {\n    default pass;\n    rule broken: malformed => drop;\n}\n";
/// Its name.
pub(crate) const FILE: &str = "rules/edge.pkt";
/// `XDP_DROP`
const DROP: i32 = 1;

/// A module with all that is written beside it.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) module: Module,
    pub(crate) metadata: Metadata,
    pub(crate) sources: SourceMap,
}

impl Case {
    fn new(name: &'static str, programs: Vec<Program>, maps: Vec<MapDef>) -> Self {
        let counters = maps.iter().find(|map| map.kind == MapKind::PerCpuArray);
        let counters = counters.map(|map| CounterRange { count: 2, first: 0, map: map.name.clone() });
        let programs_info = programs.iter().map(|program| ProgramInfo {
            chain_on: None,
            counters: counters.clone(),
            name: program.name.clone(),
            priority: None,
            rules: vec![rule(0, "default", 2), rule(1, "broken", 3)],
        });
        let metadata = Metadata {
            counters: Vec::new(),
            programs: programs_info.collect(),
            schema: SCHEMA,
            sets: Vec::new(),
            source: SourceInfo { path: FILE.into(), sha256: "0".repeat(64) },
        };
        let mut sources = SourceMap::default();
        sources.add(FILE, SOURCE);
        Case { name, module: Module { programs, maps, ..Module::default() }, metadata, sources }
    }

    /// The object file.
    pub(crate) fn object(&self) -> Vec<u8> {
        pktc_object::write(&self.module, &self.metadata, &self.sources).unwrap()
    }
}

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    vec![drop_all(), counting(), table(), pair(), calling()]
}

/// One program that drops everything.
pub(crate) fn drop_all() -> Case {
    Case::new("drop_all", vec![program("edge", false, vec![set(0, DROP), Insn::Exit])], Vec::new())
}

/// A program that counts a packet in a per-CPU array and drops it.
fn counting() -> Case {
    Case::new("counting", vec![program("edge", false, count(MapIndex(0)))], vec![counters("edge_rules")])
}

/// A program that takes its verdict from byte 3 of a read-only table.
fn table() -> Case {
    let insns = vec![
        Insn::LoadMapValue { dst: Reg(1), map: MapIndex(0), offset: 2 },
        Insn::Load { size: Size::U8, dst: Reg::R0, base: Reg(1), offset: 1 },
        Insn::Exit,
    ];
    Case::new(
        "table",
        vec![program("edge", false, insns)],
        vec![content("verdicts", vec![2, 2, 2, DROP as u8])],
    )
}

/// Two programs, the second for packets in several buffers, with all kinds of maps between them; a map has the
/// name of a program.
fn pair() -> Case {
    let mut core = vec![
        Insn::LoadMapValue { dst: Reg(6), map: MapIndex(1), offset: 0 },
        Insn::Load { size: Size::U8, dst: Reg(7), base: Reg(6), offset: 0 },
        Insn::LoadMapValue { dst: Reg(6), map: MapIndex(3), offset: 1 },
        Insn::Load { size: Size::U8, dst: Reg(8), base: Reg(6), offset: 0 },
    ];
    core.extend(count(MapIndex(2)));
    let trie = MapDef {
        name: "prefixes".into(),
        kind: MapKind::LpmTrie,
        key_size: 8,
        value_size: 4,
        max_entries: 10,
        flags: 1, // BPF_F_NO_PREALLOC, which tries insist on
        layout: ValueLayout::Bytes,
        content: None,
    };
    let hash = MapDef { name: "seen".into(), kind: MapKind::LruHash, key_size: 6, flags: 0, ..trie.clone() };
    let maps = vec![
        counters("edge"),
        content("first_table", vec![1; 5000]),
        counters("core_rules"),
        content("second", vec![2, 3]),
        trie,
        hash,
    ];
    Case::new("pair", vec![program("edge", false, count(MapIndex(0))), program("core", true, core)], maps)
}

/// Two programs that call a function with two arguments, the second one twice.
fn calling() -> Case {
    let call = [Insn::CallSubprogram { subprogram: SubprogramIndex(0), arguments: 2 }];
    let once = [vec![set(2, 1)], call.to_vec(), vec![Insn::Exit]].concat();
    let keep = |dst, src| Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst: Reg(dst),
        src: Operand::Reg(Reg(src)),
    };
    let again = [
        vec![keep(6, 1), set(2, 7)],
        call.to_vec(),
        vec![keep(1, 6), set(2, 1)],
        call.to_vec(),
        vec![Insn::Exit],
    ];
    let programs = vec![program("edge", false, once), program("core", true, again.concat())];
    let mut case = Case::new("calling", programs, Vec::new());
    let verdict = vec![keep(0, 2), Insn::Exit];
    let function = program("same", false, verdict);
    case.module.subprograms = vec![Program { section: Section::Text, params: 2, ..function }];
    case
}

fn program(name: &str, frags: bool, insns: Vec<MachineInsn>) -> Program {
    let last = insns.len() - 1;
    let lines = vec![(0, span("default pass")), (last, span("malformed => drop"))];
    Program { name: name.into(), section: Section::of_programs(frags), params: 1, insns, lines, stack: 8 }
}

fn set(register: u8, value: i32) -> MachineInsn {
    Insn::Alu { op: AluOp::Mov, width: Width::W32, dst: Reg(register), src: Operand::Imm(value) }
}

/// `counters[0].packets += 1`, then `XDP_DROP`.
fn count(map: MapIndex) -> Vec<MachineInsn> {
    let wide = |op, dst, src| Insn::Alu { op, width: Width::W64, dst, src };
    vec![
        Insn::Store { size: Size::U32, base: Reg::FP, offset: -4, src: Operand::Imm(0) },
        wide(AluOp::Mov, Reg(2), Operand::Reg(Reg::FP)),
        wide(AluOp::Add, Reg(2), Operand::Imm(-4)),
        Insn::LoadMap { dst: Reg::R1, map },
        Insn::Call { helper: Helper::MapLookupElem },
        Insn::Branch {
            condition: Condition::Eq,
            width: Width::W64,
            left: Reg::R0,
            right: Operand::Imm(0),
            target: 2,
        },
        set(1, 1),
        Insn::AtomicAdd { size: Size::U64, base: Reg::R0, offset: 0, src: Reg(1) },
        set(0, DROP),
        Insn::Exit,
    ]
}

fn counters(name: &str) -> MapDef {
    MapDef {
        name: name.into(),
        kind: MapKind::PerCpuArray,
        key_size: 4,
        value_size: 16,
        max_entries: 2,
        flags: 0,
        layout: ValueLayout::U64s(vec!["packets", "bytes"]),
        content: None,
    }
}

fn content(name: &str, bytes: Vec<u8>) -> MapDef {
    MapDef {
        name: name.into(),
        kind: MapKind::Array,
        key_size: 4,
        value_size: bytes.len() as u32,
        max_entries: 1,
        flags: 0x80, // BPF_F_RDONLY_PROG
        layout: ValueLayout::Bytes,
        content: Some(bytes),
    }
}

fn rule(id: u32, label: &str, line: u32) -> RuleInfo {
    RuleInfo { file: FILE.into(), id, identity: label.into(), line, name: label.into() }
}

/// Where `text` stands in [`SOURCE`].
fn span(text: &str) -> Span {
    let mut sources = SourceMap::default();
    let file = sources.add(FILE, SOURCE);
    let start = SOURCE.find(text).unwrap();
    Span { file, start: start as u32, end: (start + text.len()) as u32 }
}
