//! Code generation, tried by running: what virtual code means (`virtual_machine`) and what the machine code made
//! of it does (`machine`) are computed by two small evaluators and compared. Shapes that matter for speed or for
//! the verifier are looked at as well.

mod behaviour;
mod builder;
mod errors;
mod generator;
mod long;
mod machine;
mod random;
mod shape;
mod virtual_machine;
mod world;
