//! The packets that everything is measured on: those of the captures.

use std::path::{Path, PathBuf};

use pktc_testing::capture::{CaptureError, read};

/// The environment variable with the folder whose `captures` are used.
pub const FOLDER: &str = "PKTC_SHARED";

/// The folder of captures, if there is one.
///
/// # Errors
/// Why not, as a sentence.
pub fn captures_folder() -> Result<PathBuf, String> {
    let Some(shared) = std::env::var_os(FOLDER) else {
        return Err(format!("{FOLDER} is not set; it names the folder that holds `captures`"));
    };
    let folder = Path::new(&shared).join("captures");
    if folder.is_dir() { Ok(folder) } else { Err(format!("{} is no folder", folder.display())) }
}

/// The packets of all Ethernet captures of a folder, by the files' names.
///
/// # Errors
/// If the folder or a file cannot be read, or holds no packet.
pub fn captured(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(unreadable)?;
    paths.retain(|path| {
        path.extension().is_some_and(|kind| ["pcap", "pcapng", "cap"].iter().any(|&known| kind == known))
    });
    paths.sort();
    let mut packets = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        match read(&bytes) {
            Ok(capture) => packets.extend(capture.packets.into_iter().map(|packet| packet.data)),
            Err(CaptureError::LinkType { .. }) => {} // no Ethernet, so nothing that XDP sees
            Err(error) => return Err(format!("{} {error}", path.display())),
        }
    }
    if packets.is_empty() { Err(format!("{} holds no packets", folder.display())) } else { Ok(packets) }
}
