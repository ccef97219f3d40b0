//! Test harness of the whole compiler.

pub mod binary;
pub mod engines;
pub mod filetests;
pub mod guest;
pub mod random;
