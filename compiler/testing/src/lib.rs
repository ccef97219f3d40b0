//! Engines that run programs on packets, packets made from declared headers, and the test runner.

pub mod capture;
pub mod engine;
pub mod reference;
