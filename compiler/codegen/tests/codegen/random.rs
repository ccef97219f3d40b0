//! Random programs do as machine code what they mean as virtual code.

use crate::builder::{OPTIMISED, PLAIN, compile};
use crate::generator::{Random, generate};
use crate::{machine, virtual_machine};

/// How many programs are tried.
const PROGRAMS: u64 = 500;
/// On how many memories each.
const INPUTS: usize = 4;

#[test]
fn machine_code_does_what_virtual_code_means() {
    let (mut spilled, mut looped, mut executed) = (0, 0, [0; 2]);
    for seed in 0..PROGRAMS {
        let function = generate(seed);
        let programs = [PLAIN, OPTIMISED].map(|options| {
            compile(&function, &options).unwrap_or_else(|errors| panic!("seed {seed}: {errors:?}"))
        });
        spilled += u32::from(programs[1].stack > function.frame);
        looped += u32::from(programs[1].insns.iter().any(|insn| {
            matches!(*insn, pktc_bpf::Insn::Branch { target, .. } | pktc_bpf::Insn::Goto { target } if target < 0)
        }));
        let mut random = Random::new(seed);
        for _ in 0..INPUTS {
            let input = std::array::from_fn(|_| random.next() as u8);
            let meant = virtual_machine::run(&function, &input);
            for (program, executed) in programs.iter().zip(&mut executed) {
                let (done, steps) = machine::run(program, &input);
                assert_eq!(done, meant, "seed {seed}, {:?}", program.insns);
                *executed += steps;
            }
        }
    }
    assert!(spilled > 100 && looped > 100, "{spilled} programs spill, {looped} jump backwards");
    assert!(
        executed[1] < executed[0],
        "optimised code runs {} instructions, plain {}",
        executed[1],
        executed[0]
    );
}
