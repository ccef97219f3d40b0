//! `pktc stats`: what rules and named counters have counted.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime};

use pktc_loader::Count;
use serde::Serialize;

use crate::arguments::StatsArguments;
use crate::console::Console;
use crate::failure::{Failure, Outcome, Status};
use crate::rows::Align::{Left, Right};
use crate::rows::print_rows;

/// Prints them once, or again and again.
pub(crate) fn stats(arguments: &StatsArguments, console: &mut Console) -> Outcome {
    let mut before: Option<Snapshot> = None;
    let mut remaining = if arguments.watch { arguments.count } else { Some(1) };
    loop {
        let now = Snapshot::take(arguments, console, before.is_none())?;
        show(arguments, &now, before.as_ref(), console)?;
        console.finish()?;
        remaining = remaining.map(|count| count.saturating_sub(1));
        if remaining == Some(0) || !console.is_read() {
            return Ok(Status::Done);
        }
        before = Some(now);
        std::thread::sleep(Duration::from_secs(arguments.interval.into()));
    }
}

/// Whose count it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    interface: String,
    /// The source that the program was made from.
    source: String,
    program: String,
    /// Whether it is a rule's; else a named counter's.
    is_rule: bool,
    name: String,
}

/// A row of a snapshot.
struct Row {
    key: Key,
    /// Of the program in the kernel.
    id: u32,
    count: Count,
}

/// All counts at one time.
struct Snapshot {
    taken: Instant,
    rows: Vec<Row>,
}

impl Snapshot {
    fn take(arguments: &StatsArguments, console: &Console, first: bool) -> Result<Snapshot, Failure> {
        let status = pktc_loader::status(arguments.iface.as_deref());
        let status = status.map_err(|error| Failure::new(error.to_string()))?;
        let mut snapshot = Snapshot { taken: Instant::now(), rows: Vec::new() };
        for interface in &status.interfaces {
            for program in &interface.programs {
                let place = format!("program `{}` (id {}) on {}", program.name, program.id, interface.name);
                let counts = program.counts().map_err(|error| Failure::new(format!("{place}: {error}")))?;
                let Some(counts) = counts else {
                    if first {
                        console.note(format!("note: {place} has no metadata of pktc's, so no rules to show"));
                    }
                    continue;
                };
                let source = program.metadata.as_ref().map_or("", |metadata| &metadata.source.path);
                let key = |name: &str, is_rule| Key {
                    interface: interface.name.clone(),
                    source: source.to_owned(),
                    program: name.to_owned(),
                    is_rule,
                    name: String::new(),
                };
                for (name, rules) in counts.programs {
                    snapshot.add(&key(&name, true), program.id, rules);
                }
                snapshot.add(&key(&program.name, false), program.id, counts.counters);
            }
        }
        if let Some(wanted) = &arguments.program {
            snapshot.rows.retain(|row| row.key.program == *wanted);
        }
        Ok(snapshot)
    }

    /// The default comes last: it stands below the rules, as in a program's order of trying.
    fn add(&mut self, whose: &Key, id: u32, mut counts: Vec<Count>) {
        if whose.is_rule && !counts.is_empty() {
            counts.rotate_left(1);
        }
        let row = |count: Count| Row { key: Key { name: count.name.clone(), ..whose.clone() }, id, count };
        self.rows.extend(counts.into_iter().map(row));
    }

    /// For each row packets and bytes a second since `before`; `None`: it was not there then.
    fn rates(&self, before: Option<&Snapshot>) -> Vec<Option<(f64, f64)>> {
        let Some(before) = before else { return vec![None; self.rows.len()] };
        let seconds = self.taken.duration_since(before.taken).as_secs_f64();
        let old: HashMap<_, _> = before.rows.iter().map(|row| (&row.key, &row.count)).collect();
        let rate = |row: &Row| {
            let old = old.get(&row.key)?;
            let each = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
            Some((each(row.count.packets, old.packets), each(row.count.bytes, old.bytes)))
        };
        self.rows.iter().map(rate).collect()
    }
}

fn show(
    arguments: &StatsArguments,
    now: &Snapshot,
    before: Option<&Snapshot>,
    console: &mut Console,
) -> Result<(), Failure> {
    if arguments.prometheus {
        return console.bytes(prometheus(&now.rows).as_bytes());
    }
    let rates = now.rates(before);
    if arguments.json {
        return console.line(json(now, &rates)?);
    }
    if before.is_some() {
        console.line("")?;
    }
    let rows: Vec<_> = std::iter::zip(&now.rows, &rates).map(|(row, rate)| cells(row, *rate)).collect();
    let titles = ["interface", "program", "rule", "declared at", "packets", "bytes", "packets/s", "bytes/s"];
    print_rows(titles, [Left, Left, Left, Left, Right, Right, Right, Right], &rows, console)
}

fn cells(row: &Row, rate: Option<(f64, f64)>) -> [String; 8] {
    let Row { key, count, .. } = row;
    let name = if key.is_rule { count.name.clone() } else { format!("counter {}", count.name) };
    let rate = |part: fn((f64, f64)) -> f64| rate.map_or("-".to_owned(), |rate| format!("{:.0}", part(rate)));
    [
        key.interface.clone(),
        key.program.clone(),
        name,
        format!("{}:{}", count.file, count.line),
        count.packets.to_string(),
        count.bytes.to_string(),
        rate(|(packets, _)| packets),
        rate(|(_, bytes)| bytes),
    ]
}

/// The document of `--json`: other tools read these keys in this order.
#[derive(Serialize)]
struct Document<'a> {
    /// Seconds since 1970.
    time: f64,
    counts: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    interface: &'a str,
    program: &'a str,
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<&'a str>,
    file: &'a str,
    line: u32,
    packets: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<f64>,
}

fn json(now: &Snapshot, rates: &[Option<(f64, f64)>]) -> Result<String, Failure> {
    let time =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let counts = std::iter::zip(&now.rows, rates).map(|(row, rate)| json_line(row, *rate)).collect();
    serde_json::to_string(&Document { time, counts }).map_err(|error| Failure::new(error.to_string()))
}

fn json_line(row: &Row, rate: Option<(f64, f64)>) -> Line<'_> {
    let name = |wanted: bool| (row.key.is_rule == wanted).then_some(row.count.name.as_str());
    Line {
        interface: &row.key.interface,
        program: &row.key.program,
        id: row.id,
        rule: name(true),
        counter: name(false),
        file: &row.count.file,
        line: row.count.line,
        packets: row.count.packets,
        bytes: row.count.bytes,
        packets_per_second: rate.map(|(packets, _)| packets),
        bytes_per_second: rate.map(|(_, bytes)| bytes),
    }
}

/// A metric: its name, what it is, whether it is of rules, and its value.
type Family = (&'static str, &'static str, bool, fn(&Count) -> u64);

/// The text format (<https://prometheus.io/docs/instrumenting/exposition_formats/>): a family of samples a metric.
fn prometheus(rows: &[Row]) -> String {
    let families: [Family; 4] = [
        ("pktc_rule_packets_total", "Packets for which the condition of a rule held.", true, |count| {
            count.packets
        }),
        ("pktc_rule_bytes_total", "Bytes of those packets.", true, |count| count.bytes),
        ("pktc_counter_packets_total", "Packets of a named counter.", false, |count| count.packets),
        ("pktc_counter_bytes_total", "Bytes of those packets.", false, |count| count.bytes),
    ];
    let mut out = String::new();
    for (family, help, is_rule, value) in families {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {family} {help}\n# TYPE {family} counter");
        for row in rows.iter().filter(|row| row.key.is_rule == is_rule) {
            let label = if is_rule { "rule" } else { "counter" };
            let Key { interface, source, program, name, .. } = &row.key;
            // Without the id, which a new version of the program changes.
            let labels = [("interface", interface), ("source", source), ("program", program), (label, name)]
                .map(|(name, value)| format!("{name}=\"{}\"", escape(value)));
            let _ = writeln!(out, "{family}{{{}}} {}", labels.join(","), value(&row.count));
        }
    }
    out
}

/// A label's value between quotation marks.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, is_rule: bool, packets: u64) -> Row {
        let count =
            Count { name: name.into(), file: "edge.pkt".into(), line: 3, packets, bytes: 60 * packets };
        let text = String::from;
        let (interface, source, program) = (text("eth0"), text("edge.pkt"), text("edge"));
        Row { key: Key { interface, source, program, is_rule, name: name.into() }, id: 7, count }
    }

    #[test]
    fn prometheus_reads_one_family_a_metric() {
        let text = prometheus(&[row("dns", true, 2), row("se\"en", false, 1)]);
        let rule = "# TYPE pktc_rule_packets_total counter\n\
            pktc_rule_packets_total{interface=\"eth0\",source=\"edge.pkt\",program=\"edge\",rule=\"dns\"} 2\n";
        assert!(text.contains(rule), "{text}");
        let counter = "pktc_counter_bytes_total{interface=\"eth0\",source=\"edge.pkt\",program=\"edge\",counter=\"se\\\"en\"} 60\n";
        assert!(text.ends_with(counter), "{text}");
    }

    #[test]
    fn rates_are_of_what_was_there_before() {
        let taken = Instant::now();
        let before = Snapshot { taken, rows: vec![row("dns", true, 2)] };
        let rows = vec![row("dns", true, 8), row("seen", false, 1)];
        let now = Snapshot { taken: taken + Duration::from_secs(2), rows };
        assert_eq!(now.rates(Some(&before)), [Some((3.0, 180.0)), None]);
        assert_eq!(now.rates(None), [None, None]);
    }
}
