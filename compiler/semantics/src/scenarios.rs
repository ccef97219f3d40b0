//! `test` blocks: packets to send and what must become of them.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, Arg, ArgKind, OutcomeVerdict, PathStepKind};

use crate::checker::{Checker, TestDecl};
use crate::load::join;
use crate::names::{Space, SymbolKind};
use crate::suggest::nearest;
use crate::typed::{
    ActionKind, ChainId, FieldIndex, HeaderId, Layer, Outcome, Packet, Step, StepKind, Stmt, Subject, Test,
    Value, Verdict,
};

/// The most bytes that `payload`, `pad` and `cut` take.
const MAX_BYTES: u64 = 65_535;

/// The most that one `repeat` sends: a test ends in a time that somebody waits for.
const MAX_SENT: u64 = 100_000;

impl<'a> Checker<'a> {
    /// Checks the tests.
    pub(crate) fn tests(&mut self) {
        for decl in std::mem::take(&mut self.decls.tests) {
            self.test(decl);
        }
    }

    fn test(&mut self, decl: TestDecl<'a>) {
        let name = String::from_utf8_lossy(&decl.name.bytes).into_owned();
        let file = decl.name.span.file;
        let other = self.program.tests.iter().find(|test| test.name == name && test.span.file == file);
        if let Some(other) = other.map(|test| test.span) {
            let title = format!("two tests are called \"{name}\"");
            let diagnostic = Diagnostic::error(codes::NAME_CLASH, title, decl.name.span, "again here")
                .with_label(other, "first here");
            self.report(diagnostic);
        }
        let of = self.test_target(decl);
        let mut sent = None;
        let mut steps = Vec::new();
        for step in decl.steps {
            let kind = self.step(step, decl.unit, of, &mut sent);
            steps.extend(kind.map(|kind| Step { kind, span: step.span }));
        }
        if let Some(of) = of {
            self.program.tests.push(Test { name, span: decl.name.span, of, steps });
        }
    }

    fn test_target(&mut self, decl: TestDecl<'a>) -> Option<Subject> {
        if let Some(of) = decl.of {
            return self.expect_symbol(Space::Block, decl.unit, of, "program or chain", |kind| match kind {
                SymbolKind::Xdp(id) => Some(Subject::Xdp(*id)),
                SymbolKind::Chain(id) => Some(Subject::Chain(*id)),
                _ => None,
            });
        }
        let mut xdps = Vec::new();
        let mut chains = Vec::new();
        for id in 0..self.symbols.len() {
            let is_own = self.symbols[id].unit == decl.unit;
            // Of two declarations with one name, which is reported, the first counts.
            let is_first = !self.symbols[..id].iter().any(|other| {
                other.unit == decl.unit
                    && other.name.text == self.symbols[id].name.text
                    && other.kind.is_block()
            });
            if !is_own || !is_first {
                continue;
            }
            match self.symbols[id].kind {
                SymbolKind::Xdp(xdp) => xdps.push((id, Subject::Xdp(xdp))),
                SymbolKind::Chain(chain) => chains.push((id, Subject::Chain(chain))),
                _ => {}
            }
        }
        let candidates = if xdps.is_empty() { chains } else { xdps };
        if let [(id, target)] = candidates.as_slice() {
            self.used[*id] = true;
            return Some(*target);
        }
        let names: Vec<&str> =
            candidates.iter().map(|&(id, _)| self.symbols[id].name.text.as_str()).collect();
        let (title, help) = match names.first() {
            None => (
                "this test has nothing to test".to_owned(),
                "the file has no program and no chain".to_owned(),
            ),
            Some(first) => (
                format!("this test may be of {}", names.join(", ")),
                format!("say which: `test \"…\" of {first} {{ … }}`"),
            ),
        };
        let diagnostic = Diagnostic::error(codes::TEST_TARGET, title, decl.name.span, "of which program?");
        self.report(diagnostic.with_help(help));
        None
    }

    fn step(
        &mut self,
        step: &'a ast::Step,
        unit: usize,
        of: Option<Subject>,
        sent: &mut Option<u64>,
    ) -> Option<StepKind> {
        if let Some(at) = &step.at {
            self.not_yet("a clock in tests (`at`)", at.span);
        }
        match &step.kind {
            ast::StepKind::Send { repeat, every, packet } => {
                if let Some(every) = every {
                    self.not_yet("a clock in tests (`every`)", every.span);
                }
                let count = repeat.map_or(1, |(count, _)| count);
                if let Some((count, span)) = repeat {
                    self.check_repeat(*count, *span);
                }
                *sent = Some(count);
                let packet = self.packet(packet, unit)?;
                Some(StepKind::Send { repeat: count, packet })
            }
            ast::StepKind::Expect { outcomes, with } => {
                if let Some(with) = with {
                    self.not_yet("comparison of the packet that leaves (`with`)", with.span);
                }
                self.check_counts(outcomes, *sent, step.span);
                let outcomes: Vec<_> = outcomes.iter().map(|it| self.outcome(it, of, unit)).collect();
                Some(StepKind::Expect { outcomes: outcomes.into_iter().collect::<Option<_>>()? })
            }
            ast::StepKind::Replay { file } => self.replay(file, unit),
            ast::StepKind::Check(_)
            | ast::StepKind::Add { .. }
            | ast::StepKind::Remove { .. }
            | ast::StepKind::Set { .. } => {
                self.not_yet("state in tests (`check`, `add`, `remove`, `set`)", step.span);
                None
            }
        }
    }

    fn replay(&mut self, file: &ast::StringLiteral, unit: usize) -> Option<StepKind> {
        let Ok(name) = std::str::from_utf8(&file.bytes) else {
            let title = "the file's name is not UTF-8 text";
            self.report(Diagnostic::error(codes::CANNOT_READ, title, file.span, "this name"));
            return None;
        };
        Some(StepKind::Replay { file: join(&self.units[unit].path, name), span: file.span })
    }

    fn check_repeat(&mut self, count: u64, span: Span) {
        let (title, label) = match count {
            0 => ("nothing is sent".to_owned(), "repeat at least once".to_owned()),
            1..=MAX_SENT => return,
            _ => (format!("a packet is not sent {count} times"), format!("at most {MAX_SENT} times")),
        };
        self.report(Diagnostic::error(codes::BAD_OUTCOME, title, span, label));
    }

    fn check_counts(&mut self, outcomes: &[ast::Outcome], sent: Option<u64>, span: Span) {
        let Some(sent) = sent else {
            let title = "nothing was sent yet";
            let diagnostic = Diagnostic::error(codes::BAD_OUTCOME, title, span, "expects what?")
                .with_help("put a `send …;` in front of it");
            self.report(diagnostic);
            return;
        };
        let counts: Vec<u64> = outcomes.iter().filter_map(|it| it.count).collect();
        let total = counts.iter().fold(0_u64, |total, &count| total.saturating_add(count));
        let (title, label) = if counts.len() != outcomes.len() && outcomes.len() > 1 {
            ("several outcomes need a count each".to_owned(), "how many of each?".to_owned())
        } else if !counts.is_empty() && total != sent {
            (
                format!("{total} outcomes are expected of {sent} packets"),
                "the counts add up to".to_owned() + &format!(" {total}"),
            )
        } else {
            return;
        };
        let diagnostic = Diagnostic::error(codes::BAD_OUTCOME, title, span, label)
            .with_help("write `expect 25 pass, 1 drop by flood;` behind `repeat 26 send …;`");
        self.report(diagnostic);
    }

    fn outcome(&mut self, outcome: &'a ast::Outcome, of: Option<Subject>, unit: usize) -> Option<Outcome> {
        let verdict = match outcome.verdict {
            OutcomeVerdict::Verdict(Verdict::Redirect) => {
                self.not_yet("`redirect`", outcome.span);
                return None;
            }
            OutcomeVerdict::Verdict(verdict) => Some(verdict),
            OutcomeVerdict::Return => {
                if matches!(of, Some(Subject::Xdp(_))) {
                    let title = "a program always decides";
                    let diagnostic =
                        Diagnostic::error(codes::BAD_OUTCOME, title, outcome.span, "only a chain returns")
                            .with_help("expect the verdict of `default`");
                    self.report(diagnostic);
                }
                None
            }
        };
        let by = match (&outcome.by, of) {
            (Some(path), Some(of)) => Some(self.expected_rule(path, of, unit)?),
            _ => None,
        };
        Some(Outcome { count: outcome.count, verdict, by, span: outcome.span })
    }

    /// The rule that a test expects, as reports name it.
    fn expected_rule(&mut self, path: &'a ast::Path, of: Subject, unit: usize) -> Option<String> {
        let mut words = vec![&path.head];
        for step in &path.steps {
            if let PathStepKind::Dot(word) = &step.kind {
                words.push(word);
            }
        }
        if words.len() > 1 && self.is_library(unit, &words[0].text) {
            words.remove(0);
        }
        let span = words[0].span.to(words[words.len() - 1].span);
        let name = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(".");
        let known = self.rule_names(of);
        if known.contains(&name) {
            return Some(name);
        }
        if let Subject::Chain(chain) = of {
            let qualified = format!("{}.{name}", self.program.chains[chain].name);
            if known.contains(&qualified) {
                return Some(qualified);
            }
        }
        let in_chain = known.iter().find(|known| known.rsplit('.').next() == Some(&name));
        let near = in_chain.map(String::as_str).or_else(|| nearest(&name, known.iter().map(String::as_str)));
        let title = format!("no rule is called `{name}`");
        let mut diagnostic = Diagnostic::error(codes::UNKNOWN_RULE, title, span, "not a label");
        if let Some(near) = near {
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?"));
        } else if !known.is_empty() {
            diagnostic = diagnostic.with_note(format!("the labels are {}", known.join(", ")));
        }
        self.report(diagnostic);
        None
    }

    /// The labels under which a test's rules are reported.
    fn rule_names(&self, of: Subject) -> Vec<String> {
        let mut names = Vec::new();
        let mut seen = Vec::new();
        match of {
            Subject::Xdp(id) => {
                names.push("default".to_owned());
                self.names_in(&self.program.xdps[id].body, None, &mut names, &mut seen);
            }
            Subject::Chain(id) => self.names_in_chain(id, &mut names, &mut seen),
        }
        names
    }

    fn names_in_chain(&self, id: ChainId, names: &mut Vec<String>, seen: &mut Vec<ChainId>) {
        if !seen.contains(&id) {
            seen.push(id);
            let chain = &self.program.chains[id];
            self.names_in(&chain.body, Some(&chain.name), names, seen);
        }
    }

    fn names_in(&self, body: &[Stmt], chain: Option<&str>, names: &mut Vec<String>, seen: &mut Vec<ChainId>) {
        for stmt in body {
            match stmt {
                Stmt::Rule(rule) => {
                    let label = rule.label.as_ref();
                    names.extend(
                        label.map(|label| chain.map_or(label.clone(), |chain| format!("{chain}.{label}"))),
                    );
                    for action in &rule.actions {
                        if let ActionKind::Apply(chain) = action.kind {
                            self.names_in_chain(chain, names, seen);
                        }
                    }
                }
                Stmt::When { body, .. } => self.names_in(body, chain, names, seen),
                Stmt::Apply { chain, .. } => self.names_in_chain(*chain, names, seen),
            }
        }
    }

    fn packet(&mut self, packet: &'a ast::Packet, unit: usize) -> Option<Packet> {
        let mut layers = Vec::new();
        for (at, layer) in packet.layers.iter().enumerate() {
            let checked = self.layer(layer, unit);
            if matches!(checked, Some(Layer::Pkt { .. })) && at > 0 {
                let title = "`pkt(…)` stands in front";
                let label = "it says where the packet comes in, and is no part of it";
                self.report(Diagnostic::error(codes::BAD_LAYER, title, layer.span, label));
            }
            layers.push(checked);
        }
        let layers = layers.into_iter().collect::<Option<_>>()?;
        Some(Packet { layers, span: packet.span })
    }

    fn layer(&mut self, layer: &'a ast::Layer, unit: usize) -> Option<Layer> {
        match layer.name.text.as_str() {
            "payload" => self.payload_layer(layer, unit),
            "pad" => self.byte_count(layer, unit).map(Layer::Pad),
            "cut" => self.byte_count(layer, unit).map(Layer::Cut),
            "pkt" => self.pkt_layer(layer, unit),
            _ => self.header_layer(layer, unit),
        }
    }

    fn payload_layer(&mut self, layer: &'a ast::Layer, unit: usize) -> Option<Layer> {
        if let [Arg { kind: ArgKind::Value(ast::Expr { kind: ast::ExprKind::String(bytes), .. }), .. }] =
            layer.args.as_slice()
        {
            return Some(Layer::Payload(bytes.clone()));
        }
        self.byte_count(layer, unit).map(|count| Layer::Payload(vec![0; count as usize]))
    }

    fn byte_count(&mut self, layer: &'a ast::Layer, unit: usize) -> Option<u32> {
        let name = &layer.name.text;
        let [Arg { kind: ArgKind::Value(value), .. }] = layer.args.as_slice() else {
            let title = format!("`{name}` takes a number of bytes");
            let diagnostic = Diagnostic::error(codes::BAD_LAYER, title, layer.span, "how many?")
                .with_help(format!("write `{name}(6)`"));
            self.report(diagnostic);
            return None;
        };
        let count = self.constant_number(value, &Self::env(unit))?;
        if count <= MAX_BYTES {
            return Some(count as u32);
        }
        let title = format!("{count} bytes are more than a packet holds");
        self.report(Diagnostic::error(codes::BAD_LAYER, title, value.span, format!("at most {MAX_BYTES}")));
        None
    }

    fn pkt_layer(&mut self, layer: &'a ast::Layer, unit: usize) -> Option<Layer> {
        let (mut ifindex, mut queue) = (None, None);
        for arg in &layer.args {
            let (slot, value) = match &arg.kind {
                ArgKind::Named { name, value } if name.text == "ifindex" => (&mut ifindex, value),
                ArgKind::Named { name, value } if name.text == "queue" => (&mut queue, value),
                _ => {
                    let title = "`pkt` takes `ifindex` and `queue`";
                    let diagnostic = Diagnostic::error(codes::BAD_LAYER, title, arg.span, "not one of these")
                        .with_help("write `pkt(ifindex: 3, queue: 2)`");
                    self.report(diagnostic);
                    return None;
                }
            };
            let number = self.constant_number(value, &Self::env(unit))?;
            let Ok(number) = u32::try_from(number) else {
                let title = format!("{number} does not fit in 32 bits");
                self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, value.span, "too large"));
                return None;
            };
            *slot = Some(number);
        }
        Some(Layer::Pkt { ifindex, queue })
    }

    fn header_layer(&mut self, layer: &'a ast::Layer, unit: usize) -> Option<Layer> {
        let header = self.layer_header(&layer.name, unit)?;
        let mut fields: Vec<(FieldIndex, Value)> = Vec::new();
        let mut options = Vec::new();
        let mut is_whole = true;
        for arg in &layer.args {
            if let ArgKind::List { name, layers } = &arg.kind {
                let given = self.packet_options(header, name, layers, unit);
                is_whole &= given.is_some();
                options.extend(given.into_iter().flatten());
                continue;
            }
            match self.header_arg(header, arg, unit) {
                Some((field, _)) if fields.iter().any(|(other, _)| *other == field) => {
                    let title = "a field is given once";
                    self.report(Diagnostic::error(codes::BAD_LAYER, title, arg.span, "again here"));
                }
                Some(field) => fields.push(field),
                None => is_whole = false,
            }
        }
        is_whole.then_some(Layer::Header { header, fields, options, span: layer.span })
    }

    fn layer_header(&mut self, name: &ast::Word, unit: usize) -> Option<HeaderId> {
        let found = self.lookup(Space::Value, unit, &name.text).map(|id| self.symbols[id].kind);
        if let Some(SymbolKind::Union(union)) = found {
            let members = self.program.unions[union].members.iter();
            let names: Vec<&str> = members.map(|&id| self.program.headers[id].name.as_str()).collect();
            let help = format!("a packet has one of `{}`", names.join("`, `"));
            let title = format!("`{}` is a union, not a layer", name.text);
            let diagnostic = Diagnostic::error(codes::BAD_LAYER, title, name.span, "which of them?");
            self.report(diagnostic.with_help(help));
            return None;
        }
        self.header_named(name, unit)
    }

    fn header_arg(&mut self, header: HeaderId, arg: &'a Arg, unit: usize) -> Option<(FieldIndex, Value)> {
        let (name, value) = match &arg.kind {
            ArgKind::Named { name, value } => (name, value),
            ArgKind::List { .. } | ArgKind::Value(_) => {
                let title = "a field is given by its name";
                let diagnostic = Diagnostic::error(codes::BAD_LAYER, title, arg.span, "of which field?")
                    .with_help(format!("write `{}(FIELD: …)`", self.program.headers[header].name));
                self.report(diagnostic);
                return None;
            }
        };
        let fields = &self.program.headers[header].fields;
        let Some(index) = fields.iter().position(|it| it.name.as_deref() == Some(&name.text)) else {
            let known = fields.iter().filter_map(|field| field.name.as_deref());
            let near = nearest(&name.text, known).map(|near| format!("did you mean `{near}`?"));
            let title = format!("`{}` has no field `{}`", self.program.headers[header].name, name.text);
            let mut diagnostic = Diagnostic::error(codes::UNKNOWN_FIELD, title, name.span, "no such field");
            diagnostic.help.extend(near);
            self.report(diagnostic);
            return None;
        };
        let (ty, bits) = (fields[index].ty.clone(), fields[index].bits);
        let constant = self.field_constant(value, &ty, &Self::env(unit))?;
        if let Value::Bytes(bytes) = &constant
            && bits > 0
            && bytes.len() as u64 * 8 != u64::from(bits)
        {
            let title = format!("`{}` is {} bytes long", name.text, bits / 8);
            let label = format!("{} bytes", bytes.len());
            self.report(Diagnostic::error(codes::DOES_NOT_FIT, title, value.span, label));
            return None;
        }
        Some((index, constant))
    }
}
