//! The verifier's log, cut down to what a person needs: the reason, the source line, the last steps.

use std::fmt;

/// How many lines of the end are shown.
const SHOWN: usize = 16;

/// What the verifier said of a program that it refused.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifierLog {
    full: String,
}

impl VerifierLog {
    pub(crate) fn new(full: String) -> Self {
        VerifierLog { full }
    }

    /// All of it.
    #[must_use]
    pub fn full(&self) -> &str {
        &self.full
    }

    fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.full.lines().map(str::trim_end).filter(|line| !line.is_empty() && !is_statistics(line))
    }

    /// Why the program was refused: the last thing that the verifier said before its statistics.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.lines().next_back().unwrap_or("the kernel gives no reason")
    }

    /// Whether it is no mistake that the verifier found, but gave up.
    pub(crate) fn gave_up(&self) -> bool {
        let reason = self.reason();
        reason.starts_with("BPF program is too large. Processed ")
            || reason.ends_with(" jumps is too complex.")
    }

    /// The source line that it was at, as the object's line information has it.
    #[must_use]
    pub fn source_line(&self) -> Option<&str> {
        self.lines().rev().find_map(|line| line.strip_prefix("; "))
    }
}

/// Whether a line is one of the statistics at the end.
fn is_statistics(line: &str) -> bool {
    ["processed ", "verification time ", "stack depth "].iter().any(|start| line.starts_with(start))
}

/// How many instructions the verifier walked, from its statistics.
pub(crate) fn processed(log: &str) -> Option<u32> {
    let line = log.lines().rev().find_map(|line| line.strip_prefix("processed "))?;
    line.split(' ').next()?.parse().ok()
}

impl fmt::Display for VerifierLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.gave_up() {
            return write!(
                f,
                "it has more ways than the verifier follows, which gives up behind 1,000,000 instructions ({})\n  \
                 build it with `--access bytes`, or `direct` where no packets come in several buffers, split its rules \
                 over several programs, or let fewer rules ask for tunnels, quoted packets, options and extension \
                 headers",
                self.reason()
            );
        }
        write!(f, "{}", self.reason())?;
        if let Some(line) = self.source_line() {
            write!(f, "\n  at the source line: {line}")?;
        }
        let mut last: Vec<&str> = self.lines().rev().take(SHOWN).collect();
        last.reverse();
        write!(f, "\n  the end of the verifier's log:")?;
        for line in last {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for VerifierLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "func#0 @0\n0: R1=ctx() R10=fp0\n; drop if ip.proto == 17 @ a.pkt:3\n\
        0: (61) r2 = *(u32 *)(r1 +0)\n1: (71) r0 = *(u8 *)(r2 +0)\n\
        invalid access to packet, off=0 size=1, R2(id=0,off=0,r=0)\nR2 offset is outside of the packet\n\
        verification time 45 usec\nstack depth 0\nprocessed 2 insns (limit 1000000) max_states_per_insn 0\n\n";

    #[test]
    fn reason_and_source_line_are_found() {
        let log = VerifierLog::new(LOG.into());
        assert_eq!(log.reason(), "R2 offset is outside of the packet");
        assert_eq!(log.source_line(), Some("drop if ip.proto == 17 @ a.pkt:3"));
        let shown = log.to_string();
        assert!(shown.starts_with("R2 offset is outside of the packet\n  at the source line: drop if"));
        assert!(!shown.contains("verification time"));
    }

    #[test]
    fn what_is_too_much_for_it_comes_with_advice() {
        let text = "R0=1 R1=ctx()\nBPF program is too large. Processed 1000001 insn\n\
            verification time 700000 usec\nprocessed 1000001 insns (limit 1000000) max_states_per_insn 24\n";
        for log in [text, "The sequence of 8193 jumps is too complex.\n"] {
            let log = VerifierLog::new(log.into());
            let shown = log.to_string();
            assert!(
                shown.contains(log.reason()) && shown.contains("`--access bytes`, or `direct`"),
                "{shown}"
            );
            assert!(shown.contains("split its rules") && !shown.contains("R0=1"), "{shown}");
        }
    }

    #[test]
    fn an_empty_log_has_a_reason_too() {
        let log = VerifierLog::new("\n".into());
        assert_eq!(log.reason(), "the kernel gives no reason");
        assert_eq!(log.source_line(), None);
    }

    #[test]
    fn statistics_are_read() {
        assert_eq!(processed(LOG), Some(2));
        assert_eq!(processed("nothing"), None);
    }
}
