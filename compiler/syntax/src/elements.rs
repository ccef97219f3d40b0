//! Files of set elements: one a line, `#` comments, the parts of a tuple parted by commas.

use pktc_diagnostics::{Diagnostic, FileId, Span, codes};

use crate::ast::{Element, ElementKind, Expr, ExprKind, Path, Word};
use crate::lexer::{Spanned, lex};
use crate::token::Token;

/// Wrong lines that are reported; the rest of the file is not read then.
const MISTAKES: usize = 64;

/// Reads the elements in `text`. Where it is not all, the diagnostics have an error.
#[must_use]
pub fn parse_elements(file: FileId, text: &str) -> (Vec<Element>, Vec<Diagnostic>) {
    let plain = without_comments(text);
    let lexed = lex(file, &plain);
    let reader = Reader { file, text: &plain };
    let (mut elements, mut diagnostics) = (Vec::new(), lexed.diagnostics);
    let mut tokens = lexed.tokens.as_slice();
    while let Some(&(start, _, _)) = tokens.first() {
        let end = plain[start as usize..].find('\n').map_or(plain.len(), |at| start as usize + at) as u32;
        let count = tokens.iter().take_while(|&&(start, _, _)| start < end).count();
        let (line, rest) = tokens.split_at(count);
        tokens = rest;
        match reader.line(line) {
            Ok(element) => elements.push(element),
            // A token that is none has been reported.
            Err(_) if line.iter().any(|(_, token, _)| *token == Token::Error) => {}
            Err(wrong) => diagnostics.push(*wrong),
        }
        if diagnostics.len() >= MISTAKES {
            let span = Span { file, start, end };
            let title = format!("more than {MISTAKES} mistakes in this file");
            diagnostics.push(Diagnostic::note(codes::SYNTAX, title, span, "the rest of it was not read"));
            break;
        }
    }
    pktc_diagnostics::sort(&mut diagnostics);
    (elements, diagnostics)
}

/// `text` with blanks for each comment, so that all places stay.
fn without_comments(text: &str) -> String {
    let (mut in_text, mut escaped, mut in_comment) = (false, false, false);
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => (in_text, escaped, in_comment) = (false, false, false),
            '#' if !in_text => in_comment = true,
            '"' if !in_comment && !escaped => in_text = !in_text,
            _ => {}
        }
        escaped = in_text && letter == '\\' && !escaped;
        if in_comment {
            plain.extend(std::iter::repeat_n(' ', letter.len_utf8()))
        } else {
            plain.push(letter)
        }
    }
    plain
}

struct Reader<'t> {
    file: FileId,
    text: &'t str,
}

type Read<T> = Result<T, Box<Diagnostic>>;

impl Reader<'_> {
    fn line(&self, tokens: &[Spanned]) -> Read<Element> {
        let mut parts = Vec::new();
        for part in tokens.split(|(_, token, _)| *token == Token::Comma) {
            parts.push(self.part(part, tokens)?);
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        let span = self.span(tokens);
        Ok(Element { span, kind: ElementKind::Tuple(parts) })
    }

    /// A value, a range or a prefix.
    fn part(&self, tokens: &[Spanned], line: &[Spanned]) -> Read<Element> {
        match tokens {
            [item] => {
                let item = self.item(item)?;
                Ok(Element { span: item.span, kind: ElementKind::Item(item) })
            }
            [first, (_, Token::Minus, _), last] => {
                let kind = ElementKind::Range(self.item(first)?, self.item(last)?);
                Ok(Element { span: self.span(tokens), kind })
            }
            [] => Err(wrong(self.span(line), "a value is missing between commas")),
            [_, second, ..] => {
                Err(wrong(self.span(std::slice::from_ref(second)), "this does not belong here"))
            }
        }
    }

    fn item(&self, token: &Spanned) -> Read<Expr> {
        let span = self.span(std::slice::from_ref(token));
        let kind = match &token.1 {
            Token::Int(value) => ExprKind::Int(*value),
            Token::Address(address) => ExprKind::Address(*address),
            Token::Prefix((address, length)) => ExprKind::Prefix(*address, *length),
            Token::Mac(address) => ExprKind::Mac(*address),
            Token::MacPrefix((address, length)) => ExprKind::MacPrefix(*address, *length),
            Token::Text(bytes) => ExprKind::String(bytes.clone()),
            Token::Word => ExprKind::Path(self.path(span)),
            Token::Keyword(word) if !word.is_reserved() => ExprKind::Path(self.path(span)),
            _ => return Err(wrong(span, "this is no value")),
        };
        Ok(Expr { kind, span })
    }

    fn path(&self, span: Span) -> Path {
        let text = self.text[span.start as usize..span.end as usize].to_owned();
        Path { head: Word { text, span }, steps: Vec::new() }
    }

    /// From the first of these tokens to the last.
    fn span(&self, tokens: &[Spanned]) -> Span {
        let start = tokens.first().map_or(0, |&(start, _, _)| start);
        Span { file: self.file, start, end: tokens.last().map_or(start, |&(_, _, end)| end) }
    }
}

fn wrong(span: Span, label: &str) -> Box<Diagnostic> {
    let help = "one element stands on a line: a value, a range `1-9` or a prefix, or several, parted by commas, \
                where the set holds tuples";
    Box::new(
        Diagnostic::error(codes::SYNTAX, "this line is no element", span, label)
            .with_help(help)
            .with_note("comments start with `#`"),
    )
}

#[cfg(test)]
mod tests {
    use pktc_diagnostics::SourceMap;

    use super::{parse_elements, without_comments};

    #[test]
    fn comments_become_blanks() {
        assert_eq!(without_comments("1 # é\n\"#\\\"#\" # x"), "1     \n\"#\\\"#\"    ");
    }

    #[test]
    fn lines_are_elements() {
        let mut sources = SourceMap::default();
        let text = "# ours\n192.0.2.1\n\n10.0.0.0/8   # private\n80-90\n192.0.2.0/24, 443, _\r\ntcp, \"a#b\"";
        let file = sources.add("s.txt", text);
        let (elements, diagnostics) = parse_elements(file, text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let texts: Vec<_> = elements.iter().map(|element| sources.snippet(element.span)).collect();
        assert_eq!(texts, ["192.0.2.1", "10.0.0.0/8", "80-90", "192.0.2.0/24, 443, _", "tcp, \"a#b\""]);
    }

    #[test]
    fn each_wrong_line_is_named() {
        let mut sources = SourceMap::default();
        let text = "1\n1 2\n1,,2\n-\n10.0.0.1/8\n5,\nand\n9";
        let file = sources.add("s.txt", text);
        let (elements, diagnostics) = parse_elements(file, text);
        let lines: Vec<_> = diagnostics.iter().map(|it| sources.position(it.primary.span).line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7]);
        let texts: Vec<_> = elements.iter().map(|element| sources.snippet(element.span)).collect();
        assert_eq!((texts.first(), texts.last()), (Some(&"1"), Some(&"9")));
        assert!(parse_elements(file, &"x y\n".repeat(1000)).1.len() < 70);
    }
}
