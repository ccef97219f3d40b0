//! Where a header's fields lie, as loads see them.

use pktc_bpf::Size;
use pktc_semantics::typed::{Field, FieldIndex, Header, Position};

/// The load that holds a field: `size` bytes at `offset`; in host order the field is `width` bits, `shift` above
/// the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container {
    /// Bytes behind the header's start.
    pub offset: u32,
    /// Bytes loaded.
    pub size: Size,
    /// Bits below the field.
    pub shift: u32,
    /// Bits of the field.
    pub width: u32,
}

impl Container {
    /// The smallest aligned load that holds `width` bits at bit `bit` and stays below `limit` bytes; `None` if
    /// there is none of 8 bytes at most.
    #[must_use]
    pub fn new(bit: u32, width: u32, limit: u32) -> Option<Container> {
        let (first, end) = (bit / 8, (bit + width).div_ceil(8));
        [Size::U8, Size::U16, Size::U32, Size::U64].into_iter().find_map(|size| {
            let bytes = size.bytes();
            let aligned = first / bytes * bytes;
            let last_start = limit.checked_sub(bytes)?;
            let offset = [aligned, first.min(last_start)]
                .into_iter()
                .find(|&start| start <= first && start + bytes >= end && start + bytes <= limit)?;
            Some(Container { offset, size, shift: (offset + bytes) * 8 - bit - width, width })
        })
    }

    /// The field's bits in host order.
    #[must_use]
    pub fn mask(self) -> u64 {
        low_bits(self.width) << self.shift
    }
}

/// A number whose lowest `width` bits are set.
#[must_use]
pub fn low_bits(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// `value` with its lowest `size` bytes in the other order.
#[must_use]
pub fn swap_bytes(value: u64, size: Size) -> u64 {
    value.swap_bytes() >> (64 - size.bytes() * 8)
}

/// The bit at which a field starts, behind its header's start; `None` where that is known only at run time.
#[must_use]
pub fn static_bit(field: &Field) -> Option<u32> {
    match &field.position {
        Position::Start { bits, plus } if plus.is_empty() => Some(*bits),
        Position::Start { .. } | Position::End { .. } => None,
    }
}

/// How many bytes of a header are there for sure where it is present: all of its unconditional fields, unless it may be
/// cut and `needs` fewer ([`pktc_semantics::typed::Program::needs`]).
#[must_use]
pub fn certain_bytes(header: &Header, needs: Option<u32>) -> u32 {
    needs.unwrap_or(header.fixed_bytes)
}

/// The fields of a header's wire layout that are there only sometimes, grouped by their condition: the first
/// field of each group and the bits of all of it.
#[must_use]
pub fn conditional_groups(header: &Header) -> Vec<(FieldIndex, u32)> {
    let mut groups: Vec<(FieldIndex, String, u32)> = Vec::new();
    for (index, field) in header.fields.iter().enumerate() {
        let Some(when) = field.when.as_ref().filter(|_| !field.is_view) else { continue };
        let key = condition_key(when);
        match groups.iter_mut().find(|(_, known, _)| *known == key) {
            Some((_, _, bits)) => *bits += field.bits,
            None => groups.push((index, key, field.bits)),
        }
    }
    groups.into_iter().map(|(index, _, bits)| (index, bits)).collect()
}

/// A text that two conditions share exactly if they are written alike.
#[must_use]
pub fn condition_key(condition: &pktc_semantics::typed::Expr) -> String {
    use pktc_semantics::typed::ExprKind as K;
    let pair = |name: String, a, b| format!("({name} {} {})", condition_key(a), condition_key(b));
    let list = |name: &str, parts: &[pktc_semantics::typed::Expr]| {
        format!("({name} {})", parts.iter().map(condition_key).collect::<Vec<_>>().join(" "))
    };
    match &condition.kind {
        K::Compare { op, left, right } => pair(format!("{op:?}"), left, right),
        K::Binary { op, left, right } => pair(format!("{op:?}"), left, right),
        K::Default { value, otherwise } => pair("default".into(), value, otherwise),
        K::Not(inner) => format!("(not {})", condition_key(inner)),
        K::In { value, set, negated } => format!("(in {negated} {set} {})", condition_key(value)),
        K::And(parts) => list("and", parts),
        K::Or(parts) => list("or", parts),
        K::Tuple(parts) => list("tuple", parts),
        leaf @ (K::Const(_)
        | K::Field { .. }
        | K::UnionField { .. }
        | K::Own(_)
        | K::OwnPayload { .. }
        | K::Present(_)
        | K::UnionPresent(_)
        | K::Malformed(_)
        | K::Truncated(_)
        | K::Packet(_)
        | K::PayloadLength(_)
        | K::Payload(_)
        | K::PayloadSlice { .. }
        | K::Option { .. }
        | K::OptionsMalformed(_)
        | K::Bytes { .. }) => format!("{leaf:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(bit: u32, width: u32, limit: u32) -> (u32, u32, u32) {
        let found = Container::new(bit, width, limit).unwrap();
        (found.offset, found.size.bytes(), found.shift)
    }

    #[test]
    fn containers_are_aligned_where_they_can_be() {
        assert_eq!(container(4, 4, 20), (0, 1, 0), "ipv4.ihl");
        assert_eq!(container(51, 13, 20), (6, 2, 0), "ipv4.frag_off");
        assert_eq!(container(50, 1, 20), (6, 1, 5), "ipv4.mf");
        assert_eq!(container(4, 12, 4), (0, 2, 0), "vlan.vid");
        assert_eq!(container(12, 20, 40), (0, 4, 0), "ipv6.flow_label");
        assert_eq!(container(32, 24, 8), (4, 4, 8), "vxlan.vni");
    }

    #[test]
    fn containers_stay_inside_the_header() {
        assert_eq!(container(16, 24, 5), (1, 4, 0));
        assert_eq!(Container::new(0, 64, 7), None);
    }
}
