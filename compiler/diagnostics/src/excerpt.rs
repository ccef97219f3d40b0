//! What is shown of source texts: the lines that a diagnostic is about, in characters that no terminal takes for
//! commands, and of a very long line only what surrounds the labels.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use codespan_reporting::files::{Error, Files, Location};

use crate::{FileId, SourceMap, Span};

/// Lines of more bytes are shown in part.
const LONG: usize = 200;
/// Of those: so many bytes before and behind each end of a label.
const AROUND: usize = 60;
/// Lines shown behind the first and before the last of a label that goes over several lines.
pub(crate) const FIRST_LINES: u32 = 3;
pub(crate) const LAST_LINES: u32 = 1;

/// What a diagnostic shows of its files. Positions in it are those of the shortened texts.
pub(crate) struct Excerpts<'s> {
    sources: &'s SourceMap,
    files: BTreeMap<FileId, Excerpt>,
}

/// The lines that are shown of a file, one behind the other.
#[derive(Default)]
struct Excerpt {
    text: String,
    lines: BTreeMap<u32, Line>,
}

struct Line {
    range: Range<usize>,
    /// Where the ends of labels come to lie, by where they lie in the file.
    ends: BTreeMap<u32, usize>,
}

impl<'s> Excerpts<'s> {
    /// What shows these spans.
    pub(crate) fn new(sources: &'s SourceMap, spans: impl Iterator<Item = Span>) -> Self {
        let mut shown: BTreeMap<FileId, BTreeMap<u32, BTreeSet<u32>>> = BTreeMap::new();
        for span in spans {
            add_lines(sources, span, shown.entry(span.file).or_default());
        }
        let excerpt = |(file, mut lines)| {
            fill_gaps(&mut lines);
            (file, Excerpt::new(sources, file, lines))
        };
        Excerpts { sources, files: shown.into_iter().map(excerpt).collect() }
    }

    /// Where a label's span lies in the excerpt.
    pub(crate) fn range(&self, span: Span) -> Range<usize> {
        let place = |at| self.files[&span.file].lines[&self.sources.line_at(span.file, at)].ends[&at];
        place(span.start)..place(span.end)
    }

    fn excerpt(&self, file: usize) -> Result<&Excerpt, Error> {
        self.files.get(&FileId(file as u32)).ok_or(Error::FileMissing)
    }
}

/// The lines to show for a span, with its ends in them.
fn add_lines(sources: &SourceMap, span: Span, lines: &mut BTreeMap<u32, BTreeSet<u32>>) {
    let [first, last] = [span.start, span.end].map(|at| sources.line_at(span.file, at));
    lines.entry(first).or_default().insert(span.start);
    lines.entry(last).or_default().insert(span.end);
    let behind = first + 1..last.min(first + 1 + FIRST_LINES);
    let before = last.saturating_sub(LAST_LINES).max(first + 1)..last;
    for line in behind.chain(before) {
        lines.entry(line).or_default();
    }
}

/// A single line between two that are shown is shown, too.
fn fill_gaps(lines: &mut BTreeMap<u32, BTreeSet<u32>>) {
    let gaps: Vec<u32> =
        lines.keys().map(|line| line + 1).filter(|line| lines.contains_key(&(line + 1))).collect();
    for line in gaps {
        lines.entry(line).or_default();
    }
}

impl Excerpt {
    fn new(sources: &SourceMap, file: FileId, lines: BTreeMap<u32, BTreeSet<u32>>) -> Self {
        let mut excerpt = Excerpt::default();
        for (number, ends) in lines {
            let span = sources.line_span(file, number);
            let start = excerpt.text.len();
            let within: Vec<usize> = ends.iter().map(|end| (end - span.start) as usize).collect();
            let places = write_line(sources.snippet(span), &within, &mut excerpt.text);
            excerpt.text.push('\n');
            let line =
                Line { range: start..excerpt.text.len(), ends: ends.into_iter().zip(places).collect() };
            excerpt.lines.insert(number, line);
        }
        excerpt
    }
}

/// Writes a line, and gives where its bytes `ends`, which are in order, come to lie.
fn write_line(line: &str, ends: &[usize], out: &mut String) -> Vec<usize> {
    let mut places = Vec::new();
    let mut left_out = false;
    for (at, character) in line.char_indices() {
        while ends.get(places.len()).is_some_and(|&end| end <= at) {
            places.push(out.len());
        }
        let shown = line.len() <= LONG || is_near(at, ends);
        if shown {
            write_character(character, out);
        } else if !left_out {
            out.push('…');
        }
        left_out = !shown;
    }
    places.resize(ends.len(), out.len());
    places
}

/// Whether one of `ends` is near; of a line without, its beginning counts as one.
fn is_near(at: usize, ends: &[usize]) -> bool {
    let ends = if ends.is_empty() { &[0] } else { ends };
    let next = ends.partition_point(|&end| end <= at);
    let behind = next.checked_sub(1).is_some_and(|last| at - ends[last] <= AROUND);
    behind || ends.get(next).is_some_and(|end| end - at <= AROUND)
}

/// Writes what would move a terminal's cursor or turn the direction of writing as its number.
fn write_character(character: char, out: &mut String) {
    let turns = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let written = match character {
        '\t' => return out.push(character),
        _ if character.is_control() => write!(out, "\\x{:02x}", u32::from(character)),
        _ if turns => write!(out, "\\u{{{:x}}}", u32::from(character)),
        _ => return out.push(character),
    };
    debug_assert!(written.is_ok(), "a string takes what is written to it");
}

/// `text` with nothing in it that a terminal takes for a command; its lines stay.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push('\n'),
            other => write_character(other, &mut out),
        }
    }
    out
}

impl<'a> Files<'a> for Excerpts<'_> {
    type FileId = usize;
    type Name = String;
    type Source = &'a str;

    fn name(&'a self, file: usize) -> Result<String, Error> {
        Ok(printable(self.sources.name(FileId(file as u32))))
    }

    fn source(&'a self, file: usize) -> Result<&'a str, Error> {
        Ok(&self.excerpt(file)?.text)
    }

    fn line_index(&'a self, file: usize, at: usize) -> Result<usize, Error> {
        let lines = &self.excerpt(file)?.lines;
        let number =
            lines.iter().rev().find(|(_, line)| line.range.start <= at).map_or(1, |(&number, _)| number);
        Ok(number as usize - 1)
    }

    /// In the file, not in the excerpt.
    fn location(&'a self, file: usize, at: usize) -> Result<Location, Error> {
        let ends = self.excerpt(file)?.lines.values().flat_map(|line| &line.ends);
        let file = FileId(file as u32);
        let start = ends.into_iter().find(|&(_, &place)| place == at).map_or(0, |(&start, _)| start);
        let place = self.sources.position(Span { file, start, end: start });
        Ok(Location { line_number: place.line as usize, column_number: place.column as usize })
    }

    /// Empty for a line that is not shown.
    fn line_range(&'a self, file: usize, index: usize) -> Result<Range<usize>, Error> {
        let line = self.excerpt(file)?.lines.get(&(index as u32 + 1));
        Ok(line.map_or(0..0, |line| line.range.clone()))
    }
}
