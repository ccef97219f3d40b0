//! Tests of the checker: what compiles and what comes out, what does not and what is said.

mod programs;
mod support;
