//! Options: their presence, lengths and values.

use pktc_diagnostics::Span;
use pktc_semantics::typed::{CompareOp, FieldIndex, Instance, OptionDecl, OptionRef};

use super::RuleBuilder;
use super::operand::Then;
use crate::layout::static_bit;
use crate::rule::{Cond, Item, ItemId, Num, Place, Slot, Test};

impl<'b> RuleBuilder<'b> {
    /// What `of` comes to where the option is there: given the header's place, and the option's item.
    pub(super) fn option(
        &mut self,
        option: OptionRef,
        span: Span,
        of: &mut dyn FnMut(&mut RuleBuilder<'b>, Place, ItemId) -> Cond,
    ) -> Cond {
        let OptionRef { instance, kind } = option;
        let (Some(header), Some(place)) = (self.header_item(instance), self.place(instance)) else {
            return self.last(instance, span, &mut |this, at| {
                this.option(OptionRef { instance: at, kind }, span, of)
            });
        };
        self.lists_are_known(instance, span);
        let item = self.item(format!("option {place:?} {kind}"), Item::Option { place, kind });
        self.given(header, span, |this| this.given(item, span, |this| of(this, place, item)))
    }

    /// A value that `declared` has in the option, if that is as long as it says.
    pub(super) fn option_value(
        &mut self,
        option: OptionRef,
        declared: &OptionDecl,
        field: FieldIndex,
        span: Span,
        then: Then<'_, 'b>,
    ) -> Cond {
        let (kind, bytes, field) = (option.kind, declared.bytes(), &declared.fields[field]);
        self.option(option, span, &mut |this, place, item| {
            let length = Num::Slot(this.slot(Slot::OptionLength { place, kind, item }));
            let right = Num::Const(u64::from(bytes));
            let is_whole = Cond::Test(Test::Compare { op: CompareOp::Equal, left: length, right }, span);
            let at = |offset, size| Slot::OptionBytes { place, kind, item, offset, size };
            let value = static_bit(field).and_then(|bit| this.field_operand(field, bit, bytes, &at));
            let Some(value) = value else {
                this.not_yet("a value of this width in an option", span);
                return Cond::Const(false);
            };
            let rest = then(this, value);
            Cond::and([is_whole, rest])
        })
    }

    /// Whether one of the header's option lists is broken.
    pub(super) fn options_malformed(&mut self, instance: Instance, span: Span) -> Cond {
        let (Some(header), Some(place)) = (self.header_item(instance), self.place(instance)) else {
            return self.last(instance, span, &mut |this, at| this.options_malformed(at, span));
        };
        self.lists_are_known(instance, span);
        let item = self.item(format!("broken options {place:?}"), Item::BrokenOptions(place));
        self.given(header, span, |_| Cond::present(item, span))
    }

    /// Lists of other headers are read where these come as members of a repeating union.
    fn lists_are_known(&mut self, instance: Instance, span: Span) {
        let header = &self.program.headers[instance.header];
        if header.options.is_none() && !header.options_from.iter().all(|&holder| self.in_group(holder)) {
            self.not_yet("options in the lists of headers that are no members of a repeating union", span);
        }
    }
}
