//! BPF type format: the section `.BTF`, which describes maps, variables and functions to loaders, tools and
//! the kernel (layout: the kernel's `include/uapi/linux/btf.h` and `Documentation/bpf/btf.rst`).
//!
//! [`Encoder`] makes one, [`reader`] takes one apart again for listings.

mod encoder;
pub(crate) mod reader;

pub(crate) use encoder::{Encoder, Member, TypeId, Variable};

/// `BTF_MAGIC`
pub(crate) const MAGIC: u16 = 0xeb9f;
/// `BTF_VERSION`
pub(crate) const VERSION: u8 = 1;
/// Bytes of `struct btf_header`.
pub(crate) const HEADER_BYTES: u32 = 24;

/// Kinds of types, as `BTF_KIND_…` numbers them; only those that pktc writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int = 1,
    Ptr = 2,
    Array = 3,
    Struct = 4,
    Const = 10,
    Func = 12,
    FuncProto = 13,
    Var = 14,
    Datasec = 15,
}

impl Kind {
    /// The kind with this number.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        const KINDS: [Kind; 9] = [
            Kind::Int,
            Kind::Ptr,
            Kind::Array,
            Kind::Struct,
            Kind::Const,
            Kind::Func,
            Kind::FuncProto,
            Kind::Var,
            Kind::Datasec,
        ];
        KINDS.into_iter().find(|kind| *kind as u32 == number)
    }
}
