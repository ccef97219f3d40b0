//! The kinds of mistakes: one row each.

/// A kind of mistake. Its `id` is stable: users search for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// `E0203`, or `W0102` for what is only ever a warning or a note.
    pub id: &'static str,
    /// What all messages of this code have in common.
    pub summary: &'static str,
}

/// Declares the codes and the list of all of them.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $summary:literal;)*) => {
        /// The codes by name; [`codes::ALL`] lists them.
        pub mod codes {
            use super::Code;
            $(
                #[doc = $summary]
                pub const $name: Code = Code { id: $id, summary: $summary };
            )*
            /// Every code, in order.
            pub const ALL: &[Code] = &[$($name),*];
        }
    };
}

// E01xx text and syntax; E02xx names and files; E03xx types and values; E04xx presence and certainty;
// E05xx header declarations; E06xx what this version or target lacks; E07xx tests and captures; W0xxx warnings.
codes! {
    SYNTAX = "E0100", "the text does not follow the grammar";
    BAD_TOKEN = "E0101", "these characters form no token";
    BAD_NUMBER = "E0102", "a number or a time that cannot be read";
    BAD_ADDRESS = "E0103", "an address or a prefix that cannot be read";
    HOST_BITS = "E0104", "a prefix with bits set behind its length";
    BAD_STRING = "E0105", "a string that cannot be read";
    MIXED_AND_OR = "E0106", "`and` and `or` side by side, without parentheses";
    UNCLEAR_NOT = "E0107", "`not` before something that can be read in two ways";
    FOREIGN_OPERATOR = "E0108", "an operator of another language";
    KEYWORD_AS_NAME = "E0109", "a word of the language where a name is declared";
    UNCLOSED = "E0110", "a bracket without its partner";
    TOO_DEEP = "E0111", "nested too deeply";
    TOO_LARGE = "E0112", "a file that is too large";
    MISSING_ELSE = "E0113", "a limit that does not say what it does when it is exceeded";
    NOT_YET = "E0600", "the language has it, this version of pktc does not yet";
    PACKET = "E0710", "this packet cannot be composed";
    EXPECTATION = "E0711", "a test expected another outcome";
    REPLAY = "E0712", "a capture's verdicts are not those of its snapshot";
    ENGINE = "E0713", "an engine could not run a packet";
    OBJECT = "E0799", "the object cannot be written";
}
