//! Which operands are certain to have a value, and whether `!=` and `not in` stand on such only.
//!
//! `ip.src not in s` is false for ARP, which has no `ip.src`: read aloud, it would be expected to be true. So such
//! an atom compiles only where the rest of the condition makes its operands certain, and then it means exactly
//! `not (ip.src in s)`. What a condition makes certain when it is true:
//!
//! * a header's name: itself, its parents, its unions, and their fields without `when`;
//! * a comparison or `in`: its operands, and their headers or unions; from `!=` and `not in` nothing follows,
//!   because they stand on the same ground themselves;
//! * `a and b`: both; `a or b`: what they have in common; `not not x`: what x does; else nothing.

use std::collections::{BTreeMap, BTreeSet};

use pktc_diagnostics::{Diagnostic, Span, codes};

use crate::checker::Checker;
use crate::compare::mirrored;
use crate::dump::scope_text;
use crate::graph::{Graph, Implied, mention};
use crate::structure::{same, walk};
use crate::typed::{
    BinaryOp, BytesAsk, BytesOf, CompareOp, Element, Expr, ExprKind, Index, Instance, OptionAsk, OptionRef,
    Program, Scope, UnionFieldKind, UnionInstance, Value,
};

/// What is certain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    headers: BTreeSet<Instance>,
    unions: BTreeSet<UnionInstance>,
    union_fields: BTreeSet<(UnionInstance, usize)>,
    /// So many bytes of a payload or of other bytes, at least.
    bytes: BTreeMap<Source, u64>,
    /// Operands that a comparison needed.
    values: Vec<Expr>,
}

/// Bytes that slices are taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Payload(Instance),
    Bytes(BytesOf),
}

/// The program and its parse graph, for questions about certainty.
#[derive(Clone, Copy)]
pub(crate) struct Certainty<'a> {
    program: &'a Program,
    graph: &'a Graph,
    /// Whether instances are relative to a tunnel's or a quoted packet.
    is_nested: bool,
}

impl Facts {
    /// Both.
    pub(crate) fn and(mut self, other: &Facts) -> Facts {
        self.headers.extend(&other.headers);
        self.unions.extend(&other.unions);
        self.union_fields.extend(&other.union_fields);
        for (&source, &bytes) in &other.bytes {
            let known = self.bytes.entry(source).or_default();
            *known = (*known).max(bytes);
        }
        self.values.extend(other.values.iter().cloned());
        self
    }

    fn or(mut self, other: &Facts) -> Facts {
        self.headers.retain(|it| other.headers.contains(it));
        self.unions.retain(|it| other.unions.contains(it));
        self.union_fields.retain(|it| other.union_fields.contains(it));
        self.bytes.retain(|it, _| other.bytes.contains_key(it));
        for (source, bytes) in &mut self.bytes {
            *bytes = (*bytes).min(other.bytes[source]);
        }
        self.values.retain(|it| other.values.iter().any(|known| same(it, known)));
        self
    }

    fn implied(mut self, implied: &Implied, scope: Scope) -> Facts {
        for &header in &implied.headers {
            self.headers.insert(Instance { scope, header, index: Index::At(0) });
        }
        for &union in &implied.unions {
            self.unions.insert(UnionInstance { scope, union, index: Index::At(0) });
        }
        for &(union, field) in &implied.fields {
            self.union_fields.insert((UnionInstance { scope, union, index: Index::At(0) }, field));
        }
        self
    }

    fn has_header(&self, instance: Instance) -> bool {
        self.headers.contains(&outermost_for_last(instance))
    }

    fn has_union(&self, instance: UnionInstance) -> bool {
        let index = if instance.index == Index::Last { Index::At(0) } else { instance.index };
        self.unions.contains(&UnionInstance { index, ..instance })
    }
}

/// Where there is an innermost, there is an outermost, and the other way round.
fn outermost_for_last(instance: Instance) -> Instance {
    let index = if instance.index == Index::Last { Index::At(0) } else { instance.index };
    Instance { index, ..instance }
}

impl<'a> Certainty<'a> {
    pub(crate) fn new(program: &'a Program, graph: &'a Graph) -> Self {
        Certainty { program, graph, is_nested: false }
    }

    /// What is certain where `condition` is true.
    pub(crate) fn when_true(self, condition: &Expr) -> Facts {
        match &condition.kind {
            ExprKind::Present(instance) => self.header(*instance),
            ExprKind::UnionPresent(instance) => self.union(*instance),
            ExprKind::Truncated(instance) | ExprKind::OptionsMalformed(instance) => self.header(*instance),
            ExprKind::Option { option, ask: OptionAsk::Present } => {
                let kind = ExprKind::Option { option: *option, ask: OptionAsk::Length };
                self.operand(&Expr { kind, ..condition.clone() })
            }
            ExprKind::UnionField { .. } => self.operand(condition),
            ExprKind::And(parts) => {
                parts.iter().fold(Facts::default(), |facts, part| facts.and(&self.when_true(part)))
            }
            ExprKind::Or(parts) => {
                let mut parts = parts.iter().map(|part| self.when_true(part));
                let first = parts.next().unwrap_or_default();
                parts.fold(first, |facts, part| facts.or(&part))
            }
            ExprKind::Not(inner) => match &inner.kind {
                ExprKind::Not(inner) => self.when_true(inner),
                _ => Facts::default(),
            },
            ExprKind::Compare { op: CompareOp::NotEqual, .. } | ExprKind::In { negated: true, .. } => {
                Facts::default()
            }
            ExprKind::Compare { op, left, right } => {
                let facts = self.operand(left).and(&self.operand(right));
                let facts = at_least(facts, left, *op, right);
                at_least(facts, right, mirrored(*op), left)
            }
            ExprKind::In { value, set, .. } => {
                let facts = self.operand(value);
                let lowest = self.program.sets[*set].elements.iter().map(|element| match element {
                    Element::Uint { low, .. } => *low,
                    _ => 0,
                });
                with_length(facts, value, lowest.min().unwrap_or(0))
            }
            _ => Facts::default(),
        }
    }

    /// What is certain in all packets around `scope` where something is present in it.
    fn around(self, scope: Scope) -> Facts {
        let outwards = std::iter::successors(scope.around(), |(outer, _)| outer.around());
        outwards.fold(Facts::default(), |facts, (outer, kind)| {
            facts.implied(&self.graph.of_opener(kind, self.is_nested(outer)), outer)
        })
    }

    fn is_nested(self, scope: Scope) -> bool {
        self.is_nested || scope != Scope::default()
    }

    fn header(self, instance: Instance) -> Facts {
        let scope = instance.scope;
        let implied = self.graph.of_header(instance.header, self.is_nested(scope));
        let mut facts = self.around(scope).implied(&implied, scope);
        if let Index::At(last) = instance.index {
            facts.headers.extend((0..=last).map(|at| Instance { index: Index::At(at), ..instance }));
        }
        facts.headers.insert(outermost_for_last(instance));
        facts
    }

    fn union(self, instance: UnionInstance) -> Facts {
        let scope = instance.scope;
        let implied = self.graph.of_union(self.program, instance.union, self.is_nested(scope));
        let mut facts = self.around(scope).implied(&implied, scope);
        if let Index::At(last) = instance.index {
            facts.unions.extend((0..=last).map(|at| UnionInstance { index: Index::At(at), ..instance }));
        }
        facts
    }

    /// What is certain where an operand has a value.
    fn operand(self, operand: &Expr) -> Facts {
        let mut facts = match &operand.kind {
            ExprKind::Field { instance, .. }
            | ExprKind::PayloadLength(instance)
            | ExprKind::Payload(instance)
            | ExprKind::PayloadSlice { instance, .. }
            | ExprKind::Option { option: OptionRef { instance, .. }, .. }
            | ExprKind::Bytes { of: BytesOf::Field { instance, .. } | BytesOf::Options(instance), .. } => {
                self.header(*instance)
            }
            ExprKind::UnionField { instance, .. }
            | ExprKind::Bytes { of: BytesOf::UnionPayload(instance), .. } => self.union(*instance),
            ExprKind::Binary { left, right, .. } => self.operand(left).and(&self.operand(right)),
            ExprKind::Tuple(parts) => {
                parts.iter().fold(Facts::default(), |facts, part| facts.and(&self.operand(part)))
            }
            _ => return Facts::default(),
        };
        if let Some((source, to)) = slice_of(operand) {
            facts.bytes.insert(source, u64::from(to));
        }
        facts.values.push(operand.clone());
        facts
    }

    /// Whether an operand has a value wherever `facts` hold.
    fn has_value(self, operand: &Expr, facts: &Facts) -> bool {
        if facts.values.iter().any(|known| same(known, operand)) {
            return true;
        }
        match &operand.kind {
            ExprKind::Field { instance, field } => {
                facts.has_header(*instance) && self.is_plain(*instance, *field)
            }
            ExprKind::UnionField { instance, field } => {
                facts.union_fields.contains(&(*instance, *field))
                    || (facts.has_union(*instance) && self.is_total(*instance, *field))
            }
            ExprKind::PayloadLength(instance) | ExprKind::Payload(instance) => facts.has_header(*instance),
            ExprKind::PayloadSlice { .. } | ExprKind::Bytes { ask: BytesAsk::Slice { .. }, .. } => {
                slice_of(operand).is_some_and(|(source, to)| {
                    facts.bytes.get(&source).is_some_and(|&bytes| bytes >= u64::from(to))
                })
            }
            ExprKind::Bytes { of: BytesOf::UnionPayload(instance), .. } => facts.has_union(*instance),
            ExprKind::Bytes { of: BytesOf::Field { instance, field }, .. } => {
                facts.has_header(*instance) && self.is_plain(*instance, *field)
            }
            ExprKind::Bytes { of: BytesOf::Options(instance), .. } => {
                let may_be_cut = self.program.needs(instance.header, instance.scope).is_some();
                facts.has_header(*instance) && !may_be_cut
            }
            ExprKind::Option { .. } => false,
            // A difference below zero has no value.
            ExprKind::Binary { op: BinaryOp::Subtract, .. } => false,
            ExprKind::Binary { left, right, .. } => {
                self.has_value(left, facts) && self.has_value(right, facts)
            }
            ExprKind::Default { value, otherwise } => {
                self.has_value(otherwise, facts) || self.has_value(value, facts)
            }
            ExprKind::Tuple(parts) => parts.iter().all(|part| self.has_value(part, facts)),
            _ => true,
        }
    }

    /// Whether a field is there wherever its header is.
    fn is_plain(self, instance: Instance, field: usize) -> bool {
        let field = &self.program.headers[instance.header].fields[field];
        let inside = match (self.program.needs(instance.header, instance.scope), &field.position) {
            (None, _) => true,
            (Some(needs), crate::typed::Position::Start { bits, .. }) => bits + field.bits <= needs * 8,
            (Some(_), crate::typed::Position::End { .. }) => false,
        };
        field.when.is_none() && inside
    }

    /// Whether a union's field has a value whichever member is present.
    fn is_total(self, instance: UnionInstance, field: usize) -> bool {
        let union = &self.program.unions[instance.union];
        let field = &union.fields[field];
        if field.when.is_some() {
            return false;
        }
        match &field.kind {
            UnionFieldKind::Member(sources) => sources.iter().all(|(&header, &it)| {
                self.is_plain(Instance { scope: instance.scope, header, index: Index::At(0) }, it)
            }),
            UnionFieldKind::Alternatives(alternatives) => union.members.iter().all(|&header| {
                // They are relative to the packet of the union.
                let inside = Certainty { is_nested: self.is_nested(instance.scope), ..self };
                let member = Instance { scope: Scope::default(), header, index: Index::At(0) };
                inside.first_has_value(alternatives, &inside.header(member))
            }),
        }
    }

    /// Whether the alternative that is taken where `facts` hold has a value. One that might be taken before the
    /// one that certainly is must have one too, where its headers are there.
    fn first_has_value(self, alternatives: &[Expr], facts: &Facts) -> bool {
        for alternative in alternatives {
            let mut read = BTreeSet::new();
            mention(self.program, alternative, &mut read);
            let instances =
                read.iter().map(|&header| Instance { scope: Scope::default(), header, index: Index::At(0) });
            let taken = instances.clone().all(|instance| facts.has_header(instance));
            let known = instances.fold(facts.clone(), |facts, it| facts.and(&self.header(it)));
            if !self.has_value(alternative, &known) {
                return false;
            }
            if taken {
                return true;
            }
        }
        false
    }
}

/// `h.payload.len >= n` makes n bytes of the payload certain.
fn at_least(facts: Facts, left: &Expr, op: CompareOp, right: &Expr) -> Facts {
    let ExprKind::Const(Value::Uint(value)) = right.kind else { return facts };
    let bytes = match op {
        CompareOp::Equal | CompareOp::GreaterEqual => value,
        CompareOp::Greater => value.saturating_add(1),
        CompareOp::NotEqual | CompareOp::Less | CompareOp::LessEqual => 0,
    };
    with_length(facts, left, bytes)
}

fn with_length(mut facts: Facts, operand: &Expr, bytes: u64) -> Facts {
    let source = match operand.kind {
        ExprKind::PayloadLength(instance) => Some(Source::Payload(instance)),
        ExprKind::Bytes { of, ask: BytesAsk::Length } => Some(Source::Bytes(of)),
        _ => None,
    };
    if let Some(source) = source {
        let known = facts.bytes.entry(source).or_default();
        *known = (*known).max(bytes);
    }
    facts
}

/// What a slice is taken of, and where it ends.
fn slice_of(operand: &Expr) -> Option<(Source, u32)> {
    match operand.kind {
        ExprKind::PayloadSlice { instance, to, .. } => Some((Source::Payload(instance), to)),
        ExprKind::Bytes { of, ask: BytesAsk::Slice { to, .. } } => Some((Source::Bytes(of), to)),
        _ => None,
    }
}

impl Checker<'_> {
    /// What is certain where `condition` is true.
    pub(crate) fn facts(&self, condition: &Expr) -> Facts {
        Certainty::new(&self.program, &self.graph).when_true(condition)
    }

    /// Reports each `!=` and `not in` of a condition whose operands may be missing. `used` is the rule's condition,
    /// to be shown where the atom stands in a definition.
    pub(crate) fn check_certain(&mut self, condition: &Expr, facts: &Facts, used: Span) {
        match &condition.kind {
            ExprKind::And(parts) if is_negated_inside(condition) => {
                let own: Vec<Facts> = parts.iter().map(|part| self.facts(part)).collect();
                for (at, part) in parts.iter().enumerate() {
                    let others = own.iter().enumerate().filter(|&(other, _)| other != at);
                    let known = others.fold(facts.clone(), |facts, (_, other)| facts.and(other));
                    self.check_certain(part, &known, used);
                }
            }
            ExprKind::Or(parts) => parts.iter().for_each(|part| self.check_certain(part, facts, used)),
            ExprKind::Not(inner) => self.check_certain(inner, facts, used),
            ExprKind::Compare { op: CompareOp::NotEqual, left, right } => {
                self.check_atom(condition, &[left, right], facts, used);
            }
            ExprKind::In { value, negated: true, .. } => self.check_atom(condition, &[value], facts, used),
            _ => {}
        }
    }

    fn check_atom(&mut self, atom: &Expr, operands: &[&Expr], facts: &Facts, used: Span) {
        let certainty = Certainty::new(&self.program, &self.graph);
        let Some(missing) = operands.iter().find_map(|operand| uncertain_part(certainty, operand, facts))
        else {
            return;
        };
        let guard = self.guard(missing);
        let missing = missing.clone();
        self.uncertain(atom, &missing, guard, used);
    }

    fn uncertain(&mut self, atom: &Expr, missing: &Expr, guard: Option<String>, used: Span) {
        let name = self.text(missing.span);
        let (text, positive) = (self.text(atom.span), self.positive(atom));
        let word = if matches!(atom.kind, ExprKind::In { .. }) { "not in" } else { "!=" };
        let mut diagnostic = Diagnostic::error(
            codes::UNCERTAIN,
            format!("`{name}` may be missing, so `{word}` can be read two ways"),
            missing.span,
            "not every packet that comes here has this",
        )
        .with_note(format!("for a packet without `{name}`, is `{text}` true?"));
        let is_inside =
            used.file == atom.span.file && used.start <= atom.span.start && atom.span.end <= used.end;
        if !is_inside {
            diagnostic = diagnostic.with_label(used, "used here");
        }
        if let Some(guard) = guard {
            diagnostic = diagnostic.with_help(format!("if not, write `{guard} and {text}`"));
        }
        self.report(diagnostic.with_help(format!("if so, write `not ({positive})`")));
    }

    /// The atom without its negation.
    fn positive(&self, atom: &Expr) -> String {
        match &atom.kind {
            ExprKind::In { value, set, .. } => {
                let text = self.text(atom.span);
                let left = self.text(value.span);
                let set = &self.program.sets[*set];
                let right = match &set.name {
                    Some(name) => name.as_str(),
                    None => text.rsplit_once(" in ").map_or("{ … }", |(_, right)| right.trim()),
                };
                format!("{left} in {right}")
            }
            ExprKind::Compare { left, right, .. } => {
                format!("{} == {}", self.text(left.span), self.text(right.span))
            }
            _ => self.text(atom.span).to_owned(),
        }
    }

    /// A condition that makes `operand` certain.
    fn guard(&self, operand: &Expr) -> Option<String> {
        let certainty = Certainty::new(&self.program, &self.graph);
        let index = |index: Index| match index {
            Index::At(0) => String::new(),
            Index::At(at) => format!("[{at}]"),
            Index::Last => "[last]".into(),
        };
        let header = |instance: &Instance| {
            let name = &self.program.headers[instance.header].name;
            format!("{}{name}{}", scope_text(instance.scope), index(instance.index))
        };
        match &operand.kind {
            ExprKind::Field { instance, field } => {
                certainty.is_plain(*instance, *field).then(|| header(instance))
            }
            ExprKind::PayloadLength(instance) | ExprKind::Payload(instance) => Some(header(instance)),
            ExprKind::PayloadSlice { instance, to, .. } => {
                Some(format!("{}.payload.len >= {to}", header(instance)))
            }
            ExprKind::Bytes { ask: BytesAsk::Slice { to, .. }, .. } => {
                let text = self.text(operand.span);
                text.rsplit_once('[').map(|(of, _)| format!("{of}.len >= {to}"))
            }
            ExprKind::Bytes { of: BytesOf::UnionPayload(instance), .. } => {
                let name = &self.program.unions[instance.union].name;
                Some(format!("{}{name}{}", scope_text(instance.scope), index(instance.index)))
            }
            ExprKind::Bytes { of: BytesOf::Field { instance, .. } | BytesOf::Options(instance), .. } => {
                Some(header(instance))
            }
            ExprKind::Option { ask: OptionAsk::Length, .. } => {
                self.text(operand.span).strip_suffix(".len").map(str::to_owned)
            }
            ExprKind::UnionField { instance, field } => {
                let scope = scope_text(instance.scope);
                if certainty.is_total(*instance, *field) {
                    let name = &self.program.unions[instance.union].name;
                    return Some(format!("{scope}{name}{}", index(instance.index)));
                }
                let proof = (instance.union, *field);
                let is_nested = certainty.is_nested(instance.scope);
                let mut unions = self.program.unions.iter();
                let found = unions.find(|&(id, _)| {
                    self.graph.of_union(&self.program, id, is_nested).fields.contains(&proof)
                });
                found.map(|(_, union)| format!("{scope}{}", union.name))
            }
            _ => None,
        }
    }
}

/// Whether there is anything to check.
fn is_negated_inside(condition: &Expr) -> bool {
    let mut found = false;
    walk(condition, &mut |part| {
        found |= matches!(
            part.kind,
            ExprKind::Compare { op: CompareOp::NotEqual, .. } | ExprKind::In { negated: true, .. }
        );
    });
    found
}

/// The part of an operand that may be missing.
fn uncertain_part<'e>(certainty: Certainty<'_>, operand: &'e Expr, facts: &Facts) -> Option<&'e Expr> {
    if certainty.has_value(operand, facts) {
        return None;
    }
    match &operand.kind {
        ExprKind::Binary { left, right, .. } => uncertain_part(certainty, left, facts)
            .or_else(|| uncertain_part(certainty, right, facts))
            .or(Some(operand)),
        ExprKind::Default { otherwise, .. } => uncertain_part(certainty, otherwise, facts).or(Some(operand)),
        ExprKind::Tuple(parts) => parts.iter().find_map(|part| uncertain_part(certainty, part, facts)),
        _ => Some(operand),
    }
}
