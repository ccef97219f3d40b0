//! Modules that no loader would take are refused, with an error that names the culprit.

use pktc_bpf::{Insn, MapDef, MapIndex, MapKind, Reg, Section, ValueLayout};
use pktc_codegen::module::{MachineInsn, Module, Program};
use pktc_diagnostics::SourceMap;
use pktc_object::{Metadata, ObjectError, SCHEMA, SourceInfo, write};

fn program(name: &str, insns: Vec<MachineInsn>) -> Program {
    Program { name: name.into(), section: Section::Xdp, params: 1, insns, lines: Vec::new(), stack: 0 }
}

fn map(name: &str, content: Option<Vec<u8>>) -> MapDef {
    MapDef {
        name: name.into(),
        kind: MapKind::Array,
        key_size: 4,
        value_size: 8,
        max_entries: 1,
        flags: 0,
        layout: ValueLayout::Bytes,
        content,
    }
}

fn refused(programs: Vec<Program>, maps: Vec<MapDef>) -> ObjectError {
    let source = SourceInfo { path: "t.pkt".into(), sha256: String::new() };
    let metadata =
        Metadata { counters: Vec::new(), programs: Vec::new(), schema: SCHEMA, sets: Vec::new(), source };
    write(&Module { programs, maps, ..Module::default() }, &metadata, &SourceMap::default())
        .expect_err("the module is refused")
}

/// As [`refused`], for a program `edge` of these instructions and an `exit`.
fn refused_code(insn: MachineInsn, maps: Vec<MapDef>) -> ObjectError {
    refused(vec![program("edge", vec![insn, Insn::Exit])], maps)
}

#[test]
fn names_that_the_kernel_does_not_take() {
    assert_eq!(refused(Vec::new(), Vec::new()), ObjectError::NoPrograms);
    for name in ["", "1st", "a-b", "sixteen_letters_", "ä"] {
        let error = refused(vec![program(name, vec![Insn::Exit])], Vec::new());
        assert!(matches!(&error, ObjectError::Name { name: found, .. } if found == name), "{error:?}");
    }
    let twice = vec![program("a", vec![Insn::Exit]), program("a", vec![Insn::Exit])];
    assert_eq!(refused(twice, Vec::new()), ObjectError::Duplicate { name: "a".into() });
    let maps = vec![map("m", None), map("m", Some(vec![0; 8]))];
    let error = refused(vec![program("edge", vec![Insn::Exit])], maps);
    assert_eq!(error, ObjectError::Duplicate { name: "m".into() });
}

#[test]
fn code_that_cannot_be_written() {
    let program_name = || "edge".to_owned();
    assert_eq!(
        refused(vec![program("edge", Vec::new())], Vec::new()),
        ObjectError::Empty { program: program_name() }
    );
    let load = Insn::LoadMap { dst: Reg::R1, map: MapIndex(1) };
    assert_eq!(
        refused_code(load, vec![map("m", None)]),
        ObjectError::MissingMap { program: program_name(), map: MapIndex(1) }
    );
    let inside = Insn::LoadMapValue { dst: Reg::R1, map: MapIndex(0), offset: 0 };
    assert_eq!(
        refused_code(inside, vec![map("m", None)]),
        ObjectError::NoContent { program: program_name(), map: "m".into() }
    );
    assert_eq!(
        refused_code(Insn::CallLocal { target: 0 }, Vec::new()),
        ObjectError::LocalCall { program: program_name() }
    );
    let far = refused_code(Insn::Goto { target: 40_000 }, Vec::new());
    assert!(far.to_string().starts_with("program `edge`: instruction 0 "), "{far}");
}

#[test]
fn maps_that_contradict_themselves() {
    let edge = || vec![program("edge", vec![Insn::Exit])];
    for content in [Vec::new(), vec![0; 7], vec![0; 9]] {
        let error = refused(edge(), vec![map("m", Some(content))]);
        assert!(matches!(&error, ObjectError::Content { map, .. } if map == "m"), "{error:?}");
    }
    let hash = MapDef { kind: MapKind::Hash, ..map("m", Some(vec![0; 8])) };
    assert!(matches!(refused(edge(), vec![hash]), ObjectError::Content { .. }));
    let layout = ValueLayout::U64s(vec!["packets", "bytes"]);
    let short = MapDef { layout, ..map("m", None) };
    assert_eq!(refused(edge(), vec![short]), ObjectError::Layout { map: "m".into() });
}
