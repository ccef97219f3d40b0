//! What the language has, and how often random programs use it.

use std::collections::BTreeMap;

use pktc_semantics::typed::{
    Action, ActionKind, Element, Expr, ExprKind, Index, Malformed, PacketField, Program, Set, Stmt, Type,
};

/// Constructs and their occurrences.
pub(super) type Census = BTreeMap<&'static str, usize>;

/// All constructs that are counted: none may be missing from a full run.
pub(super) const CONSTRUCTS: [&str; 71] = [
    "!=",
    "&",
    "*",
    "+",
    "-",
    "<",
    "<<",
    "<=",
    "==",
    ">",
    ">=",
    ">>",
    "^",
    "|",
    "[any]",
    "[last]",
    "[n]",
    "abort",
    "address range",
    "address value",
    "apply",
    "apply action",
    "bind",
    "byte range",
    "byte value",
    "chain",
    "const",
    "count",
    "counters off",
    "def",
    "def with parameters",
    "default (value)",
    "drop",
    "field",
    "field with when",
    "flag",
    "header",
    "in",
    "in a prefix",
    "labelled rule",
    "literal set",
    "mac range",
    "mac value",
    "malformed",
    "mixed families",
    "named set",
    "nested chain",
    "not",
    "not in",
    "number range",
    "number value",
    "of header malformed",
    "of union malformed",
    "or",
    "and",
    "pass",
    "payload.len",
    "payload slice",
    "payload slice as number",
    "pkt.ifindex",
    "pkt.len",
    "pkt.queue",
    "presence",
    "return",
    "truncated",
    "tx",
    "union field",
    "union presence",
    "unlabelled rule",
    "when",
    "two packet values",
];

/// Counts the constructs of a program: most in its typed form, what that no longer shows in its text.
pub(super) fn count(program: &Program, text: &str, census: &mut Census) {
    let mut counter = Counter { program, census };
    for xdp in program.xdps.values() {
        if !xdp.counters {
            counter.add("counters off");
        }
        counter.actions(&xdp.default);
        counter.body(&xdp.body, false);
    }
    for chain in program.chains.values() {
        counter.add("chain");
        counter.body(&chain.body, true);
    }
    for line in text.lines() {
        counter.line(line);
    }
}

struct Counter<'a> {
    program: &'a Program,
    census: &'a mut Census,
}

impl Counter<'_> {
    fn add(&mut self, construct: &'static str) {
        *self.census.entry(construct).or_default() += 1;
    }

    fn line(&mut self, line: &str) {
        let starts: [(&str, &'static str); 4] =
            [("const ", "const"), ("def ", "def"), ("header ", "header"), ("bind ", "bind")];
        for (start, construct) in starts {
            if line.starts_with(start) {
                self.add(construct);
            }
        }
        if line.starts_with("def ") && line.split(" = ").next().is_some_and(|head| head.contains('(')) {
            self.add("def with parameters");
        }
        if line.contains("[any]") {
            self.add("[any]");
        }
        if line.contains('/') && line.contains(" in ") && !line.contains(" in {") {
            self.add("in a prefix");
        }
    }

    fn body(&mut self, body: &[Stmt], in_chain: bool) {
        for stmt in body {
            match stmt {
                Stmt::Rule(rule) => {
                    self.add(if rule.label.is_some() { "labelled rule" } else { "unlabelled rule" });
                    self.expr(&rule.condition);
                    self.actions(&rule.actions);
                }
                Stmt::When { condition, body } => {
                    self.add("when");
                    self.expr(condition);
                    self.body(body, in_chain);
                }
                Stmt::Apply { .. } => self.add(if in_chain { "nested chain" } else { "apply" }),
            }
        }
    }

    fn actions(&mut self, actions: &[Action]) {
        for action in actions {
            self.add(match action.kind {
                ActionKind::Verdict(verdict) => verdict.word(),
                ActionKind::Return => "return",
                ActionKind::Count(_) => "count",
                ActionKind::Apply(_) => "apply action",
            });
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if let Some(construct) = construct(expr) {
            self.add(construct);
        }
        match &expr.kind {
            ExprKind::Field { instance, field } => {
                self.index(instance.index);
                if self.program.headers[instance.header].fields[*field].when.is_some() {
                    self.add("field with when");
                }
            }
            ExprKind::UnionField { instance, .. } | ExprKind::UnionPresent(instance) => {
                self.index(instance.index);
            }
            ExprKind::Present(instance) => self.index(instance.index),
            ExprKind::In { value, set, .. } => {
                self.set(&self.program.sets[*set]);
                self.expr(value);
            }
            ExprKind::Not(inner) => self.expr(inner),
            ExprKind::And(parts) | ExprKind::Or(parts) | ExprKind::Tuple(parts) => {
                parts.iter().for_each(|part| self.expr(part));
            }
            ExprKind::Compare { left, right, .. }
            | ExprKind::Binary { left, right, .. }
            | ExprKind::Default { value: left, otherwise: right } => {
                if matches!(expr.kind, ExprKind::Compare { .. }) {
                    self.sides(left, right);
                }
                self.expr(left);
                self.expr(right);
            }
            _ => {}
        }
    }

    /// What the sides of a comparison tell.
    fn sides(&mut self, left: &Expr, right: &Expr) {
        let is_constant = |side: &Expr| matches!(side.kind, ExprKind::Const(_));
        if !is_constant(left) && !is_constant(right) {
            self.add("two packet values");
        }
        if left.ty == (Type::Uint { bits: 1 }) {
            self.add("flag");
        }
    }

    fn index(&mut self, index: Index) {
        match index {
            Index::At(0) => {}
            Index::At(_) => self.add("[n]"),
            Index::Last => self.add("[last]"),
        }
    }

    fn set(&mut self, set: &Set) {
        self.add(if set.name.is_some() { "named set" } else { "literal set" });
        let mut families = (false, false);
        for element in &set.elements {
            let construct = match element {
                Element::Uint { low, high } => one("number value", "number range", low == high),
                Element::Mac { low, high } => one("mac value", "mac range", low == high),
                Element::Ipv4 { low, high } => one("address value", "address range", low == high),
                Element::Ipv6 { low, high } => one("address value", "address range", low == high),
                Element::Bytes { low, high } => one("byte value", "byte range", low == high),
                Element::Tuple(_) => continue,
            };
            families.0 |= matches!(element, Element::Ipv4 { .. });
            families.1 |= matches!(element, Element::Ipv6 { .. });
            self.add(construct);
        }
        if families == (true, true) {
            self.add("mixed families");
        }
    }
}

fn one(value: &'static str, range: &'static str, is_one: bool) -> &'static str {
    if is_one { value } else { range }
}

/// The construct that an expression is; none for constants, and for what only declarations have.
fn construct(expr: &Expr) -> Option<&'static str> {
    Some(match &expr.kind {
        ExprKind::Const(_) | ExprKind::Own(_) | ExprKind::OwnPayload { .. } | ExprKind::Tuple(_) => {
            return None;
        }
        // For a later version.
        ExprKind::Payload(_)
        | ExprKind::Option { .. }
        | ExprKind::OptionsMalformed(_)
        | ExprKind::Bytes { .. } => return None,
        ExprKind::Field { .. } => "field",
        ExprKind::UnionField { .. } => "union field",
        ExprKind::Present(_) => "presence",
        ExprKind::UnionPresent(_) => "union presence",
        ExprKind::Malformed(Malformed::Packet(_)) => "malformed",
        ExprKind::Malformed(Malformed::Header(_)) => "of header malformed",
        ExprKind::Malformed(Malformed::Union { .. }) => "of union malformed",
        ExprKind::Truncated(_) => "truncated",
        ExprKind::Packet(PacketField::Length) => "pkt.len",
        ExprKind::Packet(PacketField::Ifindex) => "pkt.ifindex",
        ExprKind::Packet(PacketField::Queue) => "pkt.queue",
        ExprKind::PayloadLength(_) => "payload.len",
        ExprKind::PayloadSlice { .. } if expr.ty == Type::Bytes => "payload slice",
        ExprKind::PayloadSlice { .. } => "payload slice as number",
        ExprKind::Not(_) => "not",
        ExprKind::And(_) => "and",
        ExprKind::Or(_) => "or",
        ExprKind::In { negated: false, .. } => "in",
        ExprKind::In { negated: true, .. } => "not in",
        ExprKind::Default { .. } => "default (value)",
        ExprKind::Compare { op, .. } => op.symbol(),
        ExprKind::Binary { op, .. } => op.symbol(),
    })
}
