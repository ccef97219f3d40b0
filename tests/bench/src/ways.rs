//! Ways to reach a packet's bytes: C by an expert and pktc by each access strategy, on the same rule.
//!
//! This is the table that was published for `bpf_xdp_load_bytes` (netdev, January 2023): do nothing, touch the
//! Ethernet header, parse IP through the packet's pointers, parse IP with two calls. Beside it stand pktc's
//! strategies, some of them once more on packets whose linear part is empty, and what `auto` costs other programs
//! where all lies in the linear part.

use std::collections::BTreeMap;

use pktc_driver::options::Access;
use pktc_testing::engine::Env;
use serde::Serialize;

use crate::compare::{failed, vm};
use crate::twins::{Row, Side, build_c, build_pkt, source};

/// The rule of the published table: packets with IP are dropped.
const PARSE: Row = Row { program: "parse", counters: false };

/// What else is built with direct access and with `auto`.
const OTHERS: [Row; 5] = [
    Row { program: "parse", counters: true },
    Row { program: "udp_port", counters: false },
    Row { program: "udp_port", counters: true },
    Row { program: "firewall", counters: false },
    Row { program: "firewall", counters: true },
];

/// Where a program comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    /// `programs/NAME.bpf.c`; the rule that it decides by, if it does.
    C(&'static str, Option<&'static str>),
    /// `programs/NAME.pkt`, by a strategy.
    Pktc(Row, Access),
}

/// A program, and how its packets lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    code: Code,
    /// Bytes in the linear part of its packets; `None`: all.
    pub linear: Option<usize>,
}

/// Drops whatever comes: what is left of others without its cost is their net.
pub const NO_TOUCH: Way = c("no_touch", None);
const TOUCH: Way = c("touch", None);
const C_DIRECT: Way = c("parse", Some("parse"));
const C_CALLS: Way = c("parse_calls", Some("parse"));

const fn c(program: &'static str, rule: Option<&'static str>) -> Way {
    Way { code: Code::C(program, rule), linear: None }
}

const fn pktc(row: Row, access: Access) -> Way {
    Way { code: Code::Pktc(row, access), linear: None }
}

/// The same on packets without a linear part.
const fn empty(way: Way) -> Way {
    Way { linear: Some(0), ..way }
}

/// All lines of the table, [`NO_TOUCH`] first.
#[must_use]
pub fn ways() -> Vec<Way> {
    let [direct, bytes, auto] = Access::ALL.map(|access| pktc(PARSE, access));
    let whole = [NO_TOUCH, TOUCH, C_DIRECT, C_CALLS, direct, bytes, auto];
    let split = [C_CALLS, bytes, auto].map(empty);
    let others =
        OTHERS.into_iter().flat_map(|row| [Access::Direct, Access::Auto].map(|access| pktc(row, access)));
    whole.into_iter().chain(split).chain(others).collect()
}

impl Way {
    /// How the table calls it.
    #[must_use]
    pub fn title(self) -> String {
        let linear = if self.linear == Some(0) { ", empty linear part" } else { "" };
        match self.code {
            Code::C(program, _) => format!("C: {program}{linear}"),
            Code::Pktc(row, access) => format!("{}: {}{linear}", access.name(), row.title()),
        }
    }

    /// Programs of the same rule say the same of every packet.
    fn rule(self) -> Option<&'static str> {
        match self.code {
            Code::C(_, rule) => rule,
            Code::Pktc(row, _) => Some(row.program),
        }
    }

    /// Builds its object.
    ///
    /// # Errors
    /// What a compiler says, or that clang is missing.
    pub fn build(self) -> Result<Built, String> {
        let side = match self.code {
            Code::C(program, _) => {
                let object = build_c(&source(program, "bpf.c"), false)?;
                Side { object, program: program.into(), counters: None }
            }
            Code::Pktc(row, access) => build_pkt(&source(row.program, "pkt"), row.counters, access)?,
        };
        Ok(Built { way: self, side })
    }
}

/// A way with its object.
#[derive(Clone, Debug)]
pub struct Built {
    /// Which.
    pub way: Way,
    /// The object.
    pub side: Side,
}

/// Two ways that are set against each other.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    /// The dividend.
    of: Way,
    /// The divisor.
    by: Way,
    /// Whether the cost of [`NO_TOUCH`] is taken from both.
    pub net: bool,
    /// What its time is not to exceed, if there is such an aim.
    pub aim: Option<f64>,
    /// What tests let it be of executed instructions, if they ask: little more than it is.
    pub most_executed: Option<f64>,
}

impl Ratio {
    /// How the table calls it.
    #[must_use]
    pub fn title(&self) -> String {
        let net = if self.net { " (net)" } else { "" };
        format!("{} / {}{net}", self.of.title(), self.by.title())
    }

    /// The ratio of figures that stand in the order of [`ways`].
    #[must_use]
    pub fn of(&self, figures: &[f64]) -> f64 {
        let figure = |way: Way| {
            let place = ways().iter().position(|other| *other == way);
            place.and_then(|place| figures.get(place)).copied().unwrap_or(f64::NAN)
        };
        let base = if self.net { figure(NO_TOUCH) } else { 0.0 };
        (figure(self.of) - base) / (figure(self.by) - base)
    }
}

/// All ratios of the table.
#[must_use]
pub fn ratios() -> Vec<Ratio> {
    let [direct, bytes, auto] = Access::ALL.map(|access| pktc(PARSE, access));
    let ratio = |of, by| Ratio { of, by, net: false, aim: None, most_executed: None };
    let auto_by_direct = |row| Ratio {
        aim: Some(1.03),
        most_executed: Some(1.3),
        ..ratio(pktc(row, Access::Auto), pktc(row, Access::Direct))
    };
    let published = [
        ratio(C_CALLS, C_DIRECT),
        Ratio { aim: Some(1.05), most_executed: Some(1.25), ..ratio(direct, C_DIRECT) },
        Ratio { net: true, aim: Some(0.55), most_executed: Some(1.75), ..ratio(bytes, C_CALLS) },
        Ratio { net: true, aim: Some(1.25), most_executed: Some(1.0), ..ratio(empty(auto), empty(bytes)) },
    ];
    published.into_iter().chain([PARSE].into_iter().chain(OTHERS).map(auto_by_direct)).collect()
}

/// What a way executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Executed {
    /// Its title.
    pub way: String,
    /// Instructions over all packets; a call of the kernel is one.
    pub instructions: u64,
    /// Instruction slots in the object.
    pub slots: u64,
}

/// Runs all ways on `packets` in the userspace engine.
///
/// # Errors
/// If one does what it may not, or programs of one rule say different things of a packet.
pub fn execute(built: &[Built], packets: &[Vec<u8>]) -> Result<Vec<Executed>, String> {
    let mut sums = built.iter().map(Built::unexecuted).collect::<Result<Vec<_>, _>>()?;
    let mut engines = built.iter().map(|it| vm(&it.side, &it.way.title())).collect::<Result<Vec<_>, _>>()?;
    for packet in packets {
        let mut verdicts = BTreeMap::new();
        for ((built, vm), sum) in built.iter().zip(&mut engines).zip(&mut sums) {
            let env = Env { linear: built.way.linear, ..Env::default() };
            let returned = vm.execute(packet, &env);
            let verdict = returned.map_err(|fault| failed(&sum.way, &fault.to_string(), packet))? as u32;
            let meant = built.way.rule().map_or(verdict, |rule| *verdicts.entry(rule).or_insert(verdict));
            if verdict != meant {
                let what = format!("returns {verdict}, others of the rule {meant}");
                return Err(failed(&sum.way, &what, packet));
            }
            sum.instructions += vm.instructions();
        }
    }
    Ok(sums)
}

impl Built {
    fn unexecuted(&self) -> Result<Executed, String> {
        Ok(Executed { way: self.way.title(), instructions: 0, slots: self.side.slots()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_lines_of_the_table() {
        let ways = ways();
        assert_eq!(ways[0], NO_TOUCH);
        for ratio in ratios() {
            assert!(ways.contains(&ratio.of) && ways.contains(&ratio.by), "{}", ratio.title());
        }
    }

    #[test]
    fn a_net_ratio_leaves_out_what_all_cost() {
        let net = ratio(TOUCH, C_DIRECT, true);
        let figures = [10.0, 15.0, 20.0];
        assert!((net.of(&figures) - 0.5).abs() < 1e-9);
        assert!((ratio(TOUCH, C_DIRECT, false).of(&figures) - 0.75).abs() < 1e-9);
    }

    fn ratio(of: Way, by: Way, net: bool) -> Ratio {
        Ratio { of, by, net, aim: None, most_executed: None }
    }
}
