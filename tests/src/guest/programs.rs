//! What the program `pktc-guest` is given, and what it answers.
//!
//! In: `/obj/N.o`, an object, and `/obj/N.packets`, its packets: each is its length, how many lengths of the linear
//! part follow, those, and its bytes (numbers are four bytes, little-endian). Out: a line a program, `N PROGRAM ok V V
//! V …` with a verdict a run (`-` where the kernel does not take the packet so), or a line an object, `N REJECTED`,
//! with the reason in lines that begin with `| `.

use super::{File, GuestError};

/// An object, and packets for all of its programs.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What reports call it.
    pub name: String,
    /// The object file.
    pub object: Vec<u8>,
    /// The packets, in order.
    pub packets: Vec<Packet>,
}

/// A packet, and how it is run: in one buffer, then in several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Lengths of the linear part, one a further run.
    pub linear: Vec<usize>,
}

impl From<Vec<u8>> for Packet {
    /// In one buffer only.
    fn from(bytes: Vec<u8>) -> Self {
        Packet { bytes, linear: Vec::new() }
    }
}

impl Packet {
    /// How often it is run.
    #[must_use]
    pub fn runs(&self) -> usize {
        1 + self.linear.len()
    }

    /// As it stands in the guest's file.
    fn file(&self) -> Vec<u8> {
        let numbers = [self.bytes.len(), self.linear.len()].into_iter().chain(self.linear.iter().copied());
        numbers.flat_map(|number| (number as u32).to_le_bytes()).chain(self.bytes.iter().copied()).collect()
    }
}

/// What became of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was loaded: its `XDP_…` a run of each packet; `None` where the kernel does not take the packet so.
    Verdicts(Vec<Option<u32>>),
    /// The object was refused; with the loader's words.
    Rejected(String),
}

/// What became of a program of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The subject's name.
    pub subject: String,
    /// The program's name; empty if the object was refused.
    pub program: String,
    /// What became of it.
    pub answer: Answer,
}

/// The subjects as files of the guest.
pub(super) fn files(subjects: &[Subject]) -> Vec<File> {
    let mut files = Vec::new();
    for (number, subject) in subjects.iter().enumerate() {
        let packets = subject.packets.iter().flat_map(Packet::file);
        files.push((format!("/obj/{number}.o"), subject.object.clone()));
        files.push((format!("/obj/{number}.packets"), packets.collect()));
    }
    files
}

/// The reports on all `subjects`, in their order.
pub(super) fn parse(console: &str, subjects: &[Subject]) -> Result<Vec<Report>, GuestError> {
    let failed = |reason: String| GuestError::Failed { reason, console: console.to_owned() };
    let mut reports: Vec<(usize, Report)> = Vec::new();
    for line in console.lines().filter(|line| !line.is_empty()) {
        if let Some(text) = line.strip_prefix("| ") {
            if let Some((_, Report { answer: Answer::Rejected(reason), .. })) = reports.last_mut() {
                reason.push_str(text);
                reason.push('\n');
            }
            continue;
        }
        let report = parse_line(line, subjects);
        reports.push(report.ok_or_else(|| failed(format!("pktc-guest said `{line}`, which is no report")))?);
    }
    for (number, subject) in subjects.iter().enumerate() {
        if !reports.iter().any(|(of, _)| *of == number) {
            return Err(failed(format!("pktc-guest said nothing about {}", subject.name)));
        }
    }
    reports.sort_by_key(|(number, _)| *number);
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

fn parse_line(line: &str, subjects: &[Subject]) -> Option<(usize, Report)> {
    let mut words = line.split(' ');
    let number: usize = words.next()?.parse().ok()?;
    let subject = subjects.get(number)?;
    let report = |program: &str, answer| {
        Some((number, Report { subject: subject.name.clone(), program: program.to_owned(), answer }))
    };
    let program = match words.next()? {
        "REJECTED" => return report("", Answer::Rejected(String::new())),
        program => program,
    };
    if words.next()? != "ok" {
        return None;
    }
    let verdict = |word: &str| if word == "-" { Some(None) } else { word.parse().ok().map(Some) };
    let verdicts = words.map(verdict).collect::<Option<Vec<_>>>()?;
    let complete = verdicts.len() == subject.packets.iter().map(Packet::runs).sum::<usize>();
    if complete { report(program, Answer::Verdicts(verdicts)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects() -> Vec<Subject> {
        let subject = |name: &str, packets| Subject { name: name.into(), object: vec![1], packets };
        let split = Packet { bytes: vec![9], linear: vec![0] };
        vec![subject("a", vec![split, Vec::new().into()]), subject("b", Vec::new())]
    }

    #[test]
    fn packets_stand_behind_their_lengths() {
        let files = files(&subjects());
        let expected = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
        assert_eq!(files[1], ("/obj/0.packets".into(), expected));
        assert_eq!(files[3], ("/obj/1.packets".into(), Vec::new()));
    }

    #[test]
    fn reports_are_read_in_any_order() {
        let reports = parse("1 REJECTED\n| R0 !read_ok\n| so\n0 edge ok 1 2 -\n", &subjects()).unwrap();
        let expected = [
            ("a", "edge", Answer::Verdicts(vec![Some(1), Some(2), None])),
            ("b", "", Answer::Rejected("R0 !read_ok\nso\n".into())),
        ];
        assert_eq!(reports.len(), expected.len());
        for (report, (subject, program, answer)) in reports.into_iter().zip(expected) {
            assert_eq!(report, Report { subject: subject.into(), program: program.into(), answer });
        }
    }

    #[test]
    fn missing_and_strange_reports_are_errors() {
        for console in ["", "0 edge ok 1 2 -\n", "0 edge ok 1 -\n1 edge ok\n", "what?\n", "7 edge ok\n"] {
            assert!(parse(console, &subjects()).is_err(), "{console:?}");
        }
    }
}
