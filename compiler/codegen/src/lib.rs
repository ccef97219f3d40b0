//! BPF over virtual registers to machine code: register allocation, the stack frame, branches.

pub mod module;
