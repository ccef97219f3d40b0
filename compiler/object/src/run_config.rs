//! How programs take part in a dispatcher, where they say so: the section `.xdp_run_config`, which libxdp and pktc's
//! loader read.
//!
//! As in map definitions the *types* say the values: a variable `_NAME` a program, a structure whose members
//! `priority`, `XDP_PASS` … are pointers to arrays of so many elements. The section itself is zeros.

use pktc_bpf::XdpAction;

use crate::btf::{Encoder, Member, Variable};
use crate::metadata::ProgramInfo;
use crate::types::{POINTER, number};

/// The section.
pub(crate) const SECTION: &str = ".xdp_run_config";

/// What a program says, in the section.
pub(crate) struct RunConfig {
    /// The variable.
    pub(crate) name: String,
    /// Bytes from the section's start.
    pub(crate) offset: u32,
    /// Bytes.
    pub(crate) size: u32,
}

/// Describes what the programs say; of those that say nothing there is nothing.
pub(crate) fn describe(btf: &mut Encoder, programs: &[ProgramInfo]) -> Vec<RunConfig> {
    let (mut configs, mut variables, mut offset) = (Vec::new(), Vec::new(), 0);
    for program in programs {
        let values = values(program);
        if values.is_empty() {
            continue;
        }
        let types: Vec<_> = values.iter().map(|&(name, value)| (name, number(btf, value))).collect();
        let members: Vec<Member<'_>> =
            types.iter().zip(0..).map(|(&(name, ty), n)| Member { name, ty, offset: n * POINTER }).collect();
        let size = members.len() as u32 * POINTER;
        let structure = btf.structure("", size, &members);
        let name = format!("_{}", program.name);
        variables.push(Variable { ty: btf.variable(&name, structure), offset, size });
        configs.push(RunConfig { name, offset, size });
        offset += size;
    }
    if !variables.is_empty() {
        btf.section(SECTION, offset, &variables);
    }
    configs
}

/// The members: verdicts that do not lead on are said, too, because pass does unless it is said that it does not.
fn values(program: &ProgramInfo) -> Vec<(&'static str, u32)> {
    let priority = program.priority.map(|priority| ("priority", priority));
    let chain_on = program.chain_on.as_ref().map(|words| {
        let leads_on = |action: XdpAction| words.iter().any(|word| word == action.word());
        XdpAction::ALL.map(|action| (action.name(), u32::from(leads_on(action))))
    });
    priority.into_iter().chain(chain_on.into_iter().flatten()).collect()
}
