//! A smaller program and packet that still show a difference.

use std::time::{Duration, Instant};

use pktc_driver::options::Access;

use super::case::Case;
use super::compiled::{Failure, compile};
use super::engines::{Difference, Input, Machine, compare, expect};
use super::source::Source;

/// How long a difference is made smaller. A try takes some ten milliseconds, where a kernel's verifier gives up
/// on a program some ten seconds.
const PATIENCE: Duration = Duration::from_secs(300);

/// A difference as people read it: seed, program, packet and outcomes, as small as they could be made.
pub(super) fn report(case: &Case, difference: &Difference, machine: Machine) -> String {
    let packets = match difference.input {
        Some(input) => vec![input.bytes(&case.packets).to_vec()],
        None => Vec::new(),
    };
    let mut shrinker =
        Shrinker { machine, access: difference.access.unwrap_or_default(), until: Instant::now() + PATIENCE };
    let (mut source, mut packets) = (case.source.clone(), packets);
    let mut text = difference.text.clone();
    // A difference that needs several packets is shown as it is.
    if shrinker.differs(&source, &packets).is_some() {
        source = shrinker.program(source, &packets);
        if let [packet] = packets.as_slice() {
            packets = vec![shrinker.packet(&source, packet.clone())];
        }
        source = shrinker.program(source, &packets);
        text = shrinker.differs(&source, &packets).unwrap_or(text);
    }
    let hex = |packet: &Vec<u8>| packet.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let packets: Vec<String> = packets.iter().map(hex).collect();
    format!("seed {}: {text}\n{source}packet {}\n", case.seed, packets.join(" "))
}

struct Shrinker {
    machine: Machine,
    access: Access,
    until: Instant,
}

impl Shrinker {
    fn is_patient(&self) -> bool {
        Instant::now() < self.until
    }

    /// What differs for this program and these packets.
    fn differs(&mut self, source: &Source, packets: &[Vec<u8>]) -> Option<String> {
        let compiled = match compile(&source.to_string(), &[self.access]) {
            Ok(compiled) => compiled,
            Err(Failure::Refused(..) | Failure::Bug(_)) => return None,
        };
        let inputs = packets.iter().enumerate();
        let inputs = inputs.map(|(packet, bytes)| Input { packet, length: bytes.len() }).collect();
        let split: Vec<usize> = (0..packets.len()).collect();
        let expected = expect(&compiled, packets, inputs, &split).ok()?;
        compare(&compiled, packets, &expected, self.machine).err().map(|difference| difference.text)
    }

    /// Drops statements, then declarations, then parts of conditions.
    fn program(&mut self, mut source: Source, packets: &[Vec<u8>]) -> Source {
        let mut count = source.statements().max(1).div_ceil(2);
        loop {
            let mut first = 0;
            while first < source.statements() && self.is_patient() {
                let smaller = source.without(first, count);
                if self.differs(&smaller, packets).is_some() {
                    source = smaller;
                } else {
                    first += count;
                }
            }
            if count == 1 || !self.is_patient() {
                break;
            }
            count = count.div_ceil(2);
        }
        loop {
            let mut candidates = source.with_simpler_statement();
            candidates.extend(source.with_fewer_declarations());
            let found =
                candidates.into_iter().find(|it| self.is_patient() && self.differs(it, packets).is_some());
            match found {
                Some(smaller) => source = smaller,
                None => return source,
            }
        }
    }

    /// Cuts the packet, then sets its bytes to 0.
    fn packet(&mut self, source: &Source, mut packet: Vec<u8>) -> Vec<u8> {
        let mut step = packet.len().div_ceil(2);
        while step > 0 && self.is_patient() {
            let shorter = packet[..packet.len().saturating_sub(step)].to_vec();
            if self.differs(source, std::slice::from_ref(&shorter)).is_some() {
                packet = shorter;
            } else {
                step /= 2;
            }
        }
        for at in 0..packet.len() {
            let mut simpler = packet.clone();
            simpler[at] = 0;
            if simpler != packet
                && self.is_patient()
                && self.differs(source, std::slice::from_ref(&simpler)).is_some()
            {
                packet = simpler;
            }
        }
        packet
    }
}
