//! Forms of operands, and what is known of the packet where an operand has one form. What is known is not asked again:
//! `ip.ttl + ip.ttl` has two forms, not four.

use pktc_diagnostics::{Diagnostic, Span, codes};

use super::RuleBuilder;
use crate::rule::{Cond, ItemId, Test};

/// Forms that the operands of one comparison may have together. Each is a piece of the program.
const MOST_FORMS: usize = 4096;

/// How many forms the operands of a comparison have so far.
pub(super) struct Forms {
    of: Span,
    count: usize,
}

impl Forms {
    pub(super) fn none(of: Span) -> Forms {
        Forms { of, count: 0 }
    }
}

impl RuleBuilder<'_> {
    /// What `of` comes to where `item` is there; false elsewhere.
    pub(super) fn given(&mut self, item: ItemId, span: Span, of: impl FnOnce(&mut Self) -> Cond) -> Cond {
        match self.known(item) {
            Some(true) => of(self),
            Some(false) => Cond::Const(false),
            None => {
                let rest = self.knowing(&[(item, true)], of);
                Cond::and([Cond::present(item, span), rest])
            }
        }
    }

    /// What `of` comes to for the first of `choices` whose items are all there; false where there is none.
    pub(super) fn first_of<T>(
        &mut self,
        choices: impl IntoIterator<Item = (Vec<ItemId>, T)>,
        span: Span,
        mut of: impl FnMut(&mut Self, T) -> Cond,
    ) -> Cond {
        let before = self.known.len();
        let mut found = Vec::new();
        for (items, choice) in choices {
            if items.iter().any(|&item| self.known(item) == Some(false)) {
                continue;
            }
            let asked: Vec<ItemId> = items.into_iter().filter(|&item| self.known(item).is_none()).collect();
            let there: Vec<(ItemId, bool)> = asked.iter().map(|&item| (item, true)).collect();
            let value = self.knowing(&there, |this| of(this, choice));
            found.push((Cond::and(asked.iter().map(|&item| Cond::present(item, span))), value));
            match *asked {
                [] => break,
                [item] => self.known.push((item, false)),
                _ => {}
            }
        }
        self.known.truncate(before);
        found
            .into_iter()
            .rev()
            .fold(Cond::Const(false), |rest, (there, value)| Cond::choose(there, value, rest))
    }

    /// What `of` comes to where `there` holds, and where it does not.
    pub(super) fn either(&mut self, there: Cond, mut of: impl FnMut(&mut Self, bool) -> Cond) -> Cond {
        let item = match there {
            Cond::Const(holds) => return of(self, holds),
            Cond::Test(Test::Present(item), _) => Some(item),
            _ => None,
        };
        let fact = |is| item.map(|item| (item, is));
        let where_it_holds = self.knowing(fact(true).as_slice(), |this| of(this, true));
        let elsewhere = self.knowing(fact(false).as_slice(), |this| of(this, false));
        Cond::choose(there, where_it_holds, elsewhere)
    }

    fn known(&self, item: ItemId) -> Option<bool> {
        self.known.iter().find(|(known, _)| *known == item).map(|&(_, is)| is)
    }

    fn knowing<T>(&mut self, facts: &[(ItemId, bool)], of: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.known.len();
        self.known.extend(facts);
        let result = of(self);
        self.known.truncate(before);
        result
    }

    /// Begins with a comparison, if it is not part of an operand itself.
    pub(super) fn count_forms_anew(&mut self, comparison: Span) {
        if self.known.is_empty() {
            self.forms = Forms::none(comparison);
        }
    }

    /// Counts one more form; false where the comparison has too many.
    pub(super) fn one_more_form(&mut self) -> bool {
        self.forms.count += 1;
        if self.forms.count == MOST_FORMS {
            let title = "the operands of this comparison come in too many forms";
            let diagnostic =
                Diagnostic::error(codes::TOO_COMPLEX, title, self.forms.of, "written out, too large")
                    .with_note(
                        "each field that can lie in several places, and each `default`, doubles them at most",
                    )
                    .with_help("compare parts of it, in rules of their own or with `and` and `or`");
            self.diagnostics.push(diagnostic);
        }
        self.forms.count < MOST_FORMS
    }
}
