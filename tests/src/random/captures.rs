//! Packets from real networks.

use std::path::{Path, PathBuf};

use pktc_testing::capture;

/// The packets of all captures in `$PKTC_SHARED/captures`; none where the variable is not set.
///
/// # Panics
/// If the variable names a folder without captures: then it is set wrongly.
pub(super) fn packets() -> Vec<Vec<u8>> {
    let Some(shared) = std::env::var_os("PKTC_SHARED") else { return Vec::new() };
    let folder = PathBuf::from(shared).join("captures");
    let packets: Vec<Vec<u8>> = files(&folder).iter().flat_map(|file| packets_of(file)).collect();
    assert!(!packets.is_empty(), "PKTC_SHARED is set, but {} holds no Ethernet captures", folder.display());
    packets
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "pcap" || end == "pcapng" || end == "cap"))
        .collect();
    files.sort();
    files
}

/// The packets of a file; none if they are not of Ethernet.
fn packets_of(file: &Path) -> Vec<Vec<u8>> {
    let capture = std::fs::read(file).ok().and_then(|bytes| capture::read(&bytes).ok()).unwrap_or_default();
    capture.packets.into_iter().map(|packet| packet.data).collect()
}
