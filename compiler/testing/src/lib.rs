//! Engines that run programs on packets, packets made from declared headers, and the test runner.

pub mod capture;
pub mod compose;
pub mod engine;
pub mod hits;
pub mod kernel;
pub mod linear;
pub mod reference;
pub mod runner;
pub mod snapshot;
pub mod vm;
