//! Test harness of the whole compiler.

pub mod guest;
