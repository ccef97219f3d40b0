//! `pktc status`: what runs on the interfaces.

use std::time::{Duration, SystemTime};

use pktc_bpf::XdpAction;
use pktc_loader::{DIRECT_CALLS, InterfaceStatus, Mode, Running, Slot, Status};
use serde::Serialize;

use crate::arguments::StatusArguments;
use crate::console::{Console, plural};
use crate::failure::{self, Failure, Outcome};
use crate::rows::Align::{Left, Right};
use crate::rows::print_rows;

/// Prints it, and warns where programs are more than the kernel calls directly.
pub(crate) fn status(arguments: &StatusArguments, console: &mut Console) -> Outcome {
    let status = pktc_loader::status(arguments.iface.as_deref());
    let status = status.map_err(|error| Failure::new(error.to_string()))?;
    if arguments.json {
        console.line(json(&status)?)?;
    } else {
        table(&status, console)?;
    }
    warn(&status, console);
    Ok(failure::Status::Done)
}

/// How programs are attached, in one word.
fn mode_name(mode: Option<Mode>) -> &'static str {
    match mode {
        Some(Mode::Native) => "native",
        Some(Mode::Skb) => "skb",
        None => "offloaded",
    }
}

/// The verdicts in a set of them, as `chain on` writes them.
fn verdicts(chain_on: u32) -> Vec<&'static str> {
    XdpAction::ALL.into_iter().filter(|action| chain_on & action.bit() != 0).map(XdpAction::word).collect()
}

fn table(status: &Status, console: &mut Console) -> Result<(), Failure> {
    let rows: Vec<_> = status.interfaces.iter().flat_map(interface_rows).collect();
    if rows.is_empty() {
        console.line("no interface has an XDP program")?;
    } else {
        let titles = [
            "interface",
            "mode",
            "priority",
            "chain on",
            "program",
            "id",
            "frags",
            "rules",
            "sets",
            "loaded",
            "source",
        ];
        let aligns = [Left, Left, Right, Left, Left, Right, Left, Right, Right, Right, Left];
        print_rows(titles, aligns, &rows, console)?;
    }
    for interface in &status.interfaces {
        if let Some(dispatcher) = &interface.dispatcher {
            let (name, id, version) = (&interface.name, dispatcher.id, dispatcher.version);
            console.line(format!("{name} has a dispatcher of version {version} (id {id})"))?;
        }
    }
    console.line(format!("the kernel has {}", plural(status.programs, "XDP program")))
}

fn interface_rows(interface: &InterfaceStatus) -> Vec<[String; 11]> {
    let row = |program: &Running| {
        let none = || "-".to_owned();
        let slot = |text: fn(Slot) -> String| program.slot.map_or_else(none, text);
        let source = |metadata: &pktc_loader::Metadata| {
            let sha256 = metadata.source.sha256.get(..12).unwrap_or_default();
            format!("{} ({sha256})", metadata.source.path)
        };
        let rules: usize = program.parts().iter().map(|part| part.rules.len()).sum();
        let known = |number: usize| if program.metadata.is_some() { number.to_string() } else { none() };
        [
            interface.name.clone(),
            mode_name(interface.mode).to_owned(),
            slot(|slot| slot.priority.to_string()),
            slot(|slot| verdicts(slot.chain_on).join(", ")),
            program.name.clone(),
            program.id.to_string(),
            slot(|slot| if slot.frags { "yes" } else { "no" }.to_owned()),
            known(rules),
            known(program.metadata.as_ref().map_or(0, |metadata| metadata.sets.len())),
            ago(program.loaded),
            program.metadata.as_ref().map_or_else(none, source),
        ]
    };
    interface.programs.iter().map(row).collect()
}

/// How long ago it was, in the two largest units.
fn ago(time: SystemTime) -> String {
    let seconds = time.elapsed().unwrap_or(Duration::ZERO).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s ago"),
        (0, 0, _) => format!("{minutes} min {} s ago", seconds % 60),
        (0, ..) => format!("{hours} h {} min ago", minutes % 60),
        _ => format!("{days} d {} h ago", hours % 24),
    }
}

fn warn(status: &Status, console: &Console) {
    for interface in &status.interfaces {
        let unreadable = interface.dispatcher.as_ref().and_then(|dispatcher| dispatcher.unreadable.as_ref());
        if let Some(why) = unreadable {
            console.warning(format!(
                "the programs of the dispatcher on {} are not listed: {why}",
                interface.name
            ));
        }
    }
    if status.programs > DIRECT_CALLS {
        console.warning(format!(
            "the kernel calls at most {DIRECT_CALLS} XDP programs directly, and there are {}: each beyond costs about 10 ns \
             more a packet. Load one program for several interfaces (`--iface a,b`), or link programs into one (`pktc link`)",
            status.programs
        ));
    }
}

/// The document of `--json`: other tools read these keys in this order.
#[derive(Serialize)]
struct Document<'a> {
    interfaces: Vec<Interface<'a>>,
    xdp_programs: usize,
    direct_calls: usize,
}

#[derive(Serialize)]
struct Interface<'a> {
    interface: &'a str,
    mode: &'static str,
    dispatcher: Option<Dispatcher>,
    programs: Vec<Program<'a>>,
}

#[derive(Serialize)]
struct Dispatcher {
    id: u32,
    version: u8,
    frags: Option<bool>,
}

#[derive(Serialize)]
struct Program<'a> {
    program: &'a str,
    id: u32,
    tag: &'a str,
    /// Seconds since 1970.
    loaded: u64,
    priority: Option<u32>,
    chain_on: Option<Vec<&'static str>>,
    frags: Option<bool>,
    rules: Option<usize>,
    sets: Option<usize>,
    source: Option<&'a pktc_loader::SourceInfo>,
}

fn json(status: &Status) -> Result<String, Failure> {
    let document = Document {
        interfaces: status.interfaces.iter().map(json_interface).collect(),
        xdp_programs: status.programs,
        direct_calls: DIRECT_CALLS,
    };
    serde_json::to_string(&document).map_err(|error| Failure::new(error.to_string()))
}

fn json_interface(interface: &InterfaceStatus) -> Interface<'_> {
    let dispatcher = interface.dispatcher.as_ref();
    Interface {
        interface: &interface.name,
        mode: mode_name(interface.mode),
        dispatcher: dispatcher.map(|found| Dispatcher {
            id: found.id,
            version: found.version,
            frags: found.frags,
        }),
        programs: interface.programs.iter().map(json_program).collect(),
    }
}

fn json_program(program: &Running) -> Program<'_> {
    let metadata = program.metadata.as_ref();
    Program {
        program: &program.name,
        id: program.id,
        tag: &program.tag,
        loaded: program.loaded.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        priority: program.slot.map(|slot| slot.priority),
        chain_on: program.slot.map(|slot| verdicts(slot.chain_on)),
        frags: program.slot.map(|slot| slot.frags),
        rules: metadata.map(|_| program.parts().iter().map(|part| part.rules.len()).sum()),
        sets: metadata.map(|metadata| metadata.sets.len()),
        source: metadata.map(|metadata| &metadata.source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_two_units() {
        let before = |seconds| ago(SystemTime::now() - Duration::from_secs(seconds));
        assert_eq!(before(5), "5 s ago");
        assert_eq!(before(125), "2 min 5 s ago");
        assert_eq!(before(2 * 3600 + 60), "2 h 1 min ago");
        assert_eq!(before(50 * 3600), "2 d 2 h ago");
    }

    #[test]
    fn sets_of_verdicts_are_spelled() {
        assert_eq!(verdicts(0b110), ["drop", "pass"]);
        assert_eq!(verdicts(1 << 31), [""; 0]);
    }
}
