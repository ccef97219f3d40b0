//! Objects that are damaged.

use super::*;
use crate::image::tests::object;

#[test]
fn a_linked_object_is_read_back() {
    let object = object();
    let merged = merge(&[("a.o".into(), object)], "all").unwrap();
    let image = Image::parse(&merged.object).unwrap();
    assert_eq!(image.programs[0].name, "all");
    assert!(image.programs[0].frags);
    assert_eq!(image.programs[0].lines.len(), 1);
    let metadata = pktc_object::read_metadata(&merged.object).unwrap();
    assert_eq!(metadata.programs[0].name, "edge");
    // What was linked can be linked again.
    assert!(merge(&[("all.o".into(), merged.object)], "again").is_ok());
}

#[test]
fn no_damaged_byte_makes_it_panic() {
    let mut object = object();
    for at in 0..object.len() {
        let byte = object[at];
        for damage in [0, 1, 0x7f, 0xff, byte ^ 1, byte ^ 0x80] {
            object[at] = damage;
            if let Ok(merged) = merge(&[("a.o".into(), object.clone())], "all") {
                let _ = Image::parse(&merged.object);
            }
        }
        object[at] = byte;
    }
}
