//! aya-obj takes the object apart and links it.

use std::collections::HashSet;

use aya_obj::{Object, ProgramSection};
use libtest_mimic::{Failed, Trial};
use pktc_bpf::{Insn, Section};

use crate::modules::{self, Case};

pub(crate) fn trials(case: &Case) -> Vec<Trial> {
    let name = case.name;
    let trial = |check: fn(&Case)| {
        move || -> Result<(), Failed> {
            check(&find(name));
            Ok(())
        }
    };
    vec![
        Trial::test(format!("aya::{name}::programs_and_maps"), trial(programs_and_maps)),
        Trial::test(format!("aya::{name}::links"), trial(links)),
        Trial::test(format!("aya::{name}::lines"), trial(lines)),
        Trial::test(format!("object::{name}::builds_repeat"), trial(builds_repeat)),
        Trial::test(format!("object::{name}::metadata_is_read_back"), trial(metadata_is_read_back)),
        Trial::test(format!("object::{name}::listing_shows_everything"), trial(listing_shows_everything)),
        Trial::test(format!("object::{name}::damage_is_refused"), trial(damage_is_refused)),
    ]
}

fn find(name: &str) -> Case {
    modules::all().into_iter().find(|case| case.name == name).unwrap()
}

fn programs_and_maps(case: &Case) {
    let object = Object::parse(&case.object()).unwrap();
    let names: HashSet<&str> = object.programs.keys().map(String::as_str).collect();
    assert_eq!(names, case.module.programs.iter().map(|program| program.name.as_str()).collect());
    for program in &case.module.programs {
        let section = &object.programs[&program.name].section;
        assert!(
            matches!(section, ProgramSection::Xdp { frags, .. } if Section::of_programs(*frags) == program.section),
            "{section:?}"
        );
    }
    let mut contents = 0;
    for map in &case.module.maps {
        let name = if map.content.is_some() { format!(".rodata.{contents}") } else { map.name.clone() };
        contents += u32::from(map.content.is_some());
        let found = &object.maps[&name];
        let expected = (map.kind as u32, map.key_size, map.value_size, map.max_entries, map.flags);
        let actual =
            (found.map_type(), found.key_size(), found.value_size(), found.max_entries(), found.map_flags());
        assert_eq!(actual, expected, "{name}");
        assert_eq!(found.data(), map.content.as_deref().unwrap_or_default(), "{name}");
    }
    assert_eq!(object.maps.len(), case.module.maps.len() + 1, "the maps and the metadata");
    assert_eq!(object.license.to_bytes(), b"Dual MIT/GPL");
    let metadata = pktc_object::Metadata::from_json(object.maps[".rodata"].data());
    assert_eq!(metadata.as_ref(), Ok(&case.metadata));
}

/// Each reference to a map gets the map's file descriptor; an address in a value keeps its offset; a call leads behind
/// the program, where the subprogram is.
fn links(case: &Case) {
    let mut object = Object::parse(&case.object()).unwrap();
    let maps = object.maps.clone();
    let fd = |name: &str| maps.keys().position(|key| key == name).unwrap() as i32 + 100;
    object
        .relocate_maps(maps.iter().map(|(name, map)| (name.as_str(), fd(name), map)), &HashSet::new())
        .unwrap();
    object.relocate_calls(&HashSet::new()).unwrap();
    for program in &case.module.programs {
        let function = &object.functions[&object.programs[&program.name].function_key()];
        let own: usize = program.insns.iter().map(pktc_bpf::slots).sum();
        let mut slot = 0;
        for insn in &program.insns {
            let first = function.instructions[slot];
            if let Insn::LoadMap { map, .. } = insn {
                assert_eq!((first.src_reg(), first.imm), (1, fd(&case.module.maps[map.0 as usize].name)));
            } else if let Insn::LoadMapValue { map, offset, .. } = insn {
                let before = &case.module.maps[..map.0 as usize];
                let number = before.iter().filter(|map| map.content.is_some()).count();
                assert_eq!((first.src_reg(), first.imm), (2, fd(&format!(".rodata.{number}"))));
                assert_eq!(function.instructions[slot + 1].imm, *offset as i32);
            }
            if let Insn::CallSubprogram { .. } = insn {
                assert_eq!((first.src_reg(), slot + 1 + first.imm as usize), (1, own));
            }
            slot += pktc_bpf::slots(insn);
        }
        let called = case.module.subprograms.iter().flat_map(|subprogram| &subprogram.insns);
        let whole = own + called.map(pktc_bpf::slots).sum::<usize>();
        assert_eq!(function.instructions.len(), whole, "{}", program.name);
    }
}

/// Two lines a program: `default pass` at its start, the rule at its `exit`.
fn lines(case: &Case) {
    let object = Object::parse(&case.object()).unwrap();
    assert!(object.btf.is_some());
    for program in &case.module.programs {
        let function = &object.functions[&object.programs[&program.name].function_key()];
        let lines = &function.line_info.line_info;
        let places: Vec<(u32, u32, u32)> =
            lines.iter().map(|line| (line.insn_off, line.line_col >> 10, line.line_col & 0x3ff)).collect();
        let last = function.instructions.len() as u32 - 1;
        assert_eq!(places, [(0, 2, 5), (last, 3, 18)], "{}", program.name);
        assert_eq!(function.func_info.func_info.len(), 1);
    }
}

fn builds_repeat(case: &Case) {
    assert_eq!(case.object(), case.object());
}

fn metadata_is_read_back(case: &Case) {
    assert_eq!(pktc_object::read_metadata(&case.object()).as_ref(), Ok(&case.metadata));
}

fn listing_shows_everything(case: &Case) {
    let text = pktc_object::dump(&case.object()).unwrap();
    for program in &case.module.programs {
        let section = program.section.name();
        assert!(text.contains(&format!("program {} in {section}\n", program.name)), "{text}");
    }
    for map in &case.module.maps {
        let place = if map.content.is_some() {
            format!("{}: global object in .rodata.", map.name)
        } else {
            format!("map {}\n  type {}\n", map.name, map.kind as u32)
        };
        assert!(text.contains(&place), "no `{place}` in\n{text}");
    }
    assert!(text.contains("  ; rules/edge.pkt:2:5  default pass;\n     0: "), "{text}");
    assert!(text.contains("  ; rules/edge.pkt:3:18  rule broken: malformed => drop;\n"), "{text}");
    assert!(text.contains(&case.metadata.to_json()), "{text}");
}

/// A damaged object gives an error or a listing, and never a panic.
fn damage_is_refused(case: &Case) {
    let object = case.object();
    assert!(pktc_object::dump(b"no object").is_err());
    let mut refused = 0;
    for end in (0..object.len()).step_by(13) {
        refused += u32::from(pktc_object::dump(&object[..end]).is_err());
    }
    assert!(refused > 0);
    for at in 0..object.len() {
        let mut damaged = object.clone();
        damaged[at] ^= 0xff;
        let _ = pktc_object::dump(&damaged);
        let _ = pktc_object::read_metadata(&damaged);
    }
}
