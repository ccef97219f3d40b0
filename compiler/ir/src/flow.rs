//! Flow IR: a control-flow graph in which packet reads are still abstract.
//!
//! There is one **cursor**, which stands at the start of a header. [`End::Check`] asks whether so many bytes
//! from the cursor on exist in the packet; [`Op::Read`] reads below what was checked since the cursor last moved.
//! How bytes are reached is the business of `lower`. [`Value`]s are 64-bit variables that may be assigned many
//! times; on every path each is assigned before it is read.
#![expect(missing_docs, reason = "each variant's example names its fields")]

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use pktc_bpf::{AluOp, Condition, Size, Width};
use pktc_diagnostics::Span;
use pktc_semantics::rules::RuleId;
use pktc_semantics::typed::{CounterId, Verdict};

/// A variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(u32);
entity_impl!(Value, "x");

/// A block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// A piece of memory in which a variable waits between the blocks that assign and read it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(u32);
entity_impl!(Cell, "cell");

/// A variable or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    Value(Value),
    Const(u64),
}

/// A program.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Where its name is declared.
    pub span: Span,
    /// The blocks; the first is the entry, with the cursor at the packet's start.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// The variables, with names for people (`ipv4.src`; empty for a temporary).
    pub values: PrimaryMap<Value, String>,
    /// The cells, with what they hold at most.
    pub cells: PrimaryMap<Cell, Size>,
    /// What [`End::Finish`] with a verdict counts the packet in besides, in order.
    pub on: Vec<(Verdict, CounterId)>,
    /// Whether [`Op::Hit`] and [`End::Finish`] count.
    pub counters: bool,
    /// How many rules it has, `default` included.
    pub rules: u32,
    /// Whether tests must not leave marks on the variables that they read: in long lists the kernel's verifier
    /// would otherwise walk the rest once for each constant that a variable was found equal to.
    pub hide_tests: bool,
}

/// Straight code with one end.
#[derive(Clone, Debug)]
pub struct BlockData {
    /// What it does, each with its source.
    pub ops: Vec<(Op, Span)>,
    /// How it ends.
    pub end: End,
    /// The source of the end.
    pub end_span: Span,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `dst = src`
    Copy { dst: Value, src: Arg },
    /// `dst = src & mask`, of which nobody knows more than the mask: where many ways meet, the verifier then sees no
    /// difference between them.
    Forget { dst: Value, src: Arg, mask: u64 },
    /// `dst = left op right` in 64 bits
    Alu { op: AluOp, dst: Value, left: Value, right: Arg },
    /// `dst` = the lowest `size` bytes of `src` in the other order
    Swap { dst: Value, src: Value, size: Size },
    /// `dst` = `size` bytes, `offset` behind the cursor, as they lie in the packet (little-endian)
    Read { dst: Value, offset: u32, size: Size },
    /// The same, `base` further on; the last check was of that base.
    ReadAt { dst: Value, base: Value, offset: u32, size: Size },
    /// Moves the cursor on.
    Advance { by: Arg },
    /// `dst` = the cursor's distance from the packet's start
    Position { dst: Value },
    /// `dst` = how many bytes there are from the cursor to the packet's end
    Remaining { dst: Value },
    /// `dst` = how many bytes there are from the cursor on at least: what can be told without asking
    Reachable { dst: Value },
    /// `dst` = the packet's length
    PacketLength { dst: Value },
    /// `dst` = the device's index
    Ifindex { dst: Value },
    /// `dst` = the receive queue
    Queue { dst: Value },
    /// `content` bytes from the cursor on are the packet's, as its outermost header with a length says: if that is
    /// more than is reached, counters must count it too.
    Claims { content: Value },
    /// Keeps `src`, which its cell has room for.
    Keep { cell: Cell, src: Value },
    /// `dst` = what the cell was given last
    Recall { dst: Value, cell: Cell },
    /// The rule's condition held: counts it. `ask`: nothing told how long the packet is ([`Op::Claims`]).
    Hit { rule: RuleId, ask: bool },
    /// Counts the packet in a named counter.
    Count { counter: CounterId, ask: bool },
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Goes on there.
    Goto(Block),
    /// By a comparison of unsigned numbers (unless the condition says signed); `otherwise` is walked first.
    Branch { condition: Condition, width: Width, left: Value, right: Arg, then: Block, otherwise: Block },
    /// By a test of bits: `left & mask == value`; `then` is walked first.
    Masked { left: Value, size: Size, mask: u64, value: u64, then: Block, otherwise: Block },
    /// Whether `bytes` from the cursor (or from `base` bytes behind it) on exist.
    Check { base: Option<Value>, bytes: Arg, ok: Block, short: Block },
    /// The same for a place `position` bytes behind the packet's start, to which the cursor moves.
    Seek { position: Value, bytes: Arg, ok: Block, short: Block },
    /// Where many ways meet: forgets how the cursor came where it is. `short`: it lies beyond every bound.
    Canon { ok: Block, short: Block },
    /// Ends the program; the rule (or `default`) that decides is counted, unless it was before.
    Finish { rule: Option<RuleId>, verdict: Verdict, ask: bool },
}

impl Flow {
    /// Which blocks may go on to each, once for each way.
    #[must_use]
    pub fn predecessors(&self) -> SecondaryMap<Block, Vec<Block>> {
        let mut leading: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
        for (block, data) in self.blocks.iter() {
            data.end.targets().into_iter().for_each(|target| leading[target].push(block));
        }
        leading
    }

    /// Bytes that all cells take, each aligned to its size.
    #[must_use]
    pub fn cell_bytes(&self) -> u32 {
        self.cells.values().map(|size| size.bytes()).sum::<u32>().next_multiple_of(8)
    }
}

impl Arg {
    fn value(self) -> Option<Value> {
        match self {
            Arg::Value(value) => Some(value),
            Arg::Const(_) => None,
        }
    }
}

impl Op {
    /// The variables that it reads.
    pub fn reads(&self) -> impl Iterator<Item = Value> + use<> {
        let (first, second) = match *self {
            Op::Copy { src, .. } | Op::Forget { src, .. } => (src.value(), None),
            Op::Alu { left, right, .. } => (Some(left), right.value()),
            Op::Swap { src, .. } | Op::Keep { src, .. } => (Some(src), None),
            Op::ReadAt { base, .. } => (Some(base), None),
            Op::Claims { content } => (Some(content), None),
            Op::Advance { by } => (by.value(), None),
            Op::Read { .. }
            | Op::Position { .. }
            | Op::Remaining { .. }
            | Op::Reachable { .. }
            | Op::PacketLength { .. }
            | Op::Ifindex { .. }
            | Op::Queue { .. }
            | Op::Recall { .. }
            | Op::Hit { .. }
            | Op::Count { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The variable that it assigns.
    #[must_use]
    pub fn assigns(&self) -> Option<Value> {
        match *self {
            Op::Copy { dst, .. }
            | Op::Forget { dst, .. }
            | Op::Alu { dst, .. }
            | Op::Swap { dst, .. }
            | Op::Read { dst, .. }
            | Op::ReadAt { dst, .. }
            | Op::Position { dst }
            | Op::Remaining { dst }
            | Op::Reachable { dst }
            | Op::PacketLength { dst }
            | Op::Ifindex { dst }
            | Op::Queue { dst }
            | Op::Recall { dst, .. } => Some(dst),
            Op::Advance { .. } | Op::Claims { .. } | Op::Keep { .. } | Op::Hit { .. } | Op::Count { .. } => {
                None
            }
        }
    }
}

impl End {
    /// The variables that it reads.
    pub fn reads(&self) -> impl Iterator<Item = Value> + use<> {
        let (first, second) = match *self {
            End::Branch { left, right, .. } => (Some(left), right.value()),
            End::Masked { left, .. } => (Some(left), None),
            End::Check { base, bytes, .. } => (base, bytes.value()),
            End::Seek { position, bytes, .. } => (Some(position), bytes.value()),
            End::Goto(_) | End::Canon { .. } | End::Finish { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Where it may go on.
    #[must_use]
    pub fn targets(&self) -> Vec<Block> {
        match *self {
            End::Goto(target) => vec![target],
            End::Branch { then, otherwise, .. } | End::Masked { then, otherwise, .. } => {
                vec![otherwise, then]
            }
            End::Check { ok, short, .. } | End::Seek { ok, short, .. } | End::Canon { ok, short } => {
                vec![ok, short]
            }
            End::Finish { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
impl Flow {
    /// A flow for tests, of these blocks; `values` is how many variables they use.
    pub(crate) fn of(blocks: Vec<(Vec<Op>, End)>, values: usize) -> Flow {
        let span = Span { file: pktc_diagnostics::FileId(0), start: 0, end: 0 };
        let data = |(ops, end): (Vec<Op>, End)| BlockData {
            ops: ops.into_iter().map(|op| (op, span)).collect(),
            end,
            end_span: span,
        };
        Flow {
            name: "t".into(),
            span,
            blocks: blocks.into_iter().map(data).collect(),
            values: std::iter::repeat_n(String::new(), values).collect(),
            cells: PrimaryMap::new(),
            on: Vec::new(),
            counters: false,
            rules: 1,
            hide_tests: false,
        }
    }
}
