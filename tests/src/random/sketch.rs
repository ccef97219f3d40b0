//! Which headers a packet seems to have, and what their fields hold: what constants are taken from.

use pktc_semantics::typed::{
    Expr, ExprKind, HeaderId, Index, Instance, NextKind, PacketField, Program, Type, UnionFieldKind,
    UnionInstance,
};

use super::meaning::{Laid, Leaves, holds, number, value};

/// More layers than this are not looked at.
const MOST: usize = 40;

/// A header in a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer {
    pub(super) header: HeaderId,
    /// How many of its kind are before it.
    pub(super) index: u8,
    pub(super) start: usize,
    /// Where it ends.
    pub(super) end: usize,
    /// Where what it claims ends.
    pub(super) limit: usize,
}

/// A packet and its headers.
#[derive(Clone, Debug)]
pub(super) struct Sketch<'a> {
    pub(super) program: &'a Program,
    pub(super) packet: &'a [u8],
    pub(super) layers: Vec<Layer>,
}

impl<'a> Sketch<'a> {
    /// Follows the declared edges through `packet`.
    pub(super) fn new(program: &'a Program, packet: &'a [u8]) -> Self {
        let mut sketch = Sketch { program, packet, layers: Vec::new() };
        let mut pending = vec![(program.root, 0, packet.len())];
        while let Some((header, start, limit)) = pending.pop() {
            let Some(layer) = sketch.layer(header, start, limit) else { continue };
            if sketch.layers.len() == MOST {
                break;
            }
            sketch.layers.push(layer);
            let next = sketch.next(&layer);
            pending.extend(next.into_iter().map(|header| (header, layer.end, layer.limit)));
        }
        sketch
    }

    pub(super) fn laid(&self, layer: &Layer) -> Laid<'a> {
        let header = &self.program.headers[layer.header];
        Laid { program: self.program, header, bytes: &self.packet[layer.start..layer.limit] }
    }

    fn layer(&self, id: HeaderId, start: usize, limit: usize) -> Option<Layer> {
        let header = &self.program.headers[id];
        let before = self.layers.iter().filter(|layer| layer.header == id).count();
        let laid = Laid { program: self.program, header, bytes: &self.packet[start..limit] };
        let length = laid.length()?;
        let end = start + length;
        let needed = header.needs.map_or(length, |needs| needs as usize);
        if start + needed > limit || length < needed || before >= header.repeats as usize {
            return None;
        }
        let is_valid = header.valid.iter().all(|valid| holds(valid, &laid));
        let claim =
            header.claims.iter().find(|claim| claim.when.as_ref().is_none_or(|when| holds(when, &laid)));
        let claimed = claim.and_then(|claim| value(&claim.value, &laid)).map_or(limit, |bytes| {
            start.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX)).clamp(start, limit)
        });
        let end = end.min(claimed);
        is_valid.then_some(Layer { header: id, index: before as u8, start, end, limit: claimed })
    }

    fn next(&self, layer: &Layer) -> Vec<HeaderId> {
        let laid = self.laid(layer);
        let taken =
            laid.header.next.iter().filter(|next| next.when.as_ref().is_none_or(|when| holds(when, &laid)));
        let chosen = taken.filter_map(|next| match &next.kind {
            NextKind::Always(target) => Some(target.header),
            NextKind::By { value: by, edges } => {
                Some(edges.get(&u64::try_from(value(by, &laid)?).ok()?)?.header)
            }
        });
        let mut chosen: Vec<HeaderId> = chosen.collect();
        chosen.sort();
        chosen.dedup();
        chosen
    }

    pub(super) fn find(&self, instance: Instance) -> Option<&Layer> {
        let mut of_kind = self.layers.iter().filter(|layer| layer.header == instance.header);
        match instance.index {
            Index::At(index) => of_kind.nth(index.into()),
            Index::Last => of_kind.next_back(),
        }
    }

    fn member(&self, at: UnionInstance) -> Option<&Layer> {
        let members = &self.program.unions[at.union].members;
        let mut present = self.layers.iter().filter(|layer| members.contains(&layer.header));
        match at.index {
            Index::At(index) => present.nth(index.into()),
            Index::Last => present.next_back(),
        }
    }

    /// What a union's field holds; an address says by its type of which family it is.
    pub(super) fn union_field(&self, at: UnionInstance, field: usize) -> Option<(Type, u128)> {
        let declared = &self.program.unions[at.union].fields[field];
        match &declared.kind {
            UnionFieldKind::Member(sources) => {
                let layer = self.member(at)?;
                let source = *sources.get(&layer.header)?;
                let ty = self.program.headers[layer.header].fields[source].ty.clone();
                Some((ty, self.laid(layer).get(source)?))
            }
            UnionFieldKind::Alternatives(alternatives) => {
                alternatives.iter().find_map(|it| Some((it.ty.clone(), value(it, self)?)))
            }
        }
    }
}

impl Leaves for Sketch<'_> {
    fn leaf(&self, expr: &Expr) -> Option<u128> {
        match &expr.kind {
            ExprKind::Field { instance, field } => self.laid(self.find(*instance)?).get(*field),
            ExprKind::UnionField { instance, field } => Some(self.union_field(*instance, *field)?.1),
            ExprKind::Present(instance) => Some(u128::from(self.find(*instance).is_some())),
            ExprKind::PayloadLength(instance) => {
                let layer = self.find(*instance)?;
                Some((layer.limit - layer.end) as u128)
            }
            ExprKind::PayloadSlice { instance, from, to } => {
                let layer = self.find(*instance)?;
                let payload = &self.packet[layer.end..layer.limit];
                payload.get(*from as usize..*to as usize).filter(|bytes| bytes.len() <= 16).map(number)
            }
            ExprKind::Packet(PacketField::Length) => Some(self.packet.len() as u128),
            ExprKind::Packet(PacketField::Ifindex) => Some(1),
            ExprKind::Packet(PacketField::Queue) => Some(0),
            _ => None,
        }
    }

    fn program(&self) -> &Program {
        self.program
    }
}
