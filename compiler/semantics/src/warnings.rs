//! What compiles, but is probably not what was meant.

use pktc_diagnostics::{Diagnostic, Span, codes};

use crate::checker::Checker;
use crate::dump::scope_text;
use crate::graph::edges;
use crate::names::SymbolKind;
use crate::structure::walk;
use crate::typed::{
    Action, ActionKind, Expr, ExprKind, HeaderId, Index, Instance, NextKind, Stmt, Type, Verdict, XdpId,
};

impl Checker<'_> {
    /// Warns of what the user's files declare and nobody uses. A file without a program is a library: what it
    /// declares is for others.
    pub(crate) fn report_unused(&mut self) {
        let has_program: Vec<bool> = self
            .units
            .iter()
            .map(|unit| {
                unit.ast.decls.iter().any(|decl| matches!(decl.kind, pktc_syntax::ast::DeclKind::Xdp { .. }))
            })
            .collect();
        for id in 0..self.symbols.len() {
            let symbol = self.symbols[id];
            let is_reported = match symbol.kind {
                SymbolKind::Set(_)
                | SymbolKind::Counter(_)
                | SymbolKind::Const { .. }
                | SymbolKind::Def { .. }
                | SymbolKind::Chain(_) => true,
                SymbolKind::Header(_)
                | SymbolKind::Union(_)
                | SymbolKind::Enum(_)
                | SymbolKind::Later(_)
                | SymbolKind::Xdp(_) => false,
            };
            if self.used[id] || !is_reported || !has_program[symbol.unit] {
                continue;
            }
            let what = symbol.kind.describe();
            let title = format!("`{}` is never used", symbol.name.text);
            let diagnostic =
                Diagnostic::warning(codes::UNUSED, title, symbol.name.span, format!("{what} without use"))
                    .with_help("remove it, or use it in a rule");
            self.report(diagnostic);
        }
    }

    /// Warns of a user's header that no edge leads to.
    pub(crate) fn report_unreached_headers(&mut self) {
        let reached: Vec<HeaderId> = self
            .program
            .headers
            .values()
            .flat_map(|header| edges(header).map(|(target, _)| target.header))
            .collect();
        for id in 0..self.symbols.len() {
            let symbol = self.symbols[id];
            let SymbolKind::Header(header) = symbol.kind else { continue };
            if self.units[symbol.unit].is_std || reached.contains(&header) {
                continue;
            }
            let name = &symbol.name.text;
            let title = format!("nothing leads to the header `{name}`");
            let label = "it is in no packet";
            let diagnostic = Diagnostic::warning(codes::UNUSED, title, symbol.name.span, label)
                .with_help(format!("say what selects it: `bind udp.dport 4789 => {name};`"));
            self.report(diagnostic);
        }
    }

    /// Warns of a rule that drops by the presence of a transport header, where later fragments, which have none,
    /// pass by `default`.
    pub(crate) fn warn_of_later_fragments(&mut self, id: XdpId, body: &[Stmt]) {
        let passes = matches!(
            self.program.xdps[id].default.last(),
            Some(Action { kind: ActionKind::Verdict(Verdict::Pass), .. })
        );
        if !passes || self.asks_fragments(body) {
            return;
        }
        let mut found = Vec::new();
        self.drops_by_presence(body, &mut found);
        for (instance, span) in found {
            let Some(proto) = self.selecting_member(instance.header) else { continue };
            let (name, scope) = (&self.program.headers[instance.header].name, scope_text(instance.scope));
            let title = format!("later fragments of `{name}` packets pass by this rule");
            let label = format!("a later fragment holds no `{name}` header");
            let diagnostic = Diagnostic::warning(codes::LATER_FRAGMENTS, title, span, label)
                .with_help(format!("`{scope}ip.proto == {proto}` is true for every fragment"));
            self.report(diagnostic);
        }
    }

    fn drops_by_presence(&self, body: &[Stmt], found: &mut Vec<(Instance, Span)>) {
        for stmt in body {
            match stmt {
                Stmt::When { body, .. } => self.drops_by_presence(body, found),
                Stmt::Apply { .. } => {}
                Stmt::Rule(rule) => {
                    let drops = rule.actions.iter().any(|it| it.kind == ActionKind::Verdict(Verdict::Drop));
                    if let ExprKind::Present(instance) = rule.condition.kind
                        && instance.index == Index::At(0)
                        && drops
                    {
                        found.push((instance, rule.condition.span));
                    }
                }
            }
        }
    }

    /// Whether a rule asks about fragments: then the author thought of them.
    fn asks_fragments(&self, body: &[Stmt]) -> bool {
        body.iter().any(|stmt| match stmt {
            Stmt::Rule(rule) => self.reads_fragment(&rule.condition),
            Stmt::When { condition, body } => self.reads_fragment(condition) || self.asks_fragments(body),
            Stmt::Apply { .. } => true,
        })
    }

    fn reads_fragment(&self, expr: &Expr) -> bool {
        let mut found = false;
        walk(expr, &mut |part| found |= self.is_about_fragments(part));
        found
    }

    /// Whether it reads what tells fragments apart: a fragment header, `ipv4.mf`, `frag_off`, `ip.first_fragment`; or
    /// `ip.proto`, which later fragments have as well.
    fn is_about_fragments(&self, operand: &Expr) -> bool {
        let (header, field) = match operand.kind {
            ExprKind::Field { instance, field } => {
                let header = &self.program.headers[instance.header];
                (header.name.as_str(), header.fields[field].name.as_deref())
            }
            ExprKind::Present(instance) => (self.program.headers[instance.header].name.as_str(), None),
            ExprKind::UnionField { instance, field } => {
                ("", Some(self.program.unions[instance.union].fields[field].name.as_str()))
            }
            _ => return false,
        };
        header == "fragment" || field.is_some_and(|it| matches!(it, "mf" | "proto") || it.contains("frag"))
    }

    /// The member of `ip_proto` that selects a header, if only members of that enum do.
    fn selecting_member(&self, header: HeaderId) -> Option<&str> {
        let mut name = None;
        for (_, parent) in &self.program.headers {
            for next in &parent.next {
                let NextKind::By { value, edges } = &next.kind else { continue };
                for (number, _) in edges.iter().filter(|(_, target)| target.header == header) {
                    let Type::Enum(id) = value.ty else { return None };
                    let found = &self.program.enums[id];
                    if found.name != "ip_proto" {
                        return None;
                    }
                    name = found
                        .members
                        .iter()
                        .find(|(_, value)| value == number)
                        .map(|(name, _)| name.as_str());
                }
            }
        }
        name
    }
}
