//! What people write who know other languages, what they meant, and how each construct reads.

use crate::builder::Builder;
use crate::mistake::Mistake;
use crate::token::{Keyword, Token};

/// How a declaration reads; noun and shape, by its first word.
const DECLARATIONS: &[(Keyword, &str, &str)] = &[
    (Keyword::Use, "this `use`", "use \"lib/names.pkt\";"),
    (Keyword::Const, "this constant", "const NAME = VALUE;"),
    (Keyword::Def, "this definition", "def NAME = EXPRESSION;"),
    (Keyword::Enum, "this enum", "enum NAME: u8 { one = 1, two = 2 }"),
    (Keyword::Header, "this header", "header NAME { field: u16; … }"),
    (Keyword::Union, "this union", "union NAME = a | b { field; … }"),
    (Keyword::Bind, "this `bind`", "bind udp.dport 4789 => vxlan;"),
    (Keyword::Set, "this set", "set NAME = { 192.0.2.1, 198.51.100.0/24 };"),
    (Keyword::Map, "this map", "map NAME: ip_prefix -> u16 = { 192.0.2.0/24 => 1 };"),
    (Keyword::Live, "this declaration", "live set NAME: ip_prefix max 100k;"),
    (Keyword::Counter, "this counter", "counter NAME;"),
    (Keyword::Meter, "this meter", "meter NAME: 10k packets/s burst 20k by ip.src max 1M;"),
    (Keyword::Chain, "this chain", "chain NAME { … }"),
    (Keyword::Xdp, "this program", "xdp NAME { default pass; … }"),
    (Keyword::Test, "this test", "test \"what it shows\" { send …; expect …; }"),
];

/// How a statement of a program or a test reads, by its first word.
const STATEMENTS: &[(Keyword, &str, &str)] = &[
    (Keyword::Rule, "this rule", "rule LABEL: CONDITION => ACTIONS;"),
    (Keyword::When, "this `when`", "when CONDITION { … }"),
    (Keyword::Apply, "this `apply`", "apply CHAIN;"),
    (Keyword::Default, "this `default`", "default pass;"),
    (Keyword::Priority, "this `priority`", "priority 10;"),
    (Keyword::Chain, "this `chain on`", "chain on pass;"),
    (Keyword::Counters, "this `counters`", "counters off;"),
    (Keyword::On, "this `on`", "on drop => count NAME;"),
    (Keyword::At, "this step", "at 2s send …;"),
    (Keyword::Repeat, "this step", "repeat 100 every 10ms send …;"),
    (Keyword::Send, "this `send`", "send eth / ipv4(src: 192.0.2.1) / udp(dport: 53);"),
    (Keyword::Expect, "this `expect`", "expect drop by LABEL;"),
    (Keyword::Check, "this `check`", "check CONDITION;"),
    (Keyword::Add, "this step", "add KEY to SET;"),
    (Keyword::Remove, "this step", "remove KEY from SET;"),
    (Keyword::Set, "this step", "set MAP[KEY] = VALUE;"),
    (Keyword::Replay, "this `replay`", "replay \"capture.pcap\" snapshot;"),
];

/// What the statement or declaration with the mistake is, and how such a one reads.
pub(crate) fn construct(builder: &Builder, mistake: &Mistake) -> (String, Option<&'static str>) {
    let statement = mistake.statement();
    let head = mistake.tokens.get(statement).map(|token| &token.1);
    let find = |rows: &[(Keyword, &'static str, &'static str)]| match head {
        Some(Token::Keyword(keyword)) => {
            rows.iter().find(|row| row.0 == *keyword).map(|row| (row.1.to_owned(), Some(row.2)))
        }
        _ => None,
    };
    if statement == 0 {
        return find(DECLARATIONS).unwrap_or(("this declaration".to_owned(), None));
    }
    match mistake.tokens[0].1 {
        Token::Keyword(Keyword::Header) => header_item(builder, mistake, statement),
        Token::Keyword(Keyword::Union) => ("this field".to_owned(), Some("field = a.x | b.y;")),
        _ => find(STATEMENTS).unwrap_or(("this statement".to_owned(), None)),
    }
}

/// How a part of a header reads, by its first word.
const PARTS: &[(Keyword, &str)] = &[
    (Keyword::Length, "length ihl * 4;"),
    (Keyword::Claims, "claims len;"),
    (Keyword::Valid, "valid version == 4;"),
    (Keyword::Needs, "needs 4;"),
    (Keyword::Repeats, "repeats 4;"),
    (Keyword::View, "view NAME: u8 = first_field..last_field;"),
    (Keyword::Options, "options by kind { kind: u8; len: u8; length len; 2 => mss { mss: u16; } }"),
    (Keyword::Next, "next by type { 6 => tcp, 17 => udp }"),
    (Keyword::End, "end 0;"),
    (Keyword::Pad, "pad 1 => nop;"),
];

/// How an action with operands reads, by its first word.
const ACTIONS: &[(Keyword, &str)] = &[
    (Keyword::Redirect, "redirect \"eth1\""),
    (Keyword::To, "to cpu 4` or `to xsk"),
    (Keyword::Count, "count NAME"),
    (Keyword::Limit, "limit METER else drop"),
    (Keyword::Apply, "apply CHAIN"),
    (Keyword::Add, "add ip.src to SET for 60s"),
    (Keyword::Remove, "remove ip.src from SET"),
    (Keyword::Set, "set tcp.dport = 8080"),
    (Keyword::Swap, "swap ip.src with ip.dst"),
    (Keyword::Push, "push vlan(vid: 10)"),
    (Keyword::Pop, "pop vlan"),
    (Keyword::Mark, "mark 5"),
    (Keyword::Sample, "sample 1/100 first 96 bytes"),
];

/// How the action reads that the mistake stands in.
pub(crate) fn action_shape(mistake: &Mistake) -> Option<&'static str> {
    let action = mistake.action()?;
    ACTIONS.iter().find(|row| row.0 == action).map(|row| row.1)
}

fn header_item(builder: &Builder, mistake: &Mistake, statement: usize) -> (String, Option<&'static str>) {
    let head = mistake.tokens.get(statement);
    let is_field = mistake.tokens.get(statement + 1).is_some_and(|next| next.1 == Token::Colon);
    match head {
        Some((start, Token::Keyword(keyword), end)) if !is_field => {
            let shape = PARTS.iter().find(|row| row.0 == *keyword).map(|row| row.1);
            (format!("this `{}`", builder.text(builder.span(*start, *end))), shape)
        }
        Some((_, Token::Int(_), _)) => ("this option".to_owned(), Some("2 => mss { mss: u16; }")),
        _ => ("this field".to_owned(), Some("field: u16;")),
    }
}

/// What may begin a statement where the mistake stands.
pub(crate) fn starters(mistake: &Mistake) -> &'static str {
    match mistake.tokens[0].1 {
        Token::Keyword(Keyword::Xdp) if mistake.expected.has("default") => {
            "`rule`, `when`, `apply`, `default`, `on`, `priority`, `chain on` and `counters off`"
        }
        Token::Keyword(Keyword::Xdp | Keyword::Chain) => "`rule`, `when` and `apply`",
        Token::Keyword(Keyword::Test) => {
            "`send`, `expect`, `check`, `add`, `remove`, `set`, `replay`, `at` and `repeat`"
        }
        Token::Keyword(Keyword::Header) if mistake.expected.has("claims") => {
            "fields (`name: u16;`) and `length`, `claims`, `valid`, `needs`, `repeats`, `view`, `options`, `next`"
        }
        Token::Keyword(Keyword::Header) => {
            "fields (`name: u16;`) and, in an option list, `length`, `end`, `pad` and `2 => name { … }`"
        }
        _ => "fields: `name;` or `name = a.x | b.y;`",
    }
}

/// What `written` probably means where an action stands.
fn action_meant(written: &str) -> Option<&'static str> {
    Some(match written {
        "accept" | "allow" | "permit" | "continue" | "ok" | "XDP_PASS" => "pass",
        "deny" | "block" | "reject" | "discard" | "XDP_DROP" => "drop",
        "XDP_TX" | "reflect" | "bounce" => "tx",
        "aborted" | "XDP_ABORTED" => "abort",
        "log" | "trace" => "sample 1/1",
        "counter" | "inc" => "count NAME",
        "jump" | "goto" | "call" => "apply CHAIN",
        "rate" | "police" => "limit METER else drop",
        _ => return None,
    })
}

/// What `written` probably means where a statement begins.
fn statement_meant(written: &str) -> Option<&'static str> {
    Some(match written {
        "if" => "a block is `when CONDITION { … }`, a single decision `rule LABEL: CONDITION => ACTIONS;`",
        "else" => "there is no `else` block: rules are tried in order, and what is left goes on below",
        "policy" => "what is left over is decided by `default pass;` or `default drop;`",
        "return" | "pass" | "drop" | "tx" | "abort" | "count" | "limit" | "redirect" => {
            "actions belong to rules: `rule LABEL: true => drop;` for every packet"
        }
        _ => return None,
    })
}

/// Advice for this very mistake, if there is better than how the construct reads.
pub(crate) fn advice(builder: &Builder, mistake: &Mistake) -> Option<String> {
    let (start, found, end) = mistake.found()?;
    let text = builder.text(builder.span(*start, *end));
    let expected = &mistake.expected;
    if expected.has("sample") && !expected.any_word() {
        if let Some(meant) = action_meant(text) {
            return Some(format!("write `{meant}`"));
        }
        return nearest(text, ["pass", "drop", "abort", "tx", "return", "count", "apply"])
            .map(|name| format!("did you mean `{name}`?"));
    }
    let operator_expected = expected.has("+") || expected.has("==") || expected.has("and");
    match found {
        Token::EqualEqual
        | Token::NotEqual
        | Token::Less
        | Token::LessEqual
        | Token::Greater
        | Token::GreaterEqual
            if expected.has("and") =>
        {
            Some("comparisons do not chain: write `a < b and b < c`".to_owned())
        }
        Token::DotDot => Some("a range is written with `-`, both ends included: `1-1023`".to_owned()),
        Token::Slash if operator_expected => Some(
            "there is no division (`x >> 2` divides by 4); a prefix is one word: `10.0.0.0/8`".to_owned(),
        ),
        Token::Keyword(Keyword::Else) if expected.has(";") => Some(
            "`else` stands behind an action that can fail: `limit`, `redirect`, `to`, `add`, `set`"
                .to_owned(),
        ),
        Token::Semicolon if expected.has("}") && expected.has(",") => {
            Some("in these braces a `,` parts one from the next".to_owned())
        }
        Token::Minus if !operator_expected => Some("numbers are never negative".to_owned()),
        Token::Keyword(
            Keyword::In | Keyword::And | Keyword::Or | Keyword::True | Keyword::False | Keyword::Not,
        ) if expected.has("WORD") && !expected.has("MAC") => {
            Some(format!("`{text}` is reserved; it can never be a name"))
        }
        Token::Comma if expected.has("/") => {
            Some("layers are parted with `/`: `send eth / ipv4;`".to_owned())
        }
        Token::OpenBrace if expected.has("=>") => {
            Some("a literal set stands behind `in`: `x in { 1, 2 }`".to_owned())
        }
        _ => None,
    }
}

/// Advice about `text`, which begins no statement.
pub(crate) fn starting_advice(mistake: &Mistake, text: &str) -> Option<String> {
    if matches!(text, "and" | "or" | "not" | "in" | "true" | "false") {
        return Some(format!("`{text}` is reserved; it can never be a name"));
    }
    let words: &[&str] = match mistake.tokens[0].1 {
        Token::Keyword(Keyword::Xdp) => &["rule", "when", "apply", "default", "priority", "counters"],
        Token::Keyword(Keyword::Chain) => &["rule", "when", "apply"],
        Token::Keyword(Keyword::Test) => &["send", "expect", "check", "remove", "replay", "repeat"],
        _ => return None,
    };
    if let Some(meant) = statement_meant(text) {
        return Some(meant.to_owned());
    }
    if action_meant(text).is_some() {
        return statement_meant("drop").map(ToOwned::to_owned);
    }
    nearest(text, words.iter().copied()).map(|word| format!("did you mean `{word}`?"))
}

/// What was probably meant by `written`, which begins no declaration.
pub(crate) fn nearest_declaration(written: &str) -> Option<String> {
    let meant = match written {
        "import" | "include" => "use \"lib/names.pkt\";",
        "let" | "var" => "const NAME = VALUE;",
        "fn" | "func" | "function" => "def NAME(p: u16) = EXPRESSION;",
        "table" | "filter" | "program" | "parser" => "xdp NAME { default pass; … }",
        "struct" | "protocol" => "header NAME { field: u16; … }",
        _ => {
            let names =
                ["use", "const", "def", "enum", "header", "union", "bind", "set", "map", "live", "counter"];
            let names = names.into_iter().chain(["meter", "chain", "xdp", "test"]);
            return nearest(written, names).map(|name| format!("did you mean `{name}`?"));
        }
    };
    Some(format!("write `{meant}`"))
}

/// The one of `names` that is `written` with a slip or two.
fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = if written.len() > 4 { 2 } else { 1 };
    let near = names.into_iter().map(|name| (distance(written, name), name)).min();
    near.filter(|&(slips, _)| slips <= allowed).map(|(_, name)| name)
}

/// How many letters must be changed, put in, left out or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let best = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if swapped { best.min(rows[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn slips_are_counted() {
        assert_eq!(distance("rule", "rule"), 0);
        assert_eq!(distance("ruel", "rule"), 1);
        assert_eq!(distance("heder", "header"), 1);
        assert_eq!(nearest("xyz", ["rule", "when"]), None);
        assert_eq!(nearest("ruels", ["rule", "when"]), Some("rule"));
    }
}
