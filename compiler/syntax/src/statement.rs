//! Which statement of a declaration a token belongs to, also where brackets do not match.

use std::ops::Range;

use crate::lexer::Spanned;
use crate::structure::{Brackets, Layout};
use crate::token::{Keyword, Token};

/// Where in a declaration a token stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Outside of any block of statements: the whole declaration, or what stands before its block.
    Head {
        /// The `{` of the block, if it is still to come.
        block: Option<usize>,
    },
    /// In a statement of a block: all its tokens.
    Statement(Range<usize>),
    /// Between a `when` and its `{`: these tokens.
    Condition(Range<usize>),
}

/// The place of token `at` in the declaration `tokens`.
pub(crate) fn place(layout: &Layout, tokens: &[Spanned], at: usize) -> Place {
    let mut walk = Walk { layout, tokens, brackets: Brackets::default(), blocks: Vec::new() };
    for index in 0..at.min(tokens.len()) {
        walk.step(index);
    }
    let level = walk.blocks.len();
    let Some(&Block { statement: start, .. }) = walk.blocks.last() else {
        return walk.head(at);
    };
    for index in at..tokens.len() {
        walk.step(index);
        let Some(block) = walk.blocks.get(level - 1) else { return Place::Statement(start..index) };
        let inner = walk.blocks.get(level).map(|inner| inner.brace);
        if tokens[start].1 == Token::Keyword(Keyword::When) && inner == Some(index) {
            return Place::Condition(start + 1..index);
        }
        if block.statement != start {
            return Place::Statement(start..block.statement);
        }
    }
    Place::Statement(start..tokens.len())
}

/// Whether `keyword` begins a statement in the block of a declaration that begins with `declaration`.
pub(crate) fn starts_statement(declaration: &Token, keyword: Keyword) -> bool {
    use Keyword::{
        Add, Apply, At, Chain, Check, Counters, Default, Expect, On, Priority, Remove, Repeat, Replay, Rule,
        Send, Set, When,
    };
    match declaration {
        Token::Keyword(Keyword::Xdp | Keyword::Chain) => {
            matches!(keyword, Rule | When | Apply | Default | Priority | Chain | Counters | On)
        }
        Token::Keyword(Keyword::Test) => {
            matches!(keyword, At | Repeat | Send | Expect | Check | Add | Remove | Set | Replay)
        }
        _ => false,
    }
}

/// A block of statements that is open.
#[derive(Clone, Copy, Debug)]
struct Block {
    brace: usize,
    /// The first token of its current statement.
    statement: usize,
}

struct Walk<'a> {
    layout: &'a Layout<'a>,
    tokens: &'a [Spanned],
    brackets: Brackets,
    blocks: Vec<Block>,
}

impl Walk<'_> {
    /// Goes past token `index`.
    fn step(&mut self, index: usize) {
        let token = &self.tokens[index].1;
        if self.surely_starts_statement(index) {
            self.begin_statement(index);
        }
        match token {
            Token::Semicolon => {
                self.brackets.close_parens();
                if self.directly_in_block() {
                    self.begin_statement(index + 1);
                }
            }
            Token::BadStatement => self.begin_statement(index + 1),
            Token::OpenBrace if self.opens_block(index) => {
                self.brackets.step(index, token);
                self.blocks.push(Block { brace: index, statement: index + 1 });
            }
            _ => {
                let closed = self.brackets.step(index, token);
                if *token == Token::CloseBrace {
                    self.end_block(closed, index);
                }
            }
        }
    }

    fn end_block(&mut self, opener: Option<usize>, closer: usize) {
        let Some(opener) = opener else { return };
        let before = self.blocks.len();
        self.blocks.retain(|block| block.brace < opener);
        let complete = self.directly_in_block() && self.ends_with_list(closer);
        if self.blocks.len() < before || complete {
            self.begin_statement(closer + 1);
        }
    }

    /// A keyword that begins statements, first in its line behind the end of another.
    fn surely_starts_statement(&self, index: usize) -> bool {
        let Token::Keyword(keyword) = self.tokens[index].1 else { return false };
        index > 0
            && starts_statement(&self.tokens[0].1, keyword)
            && matches!(self.tokens[index - 1].1, Token::Semicolon | Token::CloseBrace | Token::BadStatement)
            && self.layout.starts_line(&self.tokens[index])
    }

    fn begin_statement(&mut self, index: usize) {
        if let Some(block) = self.blocks.last_mut() {
            block.statement = index;
            self.brackets.close_behind(block.brace);
        }
    }

    fn directly_in_block(&self) -> bool {
        self.brackets.innermost() == self.blocks.last().map(|block| block.brace)
    }

    /// Whether the statement ends with the list whose `}` is token `closer`: the edges of a `next`, or
    /// whatever a statement that does not exist has in braces.
    fn ends_with_list(&self, closer: usize) -> bool {
        let head = self.blocks.last().and_then(|block| self.tokens.get(block.statement));
        let line_ends = self.tokens.get(closer + 1).is_none_or(|next| self.layout.starts_line(next));
        match head {
            Some((_, Token::Keyword(Keyword::Next), _)) => {
                self.tokens[0].1 == Token::Keyword(Keyword::Header)
            }
            Some((_, Token::Keyword(keyword), _)) => {
                line_ends && !starts_statement(&self.tokens[0].1, *keyword)
            }
            _ => line_ends,
        }
    }

    /// Whether the `{` at `index` opens a block of statements, and no list.
    fn opens_block(&self, index: usize) -> bool {
        if !self.directly_in_block() {
            return false;
        }
        let declaration = &self.tokens[0].1;
        let Some(block) = self.blocks.last() else {
            return *declaration != Token::Keyword(Keyword::Enum) && is_block_declaration(declaration);
        };
        let in_header = *declaration == Token::Keyword(Keyword::Header);
        match &self.tokens[block.statement].1 {
            Token::Keyword(Keyword::When) => self.tokens[index - 1].1 != Token::Keyword(Keyword::In),
            Token::Keyword(Keyword::Options) => {
                in_header && self.tokens[block.statement + 1].1 == Token::Keyword(Keyword::By)
            }
            Token::Int(_) => in_header,
            _ => false,
        }
    }

    /// The place of a token outside of any block.
    fn head(&self, at: usize) -> Place {
        let declaration = &self.tokens[0].1;
        let enumeration = *declaration == Token::Keyword(Keyword::Enum);
        let brace = (at..self.tokens.len()).find(|&index| self.tokens[index].1 == Token::OpenBrace);
        let block =
            brace.filter(|_| self.brackets.is_empty() && !enumeration && is_block_declaration(declaration));
        Place::Head { block }
    }
}

fn is_block_declaration(declaration: &Token) -> bool {
    matches!(
        declaration,
        Token::Keyword(Keyword::Header | Keyword::Union | Keyword::Chain | Keyword::Xdp | Keyword::Test)
    )
}
