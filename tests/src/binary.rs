//! The `pktc` command, for tests that run it as users do.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The `pktc` that this source makes: the one beside the tests if nothing is newer, else a new build of it.
///
/// # Errors
/// If it cannot be built.
pub fn pktc() -> Result<&'static str, String> {
    static PKTC: OnceLock<Result<String, String>> = OnceLock::new();
    PKTC.get_or_init(find_pktc).as_deref().map_err(Clone::clone)
}

fn find_pktc() -> Result<String, String> {
    let tests = std::env::current_exe().map_err(|error| error.to_string())?;
    let profile = tests.ancestors().nth(2).ok_or("the test is in no target directory")?;
    let pktc = profile.join("pktc");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the package is in no workspace")?;
    let changed = ["compiler", "stdlib"].iter().map(|folder| newest(&root.join(folder))).max();
    if modified(&pktc) < changed.unwrap_or(SystemTime::UNIX_EPOCH) {
        build(root, profile)?;
    }
    Ok(pktc.to_string_lossy().into_owned())
}

fn build(root: &Path, profile: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let name = profile.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = if name == "debug" { "dev" } else { &name };
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "pktc-cli", "--profile", name]).current_dir(root);
    build.arg("--target-dir").arg(profile.parent().unwrap_or(profile));
    let output = build.output().map_err(|error| format!("cargo: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("building pktc: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// When the newest file below `folder` was changed.
fn newest(folder: &Path) -> SystemTime {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let times = entries.map(|path| if path.is_dir() { newest(&path) } else { modified(&path) });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

fn modified(path: &Path) -> SystemTime {
    path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
