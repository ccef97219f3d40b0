//! Packets composed from declared headers, against bytes written by other tools or by hand.

mod support;

use pktc_diagnostics::render;
use pktc_semantics::typed::{Packet, StepKind};
use pktc_testing::compose::{Composed, compose};
use support::{Checked, hex};

/// Checks a test that sends `packet`, with `declarations` before it.
fn packet(declarations: &str, packet: &str) -> (Checked, Packet) {
    let text =
        format!("{declarations} xdp t {{ default pass; }} test \"x\" {{ send {packet}; expect pass; }}");
    let checked = Checked::new(&text);
    let steps = &checked.program.tests[0].steps;
    let StepKind::Send { packet, .. } = &steps[0].kind else { panic!("the first step sends") };
    let packet = packet.clone();
    (checked, packet)
}

fn composed(text: &str) -> Composed {
    let (checked, packet) = packet("", text);
    compose(&checked.program, &packet)
        .unwrap_or_else(|error| panic!("{}", render(&checked.sources, &[*error], false)))
}

fn frame(text: &str) -> Vec<u8> {
    composed(text).frame
}

fn refused(declarations: &str, text: &str) -> String {
    let (checked, packet) = packet(declarations, text);
    let refusal = compose(&checked.program, &packet).expect_err("it cannot be made");
    render(&checked.sources, &[*refusal], false)
}

// Frames that scapy made, with all their checksums.
const TCP4: &str = "020000000002 020000000001 0800 45000028 00010000 4006f6cb c0000201 c0000202
    9c400050 00000000 00000000 50022000 6f4e0000";
const TAGGED: &str = "020000000002 020000000001 8100 0064 0800 45000028 00010000 4006f6cb c0000201 c0000202
    9c400050 00000000 00000000 50022000 6f4e0000";
const TCP6: &str = "020000000002 020000000001 86dd 60000000 00140640
    20010db8000000000000000000000001 20010db8000000000000000000000002
    9c400050 00000000 00000000 50022000 97dd0000";
const DSTOPTS: &str = "020000000002 020000000001 86dd 60000000 00183c40
    20010db8000000000000000000000001 20010db8000000000000000000000002
    1100 010400000000 00350035 0010ba05 7a7a7a7a7a7a7a7a";
const IHL15: &str = "020000000002 020000000001 0800 45000026 00010000 4011f6c2 c0000201 c0000202
    0005ca6c 001256fa 78787878787878787878";

const ETH: &str = "eth(dst: 02:00:00:00:00:02, src: 02:00:00:00:00:01)";
const IPV4: &str = "ipv4(id: 1, src: 192.0.2.1, dst: 192.0.2.2)";
const IPV6: &str = "ipv6(src: 2001:db8::1, dst: 2001:db8::2)";
const TCP: &str = "tcp(sport: 40000, dport: 80, syn: 1, window: 8192)";

#[test]
fn lengths_selectors_and_checksums_are_filled_in() {
    assert_eq!(frame(&format!("{ETH} / {IPV4} / {TCP}")), hex(TCP4));
    assert_eq!(frame(&format!("{ETH} / vlan(vid: 100) / {IPV4} / {TCP}")), hex(TAGGED));
    assert_eq!(frame(&format!("{ETH} / {IPV6} / {TCP}")), hex(TCP6));
    let datagram = format!("{ETH} / {IPV4} / udp(sport: 5, dport: 51820) / payload(\"xxxxxxxxxx\")");
    assert_eq!(frame(&datagram), hex(IHL15));
}

#[test]
fn extension_headers_are_filled_up_to_their_units() {
    let mut expected = hex(DSTOPTS);
    expected[56..58].copy_from_slice(&[0, 0]); // scapy pads with one option, zeros are as good
    let datagram = "udp(sport: 53, dport: 53) / payload(\"zzzzzzzz\")";
    assert_eq!(frame(&format!("{ETH} / {IPV6} / dstopts / {datagram}")), expected);
    let chain =
        frame(&format!("{ETH} / {IPV6} / hopopts / fragment(id: 1, more: 1) / ah(spi: 1) / {datagram}"));
    assert_eq!(chain[18..21], [0, 40, 0], "payload length, then hop-by-hop options");
    assert_eq!(chain[54..62], [44, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(chain[62..70], [51, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(chain[70..78], [17, 0, 0, 0, 0, 0, 0, 1], "the shortest authentication header");
    assert_eq!(chain[84..86], [0xba, 0x05], "the checksum does not depend on what stands between");
    let longer = frame(&format!("{ETH} / {IPV6} / ah(hdr_len: 1, seq: 2) / {datagram}"));
    assert_eq!(longer[54..66], [17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
}

#[test]
fn tags_nest_and_their_types_can_be_chosen() {
    let twice = frame("eth / vlan(vid: 1) / vlan(vid: 2) / arp");
    assert_eq!(twice[12..22], [0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x08, 0x06]);
    let provider = frame("eth(type: qinq) / vlan(vid: 1, pcp: 7) / vlan(type: 0x1234) / payload(3)");
    assert_eq!(provider[12..], [0x88, 0xa8, 0xe0, 1, 0x81, 0, 0, 0, 0x12, 0x34, 0, 0, 0]);
}

#[test]
fn what_is_given_stays() {
    let wrong = frame("eth / ipv4(ihl: 6, len: 19, checksum: 0xdead, proto: 99) / udp(len: 3, checksum: 1)");
    assert_eq!(wrong.len(), 14 + 20 + 8, "a length by hand adds no options");
    assert_eq!(wrong[14..18], [0x46, 0, 0, 19]);
    assert_eq!(wrong[23..26], [99, 0xde, 0xad]);
    assert_eq!(wrong[38..42], [0, 3, 0, 1]);
    let flags = frame("eth / ipv4 / tcp(flags: 0x12, fin: 1)");
    assert_eq!(flags[47], 0x13, "a view, and a field in it");
    let later = frame("eth / ipv4(frag_off: 185) / udp");
    assert_eq!(later[23], 17, "a later fragment still says what it is a part of");
}

#[test]
fn a_zero_sum_is_sent_as_ones_where_zero_means_none() {
    // Addresses and protocol of the pseudo header sum up to something; the port makes it 0xffff.
    let udp = |sport: u16| frame(&format!("eth / ipv4(src: 0.0.0.0, dst: 0.0.0.0) / udp(sport: {sport})"));
    // 17 + 8 (pseudo) + 8 (length) + 65502 = 65535.
    assert_eq!(udp(65502)[40..42], [0xff, 0xff]);
    assert_eq!(udp(65501)[40..42], [0x00, 0x01]);
}

#[test]
fn padding_is_in_no_length_and_cuts_come_last() {
    let padded = frame("eth / ipv4 / udp / payload(2) / pad(6)");
    assert_eq!((padded.len(), padded[17], padded[39]), (14 + 20 + 8 + 2 + 6, 30, 10));
    let cut = frame("eth / ipv4 / udp / payload(2) / cut(40)");
    let whole = frame("eth / ipv4 / udp / payload(2)");
    assert_eq!(cut, whole[..40]);
    assert_eq!(frame("eth / pad(4) / cut(16)").len(), 16);
    assert_eq!(frame("payload(\"\\x01\\x02\")"), [1, 2], "no header at all");
}

#[test]
fn where_it_comes_in_is_no_byte() {
    let there = composed("pkt(ifindex: 3, queue: 2) / eth");
    assert_eq!((there.frame.len(), there.ifindex, there.queue), (14, Some(3), Some(2)));
    assert_eq!(composed("eth").ifindex, None);
}

#[test]
fn conditional_fields_are_there_when_they_should() {
    assert_eq!(frame("eth / ipv4 / icmp(id: 7, seq: 1)")[34..42], [8, 0, 0xf7, 0xf7, 0, 7, 0, 1]);
    let unreachable = frame("eth / ipv4 / icmp(type: destination_unreachable, code: 4, mtu: 1400)");
    assert_eq!(unreachable[34..36], [3, 4]);
    assert_eq!(unreachable[38..42], [0, 0, 0x05, 0x78]);
    let message = refused("", "eth / ipv4 / icmp(type: echo_request, mtu: 1400)");
    assert!(message.contains("this `icmp` has no field `mtu`"), "{message}");
}

#[test]
fn what_cannot_be_made_says_what_to_do() {
    let message = refused("", "eth / tcp");
    assert!(message.contains("`tcp` cannot follow `eth`"), "{message}");
    assert!(message.contains("as in `eth(type: 1) / tcp`"), "{message}");
    assert_eq!(frame("eth(type: 0x9999) / tcp").len(), 34, "the selecting field is given");
    let message = refused("", "ipv4 / tcp");
    assert!(message.contains("a packet starts with `eth`, not with `ipv4`"), "{message}");
    let message = refused("", "eth / ipv4 / udp / payload(65535) / payload(8)");
    assert!(message.contains("`udp.len` cannot say 65551 bytes"), "{message}");
    let message = refused("", "eth / cut(15)");
    assert!(message.contains("`cut(15)` is beyond the frame, which has 14 bytes"), "{message}");
}

#[test]
fn ports_on_either_side_select() {
    let declarations = "header note { text: u8 = 7; } bind udp.port 99 => note;";
    let made = |text: &str| {
        let (checked, packet) = packet(declarations, text);
        compose(&checked.program, &packet).unwrap().frame[34..38].to_vec()
    };
    assert_eq!(made("eth / ipv4 / udp / note"), [0, 0, 0, 99]);
    assert_eq!(made("eth / ipv4 / udp(sport: 99) / note"), [0, 99, 0, 0], "one is enough");
    assert_eq!(made("eth / ipv4 / udp(dport: 5) / note"), [0, 99, 0, 5]);
    assert_eq!(made("eth / ipv4 / udp(dport: 5, sport: 6) / note"), [0, 6, 0, 5], "as given");
}

#[test]
fn a_length_that_no_field_chooses_is_as_declared() {
    let (checked, packet) = packet(
        "header block { kind: u8 = 3; length 4; } bind udp.dport 9 => block;",
        "eth / ipv4 / udp / block",
    );
    let frame = compose(&checked.program, &packet).unwrap().frame;
    assert_eq!((frame[38..40].to_vec(), &frame[42..]), (vec![0, 12], &[3, 0, 0, 0][..]));
}
