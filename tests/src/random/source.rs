//! A program as it is drawn: a tree that can be written out, and made smaller.

use std::fmt;

/// The name of the program, and of no header, chain or anything else.
pub(super) const NAME: &str = "random";

/// A file with one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// Declarations, one each: headers, sets, constants, definitions, counters.
    pub(super) declarations: Vec<String>,
    /// Chains; one applies only those before it.
    pub(super) chains: Vec<(String, Vec<Stmt>)>,
    /// Whether rules count.
    pub(super) counters: bool,
    /// The actions of `default`.
    pub(super) default: String,
    /// The program's statements.
    pub(super) body: Vec<Stmt>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stmt {
    Rule { label: Option<String>, condition: Condition, actions: String },
    When { condition: Condition, body: Vec<Stmt> },
    Apply(String),
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Atom(String),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for declaration in &self.declarations {
            writeln!(f, "{declaration}")?;
        }
        for (name, body) in &self.chains {
            writeln!(f, "chain {name} {{")?;
            statements(f, body, 1)?;
            writeln!(f, "}}")?;
        }
        writeln!(f, "xdp {NAME} {{\n    default {};", self.default)?;
        if !self.counters {
            writeln!(f, "    counters off;")?;
        }
        statements(f, &self.body, 1)?;
        writeln!(f, "}}")
    }
}

fn statements(f: &mut fmt::Formatter<'_>, body: &[Stmt], depth: usize) -> fmt::Result {
    let indent = "    ".repeat(depth);
    for stmt in body {
        match stmt {
            Stmt::Rule { label, condition, actions } => {
                let label = label.as_ref().map_or(String::new(), |label| format!(" {label}"));
                writeln!(f, "{indent}rule{label}: {condition} => {actions};")?;
            }
            Stmt::When { condition, body } => {
                writeln!(f, "{indent}when {condition} {{")?;
                statements(f, body, depth + 1)?;
                writeln!(f, "{indent}}}")?;
            }
            Stmt::Apply(chain) => writeln!(f, "{indent}apply {chain};")?,
        }
    }
    Ok(())
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Condition], word: &str| {
            for (at, part) in parts.iter().enumerate() {
                let before = if at == 0 { "" } else { word };
                match part {
                    Condition::All(_) | Condition::Any(_) => write!(f, "{before}({part})")?,
                    Condition::Atom(_) | Condition::Not(_) => write!(f, "{before}{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Condition::Atom(text) => f.write_str(text),
            Condition::Not(inner) => match &**inner {
                Condition::Atom(text) if is_path(text) => write!(f, "not {text}"),
                inner => write!(f, "not ({inner})"),
            },
            Condition::All(parts) => joined(f, parts, " and "),
            Condition::Any(parts) => joined(f, parts, " or "),
        }
    }
}

/// Whether `not` may stand before it without parentheses.
fn is_path(text: &str) -> bool {
    let is_constant = text == "true" || text == "false";
    !is_constant && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.[]".contains(letter))
}

impl Condition {
    /// The conditions that are one step simpler.
    fn simpler(&self) -> Vec<Condition> {
        match self {
            Condition::Atom(_) => Vec::new(),
            Condition::Not(inner) => {
                let inside = inner.simpler().into_iter().map(|inner| Condition::Not(Box::new(inner)));
                std::iter::once((**inner).clone()).chain(inside).collect()
            }
            Condition::All(parts) => simpler_list(parts, Condition::All),
            Condition::Any(parts) => simpler_list(parts, Condition::Any),
        }
    }
}

fn simpler_list(parts: &[Condition], joined: fn(Vec<Condition>) -> Condition) -> Vec<Condition> {
    let mut found: Vec<Condition> = parts.to_vec();
    for at in 0..parts.len() {
        if parts.len() > 2 {
            let mut fewer = parts.to_vec();
            fewer.remove(at);
            found.push(joined(fewer));
        }
        found.extend(parts[at].simpler().into_iter().map(|part| {
            let mut others = parts.to_vec();
            others[at] = part;
            joined(others)
        }));
    }
    found
}

impl Source {
    /// How many statements it has, those inside others too.
    pub(super) fn statements(&self) -> usize {
        self.bodies().map(|body| count(body)).sum()
    }

    fn bodies(&self) -> impl Iterator<Item = &Vec<Stmt>> {
        self.chains.iter().map(|(_, body)| body).chain(std::iter::once(&self.body))
    }

    /// The program without `count` statements from the `first` on, in the order of the text.
    pub(super) fn without(&self, first: usize, count: usize) -> Source {
        let mut smaller = self.clone();
        let mut at = 0;
        for (_, body) in &mut smaller.chains {
            remove(body, first..first + count, &mut at);
        }
        remove(&mut smaller.body, first..first + count, &mut at);
        smaller
    }

    /// The program without one of its declarations or chains.
    pub(super) fn with_fewer_declarations(&self) -> Vec<Source> {
        let declarations = (0..self.declarations.len()).map(|at| {
            let mut smaller = self.clone();
            smaller.declarations.remove(at);
            smaller
        });
        let chains = (0..self.chains.len()).map(|at| {
            let mut smaller = self.clone();
            smaller.chains.remove(at);
            smaller
        });
        declarations.chain(chains).collect()
    }

    /// The programs in which one statement is simpler.
    pub(super) fn with_simpler_statement(&self) -> Vec<Source> {
        let in_chains = self.chains.iter().enumerate().flat_map(|(at, (_, body))| {
            simpler_bodies(body).into_iter().map(move |body| {
                let mut simpler = self.clone();
                simpler.chains[at].1 = body;
                simpler
            })
        });
        let in_body = simpler_bodies(&self.body).into_iter().map(|body| Source { body, ..self.clone() });
        in_chains.chain(in_body).collect()
    }
}

fn count(body: &[Stmt]) -> usize {
    let inside = |stmt: &Stmt| match stmt {
        Stmt::When { body, .. } => count(body),
        Stmt::Rule { .. } | Stmt::Apply(_) => 0,
    };
    body.iter().map(|stmt| 1 + inside(stmt)).sum()
}

fn remove(body: &mut Vec<Stmt>, range: std::ops::Range<usize>, at: &mut usize) {
    body.retain_mut(|stmt| {
        let is_removed = range.contains(at);
        *at += 1;
        if let Stmt::When { body, .. } = stmt {
            remove(body, range.clone(), at);
        }
        !is_removed
    });
}

/// The bodies in which one statement is one step simpler.
fn simpler_bodies(body: &[Stmt]) -> Vec<Vec<Stmt>> {
    let mut found = Vec::new();
    for (at, stmt) in body.iter().enumerate() {
        let mut with = |simpler: Vec<Stmt>| {
            let mut others = body.to_vec();
            others.splice(at..=at, simpler);
            found.push(others);
        };
        match stmt {
            Stmt::Apply(_) => {}
            Stmt::Rule { label, condition, actions } => {
                for condition in condition.simpler() {
                    with(vec![Stmt::Rule { label: label.clone(), condition, actions: actions.clone() }]);
                }
                if let Some((_, last)) = actions.rsplit_once(", ") {
                    let (label, condition) = (label.clone(), condition.clone());
                    with(vec![Stmt::Rule { label, condition, actions: last.to_owned() }]);
                }
            }
            Stmt::When { condition, body } => {
                with(body.clone());
                for condition in condition.simpler() {
                    with(vec![Stmt::When { condition, body: body.clone() }]);
                }
                for body in simpler_bodies(body) {
                    with(vec![Stmt::When { condition: condition.clone(), body }]);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atom(text: &str) -> Condition {
        Condition::Atom(text.into())
    }

    fn rule(condition: Condition) -> Stmt {
        Stmt::Rule { label: None, condition, actions: "count c, drop".into() }
    }

    fn source(body: Vec<Stmt>) -> Source {
        Source { counters: true, default: "pass".into(), body, ..Source::default() }
    }

    #[test]
    fn conditions_have_the_parentheses_that_the_grammar_wants() {
        let tcp = Condition::All(vec![atom("tcp"), atom("tcp.dport == 22")]);
        let any = Condition::Any(vec![tcp.clone(), Condition::Not(Box::new(atom("vlan[1]")))]);
        assert_eq!(any.to_string(), "(tcp and tcp.dport == 22) or not vlan[1]");
        assert_eq!(Condition::Not(Box::new(tcp)).to_string(), "not (tcp and tcp.dport == 22)");
        assert_eq!(Condition::Not(Box::new(atom("d0(tcp.dport)"))).to_string(), "not (d0(tcp.dport))");
    }

    #[test]
    fn statements_are_counted_and_removed_in_the_order_of_the_text() {
        let when = Stmt::When { condition: atom("ip"), body: vec![rule(atom("tcp")), rule(atom("udp"))] };
        let whole = source(vec![rule(atom("arp")), when, rule(atom("icmp"))]);
        assert_eq!(whole.statements(), 5);
        assert!(!whole.without(2, 1).to_string().contains("tcp"));
        assert!(whole.without(2, 1).to_string().contains("udp"));
        assert_eq!(whole.without(1, 4).to_string(), source(vec![rule(atom("arp"))]).to_string());
    }

    #[test]
    fn simpler_programs_differ_in_one_place() {
        let two = Condition::All(vec![atom("tcp"), atom("udp")]);
        let simpler: Vec<_> =
            source(vec![rule(two)]).with_simpler_statement().iter().map(ToString::to_string).collect();
        let expected = [("tcp", "count c, drop"), ("udp", "count c, drop"), ("tcp and udp", "drop")];
        let text = |(condition, actions)| {
            format!("xdp random {{\n    default pass;\n    rule: {condition} => {actions};\n}}\n")
        };
        assert_eq!(simpler, expected.map(text));
    }
}
