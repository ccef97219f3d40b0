//! Programs on packets, and what they count.

use libtest_mimic::Trial;
use pktc_loader::{LoadOptions, Loaded, LoadedProgram, TestRun, TestRunError, load, test_run, with_device};

use crate::{Outcome, kernel_test, objects};

const DROP: u32 = 1;
const PASS: u32 = 2;
const TX: u32 = 3;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        kernel_test("verdicts_and_packets_come_back", verdicts_and_packets_come_back),
        kernel_test("counters_are_summed_over_cpus", counters_are_summed_over_cpus),
        kernel_test("elements_are_written_and_listed", elements_are_written_and_listed),
        kernel_test("a_short_linear_part_leaves_fragments", a_short_linear_part_leaves_fragments),
        kernel_test("device_and_queue_are_seen", device_and_queue_are_seen),
        kernel_test("packets_that_the_kernel_does_not_take", packets_that_the_kernel_does_not_take),
    ]
}

fn first_byte() -> Result<Loaded, String> {
    Ok(load(&objects::compile("first_byte")?, &LoadOptions::default()).unwrap())
}

fn program<'a>(loaded: &'a Loaded, name: &str) -> &'a LoadedProgram {
    loaded.programs.iter().find(|program| program.name == name).unwrap()
}

/// A frame of `length` bytes whose first is `first`.
fn frame(first: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![0xee; length];
    frame[0] = first;
    frame
}

fn verdicts_and_packets_come_back() -> Outcome {
    let loaded = first_byte()?;
    for (first, verdict) in [(0, PASS), (1, PASS), (2, DROP), (3, DROP), (4, PASS)] {
        let result =
            test_run(program(&loaded, "first_byte"), &frame(first, 60), &TestRun::default()).unwrap();
        assert_eq!(result.verdict, verdict, "first byte {first}");
        assert_eq!(result.packet, frame(first, 60));
    }
    Ok(())
}

fn counters_are_summed_over_cpus() -> Outcome {
    let loaded = first_byte()?;
    let counters = &loaded.maps["counters"];
    assert_eq!(counters.counters(0, 4).unwrap(), [(0, 0); 4]);
    let runs = TestRun { repeat: 10, ..TestRun::default() };
    test_run(program(&loaded, "first_byte"), &frame(2, 60), &runs).unwrap();
    test_run(program(&loaded, "first_byte"), &frame(0, 100), &TestRun::default()).unwrap();
    assert_eq!(counters.counters(0, 2).unwrap(), [(1, 100), (10, 600)]);
    assert_eq!(counters.counters(1, 3).unwrap(), [(10, 600), (0, 0), (0, 0)]);
    // One CPU's share each, by the general way.
    let value = counters.lookup(&1u32.to_ne_bytes()).unwrap().unwrap();
    let packets: u64 = value.chunks(16).map(|cpu| u64::from_ne_bytes(cpu[..8].try_into().unwrap())).sum();
    assert_eq!(packets, 10);
    assert!(counters.counters(3, 2).unwrap_err().to_string().contains("has no counters 3 to"));
    assert!(loaded.maps["prefixes"].counters(0, 1).is_err(), "values of another size");
    Ok(())
}

fn elements_are_written_and_listed() -> Outcome {
    let loaded = first_byte()?;
    let verdict =
        || test_run(program(&loaded, "look_up"), &frame(0, 60), &TestRun::default()).unwrap().verdict;
    assert_eq!(verdict(), PASS);
    let prefixes = &loaded.maps["prefixes"];
    let key = 32u64.to_ne_bytes();
    prefixes.update(&key, &7u32.to_ne_bytes()).unwrap();
    assert_eq!(verdict(), TX);
    assert_eq!(prefixes.keys().unwrap(), [key]);
    assert_eq!(prefixes.lookup(&key).unwrap().unwrap(), 7u32.to_ne_bytes());
    assert_eq!(prefixes.lookup(&(32u64 | 9 << 32).to_ne_bytes()).unwrap(), None);
    assert!(prefixes.lookup(&[0; 3]).unwrap_err().to_string().contains("has 8 bytes"));
    assert!(prefixes.update(&key, &[0; 5]).unwrap_err().to_string().contains("has 4 bytes"));
    Ok(())
}

fn a_short_linear_part_leaves_fragments() -> Outcome {
    let loaded = objects::load_frags(&objects::compile("fragments")?)?;
    let verdict = |linear| {
        let run = TestRun { linear, ..TestRun::default() };
        test_run(program(&loaded, "fragments"), &frame(0, 200), &run).map(|result| result.verdict)
    };
    assert_eq!(verdict(None).unwrap(), PASS);
    match verdict(Some(20)) {
        Err(TestRunError::Refused(error)) => {
            return Err(format!("no short linear parts on this kernel: {error}"));
        }
        other => assert_eq!(other.unwrap(), DROP),
    }
    assert_eq!(verdict(Some(200)).unwrap(), PASS);
    assert!(matches!(verdict(Some(201)), Err(TestRunError::LinearTooLong)));
    Ok(())
}

fn device_and_queue_are_seen() -> Outcome {
    let loaded = first_byte()?;
    let outside = test_run(program(&loaded, "device"), &frame(0, 60), &TestRun::default()).unwrap();
    assert_eq!(outside.verdict, PASS);
    let verdict = |queue| {
        let run = TestRun { ifindex: 77, queue, ..TestRun::default() };
        test_run(program(&loaded, "device"), &frame(0, 60), &run).map(|result| result.verdict)
    };
    assert!(matches!(verdict(0), Err(TestRunError::Refused(_))), "there is no such device here");
    let inside = with_device(77, 2, || {
        assert_eq!(verdict(0).unwrap(), PASS);
        assert_eq!(verdict(1).unwrap(), DROP);
        assert!(matches!(verdict(2), Err(TestRunError::Refused(_))), "there is no third queue");
    });
    inside.map_err(|error| format!("no device of its own: {error}"))
}

fn packets_that_the_kernel_does_not_take() -> Outcome {
    let loaded = first_byte()?;
    let error = test_run(program(&loaded, "first_byte"), &frame(0, 13), &TestRun::default()).unwrap_err();
    assert_eq!(error.to_string(), "the kernel runs no packet shorter than 14 bytes; this one has 13");
    let huge = test_run(program(&loaded, "first_byte"), &frame(0, 100_000), &TestRun::default());
    assert!(matches!(huge, Err(TestRunError::Refused(_))), "{huge:?}");
    Ok(())
}
