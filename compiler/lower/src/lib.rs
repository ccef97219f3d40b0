//! Flow IR to BPF over virtual registers.

pub mod vcode;
