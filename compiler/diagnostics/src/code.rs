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
// E05xx header declarations; E06xx what this version or target lacks; E07xx tests and captures; E08xx what
// kernels do not take, and mistakes of the compiler; W0xxx warnings.
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
    UNKNOWN_NAME = "E0201", "nothing of this name is in scope";
    UNKNOWN_FIELD = "E0202", "a header or union has no such field";
    NAME_CLASH = "E0203", "one name is declared twice";
    CANNOT_READ = "E0204", "a file or library cannot be read";
    USE_CYCLE = "E0205", "files use each other in a circle";
    RECURSION = "E0206", "a definition or chain leads back to itself";
    WRONG_NAME = "E0207", "a name stands for something else than is needed here";
    BAD_NAME = "E0208", "a name that cannot be used here";
    BAD_INDEX = "E0209", "there is no such instance of a header";
    UNKNOWN_MEMBER = "E0210", "an enum has no such member";
    UNKNOWN_TYPE = "E0211", "there is no such type";
    DOES_NOT_FIT = "E0301", "a value does not fit";
    TYPE_MISMATCH = "E0302", "two sides are of different types";
    NOT_A_CONDITION = "E0303", "a value stands where a condition is needed";
    NOT_A_VALUE = "E0304", "a condition, prefix or set stands where one value is needed";
    NEEDS_IN = "E0305", "a prefix or a set is compared with `==`";
    EMPTY_RANGE = "E0306", "a range or set holds nothing";
    NOT_CONSTANT = "E0308", "a value is not known when compiling";
    ARGUMENTS = "E0309", "a definition gets the wrong arguments";
    NO_RESULT = "E0310", "a constant computation has no result";
    TOO_COMPLEX = "E0311", "an expression is nested too deeply or grows too large";
    DEFAULT_VERDICT = "E0312", "a program's `default` is missing, doubled or does not decide";
    ACTION_ORDER = "E0313", "an action stands where it has no effect or no meaning";
    UNCERTAIN = "E0401", "an operand of `!=` or `not in` may be missing";
    BAD_LAYOUT = "E0501", "a header's fields do not form whole bytes";
    BAD_PART = "E0502", "a part of a header is doubled or does not fit it";
    BAD_EDGE = "E0503", "a selector is unknown or leads to two headers";
    NOT_YET = "E0600", "the language has it, this version of pktc does not yet";
    TEST_TARGET = "E0701", "a test does not say what it tests";
    UNKNOWN_RULE = "E0702", "a test expects a rule that does not exist";
    BAD_LAYER = "E0703", "a packet's layer or argument has no meaning";
    BAD_OUTCOME = "E0704", "a test's steps do not fit together";
    PACKET = "E0710", "this packet cannot be composed";
    EXPECTATION = "E0711", "a test expected another outcome";
    REPLAY = "E0712", "a capture's verdicts are not those of its snapshot";
    ENGINE = "E0713", "an engine could not run a packet";
    OBJECT = "E0799", "the object cannot be written";
    STACK_FULL = "E0800", "a program needs more stack than kernels give it";
    PROGRAM_TOO_LONG = "E0801", "a program has more instructions than kernels take";
    BROKEN_CODE = "E0899", "the compiler made code that it cannot finish: a mistake in pktc";
    ALWAYS = "W0001", "a comparison is always true or always false";
    FAMILIES = "W0002", "addresses of different families are compared";
    UNUSED = "W0003", "something is declared and never used";
    UNREACHABLE = "W0004", "a rule can never be reached";
    SHADOWS = "W0005", "a name hides one of the standard library";
    DUPLICATE = "W0006", "a set names an element twice";
    LATER_FRAGMENTS = "W0007", "a rule on a transport header misses later fragments";
    UNSEEN = "W0008", "a program sees only the first buffer of a packet that lies in several";
}
