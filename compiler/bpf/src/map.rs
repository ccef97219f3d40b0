//! Map definitions.

/// A map of a module: an index into its maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapIndex(pub u32);

/// The name of the map that the programs of an object keep variables in: scratch space, which holds nothing from one
/// packet to the next.
pub const CELLS: &str = "pktc_cells";

/// Kinds of maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapKind {
    /// `BPF_MAP_TYPE_HASH`
    Hash = 1,
    /// `BPF_MAP_TYPE_ARRAY`
    Array = 2,
    /// `BPF_MAP_TYPE_PERCPU_ARRAY`
    PerCpuArray = 6,
    /// `BPF_MAP_TYPE_LRU_HASH`
    LruHash = 9,
    /// `BPF_MAP_TYPE_LPM_TRIE`
    LpmTrie = 11,
}

impl MapKind {
    /// All of them.
    pub const ALL: [MapKind; 5] =
        [MapKind::Hash, MapKind::Array, MapKind::PerCpuArray, MapKind::LruHash, MapKind::LpmTrie];

    /// The kind with that number, if it is one of [`MapKind::ALL`].
    #[must_use]
    pub fn from_number(number: u32) -> Option<MapKind> {
        MapKind::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// How BTF describes a map's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueLayout {
    /// Bytes without a structure.
    Bytes,
    /// Named u64 members in order: `packets`, `bytes`.
    U64s(Vec<&'static str>),
}

/// A map as the object declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDef {
    /// Its name in the kernel, at most 15 characters. `.rodata` names are made by the object writer.
    pub name: String,
    /// Which kind.
    pub kind: MapKind,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// How many entries.
    pub max_entries: u32,
    /// `BPF_F_…`
    pub flags: u32,
    /// How BTF describes the value.
    pub layout: ValueLayout,
    /// Content of a read-only, frozen, one-element array (`.rodata`); `None`: an ordinary map.
    pub content: Option<Vec<u8>>,
}
