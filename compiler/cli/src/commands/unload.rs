//! `pktc unload`: takes programs from an interface, and leaves the others.

use pktc_loader::Which;

use crate::arguments::UnloadArguments;
use crate::console::Console;
use crate::failure::{Failure, Outcome, Status};

/// Detaches, and says what it was.
pub(crate) fn unload(arguments: &UnloadArguments, console: &mut Console) -> Outcome {
    let interface = &arguments.iface;
    let which = match (&arguments.program, arguments.id, arguments.all) {
        (Some(name), ..) => Which::Named(name.clone()),
        (None, Some(id), _) => Which::Id(id),
        (None, None, true) => Which::All,
        (None, None, false) => Which::Own,
    };
    let removed = pktc_loader::remove(interface, &which).map_err(|error| Failure::new(error.to_string()))?;
    for program in removed {
        console.note(format!("detached {program} from {interface}"));
    }
    Ok(Status::Done)
}
