//! A limit on depth, so that whoever walks the tree may do so by recursion.
//!
//! Brackets nest; so do `not`s, and operators, which form trees as deep as they are many. Both count.

use pktc_diagnostics::{Diagnostic, FileId, Span, codes};

use crate::lexer::Spanned;
use crate::token::{Keyword, Token};

/// How deep brackets and operators may nest, together. Real programs stay below 20.
pub(crate) const LIMIT: u32 = 256;

/// Cuts `tokens` off where they nest too deeply, and says so.
pub(crate) fn limit(file: FileId, tokens: &mut Vec<Spanned>) -> Option<Diagnostic> {
    let at = first_too_deep(tokens)?;
    let (start, _, end) = tokens[at];
    tokens.truncate(at);
    let title = format!("this nests deeper than {LIMIT} levels");
    let diagnostic = Diagnostic::error(codes::TOO_DEEP, title, Span { file, start, end }, "too deep")
        .with_note("Brackets and operators count. The rest of the file was not read.")
        .with_help("give parts of the expression a name with `def`");
    Some(diagnostic)
}

fn first_too_deep(tokens: &[Spanned]) -> Option<usize> {
    let mut outer = Vec::new();
    let mut depth = 0;
    for (index, (_, token, _)) in tokens.iter().enumerate() {
        match token {
            _ if token.opens() => {
                outer.push(depth);
                depth += 1;
            }
            _ if token.closes() => depth = outer.pop().unwrap_or(0),
            _ if separates(token) => depth = outer.last().map_or(0, |outer| outer + 1),
            _ if joins(token) => depth += 1,
            _ => {}
        }
        if depth > LIMIT {
            return Some(index);
        }
    }
    None
}

/// Begins a part that lies beside, and not inside, what stands before it.
fn separates(token: &Token) -> bool {
    matches!(
        token,
        Token::Comma
            | Token::Semicolon
            | Token::Arrow
            | Token::AmpersandAmpersand
            | Token::PipePipe
            | Token::Keyword(Keyword::And | Keyword::Or)
    )
}

/// Makes the tree a level deeper.
fn joins(token: &Token) -> bool {
    matches!(
        token,
        Token::Pipe
            | Token::Caret
            | Token::Ampersand
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::Plus
            | Token::Minus
            | Token::Star
            | Token::Bang
            | Token::Keyword(Keyword::Not | Keyword::Default)
    )
}
