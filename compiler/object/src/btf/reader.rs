//! Reading BTF, for listings: only the kinds that pktc writes.

use super::{HEADER_BYTES, Kind, MAGIC};

/// What a section of BTF holds.
pub(crate) struct Btf<'a> {
    /// The types; type number `n` is at `n - 1`.
    types: Vec<Type<'a>>,
    strings: &'a [u8],
}

/// A type.
pub(crate) struct Type<'a> {
    pub(crate) kind: Kind,
    /// Empty if it has none.
    pub(crate) name: &'a str,
    /// Its bytes, or the type that it refers to.
    pub(crate) size_or_type: u32,
    /// The words after `struct btf_type`.
    pub(crate) tail: Vec<u32>,
}

/// The word at `at`.
pub(crate) fn word(bytes: &[u8], at: usize) -> Result<u32, &'static str> {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    four.map(|four| u32::from_le_bytes(*four)).ok_or("it is cut off")
}

/// The text at `offset` of a string table.
pub(crate) fn text(strings: &[u8], offset: u32) -> Result<&str, &'static str> {
    let rest = strings.get(offset as usize..).ok_or("a string lies outside the string table")?;
    let end = rest.iter().position(|&byte| byte == 0).ok_or("a string has no end")?;
    std::str::from_utf8(&rest[..end]).map_err(|_| "a string is not UTF-8")
}

impl<'a> Btf<'a> {
    /// Takes the section `.BTF` apart.
    pub(crate) fn parse(section: &'a [u8]) -> Result<Self, &'static str> {
        if section.first_chunk::<2>() != Some(&MAGIC.to_le_bytes()) {
            return Err("it does not start with BTF's magic number");
        }
        let header = word(section, 4)?;
        if header < HEADER_BYTES {
            return Err("its header is too short");
        }
        let part = |at| -> Result<&'a [u8], &'static str> {
            let start = word(section, at)? as usize + header as usize;
            let end = start + word(section, at + 4)? as usize;
            section.get(start..end).ok_or("it is cut off")
        };
        let (types, strings) = (part(8)?, part(16)?);
        Ok(Btf { types: parse_types(types, strings)?, strings })
    }

    /// All types in order; the first is number 1.
    pub(crate) fn types(&self) -> &[Type<'a>] {
        &self.types
    }

    /// Type number `id`; 0 is `void`, which has no record.
    pub(crate) fn get(&self, id: u32) -> Option<&Type<'a>> {
        self.types.get((id as usize).checked_sub(1)?)
    }

    /// The text at `offset` of the string table, or a mark that there is none.
    pub(crate) fn text(&self, offset: u32) -> &'a str {
        text(self.strings, offset).unwrap_or("<bad string>")
    }

    /// How C would write a reference to type `id`; the depth is bounded, because damaged BTF may be circular.
    pub(crate) fn spell(&self, id: u32) -> String {
        self.spell_within(id, 8)
    }

    fn spell_within(&self, id: u32, depth: u32) -> String {
        if id == 0 {
            return "void".into();
        }
        let Some(ty) = self.get(id).filter(|_| depth > 0) else { return format!("<type {id}>") };
        let inner = |id| self.spell_within(id, depth - 1);
        match ty.kind {
            Kind::Ptr => format!("{} *", inner(ty.size_or_type)),
            Kind::Const => format!("const {}", inner(ty.size_or_type)),
            Kind::Array => format!("{}[{}]", inner(ty.tail[0]), ty.tail[2]),
            Kind::Struct if ty.name.is_empty() => format!("struct #{id}"),
            Kind::Struct => format!("struct {}", ty.name),
            Kind::FuncProto => {
                let arguments: Vec<String> =
                    ty.tail.chunks_exact(2).map(|argument| inner(argument[1])).collect();
                format!("{} ({})", inner(ty.size_or_type), arguments.join(", "))
            }
            Kind::Int | Kind::Func | Kind::Var | Kind::Datasec => ty.name.to_owned(),
        }
    }
}

fn parse_types<'a>(mut bytes: &[u8], strings: &'a [u8]) -> Result<Vec<Type<'a>>, &'static str> {
    let mut types = Vec::new();
    while !bytes.is_empty() {
        let (name, info, size_or_type) = (word(bytes, 0)?, word(bytes, 4)?, word(bytes, 8)?);
        let kind =
            Kind::from_number(info >> 24 & 0x1f).ok_or("it has a kind of type that pktc does not write")?;
        let words = tail_words(kind, info & 0xffff);
        let tail = (0..words).map(|index| word(bytes, 12 + index * 4)).collect::<Result<_, _>>()?;
        types.push(Type { kind, name: text(strings, name)?, size_or_type, tail });
        bytes = &bytes[12 + words * 4..];
    }
    Ok(types)
}

/// How many words follow a type of this kind with `vlen` parts.
fn tail_words(kind: Kind, vlen: u32) -> usize {
    let vlen = vlen as usize;
    match kind {
        Kind::Int | Kind::Var => 1,
        Kind::Ptr | Kind::Const | Kind::Func => 0,
        Kind::Array => 3,
        Kind::Struct | Kind::Datasec => vlen * 3,
        Kind::FuncProto => vlen * 2,
    }
}
