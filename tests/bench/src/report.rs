//! The figures as a table for people, or as JSON.

use std::fmt::{self, Display};

use serde::Serialize;

use crate::compare::Executed;
use crate::footprint::Footprint;
use crate::kernel::{Accepted, Measured, Measurement, WaysMeasured};
use crate::ways::{self, ratios};

/// All that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// What the userspace engine counted, a line a row.
    pub rows: Vec<Counted>,
    /// What the kernel said, if it was asked.
    pub kernel: Option<Measurement>,
    /// The ways to reach a packet's bytes.
    pub ways: Ways,
    /// What compiling costs, if it was measured.
    pub build: Option<Footprint>,
}

/// Where the figures are from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn this() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let name = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let processor = name.map_or("unknown processor", |(_, name)| name).to_owned();
        Machine { processor, kernel: read("/proc/sys/kernel/osrelease").trim().to_owned() }
    }
}

/// The table of ways to reach a packet's bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ways {
    /// What the userspace engine counted over the captures, a line a way.
    pub executed: Vec<ways::Executed>,
    /// What the kernel said, if it was asked.
    pub kernel: Option<WaysMeasured>,
}

/// A row in the userspace engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Its title.
    pub row: String,
    /// Over the captures.
    pub captured: Executed,
    /// Over the generated packets.
    pub generated: Executed,
    /// Instruction slots of pktc's program in the object.
    pub pktc_slots: u64,
    /// Of clang's.
    pub clang_slots: u64,
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, Linux {}\n", self.machine.processor, self.machine.kernel)?;
        self.counted(f)?;
        if let Some(kernel) = &self.kernel {
            writeln!(f)?;
            self.measured(kernel, f)?;
        }
        writeln!(f)?;
        self.ways.lines(f)?;
        writeln!(f)?;
        self.ways.ratios(f)?;
        if let Some(build) = &self.build {
            let Footprint { fastest_ms, processor_ms, memory_mb } = build;
            write!(
                f,
                "\npktc build of the ten-rule file: {fastest_ms:.1} ms ({processor_ms:.1} ms of processor), "
            )?;
            writeln!(f, "{memory_mb:.1} MB")?;
        }
        Ok(())
    }
}

impl Report {
    fn counted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = self.rows.first().map_or((0, 0), |row| (row.captured.packets, row.generated.packets));
        writeln!(
            f,
            "Executed instructions over {} captured packets, and over {} generated ones\n",
            packets.0, packets.1
        )?;
        writeln!(
            f,
            "| program | pktc | clang | ratio | generated: pktc | clang | ratio | object: pktc, bytes | clang |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|")?;
        for row in &self.rows {
            let (here, there) = (&row.captured, &row.generated);
            write!(f, "| {} | {} | {} | {:.3} ", row.row, here.pktc, here.clang, here.ratio())?;
            write!(f, "| {} | {} | {:.3} ", there.pktc, there.clang, there.ratio())?;
            writeln!(f, "| {} | {} |", row.pktc_slots * 8, row.clang_slots * 8)?;
        }
        Ok(())
    }

    fn measured(&self, kernel: &Measurement, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measurement { rounds, null_ns, rows } = kernel;
        writeln!(
            f,
            "In the kernel: medians of {rounds} rounds; a program that only drops takes {null_ns:.1} ns\n"
        )?;
        writeln!(
            f,
            "| program | ns: pktc | clang | ratio | net ratio | xlated: pktc | clang | processed: pktc | clang |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|")?;
        for (row, measured) in self.rows.iter().zip(rows) {
            let Measured { pktc, clang, pktc_ns, clang_ns, ratio, net_ratio } = measured;
            let net = net_ratio.map(|ratio| format!("{ratio:.2}"));
            write!(
                f,
                "| {} | {pktc_ns:.1} | {clang_ns:.1} | {ratio:.2} | {} ",
                row.row,
                known(net.as_ref())
            )?;
            let Accepted { xlated, processed } = pktc;
            write!(f, "| {} | {} ", known(xlated.as_ref()), known(clang.xlated.as_ref()))?;
            writeln!(f, "| {} | {} |", known(processed.as_ref()), known(clang.processed.as_ref()))?;
        }
        Ok(())
    }
}

impl Ways {
    fn lines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Ways to reach a packet's bytes, over the captures\n")?;
        writeln!(f, "| way: program | executed | object, instructions | ns | xlated | processed |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for (index, ways::Executed { way, instructions, slots }) in self.executed.iter().enumerate() {
            let kernel = self.kernel.as_ref().map(|kernel| &kernel.ways[index]);
            let ns = kernel.map(|(_, ns)| format!("{ns:.1}"));
            let Accepted { xlated, processed } =
                kernel.map_or(Accepted::default(), |(accepted, _)| *accepted);
            write!(f, "| {way} | {instructions} | {slots} | {} ", known(ns.as_ref()))?;
            writeln!(f, "| {} | {} |", known(xlated.as_ref()), known(processed.as_ref()))?;
        }
        Ok(())
    }

    fn ratios(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| ratio | time | at most | executed | object |")?;
        writeln!(f, "|---|---|---|---|---|")?;
        let figures = |of: fn(&ways::Executed) -> u64| -> Vec<f64> {
            self.executed.iter().map(|way| of(way) as f64).collect()
        };
        let (executed, slots) = (figures(|way| way.instructions), figures(|way| way.slots));
        for (index, ratio) in ratios().iter().enumerate() {
            let time = self.kernel.as_ref().map(|kernel| format!("{:.3}", kernel.ratios[index]));
            let aim = ratio.aim.map(|aim| format!("{aim:.2}"));
            write!(f, "| {} | {} | {} ", ratio.title(), known(time.as_ref()), known(aim.as_ref()))?;
            writeln!(f, "| {:.3} | {:.2} |", ratio.of(&executed), ratio.of(&slots))?;
        }
        Ok(())
    }
}

/// A figure, or a dash where there is none.
fn known<T: Display>(figure: Option<&T>) -> String {
    figure.map_or_else(|| "–".into(), T::to_string)
}
