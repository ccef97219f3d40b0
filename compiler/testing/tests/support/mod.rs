//! What the tests of this crate share: programs from text, files in memory, frames by hand.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::HashMap;

use pktc_diagnostics::{FileId, SourceMap, render};
use pktc_semantics::check;
use pktc_semantics::files::Files;
use pktc_semantics::typed::{Program, Xdp};
use pktc_testing::engine::{Engine, Env, Outcome};
use pktc_testing::reference::Reference;

/// Files that are not on a disk.
#[derive(Default)]
pub(crate) struct Memory(pub(crate) HashMap<String, Vec<u8>>);

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.get(path).cloned().ok_or_else(|| format!("there is no {path}"))
    }
}

/// A checked program with its texts.
pub(crate) struct Checked {
    pub(crate) program: Program,
    pub(crate) sources: SourceMap,
    /// The file itself.
    pub(crate) entry: FileId,
}

impl Checked {
    /// Checks `text` as the file `t.pkt`.
    ///
    /// # Panics
    /// With the diagnostics, if there are errors.
    pub(crate) fn new(text: &str) -> Self {
        let files = Memory(HashMap::from([("t.pkt".to_owned(), text.as_bytes().to_vec())]));
        let mut sources = SourceMap::default();
        let pktc_semantics::Checked { program, diagnostics, entry } = check("t.pkt", &files, &mut sources);
        let program = program.unwrap_or_else(|| panic!("{text}\n{}", render(&sources, &diagnostics, false)));
        Checked { program, sources, entry }
    }

    /// Its only program.
    pub(crate) fn xdp(&self) -> &Xdp {
        self.program.xdps.values().next().expect("it has a program")
    }

    /// A reference engine for its only program.
    pub(crate) fn engine(&self) -> Reference {
        Reference::new(&self.program, &self.sources, self.xdp())
    }
}

/// Programs of one rule each, asked on one frame after the other.
pub(crate) struct Conditions<'a> {
    engines: Vec<(&'a str, Reference)>,
}

impl<'a> Conditions<'a> {
    /// `declarations` stand before each program.
    pub(crate) fn new(declarations: &str, conditions: &[&'a str]) -> Self {
        let engine = |&condition: &&'a str| {
            let text = format!("{declarations} xdp t {{ default pass; rule m: {condition} => drop; }}");
            (condition, Checked::new(&text).engine())
        };
        Conditions { engines: conditions.iter().map(engine).collect() }
    }

    /// Those that hold on `frame`.
    pub(crate) fn holding(&mut self, frame: &[u8]) -> Vec<&'a str> {
        let holds = |engine: &mut Reference| !run(engine, frame).hits.iter().all(|rule| rule.0 == 0);
        self.engines
            .iter_mut()
            .filter_map(|(condition, engine)| holds(engine).then_some(*condition))
            .collect()
    }
}

/// Runs a packet in the usual surroundings.
pub(crate) fn run(engine: &mut Reference, frame: &[u8]) -> Outcome {
    engine.run(frame, &Env::default()).expect("the reference takes every packet")
}

/// Bytes from hexadecimal digits; spaces are for the reader.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("hexadecimal digits")).collect()
}

/// An Ethernet header before `rest`.
pub(crate) fn eth(ethertype: u16, rest: &[u8]) -> Vec<u8> {
    [&hex("020000000002 020000000001")[..], &ethertype.to_be_bytes(), rest].concat()
}

/// A VLAN tag before `rest`.
pub(crate) fn vlan(vid: u16, ethertype: u16, rest: &[u8]) -> Vec<u8> {
    [&vid.to_be_bytes()[..], &ethertype.to_be_bytes(), rest].concat()
}

/// An IPv4 header without options before `rest`; 192.0.2.1 to 192.0.2.2, no checksum.
pub(crate) fn ipv4(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let length = (20 + rest.len() as u16).to_be_bytes();
    [&[0x45, 0][..], &length, &hex("0001 0000 40"), &[protocol], &hex("0000 c0000201 c0000202"), rest]
        .concat()
}

/// An IPv6 header before `rest`; 2001:db8::1 to 2001:db8::2.
pub(crate) fn ipv6(next_header: u8, rest: &[u8]) -> Vec<u8> {
    let addresses = hex("20010db8 00000000 00000000 00000001 20010db8 00000000 00000000 00000002");
    let length = (rest.len() as u16).to_be_bytes();
    [&hex("60000000")[..], &length, &[next_header, 64], &addresses, rest].concat()
}

/// A UDP header before `rest`, from port 40000.
pub(crate) fn udp(dport: u16, rest: &[u8]) -> Vec<u8> {
    let length = (8 + rest.len() as u16).to_be_bytes();
    [&40000u16.to_be_bytes()[..], &dport.to_be_bytes(), &length, &[0, 0], rest].concat()
}

/// A TCP header without options before `rest`, from port 40000, with these flags.
pub(crate) fn tcp(dport: u16, flags: u8, rest: &[u8]) -> Vec<u8> {
    let ports = [40000u16.to_be_bytes(), dport.to_be_bytes()].concat();
    [&ports[..], &[0; 8], &[0x50, flags], &hex("2000 0000 0000"), rest].concat()
}

/// An extension header of 8 bytes before `rest`: padding options.
pub(crate) fn extension(next_header: u8, rest: &[u8]) -> Vec<u8> {
    [&[next_header, 0, 1, 4, 0, 0, 0, 0][..], rest].concat()
}
