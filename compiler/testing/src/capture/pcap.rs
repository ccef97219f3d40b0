//! The classic format: a header, then records (<https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-06.html>).

use pcap_file::pcap::{PcapHeader, PcapParser, RawPcapPacket};
use pcap_file::{DataLink, PcapError, TsResolution};

use super::fields::Fields;
use super::{Capture, CaptureError, CapturedPacket, Damage, end_at_damage};

/// No capture tool writes longer records (libpcap's `MAXIMUM_SNAPLEN`), whatever the header says.
const LONGEST_RECORD: u32 = 262_144;

/// The bits of the link-type word that hold the type (draft-ietf-opsawg-pcap, section 4).
const LINK_TYPE_BITS: u32 = 0x03ff_ffff;
/// In the same word: frames end with a frame check sequence.
const HAS_FCS: u32 = 0x0400_0000;

pub(super) fn read(bytes: &[u8]) -> Result<Capture, CaptureError> {
    let Ok((mut rest, parser)) = PcapParser::new(bytes) else {
        let what = format!("the file ends inside its header, after {} of 24 bytes", bytes.len());
        return Err(CaptureError::Damaged(Damage { offset: 0, what }));
    };
    let header = parser.header();
    let mut capture = Capture { warnings: check_header(&header)?, ..Capture::default() };
    while !rest.is_empty() {
        let damage = |what| Damage { offset: bytes.len() - rest.len(), what };
        let (behind, record) = match parser.next_raw_packet(rest) {
            Ok(next) => next,
            Err(error) => {
                let what = describe(&error, rest, &header);
                return end_at_damage(capture, damage(what));
            }
        };
        if record.incl_len > header.snaplen.max(LONGEST_RECORD) {
            let what = format!("a record claims {} bytes, more than any capture holds", record.incl_len);
            return end_at_damage(capture, damage(what));
        }
        capture.packets.push(convert(record, header.ts_resolution));
        rest = behind;
    }
    Ok(capture)
}

/// Refuses versions and link types that are not read; returns what the user should know.
fn check_header(header: &PcapHeader) -> Result<Vec<String>, CaptureError> {
    // Before 2.3 the two lengths of a record stood the other way round.
    if header.version_major != 2 || header.version_minor < 3 {
        let (major, minor) = (header.version_major, header.version_minor);
        return Err(CaptureError::Variant(format!("is in version {major}.{minor} of the pcap format")));
    }
    let word = u32::from(header.datalink);
    let link_type = word & LINK_TYPE_BITS;
    if DataLink::from(link_type) != DataLink::ETHERNET {
        return Err(CaptureError::LinkType { link_type, interface: None });
    }
    // The length counts 16-bit words in the upper four bits.
    let fcs_bytes = (word >> 28) * 2;
    if word & HAS_FCS != 0 && fcs_bytes != 0 {
        let text = format!("its frames end with a check sequence of {fcs_bytes} bytes, kept as padding");
        return Ok(vec![text]);
    }
    Ok(Vec::new())
}

fn convert(record: RawPcapPacket<'_>, resolution: TsResolution) -> CapturedPacket {
    let unit = match resolution {
        TsResolution::MicroSecond => 1_000,
        TsResolution::NanoSecond => 1,
    };
    CapturedPacket {
        time_ns: i128::from(record.ts_sec) * 1_000_000_000 + i128::from(record.ts_frac) * unit,
        original_length: record.orig_len,
        interface: 0,
        data: record.data.into_owned(),
    }
}

fn describe(error: &PcapError, rest: &[u8], header: &PcapHeader) -> String {
    let mut fields = Fields::new(rest, header.endianness);
    // Two words of time, then the captured length (section 5).
    let captured = fields.take(8).and_then(|_| fields.u32());
    match (error, captured) {
        (PcapError::IncompleteBuffer, Some(captured)) if rest.len() >= 16 => {
            format!("a record claims {captured} bytes, and {} are left", rest.len() - 16)
        }
        (PcapError::IncompleteBuffer, _) => {
            format!("the file ends inside a record's header, after {} of 16 bytes", rest.len())
        }
        (other, _) => other.to_string(),
    }
}
