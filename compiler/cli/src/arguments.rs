//! The command line.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use pktc_driver::Emit;
use pktc_driver::options::{Access, Counters, Kernel, Level, Options};
use pktc_loader::Mode;

use crate::engines::EngineKind;

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
    Load(LoadArguments),
    Unload(UnloadArguments),
}

/// Compile a file's programs to a BPF object
#[derive(Debug, Args)]
pub(crate) struct BuildArguments {
    /// The `.pkt` source
    pub(crate) file: PathBuf,
    /// Where the result goes [default: FILE's name with `.o`, in this directory; text goes to standard output]
    #[arg(short, long, value_name = "OBJ")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) compilation: Compilation,
    /// Leave out the counters of rules
    #[arg(long)]
    pub(crate) no_counters: bool,
    /// What comes out
    #[arg(long, value_name = "STAGE", default_value = "object", value_parser = one_of(EMITS))]
    pub(crate) emit: Emitted,
}

/// How to compile.
#[derive(Debug, Args)]
pub(crate) struct Compilation {
    /// How packet bytes are reached
    #[arg(long, value_name = "HOW", default_value = "direct", value_parser = one_of(ACCESSES))]
    access: Access,
    /// The oldest kernel that must take the object
    #[arg(long, value_name = "VERSION", default_value = "6.1", value_parser = one_of(KERNELS))]
    kernel: Kernel,
    /// How much is optimised
    #[arg(short = 'O', value_name = "LEVEL", default_value = "2", value_parser = one_of(LEVELS))]
    level: Level,
}

impl Compilation {
    /// As options of the pipeline.
    pub(crate) fn options(&self, counters: Counters) -> Options {
        Options { access: self.access, kernel: self.kernel, level: self.level, counters }
    }
}

/// Look for mistakes, without building anything
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The `.pkt` sources
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
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
    /// What runs the program
    #[arg(long, value_name = "ENGINE", default_value = "vm", value_parser = one_of(ENGINES))]
    pub(crate) engine: EngineKind,
    /// Which program, where there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) program: Option<String>,
}

/// Run the tests in the sources
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The `.pkt` sources
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What runs the programs
    #[arg(long, value_name = "ENGINE", default_value = "vm", value_parser = one_of(ENGINES))]
    pub(crate) engine: EngineKind,
    /// Write the snapshots of `replay` as they come out now
    #[arg(long)]
    pub(crate) accept: bool,
}

/// Attach a program to an interface
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// A `.pkt` source, or an object that was built from one
    #[arg(value_name = "FILE|OBJ")]
    pub(crate) file: PathBuf,
    /// The interface
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) iface: String,
    /// In the driver, or (slower, on every interface) behind it
    #[arg(long, value_name = "MODE", default_value = "native", value_parser = one_of(MODES))]
    pub(crate) mode: Mode,
    /// Which program, where there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) program: Option<String>,
}

/// Detach pktc's program from an interface
#[derive(Debug, Args)]
pub(crate) struct UnloadArguments {
    /// The interface
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) iface: String,
}

/// What `build` puts out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emitted {
    /// A BPF object.
    Object,
    /// What a stage works on, as text.
    Text(Emit),
}

const EMITS: &[(&str, Emitted)] = &[
    ("tokens", Emitted::Text(Emit::Tokens)),
    ("ast", Emitted::Text(Emit::Ast)),
    ("typed", Emitted::Text(Emit::Typed)),
    ("rules", Emitted::Text(Emit::Rules)),
    ("flow", Emitted::Text(Emit::Flow)),
    ("asm", Emitted::Text(Emit::Asm)),
    ("object", Emitted::Object),
];
const ACCESSES: &[(&str, Access)] = &[("direct", Access::Direct)];
const KERNELS: &[(&str, Kernel)] = &[
    ("5.10", Kernel::V5_10),
    ("5.15", Kernel::V5_15),
    ("5.18", Kernel::V5_18),
    ("6.1", Kernel::V6_1),
    ("6.6", Kernel::V6_6),
    ("latest", Kernel::Latest),
];
const LEVELS: &[(&str, Level)] = &[("0", Level::O0), ("2", Level::O2)];
const ENGINES: &[(&str, EngineKind)] =
    &[("reference", EngineKind::Reference), ("vm", EngineKind::Vm), ("kernel", EngineKind::Kernel)];
const MODES: &[(&str, Mode)] = &[("native", Mode::Native), ("skb", Mode::Skb)];

/// A value that is one of those that `table` names.
fn one_of<T: Copy + Send + Sync>(table: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(table.iter().map(|&(name, _)| name));
    names.try_map(|given| {
        let found = table.iter().find(|&&(name, _)| name == given);
        found.map(|&(_, value)| value).ok_or("is none of the possible values")
    })
}
