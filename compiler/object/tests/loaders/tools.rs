//! The tools that users load objects with.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use pktc_object::Metadata;
use serde_json::Value;

use crate::machine::{self, Namespace, Pin, run, run_silent};
use crate::modules::{self, Case};

type Check = fn(&Case, object: &str);

/// Each check, with the tools that it needs and whether it needs the privilege to load programs.
const CHECKS: [(&str, Check, &[&str], bool); 6] = [
    ("bpftool_lists_types", bpftool_lists_types, &["bpftool"], false),
    ("bpftool_makes_a_skeleton", bpftool_makes_a_skeleton, &["bpftool"], false),
    ("bpftool_loads_and_shows_lines", bpftool_loads_and_shows_lines, &["bpftool"], true),
    ("ip_attaches", ip_attaches, &["ip", "nsenter", "bpftool"], true),
    ("xdp_loader_attaches", xdp_loader_attaches, &["xdp-loader", "ip", "nsenter", "bpftool"], true),
    ("llvm_disassembles", llvm_disassembles, &["llvm-objdump-19"], false),
];

pub(crate) fn trials() -> Vec<Trial> {
    let cases = modules::all().into_iter().map(|case| case.name);
    cases.flat_map(|case| CHECKS.into_iter().map(move |check| trial(case, check))).collect()
}

fn trial(case: &'static str, (name, check, tools, privileged): (&str, Check, &[&str], bool)) -> Trial {
    let body = move || -> Result<(), Failed> {
        let case = modules::all().into_iter().find(|other| other.name == case).ok_or("no such case")?;
        let folder = tempfile::tempdir()?;
        let object = folder.path().join("edge.o");
        std::fs::write(&object, case.object())?;
        check(&case, path(&object));
        Ok(())
    };
    let trial = Trial::test(format!("tools::{case}::{name}"), body);
    match machine::missing(tools, privileged) {
        Some(reason) => trial.with_kind(reason).with_ignored_flag(true),
        None => trial,
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The map that holds the content of the module's map `index`.
fn content_map(case: &Case, index: usize) -> String {
    let before = &case.module.maps[..index];
    format!(".rodata.{}", before.iter().filter(|map| map.content.is_some()).count())
}

fn bpftool_lists_types(case: &Case, object: &str) {
    let types = run(&["bpftool", "btf", "dump", "file", object, "format", "raw"]);
    assert!(types.contains("STRUCT 'xdp_md' size=24 vlen=6"), "{types}");
    for program in &case.module.programs {
        assert!(types.contains(&format!("FUNC '{}' type_id=", program.name)), "{types}");
    }
    for map in &case.module.maps {
        assert!(types.contains(&format!("VAR '{}' type_id=", map.name)), "{types}");
    }
    run(&["bpftool", "btf", "dump", "file", object, "format", "c"]);
}

fn bpftool_makes_a_skeleton(case: &Case, object: &str) {
    let header = run_silent(&["bpftool", "gen", "skeleton", object]);
    for program in &case.module.programs {
        assert!(header.contains(&format!("struct bpf_program *{};", program.name)), "{header}");
    }
    for (index, map) in case.module.maps.iter().enumerate() {
        let name = match map.content {
            Some(_) => content_map(case, index)[1..].replace('.', "_"),
            None => map.name.clone(),
        };
        assert!(header.contains(&format!("struct bpf_map *{name};")), "no map {name} in\n{header}");
    }
    assert!(header.contains("char bpf_metadata_pktc["), "{header}");
}

fn bpftool_loads_and_shows_lines(case: &Case, object: &str) {
    let pin = Pin::new();
    run_silent(&["bpftool", "prog", "loadall", object, &pin.0]);
    for program in &case.module.programs {
        let pinned = format!("{}/{}", pin.0, program.name);
        let text = run(&["bpftool", "prog", "dump", "xlated", "pinned", &pinned, "linum"]);
        let first = "; default pass; [file:rules/edge.pkt line_num:2 line_col:5]";
        let second = "; rule broken: malformed => drop; [file:rules/edge.pkt line_num:3 line_col:18]";
        assert!(text.contains(first) && text.contains(second), "{text}");
        let id = json(&["bpftool", "-j", "prog", "show", "pinned", &pinned])["id"].to_string();
        assert_eq!(metadata_of(&id), case.metadata);
    }
    check_maps(case, &format!("{}/{}", pin.0, case.module.programs[0].name));
}

/// The maps of the first program are in the kernel what the module says.
fn check_maps(case: &Case, pinned: &str) {
    let program = json(&["bpftool", "-j", "prog", "show", "pinned", pinned]);
    let ids = program["map_ids"].as_array().unwrap();
    let maps: Vec<Value> =
        ids.iter().map(|id| json(&["bpftool", "-j", "map", "show", "id", &id.to_string()])).collect();
    for (index, map) in case.module.maps.iter().enumerate() {
        let data = map.content.is_some();
        let name = if data { content_map(case, index) } else { map.name.clone() };
        let Some(found) = maps.iter().find(|found| found["name"] == name.as_str()) else {
            assert!(case.module.programs.len() > 1, "no map {name}: {maps:?}");
            continue;
        };
        let expected = (map.value_size, map.max_entries, u32::from(data));
        let number = |key: &str| found[key].as_u64().unwrap() as u32;
        assert_eq!((number("bytes_value"), number("max_entries"), number("frozen")), expected, "{name}");
        assert!(found["btf_id"].is_u64(), "{name} was made without its types");
    }
}

fn ip_attaches(case: &Case, object: &str) {
    let namespace = Namespace::new();
    namespace.run(&["ip", "link", "set", "va", "xdp", "object", object, "section", "xdp"]);
    check_attached(case, &namespace);
    namespace.run(&["ip", "link", "set", "va", "xdp", "off"]);
}

fn xdp_loader_attaches(case: &Case, object: &str) {
    let namespace = Namespace::new();
    for program in &case.module.programs {
        namespace.run(&["xdp-loader", "load", "-m", "native", "-n", &program.name, "va", object]);
        let status = namespace.run(&["xdp-loader", "status", "va"]);
        assert!(status.contains(&program.name), "{status}");
        if !status.contains("xdp_dispatcher") {
            check_attached(case, &namespace);
        }
        namespace.run(&["xdp-loader", "unload", "-a", "va"]);
    }
}

/// Some program is attached to `va`, and leads to the metadata.
fn check_attached(case: &Case, namespace: &Namespace) {
    let links: Value = serde_json::from_str(&namespace.run(&["ip", "-j", "link", "show", "va"])).unwrap();
    let id = &links[0]["xdp"]["prog"]["id"];
    assert!(id.is_u64(), "nothing is attached: {links}");
    assert_eq!(metadata_of(&id.to_string()), case.metadata);
}

/// The metadata that the loaded program `id` leads to: in the one of its maps whose name ends in `.rodata`.
fn metadata_of(id: &str) -> Metadata {
    let program = json(&["bpftool", "-j", "prog", "show", "id", id]);
    for map in program["map_ids"].as_array().unwrap() {
        let map = map.to_string();
        let info = json(&["bpftool", "-j", "map", "show", "id", &map]);
        if info["name"].as_str().unwrap().ends_with(".rodata") {
            let content = json(&["bpftool", "-j", "map", "dump", "id", &map]);
            let bytes = content[0]["value"].as_array().unwrap();
            let byte = |text: &Value| u8::from_str_radix(&text.as_str().unwrap()[2..], 16).unwrap();
            return Metadata::from_json(&bytes.iter().map(byte).collect::<Vec<u8>>()).unwrap();
        }
    }
    panic!("no map of program {id} holds metadata: {program}");
}

fn json(command: &[&str]) -> Value {
    let text = run(command);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{command:?}: {error}\n{text}"))
}

/// LLVM reads the relocations as those of its own objects.
fn llvm_disassembles(case: &Case, object: &str) {
    let text = run(&["llvm-objdump-19", "-d", "-r", object]);
    assert!(!text.contains("<unknown>"), "{text}");
    let relocations = text.matches("R_BPF_64_64").count();
    let insns = case.module.programs.iter().flat_map(|program| &program.insns);
    let references = insns
        .filter(|insn| matches!(insn, pktc_bpf::Insn::LoadMap { .. } | pktc_bpf::Insn::LoadMapValue { .. }));
    assert_eq!(relocations, references.count(), "{text}");
}
