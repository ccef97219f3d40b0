//! The pipeline: options in, artefacts out; no I/O.

pub mod options;
