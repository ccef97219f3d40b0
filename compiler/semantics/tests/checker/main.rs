//! Tests of the checker: what compiles and what comes out, what does not and what is said.

mod certainty;
mod mistakes;
mod programs;
mod stdlib;
mod support;
