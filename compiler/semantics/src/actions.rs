//! What rules do.

use pktc_diagnostics::{Diagnostic, Span, codes};
use pktc_syntax::ast::{self, ActionKind as Ast, Path, PathStepKind, Verdict};

use crate::blocks::Block;
use crate::checker::Checker;
use crate::names::{Space, SymbolKind};
use crate::suggest::nearest;
use crate::typed::{Action, ActionKind, CounterId};

impl<'a> Checker<'a> {
    /// Checks a list of actions; those with mistakes are left out.
    pub(crate) fn actions(&mut self, actions: &'a [ast::Action], block: &Block<'a>) -> Vec<Action> {
        let mut typed: Vec<Action> = Vec::new();
        for action in actions {
            if let Some(last) = typed.last()
                && matches!(last.kind, ActionKind::Verdict(_) | ActionKind::Return)
            {
                self.behind_verdict(action.span, last.span);
            }
            if let Some(kind) = self.action(action, block) {
                typed.push(Action { kind, span: action.span });
            }
        }
        typed
    }

    fn behind_verdict(&mut self, span: Span, verdict: Span) {
        let title = format!("`{}` is never done", self.text(span));
        let diagnostic = Diagnostic::error(codes::ACTION_ORDER, title, span, "behind a verdict")
            .with_label(verdict, "this ends the list")
            .with_help("a verdict stands last: `count rest, drop`");
        self.report(diagnostic);
    }

    fn action(&mut self, action: &'a ast::Action, block: &Block<'a>) -> Option<ActionKind> {
        let later = match &action.kind {
            Ast::Verdict(Verdict::Redirect) => "`redirect`",
            Ast::Verdict(verdict) => return Some(ActionKind::Verdict(*verdict)),
            Ast::Return => return self.return_action(action.span, block),
            Ast::Apply { chain } => {
                return self.chain_named(chain, block).map(ActionKind::Apply);
            }
            Ast::Count { counter } => {
                return self.counter(counter, action.span, block).map(ActionKind::Count);
            }
            Ast::Redirect { .. } => "`redirect`",
            Ast::ToCpu { .. } => "`to cpu`",
            Ast::ToXsk { .. } => "`to xsk`",
            Ast::Limit { .. } => "`limit`",
            Ast::Add { .. } => "`add`",
            Ast::Remove { .. } => "`remove`",
            Ast::Set { .. } => "`set`",
            Ast::Swap { .. } => "`swap`",
            Ast::Push { .. } => "`push`",
            Ast::Pop { .. } => "`pop`",
            Ast::Mark { .. } => "`mark`",
            Ast::Sample { .. } => "`sample`",
        };
        self.not_yet(later, action.span);
        None
    }

    fn return_action(&mut self, span: Span, block: &Block<'a>) -> Option<ActionKind> {
        if block.is_chain {
            return Some(ActionKind::Return);
        }
        let title = "there is no chain to return from";
        let diagnostic = Diagnostic::error(codes::ACTION_ORDER, title, span, "not in a chain")
            .with_help("a program ends with a verdict: `pass`, `drop`, `abort` or `tx`");
        self.report(diagnostic);
        None
    }

    fn counter(&mut self, path: &'a Path, span: Span, block: &Block<'a>) -> Option<CounterId> {
        let head = &path.head;
        let (found, name) = match path.steps.as_slice() {
            [] => (self.lookup(Space::Value, block.unit, &head.text), head),
            [ast::PathStep { kind: PathStepKind::Dot(name), .. }]
                if self.is_library(block.unit, &head.text) =>
            {
                (self.lookup_in_library(Space::Value, block.unit, &head.text, &name.text), name)
            }
            _ => {
                self.not_yet("`count` with a key", span);
                return None;
            }
        };
        match found.map(|id| self.symbols[id].kind) {
            Some(SymbolKind::Counter(id)) => Some(id),
            Some(SymbolKind::Later(_)) => None,
            Some(kind) => {
                let title = format!("`{}` is {}, not a counter", name.text, kind.describe());
                self.report(Diagnostic::error(
                    codes::WRONG_NAME,
                    title,
                    name.span,
                    "`count` takes a counter",
                ));
                None
            }
            None => {
                let library = (!path.steps.is_empty()).then_some(head.text.as_str());
                if self.may_be_unread(block.unit, library) {
                    return None;
                }
                let known =
                    self.visible(Space::Value, block.unit, |kind| matches!(kind, SymbolKind::Counter(_)));
                let near = nearest(&name.text, known);
                self.unknown(&format!("counter `{}`", name.text), name.span, near);
                None
            }
        }
    }
}
