//! Packets that are a little wrong, or not packets at all.

use pktc_semantics::typed::{Expr, Program};

use super::dice::{Dice, ones};
use super::meaning::{own_fields, write};
use super::sketch::Sketch;

/// Ethernet's shortest frame, without its checksum: shorter ones are padded.
const SHORTEST_FRAME: usize = 60;
/// The longest packet of random bytes.
const LONGEST_NOISE: usize = 120;

/// Breaks a packet in one way, or adds what belongs to no header.
pub(super) fn damage(program: &Program, packet: &mut Vec<u8>, dice: &mut Dice) {
    match dice.below(10) {
        0 => packet.truncate(dice.below(packet.len() + 1)),
        1 => packet.resize(packet.len().max(SHORTEST_FRAME), 0),
        2 => {
            for _ in 0..dice.between(1, 40) {
                packet.push(dice.bits(8) as u8);
            }
        }
        3 => {
            let at = dice.below(packet.len());
            if let Some(byte) = packet.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        4 => noise(packet, dice),
        _ => lie(program, packet, dice),
    }
}

/// Random bytes, sometimes behind the beginning of a packet.
fn noise(packet: &mut Vec<u8>, dice: &mut Dice) {
    let kept = if dice.chance(70) { dice.below(40).min(packet.len()) } else { 0 };
    packet.truncate(kept);
    for _ in 0..dice.below(LONGEST_NOISE) {
        packet.push(dice.bits(8) as u8);
    }
}

/// Changes a field that a header's length, claim, validity or successor depends on.
fn lie(program: &Program, packet: &mut [u8], dice: &mut Dice) {
    let sketch = Sketch::new(program, packet);
    let Some(layer) = dice.pick(&sketch.layers) else { return };
    let header = &program.headers[layer.header];
    let claims = header.claims.iter().flat_map(|claim| std::iter::once(&claim.value).chain(&claim.when));
    let whens = header.next.iter().filter_map(|next| next.when.as_ref());
    let readers: Vec<&Expr> = header.length.iter().chain(claims).chain(&header.valid).chain(whens).collect();
    let fields: Vec<usize> = readers.into_iter().flat_map(own_fields).collect();
    let laid = sketch.laid(layer);
    let Some((start, width)) = dice.pick(&fields).and_then(|&field| laid.place(field)) else { return };
    let before = super::meaning::read(laid.bytes, start, width).unwrap_or(0);
    let drawn = match dice.below(6) {
        0 => 0,
        1 => 1,
        2 => ones(width as u32),
        3 => before.wrapping_add(1),
        4 => before.wrapping_sub(1),
        _ => dice.bits(width as u32),
    };
    let bytes = layer.start;
    write(&mut packet[bytes..], start, width, drawn);
}
