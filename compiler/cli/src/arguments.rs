//! The command line.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use pktc_bpf::XdpAction;
use pktc_driver::Emit;
use pktc_driver::options::{Access, Counters, Kernel, Level, Options};
use pktc_loader::{Mode, Version};

use crate::engines::{EngineKind, Linear, Setting};
use crate::failure::Failure;

/// Compiles packet rules to BPF for XDP, runs them on captures, tests them, loads them.
#[derive(Debug, Parser)]
#[command(name = "pktc", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Build(BuildArguments),
    Check(CheckArguments),
    Run(RunArguments),
    Test(TestArguments),
    Link(LinkArguments),
    Load(LoadArguments),
    Unload(UnloadArguments),
    Status(StatusArguments),
    Stats(StatsArguments),
}

/// Compile a file's programs to a BPF object
#[derive(Debug, Args)]
pub(crate) struct BuildArguments {
    /// The `.pkt` source; of several, the programs are linked into one, as `pktc link` does
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where the result goes [default: FILE with `.o`, in this directory; text: standard output]
    #[arg(short, long, value_name = "OBJ")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: Target,
    /// How much is optimised
    #[arg(short = 'O', value_name = "LEVEL", default_value = "2", value_parser = one_of(&LEVELS, level_name))]
    pub(crate) level: Level,
    /// Leave out the counters of rules
    #[arg(long)]
    pub(crate) no_counters: bool,
    /// Show what a stage makes, as text, in place of writing the object
    #[arg(long, value_name = "STAGE", value_parser = one_of(&Emit::ALL, Emit::name))]
    pub(crate) emit: Option<Emit>,
}

/// What objects are for.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// How packet bytes are reached [default: auto; for kernels before 5.18: direct]
    #[arg(long, value_name = "HOW", value_parser = one_of(&Access::ALL, Access::name))]
    access: Option<Access>,
    /// The oldest kernel that must take the object
    #[arg(long, value_name = "VERSION", default_value = "6.1", value_parser = one_of(&Kernel::ALL, Kernel::name))]
    kernel: Kernel,
}

impl Target {
    /// As options of the pipeline.
    ///
    /// # Errors
    /// If the kernel lacks what the access needs.
    pub(crate) fn options(&self, level: Level, counters: Counters) -> Result<Options, Failure> {
        let kernel = self.kernel;
        let access = self.access.unwrap_or(kernel.access());
        if kernel.takes(access) {
            return Ok(Options { access, kernel, level, counters });
        }
        Err(Failure::new(format!(
            "`--access {}` needs a kernel that has packets in several buffers, which came with 5.18; for `--kernel {}` \
             take `--access direct`",
            access.name(),
            kernel.name()
        )))
    }
}

/// Look for mistakes, without building anything
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The `.pkt` sources
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Run a program on the packets of a capture, and show what becomes of each
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The `.pkt` source
    pub(crate) file: PathBuf,
    /// A pcap or pcapng file with Ethernet frames
    pub(crate) capture: PathBuf,
    /// One JSON object a packet: packet, verdict, rule, line (and file, if it is not FILE)
    #[arg(long)]
    pub(crate) json: bool,
    /// Which program, where there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) program: Option<String>,
    #[command(flatten)]
    pub(crate) running: Running,
}

/// How programs are run.
#[derive(Debug, Args)]
pub(crate) struct Running {
    /// What runs the program
    #[arg(long, value_name = "ENGINE", default_value = "vm", value_parser = one_of(&EngineKind::ALL, EngineKind::name))]
    engine: EngineKind,
    /// Bytes in the linear part of packets; or all lengths from 0 to the headers' end, which must give the same
    #[arg(long, value_name = "N|sweep", value_parser = Linear::parse)]
    linear: Option<Linear>,
    #[command(flatten)]
    target: Target,
}

impl Running {
    /// The engine's setting; with counters, by which engines find the rule that decided. `usual` is the linear part where
    /// nothing is said.
    ///
    /// # Errors
    /// See [`Target::options`]; if a sweep is asked of what sees the linear part only.
    pub(crate) fn setting(&self, usual: fn(EngineKind) -> Linear) -> Result<Setting, Failure> {
        let options = self.target.options(Level::default(), Counters::On)?;
        let kind = self.engine;
        // The reference does not compile, so it sees packets whole.
        let whole = kind == EngineKind::Reference || options.access.frags();
        let linear = match self.linear {
            Some(Linear::Sweep) if !whole => {
                return Err(Failure::new(
                    "`--linear sweep` compares what is said of all lengths of the linear part, but with `--access direct` \
                     rules see no more than that part; take `--access auto`",
                ));
            }
            Some(linear) => linear,
            None if whole => usual(kind),
            None => Linear::Whole,
        };
        Ok(Setting { kind, linear, options })
    }
}

/// Run the tests in the sources
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The `.pkt` sources
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write the snapshots of `replay` as they come out now
    #[arg(long)]
    pub(crate) accept: bool,
    #[command(flatten)]
    pub(crate) running: Running,
}

/// Make one program of those in several objects, which means what a dispatcher's chain of them would
#[derive(Debug, Args)]
pub(crate) struct LinkArguments {
    /// The objects: of pktc's, or of another compiler for BPF
    #[arg(required = true, value_name = "OBJ")]
    pub(crate) files: Vec<PathBuf>,
    /// Where the result goes
    #[arg(short, long, value_name = "OBJ")]
    pub(crate) output: PathBuf,
    /// What the program is called [default: like the result's file]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// Attach a program to interfaces, in place of its older version where one runs
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// A `.pkt` source or an object; several are linked into one program
    #[arg(required = true, value_name = "FILE|OBJ")]
    pub(crate) files: Vec<PathBuf>,
    /// The interface, or several with commas between: one program on all of them
    #[arg(long, value_name = "INTERFACE", required = true, value_delimiter = ',')]
    pub(crate) iface: Vec<String>,
    /// In the driver, or (slower, on every interface) behind it
    #[arg(long, value_name = "MODE", default_value = "native", value_parser = one_of(&MODES, mode_name))]
    pub(crate) mode: Mode,
    /// Which program, where there are several; of linked files, what their program is called
    #[arg(long, value_name = "NAME")]
    pub(crate) program: Option<String>,
    /// Alone on the interface, without a dispatcher that others can join
    #[arg(long)]
    pub(crate) direct: bool,
    /// When its turn is among the programs of the interface: lower ones come first [default: what the program says, or 50]
    #[arg(long, value_name = "N", conflicts_with = "direct")]
    pub(crate) priority: Option<u32>,
    /// The verdicts after which the next program runs [default: what the program says, or pass]
    #[arg(long, value_name = "VERDICTS", value_delimiter = ',', conflicts_with = "direct",
        value_parser = one_of(&XdpAction::ALL, XdpAction::word))]
    pub(crate) chain_on: Option<Vec<XdpAction>>,
    /// The version of a dispatcher where there is none yet [default: the installed libxdp's]
    #[arg(long, value_name = "VERSION", conflicts_with = "direct", value_parser = one_of(&Version::ALL, version_name))]
    pub(crate) dispatcher_version: Option<Version>,
}

/// Detach pktc's programs, or others that are named, from an interface
#[derive(Debug, Args)]
pub(crate) struct UnloadArguments {
    /// The interface
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) iface: String,
    /// The program of this name, whoever's it is
    #[arg(long, value_name = "NAME", conflicts_with_all = ["id", "all"])]
    pub(crate) program: Option<String>,
    /// The program of this number, whoever's it is
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    pub(crate) id: Option<u32>,
    /// All programs, whoever's they are
    #[arg(long)]
    pub(crate) all: bool,
}

/// Show what runs on the interfaces, whoever loaded it
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Only this interface
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) iface: Option<String>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what rules and named counters have counted, whoever loaded the programs
#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// Only this interface
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) iface: Option<String>,
    /// Only the program of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) program: Option<String>,
    /// Again and again, with packets and bytes a second
    #[arg(long)]
    pub(crate) watch: bool,
    /// Seconds from one time to the next
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) interval: u32,
    /// How many times, in place of until it is interrupted
    #[arg(long, value_name = "N", requires = "watch")]
    pub(crate) count: Option<u32>,
    /// One JSON object each time
    #[arg(long)]
    pub(crate) json: bool,
    /// The text format that Prometheus reads
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    pub(crate) prometheus: bool,
}

const LEVELS: [Level; 2] = [Level::O0, Level::O2];

fn level_name(level: Level) -> &'static str {
    match level {
        Level::O0 => "0",
        Level::O2 => "2",
    }
}

const MODES: [Mode; 2] = [Mode::Native, Mode::Skb];

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Native => "native",
        Mode::Skb => "skb",
    }
}

fn version_name(version: Version) -> &'static str {
    match version {
        Version::V2 => "2",
        Version::V3 => "3",
    }
}

/// A value that is one of `all`, by its name.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.iter().map(|&value| name(value)));
    names.try_map(move |given| {
        let found = all.iter().find(|&&value| name(value) == given);
        found.copied().ok_or("is none of the possible values")
    })
}
