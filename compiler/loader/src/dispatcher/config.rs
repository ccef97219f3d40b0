//! What a dispatcher is told, in the one element of its map: how many programs, in which order, and which verdicts
//! of a program lead on to the next.
//!
//! Version 2 (libxdp 1.3 to 1.5) has three arrays of ten numbers behind four bytes; version 3 (from 1.6) one more
//! word behind them.

use pktc_bpf::XdpAction;

/// The most programs that a dispatcher calls.
pub(crate) const MAX_PROGRAMS: usize = 10;
/// The first byte.
const MAGIC: u8 = 236;
/// Bytes of version 2.
const BYTES: usize = 4 + 3 * 4 * MAX_PROGRAMS;
/// The priority of programs that state none.
pub const DEFAULT_PRIORITY: u32 = 50;
/// The verdicts that lead on unless a program states them: pass.
pub const DEFAULT_CHAIN: u32 = XdpAction::Pass.bit();
/// What a function of the dispatcher returns while no program stands in its place; it leads on.
pub(crate) const NO_VERDICT: u32 = 31;
/// `BPF_F_XDP_HAS_FRAGS`
const HAS_FRAGS: u32 = 1 << 5;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Of libxdp 1.3 to 1.5.
    V2,
    /// Of libxdp from 1.6 on.
    V3,
}

impl Version {
    /// Both.
    pub const ALL: [Version; 2] = [Version::V2, Version::V3];

    /// As the map has it.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Version::V2 => 2,
            Version::V3 => 3,
        }
    }

    /// Bytes of the map's value.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Version::V2 => BYTES,
            Version::V3 => BYTES + 4,
        }
    }
}

/// How a program takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Lower ones run first.
    pub priority: u32,
    /// The verdicts after which the next program runs: bit n for `XDP_` action n.
    pub chain_on: u32,
    /// Whether it takes packets in several buffers.
    pub frags: bool,
}

/// A dispatcher's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) version: Version,
    /// The programs in order.
    pub(crate) slots: Vec<Slot>,
}

/// What the map of a program that may be a dispatcher says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// One that this version of pktc reads.
    Known(Config),
    /// One of another version.
    Unknown(u8),
    /// Not a dispatcher's.
    Foreign,
}

impl Config {
    /// Whether the dispatcher takes packets in several buffers: if all its programs do.
    pub(crate) fn frags(&self) -> bool {
        self.slots.iter().all(|slot| slot.frags)
    }

    /// As the map has it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![MAGIC, self.version.number(), self.slots.len() as u8, u8::from(self.frags())];
        let column = |field: fn(&Slot) -> u32| {
            (0..MAX_PROGRAMS).flat_map(move |n| self.slots.get(n).map_or(0, field).to_le_bytes())
        };
        out.extend(column(|slot| slot.chain_on | 1 << NO_VERDICT));
        out.extend(column(|slot| slot.priority));
        out.extend(column(|slot| if slot.frags { HAS_FRAGS } else { 0 }));
        out.resize(self.version.bytes(), 0);
        out
    }

    /// Reads the map's value.
    pub(crate) fn decode(value: &[u8]) -> Found {
        let &[MAGIC, number, count, _, ..] = value else { return Found::Foreign };
        let version = Version::ALL.into_iter().find(|version| version.number() == number);
        let Some(version) = version.filter(|version| version.bytes() == value.len()) else {
            return Found::Unknown(number);
        };
        let count = usize::from(count);
        if count > MAX_PROGRAMS {
            return Found::Foreign;
        }
        let word = |column: usize, n: usize| {
            let at = 4 + 4 * (column * MAX_PROGRAMS + n);
            u32::from_le_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]])
        };
        let slot = |n| Slot {
            chain_on: word(0, n) & !(1 << NO_VERDICT),
            priority: word(1, n),
            frags: word(2, n) & HAS_FRAGS != 0,
        };
        Found::Known(Config { version, slots: (0..count).map(slot).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: [Slot; 2] = [
        Slot { priority: 10, chain_on: 1 << 1 | 1 << 2, frags: true },
        Slot { priority: 50, chain_on: 1 << 2, frags: false },
    ];

    #[test]
    fn both_versions_are_read_back() {
        for (version, bytes) in [(Version::V2, 124), (Version::V3, 128)] {
            let config = Config { version, slots: SLOTS.to_vec() };
            let value = config.encode();
            assert_eq!(value.len(), bytes);
            assert_eq!(&value[..4], [236, version.number(), 2, 0]);
            assert_eq!(&value[4..8], (1u32 << 31 | 0b110).to_le_bytes());
            assert_eq!(&value[44..48], 10u32.to_le_bytes());
            assert_eq!(&value[84..88], 32u32.to_le_bytes());
            assert_eq!(Config::decode(&value), Found::Known(config));
        }
    }

    #[test]
    fn frags_need_all_programs() {
        assert!(!Config { version: Version::V2, slots: SLOTS.to_vec() }.frags());
        let config = Config { version: Version::V2, slots: SLOTS[..1].to_vec() };
        assert!(config.frags());
        assert_eq!(config.encode()[3], 1);
    }

    #[test]
    fn other_values_are_told_apart() {
        let mut value = Config { version: Version::V2, slots: SLOTS.to_vec() }.encode();
        assert_eq!(Config::decode(&value[..120]), Found::Unknown(2), "another length");
        value[2] = 11;
        assert_eq!(Config::decode(&value), Found::Foreign, "more programs than there can be");
        value[1] = 4;
        assert_eq!(Config::decode(&value), Found::Unknown(4));
        value[0] = 0;
        assert_eq!(Config::decode(&value), Found::Foreign);
        assert_eq!(Config::decode(&[]), Found::Foreign);
    }
}
