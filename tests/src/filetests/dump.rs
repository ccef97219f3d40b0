//! Snapshots of what a stage puts out.

use libtest_mimic::Failed;
use pktc_diagnostics::render;
use pktc_driver::options::{Access, Level};
use pktc_driver::{Emit, Options, check as check_source, emit};

use super::{Case, Folder, Stage};

/// Compares the text of the case's stage with its snapshots.
pub(super) fn check(case: &Case) -> Result<(), Failed> {
    let checked = check_source(&case.file(), &Folder(case.folder.clone()));
    let stage = match case.stage {
        Stage::Flow => Emit::Flow,
        Stage::Asm => Emit::Asm,
        Stage::Ir | Stage::Run | Stage::Frames | Stage::Diag => Emit::Rules,
    };
    for suffix in case.stage.snapshots() {
        let level = if *suffix == "@O0" { Level::O0 } else { Level::O2 };
        // The one that adds nothing of its own to what a stage shows.
        let options = Options { access: Access::Direct, level, ..Options::default() };
        let text = emit(&checked, stage, &options)
            .map_err(|errors| Failed::from(render(&checked.sources, &errors, false)))?;
        assert_snapshot(case, suffix, &text);
    }
    Ok(())
}

/// Compares `text` with the snapshot beside the case.
///
/// # Panics
/// If they differ.
pub(super) fn assert_snapshot(case: &Case, suffix: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&case.folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format!("{}{suffix}", case.name), text));
}
