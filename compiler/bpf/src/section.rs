//! Where the code of an object lies.

/// A section of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// `xdp`: programs that take packets in one buffer.
    Xdp,
    /// `xdp.frags`: programs that take packets in several buffers (5.18).
    XdpFrags,
    /// `.text`: subprograms, which loaders append to each program that calls them.
    Text,
}

impl Section {
    /// All of them.
    pub const ALL: [Section; 3] = [Section::Xdp, Section::XdpFrags, Section::Text];

    /// That of programs, by whether they take packets in several buffers.
    #[must_use]
    pub fn of_programs(frags: bool) -> Section {
        if frags { Section::XdpFrags } else { Section::Xdp }
    }

    /// Its name in the object: exactly these, since strict libbpf and aya refuse `xdp/…`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Section::Xdp => "xdp",
            Section::XdpFrags => "xdp.frags",
            Section::Text => ".text",
        }
    }
}
