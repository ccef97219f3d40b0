//! The tokens, and which characters form them.
//!
//! Numbers, addresses and strings are cut out generously, with whatever letters, dots and colons hang on
//! them, and looked at by [`crate::number`], [`crate::address`] and [`crate::quoted`]: so a message about
//! `10.0.0/8` or `10kpackets` is about the whole, and not about its first readable part.

use std::net::IpAddr;

use logos::{Filter, Lexer, Logos};

use crate::lexer::Findings;
use crate::{address, number, quoted, stray};

/// Declares the keywords with their spelling.
macro_rules! keywords {
    ($($variant:ident $text:literal)*) => {
        /// A word that the grammar knows. All but the reserved ones are names too, where a name cannot be
        /// mistaken for them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Keyword {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl Keyword {
            /// The keyword that is written so.
            pub(crate) fn from_text(text: &str) -> Option<Keyword> {
                match text {
                    $($text => Some(Keyword::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

keywords! {
    Abort "abort" Add "add" And "and" Apply "apply" As "as" At "at" Bind "bind" Burst "burst" By "by"
    Bytes "bytes" Chain "chain" Check "check" Claims "claims" Const "const" Count "count" Counted "counted"
    Counter "counter" Counters "counters" Cpu "cpu" Def "def" Default "default" Drop "drop" Else "else"
    End "end" Enum "enum" Every "every" Exact "exact" Expect "expect" False "false" File "file"
    First "first" For "for" From "from" Header "header" In "in" Inner "inner" Length "length"
    Limit "limit" Live "live" Lru "lru" Map "map" Mark "mark" Max "max" Meter "meter" Needs "needs"
    Next "next" Not "not" Of "of" Off "off" On "on" Options "options" Or "or" Pad "pad" Param "param"
    Pass "pass" Pop "pop" Priority "priority" Push "push" Quoted "quoted" Redirect "redirect"
    Remove "remove" Repeat "repeat" Repeats "repeats" Replay "replay" Return "return" Rule "rule"
    Sample "sample" Send "send" Set "set" Snapshot "snapshot" Swap "swap" Test "test" Timeout "timeout"
    To "to" True "true" Tx "tx" Union "union" Use "use" Valid "valid" View "view" When "when"
    With "with" Xdp "xdp" Xsk "xsk"
}

impl Keyword {
    /// Never a name, wherever it stands.
    pub(crate) fn is_reserved(self) -> bool {
        matches!(
            self,
            Keyword::And | Keyword::Or | Keyword::Not | Keyword::In | Keyword::True | Keyword::False
        )
    }

    /// Starts an action.
    pub(crate) fn starts_action(self) -> bool {
        use Keyword::{
            Abort, Add, Apply, Count, Drop, Limit, Mark, Pass, Pop, Push, Redirect, Remove, Return, Sample,
            Set, Swap, To, Tx,
        };
        let steers = matches!(self, Pass | Drop | Abort | Tx | Return | Redirect | To);
        steers
            || matches!(self, Add | Apply | Count | Limit | Mark | Pop | Push | Remove | Sample | Set | Swap)
    }

    /// Starts a declaration.
    pub(crate) fn starts_declaration(self) -> bool {
        use Keyword::{
            Bind, Chain, Const, Counter, Def, Enum, Header, Live, Map, Meter, Set, Test, Union, Use, Xdp,
        };
        matches!(
            self,
            Use | Const
                | Def
                | Enum
                | Header
                | Union
                | Bind
                | Set
                | Map
                | Live
                | Counter
                | Meter
                | Chain
                | Xdp
                | Test
        )
    }
}

/// A token. Its text is the source at its span; the values of literals are kept here.
#[derive(Logos, Clone, Debug, PartialEq)]
#[logos(extras = Findings, skip r"[ \t\r\n\u{feff}]+")]
pub(crate) enum Token {
    /// No token; already reported.
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*", word)]
    #[regex(r"[0-9][0-9A-Za-z_]*((\.[0-9A-Za-z_]+)+(/[0-9][0-9A-Za-z_.]*)?)?", number::classify)]
    #[regex(r"[0-9A-Fa-f]+:[0-9A-Fa-f]*:[0-9A-Za-z_:.]*(/[0-9A-Za-z_]+)?", address::classify)]
    #[regex(r"::([0-9A-Za-z_:][0-9A-Za-z_:.]*)?(/[0-9A-Za-z_]+)?", address::classify)]
    #[regex(r#""([^"\\\n]|\\[^\n])*""#, quoted::classify)]
    #[regex(r#""([^"\\\n]|\\[^\n])*\\?"#, quoted::unterminated)]
    #[regex(r"//[^\n]*", comment, allow_greedy = true)]
    #[regex(r"[#'`$?@%~\\]", stray::classify, priority = 1)]
    #[regex(r"/\*|\+\+|--|:=|=<|<>|===|!==|<-", stray::classify)]
    #[regex(r"[^\x00-\x7f]+", stray::classify, priority = 1)]
    #[regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+", stray::classify)]
    Error,
    /// A name, or `_`.
    Word,
    /// A word of the language.
    Keyword(Keyword),
    /// `53`, `100k`, `0x1f`
    Int(u64),
    /// `1.5s`, in nanoseconds
    Duration(u64),
    /// `192.0.2.1`, `2001:db8::1`
    Address(IpAddr),
    /// `10.0.0.0/8`
    Prefix((IpAddr, u8)),
    /// `02:00:00:00:00:01`, first byte highest
    Mac(u64),
    /// `02:00:00:00:00:00/24`
    MacPrefix((u64, u8)),
    /// `"…"`, escapes resolved
    Text(Vec<u8>),
    /// A statement that could not be read and was reported; put in its place by the parser.
    BadStatement,

    #[token("=>")]
    Arrow,
    #[token("->")]
    ThinArrow,
    #[token("==")]
    EqualEqual,
    #[token("!=")]
    NotEqual,
    #[token("<=")]
    LessEqual,
    #[token(">=")]
    GreaterEqual,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("<")]
    Less,
    #[token(">")]
    Greater,
    #[token("=")]
    Equal,
    #[token("..")]
    DotDot,
    #[token(".")]
    Dot,
    #[token("(")]
    OpenParen,
    #[token(")")]
    CloseParen,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("&")]
    Ampersand,
    #[token("|")]
    Pipe,
    #[token("^")]
    Caret,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("&&")]
    AmpersandAmpersand,
    #[token("||")]
    PipePipe,
    #[token("!")]
    Bang,
}

fn word(lexer: &mut Lexer<Token>) -> Token {
    Keyword::from_text(lexer.slice()).map_or(Token::Word, Token::Keyword)
}

/// Keeps `///` for what follows; `//` and `////` are for people only.
fn comment(lexer: &mut Lexer<Token>) -> Filter<Token> {
    let text = lexer.slice();
    if let Some(doc) = text.strip_prefix("///").filter(|rest| !rest.starts_with('/')) {
        let line = doc.strip_prefix(' ').unwrap_or(doc).trim_end().to_owned();
        lexer.extras.add_doc_line(line);
    }
    Filter::Skip
}

impl Token {
    /// `(`, `[` or `{`
    pub(crate) fn opens(&self) -> bool {
        matches!(self, Token::OpenParen | Token::OpenBracket | Token::OpenBrace)
    }

    /// `)`, `]` or `}`
    pub(crate) fn closes(&self) -> bool {
        matches!(self, Token::CloseParen | Token::CloseBracket | Token::CloseBrace)
    }
}
