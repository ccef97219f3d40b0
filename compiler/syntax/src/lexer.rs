//! Text to tokens. Never fails: what forms no token is reported and becomes [`Token::Error`].

use hashbrown::HashMap;

use logos::{Lexer, Logos};
use pktc_diagnostics::{Code, Diagnostic, FileId, Span, codes};

use crate::token::Token;

/// A token with its first byte and the one past its last.
pub(crate) type Spanned = (u32, Token, u32);

/// What lexing finds besides the tokens.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    file: Option<FileId>,
    doc_lines: Vec<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Findings {
    /// Adds a line to the documentation of the next token.
    pub(crate) fn add_doc_line(&mut self, line: String) {
        self.doc_lines.push(line);
    }
}

/// All that a text consists of.
#[derive(Debug)]
pub(crate) struct Lexed {
    /// The tokens in order.
    pub(crate) tokens: Vec<Spanned>,
    /// `///` texts by the start of the token that they stand before.
    pub(crate) docs: HashMap<u32, String>,
    /// What forms no token, and why.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Cuts `text` into tokens.
pub(crate) fn lex(file: FileId, text: &str) -> Lexed {
    let mut docs = HashMap::new();
    let mut tokens = Vec::new();
    let findings = Findings { file: Some(file), ..Findings::default() };
    let mut lexer = Token::lexer_with_extras(text, findings);
    while let Some(token) = lexer.next() {
        let span = lexer.span();
        let (start, end) = (span.start as u32, span.end as u32);
        if !lexer.extras.doc_lines.is_empty() {
            docs.insert(start, std::mem::take(&mut lexer.extras.doc_lines).join("\n"));
        }
        tokens.push((start, token.unwrap_or(Token::Error), end));
    }
    Lexed { tokens, docs, diagnostics: lexer.extras.diagnostics }
}

/// Starts a message about the token that `lexer` stands on.
pub(crate) fn error(lexer: &Lexer<Token>, code: Code, title: impl Into<String>, label: &str) -> Diagnostic {
    let span = lexer.span();
    error_at(lexer, code, title, label, span.start, span.end)
}

/// Starts a message about bytes `start..end` of the text.
pub(crate) fn error_at(
    lexer: &Lexer<Token>,
    code: Code,
    title: impl Into<String>,
    label: &str,
    start: usize,
    end: usize,
) -> Diagnostic {
    let file = lexer.extras.file.unwrap_or(FileId(0));
    Diagnostic::error(code, title, Span { file, start: start as u32, end: end as u32 }, label)
}

/// Reports `diagnostic`; the token is lost.
pub(crate) fn refuse(lexer: &mut Lexer<Token>, diagnostic: Diagnostic) -> Token {
    lexer.extras.diagnostics.push(diagnostic);
    Token::Error
}

/// Reports `diagnostic`, and goes on with what was most likely meant.
pub(crate) fn mend(lexer: &mut Lexer<Token>, diagnostic: Diagnostic, token: Token) -> Token {
    lexer.extras.diagnostics.push(diagnostic);
    token
}

/// Refuses the token that `lexer` stands on as no token at all, with advice.
pub(crate) fn no_token(lexer: &mut Lexer<Token>, title: String, label: &str, help: &str) -> Token {
    let diagnostic = error(lexer, codes::BAD_TOKEN, title, label).with_help(help);
    refuse(lexer, diagnostic)
}
