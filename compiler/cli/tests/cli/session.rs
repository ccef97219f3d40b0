//! A directory with files, and `pktc` in it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Two rules and a default; the lines that the tests name are 4 and 5.
pub(crate) const RULES: &str = "\
xdp gate {
    default pass;

    rule dns: udp.sport == 53 => drop;
    rule: tcp.dport == 23 => drop;
}
";

/// A directory that is removed at the end.
pub(crate) struct Session {
    directory: TempDir,
}

/// What a run of `pktc` came to.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Session {
    /// A directory with these files.
    pub(crate) fn with(files: &[(&str, &[u8])]) -> Self {
        let session = Session { directory: TempDir::new().expect("a temporary directory") };
        files.iter().for_each(|(name, bytes)| session.write(name, bytes));
        session
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file, with the directories on its way.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file in the directory")).expect("a directory");
        std::fs::write(path, bytes).expect("a writable directory");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a readable file")
    }

    /// The names in the directory, in order: what was written, and that nothing else was.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).expect("a readable directory");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    /// `pktc` in the directory, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pktc"));
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// Runs `pktc` to its end.
    pub(crate) fn pktc(&self, arguments: &[&str]) -> Transcript {
        transcript(self.command(arguments).output().expect("pktc runs"))
    }
}

pub(crate) fn transcript(output: Output) -> Transcript {
    Transcript {
        code: output.status.code().expect("no signal"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

impl Transcript {
    /// All of it, exactly.
    #[track_caller]
    pub(crate) fn assert(&self, code: i32, stdout: &str, stderr: &str) {
        assert_eq!(self.stdout, stdout, "standard output; standard error is:\n{}", self.stderr);
        assert_eq!(self.stderr, stderr);
        assert_eq!(self.code, code, "exit code");
    }

    /// Nothing on standard output, and a standard error that holds all `parts`.
    #[track_caller]
    pub(crate) fn assert_refused(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.stdout, "");
        for part in parts {
            assert!(self.stderr.contains(part), "standard error lacks {part:?}:\n{}", self.stderr);
        }
        assert_eq!(self.code, code, "exit code; standard error is:\n{}", self.stderr);
    }
}
