//! What programs see of packets.

use pktc_bpf::{Helper, Size};
use pktc_semantics::typed::Verdict;
use pktc_testing::engine::{Engine as _, Env};

use crate::asm::{EXIT, call, check, imm, load, mov, packet, store, vm};

#[test]
fn checks_see_the_linear_part_only() {
    let mut code = check(20);
    code.extend([load(Size::U8, 0, 6, 19), EXIT]);
    let mut vm = vm(&code, &[]);
    let mut run = |len, linear| vm.execute(&packet(len), &Env { linear, ..Env::default() }).unwrap();
    assert_eq!(run(20, None), 19);
    assert_eq!(run(19, None), 99);
    assert_eq!(run(100, Some(20)), 19);
    assert_eq!(run(100, Some(19)), 99);
    assert_eq!(run(0, None), 99);
}

#[test]
fn what_was_checked_does_not_outlive_the_run() {
    let mut code = check(4);
    code[5] = load(Size::U8, 0, 6, 3);
    code.extend([mov(0, imm(7)), EXIT]);
    let mut vm = vm(&code, &[]);
    assert_eq!(vm.execute(&packet(4), &Env::default()), Ok(7));
    assert!(vm.execute(&packet(3), &Env::default()).is_err(), "reads behind a failed check");
}

#[test]
fn a_check_outlives_helpers() {
    let mut code = check(4);
    code.extend([call(Helper::KtimeGetNs), load(Size::U8, 0, 6, 3), EXIT]);
    assert_eq!(vm(&code, &[]).execute(&packet(4), &Env::default()), Ok(3));
}

#[test]
fn programs_write_to_packets() {
    let mut code = check(4);
    code.extend([store(Size::U16, 6, 1, imm(-1)), mov(0, imm(3)), EXIT]);
    let mut vm = vm(&code, &[]);
    assert_eq!(vm.execute(&packet(5), &Env::default()), Ok(3));
    assert_eq!(vm.packet(), [0, 0xff, 0xff, 3, 4]);
}

#[test]
fn return_values_are_verdicts() {
    let verdicts = [Verdict::Abort, Verdict::Drop, Verdict::Pass, Verdict::Tx, Verdict::Redirect];
    for (code, verdict) in verdicts.into_iter().enumerate() {
        let outcome = vm(&[mov(0, imm(code as i32)), EXIT], &[]).run(&[], &Env::default()).unwrap();
        assert_eq!(outcome.verdict, verdict);
        assert_eq!(outcome.hits, []);
    }
}
