//! Types as written, enums, and what values a type can hold.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, TypeKind};

use crate::checker::Checker;
use crate::names::{Space, SymbolKind};
use crate::suggest::nearest;
use crate::typed::{EnumId, Program, Type};

/// Types that are not numbers, by their names.
const NAMED: &[(&str, Type)] = &[
    ("bool", Type::Bool),
    ("mac_addr", Type::Mac),
    ("ipv4_addr", Type::Ipv4),
    ("ipv6_addr", Type::Ipv6),
    ("ip_addr", Type::Ip),
    ("ip_prefix", Type::Ip),
    ("ipv4_prefix", Type::Ipv4),
    ("ipv6_prefix", Type::Ipv6),
    ("bytes", Type::Bytes),
];

impl<'a> Checker<'a> {
    /// Resolves a type; `bytes[n]` is [`Type::Bytes`], its length is looked up by whom it concerns.
    pub(crate) fn ty(&mut self, ty: &ast::Type, unit: usize) -> Option<Type> {
        let (name, length) = match &ty.kind {
            TypeKind::Named { name, length } => (name, *length),
            TypeKind::Tuple(parts) => return self.tuple_type(parts, unit),
        };
        if let Some(length) = length {
            return self.bytes_type(&name.text, length, ty.span);
        }
        if let Some((_, known)) = NAMED.iter().find(|(known, _)| *known == name.text) {
            return Some(known.clone());
        }
        if let Some(bits) = uint_bits(&name.text) {
            return Some(Type::Uint { bits });
        }
        match self.lookup(Space::Value, unit, &name.text).map(|id| self.symbols[id].kind) {
            Some(SymbolKind::Enum(id)) => Some(Type::Enum(id)),
            Some(kind) => {
                let title = format!("`{}` is {}, not a type", name.text, kind.describe());
                self.report(Diagnostic::error(
                    codes::UNKNOWN_TYPE,
                    title,
                    name.span,
                    "a type is needed here",
                ));
                None
            }
            None => {
                self.unknown_type(&name.text, unit, name.span);
                None
            }
        }
    }

    fn tuple_type(&mut self, parts: &[ast::Type], unit: usize) -> Option<Type> {
        let mut types = Vec::new();
        for part in parts {
            if let TypeKind::Tuple(_) = part.kind {
                let title = "a tuple holds single values";
                self.report(Diagnostic::error(codes::UNKNOWN_TYPE, title, part.span, "a tuple in a tuple"));
                return None;
            }
            types.push(self.ty(part, unit));
        }
        types.into_iter().collect::<Option<_>>().map(Type::Tuple)
    }

    fn bytes_type(&mut self, name: &str, length: u64, span: Span) -> Option<Type> {
        if name == "bytes" && (1..=1024).contains(&length) {
            return Some(Type::Bytes);
        }
        let (title, help) = if name == "bytes" {
            (format!("`bytes[{length}]` is no usable type"), "a field holds 1 to 1024 bytes")
        } else {
            (format!("`{name}` takes no length"), "only `bytes` does: `bytes[16]`")
        };
        self.report(Diagnostic::error(codes::UNKNOWN_TYPE, title, span, "this length").with_help(help));
        None
    }

    fn unknown_type(&mut self, name: &str, unit: usize, span: Span) {
        let numbers = (1..=64).map(|bits| format!("u{bits}")).collect::<Vec<_>>();
        let enums = self.visible(Space::Value, unit, |kind| matches!(kind, SymbolKind::Enum(_)));
        let known =
            NAMED.iter().map(|(name, _)| *name).chain(enums).chain(numbers.iter().map(String::as_str));
        let mut diagnostic = Diagnostic::error(
            codes::UNKNOWN_TYPE,
            format!("there is no type `{name}`"),
            span,
            "unknown type",
        )
        .with_note("types are u1 to u64, bool, mac_addr, ipv4_addr, ipv6_addr, ip_addr, ip_prefix, bytes, bytes[16], and enums by their names");
        if let Some(near) = nearest(name, known) {
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?"));
        }
        self.report(diagnostic);
    }

    /// The width of an enum's type; 64 after a mistake, so that its members raise no further errors.
    pub(crate) fn enum_bits(&mut self, ty: &ast::Type) -> u8 {
        if let TypeKind::Named { name, length: None } = &ty.kind
            && let Some(bits) = uint_bits(&name.text)
        {
            return bits;
        }
        let diagnostic = Diagnostic::error(
            codes::UNKNOWN_TYPE,
            "an enum's members are numbers",
            ty.span,
            "this is not the width of a number",
        )
        .with_help("write u1 to u64: `enum kind: u8 { … }`");
        self.report(diagnostic);
        64
    }

    /// Fills the enums.
    pub(crate) fn enums(&mut self) {
        for (id, _, members) in std::mem::take(&mut self.decls.enums) {
            for member in members {
                self.enum_member(id, member);
            }
        }
    }

    fn enum_member(&mut self, id: EnumId, member: &'a ast::EnumMember) {
        let name = &member.name.text;
        let bits = self.program.enums[id].bits;
        if member.value > max_of(bits) {
            let label = format!("{bits} bits hold at most {}", max_of(bits));
            let title = format!("{} does not fit in `{}`", member.value, self.program.enums[id].name);
            self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, member.value_span, label));
        }
        if self.program.enums[id].members.iter().any(|(known, _)| known == name) {
            let title = format!("`{name}` is declared twice");
            let diagnostic = Diagnostic::error(codes::NAME_CLASH, title, member.name.span, "again here")
                .with_help("a member has one value; one value may have several names");
            self.report(diagnostic);
            return;
        }
        self.program.enums[id].members.push((name.clone(), member.value));
    }
}

/// `u12` is 12.
fn uint_bits(name: &str) -> Option<u8> {
    let digits = name.strip_prefix('u')?;
    let bits: u8 = digits.parse().ok()?;
    ((1..=64).contains(&bits) && !digits.starts_with('0') && !digits.starts_with('+')).then_some(bits)
}

/// The largest number of `bits` bits.
pub(crate) fn max_of(bits: u8) -> u64 {
    u64::MAX >> (64 - u32::from(bits.clamp(1, 64)))
}

/// The value of an enum's member.
pub(crate) fn member(program: &Program, id: EnumId, name: &str) -> Option<u64> {
    program.enums[id].members.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
}

/// The width of a number's type; `None` for what is no number.
pub(crate) fn number_bits(program: &Program, ty: &Type) -> Option<u8> {
    match ty {
        Type::Uint { bits } => Some(*bits),
        Type::Enum(id) => Some(program.enums[*id].bits),
        Type::Bool | Type::Mac | Type::Ipv4 | Type::Ipv6 | Type::Ip | Type::Bytes | Type::Tuple(_) => None,
    }
}

/// Whether it is an address of either family.
pub(crate) fn is_address(ty: &Type) -> bool {
    matches!(ty, Type::Ipv4 | Type::Ipv6 | Type::Ip)
}

/// A type in a sentence.
pub(crate) fn describe(program: &Program, ty: &Type) -> String {
    match ty {
        Type::Bool => "a condition".into(),
        Type::Uint { bits: 64 } => "a number".into(),
        Type::Uint { bits } => format!("a number of {bits} bit{}", if *bits == 1 { "" } else { "s" }),
        Type::Enum(id) => format!("a number (`{}`)", program.enums[*id].name),
        Type::Mac => "a MAC address".into(),
        Type::Ipv4 => "an IPv4 address".into(),
        Type::Ipv6 => "an IPv6 address".into(),
        Type::Ip => "an IP address".into(),
        Type::Bytes => "bytes".into(),
        Type::Tuple(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| describe(program, part)).collect();
            format!("a tuple ({})", parts.join(", "))
        }
    }
}
