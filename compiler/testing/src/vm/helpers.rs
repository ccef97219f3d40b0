//! The kernel's helpers: arguments in r1 to r5, a result for r0.

use pktc_bpf::{Helper, Reg};

use super::fault::Problem;
use super::machine::Machine;
use super::memory::Memory;
use super::value::{Kind, Value};

impl Machine<'_> {
    /// Calls `helper`; r1 to r5 are lost afterwards.
    pub(super) fn call_helper(&mut self, helper: Helper) -> Result<(), Problem> {
        let result = match helper {
            Helper::MapLookupElem => self.map_lookup()?,
            Helper::MapUpdateElem => self.map_update()?,
            Helper::MapDeleteElem => self.map_delete()?,
            Helper::KtimeGetNs => Value::scalar(self.now),
            Helper::GetPrandomU32 => Value::scalar(self.random().into()),
            Helper::GetSmpProcessorId => Value::scalar(0),
            Helper::XdpGetBuffLen => {
                self.context_argument(helper)?;
                Value::scalar(self.memory.packet.len() as u64)
            }
            Helper::XdpLoadBytes => self.load_bytes()?,
            Helper::XdpStoreBytes => self.store_bytes()?,
        };
        self.regs[1..=5].fill(Value::UNSET);
        self.regs[0] = result;
        Ok(())
    }

    fn map_lookup(&mut self) -> Result<Value, Problem> {
        let map = self.map_argument(Helper::MapLookupElem)?;
        let key = self.key(map)?;
        let entry = self.memory.maps[usize::from(map)].lookup(&key);
        Ok(entry.map_or(Value::scalar(0), |entry| Value::pointer(Kind::MapValue { map, entry }, 0)))
    }

    fn map_update(&mut self) -> Result<Value, Problem> {
        let map = self.map_argument(Helper::MapUpdateElem)?;
        let key = self.key(map)?;
        let value_size = self.memory.maps[usize::from(map)].definition.value_size;
        let value = self.memory.bytes(self.read(Reg(3))?, value_size)?.to_vec();
        let flags = self.number_argument(Helper::MapUpdateElem, 4)?;
        self.require_writable(map)?;
        Ok(code(self.memory.maps[usize::from(map)].update(&key, &value, flags)))
    }

    fn map_delete(&mut self) -> Result<Value, Problem> {
        let map = self.map_argument(Helper::MapDeleteElem)?;
        let key = self.key(map)?;
        self.require_writable(map)?;
        Ok(code(self.memory.maps[usize::from(map)].delete(&key)))
    }

    /// Copies packet bytes, wherever they lie, to memory.
    fn load_bytes(&mut self) -> Result<Value, Problem> {
        let (offset, pointer, len) = self.bytes_arguments(Helper::XdpLoadBytes)?;
        let reached = self.memory.packet.reach(offset, len).map(|bytes| bytes.to_vec());
        // The verifier asks for the whole memory, whatever the helper will answer.
        let place = self.memory.bytes_mut(pointer, len as usize)?;
        Ok(code(match reached {
            Ok(bytes) => {
                place.copy_from_slice(&bytes);
                0
            }
            Err(error) => error,
        }))
    }

    /// Copies memory to packet bytes, wherever they lie.
    fn store_bytes(&mut self) -> Result<Value, Problem> {
        let (offset, pointer, len) = self.bytes_arguments(Helper::XdpStoreBytes)?;
        let bytes = self.memory.bytes(pointer, len as usize)?.to_vec();
        Ok(code(match self.memory.packet.reach(offset, len) {
            Ok(place) => {
                place.copy_from_slice(&bytes);
                0
            }
            Err(error) => error,
        }))
    }

    /// Offset in the packet, memory, and length, which may not be 0.
    fn bytes_arguments(&self, helper: Helper) -> Result<(u64, Value, u64), Problem> {
        self.context_argument(helper)?;
        let offset = self.number_argument(helper, 2)?;
        let pointer = self.read(Reg(3))?;
        let len = self.number_argument(helper, 4)?;
        match len {
            0 => Err(Problem::Argument { helper, argument: 4, wanted: "a length of at least 1" }),
            _ => Ok((offset, pointer, len)),
        }
    }

    fn context_argument(&self, helper: Helper) -> Result<(), Problem> {
        if self.read(Reg(1))? == Memory::context() {
            return Ok(());
        }
        Err(Problem::Argument { helper, argument: 1, wanted: "the context" })
    }

    fn map_argument(&self, helper: Helper) -> Result<u8, Problem> {
        match self.read(Reg(1))?.kind {
            Kind::Map(map) => Ok(map),
            _ => Err(Problem::Argument { helper, argument: 1, wanted: "a map" }),
        }
    }

    fn number_argument(&self, helper: Helper, argument: u8) -> Result<u64, Problem> {
        let number = self.read(Reg(argument))?.number();
        number.ok_or(Problem::Argument { helper, argument: argument.into(), wanted: "a number" })
    }

    fn key(&self, map: u8) -> Result<Vec<u8>, Problem> {
        let size = self.memory.maps[usize::from(map)].definition.key_size;
        Ok(self.memory.bytes(self.read(Reg(2))?, size)?.to_vec())
    }

    fn require_writable(&self, map: u8) -> Result<(), Problem> {
        if self.memory.maps[usize::from(map)].is_read_only() { Err(Problem::ReadOnly) } else { Ok(()) }
    }

    /// The next of a sequence that depends on the seed alone (SplitMix64).
    fn random(&mut self) -> u32 {
        *self.drawn = self.drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *self.drawn ^ u64::from(self.seed);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32
    }
}

fn code(code: i64) -> Value {
    Value::scalar(code as u64)
}
