//! Both forms as text.

use std::fmt::Write;

use pktc_semantics::typed::{Program, Verdict};

use crate::flow::{Arg, Block, End, Flow, Op, Value};
use crate::rule::{Action, Cond, Item, Node, Num, Part, Place, Reach, RuleProgram, Slot, Test};

/// A verdict as people write it.
fn word(verdict: Verdict) -> String {
    format!("{verdict:?}").to_lowercase()
}

/// A place as people write it: `vlan[1]`.
#[must_use]
pub fn place_name(program: &Program, place: Place) -> String {
    let inner = "inner.".repeat(usize::from(place.scope.inner));
    let quoted = if place.scope.quoted { "quoted." } else { "" };
    let name = &program.headers[place.header].name;
    match place.index {
        0 => format!("{inner}{quoted}{name}"),
        Place::LAST => format!("{inner}{quoted}{name}[last]"),
        index => format!("{inner}{quoted}{name}[{index}]"),
    }
}

/// A slot for people: `ipv4[12..16]`.
#[must_use]
pub fn slot_name(program: &Program, slot: &Slot) -> String {
    match slot {
        Slot::Bytes { place, offset, size, .. } => {
            format!("{}[{offset}..{}]", place_name(program, *place), offset + size.bytes())
        }
        Slot::Payload { place, offset, size, .. } => {
            format!("{}.payload[{offset}..{}]", place_name(program, *place), offset + size.bytes())
        }
        Slot::HeaderLength(place) => format!("{}.length", place_name(program, *place)),
        Slot::PayloadLength(place) => format!("{}.payload.len", place_name(program, *place)),
        Slot::Truncated(place) => format!("{}.truncated", place_name(program, *place)),
        Slot::OptionLength { place, kind, .. } => {
            format!("{}.option({kind}).len", place_name(program, *place))
        }
        Slot::OptionBytes { place, kind, offset, size, .. } => {
            let end = offset + size.bytes();
            format!("{}.option({kind})[{offset}..{end}]", place_name(program, *place))
        }
        Slot::Member { union, index, field, .. } => {
            let union = &program.unions[*union];
            let index = index.map_or("last".to_owned(), |index| index.to_string());
            format!("{}[{index}].{}", union.name, union.fields[*field].name)
        }
    }
}

/// Rule IR as text.
#[must_use]
pub fn print_rules(program: &Program, rules: &RuleProgram) -> String {
    let mut printer = RulePrinter { program, rules, text: String::new() };
    printer.line(0, &format!("program {}", rules.name));
    printer.nodes(1, &rules.body);
    let actions = printer.actions(&rules.default);
    printer.line(1, &format!("default => {actions}"));
    for &(verdict, counter) in &rules.on {
        let (verdict, counter) = (word(verdict), &program.counters[counter].name);
        printer.line(1, &format!("on {verdict} => count {counter}"));
    }
    printer.text
}

struct RulePrinter<'a> {
    program: &'a Program,
    rules: &'a RuleProgram,
    text: String,
}

impl RulePrinter<'_> {
    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "    ".repeat(depth));
    }

    fn nodes(&mut self, depth: usize, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Rule { id, condition, actions, .. } => {
                    let name = &self.rules.rules.info(*id).name;
                    let line = format!(
                        "rule {} {name}: {} => {}",
                        id.0,
                        self.cond(condition),
                        self.actions(actions)
                    );
                    self.line(depth, &line);
                }
                Node::When { condition, body } => {
                    let line = format!("when {}", self.cond(condition));
                    self.line(depth, &line);
                    self.nodes(depth + 1, body);
                }
                Node::Chain { name, body } => {
                    self.line(depth, &format!("chain {name}"));
                    self.nodes(depth + 1, body);
                }
            }
        }
    }

    fn actions(&self, actions: &[Action]) -> String {
        let text = actions.iter().map(|action| match action {
            Action::Verdict(verdict) => word(*verdict),
            Action::Return => "return".into(),
            Action::Count(counter) => format!("count {}", self.program.counters[*counter].name),
            Action::Chain { name, .. } => format!("apply {name}"),
        });
        text.collect::<Vec<_>>().join(", ")
    }

    fn cond(&self, cond: &Cond) -> String {
        let list = |parts: &[Cond], word: &str| {
            let parts: Vec<_> = parts.iter().map(|part| self.cond(part)).collect();
            format!("({})", parts.join(word))
        };
        match cond {
            Cond::Const(value) => value.to_string(),
            Cond::Test(test, _) => self.test(test),
            Cond::Not(inner) => format!("not {}", self.cond(inner)),
            Cond::And(parts) => list(parts, " and "),
            Cond::Or(parts) => list(parts, " or "),
            Cond::If(parts) => {
                let [cond, then, otherwise] = &**parts;
                format!("(if {} then {} else {})", self.cond(cond), self.cond(then), self.cond(otherwise))
            }
        }
    }

    fn test(&self, test: &Test) -> String {
        match test {
            Test::Present(item) => self.item(&self.rules.items[*item]),
            Test::Malformed(suspects) => {
                let kinds = suspects.headers.iter();
                let names: Vec<_> = kinds.map(|&id| self.program.headers[id].name.as_str()).collect();
                let index = suspects.index.map_or(String::new(), |index| format!("[{index}]"));
                format!("malformed({}){index}", names.join(" "))
            }
            Test::Bytes { slot, mask, value } => {
                format!("{} & {mask:#x} == {value:#x}", slot_name(self.program, &self.rules.slots[*slot]))
            }
            Test::Compare { op, left, right } => format!("{op:?}({}, {})", self.num(left), self.num(right)),
            Test::Ranges { value, ranges } => format!("{} in {ranges:x?}", self.num(value)),
            Test::WideRanges { high, ranges, .. } => {
                format!("{} in {ranges:x?}", slot_name(self.program, &self.rules.slots[*high]))
            }
        }
    }

    fn item(&self, item: &Item) -> String {
        match item {
            Item::Header(place) => place_name(self.program, *place),
            Item::Part(Part { place, end, reach, .. }) => {
                let name = place_name(self.program, *place);
                match reach {
                    Reach::Fields => format!("{name}[..{end}]"),
                    Reach::Whole { behind } => format!("{name}[..{end} + {behind}]"),
                    Reach::Payload => format!("{name}.payload[..{end}]"),
                }
            }
            Item::Member { union, index, .. } => format!("{}[{index}]", self.program.unions[*union].name),
            Item::Option { place, kind } => format!("{}.option({kind})", place_name(self.program, *place)),
            Item::BrokenOptions(place) => format!("{}.options.malformed", place_name(self.program, *place)),
        }
    }

    fn num(&self, num: &Num) -> String {
        match num {
            Num::Const(value) => value.to_string(),
            Num::Bits { slot, shift, width } => {
                let name = slot_name(self.program, &self.rules.slots[*slot]);
                format!("bits({name}, {shift}, {width})")
            }
            Num::Slot(slot) => slot_name(self.program, &self.rules.slots[*slot]),
            Num::PacketLength => "pkt.len".into(),
            Num::Ifindex => "pkt.ifindex".into(),
            Num::Queue => "pkt.queue".into(),
            Num::Binary { op, left, right } => format!("{op:?}({}, {})", self.num(left), self.num(right)),
        }
    }
}

/// Flow IR as text.
#[must_use]
pub fn print_flow(flow: &Flow) -> String {
    let mut text = format!("flow {}\n", flow.name);
    for (verdict, counter) in &flow.on {
        let _ = writeln!(text, "    on {} count {counter}", word(*verdict));
    }
    for (block, data) in flow.blocks.iter() {
        let _ = writeln!(text, "{block}:");
        for (op, _) in &data.ops {
            let _ = writeln!(text, "    {}", print_op(flow, op));
        }
        let _ = writeln!(text, "    {}", print_end(flow, &data.end));
    }
    text
}

fn value(flow: &Flow, value: Value) -> String {
    match flow.values[value].as_str() {
        "" => value.to_string(),
        name => format!("{value}:{name}"),
    }
}

fn arg(flow: &Flow, arg: Arg) -> String {
    match arg {
        Arg::Value(of) => value(flow, of),
        Arg::Const(constant) if constant < 10 => constant.to_string(),
        Arg::Const(constant) => format!("{constant:#x}"),
    }
}

fn print_op(flow: &Flow, op: &Op) -> String {
    let value = |of: &Value| value(flow, *of);
    match op {
        Op::Copy { dst, src } => format!("{} = {}", value(dst), arg(flow, *src)),
        Op::Forget { dst, src, mask } => format!("{} = forget {} & {mask:#x}", value(dst), arg(flow, *src)),
        Op::Alu { op, dst, left, right } => {
            format!("{} = {op:?} {}, {}", value(dst), value(left), arg(flow, *right)).to_lowercase()
        }
        Op::Swap { dst, src, size } => format!("{} = swap{} {}", value(dst), size.bytes() * 8, value(src)),
        Op::Read { dst, offset, size } => {
            format!("{} = read {}..{}", value(dst), offset, offset + size.bytes())
        }
        Op::ReadAt { dst, base, offset, size } => {
            format!("{} = read {} + {offset}..{}", value(dst), value(base), offset + size.bytes())
        }
        Op::Advance { by } => format!("advance {}", arg(flow, *by)),
        Op::Position { dst } => format!("{} = position", value(dst)),
        Op::Remaining { dst } => format!("{} = remaining", value(dst)),
        Op::Reachable { dst } => format!("{} = reachable", value(dst)),
        Op::PacketLength { dst } => format!("{} = packet length", value(dst)),
        Op::Ifindex { dst } => format!("{} = ifindex", value(dst)),
        Op::Queue { dst } => format!("{} = queue", value(dst)),
        Op::Keep { cell, src } => format!("{cell}:{} = {}", flow.cells[*cell].bytes() * 8, value(src)),
        Op::Recall { dst, cell } => format!("{} = {cell}:{}", value(dst), flow.cells[*cell].bytes() * 8),
        Op::Claims { content } => format!("claims {}", value(content)),
        Op::Hit { rule, ask } => format!("hit {}{}", rule.0, asks(*ask)),
        Op::Count { counter, ask } => format!("count {counter}{}", asks(*ask)),
    }
}

fn asks(ask: bool) -> &'static str {
    if ask { " ask" } else { "" }
}

fn print_end(flow: &Flow, end: &End) -> String {
    let ways = |then: Block, otherwise: Block| format!("{then} else {otherwise}");
    match end {
        End::Goto(target) => format!("goto {target}"),
        End::Branch { condition, left, right, then, otherwise, .. } => {
            let left = value(flow, *left);
            format!("if {left} {condition:?} {} goto {}", arg(flow, *right), ways(*then, *otherwise))
        }
        End::Masked { left, mask, value: wanted, then, otherwise, .. } => {
            format!("if {} & {mask:#x} == {wanted:#x} goto {}", value(flow, *left), ways(*then, *otherwise))
        }
        End::Check { base, bytes, ok, short } => {
            let base = base.map_or(String::new(), |base| format!("{} + ", value(flow, base)));
            format!("check {base}{} goto {}", arg(flow, *bytes), ways(*ok, *short))
        }
        End::Seek { position, bytes, ok, short } => {
            format!("seek {} check {} goto {}", value(flow, *position), arg(flow, *bytes), ways(*ok, *short))
        }
        End::Canon { ok, short } => format!("canon goto {}", ways(*ok, *short)),
        End::Finish { rule, verdict, ask } => {
            let rule = rule.map_or(String::new(), |rule| format!(" hit {}{}", rule.0, asks(*ask)));
            format!("finish {verdict:?}{rule}").to_lowercase()
        }
    }
}
