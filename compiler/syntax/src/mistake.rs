//! A place where the grammar could not go on, and what is known about it.

use crate::expected::Expected;
use crate::lexer::Spanned;
use crate::statement::{Place, place, starts_statement};
use crate::structure::Layout;
use crate::token::{Keyword, Token};

/// Token `index` of a declaration does not fit behind those before it.
#[derive(Debug)]
pub(crate) struct Mistake<'a> {
    layout: &'a Layout<'a>,
    /// The declaration, as mended so far.
    pub(crate) tokens: &'a [Spanned],
    /// The token that does not fit; their number where the declaration ends too early.
    pub(crate) index: usize,
    /// What would fit.
    pub(crate) expected: Expected,
    /// The declaration has ended before.
    pub(crate) ended: bool,
    /// The statement that it stands in.
    pub(crate) place: Place,
}

impl<'a> Mistake<'a> {
    /// `expected` are the names that the grammar gives to tokens.
    pub(crate) fn new(
        layout: &'a Layout<'a>,
        tokens: &'a [Spanned],
        index: usize,
        expected: Vec<String>,
    ) -> Self {
        let place = place(layout, tokens, index);
        let ended = index < tokens.len() && expected.is_empty();
        Mistake { layout, tokens, index, ended, expected: Expected::new(expected), place }
    }

    /// The token that does not fit; none at the end.
    pub(crate) fn found(&self) -> Option<&'a Spanned> {
        self.tokens.get(self.index)
    }

    /// The last token that fits. (A declaration's first token always does.)
    pub(crate) fn previous(&self) -> &'a Spanned {
        &self.tokens[self.index.saturating_sub(1)]
    }

    /// The token that does not fit stands first in its line.
    pub(crate) fn found_starts_line(&self) -> bool {
        self.found().is_some_and(|found| self.layout.starts_line(found))
    }

    /// The token that does not fit is a `;` at its line's end.
    pub(crate) fn found_ends_line(&self) -> bool {
        let next = self.tokens.get(self.index + 1);
        self.found().is_some_and(|found| found.1 == Token::Semicolon)
            && next.is_none_or(|next| self.layout.starts_line(next))
    }

    /// The token that does not fit begins a statement.
    pub(crate) fn found_starts_statement(&self) -> bool {
        match self.found() {
            Some((_, Token::Keyword(keyword), _)) => starts_statement(&self.tokens[0].1, *keyword),
            _ => false,
        }
    }

    /// The token that does not fit is the first of a statement.
    pub(crate) fn at_statement_start(&self) -> bool {
        self.statement() == self.index
    }

    /// Behind a word that begins a part of a header, and could be a field's name as well.
    pub(crate) fn may_be_field(&self) -> bool {
        self.index == self.statement() + 1
            && self.tokens[0].1 == Token::Keyword(Keyword::Header)
            && matches!(self.previous().1, Token::Keyword(_))
    }

    /// The first token of the statement; in a head, of the declaration.
    pub(crate) fn statement(&self) -> usize {
        match &self.place {
            Place::Head { .. } => 0,
            Place::Statement(range) => range.start,
            Place::Condition(range) => range.start - 1,
        }
    }

    /// Tells statements apart.
    pub(crate) fn statement_byte(&self) -> u32 {
        self.tokens.get(self.statement()).map_or(u32::MAX, |token| token.0)
    }

    /// The statement (in a head, the declaration's head) holds `byte`.
    pub(crate) fn covers(&self, byte: u32) -> bool {
        let end = match &self.place {
            Place::Head { block: Some(block) } => *block,
            Place::Head { block: None } => self.tokens.len(),
            Place::Statement(range) | Place::Condition(range) => range.end,
        };
        let last = end.checked_sub(1).and_then(|last| self.tokens.get(last));
        self.statement_byte() <= byte && last.is_some_and(|last| byte < last.2)
    }

    /// The action that the token that does not fit stands in.
    pub(crate) fn action(&self) -> Option<Keyword> {
        let statement = self.statement();
        (statement + 1..self.index).rev().find_map(|index| {
            let begins = matches!(
                self.tokens[index - 1].1,
                Token::Arrow | Token::Comma | Token::OpenBrace | Token::Keyword(Keyword::Default)
            );
            match self.tokens[index].1 {
                Token::Keyword(keyword) if begins && keyword.starts_action() => Some(keyword),
                _ => None,
            }
        })
    }

    /// The innermost bracket that is open in the statement.
    pub(crate) fn open_bracket(&self) -> Option<&'a Spanned> {
        let mut brackets = crate::structure::Brackets::default();
        for index in self.statement()..self.index {
            brackets.step(index, &self.tokens[index].1);
        }
        brackets.innermost().map(|index| &self.tokens[index])
    }
}
