//! Random packets, layer by layer from the declared headers.
//!
//! A packet is a way through the declared edges, from where every packet starts. Each header of the way is written
//! through its declared layout: fields from defaults, a palette of values that the packets of a program share, or
//! at random; then lengths that fit, what selects the next header, and what `valid` and `when` ask for. The
//! mistakes come afterwards ([`super::damage`]).

use std::collections::BTreeMap;

use pktc_semantics::typed::{
    Claim, Expr, Field, FieldDefault, Header, HeaderId, NextKind, Program, Target, Type, Value,
};

use super::dice::{Dice, ones};
use super::meaning::{Laid, greatest, holds, number, own_fields, value, write};

/// The longest way through the headers.
const DEEPEST: usize = 24;
/// How often a field is drawn again until what reads it holds.
const TRIES: usize = 40;
/// Bytes of a header while it is written; it is cut to its length afterwards.
const ROOM: usize = 4096;

/// Draws packets of one program.
#[derive(Clone, Debug)]
pub(super) struct Composer<'p> {
    program: &'p Program,
    /// Values that packets share, by width, so that rules meet several of them.
    palette: BTreeMap<u32, Vec<u128>>,
    /// How many edges lie between a header and each of those to be reached.
    distances: BTreeMap<HeaderId, BTreeMap<HeaderId, usize>>,
}

/// What a packet is to look like.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wish {
    /// A header that it should have.
    pub(super) toward: Option<HeaderId>,
    /// How many repeated headers follow each other before others do.
    pub(super) repeated: usize,
}

/// A value of `next` that selects a header.
#[derive(Clone, Copy)]
struct Choice {
    branch: usize,
    key: Option<u64>,
    header: HeaderId,
}

impl<'p> Composer<'p> {
    /// A composer with a palette of its own, for packets with the headers of `theme`.
    pub(super) fn new(program: &'p Program, theme: &[HeaderId], dice: &mut Dice) -> Self {
        let mut palette: BTreeMap<u32, Vec<u128>> = BTreeMap::new();
        for field in program.headers.values().flat_map(|header| &header.fields) {
            palette
                .entry(field.bits)
                .or_insert_with(|| (0..3).map(|_| dice.bits(field.bits.min(128))).collect());
        }
        let distances = theme.iter().map(|&header| (header, distances(program, header))).collect();
        Composer { program, palette, distances }
    }

    /// A packet without mistakes of its own, though fields may say what no header follows from.
    pub(super) fn packet(&self, wish: Wish, dice: &mut Dice) -> Vec<u8> {
        let mut way = vec![(self.program.root, Vec::new())];
        let mut repeated = wish.repeated;
        while way.len() < DEEPEST {
            let last = way.len() - 1;
            let Some(choice) = self.choose(way[last].0, wish.toward, &mut repeated, dice) else { break };
            way[last].1.push(choice);
            way.push((choice.header, Vec::new()));
        }
        let mut packet = payload(dice);
        for (header, choices) in way.iter().rev() {
            let mut bytes = self.header(*header, choices, dice);
            self.claim(*header, &mut bytes, packet.len(), dice);
            bytes.extend(packet);
            packet = bytes;
        }
        packet
    }

    /// What follows `header`; none for a payload.
    fn choose(
        &self,
        header: HeaderId,
        toward: Option<HeaderId>,
        repeated: &mut usize,
        dice: &mut Dice,
    ) -> Option<Choice> {
        let choices = choices(&self.program.headers[header]);
        if *repeated > 0 {
            let again: Vec<_> =
                choices.iter().filter(|it| self.program.headers[it.header].repeats > 1).copied().collect();
            if let Some(&choice) = pick_header(&again, dice) {
                *repeated -= 1;
                return Some(choice);
            }
        }
        let distance = |it: &Choice| self.distances.get(&toward?)?.get(&it.header);
        let nearest = choices.iter().filter_map(distance).min();
        if nearest.is_some() && dice.chance(80) {
            let on_the_way: Vec<_> = choices.iter().filter(|it| distance(it) == nearest).copied().collect();
            return pick_header(&on_the_way, dice).copied();
        }
        if dice.chance(10) { None } else { pick_header(&choices, dice).copied() }
    }

    /// The bytes of a header that selects what is chosen to follow it.
    fn header(&self, id: HeaderId, chosen: &[Choice], dice: &mut Dice) -> Vec<u8> {
        let header = &self.program.headers[id];
        let mut bytes = vec![0; ROOM];
        let (always, sometimes): (Vec<usize>, Vec<usize>) = (0..header.fields.len())
            .filter(|&index| !header.fields[index].is_view)
            .partition(|&index| header.fields[index].when.is_none());
        for index in always {
            self.draw(header, index, &mut bytes, dice);
        }
        self.select(header, chosen, &mut bytes, dice);
        let whens = chosen.iter().filter_map(|choice| header.next[choice.branch].when.as_ref());
        for wanted in header.valid.iter().chain(whens) {
            self.satisfy(header, wanted, &mut bytes, dice);
        }
        self.fit_length(header, &mut bytes, dice);
        for index in sometimes {
            self.draw(header, index, &mut bytes, dice);
        }
        let length = self.laid(header, &bytes).length().unwrap_or(header.fixed_bytes as usize);
        bytes.truncate(length);
        bytes
    }

    fn laid<'a>(&'a self, header: &'a Header, bytes: &'a [u8]) -> Laid<'a> {
        Laid { program: self.program, header, bytes }
    }

    /// Writes a random value into a field, if it is there.
    fn draw(&self, header: &Header, index: usize, bytes: &mut [u8], dice: &mut Dice) {
        let field = &header.fields[index];
        if let Some((start, width)) = self.laid(header, bytes).place(index) {
            let drawn = self.field_value(field, dice);
            write(bytes, start, width, drawn);
        }
    }

    fn field_value(&self, field: &Field, dice: &mut Dice) -> u128 {
        if let FieldDefault::Value(default) = &field.default
            && dice.chance(60)
        {
            return default_number(default);
        }
        if let Type::Enum(id) = field.ty
            && dice.chance(70)
        {
            let members = &self.program.enums[id].members;
            return dice.pick(members).map_or(0, |(_, value)| u128::from(*value));
        }
        if field.bits < 8 && dice.chance(40) {
            return 0;
        }
        match self.palette.get(&field.bits).and_then(|values| dice.pick(values)) {
            Some(&shared) if dice.chance(75) => shared,
            _ => dice.bits(field.bits.min(128)),
        }
    }

    /// Writes what selects the chosen headers; other selectors are left alone, or select something as well.
    fn select(&self, header: &Header, chosen: &[Choice], bytes: &mut [u8], dice: &mut Dice) {
        let mut all = chosen.to_vec();
        for branch in 0..header.next.len() {
            let others: Vec<_> =
                choices(header).into_iter().filter(|choice| choice.branch == branch).collect();
            if header.next.len() > 1 && chosen.iter().all(|it| it.branch != branch) && dice.chance(25) {
                all.extend(dice.pick(&others));
            }
        }
        for choice in all {
            let NextKind::By { value: by, .. } = &header.next[choice.branch].kind else { continue };
            let place = own_fields(by).first().and_then(|&field| self.laid(header, bytes).place(field));
            if let (Some((start, width)), Some(key)) = (place, choice.key) {
                write(bytes, start, width, u128::from(key));
            }
        }
    }

    /// Draws the fields that `wanted` reads until it holds, mostly.
    fn satisfy(&self, header: &Header, wanted: &Expr, bytes: &mut [u8], dice: &mut Dice) {
        if dice.chance(6) {
            return;
        }
        for round in 0..TRIES {
            if holds(wanted, &self.laid(header, bytes)) {
                return;
            }
            for index in own_fields(wanted) {
                let Some((start, width)) = self.laid(header, bytes).place(index) else { continue };
                let drawn = match round {
                    0 => 0,
                    _ if dice.chance(50) => self.field_value(&header.fields[index], dice),
                    _ => dice.bits(width.min(128) as u32),
                };
                write(bytes, start, width, drawn);
            }
        }
    }

    /// Sets the field that tells the header's length to the least that holds its fields, or a little more.
    fn fit_length(&self, header: &Header, bytes: &mut [u8], dice: &mut Dice) {
        let Some(&field) = header.length.as_ref().map(own_fields).as_deref().and_then(<[_]>::first) else {
            return;
        };
        let Some((start, width)) = self.laid(header, bytes).place(field) else { return };
        let mut more = if dice.chance(35) { dice.between(1, 4) } else { 0 };
        for units in 0..=greatest(width.min(8) as u32) {
            let before = read_all(bytes, start, width);
            write(bytes, start, width, units);
            let laid = self.laid(header, bytes);
            let fits = laid.length().is_some_and(|length| (laid.size()..ROOM).contains(&length));
            if fits && more == 0 {
                return;
            }
            if fits {
                more -= 1;
            } else if laid.length().is_none_or(|length| length >= ROOM) {
                write(bytes, start, width, before);
                return;
            }
        }
    }

    /// Makes a header claim its own bytes and `content` more.
    fn claim(&self, id: HeaderId, bytes: &mut [u8], content: usize, dice: &mut Dice) {
        let header = &self.program.headers[id];
        for Claim { value: claimed, when } in &header.claims {
            let Some(&field) = own_fields(claimed).first() else { continue };
            let Some((start, width)) = self.laid(header, bytes).place(field) else { continue };
            let total = (bytes.len() + content) as u128;
            let mut with = |units: u128| {
                write(bytes, start, width, units);
                value(claimed, &self.laid(header, bytes))
            };
            let (Some(none), Some(one)) = (with(0), with(1)) else { continue };
            let step = one.saturating_sub(none);
            let units = total.saturating_sub(none).checked_div(step).unwrap_or(0).min(ones(width as u32));
            write(bytes, start, width, units);
            if when.as_ref().is_none_or(|when| holds(when, &self.laid(header, bytes))) || dice.chance(10) {
                return;
            }
        }
    }
}

fn read_all(bytes: &[u8], start: usize, width: usize) -> u128 {
    super::meaning::read(bytes, start, width).unwrap_or(0)
}

/// All that may follow a header.
fn choices(header: &Header) -> Vec<Choice> {
    let mut choices = Vec::new();
    for (branch, next) in header.next.iter().enumerate() {
        match &next.kind {
            NextKind::Always(Target { header, .. }) => {
                choices.push(Choice { branch, key: None, header: *header });
            }
            NextKind::By { edges, .. } => choices.extend(edges.iter().map(|(&key, target)| Choice {
                branch,
                key: Some(key),
                header: target.header,
            })),
        }
    }
    choices
}

/// One of the headers that are chosen among, however many values select each.
fn pick_header<'a>(choices: &'a [Choice], dice: &mut Dice) -> Option<&'a Choice> {
    let mut headers: Vec<HeaderId> = choices.iter().map(|choice| choice.header).collect();
    headers.sort();
    headers.dedup();
    let &header = dice.pick(&headers)?;
    let of_it: Vec<usize> = (0..choices.len()).filter(|&at| choices[at].header == header).collect();
    dice.pick(&of_it).map(|&at| &choices[at])
}

/// How many edges lie between each header and `target`.
fn distances(program: &Program, target: HeaderId) -> BTreeMap<HeaderId, usize> {
    let mut found = BTreeMap::from([(target, 0)]);
    loop {
        let mut more = Vec::new();
        for (id, header) in program.headers.iter().filter(|(id, _)| !found.contains_key(id)) {
            let next = choices(header).into_iter().filter_map(|choice| found.get(&choice.header));
            more.extend(next.min().map(|&distance| (id, distance + 1)));
        }
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

fn default_number(value: &Value) -> u128 {
    match value {
        Value::Bool(value) => u128::from(*value),
        Value::Uint(value) | Value::Mac(value) => u128::from(*value),
        Value::Ipv4(address) => u128::from(address.to_bits()),
        Value::Ipv6(address) => address.to_bits(),
        Value::Bytes(bytes) => number(bytes.get(..16).unwrap_or(bytes)),
    }
}

/// Bytes behind the headers: of few kinds, so that rules meet them.
fn payload(dice: &mut Dice) -> Vec<u8> {
    let length = if dice.chance(30) { dice.below(3) } else { dice.below(48) };
    (0..length).map(|_| if dice.chance(70) { dice.below(3) as u8 } else { dice.bits(8) as u8 }).collect()
}
