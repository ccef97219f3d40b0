//! Capture files: the packets of a pcap or pcapng, read as far as the file is whole.
//!
//! The framing comes from the crate `pcap-file`: its records for pcap, its blocks for pcapng. What is inside them
//! is decoded here, because the crate refuses whole files for what does not matter to us (a record longer than
//! the header's snap length, a comment that is not UTF-8, a time zone). A file that breaks off keeps the packets
//! before the damage, with a warning. Only Ethernet is taken: that is what XDP sees.

mod fields;
mod pcap;
mod pcapng;
mod summary;

use std::fmt;

use pcap_file::DataLink;
pub use summary::summary;

/// What a capture file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The packets in the order of the file.
    pub packets: Vec<CapturedPacket>,
    /// What the user should know of the file: where it is damaged, what its frames carry besides.
    pub warnings: Vec<String>,
}

/// A packet as it was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When, in nanoseconds since 1970; 0 where the file does not say (pcapng's simple packets). A pcapng's clock may
    /// start at any second and count in any unit, so 64 bits are not enough.
    pub time_ns: i128,
    /// Its length on the wire; [`data`](Self::data) is shorter where the capture cut it.
    pub original_length: u32,
    /// The interface, numbered from 0 in the order in which the file describes them.
    pub interface: u32,
    /// The bytes that were captured.
    pub data: Vec<u8>,
}

impl CapturedPacket {
    /// The time that programs see, held at the ends of what their clock can say.
    #[must_use]
    pub fn now(&self) -> u64 {
        u64::try_from(self.time_ns.max(0)).unwrap_or(u64::MAX)
    }
}

/// Why a capture cannot be used at all. The text is a sentence without the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureError {
    /// A file of no bytes: not even a header.
    Empty,
    /// The beginning belongs to a compressed file.
    Compressed {
        /// The tool that unpacks it.
        unpack: &'static str,
    },
    /// The beginning is neither pcap's nor pcapng's.
    NotACapture,
    /// A variant or version of the format that is not read.
    Variant(String),
    /// The frames are not Ethernet.
    LinkType {
        /// Their type's number (<https://www.tcpdump.org/linktypes.html>).
        link_type: u32,
        /// The pcapng interface that they are of.
        interface: Option<u32>,
    },
    /// It is damaged before its first packet ends.
    Damaged(Damage),
}

/// Where and how a file is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The offset of the record, block or header that is not whole.
    pub offset: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damaged at byte {}: {}", self.offset, self.what)
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::Empty => {
                write!(f, "is an empty file, without even a capture's header; capture it again")
            }
            CaptureError::Compressed { unpack } => {
                write!(f, "is compressed; unpack it first with `{unpack}`")
            }
            CaptureError::NotACapture => {
                write!(f, "is neither a pcap nor a pcapng file; write one with `tcpdump -w`")
            }
            CaptureError::Variant(what) => {
                write!(f, "{what}; convert it with `editcap -F pcapng`")
            }
            CaptureError::LinkType { link_type, interface } => link_type_text(f, *link_type, *interface),
            CaptureError::Damaged(damage) => {
                write!(f, "is {damage}; there is no whole packet before that, so capture it again")
            }
        }
    }
}

impl std::error::Error for CaptureError {}

fn link_type_text(f: &mut fmt::Formatter<'_>, link_type: u32, interface: Option<u32>) -> fmt::Result {
    match DataLink::from(link_type) {
        DataLink::Unknown(_) => write!(f, "has frames of link type {link_type}")?,
        known => write!(f, "has frames of link type LINKTYPE_{known:?} ({link_type})")?,
    }
    if let Some(interface) = interface {
        write!(f, " on its interface {interface}")?;
    }
    write!(f, ", but XDP sees Ethernet; capture on an Ethernet interface (not on `any`)")
}

/// Reads a pcap (micro- or nanoseconds, either byte order) or a pcapng (several sections and interfaces).
///
/// # Errors
/// See [`CaptureError`]. A file that is damaged behind a whole packet is no error but a warning.
pub fn read(bytes: &[u8]) -> Result<Capture, CaptureError> {
    match *bytes {
        [] => Err(CaptureError::Empty),
        [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0x3c, 0x4d, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..] => pcap::read(bytes),
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => pcapng::read(bytes),
        // Alexey Kuznetsov's patch of 1999: longer record headers.
        [0xa1, 0xb2, 0xcd, 0x34, ..] | [0x34, 0xcd, 0xb2, 0xa1, ..] => {
            Err(CaptureError::Variant("is in the modified pcap format of old Linux patches".to_owned()))
        }
        [0x1f, 0x8b, ..] => Err(CaptureError::Compressed { unpack: "gunzip" }),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Err(CaptureError::Compressed { unpack: "unzstd" }),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Err(CaptureError::Compressed { unpack: "unxz" }),
        [b'B', b'Z', b'h', ..] => Err(CaptureError::Compressed { unpack: "bunzip2" }),
        _ => Err(CaptureError::NotACapture),
    }
}

/// Ends the reading at `damage`: a warning behind whole packets, an error without any.
fn end_at_damage(mut capture: Capture, damage: Damage) -> Result<Capture, CaptureError> {
    let kept = match capture.packets.len() {
        0 => return Err(CaptureError::Damaged(damage)),
        1 => "the packet before that is used".to_owned(),
        several => format!("the {several} packets before that are used"),
    };
    capture.warnings.push(format!("{damage}; {kept}"));
    Ok(capture)
}
