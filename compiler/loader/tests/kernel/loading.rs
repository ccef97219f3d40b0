//! What is loaded, what is refused and in which words.

use libtest_mimic::Trial;
use pktc_loader::{LoadError, LoadOptions, Mode, ObjectError, load, read_metadata};

use crate::{Outcome, kernel_test, objects};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        kernel_test("all_programs_and_maps_are_loaded", all_programs_and_maps_are_loaded),
        kernel_test("one_program_is_loaded", one_program_is_loaded),
        kernel_test(
            "an_unknown_program_is_refused_with_the_names",
            an_unknown_program_is_refused_with_the_names,
        ),
        kernel_test("the_verifiers_reason_is_told", the_verifiers_reason_is_told),
        kernel_test(
            "what_the_verifier_gives_up_on_comes_with_advice",
            what_the_verifier_gives_up_on_comes_with_advice,
        ),
        kernel_test("programs_of_other_hooks_are_refused", programs_of_other_hooks_are_refused),
        kernel_test("metadata_is_bound_and_read_back", metadata_is_bound_and_read_back),
        kernel_test("skb_mode_clears_the_flag_for_fragments", skb_mode_clears_the_flag_for_fragments),
        kernel_test("damaged_objects_are_errors", damaged_objects_are_errors),
    ]
}

fn all_programs_and_maps_are_loaded() -> Outcome {
    let loaded = load(&objects::compile("first_byte")?, &LoadOptions::default()).unwrap();
    let names: Vec<_> = loaded.programs.iter().map(|program| program.name.as_str()).collect();
    assert_eq!(names, ["first_byte", "look_up", "device"]);
    let maps: Vec<_> = loaded.maps.keys().map(String::as_str).collect();
    assert_eq!(maps, [".rodata", "counters", "prefixes"]);
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    // Ten instructions at the least, and no loop: the verifier cannot have walked fewer, nor many more.
    let processed = loaded.programs[0].processed.unwrap();
    assert!((10..200).contains(&processed), "{processed}");
    let table = loaded.maps[".rodata"].lookup(&0u32.to_ne_bytes()).unwrap().unwrap();
    assert_eq!(table, [0, 0, 1, 1]);
    let frozen = loaded.maps[".rodata"].update(&0u32.to_ne_bytes(), &[1; 4]).unwrap_err();
    assert_eq!(frozen.kind(), std::io::ErrorKind::PermissionDenied);
    Ok(())
}

fn one_program_is_loaded() -> Outcome {
    let options = LoadOptions { program: Some("look_up".into()), ..LoadOptions::default() };
    let loaded = load(&objects::compile("first_byte")?, &options).unwrap();
    assert_eq!(loaded.programs.len(), 1);
    assert_eq!(loaded.programs[0].name, "look_up");
    assert_ne!(loaded.programs[0].id, 0);
    Ok(())
}

fn an_unknown_program_is_refused_with_the_names() -> Outcome {
    let options = LoadOptions { program: Some("edge".into()), ..LoadOptions::default() };
    let error = load(&objects::compile("first_byte")?, &options).unwrap_err();
    let text = "the object has no program `edge`; it has first_byte, look_up, device";
    assert_eq!(error.to_string(), text);
    Ok(())
}

fn the_verifiers_reason_is_told() -> Outcome {
    let error = load(&objects::compile("unchecked")?, &LoadOptions::default()).unwrap_err();
    let LoadError::Verifier { program, log, .. } = &error else { panic!("{error}") };
    assert_eq!(program, "unchecked");
    // Up to 6.18 "R1 offset is outside of the packet", in 7.2 "… of the allowed memory range".
    assert!(log.reason().starts_with("R1 ") && log.reason().contains("is outside of the"), "{log}");
    assert!(log.full().contains("invalid access to packet"), "{log:?}");
    assert!(log.source_line().unwrap().starts_with("return data[20] == 1"), "{log}");
    assert!(error.to_string().starts_with("the kernel's verifier refuses program `unchecked`: R1 "));
    Ok(())
}

fn what_the_verifier_gives_up_on_comes_with_advice() -> Outcome {
    let error = load(&objects::compile("too_long")?, &LoadOptions::default()).unwrap_err().to_string();
    let start =
        "the kernel's verifier refuses program `too_long`: it has more ways than the verifier follows";
    assert!(error.starts_with(start) && error.contains("Processed 1000001 insn"), "{error}");
    assert!(error.contains("`--access bytes`, or `direct`") && error.lines().count() == 2, "{error}");
    Ok(())
}

fn programs_of_other_hooks_are_refused() -> Outcome {
    let error = load(&objects::compile("not_xdp")?, &LoadOptions::default()).unwrap_err();
    assert!(
        matches!(&error, LoadError::Object(ObjectError::NoProgram(sections)) if sections == &["tc"]),
        "{error:?}"
    );
    assert!(error.to_string().contains("its code is in `tc`"), "{error}");
    Ok(())
}

fn metadata_is_bound_and_read_back() -> Outcome {
    let loaded = load(&objects::constant("edge", 1, false), &LoadOptions::default()).unwrap();
    assert!(loaded.notes.is_empty(), "{:?}", loaded.notes);
    let json = read_metadata(loaded.programs[0].id).unwrap().unwrap();
    let metadata = pktc_object::Metadata::from_json(&json).unwrap();
    assert_eq!(metadata.programs[0].name, "edge");
    let foreign = load(&objects::compile("foreign")?, &LoadOptions::default()).unwrap();
    assert_eq!(read_metadata(foreign.programs[0].id).unwrap(), None);
    Ok(())
}

fn skb_mode_clears_the_flag_for_fragments() -> Outcome {
    let object = objects::constant("edge", 1, true);
    let native = objects::load_frags(&object)?;
    assert!(native.notes.is_empty(), "{:?}", native.notes);
    let skb = load(&object, &LoadOptions { mode: Mode::Skb, ..LoadOptions::default() }).unwrap();
    assert_eq!(skb.notes.len(), 1);
    assert!(skb.notes[0].contains("in skb mode"), "{}", skb.notes[0]);
    let loopback = LoadOptions { interface: Some("lo".into()), ..LoadOptions::default() };
    let loopback = load(&object, &loopback).unwrap();
    assert!(loopback.notes[0].contains("on lo"), "{}", loopback.notes[0]);
    let without = LoadOptions { without_frags: true, ..LoadOptions::default() };
    let without = load(&object, &without).unwrap();
    assert!(without.notes[0].contains("with this driver"), "{}", without.notes[0]);
    let flags = [&native, &skb, &loopback, &without].map(|loaded| loaded.programs[0].frags);
    assert_eq!(flags, [true, false, false, false]);
    Ok(())
}

/// Each must be refused or loaded; a panic fails the test. The reader itself is tried byte by byte in its own tests.
fn damaged_objects_are_errors() -> Outcome {
    let object = objects::compile("first_byte")?;
    for length in (0..object.len()).step_by(100) {
        let error = load(&object[..length], &LoadOptions::default()).unwrap_err();
        assert!(matches!(error, LoadError::Object(_)), "{length}: {error}");
    }
    let mut random: u64 = 0x5eed;
    for _ in 0..300 {
        let mut damaged = object.clone();
        for _ in 0..4 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (random >> 33) as usize % damaged.len();
            damaged[at] = (random >> 20) as u8;
        }
        let _ = load(&damaged, &LoadOptions::default());
    }
    Ok(())
}
