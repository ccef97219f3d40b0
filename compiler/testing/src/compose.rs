//! Packets made from declared headers: a test's `eth / ipv4(ttl: 3) / udp` as bytes.
//!
//! There is no word about any protocol here; all comes from the declarations. Each header takes its given
//! fields, then declared defaults; then are computed, each unless it is given: the header's own length
//! (`length`), what selects the next layer (`next by`), the bytes claimed (`claims`), and, innermost first, the
//! checksums. All of that sees the packet whole; then `pad` is added, which no length includes, and `cut` ends
//! the frame, so that claims exceed it. A length that is given adds no bytes: `ipv4(ihl: 6)` has no options.

mod checksum;
mod form;
mod options;
mod select;

use pktc_diagnostics::{Diagnostic, codes};
use pktc_semantics::typed::{Layer, Packet, Program};

use form::{Form, Missed};
use select::select;

/// A frame, and where it comes in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composed {
    /// The frame.
    pub frame: Vec<u8>,
    /// The device's index, if the test says.
    pub ifindex: Option<u32>,
    /// The receive queue, if the test says.
    pub queue: Option<u32>,
}

/// Makes the bytes of `packet`.
///
/// # Errors
/// A diagnostic at the layer that cannot be made: the layer before does not select it, a field is given that
/// is not there, or a length does not fit its field.
pub fn compose(program: &Program, packet: &Packet) -> Result<Composed, Box<Diagnostic>> {
    let mut parts = parts(program, packet)?;
    select_all(program, &mut parts)?;
    claim_all(&mut parts)?;
    checksum::fill(&mut parts);
    let mut composed = Composed { frame: bytes_of(&parts), ..Composed::default() };
    for layer in &packet.layers {
        match layer {
            Layer::Header { .. } | Layer::Payload(_) | Layer::Cut(_) => {}
            Layer::Pad(bytes) => composed.frame.resize(composed.frame.len() + *bytes as usize, 0),
            Layer::Pkt { ifindex, queue } => (composed.ifindex, composed.queue) = (*ifindex, *queue),
        }
    }
    cut(packet, &mut composed.frame)?;
    Ok(composed)
}

/// What carries bytes.
enum Part<'a> {
    Header(Form<'a>),
    Bytes(&'a [u8]),
}

impl Part<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Part::Header(form) => form.bytes(),
            Part::Bytes(bytes) => bytes.to_vec(),
        }
    }
}

fn bytes_of(parts: &[Part<'_>]) -> Vec<u8> {
    parts.iter().flat_map(Part::bytes).collect()
}

fn parts<'a>(program: &'a Program, packet: &'a Packet) -> Result<Vec<Part<'a>>, Box<Diagnostic>> {
    let parts = packet.layers.iter().filter_map(|layer| match layer {
        Layer::Header { header, fields, options, span } => {
            let list = match options::bytes(program, *header, options) {
                Ok(list) => list,
                Err(refused) => return Some(Err(refused)),
            };
            Some(Form::new(program, *header, fields, list, *span).map(Part::Header))
        }
        Layer::Payload(bytes) => Some(Ok(Part::Bytes(bytes))),
        Layer::Pad(_) | Layer::Cut(_) | Layer::Pkt { .. } => None,
    });
    parts.collect()
}

/// Makes each header select the one that follows it.
fn select_all(program: &Program, parts: &mut [Part<'_>]) -> Result<(), Box<Diagnostic>> {
    if let Some(Part::Header(first)) = parts.first()
        && first.id != program.root
    {
        let root = &program.headers[program.root].name;
        let name = &first.header.name;
        let title = format!("a packet starts with `{root}`, not with `{name}`");
        let refused = Diagnostic::error(codes::PACKET, title, first.span, "the outermost layer");
        return Err(Box::new(refused.with_help(format!("Write `{root} / {name} / …`."))));
    }
    for index in 1..parts.len() {
        let (before, after) = parts.split_at_mut(index);
        if let (Some(Part::Header(parent)), Some(Part::Header(child))) = (before.last_mut(), after.first()) {
            select(parent, child)?;
        }
    }
    Ok(())
}

/// Makes each header claim its own bytes and all that follows.
fn claim_all(parts: &mut [Part<'_>]) -> Result<(), Box<Diagnostic>> {
    let mut total = 0;
    for part in parts.iter_mut().rev() {
        total += part.bytes().len();
        if let Part::Header(form) = part {
            claim(form, total)?;
        }
    }
    Ok(())
}

/// Makes `form` claim `total` bytes: by the first of its claims whose `when` then holds.
fn claim(form: &mut Form<'_>, total: usize) -> Result<(), Box<Diagnostic>> {
    let mut too_much = None;
    for claim in &form.header.claims {
        let before = form.clone();
        match form.solve(&claim.value, total) {
            Ok(true) if claim.when.as_ref().is_none_or(|when| form.holds(when)) => {
                return Ok(());
            }
            Ok(_) | Err(Missed::NotAsked) => {}
            Err(Missed::TooMuch(field)) => too_much = Some(field),
        }
        *form = before;
    }
    match too_much {
        None => Ok(()),
        Some(field) => Err(Box::new(form.does_not_fit(field, total))),
    }
}

fn cut(packet: &Packet, frame: &mut Vec<u8>) -> Result<(), Box<Diagnostic>> {
    for layer in &packet.layers {
        if let Layer::Cut(at) = layer {
            let (at, has) = (*at as usize, frame.len());
            if at > has {
                let title = format!("`cut({at})` is beyond the frame, which has {has} bytes");
                let refused = Diagnostic::error(codes::PACKET, title, packet.span, "this packet is shorter");
                let help = "Cut it where it still has bytes, or make it longer with `payload` or `pad`.";
                return Err(Box::new(refused.with_help(help)));
            }
            frame.truncate(at);
        }
    }
    Ok(())
}
