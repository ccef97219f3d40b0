//! Tokens to syntax tree, with recovery.
//!
//! LALRPOP's tables read one declaration at a time. Where they stop, the mistake is reported and *mended in
//! the tokens*: a missing `;` is put in, a statement that cannot be read is replaced by one token that
//! stands for it, and the declaration is read again. So a mistake costs one message and one statement,
//! whatever follows is read with all its context, and a mistake in one declaration says nothing about the next.
//! (LALRPOP's own recovery drops tokens until some state can go on, which in nested blocks is often the wrong
//! one.) What is worth mending is decided in `repair.rs`, where statements begin and end in `structure.rs`,
//! what is said in `explain.rs`.

use hashbrown::HashSet;

use lalrpop_util::ParseError;
use pktc_diagnostics::{Diagnostic, FileId, Span, codes};

use crate::ast::{Decl, File};
use crate::builder::Builder;
use crate::explain::{explain, explain_outside, explain_unclosed};
use crate::grammar::DeclParser;
use crate::lexer::{Spanned, lex};
use crate::mistake::Mistake;
use crate::nesting;
use crate::repair::{Repair, choose_repair};
use crate::structure::{Layout, Slice};

/// Mistakes in one declaration that are reported; behind them it is given up.
const MISTAKES_PER_DECLARATION: usize = 64;

/// Reads `text`. The tree holds what could be read; where it is not all, the diagnostics have an error.
#[must_use]
pub fn parse(file: FileId, text: &str) -> (File, Vec<Diagnostic>) {
    if let Some(diagnostic) = too_large(file, text) {
        return (File::default(), vec![diagnostic]);
    }
    let mut lexed = lex(file, text);
    let diagnostics = lexed.diagnostics;
    let too_deep = nesting::limit(file, &mut lexed.tokens);
    let mut reader = Reader {
        builder: Builder::new(file, text, &lexed.docs),
        tables: DeclParser::new(),
        layout: Layout::new(text, &lexed.tokens),
        cut_off: too_deep.is_some(),
        diagnostics,
    };
    reader.diagnostics.extend(too_deep);
    let tree = File { decls: reader.declarations() };
    let mut diagnostics = reader.diagnostics;
    pktc_diagnostics::sort(&mut diagnostics);
    (tree, diagnostics)
}

/// Positions are 32 bits wide.
fn too_large(file: FileId, text: &str) -> Option<Diagnostic> {
    let limit = u32::MAX as usize;
    (text.len() >= limit).then(|| {
        let span = Span { file, start: 0, end: 0 };
        Diagnostic::error(codes::TOO_LARGE, "this file is too large", span, "4 GiB and more")
            .with_help("keep long lists in files of their own: `set s = file \"s.txt\";`")
    })
}

struct Reader<'t> {
    builder: Builder<'t>,
    tables: DeclParser,
    layout: Layout<'t>,
    /// The last declaration is not whole, and is not read.
    cut_off: bool,
    diagnostics: Vec<Diagnostic>,
}

/// Where the tables stopped.
struct Stop {
    /// The token that does not fit; the number of tokens at the end.
    index: usize,
    expected: Vec<String>,
}

impl Reader<'_> {
    fn declarations(&mut self) -> Vec<Decl> {
        let mut decls = Vec::new();
        let mut position = 0;
        while let Some(slice) = self.layout.next_slice(position) {
            position = slice.end;
            if self.cut_off && position == self.layout.tokens().len() {
                break;
            }
            if slice.outside {
                let tokens = &self.layout.tokens()[slice.start..slice.end];
                self.diagnostics.extend(explain_outside(&self.builder, tokens));
            } else {
                decls.extend(self.declaration(&slice));
            }
        }
        decls
    }

    /// Reads the declaration in `slice`; none if it cannot be used even in part.
    fn declaration(&mut self, slice: &Slice) -> Option<Decl> {
        let mut tokens = self.layout.tokens()[slice.start..slice.end].to_vec();
        if let Some(unclosed) = &slice.unclosed {
            self.diagnostics.push(explain_unclosed(&self.builder, unclosed));
            tokens.extend(unclosed.closers.iter().cloned());
        }
        let mut usable = true;
        let mut at_fault = HashSet::new();
        for _ in 0..MISTAKES_PER_DECLARATION {
            let stop = match self.read(&tokens) {
                Ok(decl) => return usable.then_some(decl),
                Err(stop) => stop,
            };
            let mistake = Mistake::new(&self.layout, &tokens, stop.index, stop.expected);
            let repair = choose_repair(&mistake);
            let known = slice.unclosed.as_ref().is_some_and(|unclosed| mistake.covers(unclosed.opener.0));
            if at_fault.insert(mistake.statement_byte()) && !known {
                self.diagnostics.extend(explain(&self.builder, &mistake, &repair));
            }
            usable &= !matches!(repair, Repair::ReplaceHead { .. });
            if repair.apply(&mut tokens).is_err() {
                return None;
            }
        }
        let (start, _, end) = tokens[0];
        let title = format!("more than {MISTAKES_PER_DECLARATION} mistakes in this declaration");
        let place = self.builder.span(start, end);
        self.diagnostics.push(Diagnostic::note(codes::SYNTAX, title, place, "the rest of it was not read"));
        None
    }

    /// Runs the tables over `tokens`; what building refuses counts only where they reach the end.
    fn read(&mut self, tokens: &[Spanned]) -> Result<Decl, Stop> {
        let mut taken = 0;
        let counted = tokens.iter().cloned().inspect(|_| taken += 1);
        let result = self.tables.parse(&mut self.builder, counted);
        let refused = std::mem::take(&mut self.builder.diagnostics);
        let (index, expected) = match result {
            Ok(decl) => {
                self.diagnostics.extend(refused);
                return Ok(decl);
            }
            Err(ParseError::UnrecognizedEof { expected, .. }) => (tokens.len(), expected),
            Err(ParseError::UnrecognizedToken { expected, .. }) => (taken - 1, expected),
            Err(ParseError::ExtraToken { .. } | ParseError::InvalidToken { .. }) => (taken - 1, Vec::new()),
            Err(ParseError::User { error }) => match error {},
        };
        Err(Stop { index, expected })
    }
}
