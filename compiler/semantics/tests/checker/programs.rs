//! Programs that compile, and what is made of them.

use crate::support::program;

#[test]
fn first() {
    let program = program("xdp t { default pass; rule m: udp.dport == 53 => drop; }");
    println!("{}", pktc_semantics::dump(&program));
}
