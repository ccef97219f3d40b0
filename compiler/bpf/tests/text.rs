//! The text of instructions, written by hand as the kernel's verifier shows them.

use pktc_bpf::{decode, disassemble, listing};

#[test]
fn instructions_read_as_in_the_verifiers_log() {
    let cases: [([u8; 8], &str); 24] = [
        ([0x69, 0x62, 12, 0, 0, 0, 0, 0], "r2 = *(u16 *)(r6 +12)"),
        ([0x2d, 0x72, 5, 0, 0, 0, 0, 0], "if r2 > r7 goto pc+5"),
        ([0xa4, 0x03, 0, 0, 17, 0, 0, 0], "w3 ^= 17"),
        ([0x85, 0, 0, 0, 1, 0, 0, 0], "call bpf_map_lookup_elem#1"),
        ([0x85, 0, 0, 0, 12, 0, 0, 0], "call unknown#12"),
        ([0x85, 0x10, 0, 0, 0xfe, 0xff, 0xff, 0xff], "call pc-2"),
        ([0x55, 0x03, 1, 0, 0xff, 0xff, 0xff, 0xff], "if r3 != 0xffffffff goto pc+1"),
        ([0xce, 0x37, 0xff, 0xff, 0, 0, 0, 0], "if w7 s< w3 goto pc-1"),
        ([0x45, 0x01, 2, 0, 6, 0, 0, 0], "if r1 & 0x6 goto pc+2"),
        ([0x05, 0, 3, 0, 0, 0, 0, 0], "goto pc+3"),
        ([0x06, 0, 0, 0, 0, 0, 1, 0], "gotol pc+65536"),
        ([0x7b, 0x1a, 0xf8, 0xff, 0, 0, 0, 0], "*(u64 *)(r10 -8) = r1"),
        ([0x62, 0x0a, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff], "*(u32 *)(r10 -4) = -1"),
        ([0xdb, 0x10, 8, 0, 0, 0, 0, 0], "lock *(u64 *)(r0 +8) += r1"),
        ([0xdb, 0x10, 8, 0, 0xa0, 0, 0, 0], "lock *(u64 *)(r0 +8) ^= r1"),
        ([0xc3, 0x10, 8, 0, 0x41, 0, 0, 0], "r1 = atomic_fetch_or((u32 *)(r0 +8), r1)"),
        ([0xdb, 0x10, 8, 0, 0xe1, 0, 0, 0], "r1 = atomic64_xchg((u64 *)(r0 +8), r1)"),
        ([0xdb, 0x13, 8, 0, 0xf1, 0, 0, 0], "r0 = atomic64_cmpxchg((u64 *)(r3 +8), r0, r1)"),
        ([0xdc, 0x02, 0, 0, 16, 0, 0, 0], "r2 = be16 r2"),
        ([0xd7, 0x02, 0, 0, 32, 0, 0, 0], "r2 = bswap32 r2"),
        ([0x84, 0x02, 0, 0, 0, 0, 0, 0], "w2 = -w2"),
        ([0xbf, 0x54, 16, 0, 0, 0, 0, 0], "r4 = (s16)r5"),
        ([0x91, 0x54, 1, 0, 0, 0, 0, 0], "r4 = *(s8 *)(r5 +1)"),
        ([0x3c, 0x35, 1, 0, 0, 0, 0, 0], "w5 s/= w3"),
    ];
    for (bytes, text) in cases {
        let [insn] = decode(&bytes).unwrap()[..] else { panic!("one slot is one instruction") };
        assert_eq!(disassemble(&insn), text);
    }
}

#[test]
fn a_listing_counts_slots() {
    let bytes = [
        [0x18, 0x11, 0, 0, 3, 0, 0, 0],
        [0; 8],
        [0x18, 0x02, 0, 0, 0xef, 0xcd, 0xab, 0x89],
        [0, 0, 0, 0, 0x67, 0x45, 0x23, 0x01],
        [0x18, 0x22, 0, 0, 4, 0, 0, 0],
        [0, 0, 0, 0, 40, 0, 0, 0],
        [0x95, 0, 0, 0, 0, 0, 0, 0],
    ];
    let insns = decode(&bytes.concat()).unwrap();
    let expected = "   0: r1 = map[3]\n   2: r2 = 0x123456789abcdef\n   4: r2 = map[4][0]+40\n   6: exit\n";
    assert_eq!(listing(&insns), expected);
}
