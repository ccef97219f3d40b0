//! What a compilation may be told.

pub use pktc_lower::Access;

/// The oldest kernel that must take the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// 5.10
    V5_10,
    /// 5.15
    V5_15,
    /// 5.18
    V5_18,
    /// 6.1
    #[default]
    V6_1,
    /// 6.6
    V6_6,
    /// The newest.
    Latest,
}

impl Kernel {
    /// All of them, the oldest first.
    pub const ALL: [Kernel; 6] =
        [Kernel::V5_10, Kernel::V5_15, Kernel::V5_18, Kernel::V6_1, Kernel::V6_6, Kernel::Latest];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kernel::V5_10 => "5.10",
            Kernel::V5_15 => "5.15",
            Kernel::V5_18 => "5.18",
            Kernel::V6_1 => "6.1",
            Kernel::V6_6 => "6.6",
            Kernel::Latest => "latest",
        }
    }

    /// How its programs reach packet bytes unless they are told otherwise.
    #[must_use]
    pub fn access(self) -> Access {
        if self.takes(Access::Auto) { Access::Auto } else { Access::Direct }
    }

    /// Whether it has what `access` needs: packets in several buffers and the helpers that read them came with 5.18.
    #[must_use]
    pub fn takes(self, access: Access) -> bool {
        !access.frags() || self >= Kernel::V5_18
    }
}

/// How much is optimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// Without the optional passes.
    O0,
    /// All passes.
    #[default]
    O2,
}

/// Whether rules count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Counters {
    /// Unless the program says `counters off`.
    #[default]
    AsWritten,
    /// Never.
    Off,
    /// Always: engines find the deciding rule by its counter.
    On,
}

impl Counters {
    /// Whether the rules of a program count that says `written`.
    #[must_use]
    pub fn count(self, written: bool) -> bool {
        match self {
            Counters::AsWritten => written,
            Counters::Off => false,
            Counters::On => true,
        }
    }
}

/// What a compilation may be told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// How packet bytes are reached.
    pub access: Access,
    /// The oldest kernel that must take the object.
    pub kernel: Kernel,
    /// How much is optimised.
    pub level: Level,
    /// Whether rules count.
    pub counters: Counters,
}

impl Default for Options {
    fn default() -> Self {
        let kernel = Kernel::default();
        Options { access: kernel.access(), kernel, level: Level::default(), counters: Counters::default() }
    }
}
