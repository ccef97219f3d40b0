//! Numbers, durations and, as they begin alike, IPv4 addresses.

use logos::Lexer;
use pktc_diagnostics::codes;

use crate::address;
use crate::lexer::{error, mend, refuse};
use crate::token::Token;

/// Reads what begins with a digit and has no colon in it.
pub(crate) fn classify(lexer: &mut Lexer<Token>) -> Token {
    let text = lexer.slice();
    let dots = text.split('/').next().unwrap_or(text).matches('.').count();
    if dots > 1 || text.contains('/') {
        return address::ipv4(lexer);
    }
    match duration(text) {
        Some(Ok(nanoseconds)) => return Token::Duration(nanoseconds),
        Some(Err(())) => return too_long(lexer),
        None => {}
    }
    match int(text) {
        Ok(value) => Token::Int(value),
        Err(problem) => refuse_number(lexer, &problem),
    }
}

/// Nanoseconds of each unit of time, by its name.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// How many nanoseconds the unit of time `name` has.
pub(crate) fn unit_nanoseconds(name: &str) -> Option<u64> {
    UNITS.iter().find(|(unit, _)| *unit == name).map(|&(_, nanoseconds)| nanoseconds)
}

/// `60s`, `1.5h`; an error if it does not fit 64 bits, `None` if it is no duration at all.
fn duration(text: &str) -> Option<Result<u64, ()>> {
    let digits =
        text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_' || c == '.').len();
    let (number, unit) = text.split_at(digits);
    let unit = unit_nanoseconds(unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if leading_zero(whole) || whole.ends_with('_') || fraction.contains('_') {
        return None;
    }
    let whole = whole.replace('_', "").parse::<u64>().ok().and_then(|whole| whole.checked_mul(unit));
    let fraction = fraction_of(fraction, unit);
    Some(whole.zip(fraction).and_then(|(whole, part)| whole.checked_add(part)).ok_or(()))
}

/// `digits` behind a decimal point, of `unit`; what is shorter than a nanosecond is cut.
fn fraction_of(digits: &str, unit: u64) -> Option<u64> {
    let mut part = 0;
    let mut scale = unit;
    for digit in digits.bytes() {
        scale /= 10;
        part += u64::from(digit.checked_sub(b'0')?) * scale;
    }
    Some(part)
}

/// Why a number cannot be read.
enum Problem {
    LeadingZero { fixed: String },
    TooBig,
    Suffix { number: String, suffix: String },
    Fraction,
    Digits { base: &'static str },
    Underscore,
}

fn leading_zero(digits: &str) -> bool {
    digits.len() > 1 && digits.starts_with('0')
}

/// `53`, `20_003`, `0x1f`, `0b101`, `100k`.
fn int(text: &str) -> Result<u64, Problem> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return radix(hex, 16, "0-9 and a-f");
    }
    if let Some(binary) = text.strip_prefix("0b").or_else(|| text.strip_prefix("0B")) {
        return radix(binary, 2, "0 and 1");
    }
    if text.contains('.') {
        return Err(Problem::Fraction);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let scale: u64 = match suffix {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err(Problem::Suffix { number: digits.into(), suffix: suffix.into() }),
    };
    if leading_zero(digits) {
        let trimmed = digits.trim_start_matches(['0', '_']);
        let fixed = if trimmed.is_empty() { "0" } else { trimmed };
        return Err(Problem::LeadingZero { fixed: format!("{fixed}{suffix}") });
    }
    plain_digits(digits)?
        .parse::<u64>()
        .ok()
        .and_then(|value| value.checked_mul(scale))
        .ok_or(Problem::TooBig)
}

fn radix(digits: &str, radix: u32, base: &'static str) -> Result<u64, Problem> {
    let plain = plain_digits(digits)?;
    if plain.is_empty() || !plain.chars().all(|c| c.is_digit(radix)) {
        return Err(Problem::Digits { base });
    }
    u64::from_str_radix(&plain, radix).map_err(|_| Problem::TooBig)
}

/// Without its `_`, which stand between digits only.
fn plain_digits(digits: &str) -> Result<String, Problem> {
    if digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return Err(Problem::Underscore);
    }
    Ok(digits.replace('_', ""))
}

fn too_long(lexer: &mut Lexer<Token>) -> Token {
    let title = format!("`{}` is longer than the clock counts", lexer.slice());
    let diagnostic = error(lexer, codes::BAD_NUMBER, title, "too long")
        .with_note("Time is counted in nanoseconds, in 64 bits: 584 years.");
    mend(lexer, diagnostic, Token::Duration(u64::MAX))
}

fn refuse_number(lexer: &mut Lexer<Token>, problem: &Problem) -> Token {
    let text = lexer.slice().to_owned();
    let report = |title: String, label: &str| error(lexer, codes::BAD_NUMBER, title, label);
    match problem {
        Problem::LeadingZero { fixed } => {
            let diagnostic = report(format!("`{text}` begins with a zero"), "is it octal?")
                .with_note("Some languages read a leading zero as octal, so no reading is taken.")
                .with_help(format!("write `{fixed}`; hexadecimal is `0x…`, binary `0b…`"));
            mend(lexer, diagnostic, Token::Int(0))
        }
        Problem::TooBig => {
            let diagnostic = report(format!("`{text}` does not fit in 64 bits"), "too big")
                .with_note("The largest number is 18446744073709551615, 2 to the power of 64 less 1.");
            mend(lexer, diagnostic, Token::Int(u64::MAX))
        }
        Problem::Suffix { number, suffix } => {
            let help = suffix_advice(number, suffix);
            let diagnostic =
                report(format!("`{text}` is not a number"), "a number, or a name?").with_help(help);
            refuse(lexer, diagnostic)
        }
        Problem::Fraction => {
            let diagnostic = report(format!("`{text}` is not a whole number"), "numbers are whole")
                .with_help("write `1500` for 1.5k; only times have fractions: `1.5s`");
            refuse(lexer, diagnostic)
        }
        Problem::Digits { base } => {
            let diagnostic = report(format!("`{text}` is not a number"), "a digit that is none")
                .with_help(format!("digits here are {base}"));
            mend(lexer, diagnostic, Token::Int(0))
        }
        Problem::Underscore => {
            let diagnostic = report(format!("`_` stands between digits only, not so in `{text}`"), "here")
                .with_help("write it as in `20_003`");
            mend(lexer, diagnostic, Token::Int(0))
        }
    }
}

/// What was probably meant by `number` with `suffix` behind it.
fn suffix_advice(number: &str, suffix: &str) -> String {
    let split = suffix.chars().next().filter(|c| "kMG".contains(*c)).map_or(0, char::len_utf8);
    let (scale, unit) = suffix.split_at(split);
    match suffix {
        "K" => return format!("a thousand is a small `k`: `{number}k`"),
        "m" => {
            return format!(
                "write `{number}M` for a million, `{number}min` for minutes, `{number}ms` for milliseconds"
            );
        }
        "g" => return format!("write `{number}G` for a thousand million"),
        "sec" | "secs" | "second" | "seconds" => return format!("write `{number}s`"),
        "mins" | "minute" | "minutes" => return format!("write `{number}min`"),
        "hour" | "hours" => return format!("write `{number}h`"),
        "day" | "days" => return format!("write `{number}d`"),
        _ => {}
    }
    if matches!(unit, "packets" | "byte" | "bytes" | "kbyte" | "Mbyte" | "bit" | "kbit" | "Mbit" | "Gbit") {
        return format!("put a space before the unit: `{number}{scale} {unit}`");
    }
    "a name begins with a letter or `_`; a number ends with a digit, `k`, `M`, `G` or a unit of time"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{duration, int};

    #[test]
    fn numbers_as_people_say_them() {
        let cases = [
            ("0", 0),
            ("53", 53),
            ("20_003", 20_003),
            ("0x1f", 31),
            ("0b101", 5),
            ("100k", 100_000),
            ("4M", 4_000_000),
            ("1G", 1_000_000_000),
            ("18446744073709551615", u64::MAX),
            ("0xffff_ffff_ffff_ffff", u64::MAX),
        ];
        for (text, value) in cases {
            assert_eq!(int(text).ok(), Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_number() {
        for text in [
            "010",
            "00",
            "1_",
            "1__0",
            "0x",
            "0xg",
            "0b2",
            "18446744073709551616",
            "18446744073709552k",
            "5K",
            "1.5",
            "9lives",
        ] {
            assert!(int(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_in_nanoseconds() {
        assert_eq!(duration("60s"), Some(Ok(60_000_000_000)));
        assert_eq!(duration("1.5h"), Some(Ok(5_400_000_000_000)));
        assert_eq!(duration("0.001s"), Some(Ok(1_000_000)));
        assert_eq!(duration("7ns"), Some(Ok(7)));
        assert_eq!(duration("300000d"), Some(Err(())));
        assert_eq!(duration("5m"), None);
        assert_eq!(duration("05s"), None);
    }
}
