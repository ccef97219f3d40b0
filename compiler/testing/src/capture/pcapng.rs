//! The block format (<https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-05.html>): sections, each with its
//! byte order and its interfaces, whose packets may be of several kinds.

use byteorder_slice::{BigEndian, LittleEndian};
use pcap_file::pcapng::RawBlock;
use pcap_file::pcapng::blocks::{
    ENHANCED_PACKET_BLOCK, INTERFACE_DESCRIPTION_BLOCK, PACKET_BLOCK, SECTION_HEADER_BLOCK,
    SIMPLE_PACKET_BLOCK,
};
use pcap_file::{DataLink, Endianness, PcapError};

use super::fields::Fields;
use super::{Capture, CaptureError, CapturedPacket, Damage, end_at_damage};

pub(super) fn read(bytes: &[u8]) -> Result<Capture, CaptureError> {
    let mut reader = Reader { order: Endianness::Big, interfaces: Vec::new(), earlier: 0 };
    let mut capture = Capture::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let damage = |what| Damage { offset: bytes.len() - rest.len(), what };
        let (behind, block) = match reader.block(rest) {
            Ok(next) => next,
            Err(error) => return end_at_damage(capture, damage(describe(&error))),
        };
        match reader.packet(&block) {
            Ok(packet) => capture.packets.extend(packet),
            Err(Trouble::Damage(what)) => return end_at_damage(capture, damage(what)),
            Err(Trouble::Fatal(error)) => return Err(error),
        }
        rest = behind;
    }
    Ok(capture)
}

/// Why a block gives no packet.
enum Trouble {
    /// Its content is broken.
    Damage(String),
    /// The file cannot be used.
    Fatal(CaptureError),
}

/// What the blocks so far say about those that follow.
struct Reader {
    order: Endianness,
    /// Those of this section.
    interfaces: Vec<Interface>,
    /// How many the sections before it had.
    earlier: u32,
}

/// What a packet needs to know of its interface.
struct Interface {
    link_type: u32,
    /// 0: no limit.
    snap_length: u32,
    clock: Clock,
}

/// How an interface counts time.
#[derive(Clone, Copy)]
struct Clock {
    /// Units a second.
    frequency: u128,
    /// Seconds to add.
    offset: i64,
}

impl Reader {
    /// Splits the next block off. A section header's order is its own, whatever is asked for.
    fn block<'a>(&self, rest: &'a [u8]) -> Result<(&'a [u8], RawBlock<'a>), PcapError> {
        match self.order {
            Endianness::Big => RawBlock::from_slice::<BigEndian>(rest),
            Endianness::Little => RawBlock::from_slice::<LittleEndian>(rest),
        }
    }

    /// Takes a block in; the packet, if it is one. Unknown blocks are skipped, as the format wants (section 3.1).
    fn packet(&mut self, block: &RawBlock<'_>) -> Result<Option<CapturedPacket>, Trouble> {
        let fields = Fields::new(&block.body, self.order);
        let packet = match block.type_ {
            SECTION_HEADER_BLOCK => return self.section(&block.body).map(|()| None),
            INTERFACE_DESCRIPTION_BLOCK => {
                let interface = interface(fields).ok_or_else(|| cut("an interface's description"))?;
                self.interfaces.push(interface);
                return Ok(None);
            }
            ENHANCED_PACKET_BLOCK => self.timed(fields, |fields| fields.u32())?,
            PACKET_BLOCK => self.timed(fields, |fields| {
                let interface = fields.u16()?;
                let _drops = fields.u16()?;
                Some(u32::from(interface))
            })?,
            SIMPLE_PACKET_BLOCK => self.simple(fields)?,
            _ => return Ok(None),
        };
        Ok(Some(packet))
    }

    /// A section starts (section 4.1): its byte order, and interfaces numbered from 0 again.
    fn section(&mut self, body: &[u8]) -> Result<(), Trouble> {
        self.earlier += self.interfaces.len() as u32;
        self.interfaces.clear();
        self.order =
            if body.starts_with(&[0x4d, 0x3c, 0x2b, 0x1a]) { Endianness::Little } else { Endianness::Big };
        let mut fields = Fields::new(body, self.order);
        let major =
            fields.take(4).and_then(|_magic| fields.u16()).ok_or_else(|| cut("a section's header"))?;
        if major != 1 {
            let what = format!("is in version {major} of the pcapng format");
            return Err(Trouble::Fatal(CaptureError::Variant(what)));
        }
        Ok(())
    }

    /// An enhanced (section 4.3) or obsolete (appendix A) packet: they differ in how they name the interface.
    fn timed(
        &self,
        mut fields: Fields<'_>,
        id: impl FnOnce(&mut Fields<'_>) -> Option<u32>,
    ) -> Result<CapturedPacket, Trouble> {
        let head =
            (|| Some((id(&mut fields)?, fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?)))();
        let (id, high, low, captured, original_length) = head.ok_or_else(|| cut("a packet's block"))?;
        let interface = self.ethernet(id)?;
        let Some(data) = fields.take(captured as usize) else {
            let left = fields.rest().len();
            return Err(Trouble::Damage(format!(
                "a packet claims {captured} bytes, and its block has {left}"
            )));
        };
        let time_ns = interface.clock.nanoseconds(u64::from(high) << 32 | u64::from(low));
        Ok(CapturedPacket { time_ns, original_length, interface: self.earlier + id, data: data.to_vec() })
    }

    /// A simple packet (section 4.4): of interface 0, without a time; its padding is known from its lengths only.
    fn simple(&self, mut fields: Fields<'_>) -> Result<CapturedPacket, Trouble> {
        let original_length = fields.u32().ok_or_else(|| cut("a packet's block"))?;
        let interface = self.ethernet(0)?;
        let limit = if interface.snap_length == 0 { u32::MAX } else { interface.snap_length };
        let captured = original_length.min(limit) as usize;
        let Some(data) = fields.take(captured) else {
            let left = fields.rest().len();
            return Err(Trouble::Damage(format!(
                "a packet claims {captured} bytes, and its block has {left}"
            )));
        };
        Ok(CapturedPacket { time_ns: 0, original_length, interface: self.earlier, data: data.to_vec() })
    }

    /// The interface that a packet names, which must be Ethernet.
    fn ethernet(&self, id: u32) -> Result<&Interface, Trouble> {
        let Some(interface) = self.interfaces.get(id as usize) else {
            return Err(Trouble::Damage(format!(
                "a packet is of interface {id}, which the file does not describe"
            )));
        };
        if DataLink::from(interface.link_type) == DataLink::ETHERNET {
            return Ok(interface);
        }
        let (link_type, interface) = (interface.link_type, Some(self.earlier + id));
        Err(Trouble::Fatal(CaptureError::LinkType { link_type, interface }))
    }
}

/// An interface's description (section 4.2); `None` if it is too short.
fn interface(mut fields: Fields<'_>) -> Option<Interface> {
    let link_type = u32::from(fields.u16()?);
    let _reserved = fields.u16()?;
    let snap_length = fields.u32()?;
    Some(Interface { link_type, snap_length, clock: clock(fields) })
}

/// The options about time; a broken list of options ends it, as nothing else depends on them.
fn clock(mut options: Fields<'_>) -> Clock {
    const END: u16 = 0;
    const TIME_RESOLUTION: u16 = 9;
    const TIME_OFFSET: u16 = 14;
    let mut clock = Clock { frequency: 1_000_000, offset: 0 };
    loop {
        let next = (|| {
            let (code, length) = (options.u16()?, usize::from(options.u16()?));
            let value = options.clone().take(length)?;
            options.take(length.next_multiple_of(4))?;
            Some((code, value))
        })();
        match next {
            None | Some((END, _)) => return clock,
            Some((TIME_RESOLUTION, &[resolution])) => clock.frequency = frequency(resolution),
            Some((TIME_OFFSET, value)) => clock.offset = options.over(value).i64().unwrap_or(0),
            Some(_) => {}
        }
    }
}

/// `if_tsresol`: a negative power of ten, or of two where the highest bit is set. Finer than 2^-63 or 10^-38 (which
/// no clock is) counts as that.
fn frequency(resolution: u8) -> u128 {
    let exponent = u32::from(resolution & 0x7f);
    if resolution & 0x80 == 0 { 10_u128.pow(exponent.min(38)) } else { 1 << exponent.min(63) }
}

impl Clock {
    /// The time of `units`; a second each, in the coarsest clock, are 10^28 nanoseconds.
    fn nanoseconds(self, units: u64) -> i128 {
        let since = u128::from(units) * 1_000_000_000 / self.frequency;
        since as i128 + i128::from(self.offset) * 1_000_000_000
    }
}

fn cut(what: &str) -> Trouble {
    Trouble::Damage(format!("{what} is too short"))
}

fn describe(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "the file ends inside a block".to_owned(),
        PcapError::InvalidField(_) => "the lengths around a block do not agree".to_owned(),
        other => other.to_string(),
    }
}
