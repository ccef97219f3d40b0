//! The syntax tree: what was written, nothing resolved. Every node has a span.
#![expect(missing_docs, reason = "each variant's example names its fields")]

use std::net::IpAddr;

use pktc_diagnostics::Span;

/// A word with its place: a name that is declared or referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// Its declarations in order; those that could not be read are left out.
    pub decls: Vec<Decl>,
}

/// A declaration with its `///` text.
#[derive(Clone, Debug, PartialEq)]
pub struct Decl {
    /// The documentation comment's lines, joined; empty if there is none.
    pub doc: String,
    /// All of it.
    pub span: Span,
    /// Which one.
    pub kind: DeclKind,
}

/// The kinds of declarations.
#[derive(Clone, Debug, PartialEq)]
pub enum DeclKind {
    /// `use "lib/x.pkt" as x;`
    Use { target: UseTarget, alias: Option<Word> },
    /// `const n: u16 = 5;`
    Const { name: Word, ty: Option<Type>, value: Expr },
    /// `def near(p: u16) = …;`
    Def { name: Word, params: Vec<Param>, body: Expr },
    /// `enum kind: u8 { a = 1 }`
    Enum { name: Word, ty: Type, members: Vec<EnumMember> },
    /// `header eth { … }`
    Header(Header),
    /// `union ip = ipv4 | ipv6 { … }`
    Union(Union),
    /// `bind udp.port 53 => dns;`
    Bind { selectors: Vec<BindSelector>, values: Vec<SelectorValue>, target: Target },
    /// `set s = { … };`, `set s = file "x.txt";`
    Set { name: Word, ty: Option<Type>, elements: Elements },
    /// `map m: k -> v = { … };`
    Map { name: Word, key: Type, value: Type, entries: Entries },
    /// `live set s: t max 10k;`
    LiveSet { name: Word, ty: Type, options: Vec<LiveOption>, elements: Option<Elements> },
    /// `live map m: k -> v max 10k;`
    LiveMap { name: Word, key: Type, value: Type, options: Vec<LiveOption>, entries: Option<Entries> },
    /// `live param p: u16 = 5;`
    LiveParam { name: Word, ty: Type, value: Expr },
    /// `counter c by ip.src max 64k;`
    Counter { name: Word, key: Option<Key> },
    /// `meter m: 10k packets/s burst 20k by ip.src max 1M exact;`
    Meter { name: Word, rate: Rate, burst: Option<Amount>, key: Option<Key>, exact: Option<Span> },
    /// `chain c { … }`
    Chain { name: Word, body: Vec<Stmt> },
    /// `xdp p { … }`
    Xdp { name: Word, items: Vec<XdpItem> },
    /// `test "…" of p { … }`
    Test { name: StringLiteral, of: Option<Word>, steps: Vec<Step> },
}

/// What `use` names.
#[derive(Clone, Debug, PartialEq)]
pub enum UseTarget {
    /// A file, relative to the one that uses it.
    File(StringLiteral),
    /// A library's path: `std.quic`.
    Library(Vec<Word>),
}

/// A string in quotes; text is bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringLiteral {
    /// Its bytes, escapes resolved.
    pub bytes: Vec<u8>,
    /// With its quotes.
    pub span: Span,
}

/// `p: u16`
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Word,
    /// Its type.
    pub ty: Type,
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// All of it.
    pub span: Span,
    /// Which one.
    pub kind: TypeKind,
}

/// The kinds of types.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// `u16`, `bytes[16]`, an enum's name.
    Named { name: Word, length: Option<u64> },
    /// `(ip_addr, u16)`
    Tuple(Vec<Type>),
}

/// `tcp = 6`
#[derive(Clone, Debug, PartialEq)]
pub struct EnumMember {
    /// Its name.
    pub name: Word,
    /// Its value.
    pub value: u64,
    /// The value's place.
    pub value_span: Span,
}

/// A header's declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Its name.
    pub name: Word,
    /// Fields and parts in the order written.
    pub items: Vec<HeaderItem>,
}

/// A field or a part of a header.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderItem {
    /// The `///` text.
    pub doc: String,
    /// All of it.
    pub span: Span,
    /// Which one.
    pub kind: HeaderItemKind,
}

/// The kinds of header items.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderItemKind {
    /// A field; `name` is `_` for reserved bits.
    Field(Field),
    /// `length ihl * 4;`
    Length(Expr),
    /// `claims len when len != 0;`
    Claims { value: Expr, when: Option<Expr> },
    /// `valid version == 4;`
    Valid(Expr),
    /// `needs 4;`
    Needs(u64),
    /// `repeats 4;`
    Repeats(u64),
    /// `view flags: tcp_flags = cwr..fin;`
    View { name: Word, ty: Type, first: Word, last: Word },
    /// `options by kind { … }`
    Options { by: Word, items: Vec<OptionItem> },
    /// `options from hopopts, dstopts;`
    OptionsFrom(Vec<Word>),
    /// `next by type when … { 6 => tcp }`
    NextBy { scope: Option<Scope>, by: Vec<Expr>, alias: Option<Word>, when: Option<Expr>, edges: Vec<Edge> },
    /// `next inner.eth when …;`
    Next { target: Target, when: Option<Expr> },
}

/// A field of a header.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name, or `_`.
    pub name: Word,
    /// Its type.
    pub ty: Type,
    /// A default, or a checksum such as `internet(header)`.
    pub default: Option<Expr>,
    /// There only then.
    pub when: Option<Expr>,
}

/// An item of an option list.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionItem {
    /// A field that each option starts with.
    Field(Field),
    /// The option's length in bytes.
    Length(Expr),
    /// `end 0;`
    End { kind: u64, name: Option<Word> },
    /// `pad 1 => nop;`
    Pad { kind: u64, name: Option<Word> },
    /// `2 => mss { mss: u16; }`
    Option { kind: u64, name: Word, fields: Vec<Field> },
}

/// `6 | 7 | tcp => tcp`
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The values that select.
    pub values: Vec<SelectorValue>,
    /// What they select.
    pub target: Target,
}

/// A number, or an enum's member by its name.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectorValue {
    /// `53`
    Int(u64, Span),
    /// `udp`
    Word(Word),
}

/// Where an edge leads.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// One tunnel deeper, or into a quoted packet.
    pub scope: Option<Scope>,
    /// The header's name.
    pub header: Word,
}

/// Which packet: the tunnel's, or the one that an ICMP error quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// `inner.`
    Inner,
    /// `quoted.`
    Quoted,
}

/// What a `bind` adds to: `udp.port`, `ether_type`.
#[derive(Clone, Debug, PartialEq)]
pub struct BindSelector {
    /// A header, a union or an enum.
    pub name: Word,
    /// A field or an `as` name of it.
    pub field: Option<Word>,
}

/// A union's declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Union {
    /// Its name.
    pub name: Word,
    /// Its headers.
    pub members: Vec<Word>,
    /// How many of them in a row.
    pub repeats: Option<(u64, Span)>,
    /// Its fields.
    pub fields: Vec<UnionField>,
}

/// A field of a union.
#[derive(Clone, Debug, PartialEq)]
pub struct UnionField {
    /// The `///` text.
    pub doc: String,
    /// Its name.
    pub name: Word,
    /// Its alternatives in order; none: the field of that name in each member.
    pub alternatives: Vec<Expr>,
    /// There only then.
    pub when: Option<Expr>,
}

/// The content of a set.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// `{ 1, 5-9 }`
    Literal(Vec<Element>, Span),
    /// `file "x.txt"`
    File(StringLiteral),
}

/// The content of a map.
#[derive(Clone, Debug, PartialEq)]
pub enum Entries {
    /// `{ 10.0.0.0/8 => 1 }`
    Literal(Vec<(Element, Expr)>, Span),
    /// `file "x.csv"`
    File(StringLiteral),
}

/// An element of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// All of it.
    pub span: Span,
    /// Which one.
    pub kind: ElementKind,
}

/// The kinds of elements.
#[derive(Clone, Debug, PartialEq)]
pub enum ElementKind {
    /// A value, a prefix, a name; `_` is a path of that word.
    Item(Expr),
    /// `5-9`, both ends included.
    Range(Expr, Expr),
    /// `(10.0.0.0/8, tcp, 1-1023)`
    Tuple(Vec<Element>),
}

/// Options of live sets and maps.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveOption {
    /// `max 100k`
    Max(Number),
    /// `timeout 10min`
    Timeout(Duration),
    /// `lru`
    Lru(Span),
    /// `counted`
    Counted(Span),
}

/// A number, or a constant by its name.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// `100k`
    Int(u64, Span),
    /// `limit`
    Word(Word),
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration {
    /// In nanoseconds.
    pub nanoseconds: u64,
    /// Where it stands.
    pub span: Span,
}

/// `by ip.src max 1M`
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// A value or a tuple.
    pub by: Expr,
    /// How many keys at most.
    pub max: Number,
}

/// `10k packets/3s`
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// How much.
    pub amount: Amount,
    /// In which time, in nanoseconds.
    pub per: Duration,
}

/// `20k packets`, `rates[ip.proto] kbit`
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// A number or a path.
    pub value: Expr,
    /// `packets`, `kbit` …
    pub unit: Option<Word>,
}

/// An expression: condition or value.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// All of it.
    pub span: Span,
    /// Which one.
    pub kind: ExprKind,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `53`
    Int(u64),
    /// `192.0.2.1`, `2001:db8::1`
    Address(IpAddr),
    /// `10.0.0.0/8`; host bits are kept as written.
    Prefix(IpAddr, u8),
    /// `02:00:00:00:00:01`, first byte highest
    Mac(u64),
    /// `02:00:00:00:00:00/24`
    MacPrefix(u64, u8),
    /// `"…"`
    String(Vec<u8>),
    /// `true`
    Bool(bool),
    /// `vlan[1].vid`
    Path(Path),
    /// `(x)`
    Paren(Box<Expr>),
    /// `(x, y)`
    Tuple(Vec<Expr>),
    /// `not x`
    Not(Box<Expr>),
    /// `x and y and z`
    And(Vec<Expr>),
    /// `x or y or z`
    Or(Vec<Expr>),
    /// `x == y`
    Compare { op: CompareOp, left: Box<Expr>, right: Box<Expr> },
    /// `x in { … }`, `x not in s`, `x in 1-5`
    In { negated: bool, value: Box<Expr>, set: Box<InSet> },
    /// `x & y`
    Binary { op: BinaryOp, left: Box<Expr>, right: Box<Expr> },
    /// `x default y`
    Default { value: Box<Expr>, otherwise: Box<Expr> },
    /// What could not be read; already reported.
    Error,
}

/// The right side of `in`.
#[derive(Clone, Debug, PartialEq)]
pub enum InSet {
    /// `{ … }`
    Literal(Vec<Element>, Span),
    /// A name, or one bare value, range or prefix.
    Bare(Element),
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl CompareOp {
    /// How it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Equal => "==",
            CompareOp::NotEqual => "!=",
            CompareOp::Less => "<",
            CompareOp::LessEqual => "<=",
            CompareOp::Greater => ">",
            CompareOp::GreaterEqual => ">=",
        }
    }
}

/// Operators on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `&`
    And,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
}

impl BinaryOp {
    /// How it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::And => "&",
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
        }
    }
}

/// `tcp.option(mss).len`
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The first word.
    pub head: Word,
    /// What follows.
    pub steps: Vec<PathStep>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStep {
    /// With its dot or brackets.
    pub span: Span,
    /// Which one.
    pub kind: PathStepKind,
}

/// The kinds of steps.
#[derive(Clone, Debug, PartialEq)]
pub enum PathStepKind {
    /// `.src`
    Dot(Word),
    /// `[1]`, `[ip.proto, l4.dport]`
    Index(Vec<Expr>),
    /// `[0..4]`
    Slice(Box<Expr>, Box<Expr>),
    /// `(80)`
    Call(Vec<Expr>),
}

/// An item of an `xdp` block.
#[derive(Clone, Debug, PartialEq)]
pub enum XdpItem {
    /// `default drop;`
    Default { actions: Vec<Action>, span: Span },
    /// `priority 10;`
    Priority { value: u64, span: Span },
    /// `chain on pass, tx;`
    ChainOn { verdicts: Vec<(Verdict, Span)>, span: Span },
    /// `counters off;`
    CountersOff { span: Span },
    /// `on drop => count c;`
    On { verdicts: Vec<(Verdict, Span)>, actions: Vec<Action>, span: Span },
    /// A rule, `when` or `apply`.
    Stmt(Stmt),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The `///` text.
    pub doc: String,
    /// All of it.
    pub span: Span,
    /// Which one.
    pub kind: StmtKind,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `rule x: … => …;` (`colon`: where an unlabelled rule is shown)
    Rule { label: Option<Word>, condition: Expr, actions: Vec<Action> },
    /// `when … { … }`
    When { condition: Expr, body: Vec<Stmt> },
    /// `apply x;`
    Apply { chain: Path },
}

/// What happens to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// `pass`
    Pass,
    /// `drop`
    Drop,
    /// `abort`
    Abort,
    /// `tx`
    Tx,
    /// `redirect`
    Redirect,
}

impl Verdict {
    /// How the language writes it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Drop => "drop",
            Verdict::Abort => "abort",
            Verdict::Tx => "tx",
            Verdict::Redirect => "redirect",
        }
    }
}

/// An action of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// All of it.
    pub span: Span,
    /// Which one.
    pub kind: ActionKind,
}

/// The kinds of actions.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionKind {
    /// `pass`, `drop`, `abort`, `tx`
    Verdict(Verdict),
    /// `return`
    Return,
    /// `redirect "eth1" else drop`, `redirect peers[pkt.ifindex]`
    Redirect { target: RedirectTarget, otherwise: Option<Box<Else>> },
    /// `to cpu 4`
    ToCpu { cpu: Expr, otherwise: Option<Box<Else>> },
    /// `to xsk`
    ToXsk { otherwise: Option<Box<Else>> },
    /// `apply c`
    Apply { chain: Path },
    /// `count c`, `count s[ip.src]`
    Count { counter: Path },
    /// `limit m else drop`
    Limit { meter: Path, otherwise: Option<Box<Else>> },
    /// `add k to s for 60s`
    Add { key: Expr, set: Path, lifetime: Option<Duration>, otherwise: Option<Box<Else>> },
    /// `remove k from s`
    Remove { key: Expr, set: Path },
    /// `set tcp.dport = 80`, `set m[k] = v for 60s`
    Set { target: Path, value: Expr, lifetime: Option<Duration>, otherwise: Option<Box<Else>> },
    /// `swap ip.src with ip.dst`
    Swap { left: Path, right: Path },
    /// `push vlan(vid: 10)`
    Push { layer: Layer },
    /// `pop vlan`
    Pop { what: Word },
    /// `mark 5`
    Mark { value: Expr },
    /// `sample 1/100 first 96 bytes max 500/s`
    Sample { numerator: u64, denominator: u64, first: Option<Number>, max: Option<Rate> },
}

/// Where a redirect leads.
#[derive(Clone, Debug, PartialEq)]
pub enum RedirectTarget {
    /// A device by its name.
    Device(StringLiteral),
    /// A map's entry.
    Map(Path),
}

/// `else drop`, `else { … }`
#[derive(Clone, Debug, PartialEq)]
pub struct Else {
    /// All of it.
    pub span: Span,
    /// What is done in place of the rest.
    pub actions: Vec<Action>,
}

/// A step of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The clock, in nanoseconds from the test's start.
    pub at: Option<Duration>,
    /// All of it.
    pub span: Span,
    /// Which one.
    pub kind: StepKind,
}

/// The kinds of steps.
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// `repeat 100 every 10ms send eth / ipv4`
    Send { repeat: Option<(u64, Span)>, every: Option<Duration>, packet: Packet },
    /// `expect 25 pass, 1 drop by r with eth / ipv4`
    Expect { outcomes: Vec<Outcome>, with: Option<Packet> },
    /// `check x`
    Check(Expr),
    /// `add k to s`
    Add { key: Expr, set: Path, lifetime: Option<Duration> },
    /// `remove k from s`
    Remove { key: Expr, set: Path },
    /// `set p = 5`
    Set { target: Path, value: Expr },
    /// `replay "x.pcap" snapshot`
    Replay { file: StringLiteral },
}

/// `25 drop by chain.rule`
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How many of the repeated packets.
    pub count: Option<u64>,
    /// The verdict, or `return`.
    pub verdict: OutcomeVerdict,
    /// The deciding rule.
    pub by: Option<Path>,
    /// All of it.
    pub span: Span,
}

/// What a test expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeVerdict {
    /// That verdict.
    Verdict(Verdict),
    /// The chain under test did not decide.
    Return,
}

/// `eth / ipv4 / udp(dport: 53) / payload(8)`, outside in.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Its layers.
    pub layers: Vec<Layer>,
    /// All of it.
    pub span: Span,
}

/// `tcp(syn: 1, options: [mss(1460)])`
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// A header, `payload`, `pad`, `cut`, `pkt`, or an option in a list.
    pub name: Word,
    /// What stands in parentheses.
    pub args: Vec<Arg>,
    /// All of it.
    pub span: Span,
}

/// An argument of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// All of it.
    pub span: Span,
    /// Which one.
    pub kind: ArgKind,
}

/// The kinds of arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgKind {
    /// `dport: 53`
    Named { name: Word, value: Expr },
    /// `options: [mss(1460), nop]`
    List { name: Word, layers: Vec<Layer> },
    /// `600`, `"text"`
    Value(Expr),
}
