//! What would have fitted, in words that people use.

use std::collections::BTreeSet;

/// The tokens that the grammar could go on with, by its names for them, without quotes.
#[derive(Debug)]
pub(crate) struct Expected {
    names: BTreeSet<String>,
}

/// A group of tokens that is shown as one.
struct Group {
    /// If all these are expected …
    sign: &'static [&'static str],
    /// … all these are meant …
    members: &'static [&'static str],
    /// … and this is said.
    phrase: &'static str,
}

const OPERATORS: &[&str] = &[
    "==", "!=", "<", "<=", ">", ">=", "=", "in", "not", "and", "or", "&&", "||", "&", "|", "^", "<<", ">>",
    "+", "-", "*", "default",
];
const VALUES: &[&str] =
    &["INT", "ADDRESS", "PREFIX", "MAC", "MAC_PREFIX", "STRING", "true", "false", "(", "ERROR", "not", "!"];
const ACTIONS: &[&str] = &[
    "abort", "add", "apply", "count", "drop", "limit", "mark", "pass", "pop", "push", "redirect", "remove",
    "return", "sample", "set", "swap", "to", "tx",
];

const GROUPS: &[Group] = &[
    Group { sign: &["not", "(", "INT", "MAC"], members: VALUES, phrase: "an expression" },
    Group { sign: &["(", "INT", "MAC"], members: VALUES, phrase: "a value" },
    Group { sign: &["INT", "MAC"], members: VALUES, phrase: "a value" },
    Group { sign: &["==", "in"], members: OPERATORS, phrase: "an operator" },
    Group { sign: &["+", "*"], members: OPERATORS, phrase: "an operator" },
    Group { sign: &["sample", "count"], members: ACTIONS, phrase: "an action" },
    Group { sign: &["pass", "tx", "redirect"], members: ACTIONS, phrase: "a verdict" },
    Group { sign: &["pass", "tx", "return"], members: ACTIONS, phrase: "a verdict, `return`" },
    Group { sign: &["INT"], members: &["INT"], phrase: "a number" },
    Group { sign: &["DURATION"], members: &["DURATION"], phrase: "a time such as `60s`" },
    Group { sign: &["STRING"], members: &["STRING"], phrase: "a text in quotes" },
];

/// Tokens that are never worth a mention where anything else is.
const UNMENTIONED: &[&str] = &["BAD", "ERROR", ".", "[", "&&", "||", "!"];

/// In which order single tokens are named: what ends something first.
const ORDER: &[&str] = &[";", "=>", ",", ":", "=", ")", "]", "}", "{", "->", "/", "|", "(", ".."];

/// More are not shown: nobody reads them.
const SHOWN: usize = 4;

impl Expected {
    /// From the grammar's names; keywords and symbols stand in quotes there.
    pub(crate) fn new(names: Vec<String>) -> Self {
        Expected { names: names.into_iter().map(|name| name.trim_matches('"').to_owned()).collect() }
    }

    /// Whether the token `name` would fit.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether nothing but the token `name` would fit.
    pub(crate) fn is_only(&self, name: &str) -> bool {
        self.names.len() == 1 && self.has(name)
    }

    /// Whether a name is expected that may not be a keyword.
    pub(crate) fn only_a_name(&self) -> bool {
        let beside = ["WORD", "INT", "bytes", "(", "inner", "quoted"];
        self.has("WORD") && self.names.iter().all(|name| beside.contains(&name.as_str()))
    }

    /// Whether any word would fit, a keyword too.
    pub(crate) fn any_word(&self) -> bool {
        self.has("WORD") && self.has("xsk") && self.has("lru")
    }

    /// `a name, a value or `;``; empty if nothing would fit. `hidden` is not worth a mention.
    pub(crate) fn phrase(&self, hidden: Option<&str>) -> String {
        let mut left = self.names.clone();
        left.retain(|name| hidden != Some(name.as_str()));
        let mut phrases = Vec::new();
        if self.any_word() {
            left.retain(|name| !name.starts_with(|c: char| c.is_ascii_lowercase()) || !is_soft(name));
        }
        let valued = self.has("MAC");
        if left.remove("WORD") && !valued {
            phrases.push("a name".to_owned());
        }
        for group in GROUPS {
            if group.sign.iter().all(|sign| left.contains(*sign)) {
                left.retain(|name| !group.members.contains(&name.as_str()));
                phrases.push(group.phrase.to_owned());
            }
        }
        if self.has(".") && self.has("[") {
            left.remove("(");
        }
        if left.iter().any(|name| !UNMENTIONED.contains(&name.as_str())) || !phrases.is_empty() {
            left.retain(|name| !UNMENTIONED.contains(&name.as_str()));
        }
        let mut single: Vec<&String> = left.iter().collect();
        single.sort_by_key(|name| ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len()));
        phrases.extend(single.into_iter().map(|name| format!("`{name}`")));
        join(&phrases)
    }
}

fn is_soft(name: &str) -> bool {
    !matches!(name, "and" | "or" | "not" | "in" | "true" | "false")
}

fn join(phrases: &[String]) -> String {
    match phrases {
        [] => String::new(),
        [one] => one.clone(),
        many if many.len() > SHOWN => format!("{} …", many[..SHOWN].join(", ")),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}
