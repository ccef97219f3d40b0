//! Linked objects of clang's: one program that gives the verdicts of a chain.

use libtest_mimic::Trial;
use pktc_loader::{LoadOptions, MergeError, TestRun, load, merge, test_run};

use crate::{Outcome, kernel_test, objects};

const DROP: u32 = 1 << 1;
const PASS: u32 = 1 << 2;
const TX: u32 = 1 << 3;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        kernel_test("a_linked_program_is_the_chain", a_linked_program_is_the_chain),
        kernel_test("a_program_behind_one_that_ends_all_is_left_out", left_out),
        kernel_test("what_cannot_be_linked", what_cannot_be_linked),
    ]
}

/// A program of the chain: place, priority, verdicts that lead on.
type Member = (usize, u32, u32);

/// Name and object.
fn object(member: Member, entries: u32, license: &str) -> Result<(String, Vec<u8>), String> {
    let (place, priority, chain_on) = member;
    let name = format!("p{place}");
    let on = |verdict: u32| u32::from(chain_on & verdict != 0);
    let defines = [
        format!("-DNAME={name}"),
        format!("-DPLACE={place}"),
        format!("-DPRIORITY={priority}"),
        format!("-DON_DROP={}", on(DROP)),
        format!("-DON_PASS={}", on(PASS)),
        format!("-DON_TX={}", on(TX)),
        format!("-DENTRIES={entries}"),
        format!("-DLICENSE=\"{license}\""),
    ];
    Ok((format!("{name}.o"), objects::compile_with("chained", &defines)?))
}

/// What the dispatcher's chain gives, and which places run.
fn chain(members: &[Member], packet: &[u8]) -> (u32, Vec<usize>) {
    let mut ran = Vec::new();
    for &(place, _, chain_on) in members {
        ran.push(place);
        let verdict = u32::from(packet[place]);
        if (chain_on | 1 << 31) >> (verdict & 31) & 1 == 0 {
            return (verdict, ran);
        }
    }
    (2, ran)
}

fn a_linked_program_is_the_chain() -> Outcome {
    const VERDICTS: [u8; 7] = [0, 1, 2, 3, 4, 9, 31];
    // In the order of their priorities, which is not that of the files.
    let members = [(1, 5, PASS), (0, 20, DROP | TX), (2, 30, DROP | PASS)];
    let mut files = Vec::new();
    for member in [members[1], members[2], members[0]] {
        files.push(object(member, 4, "GPL")?);
    }
    let merged = merge(&files, "all").unwrap();
    assert_eq!(merged.programs, ["p1", "p0", "p2"]);
    let loaded = load(&merged.object, &LoadOptions::default()).unwrap();
    assert_eq!(loaded.programs.len(), 1);
    assert_eq!(loaded.maps.keys().filter(|name| *name == "seen").count(), 1, "{:?}", loaded.maps.keys());
    let mut runs = [0u64; 3];
    for packet in
        VERDICTS.iter().flat_map(|a| VERDICTS.iter().flat_map(move |b| VERDICTS.map(|c| [*a, *b, c])))
    {
        let mut frame = vec![0xee; 60];
        frame[..3].copy_from_slice(&packet);
        let (expected, ran) = chain(&members, &packet);
        let result = test_run(&loaded.programs[0], &frame, &TestRun::default()).unwrap();
        assert_eq!(result.verdict, expected, "{packet:?}");
        ran.into_iter().for_each(|place| runs[place] += 1);
    }
    for (place, expected) in runs.into_iter().enumerate() {
        let value = loaded.maps["seen"].lookup(&(place as u32).to_ne_bytes()).unwrap().unwrap();
        assert_eq!(u64::from_ne_bytes(value.try_into().unwrap()), expected, "place {place}");
    }
    Ok(())
}

fn left_out() -> Outcome {
    let ends = ("edge.o".to_owned(), objects::constant("edge", 1, false));
    let merged = merge(&[ends, object((1, 60, PASS), 4, "GPL")?], "all").unwrap();
    assert_eq!(merged.programs, ["edge"]);
    assert_eq!(merged.notes, ["program `edge` never leads on, so `p1` and what follows never runs"]);
    let loaded = load(&merged.object, &LoadOptions::default()).unwrap();
    assert_eq!(test_run(&loaded.programs[0], &[0; 60], &TestRun::default()).unwrap().verdict, 1);
    Ok(())
}

fn what_cannot_be_linked() -> Outcome {
    let first = object((1, 5, PASS), 4, "GPL")?;
    let refused = |other: (String, Vec<u8>)| merge(&[first.clone(), other], "all").unwrap_err();
    let error = refused(object((2, 5, PASS), 3, "GPL")?);
    assert!(matches!(&error, MergeError::Map { name, .. } if name == "seen"), "{error}");
    let text = error.to_string();
    assert!(text.contains("`p1.o`") && text.contains("`p2.o`") && text.contains("with 3 entries"), "{text}");
    assert!(matches!(refused(object((1, 5, PASS), 4, "GPL")?), MergeError::SameProgram { .. }));
    assert!(matches!(refused(object((2, 5, PASS), 4, "Proprietary")?), MergeError::License(_)));
    assert!(matches!(refused(("x.o".into(), b"\x7fELF".to_vec())), MergeError::Object { .. }));
    assert!(merge(&[first.clone(), object((2, 5, PASS), 4, "Dual BSD/GPL")?], "all").is_ok());
    for name in ["p1", "", "1st", "sixteen_letters_", "a-b"] {
        assert_eq!(merge(std::slice::from_ref(&first), name).unwrap_err(), MergeError::Name(name.into()));
    }
    assert_eq!(merge(&[], "all").unwrap_err(), MergeError::Nothing);
    Ok(())
}
