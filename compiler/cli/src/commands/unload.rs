//! `pktc unload`: takes pktc's program from an interface, and no other.

use crate::arguments::UnloadArguments;
use crate::console::Console;
use crate::failure::{Failure, Outcome, Status};

/// Detaches, and says what it was.
pub(crate) fn unload(arguments: &UnloadArguments, console: &mut Console) -> Outcome {
    let interface = &arguments.iface;
    let detached = pktc_loader::detach(interface).map_err(|error| Failure::new(error.to_string()))?;
    for program in detached {
        console.note(format!("detached {program} from {interface}"));
    }
    Ok(Status::Done)
}
