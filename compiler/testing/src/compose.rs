//! Packets made from declared headers: a test's `eth / ipv4(ttl: 3) / udp` as bytes.
//!
//! There is no word about any protocol here; all comes from the declarations. Each header takes its given
//! fields, then declared defaults; then are computed, each unless it is given: the header's own length
//! (`length`), what selects the next layer (`next by`), the bytes claimed (`claims`), and, innermost first, the
//! checksums. All of that sees the packet whole; then `pad` is added, which no length includes, and `cut` ends
//! the frame, so that claims exceed it. A length that is given adds no bytes: `ipv4(ihl: 6)` has no options.

mod checksum;
mod form;

use pktc_diagnostics::{Diagnostic, codes};
use pktc_semantics::typed::{ExprKind, FieldIndex, HeaderId, Layer, Next, NextKind, Packet, Program};

use crate::reference::{holds, number};
use form::{Form, Missed};

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
        Layer::Header { header, fields, span } => {
            Some(Form::new(program, *header, fields, *span).map(Part::Header))
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

/// Makes `parent` select `child`: by what it has already, else by the first selector that is not given. One
/// that is given may say something else; that is how wrong packets are made.
fn select(parent: &mut Form<'_>, child: &Form<'_>) -> Result<(), Box<Diagnostic>> {
    let header = parent.header;
    if header.next.iter().any(|next| selects(parent, next, child.id)) {
        return Ok(());
    }
    let fields = || header.next.iter().filter_map(|next| selector(next).map(|field| (field, next)));
    let free = fields().find_map(|(field, next)| {
        (!parent.is_given(field)).then(|| edge_to(next, child.id)).flatten().map(|value| (field, value))
    });
    if let Some((field, value)) = free {
        parent.set(field, value);
        return Ok(());
    }
    if fields().any(|(field, _)| parent.is_given(field)) {
        return Ok(());
    }
    Err(Box::new(cannot_follow(parent, child)))
}

fn cannot_follow(parent: &Form<'_>, child: &Form<'_>) -> Diagnostic {
    let (outer, inner) = (&parent.header.name, &child.header.name);
    let title = format!("`{inner}` cannot follow `{outer}`");
    let label = format!("`{outer}` has no way to select this");
    let help = match parent.header.next.iter().find_map(selector) {
        Some(field) => {
            let given = format!("{outer}({}: 1) / {inner}", parent.field_name(field));
            format!("Put another layer between, or say by hand what `{outer}` selects, as in `{given}`.")
        }
        None => format!("Only `payload(…)`, `pad(…)` and `cut(…)` can follow `{outer}`."),
    };
    Diagnostic::error(codes::PACKET, title, child.span, label).with_help(help)
}

/// Whether `next` leads to `child` as the fields are. What a payload selects is not known before there is one.
fn selects(parent: &Form<'_>, next: &Next, child: HeaderId) -> bool {
    match &next.kind {
        NextKind::Always(target) => target.header == child,
        NextKind::By { value, edges } if selector(next).is_some() => {
            let chosen =
                number(value, &parent.view(&parent.bytes())).and_then(|value| edges.get(&value).copied());
            chosen.is_some_and(|target| target.header == child)
        }
        NextKind::By { .. } => edge_to(next, child).is_some(),
    }
}

/// The field that selects.
fn selector(next: &Next) -> Option<FieldIndex> {
    match &next.kind {
        NextKind::By { value, .. } => match value.kind {
            ExprKind::Own(field) => Some(field),
            _ => None,
        },
        NextKind::Always(_) => None,
    }
}

/// The lowest value that selects `child`.
fn edge_to(next: &Next, child: HeaderId) -> Option<u64> {
    match &next.kind {
        NextKind::By { edges, .. } => {
            edges.iter().find(|(_, target)| target.header == child).map(|(&value, _)| value)
        }
        NextKind::Always(_) => None,
    }
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
            Ok(true) if claim.when.as_ref().is_none_or(|when| holds(when, &form.view(&form.bytes()))) => {
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
