//! Test harness of the whole compiler.
