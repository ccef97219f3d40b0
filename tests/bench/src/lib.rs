//! Benchmarks: what pktc emits against what clang makes of C that an expert wrote for the same verdicts.
//!
//! ```text
//! programs/NAME.pkt   ─ pktc ──┐
//!                              ├─► twins ─ compare (userspace engine) ─► verdicts equal, instructions executed
//! programs/NAME.bpf.c ─ clang ─┘        └─ kernel (BPF_PROG_TEST_RUN) ──► nanoseconds, size, verifier's work
//! ```
//!
//! Instructions are the same on every machine and are asserted in tests. Nanoseconds are not: they are measured,
//! and only ratios within one run mean anything.

pub mod compare;
pub mod footprint;
pub mod generate;
pub mod kernel;
pub mod packets;
pub mod report;
pub mod twins;
pub mod ways;
