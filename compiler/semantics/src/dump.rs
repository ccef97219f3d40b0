//! The typed program as text, for `--emit typed` and for tests.
//!
//! Only the headers and unions that the rules mention are shown, with where their fields lie.

use std::collections::BTreeSet;

use crate::graph::{mention, union_of};
use crate::sets::mac_text;
use crate::structure::walk;
use crate::typed::{
    Action, ActionKind, BytesAsk, BytesOf, Element, Expr, ExprKind, Field, Header, HeaderId, Index, Instance,
    Layer, Malformed, NextKind, OptionAsk, OptionRef, Outcome, PacketField, Position, Program, Scope, SetId,
    Step, StepKind, Stmt, Subject, Test, UnionFieldKind, UnionId, UnionInstance, Value, Verdict,
};

/// The program as text.
#[must_use]
pub fn dump(program: &Program) -> String {
    let mut dump = Dump { program, text: String::new(), own: None };
    dump.headers();
    for (_, set) in program.sets.iter().filter(|(_, set)| set.name.is_some()) {
        let name = set.name.as_deref().unwrap_or_default();
        let elements: Vec<_> = set.elements.iter().map(element).collect();
        let ty = program.type_text(&set.ty);
        dump.line(0, &format!("set {name}: {ty} = {{ {} }}", elements.join(", ")));
    }
    for counter in program.counters.values() {
        dump.line(0, &format!("counter {}", counter.name));
    }
    for chain in program.chains.values() {
        dump.line(0, &format!("chain {}", chain.name));
        dump.body(&chain.body, 1);
    }
    for xdp in program.xdps.values() {
        dump.line(0, &format!("xdp {}{}", xdp.name, if xdp.counters { "" } else { " (counters off)" }));
        if let Some(priority) = xdp.priority {
            dump.line(1, &format!("priority {priority}"));
        }
        if let Some(verdicts) = &xdp.chain_on {
            dump.line(1, &format!("chain on {}", verdict_texts(verdicts)));
        }
        for on in &xdp.on {
            let actions = dump.actions(&on.actions);
            dump.line(1, &format!("on {} => {actions}", verdict_texts(&on.verdicts)));
        }
        dump.body(&xdp.body, 1);
        let actions = dump.actions(&xdp.default);
        dump.line(1, &format!("default => {actions}"));
    }
    for test in &program.tests {
        dump.test(test);
    }
    dump.text
}

struct Dump<'a> {
    program: &'a Program,
    text: String,
    /// The header whose declaration is being printed.
    own: Option<&'a Header>,
}

impl<'a> Dump<'a> {
    fn line(&mut self, depth: usize, text: &str) {
        self.text.push_str(&"    ".repeat(depth));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn headers(&mut self) {
        let program = self.program;
        let (mut headers, mut unions) = (BTreeSet::new(), BTreeSet::new());
        let mut look = |condition: &Expr| {
            mention(program, condition, &mut headers);
            walk(condition, &mut |part| unions.extend(union_of(part)));
        };
        let bodies = program.chains.values().map(|chain| &chain.body);
        for body in bodies.chain(program.xdps.values().map(|xdp| &xdp.body)) {
            conditions(body, &mut look);
        }
        unions.into_iter().for_each(|id| self.union(id));
        headers.into_iter().for_each(|id| self.header(id));
    }

    fn union(&mut self, id: UnionId) {
        let union = &self.program.unions[id];
        let members: Vec<_> =
            union.members.iter().map(|&id| self.program.headers[id].name.as_str()).collect();
        self.line(0, &format!("union {} = {}", union.name, members.join(" | ")));
        for field in &union.fields {
            let sources = match &field.kind {
                UnionFieldKind::Member(_) => "each".to_owned(),
                UnionFieldKind::Alternatives(all) => {
                    all.iter().map(|it| self.expr(it)).collect::<Vec<_>>().join(" | ")
                }
            };
            let (ty, when) = (self.program.type_text(&field.ty), self.when(field.when.as_ref()));
            self.line(1, &format!("{}: {ty} = {sources}{when}", field.name));
        }
    }

    fn header(&mut self, id: HeaderId) {
        let header = &self.program.headers[id];
        self.own = Some(header);
        let repeats = if header.repeats > 1 { format!(" repeats {}", header.repeats) } else { String::new() };
        let needs = header.needs.map_or(String::new(), |needs| format!(" needs {needs}"));
        self.line(0, &format!("header {}: {} bytes{repeats}{needs}", header.name, header.fixed_bytes));
        for field in &header.fields {
            let line = self.field(field);
            self.line(1, &line);
        }
        if let Some(length) = &header.length {
            let length = self.expr(length);
            self.line(1, &format!("length {length}"));
        }
        for claim in &header.claims {
            let (value, when) = (self.expr(&claim.value), self.when(claim.when.as_ref()));
            self.line(1, &format!("claims {value}{when}"));
        }
        for valid in &header.valid {
            let valid = self.expr(valid);
            self.line(1, &format!("valid {valid}"));
        }
        for next in &header.next {
            let when = self.when(next.when.as_ref());
            let line = match &next.kind {
                NextKind::Always(target) => format!("next {}", self.target(target)),
                NextKind::By { value, edges } => {
                    let edges: Vec<_> = edges
                        .iter()
                        .map(|(value, target)| format!("{value} => {}", self.target(target)))
                        .collect();
                    if edges.is_empty() {
                        format!("next by {}", self.expr(value))
                    } else {
                        format!("next by {}: {}", self.expr(value), edges.join(", "))
                    }
                }
            };
            self.line(1, &format!("{line}{when}"));
        }
        self.own = None;
    }

    fn target(&self, target: &crate::typed::Target) -> String {
        let scope = match target.scope {
            None => "",
            Some(pktc_syntax::ast::Scope::Inner) => "inner.",
            Some(pktc_syntax::ast::Scope::Quoted) => "quoted.",
        };
        format!("{scope}{}", self.program.headers[target.header].name)
    }

    fn field(&self, field: &Field) -> String {
        let position = match &field.position {
            Position::Start { bits, plus } => {
                let plus: Vec<_> = plus.iter().map(|it| format!(" + width of field {it}")).collect();
                format!("bit {bits}{}", plus.concat())
            }
            Position::End { bits } => format!("{bits} bits before the end"),
        };
        let width = if field.bits == 0 { "the rest".into() } else { format!("{} bits", field.bits) };
        let name = field.name.as_deref().unwrap_or("_");
        format!(
            "{name}: {} at {position}, {width}{}",
            self.program.type_text(&field.ty),
            self.when(field.when.as_ref())
        )
    }

    fn when(&self, when: Option<&Expr>) -> String {
        when.map_or(String::new(), |when| format!(" when {}", self.expr(when)))
    }

    fn body(&mut self, body: &[Stmt], depth: usize) {
        for stmt in body {
            match stmt {
                Stmt::Rule(rule) => {
                    let label = rule.label.clone().unwrap_or_else(|| format!("@{}", rule.unlabelled));
                    let (condition, actions) = (self.expr(&rule.condition), self.actions(&rule.actions));
                    self.line(depth, &format!("rule {label}: {condition} => {actions}"));
                }
                Stmt::When { condition, body } => {
                    let condition = self.expr(condition);
                    self.line(depth, &format!("when {condition}"));
                    self.body(body, depth + 1);
                }
                Stmt::Apply { chain, .. } => {
                    let name = &self.program.chains[*chain].name;
                    self.line(depth, &format!("apply {name}"));
                }
            }
        }
    }

    fn actions(&self, actions: &[Action]) -> String {
        let actions = actions.iter().map(|action| match action.kind {
            ActionKind::Verdict(verdict) => verdict.word().to_owned(),
            ActionKind::Return => "return".into(),
            ActionKind::Count(counter) => format!("count {}", self.program.counters[counter].name),
            ActionKind::Apply(chain) => format!("apply {}", self.program.chains[chain].name),
        });
        actions.collect::<Vec<_>>().join(", ")
    }

    fn test(&mut self, test: &Test) {
        let of = match test.of {
            Subject::Xdp(id) => &self.program.xdps[id].name,
            Subject::Chain(id) => &self.program.chains[id].name,
        };
        self.line(0, &format!("test {:?} of {of}", test.name));
        for step in &test.steps {
            let line = self.step(step);
            self.line(1, &line);
        }
    }

    fn step(&self, step: &Step) -> String {
        match &step.kind {
            StepKind::Send { repeat, packet } => {
                let layers: Vec<_> = packet.layers.iter().map(|layer| self.layer(layer)).collect();
                format!("send {repeat} × {}", layers.join(" / "))
            }
            StepKind::Expect { outcomes } => {
                format!("expect {}", outcomes.iter().map(outcome).collect::<Vec<_>>().join(", "))
            }
            StepKind::Replay { file, .. } => format!("replay {file:?}"),
        }
    }

    fn layer(&self, layer: &Layer) -> String {
        match layer {
            Layer::Header { header, fields, options, .. } => {
                let header = &self.program.headers[*header];
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(field, value)| {
                        format!(
                            "{}: {}",
                            header.fields[*field].name.as_deref().unwrap_or("_"),
                            constant(value)
                        )
                    })
                    .collect();
                let options: Vec<_> = options.iter().map(|it| format!("{}", it.kind)).collect();
                let options = if options.is_empty() {
                    String::new()
                } else {
                    format!(" with [{}]", options.join(", "))
                };
                format!("{}({}){options}", header.name, fields.join(", "))
            }
            Layer::Payload(bytes) => format!("payload({} bytes)", bytes.len()),
            Layer::Pad(bytes) => format!("pad({bytes})"),
            Layer::Cut(bytes) => format!("cut({bytes})"),
            Layer::Pkt { ifindex, queue } => format!("pkt({ifindex:?}, {queue:?})"),
        }
    }

    fn expr(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Const(value) => constant(value),
            ExprKind::Field { instance, field } => {
                let name = self.program.headers[instance.header].fields[*field].name.as_deref();
                format!("{}.{}", self.instance(*instance), name.unwrap_or("_"))
            }
            ExprKind::UnionField { instance, field } => {
                let name = &self.program.unions[instance.union].fields[*field].name;
                format!("{}.{name}", self.union_instance(*instance))
            }
            ExprKind::Own(field) => self.own_name(*field),
            ExprKind::OwnPayload { from, to } => format!("payload[{from}..{to}]"),
            ExprKind::Present(instance) => self.instance(*instance),
            ExprKind::UnionPresent(instance) => self.union_instance(*instance),
            ExprKind::Malformed(malformed) => self.malformed(malformed),
            ExprKind::Truncated(instance) => format!("{}.truncated", self.instance(*instance)),
            ExprKind::Packet(field) => packet_field(*field).to_owned(),
            ExprKind::PayloadLength(instance) => format!("{}.payload.len", self.instance(*instance)),
            ExprKind::Payload(instance) => format!("{}.payload", self.instance(*instance)),
            ExprKind::PayloadSlice { instance, from, to } => {
                format!("{}.payload[{from}..{to}]", self.instance(*instance))
            }
            ExprKind::Option { option, ask } => self.option(*option, *ask),
            ExprKind::OptionsMalformed(instance) => {
                format!("{}.options.malformed", self.instance(*instance))
            }
            ExprKind::Bytes { of, ask } => {
                let of = self.bytes_of(*of);
                match ask {
                    BytesAsk::All => of,
                    BytesAsk::Length => format!("{of}.len"),
                    BytesAsk::Slice { from, to } => format!("{of}[{from}..{to}]"),
                }
            }
            ExprKind::Not(inner) => format!("not ({})", self.expr(inner)),
            ExprKind::And(parts) => self.joined(parts, " and "),
            ExprKind::Or(parts) => self.joined(parts, " or "),
            ExprKind::Compare { op, left, right } => {
                format!("{} {} {}", self.expr(left), op.symbol(), self.expr(right))
            }
            ExprKind::In { value, set, negated } => {
                format!("{}{} in {}", self.expr(value), if *negated { " not" } else { "" }, self.set(*set))
            }
            ExprKind::Binary { op, left, right } => {
                format!("({} {} {})", self.expr(left), op.symbol(), self.expr(right))
            }
            ExprKind::Default { value, otherwise } => {
                format!("({} default {})", self.expr(value), self.expr(otherwise))
            }
            ExprKind::Tuple(parts) => self.joined(parts, ", "),
        }
    }

    fn option(&self, option: OptionRef, ask: OptionAsk) -> String {
        let name = self.instance(option.instance);
        match ask {
            OptionAsk::Present => format!("{name}.option({})", option.kind),
            OptionAsk::Length => format!("{name}.option({}).len", option.kind),
            OptionAsk::Value { list, option, field } => {
                let options = self.program.headers[list].options.as_ref();
                let field = options.and_then(|list| list.options[option].fields[field].name.as_deref());
                format!("{name}.{}", field.unwrap_or("_"))
            }
        }
    }

    fn bytes_of(&self, of: BytesOf) -> String {
        match of {
            BytesOf::Field { instance, field } => {
                let name = self.program.headers[instance.header].fields[field].name.as_deref();
                format!("{}.{}", self.instance(instance), name.unwrap_or("_"))
            }
            BytesOf::Options(instance) => format!("{}.options", self.instance(instance)),
            BytesOf::UnionPayload(instance) => format!("{}.payload", self.union_instance(instance)),
        }
    }

    fn own_name(&self, field: usize) -> String {
        let name = self.own.and_then(|own| own.fields.get(field)).and_then(|field| field.name.clone());
        name.unwrap_or_else(|| format!("field {field}"))
    }

    fn joined(&self, parts: &[Expr], word: &str) -> String {
        format!("({})", parts.iter().map(|part| self.expr(part)).collect::<Vec<_>>().join(word))
    }

    fn malformed(&self, malformed: &Malformed) -> String {
        match malformed {
            Malformed::Packet(scope) => format!("{}malformed", scope_text(*scope)),
            Malformed::Header(instance) => format!("{}.malformed", self.instance(*instance)),
            Malformed::Union { scope, union } => {
                format!("{}{}.malformed", scope_text(*scope), self.program.unions[*union].name)
            }
        }
    }

    fn instance(&self, instance: Instance) -> String {
        let name = &self.program.headers[instance.header].name;
        format!("{}{name}{}", scope_text(instance.scope), index_text(instance.index))
    }

    fn union_instance(&self, instance: UnionInstance) -> String {
        let name = &self.program.unions[instance.union].name;
        format!("{}{name}{}", scope_text(instance.scope), index_text(instance.index))
    }

    fn set(&self, id: SetId) -> String {
        let set = &self.program.sets[id];
        match &set.name {
            Some(name) => name.clone(),
            None => format!("{{ {} }}", set.elements.iter().map(element).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Calls `visit` for each condition of these statements.
fn conditions(body: &[Stmt], visit: &mut impl FnMut(&Expr)) {
    for stmt in body {
        match stmt {
            Stmt::Rule(rule) => visit(&rule.condition),
            Stmt::When { condition, body } => {
                visit(condition);
                conditions(body, visit);
            }
            Stmt::Apply { .. } => {}
        }
    }
}

fn outcome(outcome: &Outcome) -> String {
    let count = outcome.count.map_or(String::new(), |count| format!("{count} "));
    let by = outcome.by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
    format!("{count}{}{by}", outcome.verdict.map_or("return", Verdict::word))
}

fn verdict_texts(verdicts: &[Verdict]) -> String {
    verdicts.iter().map(|verdict| verdict.word()).collect::<Vec<_>>().join(", ")
}

fn packet_field(field: PacketField) -> &'static str {
    match field {
        PacketField::Length => "pkt.len",
        PacketField::Ifindex => "pkt.ifindex",
        PacketField::Queue => "pkt.queue",
    }
}

/// `inner.inner.`
pub(crate) fn scope_text(scope: Scope) -> String {
    format!("{}{}", "inner.".repeat(usize::from(scope.inner)), if scope.quoted { "quoted." } else { "" })
}

fn index_text(index: Index) -> String {
    match index {
        Index::At(0) => String::new(),
        Index::At(at) => format!("[{at}]"),
        Index::Last => "[last]".into(),
    }
}

fn constant(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Mac(address) => mac_text(*address),
        Value::Ipv4(address) => address.to_string(),
        Value::Ipv6(address) => address.to_string(),
        Value::Bytes(bytes) => format!("\"{}\"", bytes.escape_ascii()),
    }
}

fn element(element: &Element) -> String {
    let (low, high) = match element {
        Element::Uint { low, high } => (low.to_string(), high.to_string()),
        Element::Mac { low, high } => (mac_text(*low), mac_text(*high)),
        Element::Ipv4 { low, high } => (low.to_string(), high.to_string()),
        Element::Ipv6 { low, high } => (low.to_string(), high.to_string()),
        Element::Bytes { low, high } => {
            (format!("\"{}\"", low.escape_ascii()), format!("\"{}\"", high.escape_ascii()))
        }
        Element::Tuple(parts) => {
            let parts: Vec<_> =
                parts.iter().map(|part| part.as_ref().map_or("_".into(), crate::dump::element)).collect();
            return format!("({})", parts.join(", "));
        }
    };
    if low == high { low } else { format!("{low}-{high}") }
}
