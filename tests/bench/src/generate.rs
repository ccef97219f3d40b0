//! Made-up packets for the comparison of verdicts: what captures seldom show.
//!
//! Up to five tags, all extension headers in any order and one too many, fragments, header lengths and claimed
//! lengths that are wrong, cut and padded frames; addresses and ports near those that the programs ask for. The
//! same seed gives the same packets everywhere.

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const ETHERTYPES: [u16; 8] = [0x0806, 0x0806, 0x88cc, 0x8864, 0x8847, 46, 1536, 0x8100];
const PORTS: [u16; 23] = [
    17, 19, 22, 23, 53, 80, 111, 123, 135, 139, 140, 389, 443, 445, 1023, 1024, 1900, 3389, 5900, 5910, 8080,
    8089, 11211,
];
const ADDRESSES: [[u8; 4]; 12] = [
    [0, 1, 2, 3],
    [127, 0, 0, 1],
    [169, 254, 1, 1],
    [192, 0, 2, 200],
    [192, 0, 3, 1],
    [198, 19, 255, 255],
    [240, 0, 0, 1],
    [255, 255, 255, 255],
    [10, 1, 2, 3],
    [141, 142, 1, 1],
    [8, 8, 8, 8],
    [192, 168, 170, 20],
];
const ADDRESSES6: [[u16; 8]; 9] = [
    [0, 0, 0, 0, 0, 0, 0, 1],
    [0, 0, 0, 0, 0, 0, 0, 2],
    [0x2001, 0xdb8, 1, 2, 3, 4, 5, 6],
    [0xfec0, 0, 0, 0, 0, 0, 0, 1],
    [0xfeff, 1, 1, 1, 1, 1, 1, 1],
    [0xfe80, 0, 0, 0, 0, 0, 0, 1],
    [0x2001, 0x470, 0, 0, 0, 0, 0, 7],
    [0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888],
    [0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8844],
];
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// What has no header of its own here: IGMP, GRE, ESP, no next header; and hop-by-hop options, which IPv4 has not.
const OTHERS: [u8; 5] = [2, 47, 50, 59, 0];
const FRAGMENT: u8 = 44;
const AH: u8 = 51;
const EXTENSIONS: [u8; 9] = [0, 60, 43, FRAGMENT, FRAGMENT, AH, 135, 139, 140];

/// How many packets are generated.
pub const GENERATED: usize = 20_000;
/// The seed that is used.
pub const SEED: u64 = 2;

/// Numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// Mostly `right`, sometimes near it, seldom anything.
    fn around(&mut self, right: u16) -> u16 {
        match self.below(20) {
            0 => right.wrapping_sub(self.below(24) as u16),
            1 => right.wrapping_add(self.below(24) as u16),
            2 => self.next() as u16,
            _ => right,
        }
    }
}

/// `count` packets from `seed`.
#[must_use]
pub fn generated(count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    (0..count).map(|_| frame(&mut random)).collect()
}

fn frame(random: &mut Random) -> Vec<u8> {
    let (ethertype, content) = match random.below(20) {
        0..9 => (0x0800, ipv4(random)),
        9..18 => (0x86dd, ipv6(random)),
        18 => (0x0806, arp(random)),
        _ => {
            let length = random.below(60);
            (random.pick(&ETHERTYPES), random.bytes(length))
        }
    };
    let mut frame = random.bytes(12);
    let tags = if random.percent(50) { 0 } else { random.below(6) };
    for _ in 0..tags {
        frame.extend(random.pick(&TAGS).to_be_bytes());
        frame.extend(random.bytes(2));
    }
    frame.extend(u16::to_be_bytes(ethertype));
    frame.extend(content);
    if random.percent(25) {
        frame.resize(frame.len() + random.below(24), 0);
    }
    if random.percent(20) {
        frame.truncate(random.below(frame.len() + 1));
    }
    frame
}

fn arp(random: &mut Random) -> Vec<u8> {
    let mut header = vec![0, 1, 8, 0, 6, 4, 0, 1];
    if random.percent(20) {
        let place = 2 + random.below(4);
        header[place] ^= 1;
    }
    header.extend(random.bytes(20));
    header
}

fn ipv4(random: &mut Random) -> Vec<u8> {
    let (proto, content) = upper(random);
    let (proto, content) = if random.percent(8) {
        let (proto, content) =
            if random.percent(40) { extended(random, proto, content) } else { (proto, content) };
        (AH, extension(random, AH, proto, &content))
    } else {
        (proto, content)
    };
    let options = if random.percent(15) { 4 * (1 + random.below(10)) } else { 0 };
    let header = 20 + options;
    let ihl = if random.percent(4) { random.below(16) } else { header / 4 };
    let version = if random.percent(2) { random.below(16) } else { 4 };
    let (offset, more) = fragment(random);
    let mut packet = vec![(version << 4 | ihl) as u8, 0];
    packet.extend(random.around((header + content.len()) as u16).to_be_bytes());
    packet.extend([0, 7]);
    packet.extend((more << 13 | offset).to_be_bytes());
    packet.extend([64, proto, 0, 0]);
    packet.extend(address(random));
    packet.extend(address(random));
    packet.extend(random.bytes(options));
    packet.extend(content);
    packet
}

fn ipv6(random: &mut Random) -> Vec<u8> {
    let (proto, content) = upper(random);
    let (proto, content) =
        if random.percent(45) { extended(random, proto, content) } else { (proto, content) };
    let version = if random.percent(2) { random.next() as u8 } else { 0x60 };
    let mut packet = vec![version, 0, 0, 0];
    let claim = if random.percent(4) { 0 } else { random.around(content.len() as u16) };
    packet.extend(claim.to_be_bytes());
    packet.extend([proto, 64]);
    packet.extend(address6(random));
    packet.extend(address6(random));
    packet.extend(content);
    packet
}

/// Puts one to nine extension headers in front of `content`.
fn extended(random: &mut Random, proto: u8, content: Vec<u8>) -> (u8, Vec<u8>) {
    let count = if random.percent(80) { 1 + random.below(3) } else { 1 + random.below(9) };
    (0..count).fold((proto, content), |(next, content), _| {
        let kind = random.pick(&EXTENSIONS);
        (kind, extension(random, kind, next, &content))
    })
}

fn extension(random: &mut Random, kind: u8, next: u8, content: &[u8]) -> Vec<u8> {
    let units = if random.percent(70) { 0 } else { random.below(4) };
    let length = match kind {
        FRAGMENT => 8,
        AH => 4 * (units + 2),
        _ => 8 * (units + 1),
    };
    let mut header = vec![next, if random.percent(4) { random.next() as u8 } else { units as u8 }];
    if kind == FRAGMENT {
        let (offset, more) = fragment(random);
        header.extend((offset << 3 | more).to_be_bytes());
    } else {
        header.extend(random.bytes(2));
    }
    header.extend(random.bytes(length - 4));
    header.extend(content);
    header
}

/// A fragment's offset in units of 8 bytes, and 1 if more follow.
fn fragment(random: &mut Random) -> (u16, u16) {
    let offset = match random.below(10) {
        0 => 1 + random.below(8000) as u16,
        1 => 1,
        _ => 0,
    };
    (offset, u16::from(random.percent(10)))
}

fn upper(random: &mut Random) -> (u8, Vec<u8>) {
    match random.below(20) {
        0..7 => (TCP, tcp(random)),
        7..14 => (UDP, udp(random)),
        14 => (SCTP, ports_and(random, 8)),
        15 | 16 => (ICMP, icmp(random, 20)),
        17 | 18 => (ICMPV6, icmp(random, 142)),
        _ => {
            let length = random.below(20);
            (random.pick(&OTHERS), random.bytes(length))
        }
    }
}

fn ports_and(random: &mut Random, more: usize) -> Vec<u8> {
    let mut header = Vec::new();
    for _ in 0..2 {
        let port = if random.percent(80) { random.pick(&PORTS) } else { random.next() as u16 };
        header.extend(port.to_be_bytes());
    }
    header.extend(random.bytes(more));
    header
}

fn tcp(random: &mut Random) -> Vec<u8> {
    let mut header = ports_and(random, 16);
    let words = if random.percent(70) { 5 } else { random.below(16) };
    header[12] = (words as u8) << 4 | header[12] & 15;
    if random.percent(60) {
        header[13] = random.pick(&[0x02, 0x10, 0x18, 0x11, 0x14]);
    }
    let rest = (words * 4).saturating_sub(20) + random.below(20);
    header.extend(random.bytes(rest));
    header
}

fn udp(random: &mut Random) -> Vec<u8> {
    let content = random.below(40);
    let mut header = ports_and(random, 4 + content);
    let length = random.around(8 + content as u16).to_be_bytes();
    header[4..6].copy_from_slice(&length);
    header
}

fn icmp(random: &mut Random, types: usize) -> Vec<u8> {
    let length = 3 + random.below(20);
    let mut header = vec![random.below(types) as u8];
    header.extend(random.bytes(length));
    header
}

fn address(random: &mut Random) -> [u8; 4] {
    if random.percent(60) { random.pick(&ADDRESSES) } else { (random.next() as u32).to_be_bytes() }
}

fn address6(random: &mut Random) -> Vec<u8> {
    if random.percent(70) {
        return random.pick(&ADDRESSES6).into_iter().flat_map(u16::to_be_bytes).collect();
    }
    random.bytes(16)
}
