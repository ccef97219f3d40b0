//! Tokens and trees as text, for `--emit tokens` and `--emit ast`.

mod decl;
mod expr;
mod program;

use pktc_diagnostics::{FileId, SourceMap, Span};

use crate::ast::File;
use crate::lexer::lex;
use crate::token::Token;

/// One token a line: position, kind, text.
#[must_use]
pub fn dump_tokens(file: FileId, text: &str) -> String {
    let mut sources = SourceMap::default();
    let only = sources.add("", text);
    let mut out = String::new();
    for (start, token, end) in lex(file, text).tokens {
        let span = Span { file: only, start, end };
        let at = sources.position(span);
        let line = format!("{}:{}\t{}\t{}\n", at.line, at.column, kind(&token), sources.snippet(span));
        out.push_str(&line);
    }
    out
}

fn kind(token: &Token) -> &'static str {
    match token {
        Token::Error | Token::BadStatement => "error",
        Token::Word => "word",
        Token::Keyword(_) => "keyword",
        Token::Int(_) => "int",
        Token::Duration(_) => "duration",
        Token::Address(_) => "address",
        Token::Prefix(_) => "prefix",
        Token::Mac(_) => "mac",
        Token::MacPrefix(_) => "mac_prefix",
        Token::Text(_) => "string",
        _ => "symbol",
    }
}

/// The tree: one declaration, statement or part a line, what belongs to it indented below. Expressions are in
/// prefix form, every operator with its operands in parentheses.
#[must_use]
pub fn dump_ast(tree: &File) -> String {
    let mut out = Out::default();
    for decl in &tree.decls {
        decl::decl(&mut out, decl);
    }
    out.text
}

/// Lines with indentation.
#[derive(Debug, Default)]
struct Out {
    text: String,
    depth: usize,
}

impl Out {
    fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }

    /// `heading`, and what `body` writes one step further in.
    fn nest(&mut self, heading: impl AsRef<str>, body: impl FnOnce(&mut Out)) {
        self.line(heading);
        self.depth += 1;
        body(self);
        self.depth -= 1;
    }

    /// A `///` text, line by line.
    fn doc(&mut self, doc: &str) {
        for line in doc.lines() {
            self.line(format!("/// {line}").trim_end());
        }
    }
}
