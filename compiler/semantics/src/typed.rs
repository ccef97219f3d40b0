//! The typed program: what this crate puts out and all later stages read.
//!
//! Everything is resolved: names are ids, constants are folded, `def`s and `const`s are expanded where they
//! were used, `x[any]` is an `or` over all instances, and each operand has a type. What the language calls
//! *no value* stays implicit: evaluating an expression may yield no value, and an atom (comparison, `in`,
//! one-bit field) with an operand that has none is false.
#![expect(missing_docs, reason = "each variant's example names its fields")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use cranelift_entity::{PrimaryMap, entity_impl};
use pktc_diagnostics::Span;
pub use pktc_syntax::ast::{BinaryOp, CompareOp, Verdict};
pub use scenario::{Layer, Outcome, Packet, PacketOption, Step, StepKind, Test};

mod header;
mod scenario;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    };
}

id!(/// A header.
    HeaderId, "header");
id!(/// A union of headers.
    UnionId, "union");
id!(/// An enum.
    EnumId, "enum");
id!(/// A fixed set, named or literal.
    SetId, "set");
id!(/// A named counter.
    CounterId, "counter");
id!(/// A chain.
    ChainId, "chain");
id!(/// A program.
    XdpId, "xdp");

/// A field of a header: an index into [`Header::fields`].
pub type FieldIndex = usize;

/// A whole program: the file named, what it uses, and the standard library.
#[derive(Clone, Debug)]
pub struct Program {
    /// Enums.
    pub enums: PrimaryMap<EnumId, Enum>,
    /// Headers.
    pub headers: PrimaryMap<HeaderId, Header>,
    /// Unions.
    pub unions: PrimaryMap<UnionId, Union>,
    /// Fixed sets; a literal `{ … }` is one without a name.
    pub sets: PrimaryMap<SetId, Set>,
    /// Named counters.
    pub counters: PrimaryMap<CounterId, Counter>,
    /// Chains.
    pub chains: PrimaryMap<ChainId, Chain>,
    /// Programs, of all files.
    pub xdps: PrimaryMap<XdpId, Xdp>,
    /// Tests of all files.
    pub tests: Vec<Test>,
    /// Where every packet starts: `eth`.
    pub root: HeaderId,
    /// The members of `l4`: what they select is no matter of a bare `malformed`.
    pub transport: Vec<HeaderId>,
    /// What bare `malformed` asks: `root` and what is reached from it by edges outside [`Program::transport`]
    /// and not into `inner.` or `quoted.`; parents before children.
    pub packet_headers: Vec<HeaderId>,
    /// What `inner.malformed` asks: the same from all headers that an edge into `inner.` leads to.
    pub inner_headers: Vec<HeaderId>,
    /// What `quoted.malformed` asks: the same from all headers that an edge into `quoted.` leads to.
    pub quoted_headers: Vec<HeaderId>,
}

/// Bytes of a transport header that an ICMP error quotes at least (RFC 792).
const QUOTED_BYTES: u32 = 8;

impl Program {
    /// What a bare `malformed` asks in the packet `scope`.
    #[must_use]
    pub fn malformed_headers(&self, scope: Scope) -> &[HeaderId] {
        match scope {
            Scope { quoted: true, .. } => &self.quoted_headers,
            Scope { inner: 0, .. } => &self.packet_headers,
            Scope { .. } => &self.inner_headers,
        }
    }

    /// The program of `subject`; a chain gets one around it.
    #[must_use]
    pub fn subject(&self, subject: Subject) -> Cow<'_, Xdp> {
        match subject {
            Subject::Xdp(id) => Cow::Borrowed(&self.xdps[id]),
            Subject::Chain(id) => Cow::Owned(Xdp::around(id, &self.chains[id])),
        }
    }

    /// How the language writes `ty`; of bytes without their number.
    #[must_use]
    pub fn type_text(&self, ty: &Type) -> String {
        match ty {
            Type::Bool => "bool".into(),
            Type::Uint { bits } => format!("u{bits}"),
            Type::Enum(id) => self.enums[*id].name.clone(),
            Type::Mac => "mac_addr".into(),
            Type::Ipv4 => "ipv4_addr".into(),
            Type::Ipv6 => "ipv6_addr".into(),
            Type::Ip => "ip_addr".into(),
            Type::Bytes => "bytes".into(),
            Type::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.type_text(part)).collect();
                format!("({})", parts.join(", "))
            }
        }
    }

    /// How many bytes make `header` present in the packet `scope`; none: its whole length. As it declares
    /// ([`Header::needs`]), but of a transport header in a quoted packet 8 are enough.
    #[must_use]
    pub fn needs(&self, header: HeaderId, scope: Scope) -> Option<u32> {
        let declared = &self.headers[header];
        let is_cut = scope.quoted && self.transport.contains(&header) && declared.fixed_bytes > QUOTED_BYTES;
        if is_cut {
            Some(declared.needs.map_or(QUOTED_BYTES, |needs| needs.min(QUOTED_BYTES)))
        } else {
            declared.needs
        }
    }
}

/// The type of an operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A condition.
    Bool,
    /// An unsigned number; arithmetic yields 64 bits.
    Uint { bits: u8 },
    /// A number with names.
    Enum(EnumId),
    /// A MAC address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// An address of either family.
    Ip,
    /// Bytes, of any length.
    Bytes,
    /// A tuple.
    Tuple(Vec<Type>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// `true`
    Bool(bool),
    /// A number, an enum's member too.
    Uint(u64),
    /// A MAC address, first byte highest.
    Mac(u64),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// An enum.
#[derive(Clone, Debug)]
pub struct Enum {
    /// Its name.
    pub name: String,
    /// Its width.
    pub bits: u8,
    /// Its members in order.
    pub members: Vec<(String, u64)>,
    /// Where it is declared.
    pub span: Span,
}

/// A header: how it lies in the packet and what follows it.
///
/// It **fits** if the bytes that it [needs](Program::needs) (without `needs`: its whole length) lie in the frame
/// and in what the enclosing header claims; it is **present** if it is selected, fits and is valid.
#[derive(Clone, Debug)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub doc: String,
    /// Where its name is declared.
    pub span: Span,
    /// Fields in wire order (reserved bits too), then views.
    pub fields: Vec<Field>,
    /// Bytes of the unconditional fields: a `length` below that is not valid.
    pub fixed_bytes: u32,
    /// Bytes of this header; without it, those of the fields that are there.
    pub length: Option<Expr>,
    /// Bytes of header and content together: the first whose `when` holds. None: to the end of what encloses it.
    pub claims: Vec<Claim>,
    /// All must hold.
    pub valid: Vec<Expr>,
    /// So many bytes make it present; fields beyond what is there have no value, and where the cut hides a
    /// field that `valid` reads, `valid` is not asked. [`Program::needs`] says it for a packet.
    pub needs: Option<u32>,
    /// How many in a row, at least 1.
    pub repeats: u32,
    /// What follows; each is a branch of its own.
    pub next: Vec<Next>,
    /// Its option list.
    pub options: Option<Options>,
    /// Its options stand in the lists of these headers behind it (IPv6).
    pub options_from: Vec<HeaderId>,
}

/// A field of a header.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name; reserved bits have none.
    pub name: Option<String>,
    /// Its documentation.
    pub doc: String,
    /// Where it is declared.
    pub span: Span,
    /// Its type.
    pub ty: Type,
    /// Its width; 0 for `bytes` without a length, which takes what is left.
    pub bits: u32,
    /// Where it lies.
    pub position: Position,
    /// Bits of another name: not laid out again.
    pub is_view: bool,
    /// There only then.
    pub when: Option<Expr>,
    /// What packet composition puts there.
    pub default: FieldDefault,
}

/// Where a field lies in its header.
#[derive(Clone, Debug, PartialEq)]
pub enum Position {
    /// `bits` behind the header's start, plus the widths of those conditional fields (indices) that are
    /// there. Fields that are there whenever this one is are in `bits`, fields that never are, in neither.
    Start { bits: u32, plus: Vec<FieldIndex> },
    /// It starts `bits` before the header's end: it stands behind a `bytes` field that takes what is left.
    End { bits: u32 },
}

/// What packet composition puts into a field that the test leaves out.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldDefault {
    /// Zero, unless it is a length or selects what follows.
    Zero,
    /// That value.
    Value(Value),
    /// A checksum.
    Checksum { kind: Checksum, over: Vec<ChecksumPart> },
}

/// Kinds of checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// RFC 1071.
    Internet,
    /// RFC 1071; a sum of 0 is sent as 0xffff (RFC 768).
    InternetOrNone,
    /// CRC32c (RFC 9260).
    Crc32c,
}

/// What a checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumPart {
    /// The IP pseudo header.
    Pseudo,
    /// This header.
    Header,
    /// What follows, as far as the enclosing lengths claim.
    Payload,
}

/// `claims value when condition;`
#[derive(Clone, Debug)]
pub struct Claim {
    /// Bytes of header and content.
    pub value: Expr,
    /// Only then.
    pub when: Option<Expr>,
}

/// A branch of the parse: what a header selects to follow it.
#[derive(Clone, Debug)]
pub struct Next {
    /// Only then.
    pub when: Option<Expr>,
    /// Which header.
    pub kind: NextKind,
    /// Where it is declared.
    pub span: Span,
}

/// How what follows is chosen.
#[derive(Clone, Debug)]
pub enum NextKind {
    /// By a value; `bind`s are in the table.
    By { value: Expr, edges: BTreeMap<u64, Target> },
    /// Always that one.
    Always(Target),
}

/// Where an edge of the parse graph leads.
///
/// An edge with a scope opens that packet. Where several do, the first header that is *present* there opens it, in
/// order of `next` lines, then of selectors; later ones are not followed. `inner` deeper than
/// [`Scope::MAX_INNER`] and what a quoted packet would open are not followed either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Into the tunnel's or the quoted packet; `None` stays in this one.
    pub scope: Option<pktc_syntax::ast::Scope>,
    /// Which header.
    pub header: HeaderId,
}

/// An option list: it lies behind the header's fields that are there, up to the header's length; a header that is
/// cut short has none.
///
/// It is read from its start. A kind in `end` ends it, one in `pad` is a byte; any other option starts with `fields`
/// and has `length` bytes in all. The list is **broken** where an option is cut by the list's end, or is shorter than
/// its `fields`, or is one beyond [`Options::MOST`]: what stands before the break counts, nothing behind it does. The
/// first option of a kind counts.
#[derive(Clone, Debug)]
pub struct Options {
    /// The fields that each option starts with, all unconditional.
    pub fields: Vec<Field>,
    /// Which of them is the kind.
    pub kind: FieldIndex,
    /// Bytes of an option, in terms of [`ExprKind::Own`] fields of the option.
    pub length: Expr,
    /// Kinds that end the list.
    pub end: Vec<u64>,
    /// Kinds of one byte.
    pub pad: Vec<u64>,
    /// The declared options; ends and paddings that have names, too.
    pub options: Vec<OptionDecl>,
}

impl Options {
    /// So many options of a list are read, ends and paddings too, and so many in the lists of all members of a repeating
    /// union together: behind them, the list is broken. IPv4 and TCP headers have no room for more.
    pub const MOST: usize = 40;
}

/// A declared option.
#[derive(Clone, Debug)]
pub struct OptionDecl {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: u64,
    /// Its values, behind kind and length; their positions count from the option's start. They have a value only
    /// in an option that is as long as all of them ask ([`OptionDecl::bytes`]).
    pub fields: Vec<Field>,
}

impl OptionDecl {
    /// How long an option with these values is, in bytes; 0 if it declares none.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        let ends = self.fields.iter().map(|field| match field.position {
            Position::Start { bits, .. } | Position::End { bits } => bits + field.bits,
        });
        ends.max().unwrap_or(0) / 8
    }
}

/// A union of headers.
#[derive(Clone, Debug)]
pub struct Union {
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub doc: String,
    /// Where its name is declared.
    pub span: Span,
    /// Its headers.
    pub members: Vec<HeaderId>,
    /// `Some(n)`: members follow each other in any order, n at most; the next is malformed.
    pub repeats: Option<u32>,
    /// Its fields.
    pub fields: Vec<UnionField>,
}

/// A field of a union.
#[derive(Clone, Debug)]
pub struct UnionField {
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub doc: String,
    /// The type of all alternatives together.
    pub ty: Type,
    /// Where the value comes from.
    pub kind: UnionFieldKind,
    /// Without it there is no value.
    pub when: Option<Expr>,
}

/// Where a union field's value comes from.
#[derive(Clone, Debug)]
pub enum UnionFieldKind {
    /// The field of that name in whichever member the instance is.
    Member(BTreeMap<HeaderId, FieldIndex>),
    /// Tried in order: the first, all of whose headers are present, gives the value (which may be none).
    /// Instances in it are relative to the scope of the union's use.
    Alternatives(Vec<Expr>),
}

/// Which packet an instance is in: the outer one, a tunnel's, or a quoted one.
///
/// Instances are counted in each packet by themselves: `inner.vlan[1]` is the second tag of the inner frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// How many tunnels deep, at most [`Scope::MAX_INNER`].
    pub inner: u8,
    /// In the packet that an ICMP error there quotes.
    pub quoted: bool,
}

impl Scope {
    /// Tunnels inside tunnels: what lies deeper cannot be named and is not parsed.
    pub const MAX_INNER: u8 = 3;

    /// The packet that an edge into `kind` opens; none: it is too deep, or a quoted packet's.
    #[must_use]
    pub fn opened(self, kind: pktc_syntax::ast::Scope) -> Option<Scope> {
        match kind {
            _ if self.quoted => None,
            pktc_syntax::ast::Scope::Quoted => Some(Scope { quoted: true, ..self }),
            pktc_syntax::ast::Scope::Inner if self.inner == Self::MAX_INNER => None,
            pktc_syntax::ast::Scope::Inner => Some(Scope { inner: self.inner + 1, ..self }),
        }
    }

    /// The packet around it, and the kind of edge that opens it from there; none for the outer one.
    #[must_use]
    pub fn around(self) -> Option<(Scope, pktc_syntax::ast::Scope)> {
        match self {
            Scope { quoted: true, .. } => {
                Some((Scope { quoted: false, ..self }, pktc_syntax::ast::Scope::Quoted))
            }
            Scope { inner: 0, .. } => None,
            Scope { inner, .. } => Some((Scope { inner: inner - 1, ..self }, pktc_syntax::ast::Scope::Inner)),
        }
    }
}

/// Which of several headers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// The n-th from outside, from 0.
    At(u8),
    /// The innermost.
    Last,
}

/// A header at one place of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance {
    /// Which packet. Inside declarations: relative to the declaring header's or union's.
    pub scope: Scope,
    /// Which header.
    pub header: HeaderId,
    /// Which of them.
    pub index: Index,
}

/// A union at one place of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnionInstance {
    /// Which packet.
    pub scope: Scope,
    /// Which union.
    pub union: UnionId,
    /// Which of them: always `At(0)` for a union without `repeats`.
    pub index: Index,
}

/// An option in the lists of a header.
///
/// Whose lists: the header's own, or, where it has [`Header::options_from`], those of all these headers in the same
/// packet, in the order in which they lie there; the header itself must be present, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionRef {
    /// Of which header.
    pub instance: Instance,
    /// Its kind.
    pub kind: u64,
}

/// What is asked of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptionAsk {
    /// Whether it is in a list.
    Present,
    /// Its length in bytes, all of it.
    Length,
    /// A value; none where the option has another length than its declaration asks. The declaration is
    /// `headers[list].options.options[option].fields[field]`, and holds for all lists that are asked.
    Value { list: HeaderId, option: usize, field: FieldIndex },
}

/// Bytes whose number varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BytesOf {
    /// A header's `bytes` field that takes what is left.
    Field { instance: Instance, field: FieldIndex },
    /// A header's option list, all up to the header's end. None in a header that is cut short.
    Options(Instance),
    /// What follows the union's header: of members that do not repeat, the first that is present.
    UnionPayload(UnionInstance),
}

/// What is asked of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BytesAsk {
    /// All of them.
    All,
    /// How many.
    Length,
    /// Bytes `from..to` (`to` excluded); no value beyond them. At most 8 bytes are a number, too.
    Slice { from: u32, to: u32 },
}

/// An expression: condition or value.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Which one.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Where it stands; expanded `def`s keep the span in their body.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant.
    Const(Value),
    /// A header's field. No value: the header is absent, the field's `when` is false, or it lies beyond a short header.
    Field { instance: Instance, field: FieldIndex },
    /// A union's field.
    UnionField { instance: UnionInstance, field: usize },
    /// Only in declarations: a field of the declaring header (or option).
    Own(FieldIndex),
    /// Only in declarations: bytes `from..to` of the declaring header's payload.
    OwnPayload { from: u32, to: u32 },
    /// The header is present.
    Present(Instance),
    /// One of its headers is present.
    UnionPresent(UnionInstance),
    /// It was selected, all parents are present, and it does not fit, is not valid, or is deeper than `repeats`.
    Malformed(Malformed),
    /// It claims more than the frame holds.
    Truncated(Instance),
    /// A property of the whole packet.
    Packet(PacketField),
    /// Bytes behind the header, as far as the enclosing lengths claim and the frame holds.
    PayloadLength(Instance),
    /// All bytes behind the header.
    Payload(Instance),
    /// Bytes `from..to` of the payload (`to` excluded); no value beyond it. At most 8 bytes are a number, too.
    PayloadSlice { instance: Instance, from: u32, to: u32 },
    /// Something of an option.
    Option { option: OptionRef, ask: OptionAsk },
    /// One of the header's option lists (as of an [`OptionRef`]) is broken.
    OptionsMalformed(Instance),
    /// Something of bytes whose number varies.
    Bytes { of: BytesOf, ask: BytesAsk },
    /// `not x`
    Not(Box<Expr>),
    /// All; at least two.
    And(Vec<Expr>),
    /// One of them; at least two.
    Or(Vec<Expr>),
    /// Both sides have one kind of type; across address families it is *not equal*.
    Compare { op: CompareOp, left: Box<Expr>, right: Box<Expr> },
    /// Membership; `negated` only where the operands are certain.
    In { value: Box<Expr>, set: SetId, negated: bool },
    /// Arithmetic in 64 bits, wrapping at the top; a difference below zero has no value, a shift by 64 or more is 0.
    Binary { op: BinaryOp, left: Box<Expr>, right: Box<Expr> },
    /// The left value, or the right where the left has none.
    Default { value: Box<Expr>, otherwise: Box<Expr> },
    /// A tuple of at least two values, which only `in` asks for; it has a value where all parts have one.
    Tuple(Vec<Expr>),
}

/// Whose malformation is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// A packet's: one of its [`Program::malformed_headers`].
    Packet(Scope),
    /// An instance's; for a header with repeats, `At(0)` asks any of them.
    Header(Instance),
    /// Any member's, or more of them than the union's `repeats`.
    Union { scope: Scope, union: UnionId },
}

/// Properties of the whole packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketField {
    /// `pkt.len`, in bytes.
    Length,
    /// `pkt.ifindex`
    Ifindex,
    /// `pkt.queue`
    Queue,
}

/// A fixed set.
#[derive(Clone, Debug)]
pub struct Set {
    /// Its name; a literal has none.
    pub name: Option<String>,
    /// Where it stands.
    pub span: Span,
    /// The type of its elements. A part of tuples of which nothing is known, because all elements have `_` there, is
    /// [`Type::Bool`].
    pub ty: Type,
    /// Its elements as written; they may overlap.
    pub elements: Vec<Element>,
}

/// An element of a set; both ends are included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Numbers.
    Uint { low: u64, high: u64 },
    /// MAC addresses, first byte highest.
    Mac { low: u64, high: u64 },
    /// IPv4 addresses.
    Ipv4 { low: Ipv4Addr, high: Ipv4Addr },
    /// IPv6 addresses.
    Ipv6 { low: Ipv6Addr, high: Ipv6Addr },
    /// Byte strings of one length, compared bytewise.
    Bytes { low: Vec<u8>, high: Vec<u8> },
    /// A tuple of at least two; `None` is anything (`_`). None of them is a tuple.
    Tuple(Vec<Option<Element>>),
}

impl Element {
    /// The lowest and the highest, of numbers and MAC addresses.
    #[must_use]
    pub fn as_number_range(&self) -> Option<(u64, u64)> {
        match self {
            Element::Uint { low, high } | Element::Mac { low, high } => Some((*low, *high)),
            Element::Ipv4 { .. } | Element::Ipv6 { .. } | Element::Bytes { .. } | Element::Tuple(_) => None,
        }
    }
}

/// A named counter: packets and bytes.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Where its name is declared.
    pub span: Span,
}

/// A chain of rules.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Where its name is declared.
    pub span: Span,
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// A program.
#[derive(Clone, Debug)]
pub struct Xdp {
    /// Its name: at most 15 characters, unique.
    pub name: String,
    /// Where its name is declared.
    pub span: Span,
    /// What is done where no rule decided; ends with a verdict.
    pub default: Vec<Action>,
    /// Where `default` stands.
    pub default_span: Span,
    /// Whether rules count.
    pub counters: bool,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Its place among programs that run one after the other: lower ones first. None: the loader chooses.
    pub priority: Option<u32>,
    /// After which verdicts the next of them runs. None: the loader chooses.
    pub chain_on: Option<Vec<Verdict>>,
    /// What is done once there is a verdict, whoever gave it, the default too: all whose verdicts hold it, in order.
    pub on: Vec<OnVerdict>,
}

impl Xdp {
    /// The kernel keeps so many bytes of a program's name.
    pub(crate) const NAME_MAX: usize = 15;

    /// A program that does nothing but apply `chain`.
    fn around(chain: ChainId, Chain { name, span, .. }: &Chain) -> Self {
        let span = *span;
        Xdp {
            name: name.chars().take(Self::NAME_MAX).collect(),
            span,
            default: vec![Action { kind: ActionKind::Verdict(Verdict::Pass), span }],
            default_span: span,
            counters: true,
            body: vec![Stmt::Apply { chain, span }],
            priority: None,
            chain_on: None,
            on: Vec::new(),
        }
    }
}

/// What is built, run or tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A program.
    Xdp(XdpId),
    /// A chain by itself, in a program that passes where the chain does not decide.
    Chain(ChainId),
}

/// `on drop, abort => count refused;`
#[derive(Clone, Debug)]
pub struct OnVerdict {
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
    /// Only [`ActionKind::Count`].
    pub actions: Vec<Action>,
    /// Where it stands.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// A rule.
    Rule(Rule),
    /// Statements behind a condition.
    When { condition: Expr, body: Vec<Stmt> },
    /// A chain's statements.
    Apply { chain: ChainId, span: Span },
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its label.
    pub label: Option<String>,
    /// Without a label: its number among the unlabelled rules of its chain or program, from 1.
    pub unlabelled: u32,
    /// Where its label (or the word `rule`) stands.
    pub span: Span,
    /// When it applies.
    pub condition: Expr,
    /// What it does.
    pub actions: Vec<Action>,
}

/// An action with its place.
#[derive(Clone, Debug)]
pub struct Action {
    /// Which one.
    pub kind: ActionKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Ends the program.
    Verdict(Verdict),
    /// Leaves the chain, to go on behind its `apply`.
    Return,
    /// Counts the packet.
    Count(CounterId),
    /// Does a chain's rules.
    Apply(ChainId),
}
