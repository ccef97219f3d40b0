//! The `pktc` command.
fn main() {}
