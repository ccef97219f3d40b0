//! Instructions, generic over registers and jump targets: the same type serves virtual registers with blocks
//! and machine registers with offsets.
#![expect(missing_docs, reason = "each variant's example names its fields")]

use crate::MapIndex;

/// A machine register, `r0` to `r10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u8);

impl Reg {
    /// Return value.
    pub const R0: Reg = Reg(0);
    /// First argument; the context at entry.
    pub const R1: Reg = Reg(1);
    /// The frame pointer, read only.
    pub const FP: Reg = Reg(10);
}

/// Whether an operation works on all 64 bits or on the low 32 (the upper half of the result is then 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    W32,
    W64,
}

/// Bytes of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    U8,
    U16,
    U32,
    U64,
}

impl Size {
    /// Bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            Size::U8 => 1,
            Size::U16 => 2,
            Size::U32 => 4,
            Size::U64 => 8,
        }
    }
}

/// Arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AluOp {
    Add,
    Sub,
    Mul,
    Div,
    Or,
    And,
    Lsh,
    Rsh,
    Mod,
    Xor,
    Mov,
    Arsh,
}

/// Conditions of jumps; `S…` are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
    /// `a & b != 0`
    Set,
    Sgt,
    Sge,
    Slt,
    Sle,
}

impl Condition {
    /// The condition that holds where this one does not, if there is an instruction for it.
    #[must_use]
    pub fn inverse(self) -> Option<Condition> {
        Some(match self {
            Condition::Eq => Condition::Ne,
            Condition::Ne => Condition::Eq,
            Condition::Gt => Condition::Le,
            Condition::Ge => Condition::Lt,
            Condition::Lt => Condition::Ge,
            Condition::Le => Condition::Gt,
            Condition::Set => return None,
            Condition::Sgt => Condition::Sle,
            Condition::Sge => Condition::Slt,
            Condition::Slt => Condition::Sge,
            Condition::Sle => Condition::Sgt,
        })
    }
}

/// Byte order conversions of a register's low bits; the bits above become 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swap {
    Be16,
    Be32,
    Be64,
    /// Keeps the low 16 bits (on a little-endian machine).
    Le16,
    Le32,
    Le64,
}

/// A register or a constant (sign-extended to 64 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand<R> {
    Reg(R),
    Imm(i32),
}

/// A subprogram of a module: an index into its subprograms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubprogramIndex(pub u32);

/// Kernel helpers by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Helper {
    MapLookupElem = 1,
    MapUpdateElem = 2,
    MapDeleteElem = 3,
    KtimeGetNs = 5,
    GetPrandomU32 = 7,
    GetSmpProcessorId = 8,
    /// 5.18
    XdpGetBuffLen = 188,
    /// 5.18
    XdpLoadBytes = 189,
    /// 5.18
    XdpStoreBytes = 190,
}

impl Helper {
    /// All of them.
    pub const ALL: [Helper; 9] = [
        Helper::MapLookupElem,
        Helper::MapUpdateElem,
        Helper::MapDeleteElem,
        Helper::KtimeGetNs,
        Helper::GetPrandomU32,
        Helper::GetSmpProcessorId,
        Helper::XdpGetBuffLen,
        Helper::XdpLoadBytes,
        Helper::XdpStoreBytes,
    ];

    /// The helper with that number, if it is one of [`Helper::ALL`].
    #[must_use]
    pub fn from_number(number: u32) -> Option<Helper> {
        Helper::ALL.into_iter().find(|helper| *helper as u32 == number)
    }

    /// Its name as the kernel's own listings show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Helper::MapLookupElem => "bpf_map_lookup_elem",
            Helper::MapUpdateElem => "bpf_map_update_elem",
            Helper::MapDeleteElem => "bpf_map_delete_elem",
            Helper::KtimeGetNs => "bpf_ktime_get_ns",
            Helper::GetPrandomU32 => "bpf_get_prandom_u32",
            Helper::GetSmpProcessorId => "bpf_get_smp_processor_id",
            Helper::XdpGetBuffLen => "bpf_xdp_get_buff_len",
            Helper::XdpLoadBytes => "bpf_xdp_load_bytes",
            Helper::XdpStoreBytes => "bpf_xdp_store_bytes",
        }
    }
}

/// Signed division (v4); a divisor of 0 gives 0 or leaves the dividend, as in unsigned division.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignedOp {
    Div,
    Mod,
}

/// Atomic operations other than [`Insn::AtomicAdd`]; those with a result need 5.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    Or,
    And,
    Xor,
    /// The old value goes to `src`.
    FetchAdd,
    FetchOr,
    FetchAnd,
    FetchXor,
    /// The old value goes to `src`.
    Exchange,
    /// Stores `src` if the old value is r0; the old value goes to r0.
    CompareExchange,
}

/// Instructions that pktc never emits, but that clang's objects contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Foreign<R, T> {
    /// `dst s/= src` (v4)
    SignedAlu { op: SignedOp, width: Width, dst: R, src: Operand<R> },
    /// `dst = (s8)src`: `from` is `U8` or `U16`, for [`Width::W64`] also `U32` (v4)
    MovSigned { from: Size, width: Width, dst: R, src: R },
    /// `dst = *(s8 *)(base + offset)`: size is not `U64` (v4)
    LoadSigned { size: Size, dst: R, base: R, offset: i16 },
    /// `dst = bswap16 dst`: size is not `U8` (v4)
    ByteSwap { size: Size, dst: R },
    /// `lock *(size *)(base + offset) op= src`; size is `U32` or `U64`
    Atomic { op: AtomicOp, size: Size, base: R, offset: i16, src: R },
    /// `gotol target`: a jump of 32 bits (v4)
    GotoLong { target: T },
    /// A call of a helper that is not in [`Helper`].
    CallNumber { number: u32 },
}

/// An instruction over registers `R` and jump targets `T`.
///
/// In machine code `R` is [`Reg`] and `T` an `i32`: the distance in 8-byte slots from the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Insn<R, T> {
    /// `dst op= src` (`dst = src` for `Mov`)
    Alu { op: AluOp, width: Width, dst: R, src: Operand<R> },
    /// `dst = -dst`
    Neg { width: Width, dst: R },
    /// `dst = be16 dst`
    Swap { swap: Swap, dst: R },
    /// `dst = imm ll`, two slots
    LoadImm64 { dst: R, imm: u64 },
    /// `dst = map`, two slots, relocated
    LoadMap { dst: R, map: MapIndex },
    /// `dst = &map[0] + offset`: an address inside a one-element array's value, two slots, relocated
    LoadMapValue { dst: R, map: MapIndex, offset: u32 },
    /// `dst = *(size *)(base + offset)`
    Load { size: Size, dst: R, base: R, offset: i16 },
    /// `*(size *)(base + offset) = src`
    Store { size: Size, base: R, offset: i16, src: Operand<R> },
    /// `lock *(size *)(base + offset) += src`; size is `U32` or `U64`
    AtomicAdd { size: Size, base: R, offset: i16, src: R },
    /// `goto target`
    Goto { target: T },
    /// `if left condition right goto target`
    Branch { condition: Condition, width: Width, left: R, right: Operand<R>, target: T },
    /// `call helper`: arguments in r1 to r5, result in r0; r1 to r5 are lost
    Call { helper: Helper },
    /// A call of a subprogram of the same section.
    CallLocal { target: T },
    /// A call of a subprogram of the module with so many arguments, relocated.
    CallSubprogram { subprogram: SubprogramIndex, arguments: u8 },
    /// `exit`
    Exit,
    /// What other compilers emit and pktc never does: it is decoded, shown and run.
    Foreign(Foreign<R, T>),
}

impl<R: Copy, T: Copy> Insn<R, T> {
    /// The same instruction with another kind of target.
    ///
    /// # Errors
    /// The one that `target` gives for the instruction's target, if it has one.
    pub fn try_retarget<U, E>(&self, target: impl FnOnce(T) -> Result<U, E>) -> Result<Insn<R, U>, E> {
        Ok(match *self {
            Insn::Alu { op, width, dst, src } => Insn::Alu { op, width, dst, src },
            Insn::Neg { width, dst } => Insn::Neg { width, dst },
            Insn::Swap { swap, dst } => Insn::Swap { swap, dst },
            Insn::LoadImm64 { dst, imm } => Insn::LoadImm64 { dst, imm },
            Insn::LoadMap { dst, map } => Insn::LoadMap { dst, map },
            Insn::LoadMapValue { dst, map, offset } => Insn::LoadMapValue { dst, map, offset },
            Insn::Load { size, dst, base, offset } => Insn::Load { size, dst, base, offset },
            Insn::Store { size, base, offset, src } => Insn::Store { size, base, offset, src },
            Insn::AtomicAdd { size, base, offset, src } => Insn::AtomicAdd { size, base, offset, src },
            Insn::Goto { target: to } => Insn::Goto { target: target(to)? },
            Insn::Branch { condition, width, left, right, target: to } => {
                Insn::Branch { condition, width, left, right, target: target(to)? }
            }
            Insn::Call { helper } => Insn::Call { helper },
            Insn::CallLocal { target: to } => Insn::CallLocal { target: target(to)? },
            Insn::CallSubprogram { subprogram, arguments } => Insn::CallSubprogram { subprogram, arguments },
            Insn::Exit => Insn::Exit,
            Insn::Foreign(foreign) => Insn::Foreign(foreign.try_retarget(target)?),
        })
    }
}

impl<R: Copy, T: Copy> Foreign<R, T> {
    fn try_retarget<U, E>(self, target: impl FnOnce(T) -> Result<U, E>) -> Result<Foreign<R, U>, E> {
        Ok(match self {
            Foreign::SignedAlu { op, width, dst, src } => Foreign::SignedAlu { op, width, dst, src },
            Foreign::MovSigned { from, width, dst, src } => Foreign::MovSigned { from, width, dst, src },
            Foreign::LoadSigned { size, dst, base, offset } => {
                Foreign::LoadSigned { size, dst, base, offset }
            }
            Foreign::ByteSwap { size, dst } => Foreign::ByteSwap { size, dst },
            Foreign::Atomic { op, size, base, offset, src } => {
                Foreign::Atomic { op, size, base, offset, src }
            }
            Foreign::GotoLong { target: to } => Foreign::GotoLong { target: target(to)? },
            Foreign::CallNumber { number } => Foreign::CallNumber { number },
        })
    }
}
