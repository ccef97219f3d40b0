//! What the documentation and the examples show follows the grammar.

use std::path::{Path, PathBuf};

use pktc_diagnostics::{SourceMap, render};

fn assert_parses(name: &str, text: &str) {
    let mut sources = SourceMap::default();
    let file = sources.add(name, text);
    let (tree, diagnostics) = pktc_syntax::parse(file, text);
    assert!(diagnostics.is_empty(), "{}", render(&sources, &diagnostics, false));
    assert!(!tree.decls.is_empty(), "{name} declares nothing");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn programs_in_the_reference_parse() {
    let text = std::fs::read_to_string(root().join("docs/language.md")).unwrap();
    let blocks: Vec<&str> =
        text.split("```pkt\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 4, "only {} programs", blocks.len());
    for (index, block) in blocks.into_iter().enumerate() {
        assert_parses(&format!("docs/language.md, program {}", index + 1), block);
    }
}

#[test]
fn examples_and_the_standard_library_parse() {
    let mut folders = vec![root().join("examples"), root().join("stdlib")];
    let mut programs = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "pkt") {
                assert_parses(&path.to_string_lossy(), &std::fs::read_to_string(&path).unwrap());
                programs += 1;
            }
        }
    }
    assert!(programs >= 20, "only {programs} programs");
}
