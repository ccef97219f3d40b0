//! Programs, chains and tests.

use super::Out;
use super::decl::with;
use super::expr::{duration, expr, list, number, path, rate, string};
use crate::ast::{
    Action, ActionKind, Arg, ArgKind, Duration, Else, Layer, Outcome, OutcomeVerdict, Packet, RedirectTarget,
    Step, StepKind, Stmt, StmtKind, XdpItem,
};

pub(super) fn items(out: &mut Out, items: &[XdpItem]) {
    for item in items {
        match item {
            XdpItem::Default { actions: list, .. } => out.nest("default", |out| actions(out, list)),
            XdpItem::Priority { value, .. } => out.line(format!("priority {value}")),
            XdpItem::ChainOn { verdicts, .. } => {
                out.line(format!("chain on {}", list(verdicts, |(value, _)| value.word().to_owned())));
            }
            XdpItem::CountersOff { .. } => out.line("counters off"),
            XdpItem::On { verdicts, actions: then, .. } => {
                let verdicts = list(verdicts, |(value, _)| value.word().to_owned());
                out.nest(format!("on {verdicts}"), |out| actions(out, then));
            }
            XdpItem::Stmt(value) => stmt(out, value),
        }
    }
}

pub(super) fn stmts(out: &mut Out, body: &[Stmt]) {
    body.iter().for_each(|value| stmt(out, value));
}

fn stmt(out: &mut Out, stmt: &Stmt) {
    out.doc(&stmt.doc);
    match &stmt.kind {
        StmtKind::Rule { label, condition, actions: then } => {
            let label = with(" ", label.as_ref(), |word| word.text.clone());
            out.nest(format!("rule{label}: {}", expr(condition)), |out| actions(out, then));
        }
        StmtKind::When { condition, body } => {
            out.nest(format!("when {}", expr(condition)), |out| stmts(out, body));
        }
        StmtKind::Apply { chain } => out.line(format!("apply {}", path(chain))),
    }
}

fn actions(out: &mut Out, actions: &[Action]) {
    actions.iter().for_each(|value| action(out, value));
}

fn action(out: &mut Out, action: &Action) {
    let (text, otherwise) = match &action.kind {
        ActionKind::Verdict(value) => (value.word().to_owned(), None),
        ActionKind::Return => ("return".to_owned(), None),
        ActionKind::Redirect { target, otherwise } => {
            let target = match target {
                RedirectTarget::Device(name) => string(name),
                RedirectTarget::Map(map) => path(map),
            };
            (format!("redirect {target}"), otherwise.as_deref())
        }
        ActionKind::ToCpu { cpu, otherwise } => (format!("to cpu {}", expr(cpu)), otherwise.as_deref()),
        ActionKind::ToXsk { otherwise } => ("to xsk".to_owned(), otherwise.as_deref()),
        ActionKind::Apply { chain } => (format!("apply {}", path(chain)), None),
        ActionKind::Count { counter } => (format!("count {}", path(counter)), None),
        ActionKind::Limit { meter, otherwise } => (format!("limit {}", path(meter)), otherwise.as_deref()),
        ActionKind::Add { key, set, lifetime: time, otherwise } => {
            (format!("add {} to {}{}", expr(key), path(set), lifetime(*time)), otherwise.as_deref())
        }
        ActionKind::Remove { key, set } => (format!("remove {} from {}", expr(key), path(set)), None),
        ActionKind::Set { target, value, lifetime: time, otherwise } => {
            (format!("set {} = {}{}", path(target), expr(value), lifetime(*time)), otherwise.as_deref())
        }
        ActionKind::Swap { left, right } => (format!("swap {} with {}", path(left), path(right)), None),
        ActionKind::Push { layer: value } => (format!("push {}", layer(value)), None),
        ActionKind::Pop { what } => (format!("pop {}", what.text), None),
        ActionKind::Mark { value } => (format!("mark {}", expr(value)), None),
        ActionKind::Sample { numerator, denominator, first, max } => {
            let first = with(" first ", first.as_ref(), |bytes| format!("{} bytes", number(bytes)));
            (format!("sample {numerator}/{denominator}{first}{}", with(" max ", max.as_ref(), rate)), None)
        }
    };
    out.nest(text, |out| {
        if let Some(Else { actions: list, .. }) = otherwise {
            out.nest("else", |out| actions(out, list));
        }
    });
}

fn lifetime(time: Option<Duration>) -> String {
    with(" for ", time.as_ref(), |time| duration(*time))
}

pub(super) fn steps(out: &mut Out, steps: &[Step]) {
    for step in steps {
        let at = with("at ", step.at.as_ref(), |time| format!("{} ", duration(*time)));
        out.line(format!("{at}{}", step_text(&step.kind)));
    }
}

fn step_text(kind: &StepKind) -> String {
    match kind {
        StepKind::Send { repeat, every, packet: sent } => {
            let repeat = with("repeat ", repeat.as_ref(), |(times, _)| format!("{times} "));
            let every = with("every ", every.as_ref(), |time| format!("{} ", duration(*time)));
            format!("{repeat}{every}send {}", packet(sent))
        }
        StepKind::Expect { outcomes, with: leaves } => {
            format!("expect {}{}", list(outcomes, outcome), with(" with ", leaves.as_ref(), packet))
        }
        StepKind::Check(condition) => format!("check {}", expr(condition)),
        StepKind::Add { key, set, lifetime: time } => {
            format!("add {} to {}{}", expr(key), path(set), lifetime(*time))
        }
        StepKind::Remove { key, set } => format!("remove {} from {}", expr(key), path(set)),
        StepKind::Set { target, value } => format!("set {} = {}", path(target), expr(value)),
        StepKind::Replay { file } => format!("replay {} snapshot", string(file)),
    }
}

fn outcome(outcome: &Outcome) -> String {
    let count = with("", outcome.count.as_ref(), |count| format!("{count} "));
    let verdict = match outcome.verdict {
        OutcomeVerdict::Verdict(value) => value.word(),
        OutcomeVerdict::Return => "return",
    };
    format!("{count}{verdict}{}", with(" by ", outcome.by.as_ref(), path))
}

fn packet(packet: &Packet) -> String {
    packet.layers.iter().map(layer).collect::<Vec<_>>().join(" / ")
}

fn layer(layer: &Layer) -> String {
    match layer.args.as_slice() {
        [] => layer.name.text.clone(),
        args => format!("{}({})", layer.name.text, list(args, arg)),
    }
}

fn arg(arg: &Arg) -> String {
    match &arg.kind {
        ArgKind::Named { name, value } => format!("{}: {}", name.text, expr(value)),
        ArgKind::List { name, layers } => format!("{}: [{}]", name.text, list(layers, layer)),
        ArgKind::Value(value) => expr(value),
    }
}
