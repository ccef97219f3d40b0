//! Syntax mistakes in the user's words.

use pktc_diagnostics::{Diagnostic, Span, codes};

use crate::advice::{action_shape, advice, construct, nearest_declaration, starters, starting_advice};
use crate::builder::Builder;
use crate::lexer::Spanned;
use crate::mistake::Mistake;
use crate::repair::Repair;
use crate::structure::Unclosed;
use crate::token::{Keyword, Token};

/// The message about `mistake`, which `repair` mends; none where the lexer has already complained.
pub(crate) fn explain(builder: &Builder, mistake: &Mistake, repair: &Repair) -> Option<Diagnostic> {
    let reported = |token: &Spanned| matches!(token.1, Token::Error | Token::BadStatement);
    if mistake.found().is_some_and(reported) || reported(mistake.previous()) && !mistake.at_statement_start()
    {
        return None;
    }
    Some(match repair {
        Repair::CutOff { .. } => return None,
        Repair::Insert { token: Token::Semicolon, .. } => missing(builder, mistake, "`;`"),
        Repair::Insert { token: Token::Comma, .. } => missing(builder, mistake, "`,`"),
        Repair::Insert { token: Token::Colon, .. } => missing(builder, mistake, "`:`"),
        Repair::Insert { token: Token::Arrow, .. } => missing(builder, mistake, "`=>`"),
        Repair::Insert { .. } => unclosed_bracket(builder, mistake),
        Repair::Replace { token, .. } => written_otherwise(builder, mistake, token),
        Repair::MakeName { .. } => keyword_as_name(builder, mistake),
        Repair::DropStatement { .. }
        | Repair::DropCondition { .. }
        | Repair::ReplaceHead { .. }
        | Repair::GiveUp => unexpected(builder, mistake),
    })
}

/// The message about `tokens` that stand between declarations.
pub(crate) fn explain_outside(builder: &Builder, tokens: &[Spanned]) -> Option<Diagnostic> {
    let first = tokens.iter().find(|token| token.1 != Token::Error)?;
    let span = builder.span(first.0, first.2);
    let text = builder.text(span);
    let error = |title: String, label: &str| Diagnostic::error(codes::SYNTAX, title, span, label);
    Some(match &first.1 {
        Token::CloseBrace => {
            Diagnostic::error(codes::UNCLOSED, "this `}` closes nothing", span, "one too many")
                .with_help("remove it, or look whether a `}` above it closes too early")
        }
        Token::Semicolon => error("this `;` ends nothing".into(), "not needed")
            .with_help("no `;` stands behind a `}`; remove it"),
        Token::Keyword(keyword @ (Keyword::Rule | Keyword::When | Keyword::Apply)) => {
            let word = text;
            let end = if *keyword == Keyword::When { "" } else { ";" };
            error(format!("`{word}` stands outside of any program"), "not in a block").with_help(format!(
                "put it in `xdp NAME {{ default pass; {word} …{end} }}` or `chain NAME {{ … }}`"
            ))
        }
        Token::Keyword(Keyword::Send | Keyword::Expect | Keyword::Check | Keyword::Replay) => {
            error(format!("`{text}` stands outside of any test"), "not in a block")
                .with_help(format!("put it in `test \"what it shows\" {{ {text} …; }}`"))
        }
        _ => {
            let diagnostic = error(format!("`{text}` begins no declaration"), "not a declaration");
            match nearest_declaration(text) {
                Some(help) => diagnostic.with_help(help),
                None => diagnostic.with_help(
                    "a file consists of `use`, `const`, `def`, `enum`, `header`, `union`, `bind`, `set`, `map`, `live`, \
                     `counter`, `meter`, `chain`, `xdp` and `test`",
                ),
            }
        }
    })
}

/// The message about a block that does not end.
pub(crate) fn explain_unclosed(builder: &Builder, unclosed: &Unclosed) -> Diagnostic {
    let (start, _, end) = unclosed.opener;
    let text = builder.text(builder.span(start, end));
    let title = format!("this `{text}` is not closed");
    let mut diagnostic = Diagnostic::error(codes::UNCLOSED, title, builder.span(start, end), "opened here");
    if let Some((byte, ..)) = unclosed.closers.first() {
        let last = builder.last_character(*byte);
        diagnostic = diagnostic.with_label(last, "here the declaration ends at the latest");
    }
    diagnostic.with_help("put a `}` where it ends")
}

/// Something is left out behind the last token that fits.
fn missing(builder: &Builder, mistake: &Mistake, what: &str) -> Diagnostic {
    let (noun, shape) = construct(builder, mistake);
    let (start, _, end) = *mistake.previous();
    let place = builder.span(start, end);
    let title = format!("{what} is missing in {noun}");
    let label = format!("{what} goes behind this");
    let diagnostic = Diagnostic::error(codes::SYNTAX, title, place, label);
    shape.map_or(diagnostic.clone(), |shape| diagnostic.with_help(format!("it reads `{shape}`")))
}

fn unclosed_bracket(builder: &Builder, mistake: &Mistake) -> Diagnostic {
    let opener = mistake.open_bracket().unwrap_or(mistake.previous());
    let span = builder.span(opener.0, opener.2);
    let closer = match opener.1 {
        Token::OpenBracket => "]",
        Token::OpenBrace => "}",
        _ => ")",
    };
    let title = format!("this `{}` is not closed", builder.text(span));
    let (start, _, end) = *mistake.previous();
    Diagnostic::error(codes::UNCLOSED, title, span, "opened here")
        .with_label(builder.span(start, end), format!("`{closer}` goes behind this, or earlier"))
}

fn written_otherwise(builder: &Builder, mistake: &Mistake, token: &Token) -> Diagnostic {
    let span = found_span(builder, mistake);
    let right = match token {
        Token::Colon => ":",
        Token::Arrow => "=>",
        Token::ThinArrow => "->",
        _ => "=",
    };
    let title = format!("`{}` is written `{right}` here", builder.text(span));
    Diagnostic::error(codes::FOREIGN_OPERATOR, title, span, format!("write `{right}`"))
}

fn keyword_as_name(builder: &Builder, mistake: &Mistake) -> Diagnostic {
    let span = found_span(builder, mistake);
    let text = builder.text(span);
    let title = format!("`{text}` is a word of the language and cannot be a name here");
    Diagnostic::error(codes::KEYWORD_AS_NAME, title, span, "a name goes here")
        .with_note("Fields, labels and enum members may be called so, declarations not.")
        .with_help(format!("choose another name, such as `my_{text}`"))
}

/// The token that does not fit; at the end, the last one.
fn found_span(builder: &Builder, mistake: &Mistake) -> Span {
    let (start, _, end) = *mistake.found().unwrap_or(mistake.previous());
    builder.span(start, end)
}

fn unexpected(builder: &Builder, mistake: &Mistake) -> Diagnostic {
    if mistake.at_statement_start() {
        return no_statement(builder, mistake);
    }
    let span = found_span(builder, mistake);
    let found = match mistake.found() {
        Some(_) => format!("`{}`", builder.shortened(span)),
        None => "the end".to_owned(),
    };
    let (noun, shape) = construct(builder, mistake);
    let hidden = mistake.may_be_field().then_some(":");
    let expected = mistake.expected.phrase(hidden);
    let title = if expected.is_empty() {
        format!("{found} does not belong in {noun}")
    } else {
        format!("expected {expected}, found {found}")
    };
    let mut diagnostic = Diagnostic::error(codes::SYNTAX, title, span, "not expected here");
    if let Some(head) = mistake.tokens.get(mistake.statement()) {
        let head = builder.span(head.0, head.2);
        if head != span {
            diagnostic = diagnostic.with_label(head, format!("in {noun}"));
        }
    }
    match (advice(builder, mistake), action_shape(mistake), shape) {
        (Some(help), _, _) => diagnostic.with_help(help),
        (_, Some(shape), _) => diagnostic.with_help(format!("the action reads `{shape}`")),
        (_, _, Some(shape)) => diagnostic.with_help(format!("{} reads `{shape}`", indefinite(&noun))),
        _ => diagnostic,
    }
}

/// The mistake is the first token of a statement.
fn no_statement(builder: &Builder, mistake: &Mistake) -> Diagnostic {
    let span = found_span(builder, mistake);
    if builder.text(span) == ";" {
        return Diagnostic::error(codes::SYNTAX, "this `;` ends nothing", span, "not needed")
            .with_help("no `;` stands behind a `}`; remove it");
    }
    let title = format!("`{}` begins no statement", builder.shortened(span));
    let diagnostic = Diagnostic::error(codes::SYNTAX, title, span, "not a statement")
        .with_note(format!("Here stand {}.", starters(mistake)));
    match starting_advice(mistake, builder.text(span)) {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    }
}

/// `this rule` → `a rule`
fn indefinite(noun: &str) -> String {
    let noun = noun.strip_prefix("this ").unwrap_or(noun);
    let vowel = noun.trim_start_matches('`').starts_with(['a', 'e', 'i', 'o']);
    let article = if vowel { "an" } else { "a" };
    format!("{article} {noun}")
}
