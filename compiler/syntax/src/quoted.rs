//! Strings in quotes.

use logos::Lexer;
use pktc_diagnostics::codes;

use crate::lexer::{error_at, mend};
use crate::token::Token;

/// Resolves the escapes of a whole string; a bad one is reported and left out.
pub(crate) fn classify(lexer: &mut Lexer<Token>) -> Token {
    let text = lexer.slice();
    let inside = &text[1..text.len() - 1];
    let start = lexer.span().start + 1;
    let (bytes, mistakes) = unescape(inside);
    for Mistake { start: at, end, title } in mistakes {
        let diagnostic = error_at(lexer, codes::BAD_STRING, title, "not an escape", start + at, start + end)
            .with_help("the escapes are `\\xNN` (two hexadecimal digits), `\\n`, `\\t`, `\\\"` and `\\\\`");
        mend(lexer, diagnostic, Token::Error);
    }
    Token::Text(bytes)
}

/// A string without its closing quote.
pub(crate) fn unterminated(lexer: &mut Lexer<Token>) -> Token {
    let span = lexer.span();
    let end = span.start + lexer.slice().trim_end().len();
    let title = "this string has no end";
    let diagnostic = error_at(lexer, codes::BAD_STRING, title, "it starts here", span.start, end)
        .with_note("A string ends in its line.")
        .with_help("put a `\"` behind its last character; a line break in it is written `\\n`");
    mend(lexer, diagnostic, Token::Error)
}

/// An escape that does not exist, in bytes of the string's inside.
struct Mistake {
    start: usize,
    end: usize,
    title: String,
}

fn unescape(inside: &str) -> (Vec<u8>, Vec<Mistake>) {
    let mut bytes = Vec::with_capacity(inside.len());
    let mut mistakes = Vec::new();
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at..];
        let (value, length) = read_escape(escape);
        match value {
            Some(byte) => bytes.push(byte),
            None => {
                let start = inside.len() - escape.len();
                let title = format!("`{}` is not an escape", &escape[..length]);
                mistakes.push(Mistake { start, end: start + length, title });
            }
        }
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    (bytes, mistakes)
}

/// The byte that `escape` (it starts with `\`) stands for, if any, and how long it is.
fn read_escape(escape: &str) -> (Option<u8>, usize) {
    let Some(letter) = escape[1..].chars().next() else { return (None, 1) };
    let length = 1 + letter.len_utf8();
    match letter {
        'n' => (Some(b'\n'), length),
        't' => (Some(b'\t'), length),
        '"' | '\\' => (Some(letter as u8), length),
        'x' => {
            let digits = escape[2..].bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
            let value = u8::from_str_radix(&escape[2..2 + digits], 16).ok().filter(|_| digits == 2);
            (value, length + digits)
        }
        _ => (None, length),
    }
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escapes_become_bytes() {
        let (bytes, mistakes) = unescape(r#"a\x00\xfF\n\t\"\\é"#);
        assert_eq!(bytes, b"a\x00\xff\n\t\"\\\xc3\xa9");
        assert!(mistakes.is_empty());
    }

    #[test]
    fn each_bad_escape_is_found_at_its_place() {
        let (bytes, mistakes) = unescape(r"\q-\x4-\xé");
        let places: Vec<_> = mistakes.iter().map(|mistake| (mistake.start, mistake.end)).collect();
        assert_eq!(places, [(0, 2), (3, 6), (7, 9)]);
        assert_eq!(bytes, "--é".as_bytes());
    }
}
