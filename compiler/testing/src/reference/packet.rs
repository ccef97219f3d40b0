//! A parsed frame, and what conditions ask of it.

use std::ops::Range;

use pktc_semantics::typed::{
    BytesAsk, BytesOf, Expr, ExprKind, Index, Instance, Malformed, OptionAsk, OptionRef, PacketField,
    Program, Scope, Set, SetId, Type, UnionField, UnionFieldKind, UnionInstance,
};

use super::expression::{Operands, evaluate, holds, walk};
use super::layout::View;
use super::options::{self, List};
use super::parse::{Declaring, Extent, Node, parse, place_in_union};
use super::value::Operand;
use crate::engine::Env;

/// A frame with the headers that were selected in it.
pub(crate) struct Packet<'a> {
    pub(crate) program: &'a Program,
    pub(crate) frame: &'a [u8],
    pub(crate) env: &'a Env,
    /// Parents before children, earlier branches before later ones.
    pub(crate) nodes: Vec<Node>,
}

impl<'a> Packet<'a> {
    /// Parses `frame`.
    pub(crate) fn new(program: &'a Program, frame: &'a [u8], env: &'a Env) -> Self {
        let mut packet = Packet { program, frame, env, nodes: Vec::new() };
        parse(&mut packet);
        packet
    }

    /// The nodes from `index` outwards.
    pub(crate) fn path(&self, index: Option<usize>) -> impl Iterator<Item = &Node> {
        std::iter::successors(index, |&index| self.nodes[index].parent).map(|index| &self.nodes[index])
    }

    /// The header's bytes and all that may belong to it.
    pub(crate) fn view(&self, node: &Node) -> View<'_> {
        View {
            program: self.program,
            header: &self.program.headers[node.header],
            bytes: &self.frame[node.start..node.bound],
            length: node.extent.as_ref().map(|extent| extent.length),
        }
    }

    /// What the declaration of a present header reads.
    pub(crate) fn declaring(&self, node: &Node) -> Declaring<'_> {
        let content = node.extent.as_ref().map_or(0..0, |extent| extent.content.clone());
        Declaring { packet: self, scope: node.scope, view: self.view(node), content }
    }

    /// Bytes `from..to` of `content`; none if it ends before.
    pub(crate) fn slice(&self, content: &Range<usize>, from: u32, to: u32, ty: &Type) -> Option<Operand> {
        let bytes = self.frame[content.clone()].get(from as usize..to as usize)?;
        Operand::from_bytes(ty, bytes)
    }

    /// The value of an operand whose instances are relative to `scope`.
    pub(crate) fn operand(&self, expr: &Expr, scope: Scope) -> Option<Operand> {
        match &expr.kind {
            ExprKind::Field { instance, field } => {
                self.view(self.instance(*instance, scope)?.0).field(*field)
            }
            ExprKind::UnionField { instance, field } => self.union_field(*instance, *field, scope),
            ExprKind::Present(instance) => Some(Operand::truth(self.instance(*instance, scope).is_some())),
            ExprKind::UnionPresent(instance) => {
                Some(Operand::truth(self.union_instance(*instance, scope).is_some()))
            }
            ExprKind::Malformed(whose) => Some(Operand::truth(self.is_malformed(*whose, scope))),
            ExprKind::Truncated(instance) => {
                let truncated = self.instance(*instance, scope).is_some_and(|(_, extent)| extent.truncated);
                Some(Operand::truth(truncated))
            }
            ExprKind::Packet(field) => Some(Operand::Number(self.property(*field))),
            ExprKind::PayloadLength(instance) => {
                let (_, extent) = self.instance(*instance, scope)?;
                Some(Operand::Number(extent.content.len() as u64))
            }
            ExprKind::Payload(instance) => {
                let (_, extent) = self.instance(*instance, scope)?;
                Some(Operand::Bytes(self.frame[extent.content.clone()].to_vec()))
            }
            ExprKind::PayloadSlice { instance, from, to } => {
                let (_, extent) = self.instance(*instance, scope)?;
                self.slice(&extent.content, *from, *to, &expr.ty)
            }
            ExprKind::Option { option, ask } => self.option(*option, *ask, scope),
            ExprKind::OptionsMalformed(instance) => {
                let lists = self.lists(*instance, scope);
                Some(Operand::truth(lists.iter().any(|(_, list)| list.is_broken)))
            }
            ExprKind::Bytes { of, ask } => {
                let bytes = self.bytes_of(*of, scope)?;
                match ask {
                    BytesAsk::All => Some(Operand::Bytes(bytes.to_vec())),
                    BytesAsk::Length => Some(Operand::Number(bytes.len() as u64)),
                    BytesAsk::Slice { from, to } => {
                        Operand::from_bytes(&expr.ty, bytes.get(*from as usize..*to as usize)?)
                    }
                }
            }
            // The declaring header's, which `Declaring` answers, and operators, which are no operands.
            ExprKind::Own(_)
            | ExprKind::OwnPayload { .. }
            | ExprKind::Const(_)
            | ExprKind::Not(_)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Compare { .. }
            | ExprKind::In { .. }
            | ExprKind::Binary { .. }
            | ExprKind::Default { .. }
            | ExprKind::Tuple(_) => None,
        }
    }

    /// The option lists of a present header, with whose they are, as they lie in the packet.
    fn lists(&self, instance: Instance, base: Scope) -> Vec<(&Node, List)> {
        let Some((node, _)) = self.instance(instance, base) else { return Vec::new() };
        let header = &self.program.headers[instance.header];
        let mut holders = match header.options {
            Some(_) => vec![node],
            None => {
                let all = self.present().map(|(node, _)| node).filter(|other| other.scope == node.scope);
                all.filter(|other| header.options_from.contains(&other.header)).collect()
            }
        };
        holders.sort_by_key(|node| node.start);
        holders.into_iter().filter_map(|node| Some((node, self.list(node)?))).collect()
    }

    /// The option list of a present header. Those of members of a repeating union count together.
    fn list(&self, node: &Node) -> Option<List> {
        let declared = self.program.headers[node.header].options.as_ref()?;
        let repeating = self.program.unions.values().filter(|union| union.repeats.is_some());
        let unions: Vec<_> = repeating.filter(|union| union.members.contains(&node.header)).collect();
        let is_before = |other: &&Node| {
            let alike = unions.iter().any(|union| union.members.contains(&other.header));
            other.scope == node.scope && alike
        };
        let lists = self.path(node.parent).filter(is_before).filter_map(|other| self.list(other));
        let before = lists.map(|list| list.begun()).sum();
        Some(options::read(&self.view(node), declared, before))
    }

    fn option(&self, option: OptionRef, ask: OptionAsk, base: Scope) -> Option<Operand> {
        let lists = self.lists(option.instance, base);
        let mut all = lists.iter().flat_map(|(node, list)| list.options.iter().map(move |it| (*node, *it)));
        let found = all.find(|(_, found)| found.kind == option.kind);
        match ask {
            OptionAsk::Present => Some(Operand::truth(found.is_some())),
            OptionAsk::Length => found.map(|(_, found)| Operand::Number(found.length as u64)),
            OptionAsk::Value { list, option, field } => {
                let (node, found) = found?;
                let declared = self.program.headers[list].options.as_ref()?;
                options::value(&self.view(node), found, &declared.options[option], field)
            }
        }
    }

    fn bytes_of(&self, of: BytesOf, base: Scope) -> Option<&[u8]> {
        match of {
            BytesOf::Field { instance, field } => {
                let view = self.view(self.instance(instance, base)?.0);
                let (start, width) = view.bits(field)?;
                view.bytes.get(start / 8..(start + width) / 8)
            }
            BytesOf::Options(instance) => {
                options::list_bytes(&self.view(self.instance(instance, base)?.0)).map(|(_, bytes)| bytes)
            }
            BytesOf::UnionPayload(instance) => {
                let (_, extent) = self.union_instance(instance, base)?;
                Some(&self.frame[extent.content.clone()])
            }
        }
    }

    fn property(&self, field: PacketField) -> u64 {
        match field {
            PacketField::Length => self.frame.len() as u64,
            PacketField::Ifindex => u64::from(self.env.ifindex),
            PacketField::Queue => u64::from(self.env.queue),
        }
    }

    /// The present header that `instance` names.
    fn instance(&self, instance: Instance, base: Scope) -> Option<(&Node, &Extent)> {
        let scope = within(base, instance.scope);
        let candidates =
            self.present().filter(|(node, _)| node.header == instance.header && node.scope == scope);
        pick(candidates.map(|found| (found.0.place, found)), instance.index)
    }

    /// The present header that `instance` names.
    fn union_instance(&self, instance: UnionInstance, base: Scope) -> Option<(&Node, &Extent)> {
        let union = &self.program.unions[instance.union];
        if union.repeats.is_none() {
            let of = |&header| Instance { scope: instance.scope, header, index: instance.index };
            return union.members.iter().find_map(|member| self.instance(of(member), base));
        }
        let scope = within(base, instance.scope);
        let candidates =
            self.present().filter(|(node, _)| union.members.contains(&node.header) && node.scope == scope);
        let placed =
            candidates.map(|found| (place_in_union(self, found.0, self.program, instance.union), found));
        pick(placed, instance.index)
    }

    fn present(&self) -> impl Iterator<Item = (&Node, &Extent)> {
        self.nodes.iter().filter_map(|node| node.extent.as_ref().map(|extent| (node, extent)))
    }

    fn union_field(&self, instance: UnionInstance, field: usize, base: Scope) -> Option<Operand> {
        let UnionField { kind, when, .. } = &self.program.unions[instance.union].fields[field];
        let within = Within { packet: self, scope: within(base, instance.scope) };
        if !when.as_ref().is_none_or(|when| holds(when, &within)) {
            return None;
        }
        match kind {
            UnionFieldKind::Member(fields) => {
                let (node, _) = self.union_instance(instance, base)?;
                self.view(node).field(*fields.get(&node.header)?)
            }
            UnionFieldKind::Alternatives(alternatives) => {
                let chosen = alternatives.iter().find(|expr| self.has_all_headers(expr, within.scope))?;
                evaluate(chosen, &within)
            }
        }
    }

    /// Whether all headers that `expr` names are present.
    fn has_all_headers(&self, expr: &Expr, scope: Scope) -> bool {
        let mut all = true;
        walk(expr, &mut |part| match part.kind {
            ExprKind::Field { instance, .. }
            | ExprKind::Present(instance)
            | ExprKind::Truncated(instance)
            | ExprKind::PayloadLength(instance)
            | ExprKind::Payload(instance)
            | ExprKind::PayloadSlice { instance, .. }
            | ExprKind::Option { option: OptionRef { instance, .. }, .. }
            | ExprKind::OptionsMalformed(instance)
            | ExprKind::Bytes { of: BytesOf::Field { instance, .. } | BytesOf::Options(instance), .. } => {
                all &= self.instance(instance, scope).is_some();
            }
            ExprKind::UnionField { instance, .. }
            | ExprKind::Bytes { of: BytesOf::UnionPayload(instance), .. }
            | ExprKind::UnionPresent(instance) => {
                all &= self.union_instance(instance, scope).is_some();
            }
            _ => {}
        });
        all
    }

    fn is_malformed(&self, whose: Malformed, base: Scope) -> bool {
        let mut malformed = self.nodes.iter().filter(|node| node.extent.is_none());
        match whose {
            Malformed::Packet(scope) => {
                let scope = within(base, scope);
                let asked = self.program.malformed_headers(scope);
                malformed.any(|node| node.scope == scope && asked.contains(&node.header))
            }
            Malformed::Header(instance) => {
                let scope = within(base, instance.scope);
                malformed.any(|node| {
                    let is_asked = match instance.index {
                        // The bare name, and the innermost: what is malformed has nothing behind it.
                        Index::At(0) | Index::Last => true,
                        Index::At(place) => node.place == usize::from(place),
                    };
                    node.header == instance.header && node.scope == scope && is_asked
                })
            }
            Malformed::Union { scope, union } => {
                let scope = within(base, scope);
                let members = &self.program.unions[union].members;
                malformed.any(|node| members.contains(&node.header) && node.scope == scope)
            }
        }
    }
}

impl Operands for Packet<'_> {
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        self.operand(expr, Scope::default())
    }

    fn set(&self, id: SetId) -> Option<&Set> {
        self.program.sets.get(id)
    }
}

/// The packet, seen from the scope in which a union is used.
struct Within<'a> {
    packet: &'a Packet<'a>,
    scope: Scope,
}

impl Operands for Within<'_> {
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        self.packet.operand(expr, self.scope)
    }

    fn set(&self, id: SetId) -> Option<&Set> {
        self.packet.program.sets.get(id)
    }
}

/// `relative`, seen from `base`.
fn within(base: Scope, relative: Scope) -> Scope {
    Scope { inner: base.inner + relative.inner, quoted: base.quoted || relative.quoted }
}

/// The first at the place asked for.
fn pick<T>(candidates: impl Iterator<Item = (usize, T)>, index: Index) -> Option<T> {
    match index {
        Index::At(wanted) => {
            let mut candidates = candidates;
            candidates.find(|(place, _)| *place == usize::from(wanted)).map(|(_, found)| found)
        }
        Index::Last => {
            let deeper = |best: Option<(usize, T)>, next: (usize, T)| match best {
                Some(best) if best.0 >= next.0 => Some(best),
                _ => Some(next),
            };
            candidates.fold(None, deeper).map(|(_, found)| found)
        }
    }
}
