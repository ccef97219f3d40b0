//! Lists the standard library's files, so that a protocol is one `.pkt` file and nothing else.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../../stdlib");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut paths = Vec::new();
    collect(&root, &mut paths)?;
    paths.sort();
    let mut list = String::from("&[\n");
    for path in paths {
        let name = path.strip_prefix(&root).map_err(io::Error::other)?;
        let name = format!("std/{}", name.display());
        writeln!(list, "    ({name:?}, include_str!({:?})),", path.display().to_string())
            .map_err(io::Error::other)?;
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR").map_err(io::Error::other)?).join("stdlib.rs"), list)
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            paths.push(path);
        }
    }
    Ok(())
}
