//! What the allocator leaves to be tidied: it splits lives, gives up on joining very many, and makes the same moves
//! on many edges.

mod duplicates;
mod redundant;
mod retarget;

use crate::emit::MachineFunction;

/// Runs over every block.
pub(crate) fn tidy_moves(function: &mut MachineFunction) {
    redundant::remove_redundant_moves(function);
    retarget::remove_detours(function);
    duplicates::merge_duplicates(function);
}
