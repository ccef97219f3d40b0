//! Reads the standard library, the named file, and what it `use`s; parses each once.

use hashbrown::HashMap;

use pktc_diagnostics::{Diagnostic, FileId, SourceMap, Span, codes, has_errors};
use pktc_syntax::ast::{self, DeclKind, Elements, UseTarget, Word};

use crate::files::Files;
use crate::stdlib;

/// A parsed file.
pub(crate) struct Unit {
    /// Its normalised path; `std/x.pkt` for the standard library.
    pub(crate) path: String,
    /// Its text among the sources.
    pub(crate) file: FileId,
    /// Whether it is of the standard library, whose names are in scope everywhere.
    pub(crate) is_std: bool,
    /// Its tree.
    pub(crate) ast: ast::File,
    /// What it uses.
    pub(crate) uses: Vec<Use>,
    /// Whether some of that could not be read: then its names are not all known.
    pub(crate) is_incomplete: bool,
    /// The elements of sets that stand in files, by where the file's name stands; none for one that cannot be read.
    pub(crate) set_files: HashMap<Span, Vec<ast::Element>>,
}

/// A `use`.
pub(crate) struct Use {
    /// Which unit it names; none if that could not be read.
    pub(crate) unit: Option<usize>,
    /// `as x`
    pub(crate) alias: Option<Word>,
    /// Where it stands.
    pub(crate) span: Span,
}

/// All that was read.
pub(crate) struct Loaded {
    /// The standard library's units first, used files before their users.
    pub(crate) units: Vec<Unit>,
    /// The file that was named, even if it cannot be read.
    pub(crate) entry: FileId,
    /// What is wrong, as it was met.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads everything that `entry` needs.
pub(crate) fn load(entry: &str, files: &dyn Files, sources: &mut SourceMap) -> Loaded {
    let mut loader = Loader { files, sources, units: Vec::new(), open: Vec::new(), diagnostics: Vec::new() };
    for (name, text) in stdlib::FILES {
        loader.unit(name, (*text).to_owned(), true);
    }
    let path = normalise(entry);
    let entry = match loader.read(&path) {
        Ok(text) => {
            let unit = loader.unit(&path, text, false);
            loader.units[unit].file
        }
        Err(why) => loader.unreadable_entry(&path, why),
    };
    Loaded { units: loader.units, entry, diagnostics: loader.diagnostics }
}

struct Loader<'a> {
    files: &'a dyn Files,
    sources: &'a mut SourceMap,
    units: Vec<Unit>,
    /// The files whose `use`s are being followed, outermost first.
    open: Vec<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Loader<'_> {
    fn read(&self, path: &str) -> Result<String, String> {
        let text =
            String::from_utf8(self.files.read(path)?).map_err(|_| "it is not UTF-8 text".to_owned())?;
        u32::try_from(text.len()).map_err(|_| "it is larger than 4 GiB".to_owned())?;
        Ok(text)
    }

    fn unreadable_entry(&mut self, path: &str, why: String) -> FileId {
        let file = self.sources.add(path, "");
        let span = Span { file, start: 0, end: 0 };
        let title = format!("`{path}` cannot be read");
        self.diagnostics.push(Diagnostic::error(codes::CANNOT_READ, title, span, why));
        file
    }

    fn unit(&mut self, path: &str, text: String, is_std: bool) -> usize {
        let file = self.sources.add(path, text);
        let (ast, diagnostics) = pktc_syntax::parse(file, self.sources.text(file));
        self.diagnostics.extend(diagnostics);
        self.open.push(path.to_owned());
        let uses = self.uses(&ast, path);
        self.open.pop();
        let set_files = self.set_files(&ast, path);
        let is_incomplete = uses.iter().any(|used| used.unit.is_none() && used.alias.is_none());
        self.units.push(Unit { path: path.to_owned(), file, is_std, ast, uses, is_incomplete, set_files });
        self.units.len() - 1
    }

    /// Reads the files that `set … = file "…";` names.
    fn set_files(&mut self, file: &ast::File, from: &str) -> HashMap<Span, Vec<ast::Element>> {
        let mut read = HashMap::new();
        for decl in &file.decls {
            let DeclKind::Set { elements: Elements::File(name), .. } = &decl.kind else { continue };
            if let Some(elements) = self.set_file(name, from) {
                read.insert(name.span, elements);
            }
        }
        read
    }

    fn set_file(&mut self, name: &ast::StringLiteral, from: &str) -> Option<Vec<ast::Element>> {
        let Ok(relative) = std::str::from_utf8(&name.bytes) else {
            self.cannot_read(name.span, "the file's name is not UTF-8 text".into(), String::new());
            return None;
        };
        let path = join(from, relative);
        match self.read(&path) {
            Ok(text) => {
                let file = self.sources.add(path.as_str(), text);
                let (elements, diagnostics) = pktc_syntax::parse_elements(file, self.sources.text(file));
                let is_whole = !has_errors(&diagnostics);
                self.diagnostics.extend(diagnostics);
                is_whole.then_some(elements)
            }
            Err(why) => {
                self.cannot_read(name.span, format!("`{relative}` cannot be read"), why);
                None
            }
        }
    }

    fn uses(&mut self, file: &ast::File, from: &str) -> Vec<Use> {
        let mut uses = Vec::new();
        for decl in &file.decls {
            let DeclKind::Use { target, alias } = &decl.kind else { continue };
            let unit = match target {
                UseTarget::File(name) => self.follow(name, from),
                UseTarget::Library(path) => {
                    self.explain_library(path, decl.span);
                    continue;
                }
            };
            uses.push(Use { unit, alias: alias.clone(), span: decl.span });
        }
        uses
    }

    fn follow(&mut self, name: &ast::StringLiteral, from: &str) -> Option<usize> {
        let Ok(relative) = std::str::from_utf8(&name.bytes) else {
            self.cannot_read(name.span, "the file's name is not UTF-8 text".into(), String::new());
            return None;
        };
        let path = join(from, relative);
        if let Some(at) = self.open.iter().position(|open| *open == path) {
            self.cycle(name.span, at);
            return None;
        }
        if let Some(unit) = self.units.iter().position(|unit| !unit.is_std && unit.path == path) {
            return Some(unit);
        }
        match self.read(&path) {
            Ok(text) => Some(self.unit(&path, text, false)),
            Err(why) => {
                self.cannot_read(name.span, format!("`{relative}` cannot be read"), why);
                None
            }
        }
    }

    fn cannot_read(&mut self, span: Span, title: String, why: String) {
        let help = "the path is relative to the file that uses it";
        self.diagnostics.push(Diagnostic::error(codes::CANNOT_READ, title, span, why).with_help(help));
    }

    fn cycle(&mut self, span: Span, first: usize) {
        let mut names: Vec<String> = self.open[first..].iter().map(|path| format!("`{path}`")).collect();
        names.push(names[0].clone());
        let diagnostic = Diagnostic::error(
            codes::USE_CYCLE,
            "files use each other in a circle",
            span,
            "this leads back to a file that is still being read",
        )
        .with_note(format!("the way round: {}", names.join(" uses ")))
        .with_help("move what both need into a file of its own, and `use` it from both");
        self.diagnostics.push(diagnostic);
    }

    /// Says why the line is not needed, or wrong.
    fn explain_library(&mut self, path: &[Word], span: Span) {
        let name = path.iter().map(|word| word.text.as_str()).collect::<Vec<_>>();
        let is_std = name.first() == Some(&"std");
        let file = format!("{}.pkt", name.join("/"));
        let diagnostic =
            if is_std && (name.len() == 1 || stdlib::FILES.iter().any(|(known, _)| *known == file)) {
                Diagnostic::warning(
                    codes::UNUSED,
                    "the standard library is always in scope",
                    span,
                    "this `use` changes nothing",
                )
                .with_help("remove the line")
            } else {
                let title = format!("there is no library `{}`", name.join("."));
                Diagnostic::error(codes::CANNOT_READ, title, span, "unknown library")
                    .with_help("a file is named in quotes: `use \"lib/bogons.pkt\";`")
            };
        self.diagnostics.push(diagnostic);
    }
}

/// `relative` as seen from the file `from`.
pub(crate) fn join(from: &str, relative: &str) -> String {
    let folder = from.rfind('/').map_or("", |slash| &from[..=slash]);
    if relative.starts_with('/') { normalise(relative) } else { normalise(&format!("{folder}{relative}")) }
}

/// Without `.` and without a `..` that has something to go up from, so that a file has one name.
fn normalise(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match parts.last() {
            Some(&last) if part == ".." && last != ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    match (path.starts_with('/'), parts.join("/")) {
        (true, rest) => format!("/{rest}"),
        (false, rest) if rest.is_empty() => ".".to_owned(),
        (false, rest) => rest,
    }
}
