//! Flow IR to BPF over virtual registers.
//!
//! [`access`] holds how packet bytes are reached: one enum, a file a strategy. [`function`] lowers all else.

pub mod access;
mod cells;
mod code;
mod counters;
mod ends;
mod function;
mod layout;
mod maps;
pub mod vcode;

use pktc_bpf::MapIndex;
use pktc_ir::flow::Flow;

pub use access::Access;
pub use counters::CounterLayout;
pub use function::xdp_action;
use vcode::{VFunction, VModule};

/// Lowers all programs of an object; `named` is how many named counters they share.
#[must_use]
pub fn lower(flows: &[Flow], named: u32, access: Access) -> (VModule, CounterLayout) {
    let counters = CounterLayout::new(flows, named);
    let mut maps = counters.maps();
    let cells = MapIndex(maps.len() as u32);
    maps.extend(cells::map(flows));
    let programs = flows.iter().enumerate().map(|(index, flow)| {
        function::lower_function(flow, &counters, counters.first_rule(index), cells, access)
    });
    let programs: Vec<VFunction> = programs.collect();
    let caller = programs.iter().find(|program| program.calls_subprograms());
    let subprograms = caller.and_then(|program| access.subprogram(program.span)).into_iter().collect();
    (VModule { programs, subprograms, maps }, counters)
}
