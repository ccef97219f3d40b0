//! The guest's only file system: a `cpio` archive in the format "newc" (the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst`), which the kernel unpacks at boot.

use std::collections::BTreeSet;
use std::path::Path;

use super::{File, GuestError};

/// What the script's output stands between, so that the kernel's own messages do not mix with it.
pub(super) const BEGIN: &str = "#pktc-begin";
/// Followed by the script's exit status.
pub(super) const END: &str = "#pktc-end";

/// A directory that all may read, and a file that all may run.
const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// The archive with busybox, `files`, and `script`, which is run at boot.
pub(super) fn image(files: &[File], script: &str) -> Result<Vec<u8>, GuestError> {
    let init = format!(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         export PATH=/bin\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sys /sys\n\
         mount -t devtmpfs dev /dev\n\
         mount -t bpf bpf /sys/fs/bpf\n\
         echo; echo '{BEGIN}'\n\
         sh /script\n\
         echo; echo \"{END} $?\"\n\
         poweroff -f\n"
    );
    let mut all = super::with_libraries(&busybox()?, "/bin/busybox")?;
    all.extend([("/init".to_owned(), init.into_bytes()), ("/script".to_owned(), script.as_bytes().to_vec())]);
    all.extend_from_slice(files);
    Ok(archive(&all, &["proc", "sys", "dev", "tmp"]))
}

fn busybox() -> Result<std::path::PathBuf, GuestError> {
    let places = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new);
    let found = places.into_iter().find(|path| path.is_file());
    found.map(Path::to_owned).ok_or_else(|| GuestError::Unavailable("needs busybox".into()))
}

/// An archive of `files`, of the directories above them, and of `directories`.
fn archive(files: &[File], directories: &[&str]) -> Vec<u8> {
    let mut parents: BTreeSet<&str> = directories.iter().copied().collect();
    for (path, _) in files {
        let path = path.trim_start_matches('/');
        parents.extend(path.match_indices('/').map(|(end, _)| &path[..end]));
    }
    let mut out = Vec::new();
    let mut number = 1;
    for directory in parents {
        entry(&mut out, number, directory, DIRECTORY, &[]);
        number += 1;
    }
    for (path, content) in files {
        entry(&mut out, number, path.trim_start_matches('/'), PROGRAM, content);
        number += 1;
    }
    entry(&mut out, 0, "TRAILER!!!", 0, &[]);
    out
}

/// A header of 6 + 13 × 8 hexadecimal digits, the name with a NUL, the content, each padded to four bytes.
fn entry(out: &mut Vec<u8>, number: u32, name: &str, mode: u32, content: &[u8]) {
    let links = 1;
    let size = content.len() as u32;
    let name_size = name.len() as u32 + 1;
    // inode, mode, uid, gid, links, time, size, device (2), of a device node (2), bytes of the name, checksum
    let fields = [number, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
    out.extend(b"070701");
    out.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
    out.extend(name.as_bytes());
    out.push(0);
    pad(out);
    out.extend(content);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_what_lies_in_them() {
        let out = archive(&[("/a/b/c".into(), b"xyz".to_vec()), ("/a/d".into(), Vec::new())], &["proc"]);
        let text = String::from_utf8_lossy(&out);
        let mut at = 0;
        for name in ["a\0", "a/b\0", "proc\0", "a/b/c\0", "a/d\0", "TRAILER!!!\0"] {
            at += text[at..].find(name).unwrap_or_else(|| panic!("no {name:?} after {at} in {text:?}"));
        }
        assert_eq!(out.len() % 4, 0);
    }

    #[test]
    fn an_entry_byte_for_byte() {
        let mut out = Vec::new();
        entry(&mut out, 7, "f", PROGRAM, b"hello");
        let header = concat!(
            "070701", "00000007", "000081ed", "00000000", "00000000", "00000001", "00000000", "00000005",
            "00000000", "00000000", "00000000", "00000000", "00000002", "00000000"
        );
        assert_eq!(out, [header.as_bytes(), b"f\0", b"hello", &[0; 3]].concat());
    }
}
