//! Source texts and positions in them.

/// A source file in a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A range of bytes in a source file; `end` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file that both ends lie in.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The smallest span that holds both; they must lie in one file.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        debug_assert_eq!(self.file, other.file);
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A position as people count it: both numbers start at 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: String,
    line_starts: Vec<u32>,
}

/// All source texts of a compilation: the named file, its `use`s and the standard library.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    sources: Vec<Source>,
}

impl SourceMap {
    /// Adds a text. `name` is shown to the user: a path, or `std/ipv4.pkt` for the standard library.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let starts = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at as u32 + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        self.sources.push(Source { name: name.into(), text, line_starts });
        FileId(self.sources.len() as u32 - 1)
    }

    /// The files in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.sources.len() as u32).map(FileId)
    }

    /// The name under which `file` is shown.
    #[must_use]
    pub fn name(&self, file: FileId) -> &str {
        &self.sources[file.0 as usize].name
    }

    /// The whole text of `file`.
    #[must_use]
    pub fn text(&self, file: FileId) -> &str {
        &self.sources[file.0 as usize].text
    }

    /// The text that `span` covers.
    #[must_use]
    pub fn snippet(&self, span: Span) -> &str {
        &self.text(span.file)[span.start as usize..span.end as usize]
    }

    /// Where `span` starts.
    #[must_use]
    pub fn position(&self, span: Span) -> LineColumn {
        let line = self.line_at(span.file, span.start);
        let before = Span { end: span.start, ..self.line_span(span.file, line) };
        LineColumn { line, column: self.snippet(before).chars().count() as u32 + 1 }
    }

    /// The line (from 1) that byte `at` of `file` lies in.
    #[must_use]
    pub fn line_at(&self, file: FileId, at: u32) -> u32 {
        self.sources[file.0 as usize].line_starts.partition_point(|&start| start <= at) as u32
    }

    /// Line `line` (from 1) of `file`, without its line end.
    #[must_use]
    pub fn line_span(&self, file: FileId, line: u32) -> Span {
        let source = &self.sources[file.0 as usize];
        let start = source.line_starts[line as usize - 1];
        let end = source.line_starts.get(line as usize).map_or(source.text.len(), |&next| next as usize);
        let text = source.text[start as usize..end].trim_end_matches(['\n', '\r']);
        Span { file, start, end: start + text.len() as u32 }
    }

    /// The text of line `line` (from 1) of `file`, without its line end.
    #[must_use]
    pub fn line_text(&self, file: FileId, line: u32) -> &str {
        self.snippet(self.line_span(file, line))
    }
}
