//! Where declarations and statements begin and end, by brackets and `;` alone.
//!
//! Used to cut a file into declarations, and around mistakes, where the grammar is of no help. For a text
//! without mistakes the cuts are exact. Indentation is looked at only where brackets do not match.

use crate::lexer::Spanned;
use crate::token::{Keyword, Token};

/// The tokens of a file, and how they stand in its lines.
#[derive(Debug)]
pub(crate) struct Layout<'t> {
    text: &'t str,
    tokens: &'t [Spanned],
    /// A `{` without its `}` was found: from then on, declarations end where the next one stands at a
    /// line's very start.
    unbalanced: bool,
}

/// Tokens `start..end`: a declaration, or what stands between two.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// It does not begin as a declaration does.
    pub(crate) outside: bool,
    pub(crate) unclosed: Option<Unclosed>,
}

/// A bracket without its partner.
#[derive(Debug)]
pub(crate) struct Unclosed {
    /// The bracket.
    pub(crate) opener: Spanned,
    /// What is missing at the end.
    pub(crate) closers: Vec<Spanned>,
}

impl<'t> Layout<'t> {
    pub(crate) fn new(text: &'t str, tokens: &'t [Spanned]) -> Self {
        Layout { text, tokens, unbalanced: false }
    }

    pub(crate) fn tokens(&self) -> &'t [Spanned] {
        self.tokens
    }

    /// Whether `token` is the first in its line.
    pub(crate) fn starts_line(&self, token: &Spanned) -> bool {
        let before = &self.text[..token.0 as usize];
        before.trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|c| c == '\n')
    }

    fn at_line_start(&self, token: &Spanned) -> bool {
        token.0 == 0 || self.text.as_bytes()[token.0 as usize - 1] == b'\n'
    }

    /// How far the line of `token` is indented.
    fn indentation(&self, token: &Spanned) -> usize {
        let start = self.text[..token.0 as usize].rfind('\n').map_or(0, |at| at + 1);
        self.text[start..].chars().take_while(|&c| c == ' ' || c == '\t').count()
    }

    /// The next declaration from token `start` on, or the tokens before it that belong to none.
    pub(crate) fn next_slice(&mut self, start: usize) -> Option<Slice> {
        let head = self.tokens.get(start)?;
        let keyword = declaration_keyword(head);
        let slice = |end, outside, unclosed| Some(Slice { start, end, outside, unclosed });
        match keyword {
            None => slice(self.end_of_strays(start), true, None),
            Some(keyword) if has_block(keyword) => self.block_declaration(start),
            Some(keyword) => slice(self.end_of_simple(start, keyword), false, None),
        }
    }

    /// Statements outside of any block go on to the next declaration (they may all be there by one mistake);
    /// something unknown goes on to its `;` or `}`.
    fn end_of_strays(&self, start: usize) -> usize {
        let mut depth = 0_usize;
        let unknown = self.tokens[start].1 == Token::Word;
        for index in start..self.tokens.len() {
            let token = &self.tokens[index];
            let after_end =
                index == start || matches!(self.tokens[index - 1].1, Token::Semicolon | Token::CloseBrace);
            let begins = declaration_keyword(token).is_some() && self.starts_line(token);
            if index > start && begins && (self.at_line_start(token) || after_end && depth == 0) {
                return index;
            }
            match token.1 {
                Token::OpenBrace => depth += 1,
                Token::CloseBrace => depth = depth.saturating_sub(1),
                _ => {}
            }
            if unknown && depth == 0 && matches!(token.1, Token::Semicolon | Token::CloseBrace) {
                return index + 1;
            }
        }
        self.tokens.len()
    }

    /// A declaration up to its `;`. A keyword that starts a line behind a complete value cannot belong to it
    /// (but it may be among the values of a `bind`).
    fn end_of_simple(&self, start: usize, keyword: Keyword) -> usize {
        let mut open = Brackets::default();
        let mut may_end = keyword != Keyword::Bind;
        for index in start + 1..self.tokens.len() {
            let token = &self.tokens[index];
            let begins = may_end
                && declaration_keyword(token).is_some()
                && ends_value(&self.tokens[index - 1].1)
                && self.starts_line(token);
            if begins && (open.is_empty() || self.at_line_start(token)) {
                return index;
            }
            let line_ends = self.tokens.get(index + 1).is_none_or(|next| self.starts_line(next));
            if token.1 == Token::Semicolon && (line_ends || !open.in_braces()) {
                return index + 1;
            }
            may_end |= token.1 == Token::Arrow;
            open.step(index, &token.1);
        }
        self.tokens.len()
    }

    fn block_declaration(&mut self, start: usize) -> Option<Slice> {
        let mut open = Brackets::default();
        let mut suspect = None;
        for index in start + 1..self.tokens.len() {
            let token = &self.tokens[index];
            let next = declaration_keyword(token).is_some() && self.at_line_start(token);
            if next && (self.unbalanced || open.is_empty()) {
                return Some(self.unclosed_block(start, index, &open, suspect));
            }
            let closed = open.step(index, &token.1);
            match token.1 {
                Token::Semicolon if open.is_empty() => {
                    return Some(Slice { start, end: index + 1, outside: false, unclosed: None });
                }
                Token::CloseBrace if open.is_empty() => {
                    return Some(Slice { start, end: index + 1, outside: false, unclosed: None });
                }
                Token::CloseBrace => suspect = suspect.or_else(|| self.suspect(closed, token)),
                _ => {}
            }
        }
        if self.unbalanced || open.is_empty() {
            return Some(self.unclosed_block(start, self.tokens.len(), &open, suspect));
        }
        self.unbalanced = true;
        self.block_declaration(start)
    }

    /// The opener of a block whose `}` stands further left than it: it probably closes an outer one.
    fn suspect(&self, opener: Option<usize>, closer: &Spanned) -> Option<usize> {
        let opener = opener?;
        let left = self.indentation(closer) < self.indentation(&self.tokens[opener]);
        (left && self.starts_line(closer)).then_some(opener)
    }

    fn unclosed_block(&self, start: usize, end: usize, open: &Brackets, suspect: Option<usize>) -> Slice {
        let at = self.tokens[end - 1].2;
        let closers: Vec<Spanned> =
            open.open.iter().rev().map(|&(_, closer)| (at, closer.token(), at)).collect();
        let opener = suspect.or_else(|| open.open.first().map(|&(index, _)| index));
        let unclosed = opener.map(|opener| Unclosed { opener: self.tokens[opener].clone(), closers });
        Slice { start, end, outside: false, unclosed }
    }
}

/// The keyword, if `token` starts a declaration.
pub(crate) fn declaration_keyword(token: &Spanned) -> Option<Keyword> {
    match token.1 {
        Token::Keyword(keyword) if keyword.starts_declaration() => Some(keyword),
        _ => None,
    }
}

fn has_block(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::Enum | Keyword::Header | Keyword::Union | Keyword::Chain | Keyword::Xdp | Keyword::Test
    )
}

/// A value may end with it.
fn ends_value(token: &Token) -> bool {
    matches!(
        token,
        Token::Word
            | Token::Int(_)
            | Token::Duration(_)
            | Token::Address(_)
            | Token::Prefix(_)
            | Token::Mac(_)
            | Token::MacPrefix(_)
            | Token::Text(_)
            | Token::Error
            | Token::Keyword(
                Keyword::True | Keyword::False | Keyword::Lru | Keyword::Counted | Keyword::Exact
            )
    ) || token.closes()
}

/// What closes a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closer {
    Paren,
    Bracket,
    Brace,
}

impl Closer {
    fn of_opener(token: &Token) -> Option<Closer> {
        match token {
            Token::OpenParen => Some(Closer::Paren),
            Token::OpenBracket => Some(Closer::Bracket),
            Token::OpenBrace => Some(Closer::Brace),
            _ => None,
        }
    }

    fn of_closer(token: &Token) -> Option<Closer> {
        match token {
            Token::CloseParen => Some(Closer::Paren),
            Token::CloseBracket => Some(Closer::Bracket),
            Token::CloseBrace => Some(Closer::Brace),
            _ => None,
        }
    }

    fn token(self) -> Token {
        match self {
            Closer::Paren => Token::CloseParen,
            Closer::Bracket => Token::CloseBracket,
            Closer::Brace => Token::CloseBrace,
        }
    }
}

/// The brackets that are open. A `}` closes the last `{` and whatever is still open in it.
#[derive(Debug, Default)]
pub(crate) struct Brackets {
    open: Vec<(usize, Closer)>,
}

impl Brackets {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Goes past `token`; the opener that it closes, if it closes one.
    pub(crate) fn step(&mut self, index: usize, token: &Token) -> Option<usize> {
        if let Some(closer) = Closer::of_opener(token) {
            self.open.push((index, closer));
            return None;
        }
        let closer = Closer::of_closer(token)?;
        let barrier = self.open.iter().rposition(|open| open.1 == Closer::Brace);
        let partner = self.open.iter().rposition(|open| open.1 == closer)?;
        if barrier.is_some_and(|barrier| partner < barrier) {
            return None;
        }
        self.open.drain(partner..).next().map(|(opener, _)| opener)
    }

    /// The innermost bracket that is open.
    pub(crate) fn innermost(&self) -> Option<usize> {
        self.open.last().map(|&(index, _)| index)
    }

    /// A `{` is open.
    fn in_braces(&self) -> bool {
        self.open.iter().any(|open| open.1 == Closer::Brace)
    }

    /// Forgets `(` and `[` behind the innermost `{`.
    pub(crate) fn close_parens(&mut self) {
        while self.open.last().is_some_and(|open| open.1 != Closer::Brace) {
            self.open.pop();
        }
    }

    /// Forgets all that were opened behind token `index`.
    pub(crate) fn close_behind(&mut self, index: usize) {
        self.open.retain(|open| open.0 <= index);
    }
}
