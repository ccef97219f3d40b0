//! What `pktc run` prints for people: a line a packet, then totals per rule and per verdict.

use std::collections::BTreeMap;

use pktc_semantics::rules::{RuleId, RuleInfo, RuleTable};
use pktc_testing::capture::{CapturedPacket, summary};
use pktc_testing::engine::Outcome as Decision;

use super::Report;
use crate::console::{Console, plural};
use crate::failure::Failure;
use crate::rows::Align::{Left, Right};
use crate::rows::print_rows;

/// The rows, kept until all widths are known.
#[derive(Default)]
pub(super) struct Table {
    packets: Vec<[String; 5]>,
    verdicts: BTreeMap<&'static str, usize>,
    first_ns: Option<i128>,
}

impl Table {
    /// Adds a packet.
    pub(super) fn packet(
        &mut self,
        number: usize,
        packet: &CapturedPacket,
        decision: Option<&Decision>,
        rules: &RuleTable,
    ) {
        let first_ns = *self.first_ns.get_or_insert(packet.time_ns);
        let (verdict, rule) = match decision {
            Some(decision) => (decision.verdict.word(), rules.info(decision.rule).name.as_str()),
            None => ("none", ""),
        };
        let time = seconds(packet.time_ns, first_ns);
        let row = [number.to_string(), time, summary(&packet.data), verdict.to_owned(), rule.to_owned()];
        self.packets.push(row);
        *self.verdicts.entry(verdict).or_default() += 1;
    }

    /// Prints all of it; `counters` are the packets and bytes of each rule.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn print(
        &self,
        report: &Report<'_>,
        counters: &[(u64, u64)],
        console: &mut Console,
    ) -> Result<(), Failure> {
        let titles = ["packet", "time", "summary", "verdict", "rule"];
        print_rows(titles, [Right, Right, Left, Left, Left], &self.packets, console)?;
        console.line("")?;
        let titles = ["rule", "declared at", "packets", "bytes"];
        print_rows(titles, [Left, Left, Right, Right], &totals(report, counters), console)?;
        console.line("")?;
        let verdicts = self.verdicts.iter().map(|(verdict, count)| format!(", {count} {verdict}"));
        console.line(plural(self.packets.len(), "packet") + &verdicts.collect::<String>())
    }
}

/// A row a rule: how many packets its condition held for, and their bytes.
fn totals(report: &Report<'_>, counters: &[(u64, u64)]) -> Vec<[String; 4]> {
    let row = |rule: &RuleInfo, (packets, bytes): (u64, u64)| {
        let (line, file) = report.place(rule);
        let file = file.unwrap_or(&report.source.path);
        [rule.name.clone(), format!("{file}:{line}"), packets.to_string(), bytes.to_string()]
    };
    let all = std::iter::zip(report.rules.rules(), counters);
    let mut rows: Vec<_> = all.map(|(rule, &counter)| row(rule, counter)).collect();
    // The default is what remains: it stands below the rules, as in a program's order of trying.
    let default = (RuleId::DEFAULT.0 as usize + 1).min(rows.len());
    rows.rotate_left(default);
    rows
}

/// Seconds since the first packet; a capture may go back in time.
fn seconds(time_ns: i128, first_ns: i128) -> String {
    let sign = if time_ns < first_ns { "-" } else { "" };
    let microseconds = time_ns.abs_diff(first_ns) / 1_000;
    format!("{sign}{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_differences_however_far_apart() {
        assert_eq!(seconds(1_500_000_000, 0), "1.500000");
        let last = i128::from(u64::MAX) * 1_000;
        assert_eq!(seconds(0, last), "-18446744073709.551615");
        assert_eq!(seconds(last, -1_000), "18446744073709.551616");
    }
}
