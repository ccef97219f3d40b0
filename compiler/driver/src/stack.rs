//! Programs that hold more at once than fits into the stack, or than the kernel's verifier follows there.

use pktc_diagnostics::{Diagnostic, codes};
use pktc_ir::flow::Flow;
use pktc_ir::passes::keep_in_cells;

use crate::pipeline::verified;

/// Bytes that a per-CPU array's entry may have (`PCPU_MIN_UNIT_SIZE`).
const LARGEST_ENTRY: u32 = 32 << 10;

/// From so many blocks on, programs are spared the stack.
const MANY_BLOCKS: usize = 1000;

/// Lets the variables of a large program wait in cells from the start. What lies on the stack the verifier follows byte
/// by byte, and walks what comes behind once for every way in which it may be filled: rules on tunnels cost it a quarter
/// with cells.
pub(crate) fn spare_verifier(flow: &mut Flow) {
    if flow.blocks.len() < MANY_BLOCKS {
        return;
    }
    let mut spared = flow.clone();
    keep_in_cells(&mut spared);
    verified(&spared, "keep_in_cells");
    if spared.cell_bytes() <= LARGEST_ENTRY {
        *flow = spared;
    }
}

/// After code generation gave `errors`: lets variables of the programs that need too much stack wait in cells.
///
/// # Errors
/// `errors`, if that is not all that is wrong, or was done already.
pub(crate) fn save_stack(flows: &mut [Flow], errors: Vec<Diagnostic>) -> Result<(), Vec<Diagnostic>> {
    for error in &errors {
        let flow = flows.iter_mut().find(|flow| flow.span == error.primary.span && flow.cells.is_empty());
        let Some(flow) = flow.filter(|_| error.code == codes::STACK_FULL) else { return Err(errors) };
        keep_in_cells(flow);
        verified(flow, "keep_in_cells");
        if !(1..=LARGEST_ENTRY).contains(&flow.cell_bytes()) {
            return Err(errors);
        }
    }
    Ok(())
}
