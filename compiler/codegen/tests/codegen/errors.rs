//! What cannot be built, and what is said then.

use pktc_bpf::Operand::{Imm, Reg};
use pktc_bpf::{AluOp, Condition};
use pktc_diagnostics::{FileId, Span, codes};

use crate::builder::{Builder, OPTIMISED, PLAIN, compile};
use crate::long::far_targets;

#[test]
fn says_how_much_stack_is_missing() {
    let mut code = Builder::new();
    code.function.span = Span { file: FileId(0), start: 40, end: 45 };
    code.function.frame = 512;
    let fields: Vec<_> = (0..14).map(|offset| code.load(offset)).collect();
    let forwards = code.sum(&fields);
    let all: Vec<_> = std::iter::once(forwards).chain(fields).collect();
    let sum = code.sum(&all);
    code.exit(Reg(sum));
    let errors = compile(&code.function, &OPTIMISED).expect_err("it needs more than 512 bytes");
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].code, codes::STACK_FULL);
    assert_eq!(errors[0].primary.span, code.function.span);
    assert!(errors[0].title.starts_with("program `t` needs 5"), "{}", errors[0].title);
    assert!(!errors[0].help.is_empty());
}

#[test]
fn thousands_of_values_are_still_counted() {
    let mut code = Builder::new();
    let fields: Vec<_> = (0..5000).map(|offset| code.load(offset % 100)).collect();
    let reversed: Vec<_> = fields.iter().rev().copied().collect();
    let sum = code.sum(&reversed);
    code.exit(Reg(sum));
    let errors = compile(&code.function, &OPTIMISED).expect_err("5000 values do not fit");
    assert_eq!(errors[0].code, codes::STACK_FULL);
}

#[test]
fn says_that_a_program_is_too_long() {
    let mut code = Builder::new();
    let sum = code.load(0);
    for _ in 0..1_000_000 {
        code.alu_to(AluOp::Add, sum, sum, Imm(1));
    }
    code.exit(Reg(sum));
    let errors = compile(&code.function, &OPTIMISED).expect_err("more than a million instructions");
    assert_eq!(errors[0].code, codes::PROGRAM_TOO_LONG);
    assert!(errors[0].title.contains("1000001 instructions or more"), "{}", errors[0].title);
}

#[test]
fn says_that_jumps_do_not_reach() {
    let code = far_targets(15_000, 20_000);
    let errors = compile(&code.function, &PLAIN).expect_err("15,000 jumps over 20,000 instructions");
    assert_eq!(errors[0].code, codes::PROGRAM_TOO_LONG);
    assert!(errors[0].title.ends_with("jumps do not reach their targets"), "{}", errors[0].title);
}

#[test]
fn a_register_written_on_some_ways_only_is_a_mistake_of_the_compiler() {
    let mut code = Builder::new();
    let (other, join) = (code.block(), code.block());
    let (field, result) = (code.load(0), code.reg());
    code.branch(Condition::Eq, field, Imm(1), other);
    code.set(result, 1);
    code.goto(join, other);
    code.goto(join, join);
    code.exit(Reg(result));
    let errors = compile(&code.function, &OPTIMISED).expect_err("the result is not always written");
    assert_eq!(errors[0].code, codes::BROKEN_CODE);
    assert!(errors[0].notes[0].contains("not written on every way"), "{:?}", errors[0].notes);
}
