//! Benchmarks against C twins.
fn main() {}
