//! Booting a kernel under emulation, with a limit to its time.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::GuestError;
use super::initramfs::{BEGIN, END};

const QEMU: &str = "qemu-system-x86_64";
/// Longest time from power on to power off. A boot takes seconds; what a guest does may take minutes.
const LIMIT: Duration = Duration::from_secs(600);
/// How much of the console an error shows.
const LAST_LINES: usize = 30;

/// Whether the emulator is installed.
pub(super) fn check() -> Result<(), GuestError> {
    let output = Command::new(QEMU).arg("--version").output();
    output.map(drop).map_err(|_| GuestError::Unavailable(format!("needs {QEMU}")))
}

/// Boots `kernel` with the file system `image`; gives what stands between the marks on its console.
pub(super) fn boot(kernel: &Path, image: &[u8]) -> Result<String, GuestError> {
    let failed = |error: std::io::Error| GuestError::Failed {
        reason: format!("{QEMU} cannot be run: {error}"),
        console: String::new(),
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let initrd = folder.path().join("initramfs");
    std::fs::write(&initrd, image).map_err(failed)?;
    let mut child = Command::new(QEMU)
        .args(["-accel", "tcg", "-cpu", "max", "-m", "1024", "-smp", "1"])
        .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"])
        .args(["-append", "console=ttyS0 quiet loglevel=0 panic=-1"])
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(&initrd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let (console, in_time) = listen(&mut child);
    between_marks(&console, in_time)
}

/// All that the console says until the guest powers off, or the time is over (then it is switched off).
fn listen(child: &mut Child) -> (String, bool) {
    let (sender, receiver) = mpsc::channel();
    let Some(mut pipe) = child.stdout.take() else { return (String::new(), false) };
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 1 << 14];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    let end = Instant::now() + LIMIT;
    let mut console = Vec::new();
    let in_time = loop {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(bytes) => console.extend(bytes),
            Err(mpsc::RecvTimeoutError::Disconnected) => break true,
            Err(mpsc::RecvTimeoutError::Timeout) => break false,
        }
    };
    // It is over already, unless its time is; an error means that it is gone.
    let _ = child.kill();
    let _ = child.wait();
    let _ = reader.join();
    (String::from_utf8_lossy(&console).replace('\r', ""), in_time)
}

fn between_marks(console: &str, in_time: bool) -> Result<String, GuestError> {
    let failed = |reason: String| {
        let lines: Vec<&str> = console.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        Err(GuestError::Failed { reason, console: last })
    };
    if !in_time {
        return failed(format!("the guest was not done after {} seconds", LIMIT.as_secs()));
    }
    let begun = console.split_once(&format!("{BEGIN}\n"));
    let Some((_, script)) = begun else { return failed("the guest did not start its script".into()) };
    let Some((output, status)) = script.rsplit_once(&format!("\n{END} ")) else {
        return failed("the guest did not come to the end of its script".into());
    };
    match status.lines().next() {
        Some("0") => Ok(output.to_owned()),
        status => failed(format!("the script ended with status {}", status.unwrap_or("unknown"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_script_says_counts() {
        let console = "SeaBIOS\nbooting\n#pktc-begin\na\nb\n\n#pktc-end 0\npower down\n";
        assert_eq!(between_marks(console, true).unwrap(), "a\nb\n");
    }

    #[test]
    fn what_did_not_end_well_is_an_error() {
        let reason = |console, in_time| match between_marks(console, in_time) {
            Err(GuestError::Failed { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(reason("#pktc-begin\na\n", true), "the guest did not come to the end of its script");
        assert_eq!(reason("Kernel panic\n", true), "the guest did not start its script");
        assert_eq!(reason("#pktc-begin\n\n#pktc-end 3\n", true), "the script ended with status 3");
        assert_eq!(reason("#pktc-begin\n\n#pktc-end 0\n", false), "the guest was not done after 600 seconds");
    }
}
