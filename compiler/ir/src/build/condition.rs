//! Conditions: presence, malformation, and atoms over operands.

use pktc_semantics::typed::{
    Expr, ExprKind, HeaderId, Index, Instance, Malformed, Scope, UnionId, UnionInstance,
};

use super::RuleBuilder;
use super::operand::Operand;
use crate::layout::condition_key;
use crate::rule::{Cond, Item, ItemId, Num, Part, Place, Suspects, Test};

impl RuleBuilder<'_> {
    /// `expr` as a condition; where it has no value, it is false.
    pub(super) fn condition(&mut self, expr: &Expr) -> Cond {
        self.count_forms_anew(expr.span);
        match &expr.kind {
            ExprKind::Not(inner) => Cond::negate(self.condition(inner)),
            ExprKind::And(parts) => Cond::and(self.conditions(parts)),
            ExprKind::Or(parts) => Cond::or(self.conditions(parts)),
            ExprKind::Present(instance) => self.present(*instance, expr),
            ExprKind::UnionPresent(instance) => self.union_present(*instance, expr),
            ExprKind::Malformed(who) => self.malformed(*who, expr),
            ExprKind::Compare { op, left, right } => self.compare(*op, left, right, expr.span),
            ExprKind::In { value, set, negated } => self.member(value, *set, *negated, expr.span),
            ExprKind::Const(_)
            | ExprKind::Field { .. }
            | ExprKind::UnionField { .. }
            | ExprKind::Own(_)
            | ExprKind::OwnPayload { .. }
            | ExprKind::Truncated(_)
            | ExprKind::Packet(_)
            | ExprKind::PayloadLength(_)
            | ExprKind::Payload(_)
            | ExprKind::PayloadSlice { .. }
            | ExprKind::Option { .. }
            | ExprKind::OptionsMalformed(_)
            | ExprKind::Bytes { .. }
            | ExprKind::Binary { .. }
            | ExprKind::Default { .. }
            | ExprKind::Tuple(_) => {
                let span = expr.span;
                self.operand(expr, &mut |this, operand| match operand {
                    Operand::Cond(cond) => cond,
                    Operand::Num(num) => this.non_zero(num, span),
                    Operand::Ipv4(_)
                    | Operand::Ipv6(_)
                    | Operand::Mac(..)
                    | Operand::Bytes(_)
                    | Operand::Text(_)
                    | Operand::Varying(_)
                    | Operand::Tuple(_) => {
                        this.not_yet("this as a condition", span);
                        Cond::Const(false)
                    }
                })
            }
        }
    }

    fn conditions(&mut self, parts: &[Expr]) -> Vec<Cond> {
        parts.iter().map(|part| self.condition(part)).collect()
    }

    fn non_zero(&mut self, num: Num, span: pktc_diagnostics::Span) -> Cond {
        match num {
            Num::Const(value) => Cond::Const(value != 0),
            num => Cond::negate(self.num_equal(num, Num::Const(0), span)),
        }
    }

    fn present(&mut self, instance: Instance, at: &Expr) -> Cond {
        // There is a last one where there is a first one.
        let first = Instance { index: Index::At(0), ..instance };
        let item = self.header_item(instance).or_else(|| self.header_item(first));
        item.map_or(Cond::Const(false), |item| Cond::present(item, at.span))
    }

    /// The item "`instance` is present"; `None` for the last of a repeated header.
    pub(super) fn header_item(&mut self, instance: Instance) -> Option<ItemId> {
        let place = self.place(instance)?;
        Some(self.item(format!("header {place:?}"), Item::Header(place)))
    }

    /// Where `instance` is; `None` for the last of a header that repeats by itself.
    pub(super) fn place(&self, instance: Instance) -> Option<Place> {
        let index = match instance.index {
            Index::At(index) => index,
            Index::Last if self.in_group(instance.header) => Place::LAST,
            Index::Last => return None,
        };
        Some(Place { scope: instance.scope, header: instance.header, index })
    }

    /// Whether `header` is a member of a repeating union.
    pub(super) fn in_group(&self, header: HeaderId) -> bool {
        self.program.unions.values().any(|union| union.repeats.is_some() && union.members.contains(&header))
    }

    pub(super) fn item(&mut self, key: String, item: Item) -> ItemId {
        *self.item_keys.entry(key).or_insert_with(|| self.items.push(item))
    }

    pub(super) fn part_item(&mut self, part: Part) -> ItemId {
        let when = part.when.as_ref().map(condition_key);
        let key = format!("part {:?} {when:?} {} {:?}", part.place, part.end, part.reach);
        self.item(key, Item::Part(part))
    }

    fn union_present(&mut self, instance: UnionInstance, at: &Expr) -> Cond {
        let union = &self.program.unions[instance.union];
        if union.repeats.is_some() {
            let index = match instance.index {
                Index::At(index) => index,
                Index::Last => 0,
            };
            let item = self.member_item(instance.scope, instance.union, index);
            return Cond::present(item, at.span);
        }
        let members = union.members.clone();
        Cond::or(members.into_iter().map(|header| {
            let member = Instance { scope: instance.scope, header, index: Index::At(0) };
            self.present(member, at)
        }))
    }

    pub(super) fn member_item(&mut self, scope: Scope, union: UnionId, index: u8) -> ItemId {
        self.item(format!("member {scope:?} {union} {index}"), Item::Member { scope, union, index })
    }

    fn malformed(&mut self, who: Malformed, at: &Expr) -> Cond {
        let (scope, mut headers, index) = match who {
            Malformed::Packet(scope) => (scope, self.program.malformed_headers(scope).to_vec(), None),
            Malformed::Header(instance) => {
                (instance.scope, vec![instance.header], self.malformed_index(instance, at))
            }
            Malformed::Union { scope, union } => (scope, self.program.unions[union].members.clone(), None),
        };
        headers.sort_unstable();
        Cond::Test(Test::Malformed(Suspects { scope, headers, index }), at.span)
    }

    /// Which of its kind `instance.malformed` asks for: the bare name asks for any, and as nothing follows a
    /// malformed header, so does the innermost.
    fn malformed_index(&mut self, instance: Instance, at: &Expr) -> Option<u8> {
        match instance.index {
            Index::At(0) | Index::Last => None,
            Index::At(index) => {
                if self.in_group(instance.header) {
                    self.not_yet("whether one of several members of a union is malformed", at.span);
                }
                Some(index)
            }
        }
    }
}
