//! How a mistake is mended in the tokens, so that reading goes on with the least loss.

use crate::lexer::Spanned;
use crate::mistake::Mistake;
use crate::statement::Place;
use crate::token::{Keyword, Token};

/// What is done to the tokens of a declaration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Repair {
    /// Something small was left out: it is put in before token `at`.
    Insert { at: usize, token: Token },
    /// A keyword stands where a name is expected: token `at` becomes one.
    MakeName { at: usize },
    /// Token `at` is another language's for `token`.
    Replace { at: usize, token: Token },
    /// The statement cannot be read.
    DropStatement { start: usize, end: usize },
    /// The condition of a `when` cannot be read; its block can.
    DropCondition { start: usize, end: usize },
    /// What stands before a declaration's block cannot be read; the block is read for its own mistakes.
    ReplaceHead { block: usize },
    /// The declaration has ended: brackets that were put in at its end turn out to be too many.
    CutOff { at: usize },
    /// The declaration is given up.
    GiveUp,
}

/// The repair that loses least.
pub(crate) fn choose_repair(mistake: &Mistake) -> Repair {
    if mistake.ended {
        return Repair::CutOff { at: mistake.index };
    }
    small_repair(mistake).unwrap_or(match &mistake.place {
        Place::Statement(range) => Repair::DropStatement { start: range.start, end: range.end },
        Place::Condition(range) => Repair::DropCondition { start: range.start, end: range.end },
        Place::Head { block: Some(block) } => Repair::ReplaceHead { block: *block },
        Place::Head { block: None } => Repair::GiveUp,
    })
}

/// One token too few, or a keyword for a name.
fn small_repair(mistake: &Mistake) -> Option<Repair> {
    let at = mistake.index;
    let expected = &mistake.expected;
    let insert = |token| Some(Repair::Insert { at, token });
    let found = mistake.found().map(|found| &found.1);
    match found {
        Some(Token::Error | Token::BadStatement) => return None,
        Some(Token::Keyword(keyword)) if expected.only_a_name() && !keyword.is_reserved() => {
            return Some(Repair::MakeName { at });
        }
        _ => {}
    }
    if let Some(token) = found.and_then(|found| written_otherwise(found, mistake)) {
        return Some(Repair::Replace { at, token });
    }
    let is_action = matches!(found, Some(Token::Keyword(keyword)) if keyword.starts_action());
    if is_action && expected.has(",") && expected.has(";") && !mistake.found_starts_statement() {
        return insert(Token::Comma);
    }
    if expected.has(";") && ends_here(mistake) {
        return insert(Token::Semicolon);
    }
    if expected.has("=>") && is_action {
        return insert(Token::Arrow);
    }
    if expected.is_only(":") {
        return insert(Token::Colon);
    }
    if expected.has(",") && expected.has("}") && found.is_some_and(starts_element) {
        return insert(Token::Comma);
    }
    let closes_badly = matches!(
        found,
        None | Some(
            Token::Semicolon | Token::Arrow | Token::CloseBrace | Token::CloseBracket | Token::CloseParen
        )
    );
    match mistake.open_bracket().map(|bracket| &bracket.1) {
        Some(Token::OpenParen) if closes_badly && expected.has(")") => insert(Token::CloseParen),
        Some(Token::OpenBracket) if closes_badly && expected.has("]") => insert(Token::CloseBracket),
        Some(Token::OpenBrace) if expected.has("}") && expected.has(",") && mistake.found_ends_line() => {
            insert(Token::CloseBrace)
        }
        _ => None,
    }
}

/// What the token that was found is written as where it stands.
fn written_otherwise(found: &Token, mistake: &Mistake) -> Option<Token> {
    let expected = |name| mistake.expected.has(name);
    match found {
        Token::Equal if mistake.expected.is_only(":") => Some(Token::Colon),
        Token::ThinArrow if expected("=>") => Some(Token::Arrow),
        Token::Arrow if expected("->") => Some(Token::ThinArrow),
        Token::EqualEqual if expected("=") => Some(Token::Equal),
        _ => None,
    }
}

/// The statement or declaration ends before the token that does not fit.
fn ends_here(mistake: &Mistake) -> bool {
    match mistake.found().map(|found| &found.1) {
        None | Some(Token::CloseBrace) => true,
        Some(_) => mistake.found_starts_line() || mistake.found_starts_statement(),
    }
}

fn starts_element(token: &Token) -> bool {
    matches!(
        token,
        Token::Word
            | Token::Int(_)
            | Token::Address(_)
            | Token::Prefix(_)
            | Token::Mac(_)
            | Token::MacPrefix(_)
            | Token::Text(_)
            | Token::OpenParen
    )
}

impl Repair {
    /// Mends `tokens`.
    ///
    /// # Errors
    /// The declaration is given up.
    pub(crate) fn apply(self, tokens: &mut Vec<Spanned>) -> Result<(), ()> {
        match self {
            Repair::Insert { at, token } => {
                let byte = at.checked_sub(1).map_or(0, |previous| tokens[previous].2);
                tokens.insert(at, (byte, token, byte));
            }
            Repair::MakeName { at } => tokens[at].1 = Token::Word,
            Repair::Replace { at, token } => tokens[at].1 = token,
            Repair::DropStatement { start, end } => {
                let bytes = (tokens[start].0, tokens[end - 1].2);
                tokens.splice(start..end, [(bytes.0, Token::BadStatement, bytes.1)]);
            }
            Repair::DropCondition { start, end } => {
                let byte = tokens[start - 1].2;
                tokens.splice(start..end, [(byte, Token::Error, byte)]);
            }
            Repair::ReplaceHead { block } => {
                let head = placeholder(&tokens[0]);
                tokens.splice(1..block, head);
            }
            Repair::CutOff { at } => tokens.truncate(at),
            Repair::GiveUp => return Err(()),
        }
        Ok(())
    }
}

/// Something that can stand between a declaration's keyword and its block.
fn placeholder(keyword: &Spanned) -> Vec<Spanned> {
    let (start, ref token, end) = *keyword;
    let tokens = match token {
        Token::Keyword(Keyword::Union) => vec![Token::Word, Token::Equal, Token::Word],
        Token::Keyword(Keyword::Test) => vec![Token::Text(Vec::new())],
        _ => vec![Token::Word],
    };
    tokens.into_iter().map(|token| (start, token, end)).collect()
}
