//! The same packets through both twins in the userspace engine: verdicts must be equal, instructions are counted.

use std::fmt::Write as _;

use pktc_testing::engine::{Engine as _, Env};
use pktc_testing::vm::Vm;
use serde::Serialize;

use crate::twins::{Side, Twins};

/// What the twins of a row executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Executed {
    /// Packets run.
    pub packets: usize,
    /// How many of them were dropped.
    pub drops: usize,
    /// Instructions of pktc's program over all packets.
    pub pktc: u64,
    /// Instructions of clang's.
    pub clang: u64,
    /// How many packets each rule counted, the default first; none where nothing counts.
    pub hits: Vec<u64>,
}

impl Executed {
    /// pktc's instructions by clang's.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.pktc as f64 / self.clang as f64
    }
}

/// Instructions of one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What both returned.
    pub verdict: u32,
    /// Instructions of pktc's program.
    pub pktc: u64,
    /// Instructions of clang's.
    pub clang: u64,
}

/// Verdict of `XDP_DROP`.
const DROP: u32 = 1;

/// Two loaded twins.
pub struct Pair {
    pktc: Vm,
    clang: Vm,
}

impl Pair {
    /// Loads the twins into the userspace engine.
    ///
    /// # Errors
    /// If it does not take one of them.
    pub fn load(twins: &Twins) -> Result<Self, String> {
        Ok(Pair { pktc: vm(&twins.pktc, "pktc")?, clang: vm(&twins.clang, "clang")? })
    }

    /// Runs both on `packet`.
    ///
    /// # Errors
    /// If one does what it may not, or their verdicts differ.
    pub fn run(&mut self, packet: &[u8]) -> Result<Step, String> {
        let env = Env::default();
        let pktc =
            self.pktc.execute(packet, &env).map_err(|fault| failed("pktc", &fault.to_string(), packet))?;
        let clang =
            self.clang.execute(packet, &env).map_err(|fault| failed("clang", &fault.to_string(), packet))?;
        if pktc as u32 != clang as u32 {
            let what = format!("returns {}, clang's twin {}", pktc as u32, clang as u32);
            return Err(failed("pktc", &what, packet));
        }
        Ok(Step { verdict: pktc as u32, pktc: self.pktc.instructions(), clang: self.clang.instructions() })
    }

    /// The packets that each rule counted so far, after checking that both counted the same.
    ///
    /// # Errors
    /// The first rule that differs.
    pub fn hits(&mut self) -> Result<Vec<u64>, String> {
        let pktc = self.pktc.counters().map_err(|error| format!("{error:?}"))?;
        let clang = self.clang.counters().map_err(|error| format!("{error:?}"))?;
        let differs = pktc.iter().zip(&clang).position(|(left, right)| left != right);
        if let Some(rule) = differs {
            let (left, right) = (pktc[rule], clang[rule]);
            return Err(format!("rule {rule} counts {left:?} (packets, bytes), in clang's twin {right:?}"));
        }
        if pktc.len() != clang.len() {
            return Err("the twins count different numbers of rules".into());
        }
        Ok(pktc.into_iter().map(|(packets, _)| packets).collect())
    }
}

/// Runs the twins on `packets`.
///
/// # Errors
/// At the first difference.
pub fn compare(twins: &Twins, packets: &[Vec<u8>]) -> Result<Executed, String> {
    let mut pair = Pair::load(twins)?;
    let mut sum = Executed::default();
    for packet in packets {
        let step = pair.run(packet).map_err(|error| format!("{}: {error}", twins.row.title()))?;
        sum.packets += 1;
        sum.drops += usize::from(step.verdict == DROP);
        sum.pktc += step.pktc;
        sum.clang += step.clang;
    }
    sum.hits = pair.hits().map_err(|error| format!("{}: {error}", twins.row.title()))?;
    Ok(sum)
}

/// Loads an object into the userspace engine.
///
/// # Errors
/// If that does not take it.
pub(crate) fn vm(side: &Side, whose: &str) -> Result<Vm, String> {
    let vm = Vm::load(&side.object, &side.program).map_err(|error| format!("{whose}'s object: {error}"))?;
    Ok(vm.with_counters(side.counters.clone()))
}

/// What happened on a packet, with the packet as hex digits, which Scapy and `text2pcap` read.
pub(crate) fn failed(whose: &str, what: &str, packet: &[u8]) -> String {
    let mut hex = String::new();
    for byte in packet {
        let _ = write!(hex, "{byte:02x}"); // writing to a string does not fail
    }
    format!("{whose}: {what}, on the packet {hex}")
}
