//! Capture files composed byte by byte: every variant that is read, every way to be damaged.

use pktc_testing::capture::{self, Capture, CaptureError};

/// A byte order, to compose every file in both.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Big,
    Little,
}

const ORDERS: [Order; 2] = [Order::Big, Order::Little];

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|&word| self.u32(word)).collect()
    }
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

fn pcap_header(order: Order, magic: u32, link_type: u32) -> Vec<u8> {
    let version = [order.u16(2), order.u16(4)].concat();
    [order.u32(magic).to_vec(), version, order.words(&[0, 0, 65535, link_type])].concat()
}

fn record(order: Order, seconds: u32, fraction: u32, original: u32, data: &[u8]) -> Vec<u8> {
    [order.words(&[seconds, fraction, data.len() as u32, original]), data.to_vec()].concat()
}

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    let length = order.u32((body.len() + padding.len() + 12) as u32);
    [&order.u32(kind), &length, body, &padding, &length].concat()
}

fn section(order: Order) -> Vec<u8> {
    let version = [order.u16(1), order.u16(0)].concat();
    block(order, 0x0a0d_0d0a, &[&order.u32(0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat())
}

fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
    [&order.u16(code)[..], &order.u16(value.len() as u16), value, &padding].concat()
}

fn interface(order: Order, link_type: u16, options: &[u8]) -> Vec<u8> {
    block(order, 1, &[&order.u16(link_type)[..], &[0, 0], &order.u32(0), options].concat())
}

fn enhanced(order: Order, interface: u32, time: u64, data: &[u8]) -> Vec<u8> {
    let (high, low, length) = ((time >> 32) as u32, time as u32, data.len() as u32);
    block(order, 6, &[order.words(&[interface, high, low, length, length]), data.to_vec()].concat())
}

fn data(capture: &Capture) -> Vec<&[u8]> {
    capture.packets.iter().map(|packet| packet.data.as_slice()).collect()
}

#[test]
fn pcap_in_both_orders_and_resolutions() {
    for order in ORDERS {
        for (magic, time) in [(MICROSECONDS, 7_000_005_000), (NANOSECONDS, 7_000_000_005)] {
            let file = [pcap_header(order, magic, 1), record(order, 7, 5, 1514, b"abc")].concat();
            let capture = capture::read(&file).unwrap();
            assert!(capture.warnings.is_empty());
            let [packet] = &capture.packets[..] else { panic!("{capture:?}") };
            assert_eq!((packet.time_ns, packet.original_length, packet.interface), (time, 1514, 0));
            assert_eq!(packet.data, b"abc");
        }
    }
}

#[test]
fn records_that_differ_from_the_header_are_kept() {
    let order = Order::Little;
    let mut header = pcap_header(order, MICROSECONDS, 1);
    header[16..20].copy_from_slice(&order.u32(4));
    // Longer than the snap length of 4, longer than it was on the wire, and none at all of a long one.
    let file = [
        header,
        record(order, 0, 0, 6, b"abcdef"),
        record(order, 0, 2_000_000, 2, b"abc"),
        record(order, 0, 0, 262_144, b""),
    ]
    .concat();
    let capture = capture::read(&file).unwrap();
    assert_eq!(data(&capture), [&b"abcdef"[..], b"abc", b""]);
    assert_eq!(capture.packets[1].time_ns, 2_000_000_000);
    assert_eq!(capture.packets[2].original_length, 262_144);
}

#[test]
fn files_without_packets() {
    assert_eq!(capture::read(b"").unwrap_err(), CaptureError::Empty);
    let only_header = pcap_header(Order::Big, MICROSECONDS, 1);
    assert_eq!(capture::read(&only_header).unwrap(), Capture::default());
    assert_eq!(capture::read(&section(Order::Little)).unwrap(), Capture::default());
}

#[test]
fn files_of_other_kinds_say_what_to_do() {
    for (bytes, expected) in [
        (&b"default pass;"[..], "neither a pcap nor a pcapng file"),
        (b"\x1f\x8b\x08\x00", "gunzip"),
        (b"\x28\xb5\x2f\xfd", "unzstd"),
        (b"\xfd7zXZ\x00", "unxz"),
        (b"BZh9", "bunzip2"),
        (b"\xa1\xb2\xcd\x34", "modified pcap format"),
        (b"\xd4", "neither a pcap nor a pcapng file"),
    ] {
        let text = capture::read(bytes).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
    let mut old = pcap_header(Order::Big, MICROSECONDS, 1);
    old[7] = 2;
    assert!(capture::read(&old).unwrap_err().to_string().contains("version 2.2"));
}

#[test]
fn other_link_types_are_named() {
    for (number, name) in [
        (0, "LINKTYPE_NULL (0)"),
        (101, "LINKTYPE_RAW (101)"),
        (113, "LINKTYPE_LINUX_SLL (113)"),
        (276, "LINKTYPE_LINUX_SLL2 (276)"),
        (60_000, "link type 60000,"),
    ] {
        for order in ORDERS {
            let error = capture::read(&pcap_header(order, MICROSECONDS, number)).unwrap_err();
            assert_eq!(error, CaptureError::LinkType { link_type: number, interface: None });
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[test]
fn check_sequences_are_announced() {
    // 2 words of check sequence: the length in the upper four bits, and its flag.
    let file =
        [pcap_header(Order::Little, MICROSECONDS, 0x2400_0001), record(Order::Little, 0, 0, 3, b"abc")];
    let capture = capture::read(&file.concat()).unwrap();
    assert_eq!(data(&capture), [b"abc"]);
    assert!(capture.warnings[0].contains("check sequence of 4 bytes"), "{:?}", capture.warnings);
}

#[test]
fn pcapng_with_sections_interfaces_and_clocks() {
    for (order, other) in [(Order::Big, Order::Little), (Order::Little, Order::Big)] {
        let nanoseconds = option(order, 9, &[9]);
        let binary = [
            // A comment that is not UTF-8 and a time zone do no harm.
            option(order, 1, b"\xff\xfe"),
            option(order, 10, &[0, 0, 0, 0]),
            option(order, 9, &[0x80 | 10]),
            option(order, 14, &if order == Order::Big { 3_i64.to_be_bytes() } else { 3_i64.to_le_bytes() }),
            option(order, 0, b""),
        ]
        .concat();
        let file = [
            section(order),
            interface(order, 1, b""),
            interface(order, 1, &nanoseconds),
            interface(order, 1, &binary),
            enhanced(order, 0, 1_000_001, b"a"),
            block(order, 0xbad, b"an unknown block"),
            enhanced(order, 1, 0x1_0000_0001, b"bcde"),
            enhanced(order, 2, 1536, b"fg"),
            section(other),
            interface(other, 1, b""),
            enhanced(other, 0, 5, b"h"),
        ]
        .concat();
        let capture = capture::read(&file).unwrap();
        assert!(capture.warnings.is_empty(), "{:?}", capture.warnings);
        assert_eq!(data(&capture), [&b"a"[..], b"bcde", b"fg", b"h"]);
        let times: Vec<_> = capture.packets.iter().map(|packet| packet.time_ns).collect();
        // Microseconds; nanoseconds; 1024ths of a second, three seconds later; microseconds.
        assert_eq!(times, [1_000_001_000, 0x1_0000_0001, 4_500_000_000, 5_000]);
        let interfaces: Vec<_> = capture.packets.iter().map(|packet| packet.interface).collect();
        assert_eq!(interfaces, [0, 1, 2, 3]);
    }
}

#[test]
fn pcapng_with_simple_and_obsolete_packets() {
    for order in ORDERS {
        let limited = block(order, 1, &[order.words(&[0, 5])].concat());
        let mut limited = limited;
        limited[8..10].copy_from_slice(&order.u16(1));
        let obsolete =
            [[order.u16(0), order.u16(9)].concat(), order.words(&[0, 2, 3, 100]), b"xyz".to_vec()].concat();
        let file = [
            section(order),
            limited,
            // 9 bytes on the wire of which the snap length keeps 5.
            block(order, 3, &[&order.u32(9)[..], b"abcde"].concat()),
            // 3 bytes, and one of padding.
            block(order, 3, &[&order.u32(3)[..], b"fgh"].concat()),
            block(order, 2, &obsolete),
        ]
        .concat();
        let capture = capture::read(&file).unwrap();
        assert_eq!(data(&capture), [&b"abcde"[..], b"fgh", b"xyz"]);
        let rest: Vec<_> = capture.packets.iter().map(|p| (p.time_ns, p.original_length)).collect();
        assert_eq!(rest, [(0, 9), (0, 3), (2_000, 100)]);
    }
}

#[test]
fn extreme_clocks_do_not_overflow() {
    let seconds = i128::from(u64::MAX) * 1_000_000_000;
    for (resolution, expected) in [(0, seconds), (0x7f, 0), (0xff, 2_000_000_000), (0x80, seconds)] {
        let order = Order::Big;
        let clock = option(order, 9, &[resolution]);
        let file = [section(order), interface(order, 1, &clock), enhanced(order, 0, u64::MAX, b"a")].concat();
        let packet = &capture::read(&file).unwrap().packets[0];
        assert!(packet.time_ns.abs_diff(expected) <= 1, "{resolution:#x}: {}", packet.time_ns);
        let now = u64::try_from(expected).unwrap_or(u64::MAX);
        assert!(packet.now().abs_diff(now) <= 1, "{resolution:#x}: {}", packet.now());
    }
}

#[test]
fn a_pcapng_interface_of_another_link_type_matters_only_with_packets() {
    let order = Order::Little;
    let ethernet = [section(order), interface(order, 1, b""), interface(order, 113, b"")].concat();
    let unused = [ethernet.clone(), enhanced(order, 0, 0, b"a")].concat();
    assert_eq!(data(&capture::read(&unused).unwrap()), [b"a"]);
    let used = [unused, enhanced(order, 1, 0, b"b")].concat();
    let error = capture::read(&used).unwrap_err();
    assert_eq!(error, CaptureError::LinkType { link_type: 113, interface: Some(1) });
    assert!(error.to_string().contains("LINKTYPE_LINUX_SLL (113) on its interface 1"), "{error}");
}

#[test]
fn broken_pcapng_blocks_end_the_packets() {
    let order = Order::Big;
    let good = [section(order), interface(order, 1, b""), enhanced(order, 0, 0, b"abcd")].concat();
    let mut uneven = enhanced(order, 0, 0, b"efgh");
    *uneven.last_mut().unwrap() ^= 4;
    let mut greedy = enhanced(order, 0, 0, b"efgh");
    greedy[23] = 99;
    for (bad, expected) in [
        (enhanced(order, 7, 0, b"efgh"), "interface 7, which the file does not describe"),
        (uneven, "lengths around a block do not agree"),
        (greedy, "claims 99 bytes, and its block has 4"),
        (block(order, 6, &[0; 16]), "a packet's block is too short"),
        (block(order, 1, &[0; 4]), "an interface's description is too short"),
    ] {
        let capture = capture::read(&[good.clone(), bad.clone()].concat()).unwrap();
        assert_eq!(data(&capture), [b"abcd"]);
        let warning = format!("damaged at byte {}: ", good.len());
        let [only] = &capture.warnings[..] else { panic!("{:?}", capture.warnings) };
        assert!(only.starts_with(&warning) && only.contains(expected), "{only}");
        assert!(only.ends_with("the packet before that is used"), "{only}");
        let without = [section(order), bad].concat();
        assert!(matches!(capture::read(&without), Err(CaptureError::Damaged(_))));
    }
}

#[test]
fn a_record_that_no_tool_writes_is_damage() {
    let order = Order::Big;
    let long = record(order, 0, 0, 300_000, &vec![0; 300_000]);
    let file = [pcap_header(order, MICROSECONDS, 1), record(order, 0, 0, 1, b"a"), long].concat();
    let capture = capture::read(&file).unwrap();
    assert_eq!(data(&capture), [b"a"]);
    assert!(capture.warnings[0].contains("claims 300000 bytes"), "{:?}", capture.warnings);
}

/// Cuts `file` everywhere; `ends` are the lengths at which it is whole, with so many packets.
fn truncate_everywhere(file: &[u8], ends: &[(usize, usize)]) {
    for length in 0..=file.len() {
        let expected = ends.iter().rev().find(|&&(end, _)| end <= length);
        match (capture::read(&file[..length]), expected) {
            (Ok(capture), Some(&(end, packets))) => {
                assert_eq!(capture.packets.len(), packets, "{length}");
                assert_eq!(capture.warnings.len(), usize::from(end != length), "{length}");
                assert!(
                    packets > 0 || end == length,
                    "{length}: a part of a packet is nothing to go on with"
                );
            }
            (Err(CaptureError::Damaged(_) | CaptureError::Empty | CaptureError::NotACapture), None) => {}
            (Err(CaptureError::Damaged(_)), Some(&(end, 0))) => assert_ne!(end, length),
            (other, expected) => panic!("{length}: {other:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn every_truncation_keeps_the_packets_before_it() {
    for order in ORDERS {
        let mut file = Vec::new();
        let mut ends = Vec::new();
        let parts = [
            (pcap_header(order, NANOSECONDS, 1), 0),
            (record(order, 1, 2, 3, b"abc"), 1),
            (record(order, 1, 2, 0, b""), 2),
            (record(order, 1, 2, 20, b"defghijklmnopqrstuvw"), 3),
        ];
        for (part, packets) in parts {
            file.extend(part);
            ends.push((file.len(), packets));
        }
        truncate_everywhere(&file, &ends);

        let mut file = Vec::new();
        let mut ends = Vec::new();
        let parts = [
            (section(order), 0),
            (interface(order, 1, &option(order, 9, &[9])), 0),
            (enhanced(order, 0, 1, b"abcde"), 1),
            (block(order, 3, &[&order.u32(3)[..], b"fgh"].concat()), 2),
            (section(order), 2),
            (interface(order, 1, b""), 2),
            (enhanced(order, 0, 1, b""), 3),
        ];
        for (part, packets) in parts {
            file.extend(part);
            ends.push((file.len(), packets));
        }
        truncate_everywhere(&file, &ends);
    }
}

#[test]
fn no_single_damaged_byte_is_a_panic() {
    let order = Order::Little;
    let pcap = [pcap_header(order, MICROSECONDS, 1), record(order, 1, 2, 3, b"abc")].concat();
    let options = [option(order, 9, &[6]), option(order, 0, b"")].concat();
    let pcapng = [section(order), interface(order, 1, &options), enhanced(order, 0, 1, b"abcde")].concat();
    for file in [pcap, pcapng] {
        for at in 0..file.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = value;
                if let Err(error) = capture::read(&damaged) {
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
