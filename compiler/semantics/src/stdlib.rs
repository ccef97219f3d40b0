//! The standard library: `.pkt` files, embedded.

/// Name (`std/tcp.pkt`) and text of each file, sorted by name.
pub(crate) const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/stdlib.rs"));
