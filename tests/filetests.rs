//! The file tests of `tests/filetests/`.

use std::path::Path;

use libtest_mimic::Arguments;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    libtest_mimic::run(&Arguments::from_args(), pktc_tests::filetests::trials(&root)).exit();
}
