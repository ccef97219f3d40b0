//! What XDP programs return.

/// What becomes of a packet, `enum xdp_action`; as a number it is what the program returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XdpAction {
    /// Dropped, as a mistake: the tracepoint `xdp_exception` shows it.
    Aborted = 0,
    /// Dropped.
    Drop = 1,
    /// Goes on to the kernel's network stack.
    Pass = 2,
    /// Goes back out by the device that it came in by.
    Tx = 3,
    /// Goes where the program told the helper `redirect`.
    Redirect = 4,
}

impl XdpAction {
    /// All of them, by ascending number.
    pub const ALL: [XdpAction; 5] =
        [XdpAction::Aborted, XdpAction::Drop, XdpAction::Pass, XdpAction::Tx, XdpAction::Redirect];

    /// The kernel's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            XdpAction::Aborted => "XDP_ABORTED",
            XdpAction::Drop => "XDP_DROP",
            XdpAction::Pass => "XDP_PASS",
            XdpAction::Tx => "XDP_TX",
            XdpAction::Redirect => "XDP_REDIRECT",
        }
    }

    /// The word for it in metadata, on command lines and in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            XdpAction::Aborted => "abort",
            XdpAction::Drop => "drop",
            XdpAction::Pass => "pass",
            XdpAction::Tx => "tx",
            XdpAction::Redirect => "redirect",
        }
    }

    /// The action of a number that a program returned.
    #[must_use]
    pub fn from_code(code: u32) -> Option<XdpAction> {
        XdpAction::ALL.get(code as usize).copied()
    }

    /// Its bit in a set of actions, as dispatchers write them.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back() {
        for action in XdpAction::ALL {
            assert_eq!(XdpAction::from_code(action as u32), Some(action));
        }
        assert_eq!(XdpAction::from_code(5), None);
    }
}
