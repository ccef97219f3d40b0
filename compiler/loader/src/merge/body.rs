//! One body of several programs: each `exit` becomes the question whether its verdict leads on, and a jump to the next
//! program if it does.
//!
//! ```text
//!         stack[context] = r1
//!         program 1, its exits: goto test 1
//! test 1: if verdict leads on from 1 goto next 1
//!         exit
//! next 1: r1 = stack[context]
//!         program 2 …
//! ```
//!
//! An exit right behind `r0 = VERDICT` needs no test. All programs use the same bytes of the stack: none sees what
//! another left, because the verifier lets no program read what it has not written.

use std::collections::HashSet;
use std::ops::Range;

use pktc_bpf::XdpAction;

use super::MergeError;
use crate::link::{Program, Reference};

const EXIT: u8 = 0x95;
const GOTO: u8 = 0x05;
const GOTO_LONG: u8 = 0x06;
const CALL: u8 = 0x85;
const LOAD_IMM64: u8 = 0x18;
/// `w0 = imm` and `r0 = imm`.
const MOV_IMM: [u8; 2] = [0xb4, 0xb7];
/// `dst += imm`
const ADD_IMM: u8 = 0x07;
const FRAME: u8 = 10;
/// The bytes of stack that a program has.
const STACK: i32 = 512;
/// A verdict that always leads on: none.
const NO_VERDICT: u32 = 31;
/// The source register of a call of a function.
const PSEUDO_CALL: u8 = 1;
/// The source register of a load of a function's address.
const PSEUDO_FUNC: u8 = 4;

/// A program's own function, or one that it calls.
#[derive(Debug, Default)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) code: Vec<[u8; 8]>,
    pub(super) references: Vec<Reference>,
    /// Slots that refer to functions, by their index in the list of all. Their immediates are those before relocation.
    pub(super) calls: Vec<(usize, usize)>,
    /// Its type; 0: none.
    pub(super) ty: u32,
    /// Records of `bpf_line_info`; offsets are slots.
    pub(super) lines: Vec<[u32; 4]>,
}

/// A program with the verdicts that lead on from it.
pub(super) struct Part<'a> {
    pub(super) program: &'a Program,
    /// Whether it returns nothing but `XDP_` actions.
    pub(super) exact: bool,
    /// Its functions, numbered among those of all programs.
    pub(super) functions: Vec<Function>,
}

/// Takes a program apart into its functions; `first` is the number of the first that it calls.
pub(super) fn split(program: &Program, first: usize) -> Result<Vec<Function>, MergeError> {
    let starts: Vec<usize> = program.starts.iter().map(|(start, _)| *start).collect();
    let within =
        |start: usize, end: usize| move |slot: usize| (start..end).contains(&slot).then(|| slot - start);
    let mut functions = Vec::new();
    for (n, (start, name)) in program.starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(program.code.len());
        let place = within(*start, end);
        let reference =
            |reference: &Reference| Some(Reference { slot: place(reference.slot)?, ..reference.clone() });
        let line =
            |&[slot, file, text, column]: &[u32; 4]| Some([place(slot as usize)? as u32, file, text, column]);
        let ty = program.functions.iter().find(|[slot, _]| *slot as usize == *start);
        let (mut code, calls) = (program.code[*start..end].to_vec(), calls(program, *start..end, first)?);
        for &(slot, _) in &calls {
            // A call counts from the instruction behind it, the load of an address does not.
            let before: i32 = if code[slot][0] == CALL { -1 } else { 0 };
            code[slot][4..].copy_from_slice(&before.to_le_bytes());
        }
        functions.push(Function {
            name: name.clone(),
            code,
            references: program.references.iter().filter_map(reference).collect(),
            calls,
            ty: ty.map_or(0, |[_, ty]| *ty),
            lines: program.lines.iter().filter_map(line).collect(),
        });
    }
    Ok(functions)
}

fn calls(program: &Program, function: Range<usize>, first: usize) -> Result<Vec<(usize, usize)>, MergeError> {
    let (base, code) = (function.start, &program.code[function]);
    let mut calls = Vec::new();
    for slot in instructions(code) {
        let [opcode, registers, _, _, imm @ ..] = code[slot];
        let kind = registers >> 4;
        if (opcode, kind) == (CALL, PSEUDO_CALL) || (opcode, kind) == (LOAD_IMM64, PSEUDO_FUNC) {
            let target = (base + slot + 1) as i64 + i64::from(i32::from_le_bytes(imm));
            let callee = program.starts.iter().position(|(start, _)| *start as i64 == target);
            match callee {
                Some(callee @ 1..) => calls.push((slot, first + callee - 1)),
                _ => return Err(MergeError::Recursion { program: program.name.clone() }),
            }
        }
    }
    Ok(calls)
}

/// The first slots of all instructions.
fn instructions(code: &[[u8; 8]]) -> impl Iterator<Item = usize> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let slot = next;
        next += if code.get(slot)?[0] == LOAD_IMM64 { 2 } else { 1 };
        Some(slot)
    })
}

/// Makes one function of all. Programs behind one that never leads on are left out; how many are in.
pub(super) fn join(parts: &[Part<'_>], name: &str) -> Result<(Function, usize), MergeError> {
    let depth = parts.iter().map(|part| depth(&part.functions[0].code)).max().unwrap_or(0);
    let context = (depth as u32).next_multiple_of(8) as i32 + 8;
    if context > STACK && parts.len() > 1 {
        return Err(MergeError::Stack);
    }
    let mut body = Function { name: name.to_owned(), ..Function::default() };
    if parts.len() > 1 {
        body.code.push(instruction(0x7b, 1 << 4 | FRAME, -context as i16, 0));
    }
    for (n, part) in parts.iter().enumerate() {
        let last = n + 1 == parts.len();
        let leads_on = body.add(part, last)?;
        if last || !leads_on {
            body.first_line();
            return Ok((body, n + 1));
        }
        body.code.push(instruction(0x79, FRAME << 4 | 1, -context as i16, 0));
    }
    Ok((body, parts.len()))
}

impl Function {
    /// Appends a program, so that verdicts that lead on fall out of its end; whether any does.
    fn add(&mut self, part: &Part<'_>, last: bool) -> Result<bool, MergeError> {
        let (own, base) = (&part.functions[0], self.code.len());
        self.code.extend(&own.code);
        let moved = |reference: &Reference| Reference { slot: reference.slot + base, ..reference.clone() };
        self.references.extend(own.references.iter().map(moved));
        self.calls.extend(own.calls.iter().map(|(slot, callee)| (slot + base, *callee)));
        let moved = |&[slot, file, text, column]: &[u32; 4]| [slot + base as u32, file, text, column];
        self.lines.extend(own.lines.iter().map(moved));

        let chain = part.program.slot.chain_on & !(1 << NO_VERDICT);
        if last && part.exact && chain & !XdpAction::Pass.bit() == 0 {
            return Ok(false);
        }
        let exits = exits(&own.code);
        let known = |verdict: u32| chain >> (verdict & 31) & 1 == 1 || verdict & 31 == NO_VERDICT;
        if exits.iter().any(|(_, verdict)| verdict.is_none()) {
            self.test(chain, part.exact);
        }
        let tested = self.code.len();
        let mut leads_on = exits.iter().any(|(_, verdict)| verdict.is_some_and(known));
        for (slot, verdict) in exits {
            let target = match verdict {
                Some(verdict) if known(verdict) => tested,
                Some(_) => continue,
                None => base + own.code.len(),
            };
            leads_on |= verdict.is_none() && (chain != 0 || !part.exact);
            self.code[base + slot] = goto(base + slot, target, &part.program.name)?;
        }
        if last && leads_on {
            // As the dispatcher does behind its last program.
            self.code.push(instruction(MOV_IMM[1], 0, 0, XdpAction::Pass as i32));
            self.code.push(instruction(EXIT, 0, 0, 0));
        }
        Ok(leads_on)
    }

    /// Appends the test of a verdict that is not known: what does not lead on ends here.
    fn test(&mut self, chain: u32, exact: bool) {
        if exact && chain.is_power_of_two() {
            // if w0 == VERDICT goto +1
            self.code.push(instruction(0x16, 0, 1, chain.trailing_zeros() as i32));
        } else if !exact || chain != 0 {
            let set = chain | if exact { 0 } else { 1 << NO_VERDICT };
            self.code.push(instruction(0xb4, 1, 0, 1));
            self.code.push(instruction(0x6c, 1, 0, 0));
            self.code.push(instruction(0x54, 1, 0, set as i32));
            self.code.push(instruction(0x56, 1, 1, 0));
        }
        self.code.push(instruction(EXIT, 0, 0, 0));
    }

    /// The kernel wants a line at the first instruction.
    fn first_line(&mut self) {
        if let Some(first) = self.lines.first_mut() {
            first[0] = 0;
        }
    }
}

/// The exits of a function, and the verdict where the instruction before says it and none jumps between.
fn exits(code: &[[u8; 8]]) -> Vec<(usize, Option<u32>)> {
    let targets = targets(code);
    let mut before = None;
    let mut exits = Vec::new();
    for slot in instructions(code) {
        let [opcode, registers, _, _, imm @ ..] = code[slot];
        if opcode == EXIT {
            exits.push((slot, before.filter(|_| !targets.contains(&slot))));
        }
        let is_verdict = MOV_IMM.contains(&opcode) && registers & 0xf == 0;
        before = is_verdict.then(|| u32::from_le_bytes(imm));
    }
    exits
}

fn targets(code: &[[u8; 8]]) -> HashSet<usize> {
    let jump = |slot: usize| {
        let [opcode, _, low, high, imm @ ..] = code[slot];
        let distance = match opcode {
            CALL | EXIT => return None,
            GOTO_LONG => i64::from(i32::from_le_bytes(imm)),
            _ if matches!(opcode & 7, 5 | 6) => i64::from(i16::from_le_bytes([low, high])),
            _ => return None,
        };
        usize::try_from(slot as i64 + 1 + distance).ok()
    };
    instructions(code).filter_map(jump).collect()
}

/// How many bytes of its stack a function may use: never less than it does.
fn depth(code: &[[u8; 8]]) -> i32 {
    let (mut direct, mut derived, mut beyond) = (0, 0, 0);
    for slot in instructions(code) {
        let [opcode, registers, low, high, imm @ ..] = code[slot];
        let (offset, imm) = (i32::from(i16::from_le_bytes([low, high])), i32::from_le_bytes(imm));
        // Loads have the address in the source register, stores in the destination.
        let base = match opcode & 7 {
            1 => registers >> 4,
            2 | 3 => registers & 0xf,
            _ => {
                if opcode == ADD_IMM && (-STACK..0).contains(&imm) {
                    derived = derived.max(-imm);
                }
                continue;
            }
        };
        if base == FRAME { direct = direct.max(-offset) } else { beyond = beyond.max(-offset) }
    }
    let derived = if derived == 0 { 0 } else { derived + beyond };
    direct.max(derived.min(STACK))
}

fn instruction(opcode: u8, registers: u8, offset: i16, imm: i32) -> [u8; 8] {
    let ([low, high], [a, b, c, d]) = (offset.to_le_bytes(), imm.to_le_bytes());
    [opcode, registers, low, high, a, b, c, d]
}

fn goto(from: usize, to: usize, program: &str) -> Result<[u8; 8], MergeError> {
    let distance = i16::try_from(to as i64 - from as i64 - 1);
    let too_long = |_| MergeError::TooLong { program: program.to_owned() };
    Ok(instruction(GOTO, 0, distance.map_err(too_long)?, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatcher::Slot;

    /// `if r1 == 0 goto +2; r0 = a; exit; r0 = b; exit`
    fn program(a: i32, b: i32, chain_on: u32) -> Program {
        let code = vec![
            instruction(0x15, 1, 2, 0),
            instruction(0xb7, 0, 0, a),
            instruction(EXIT, 0, 0, 0),
            instruction(0xb7, 0, 0, b),
            instruction(EXIT, 0, 0, 0),
        ];
        Program {
            name: "p".into(),
            frags: false,
            slot: Slot { priority: 50, chain_on, frags: false },
            starts: vec![(0, "p".into())],
            code,
            references: Vec::new(),
            functions: Vec::new(),
            lines: Vec::new(),
        }
    }

    fn part(program: &Program) -> Part<'_> {
        Part { program, exact: true, functions: split(program, 0).unwrap() }
    }

    #[test]
    fn known_verdicts_need_no_test() {
        let (first, second) = (program(1, 2, 0b100), program(1, 2, 0b100));
        let (body, count) = join(&[part(&first), part(&second)], "all").unwrap();
        assert_eq!(count, 2);
        assert_eq!(body.code.len(), 1 + 5 + 1 + 5);
        assert_eq!(body.code[3][0], EXIT, "drop ends");
        assert_eq!(body.code[5], instruction(GOTO, 0, 0, 0), "pass leads on");
        assert_eq!(body.code[6], instruction(0x79, FRAME << 4 | 1, -8, 0));
    }

    #[test]
    fn what_leads_on_from_the_last_passes() {
        let only = program(1, 2, 0b10);
        let (body, _) = join(&[part(&only)], "all").unwrap();
        assert_eq!(body.code[2], instruction(GOTO, 0, 2, 0));
        assert_eq!(body.code[5..], [instruction(0xb7, 0, 0, 2), instruction(EXIT, 0, 0, 0)]);
    }

    #[test]
    fn programs_that_are_never_reached_are_left_out() {
        let (first, second) = (program(1, 1, 0b100), program(1, 2, 0b100));
        let (body, count) = join(&[part(&first), part(&second)], "all").unwrap();
        assert_eq!((count, body.code.len()), (1, 1 + 5));
    }

    #[test]
    fn the_stack_is_never_underrated() {
        let store = instruction(0x7b, 1 << 4 | FRAME, -24, 0);
        assert_eq!(depth(&[store]), 24);
        let derived = [instruction(0xbf, FRAME << 4 | 2, 0, 0), instruction(ADD_IMM, 2, 0, -64)];
        assert_eq!(depth(&derived), 64);
        let beyond = [derived[0], derived[1], instruction(0x7b, 1 << 4 | 2, -8, 0)];
        assert_eq!(depth(&beyond), 72);
    }
}
