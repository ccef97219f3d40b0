//! Random programs on random packets: what the compiler makes of them does what they mean.
//!
//! ```text
//! seed ─▶ packets ─▶ program (text) ─▶ checker ─▶ objects (each access, -O0, -O2) ─▶ vm, kernel, guests ─┐
//!            └──────────────────────────▶ reference ─────────────────────────────────────────────────────┴─▶ the same?
//! ```
//!
//! Objects that see packets in several buffers run some of them with a linear part of every length, too.
//!
//! Packets come first, from the declared headers and from captures; the constants of a program are taken from them,
//! so that its rules are hit. A program that the checker refuses is drawn again and counted, and so is one that cannot
//! be built with direct access; objects that other strategies cannot have are counted. All that a program and its packets
//! are follows from one number, which is printed with every difference: `PKTC_RANDOM_SEED=n PKTC_RANDOM_PROGRAMS=1` runs
//! it again.
//!
//! | file | what it has |
//! |---|---|
//! | `dice` | random numbers |
//! | `meaning`, `sketch` | what declarations say of bytes, and which headers a packet seems to have |
//! | `compose`, `damage`, `captures` | packets |
//! | `declare`, `operand`, `constant`, `condition`, `program` | the parts of a program |
//! | `source` | a program as a tree, to be written and made smaller |
//! | `compiled`, `engines`, `case` | a program's way to outcomes |
//! | `shrink`, `census` | what is reported |

mod captures;
mod case;
mod census;
mod compiled;
mod compose;
mod condition;
mod constant;
mod damage;
mod declare;
mod dice;
mod engines;
mod guests;
mod meaning;
mod operand;
mod program;
mod run;
mod shrink;
mod sketch;
mod source;

pub use run::{Plan, Run};
