//! The pipeline: options in, artefacts out; no I/O.
//!
//! [`check`] reads and checks sources; [`build`] turns checked programs into an object; [`emit`] shows a stage
//! in between as text.

mod emit;
mod metadata;
pub mod options;
mod pipeline;
mod stack;
mod unseen;

pub use emit::{Emit, emit};
pub use options::Options;
pub use pipeline::{Built, Checked, build, check, programs};
pub use pktc_object::{CounterRange, Metadata};
pub use pktc_semantics::files::Files;
pub use pktc_semantics::typed::Subject;
pub use unseen::unseen;
