//! The userspace engine on programs assembled by hand: every class of instructions, every kind of fault, helpers,
//! maps, packets in several parts, rules' counters.

mod asm;
mod counters;
mod faults;
mod helpers;
mod instructions;
mod objects;
mod packets;
