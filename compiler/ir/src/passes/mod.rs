//! Passes over flow IR: one file, one function each; what holds before holds after (`verify.rs`). [`PASSES`] are the
//! optional ones; every program needs [`bound_reach`], and one that is short of stack [`keep_in_cells`].

mod bound_reach;
mod keep_in_cells;
mod share_values;

use crate::flow::Flow;

pub use bound_reach::bound_reach;
pub use keep_in_cells::keep_in_cells;

/// A pass with its name.
pub type Pass = (&'static str, fn(&mut Flow));

/// The passes of `-O2`, in order.
pub const PASSES: [Pass; 1] = [
    // AFTER THIS POINT: along a way without joins nothing is computed twice.
    ("share_values", share_values::share_values),
];
