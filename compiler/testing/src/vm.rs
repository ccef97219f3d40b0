//! The userspace engine: runs BPF objects, ours or clang's, without a kernel and without privileges.
//!
//! It is an interpreter that decodes a program once and checks everything that the program does, as strictly as
//! the kernel's verifier where that is cheap: every access must lie in its region, on the stack aligned and
//! written before, in the packet covered by a comparison with `data_end`; pointers keep their kind through
//! registers and stack, and only the arithmetic that the verifier allows is done on them. So a program that the
//! verifier would refuse on the path taken ends in a [`Fault`], and never gives a verdict that it should not.
//! What the verifier finds on other paths (and limits of complexity) is for the kernel to say.
//!
//! One CPU; the clock, the seed of random numbers, interface, queue and the length of the linear part come from
//! [`Env`]. Helpers and maps that it does not have are faults and errors, never guesses.

mod arithmetic;
mod fault;
mod helpers;
mod load;
mod machine;
mod map;
mod memory;
mod packet;
mod program;
mod stack;
mod value;

use pktc_bpf::{Insn, MapDef, Reg};

pub use fault::{Fault, Problem, VmError};

use crate::engine::{Engine, EngineError, Env, Outcome, verdict};
use crate::hits::{RuleCounters, outcome};
use machine::Machine;
use map::Map;
use memory::Memory;
use packet::Packet;
use program::Program;
use stack::Stack;

/// Instructions that one run may take; the verifier looks at no more.
pub const BUDGET: u64 = 1_000_000;

/// Frames of nested calls, the program's own included (`MAX_CALL_FRAMES`).
pub const FRAMES: usize = 8;

/// Bytes of a rule's counters: packets, bytes.
const COUNTERS: usize = 16;

/// A program, with its maps, ready to run.
pub struct Vm {
    program: Program,
    memory: Memory,
    /// State of random numbers.
    drawn: u64,
    executed: u64,
    counters: Option<RuleCounters>,
}

impl Vm {
    /// Loads `program` from an ELF object.
    ///
    /// # Errors
    /// If the object is none, or has no such program, or contains what this engine does not have.
    pub fn load(object: &[u8], program: &str) -> Result<Vm, VmError> {
        let loaded = load::load(object, program)?;
        Vm::new(loaded.insns, loaded.maps)
    }

    /// Takes instructions as they are; [`pktc_bpf::MapIndex`] points into `maps`.
    ///
    /// # Errors
    /// If a jump leads nowhere, or a map is impossible.
    pub fn from_insns(insns: &[Insn<Reg, i32>], maps: &[MapDef]) -> Result<Vm, VmError> {
        let maps = maps.iter().map(load::declared_map).collect::<Result<_, _>>()?;
        Vm::new(insns.to_vec(), maps)
    }

    fn new(insns: Vec<Insn<Reg, i32>>, maps: Vec<Map>) -> Result<Vm, VmError> {
        // Pointers number maps with 8 bits.
        if maps.len() > usize::from(u8::MAX) {
            let name = maps[usize::from(u8::MAX)].definition.name.clone();
            return Err(VmError::Map { name, reason: "the userspace engine has at most 255 maps" });
        }
        let program = Program::new(insns)?;
        if let Some(slot) = program.missing_map(maps.len()) {
            return Err(VmError::NoMap { slot });
        }
        let memory = Memory { packet: Packet::default(), stack: Stack::new(), maps, ifindex: 0, queue: 0 };
        Ok(Vm { program, memory, drawn: 0, executed: 0, counters: None })
    }

    /// Lets it tell by `counters` which rules held; without any, none is ever told.
    #[must_use]
    pub fn with_counters(self, counters: Option<RuleCounters>) -> Self {
        Vm { counters, ..self }
    }

    /// How many instructions the last run took.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.executed
    }

    /// Runs the program on `packet`: its return value.
    ///
    /// # Errors
    /// At the first thing that the program may not do.
    pub fn execute(&mut self, packet: &[u8], env: &Env) -> Result<u64, Fault> {
        self.memory.packet.reset(packet, env.linear);
        self.memory.ifindex = env.ifindex;
        self.memory.queue = env.queue;
        let machine = Machine::new(&mut self.memory, env.now, env.seed, &mut self.drawn);
        let (result, executed) = machine.run(&self.program);
        self.executed = executed;
        result
    }

    /// The packet as the last run left it.
    #[must_use]
    pub fn packet(&self) -> &[u8] {
        self.memory.packet.all()
    }

    /// The value of `key` in a map; none if there is no such map or key.
    pub fn map_value(&mut self, map: &str, key: &[u8]) -> Option<Vec<u8>> {
        let map = self.map_mut(map)?;
        if key.len() != map.definition.key_size {
            return None;
        }
        let entry = map.lookup(key)?;
        map.bytes(entry, 0, map.definition.value_size).ok().map(<[u8]>::to_vec)
    }

    /// Stores `value` at `key` of a map; whether that was possible.
    pub fn set_map_value(&mut self, map: &str, key: &[u8], value: &[u8]) -> bool {
        let Some(map) = self.map_mut(map) else { return false };
        let sizes = (map.definition.key_size, map.definition.value_size);
        sizes == (key.len(), value.len()) && map.update(key, value, 0) == 0
    }

    fn map_mut(&mut self, name: &str) -> Option<&mut Map> {
        self.memory.maps.iter_mut().find(|map| map.definition.name == name)
    }

    fn read_counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError> {
        let Some(counters) = &self.counters else { return Ok(Vec::new()) };
        let (name, rules) = (counters.map.clone(), counters.entries());
        let missing = |what: &str| EngineError::Fault(format!("map `{name}` of counters {what}"));
        let map = self.map_mut(&name).ok_or_else(|| missing("is missing"))?;
        let counter = |rule: u32| {
            let entry = map.lookup(&rule.to_le_bytes())?;
            let bytes = map.bytes(entry, 0, COUNTERS).ok()?;
            let (packets, bytes) = bytes.split_first_chunk()?;
            Some((u64::from_le_bytes(*packets), u64::from_le_bytes(bytes.try_into().ok()?)))
        };
        rules.map(counter).collect::<Option<_>>().ok_or_else(|| missing("has too few or too small entries"))
    }
}

impl Engine for Vm {
    fn name(&self) -> &'static str {
        "vm"
    }

    fn run(&mut self, packet: &[u8], env: &Env) -> Result<Outcome, EngineError> {
        let before = self.read_counters()?;
        let code = self.execute(packet, env).map_err(|fault| EngineError::Fault(fault.to_string()))?;
        // The kernel looks at 32 bits of it.
        let verdict = verdict(code as u32)?;
        let after = self.read_counters()?;
        Ok(outcome(verdict, self.counters.as_ref(), &before, &after))
    }

    fn counters(&mut self) -> Result<Vec<(u64, u64)>, EngineError> {
        self.read_counters()
    }
}
