//! The types of the BTF, one a line, numbered as other tools number them.

use std::fmt::Write as _;

use super::DumpError;
use crate::btf::Kind;
use crate::btf::reader::{Btf, Type};

/// Writes all types.
pub(super) fn list(out: &mut String, btf: &Btf<'_>) -> Result<(), DumpError> {
    writeln!(out, "\ntypes")?;
    for (ty, id) in btf.types().iter().zip(1..) {
        writeln!(out, "  [{id}] {}", describe(btf, ty, id))?;
    }
    Ok(())
}

fn describe(btf: &Btf<'_>, ty: &Type<'_>, id: u32) -> String {
    let (name, target) = (ty.name, ty.size_or_type);
    match ty.kind {
        Kind::Int => format!("integer {name}, {target} bytes"),
        Kind::Ptr | Kind::Array | Kind::Const | Kind::FuncProto => btf.spell(id),
        Kind::Struct => {
            let members = ty.tail.chunks_exact(3);
            let members = members.map(|member| format!("{} {}", btf.text(member[0]), btf.spell(member[1])));
            format!("{}, {target} bytes {{ {} }}", btf.spell(id), members.collect::<Vec<_>>().join("; "))
        }
        Kind::Func => format!("function {name}: {}", btf.spell(target)),
        Kind::Var => format!("variable {name}: {}", btf.spell(target)),
        Kind::Datasec => {
            let variables = ty.tail.chunks_exact(3);
            let variables =
                variables.map(|entry| format!("{}, {} bytes at {}", btf.spell(entry[0]), entry[2], entry[1]));
            format!("section {name}, {target} bytes {{ {} }}", variables.collect::<Vec<_>>().join("; "))
        }
    }
}
