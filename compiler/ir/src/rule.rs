//! Rule IR: what a program asks and does, in order; nothing is said of how packets are parsed.
//!
//! Conditions are pure. Unions, defaults and conditional values are already written out as [`Cond::If`] over the
//! presence of [`Item`]s, so that a [`Test`] reads [`Slot`]s only where the conditions before it make sure that
//! they have a value.
#![expect(missing_docs, reason = "each variant's example names its fields")]

use cranelift_entity::{PrimaryMap, entity_impl};
use pktc_bpf::Size;
use pktc_diagnostics::Span;
use pktc_semantics::rules::{RuleId, RuleTable};
use pktc_semantics::typed::{
    BinaryOp, CompareOp, CounterId, Expr, FieldIndex, HeaderId, Scope, UnionId, Verdict,
};

/// An [`Item`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(u32);
entity_impl!(ItemId, "item");

/// A [`Slot`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(u32);
entity_impl!(SlotId, "slot");

/// A header at one place of the packet: the `index`-th of its kind from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which packet.
    pub scope: Scope,
    /// Which header.
    pub header: HeaderId,
    /// Which of them, from 0.
    pub index: u8,
}

impl Place {
    /// The index of the last of its kind in a repeating union.
    pub const LAST: u8 = u8::MAX;

    /// Its header, in its packet.
    #[must_use]
    pub fn scoped(self) -> crate::graph::Scoped {
        (self.scope, self.header)
    }
}

/// Something that a packet has or has not; the parse decides.
#[derive(Clone, Debug)]
pub enum Item {
    /// A header is present.
    Header(Place),
    /// Bytes of a header (or behind it) that are not always there.
    Part(Part),
    /// There are more than `index` members of a repeating union.
    Member { scope: Scope, union: UnionId, index: u8 },
    /// An option of a kind is in the lists of a header ([`pktc_semantics::typed::OptionRef`]).
    Option { place: Place, kind: u64 },
    /// One of a header's option lists is broken.
    BrokenOptions(Place),
}

impl Item {
    /// The packet that it belongs to.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Item::Header(place)
            | Item::Part(Part { place, .. })
            | Item::Option { place, .. }
            | Item::BrokenOptions(place) => place.scope,
            Item::Member { scope, .. } => *scope,
        }
    }

    /// The header in whose option lists it is looked for.
    #[must_use]
    pub fn in_options_of(&self) -> Option<Place> {
        match self {
            Item::Option { place, .. } | Item::BrokenOptions(place) => Some(*place),
            Item::Header(_) | Item::Part(_) | Item::Member { .. } => None,
        }
    }
}

/// Bytes that are there only if a condition on the header's own fields holds and the packet reaches so far.
#[derive(Clone, Debug)]
pub struct Part {
    /// The header.
    pub place: Place,
    /// The condition, over [`pktc_semantics::typed::ExprKind::Own`] fields.
    pub when: Option<Expr>,
    /// Where it ends: so many bytes behind the header's start, of payload behind its end.
    pub end: u32,
    /// What it is part of.
    pub reach: Reach,
}

/// What a [`Part`] is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The header's fields.
    Fields,
    /// Bytes that are there only with the whole header, if that is at least so long that `behind` more follow the part.
    Whole { behind: u32 },
    /// What the header carries.
    Payload,
}

/// A value that the parse takes out of the packet and rules read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Bytes of a header as they lie in the packet (a little-endian load), behind its start.
    Bytes { place: Place, item: ItemId, offset: u32, size: Size },
    /// Bytes of a header's payload as they lie in the packet, behind the header's end.
    Payload { place: Place, item: ItemId, offset: u32, size: Size },
    /// How long the header is.
    HeaderLength(Place),
    /// How long the payload is.
    PayloadLength(Place),
    /// 1 where the header claims more than the frame holds, else 0.
    Truncated(Place),
    /// A field of the `index`-th member of a repeating union, or of the last; as a number.
    Member { scope: Scope, union: UnionId, index: Option<u8>, field: usize },
    /// How long an option is, all of it.
    OptionLength { place: Place, kind: u64, item: ItemId },
    /// Bytes of an option as they lie in the packet, behind its start: only read where it is known to be long enough.
    OptionBytes { place: Place, kind: u64, item: ItemId, offset: u32, size: Size },
}

impl Slot {
    /// How many bytes of it count.
    #[must_use]
    pub fn size(&self) -> Size {
        match self {
            Slot::Bytes { size, .. } | Slot::Payload { size, .. } | Slot::OptionBytes { size, .. } => *size,
            // No header is longer.
            Slot::OptionLength { .. } | Slot::HeaderLength(_) => Size::U16,
            Slot::PayloadLength(_) | Slot::Truncated(_) | Slot::Member { .. } => Size::U64,
        }
    }
}

/// A number in 64 bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Num {
    /// A constant.
    Const(u64),
    /// `width` bits of a slot, `shift` bits above its lowest, once its bytes are in host order.
    Bits { slot: SlotId, shift: u32, width: u32 },
    /// A slot as it is.
    Slot(SlotId),
    /// `pkt.len`
    PacketLength,
    /// `pkt.ifindex`
    Ifindex,
    /// `pkt.queue`
    Queue,
    /// Arithmetic; a difference is never below zero here.
    Binary { op: BinaryOp, left: Box<Num>, right: Box<Num> },
}

/// A question to the packet that always has an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// The item is there.
    Present(ItemId),
    /// A header is malformed.
    Malformed(Suspects),
    /// A slot's bytes, masked, are these (all as they lie in the packet).
    Bytes { slot: SlotId, mask: u64, value: u64 },
    /// A comparison of numbers.
    Compare { op: CompareOp, left: Num, right: Num },
    /// A number lies in one of these ranges: sorted, apart, both ends included.
    Ranges { value: Num, ranges: Vec<(u64, u64)> },
    /// 16 bytes, as a big-endian number, lie in one of these ranges: sorted, apart, both ends included.
    WideRanges { high: SlotId, low: SlotId, ranges: Vec<(u128, u128)> },
}

/// Headers that a question about malformation asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Suspects {
    /// In which packet.
    pub scope: Scope,
    /// Of which kinds; sorted.
    pub headers: Vec<HeaderId>,
    /// The how-manieth of its kind; `None`: any.
    pub index: Option<u8>,
}

impl Suspects {
    /// Whether `place` is one of them.
    #[must_use]
    pub fn include(&self, place: Place) -> bool {
        self.include_kind(place.scope, place.header) && self.index.is_none_or(|index| index == place.index)
    }

    /// Whether some `header` of that packet is one of them.
    #[must_use]
    pub fn include_kind(&self, scope: Scope, header: HeaderId) -> bool {
        self.scope == scope && self.headers.contains(&header)
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cond {
    /// Always or never.
    Const(bool),
    /// A test, with the source that asks it.
    Test(Test, Span),
    /// `not x`
    Not(Box<Cond>),
    /// All of them.
    And(Vec<Cond>),
    /// One of them.
    Or(Vec<Cond>),
    /// The second where the first holds, else the third.
    If(Box<[Cond; 3]>),
}

impl Cond {
    /// Whether `item` is there, as asked at `span`.
    #[must_use]
    pub fn present(item: ItemId, span: Span) -> Cond {
        Cond::Test(Test::Present(item), span)
    }

    /// All of `parts`; constants are folded.
    #[must_use]
    pub fn and(parts: impl IntoIterator<Item = Cond>) -> Cond {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Cond::Const(true) => {}
                Cond::Const(false) => return Cond::Const(false),
                Cond::And(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Cond::Const(true),
            1 => kept.remove(0),
            _ => Cond::And(kept),
        }
    }

    /// One of `parts`; constants are folded.
    #[must_use]
    pub fn or(parts: impl IntoIterator<Item = Cond>) -> Cond {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Cond::Const(false) => {}
                Cond::Const(true) => return Cond::Const(true),
                Cond::Or(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Cond::Const(false),
            1 => kept.remove(0),
            _ => Cond::Or(kept),
        }
    }

    /// `not cond`
    #[must_use]
    pub fn negate(cond: Cond) -> Cond {
        match cond {
            Cond::Const(value) => Cond::Const(!value),
            Cond::Not(inner) => *inner,
            other => Cond::Not(Box::new(other)),
        }
    }

    /// `then` where `cond` holds, else `otherwise`.
    #[must_use]
    pub fn choose(cond: Cond, then: Cond, otherwise: Cond) -> Cond {
        match cond {
            Cond::Const(true) => then,
            Cond::Const(false) => otherwise,
            cond if then == otherwise && matches!(then, Cond::Const(_)) => {
                drop(cond);
                then
            }
            cond => Cond::If(Box::new([cond, then, otherwise])),
        }
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Node {
    /// A rule.
    Rule { id: RuleId, condition: Cond, actions: Vec<Action>, span: Span },
    /// Statements behind a condition.
    When { condition: Cond, body: Vec<Node> },
    /// An applied chain: `return` goes on behind it.
    Chain { name: String, body: Vec<Node> },
}

/// An action.
#[derive(Clone, Debug)]
pub enum Action {
    /// Ends the program.
    Verdict(Verdict),
    /// Goes on behind the innermost chain.
    Return,
    /// Counts the packet.
    Count(CounterId),
    /// Does a chain's rules.
    Chain { name: String, body: Vec<Node> },
}

/// A program as rule IR.
#[derive(Clone, Debug)]
pub struct RuleProgram {
    /// Its name.
    pub name: String,
    /// Where its name is declared.
    pub span: Span,
    /// What the tests ask for.
    pub items: PrimaryMap<ItemId, Item>,
    /// What the tests read.
    pub slots: PrimaryMap<SlotId, Slot>,
    /// The statements in order.
    pub body: Vec<Node>,
    /// What remains; ends with a verdict.
    pub default: Vec<Action>,
    /// Where `default` stands.
    pub default_span: Span,
    /// What packets with a verdict are counted in, whoever gave it; in order.
    pub on: Vec<(Verdict, CounterId)>,
    /// Whether rules count.
    pub counters: bool,
    /// The rules' identities.
    pub rules: RuleTable,
}

/// Which field of a header a slot holds, for people: `ipv4.src`.
#[must_use]
pub fn field_name(header: &pktc_semantics::typed::Header, field: FieldIndex) -> String {
    let name = header.fields[field].name.as_deref().unwrap_or("_");
    format!("{}.{name}", header.name)
}
