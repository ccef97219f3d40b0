//! The optional passes over values. None of them changes what the kernel's verifier can know: a constant stays
//! a constant, and what lowering hides from the verifier (`r - r` for an opaque zero, masks that break the link
//! between two registers) stays hidden. Pointer arithmetic is neither moved nor joined.

mod constants;
mod dead;
mod fixed;
mod operands;

use crate::ssa::Ssa;

/// Runs all passes.
pub(crate) fn optimise(ssa: &mut Ssa) {
    constants::fold_constants(ssa);
    constants::sink_constants(ssa);
    dead::remove_dead(ssa);
    operands::swap_operands(ssa);
    fixed::copy_before_fixed_uses(ssa);
}
