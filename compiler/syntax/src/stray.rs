//! Characters that other languages have and this one has not.

use logos::Lexer;

use crate::lexer::no_token;
use crate::token::Token;

/// Refuses what the lexer stands on with the spelling that was probably meant.
pub(crate) fn classify(lexer: &mut Lexer<Token>) -> Token {
    let text = lexer.slice();
    let first = text.chars().next().unwrap_or(' ');
    match first {
        '#' => {
            skip_line(lexer);
            no_token(
                lexer,
                "comments do not begin with `#`".into(),
                "a comment?",
                "write `// …`, to the line's end",
            )
        }
        '/' => {
            skip_block_comment(lexer);
            let help = "begin each line of the comment with `//`";
            no_token(lexer, "there are no `/* … */` comments".into(), "a comment?", help)
        }
        '\'' | '`' | '“' | '”' | '‘' | '’' | '«' | '»' | '„' => {
            skip_quoted(lexer, first);
            let help = "text stands in straight double quotes: `\"text\"`";
            no_token(lexer, format!("`{first}` is no quotation mark here"), "not a token", help)
        }
        _ if first.is_control() => {
            let title = format!("the byte 0x{:02x} cannot stand here", u32::from(first));
            no_token(lexer, title, "not text", "is this a text file? In a string, write `\\xNN`")
        }
        _ => {
            let help = advice(text, first);
            no_token(lexer, format!("`{text}` means nothing here"), "not a token", help)
        }
    }
}

fn advice(text: &str, first: char) -> &'static str {
    match (text, first) {
        ("=<", _) => "at most is `<=`",
        ("<>" | "!==", _) => "different is `!=`",
        ("===", _) => "equal is `==`",
        (":=", _) => "a value is given with `=`",
        ("<-", _) => "a value is given with `=`; compared with a negative number nothing is ever true",
        ("++" | "--", _) => {
            "there are no such operators: numbers are never negative, and only actions change anything"
        }
        (_, '%') => "there is no remainder; of powers of two, `x & 7` gives the last bits",
        (_, '~') => "there is no complement; `x ^ 0xff` turns the last eight bits round",
        (_, '?') => {
            "there is no `a ? b : c`; write two rules, or `x default y` for a value that may be missing"
        }
        (_, '\u{a0}') => "this is a no-break space; put an ordinary one here",
        (_, '–' | '—' | '−') => "a range is written with a plain minus: `1-1023`",
        (_, '→' | '⇒') => "actions follow `=>`",
        (_, '≤' | '≥' | '≠') => "write `<=`, `>=` or `!=`",
        (_, '…') => "a slice is written `[0..4]`, a range `1-1023`",
        _ => "names consist of the letters a-z, digits and `_`",
    }
}

/// What may stand in quotation marks, in bytes: a line full of marks is not searched to its end for each.
const QUOTED: usize = 256;

/// To the closing quotation mark, if it stands in the same line and not far away.
fn skip_quoted(lexer: &mut Lexer<Token>, open: char) {
    let close = match open {
        '“' | '„' => '”',
        '‘' => '’',
        '«' => '»',
        other => other,
    };
    let mut near = lexer.remainder().char_indices().take_while(|&(at, other)| at < QUOTED && other != '\n');
    if let Some((at, _)) = near.find(|&(_, other)| other == close) {
        lexer.bump(at + close.len_utf8());
    }
}

fn skip_line(lexer: &mut Lexer<Token>) {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
}

fn skip_block_comment(lexer: &mut Lexer<Token>) {
    let rest = lexer.remainder();
    lexer.bump(rest.find("*/").map_or(rest.len(), |at| at + 2));
}
