//! Programs and the kernel: load an object, attach it, read its maps, run it on packets.
//!
//! ```text
//! bytes ─ image, link ─► programs and maps, checked ─ load ─► in the kernel ─┬─ attach ─► on an interface
//!         btf, extension                                                    ├─ test_run ─► a verdict
//!                                                                           └─ map, metadata ─► figures, names
//! ```
//!
//! Nothing of an object or of what the kernel reports is believed unchecked: wrong input is an error that says
//! what to do. Attaching is by routing netlink, never by `bpf_link`, so that it outlives the process, and shares
//! an interface with tools that do the same. `unsafe` code is in `sys` alone.

mod attach;
mod btf;
mod carry;
mod dispatcher;
mod error;
mod extension;
mod image;
mod install;
mod link;
mod load;
mod map;
mod merge;
mod metadata;
mod netlink;
mod network;
mod privilege;
mod removal;
mod status;
mod sys;
mod test_run;
mod verifier;

pub use attach::{Attached, attach, attached, check_interface};
pub use dispatcher::{DEFAULT_CHAIN, DEFAULT_PRIORITY, Slot, Version};
pub use error::{AttachError, InstallError, LoadError};
pub use image::ObjectError;
pub use install::{InstallOptions, Installed, Placed, install};
pub use load::{LoadOptions, Loaded, LoadedProgram, Mode, load, takes_frags};
pub use map::Map;
pub use merge::{MergeError, Merged, merge};
pub use metadata::read_metadata;
pub use network::{in_private_network, with_device};
pub use pktc_object::{Metadata, SourceInfo};
pub use removal::{Which, remove};
pub use status::{Count, Counts, DIRECT_CALLS, DispatcherStatus, InterfaceStatus, Running, Status, status};
pub use test_run::{SHORTEST, TestRun, TestRunError, TestRunResult, probe, test_run};
pub use verifier::VerifierLog;
