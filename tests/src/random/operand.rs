//! Random operands: fields, lengths, slices and what is computed from them.

use pktc_semantics::typed::{
    BinaryOp, Field, Header, HeaderId, Index, Instance, Position, Type, UnionFieldKind, UnionId,
    UnionInstance,
};

use super::condition::Drawer;
use super::constant::Constant;
use super::meaning::{arithmetic, number};
use super::sketch::{Layer, Sketch};

/// The most bytes of a slice.
const LONGEST_SLICE: usize = 16;
/// The farthest byte of a payload that a slice begins at.
const FARTHEST_START: usize = 11;
/// How far into a payload slices reach, in bytes.
pub(super) const FARTHEST_SLICE: usize = FARTHEST_START + LONGEST_SLICE;

/// Something that is compared.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    /// As it is written.
    pub(super) text: String,
    pub(super) ty: Type,
    /// What it is in the packet that constants are taken from; anything, if that has no such value.
    pub(super) sample: Constant,
    /// A condition that makes it certain, if there is a simple one.
    pub(super) guard: Option<String>,
    /// Whether it has to stand in parentheses before more can be done with it.
    pub(super) is_sum: bool,
}

impl Operand {
    /// Whether it is a number.
    pub(super) fn is_number(&self) -> bool {
        matches!(self.ty, Type::Uint { .. } | Type::Enum(_))
    }

    /// As it stands beside an operator that binds tighter.
    fn tight(&self) -> String {
        if self.is_sum { format!("({})", self.text) } else { self.text.clone() }
    }
}

impl Drawer<'_> {
    /// An operand that the packet has, mostly.
    pub(super) fn operand(&mut self, anchor: &Sketch<'_>) -> Operand {
        loop {
            let kind = self.dice.weighted(&[(58, 'f'), (22, 'u'), (7, 'l'), (8, 's'), (5, 'p')]);
            let found = match kind {
                'p' => Some(self.packet_field(anchor)),
                kind => {
                    let (header, index) = self.instance(anchor);
                    match kind {
                        'f' => self.field(header, index, anchor),
                        'u' => self.union_field(header, index, anchor),
                        'l' => Some(self.payload_length(header, index, anchor)),
                        _ => Some(self.slice(header, index, anchor)),
                    }
                }
            };
            if let Some(found) = found {
                return found;
            }
        }
    }

    /// A number: an operand, or something computed.
    pub(super) fn number(&mut self, anchor: &Sketch<'_>) -> Operand {
        loop {
            let found = self.operand(anchor);
            if found.is_number() {
                return found;
            }
        }
    }

    /// A header that the packet has, mostly, else one that others have, or one that cannot be there.
    fn instance(&mut self, anchor: &Sketch<'_>) -> (HeaderId, u8) {
        if self.dice.chance(92)
            && let Some(&Layer { header, index, .. }) = self.dice.pick(&anchor.layers)
        {
            return (header, index);
        }
        let header = self.any_header();
        let repeats = self.program.headers[header].repeats as usize;
        (header, if self.dice.chance(50) { 0 } else { self.dice.below(repeats) as u8 })
    }

    /// Any header, those of the theme more often.
    pub(super) fn any_header(&mut self) -> HeaderId {
        let all: Vec<HeaderId> = self.program.headers.keys().collect();
        let from = if self.dice.chance(80) { &self.theme } else { &all };
        self.dice.pick(from).copied().unwrap_or(self.program.root)
    }

    /// `vlan`, `vlan[1]`
    pub(super) fn instance_text(&mut self, header: HeaderId, index: u8) -> String {
        let Header { name, repeats, .. } = &self.program.headers[header];
        if index == 0 && (*repeats == 1 || self.dice.chance(70)) {
            return name.clone();
        }
        format!("{name}[{index}]")
    }

    fn sample(&mut self, ty: &Type, found: Option<(Type, u128)>) -> Constant {
        let (ty, value) = found.unwrap_or_else(|| {
            let family = if self.dice.chance(50) { Type::Ipv4 } else { Type::Ipv6 };
            (if *ty == Type::Ip { family } else { ty.clone() }, self.dice.bits(128))
        });
        Constant::new(self.program, ty, value)
    }

    fn field(&mut self, header: HeaderId, index: u8, anchor: &Sketch<'_>) -> Option<Operand> {
        let declared = &self.program.headers[header];
        let usable: Vec<usize> = (0..declared.fields.len())
            .filter(|&at| {
                let Field { name, bits, .. } = &declared.fields[at];
                name.is_some() && (1..=128).contains(bits)
            })
            .collect();
        let at = *self.dice.pick(&usable)?;
        let field = &declared.fields[at];
        let instance = Instance { scope: Default::default(), header, index: Index::At(index) };
        let value = anchor.find(instance).and_then(|layer| anchor.laid(layer).get(at));
        let sample = match field.ty {
            Type::Bytes => Constant::bytes(field.bits / 8, value.unwrap_or(0)),
            _ => self.sample(&field.ty, value.map(|value| (field.ty.clone(), value))),
        };
        let is_innermost = !anchor.layers.iter().any(|it| it.header == header && it.index > index);
        let (name, guard) = if declared.repeats > 1 && is_innermost && self.dice.chance(20) {
            (format!("{}[last]", declared.name), declared.name.clone())
        } else {
            let name = self.instance_text(header, index);
            (name.clone(), name)
        };
        let text = format!("{name}.{}", field.name.as_deref().unwrap_or_default());
        let guard = if is_plain(declared, field) { Some(guard) } else { self.has_value(&text, &field.ty) };
        Some(Operand { text, ty: field.ty.clone(), sample, guard, is_sum: false })
    }

    /// A field of a union that the header is in.
    fn union_field(&mut self, header: HeaderId, index: u8, anchor: &Sketch<'_>) -> Option<Operand> {
        let unions = self.program.unions.iter();
        let of_header: Vec<UnionId> =
            unions.filter(|(_, it)| it.members.contains(&header)).map(|(id, _)| id).collect();
        let id = *self.dice.pick(&of_header)?;
        let union = &self.program.unions[id];
        let values: Vec<usize> =
            (0..union.fields.len()).filter(|&at| union.fields[at].ty != Type::Bool).collect();
        let field = *self.dice.pick(&values)?;
        let (name, index) = self.union_instance(id, header, index, anchor);
        let instance = UnionInstance { scope: Default::default(), union: id, index };
        let declared = &union.fields[field];
        let found = anchor.union_field(instance, field);
        let found =
            if declared.ty == Type::Ip { found } else { found.map(|(_, it)| (declared.ty.clone(), it)) };
        let sample = self.sample(&declared.ty, found);
        let text = format!("{name}.{}", declared.name);
        let is_member = matches!(declared.kind, UnionFieldKind::Member(_)) && declared.when.is_none();
        let guard =
            if is_member && index != Index::Last { Some(name) } else { self.has_value(&text, &declared.ty) };
        Some(Operand { text, ty: declared.ty.clone(), sample, guard, is_sum: false })
    }

    /// `ip`, or `ip_ext[2]` where the header is the third of those.
    fn union_instance(
        &mut self,
        id: UnionId,
        header: HeaderId,
        index: u8,
        anchor: &Sketch<'_>,
    ) -> (String, Index) {
        let union = &self.program.unions[id];
        let Some(repeats) = union.repeats else { return (union.name.clone(), Index::At(0)) };
        let mut members = anchor.layers.iter().filter(|layer| union.members.contains(&layer.header));
        let at = members.position(|layer| layer.header == header && layer.index == index);
        let at = at.unwrap_or_else(|| self.dice.below(repeats as usize)).min(repeats as usize - 1);
        match self.dice.below(5) {
            0 => (format!("{}[last]", union.name), Index::Last),
            _ if at == 0 => (union.name.clone(), Index::At(0)),
            _ => (format!("{}[{at}]", union.name), Index::At(at as u8)),
        }
    }

    /// A condition that is true wherever `text` has a value.
    fn has_value(&self, text: &str, ty: &Type) -> Option<String> {
        match ty {
            Type::Uint { .. } | Type::Enum(_) => Some(format!("{text} >= 0")),
            Type::Ipv4 => Some(format!("{text} in 0.0.0.0/0")),
            Type::Ipv6 => Some(format!("{text} in ::/0")),
            Type::Ip => Some(format!("{text} in {{ 0.0.0.0/0, ::/0 }}")),
            Type::Mac => Some(format!("{text} in 00:00:00:00:00:00/0")),
            Type::Bool | Type::Bytes | Type::Tuple(_) => None,
        }
    }

    fn payload_length(&mut self, header: HeaderId, index: u8, anchor: &Sketch<'_>) -> Operand {
        let instance = Instance { scope: Default::default(), header, index: Index::At(index) };
        let value = anchor.find(instance).map(|layer| (layer.limit - layer.end) as u128);
        let name = self.instance_text(header, index);
        let ty = Type::Uint { bits: 32 };
        let sample = self.sample(&ty, Some((ty.clone(), value.unwrap_or(8))));
        Operand { text: format!("{name}.payload.len"), ty, sample, guard: Some(name), is_sum: false }
    }

    fn slice(&mut self, header: HeaderId, index: u8, anchor: &Sketch<'_>) -> Operand {
        let instance = Instance { scope: Default::default(), header, index: Index::At(index) };
        let payload = anchor.find(instance).map_or(&[][..], |layer| &anchor.packet[layer.end..layer.limit]);
        let from = self.dice.below(payload.len().clamp(1, FARTHEST_START + 1));
        let to = from + self.dice.between(1, LONGEST_SLICE.min(payload.len().saturating_sub(from)).max(1));
        let bytes = payload.get(from..to).unwrap_or_default();
        let name = self.instance_text(header, index);
        let length = (to - from) as u32;
        let (ty, sample) = if length <= 8 && self.dice.chance(50) {
            let ty = Type::Uint { bits: (length * 8) as u8 };
            (ty.clone(), Constant::new(self.program, ty, number(bytes)))
        } else {
            (Type::Bytes, Constant::bytes(length, number(bytes)))
        };
        let guard = Some(format!("{name}.payload.len >= {to}"));
        Operand { text: format!("{name}.payload[{from}..{to}]"), ty, sample, guard, is_sum: false }
    }

    fn packet_field(&mut self, anchor: &Sketch<'_>) -> Operand {
        let length = anchor.packet.len() as u128;
        let (name, value) =
            self.dice.weighted(&[(8, ("len", length)), (1, ("ifindex", 1)), (1, ("queue", 0))]);
        let ty = Type::Uint { bits: 32 };
        let sample = Constant::new(self.program, ty.clone(), value);
        Operand { text: format!("pkt.{name}"), ty, sample, guard: Some("eth".into()), is_sum: false }
    }

    /// `left` with an operator and a constant, or another number.
    pub(super) fn computed(&mut self, left: &Operand, anchor: &Sketch<'_>) -> Operand {
        use BinaryOp::{Add, And, Multiply, Or, ShiftLeft, ShiftRight, Subtract, Xor};
        let (op, sign) = self.dice.weighted(&[
            (5, (And, "&")),
            (2, (Or, "|")),
            (2, (Xor, "^")),
            (2, (ShiftLeft, "<<")),
            (2, (ShiftRight, ">>")),
            (3, (Add, "+")),
            (3, (Subtract, "-")),
            (2, (Multiply, "*")),
        ]);
        let (right, value) = if self.dice.chance(30) {
            let right = self.number(anchor);
            (right.tight(), right.sample.value)
        } else {
            let bits = match op {
                ShiftLeft | ShiftRight => 4,
                And | Or | Xor | Add | Subtract | Multiply => {
                    self.dice.between(1, left.sample.bits.min(40) as usize)
                }
            };
            let value = self.dice.bits(bits as u32);
            let ty = Type::Uint { bits: 64 };
            (Constant::new(self.program, ty, value).text(self.program, &mut self.dice), value)
        };
        let result = arithmetic(op, left.sample.value, value).unwrap_or(0);
        let ty = Type::Uint { bits: 64 };
        let sample = Constant::new(self.program, ty.clone(), result);
        let guard = (op != Subtract).then(|| left.guard.clone()).flatten();
        Operand { text: format!("{} {sign} {right}", left.tight()), ty, sample, guard, is_sum: true }
    }

    /// `value default otherwise`, which always has a value if what stands behind `default` is a constant.
    pub(super) fn defaulted(&mut self, value: &Operand, anchor: &Sketch<'_>) -> Operand {
        let otherwise = if value.is_number() && self.dice.chance(25) {
            self.number(anchor).tight()
        } else {
            value.sample.near(&mut self.dice).text(self.program, &mut self.dice)
        };
        Operand { text: format!("{} default {otherwise}", value.tight()), is_sum: true, ..value.clone() }
    }
}

/// Whether a field is there wherever its header is.
fn is_plain(header: &Header, field: &Field) -> bool {
    let is_inside = match (header.needs, &field.position) {
        (None, _) => true,
        (Some(needs), Position::Start { bits, .. }) => bits + field.bits <= needs * 8,
        (Some(_), Position::End { .. }) => false,
    };
    field.when.is_none() && is_inside
}
