//! Tests: packets to send, and what must become of them.

use pktc_diagnostics::Span;

use super::{FieldIndex, HeaderId, Subject, Value, Verdict};

/// A test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// Where its name stands.
    pub span: Span,
    /// What is tested.
    pub of: Subject,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// A step of a test.
#[derive(Clone, Debug)]
pub struct Step {
    /// Which one.
    pub kind: StepKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of steps.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// Sends a packet so many times.
    Send { repeat: u64, packet: Packet },
    /// What became of the last send; without counts there is one outcome, for all of them.
    Expect { outcomes: Vec<Outcome> },
    /// Sends the packets of a capture; their verdicts are kept in a snapshot.
    Replay { file: String, span: Span },
}

/// What a test expects.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// So many of the repeated packets; none: all.
    pub count: Option<u64>,
    /// The verdict; `None`: the chain under test did not decide.
    pub verdict: Option<Verdict>,
    /// The deciding rule as [`Rule`] reports name it: `label`, `chain.label`.
    pub by: Option<String>,
    /// Where it stands.
    pub span: Span,
}

/// A packet to compose.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Its layers, outside in.
    pub layers: Vec<Layer>,
    /// Where it stands.
    pub span: Span,
}

/// A layer of a packet.
#[derive(Clone, Debug)]
pub enum Layer {
    /// A header with the fields that are given.
    Header { header: HeaderId, fields: Vec<(FieldIndex, Value)>, options: Vec<PacketOption>, span: Span },
    /// Bytes.
    Payload(Vec<u8>),
    /// Bytes in the frame, but in no length.
    Pad(u32),
    /// The frame ends there.
    Cut(u32),
    /// Where the packet comes in.
    Pkt { ifindex: Option<u32>, queue: Option<u32> },
}

/// An option of a header in a packet.
#[derive(Clone, Debug)]
pub struct PacketOption {
    /// Its kind.
    pub kind: u64,
    /// Its declaration among [`Options::options`].
    pub declared: Option<usize>,
    /// Those of [`Options::fields`] that are given; the length is computed unless it is.
    pub fields: Vec<(FieldIndex, Value)>,
    /// Those of [`OptionDecl::fields`] that are given.
    pub values: Vec<(FieldIndex, Value)>,
    /// What stands behind all these.
    pub content: Vec<u8>,
    /// Where it stands.
    pub span: Span,
}
