//! Random conditions, with constants from a packet.

use pktc_semantics::typed::{HeaderId, Program, Type};

use super::constant::Constant;
use super::dice::{Dice, ones};
use super::operand::Operand;
use super::sketch::Sketch;
use super::source::Condition;

/// What a set's elements are, so that a second condition can use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Numbers of so many bits.
    Numbers(u32),
    Macs,
    /// Of either family.
    Addresses,
    /// Strings of so many bits.
    Bytes(u32),
}

/// Draws the parts of one program.
#[derive(Debug)]
pub(super) struct Drawer<'a> {
    pub(super) program: &'a Program,
    pub(super) dice: Dice,
    /// Headers that are asked for more often.
    pub(super) theme: Vec<HeaderId>,
    /// Packets that constants are taken from.
    pub(super) anchors: &'a [Sketch<'a>],
    /// What conditions need to be declared.
    pub(super) declarations: Vec<String>,
    /// Operands that a `when` around makes certain.
    pub(super) certain: Vec<Operand>,
    sets: Vec<(Held, String)>,
    names: usize,
}

impl<'a> Drawer<'a> {
    pub(super) fn new(
        program: &'a Program,
        theme: Vec<HeaderId>,
        anchors: &'a [Sketch<'a>],
        dice: Dice,
    ) -> Self {
        let (declarations, certain, sets) = (Vec::new(), Vec::new(), Vec::new());
        Drawer { program, dice, theme, anchors, declarations, certain, sets, names: 0 }
    }

    /// A new name that starts with `prefix`.
    pub(super) fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// A condition; `depth` bounds how far it nests.
    pub(super) fn condition(&mut self, depth: usize, anchor: &Sketch<'_>) -> Condition {
        let shape =
            if depth == 0 { 'a' } else { self.dice.weighted(&[(46, 'a'), (28, '&'), (13, '|'), (13, '!')]) };
        match shape {
            '&' => Condition::All(self.parts(depth, anchor)),
            '|' => Condition::Any(self.parts(depth, anchor)),
            '!' => Condition::Not(Box::new(self.condition(depth - 1, anchor))),
            _ => self.atom(anchor),
        }
    }

    fn parts(&mut self, depth: usize, anchor: &Sketch<'_>) -> Vec<Condition> {
        (0..self.dice.between(2, 3)).map(|_| self.condition(depth - 1, anchor)).collect()
    }

    fn atom(&mut self, anchor: &Sketch<'_>) -> Condition {
        let kinds = [
            (40, 't'),
            (10, 'p'),
            (7, 'm'),
            (8, 'f'),
            (9, '+'),
            (6, 'd'),
            (5, '2'),
            (8, 'D'),
            (4, '*'),
            (9, '!'),
            (1, 'c'),
        ];
        let text = match self.dice.weighted(&kinds) {
            'p' => self.presence(anchor),
            'm' => self.malformed(anchor),
            'f' => self.flag(anchor),
            '+' => {
                let number = self.number(anchor);
                let computed = self.computed(&number, anchor);
                self.test(&computed)
            }
            'd' => {
                let operand = self.operand(anchor);
                // A choice between strings that are no numbers is for a later version.
                let is_long = operand.ty == Type::Bytes && operand.sample.bits > 64;
                let defaulted = if is_long { operand } else { self.defaulted(&operand, anchor) };
                self.test(&defaulted)
            }
            '2' => self.two_fields(anchor),
            'D' => self.definition(anchor),
            '*' => self.any(anchor),
            '!' => return self.negative(anchor),
            'c' => (*self.dice.pick(&["true", "false"]).unwrap_or(&"true")).to_owned(),
            _ => {
                let operand = self.operand(anchor);
                self.test(&operand)
            }
        };
        Condition::Atom(text)
    }

    /// A header or union that is there.
    fn presence(&mut self, anchor: &Sketch<'_>) -> String {
        if self.dice.chance(30) {
            let unions: Vec<_> = self.program.unions.values().collect();
            if let Some(union) = self.dice.pick(&unions) {
                let index = self.dice.below(union.repeats.unwrap_or(1) as usize);
                return if index == 0 { union.name.clone() } else { format!("{}[{index}]", union.name) };
            }
        }
        match self.dice.pick(&anchor.layers) {
            Some(layer) if self.dice.chance(70) => self.instance_text(layer.header, layer.index),
            _ => {
                let header = self.any_header();
                let repeats = self.program.headers[header].repeats as usize;
                let index = self.dice.below(repeats) as u8;
                self.instance_text(header, index)
            }
        }
    }

    /// Something that does not fit, or claims too much.
    fn malformed(&mut self, anchor: &Sketch<'_>) -> String {
        let layer = self.dice.pick(&anchor.layers).map(|layer| layer.header);
        let header =
            if self.dice.chance(50) { self.any_header() } else { layer.unwrap_or(self.program.root) };
        let declared = &self.program.headers[header];
        match self.dice.below(4) {
            0 => "malformed".into(),
            1 => {
                let unions: Vec<_> = self.program.unions.values().collect();
                self.dice
                    .pick(&unions)
                    .map_or("malformed".into(), |union| format!("{}.malformed", union.name))
            }
            2 if !declared.claims.is_empty() => format!("{}.truncated", declared.name),
            _ => format!("{}.malformed", declared.name),
        }
    }

    /// A one-bit field, or a union's field that is a condition.
    fn flag(&mut self, anchor: &Sketch<'_>) -> String {
        let mut flags = Vec::new();
        for layer in &anchor.layers {
            let header = &self.program.headers[layer.header];
            for field in header.fields.iter().filter(|field| field.bits == 1) {
                flags.extend(field.name.as_ref().map(|name| format!("{}.{name}", header.name)));
            }
        }
        for union in self.program.unions.values() {
            let conditions = union.fields.iter().filter(|field| field.ty == Type::Bool);
            flags.extend(conditions.map(|field| format!("{}.{}", union.name, field.name)));
        }
        self.dice.pick(&flags).cloned().unwrap_or_else(|| "eth".into())
    }

    /// `a == b`, of two fields of one type.
    fn two_fields(&mut self, anchor: &Sketch<'_>) -> String {
        let left = self.operand(anchor);
        let is_address = |ty: &Type| matches!(ty, Type::Ipv4 | Type::Ipv6 | Type::Ip);
        for _ in 0..20 {
            let right = self.operand(anchor);
            let numbers = left.is_number() && right.is_number();
            let addresses = is_address(&left.ty) && is_address(&right.ty);
            let same = left.ty == right.ty && left.sample.bits == right.sample.bits;
            if right.text != left.text && (numbers || addresses || same) {
                let op = if numbers { self.dice.pick(&["==", "<", "<=", ">", ">="]) } else { None };
                return format!("{} {} {}", left.text, op.unwrap_or(&"=="), right.text);
            }
        }
        self.test(&left)
    }

    /// A comparison with a constant, or a membership.
    pub(super) fn test(&mut self, operand: &Operand) -> String {
        if self.dice.chance(40) { self.membership(operand, "in") } else { self.comparison(operand) }
    }

    fn comparison(&mut self, operand: &Operand) -> String {
        let sample = &operand.sample;
        let op = match operand.is_number() {
            true => self.dice.weighted(&[(8, "=="), (2, "<"), (2, "<="), (2, ">"), (2, ">=")]),
            false => "==",
        };
        let constant = match op {
            "<" | "<=" if self.dice.chance(60) => {
                let more = self.dice.bits((sample.bits / 2).max(1));
                Constant { value: sample.value.saturating_add(more).min(ones(sample.bits)), ..sample.clone() }
            }
            ">" | ">=" if self.dice.chance(60) => {
                let less = self.dice.bits((sample.bits / 2).max(1));
                Constant { value: sample.value.saturating_sub(less), ..sample.clone() }
            }
            _ => sample.near(&mut self.dice),
        };
        let constant = self.constant(&constant);
        if self.dice.chance(12) {
            let mirrored = match op {
                "<" => ">",
                "<=" => ">=",
                ">" => "<",
                ">=" => "<=",
                other => other,
            };
            return format!("{constant} {mirrored} {}", operand.text);
        }
        format!("{} {op} {constant}", operand.text)
    }

    /// A constant as it is written, or by a name.
    fn constant(&mut self, constant: &Constant) -> String {
        if constant.ty == Type::Bytes || !self.dice.chance(10) {
            return constant.text(self.program, &mut self.dice);
        }
        let name = self.name("k");
        // Without its type a member of an enum is not known.
        let ty = type_name(self.program, &constant.ty);
        let has_type = matches!(constant.ty, Type::Enum(_)) || self.dice.chance(50);
        let ty = ty.filter(|_| has_type).map_or(String::new(), |ty| format!(": {ty}"));
        let text = constant.text(self.program, &mut self.dice);
        self.declarations.push(format!("const {name}{ty} = {text};"));
        name
    }

    fn membership(&mut self, operand: &Operand, word: &str) -> String {
        let Operand { text, sample, .. } = operand;
        let is_address = matches!(sample.ty, Type::Mac | Type::Ipv4 | Type::Ipv6);
        let set = match self.dice.below(10) {
            0 | 1 if is_address => {
                let length = self.dice.between(0, sample.bits as usize) as u32;
                let prefix = sample.prefix(self.program, length, &mut self.dice);
                if self.dice.chance(25) {
                    let name = self.name("net");
                    self.declarations.push(format!("const {name} = {prefix};"));
                    name
                } else {
                    prefix
                }
            }
            2 if operand.is_number() => {
                let low = self.dice.bits(sample.bits.min(6)).min(sample.value);
                let high = self.dice.bits(sample.bits.min(6)).min(ones(sample.bits) - sample.value);
                format!("{}-{}", sample.value - low, sample.value + high)
            }
            3..=6 => self.named_set(operand),
            _ => {
                let elements = self.elements(operand, true);
                format!("{{ {} }}", elements.join(", "))
            }
        };
        format!("{text} {word} {set}")
    }

    fn named_set(&mut self, operand: &Operand) -> String {
        let held = match operand.sample.ty {
            Type::Mac => Held::Macs,
            Type::Ipv4 | Type::Ipv6 => Held::Addresses,
            Type::Bytes => Held::Bytes(operand.sample.bits),
            _ => Held::Numbers(operand.sample.bits),
        };
        let known: Vec<String> =
            self.sets.iter().filter(|(it, _)| *it == held).map(|(_, name)| name.clone()).collect();
        if let Some(name) = self.dice.pick(&known)
            && self.dice.chance(30)
        {
            return name.clone();
        }
        let name = self.name("s");
        let ty = match operand.ty {
            Type::Enum(_) => type_name(self.program, &operand.ty),
            _ if held == Held::Addresses => Some("ip_addr".to_owned()),
            _ => type_name(self.program, &operand.sample.ty),
        };
        let has_type = matches!(operand.ty, Type::Enum(_)) || self.dice.chance(40);
        let ty = ty.filter(|_| has_type).map_or(String::new(), |ty| format!(": {ty}"));
        let elements = self.elements(operand, false).join(", ");
        self.declarations.push(format!("set {name}{ty} = {{ {elements} }};"));
        self.sets.push((held, name.clone()));
        name
    }

    /// Elements of which the operand's value may be one; `few` where they are to be read within a rule.
    fn elements(&mut self, operand: &Operand, few: bool) -> Vec<String> {
        let most = if few { 4 } else { self.dice.weighted(&[(9, 8), (1, 60)]) };
        let mut elements = Vec::new();
        for at in 0..self.dice.between(1, most) {
            let sample = if at == 0 || self.dice.chance(50) {
                operand.sample.clone()
            } else {
                self.stranger(&operand.sample)
            };
            elements.push(sample.element(self.program, &mut self.dice));
        }
        elements.sort();
        elements.dedup();
        elements
    }

    /// Another value of the kind; an address may be of the other family.
    fn stranger(&mut self, sample: &Constant) -> Constant {
        let ty = match sample.ty {
            Type::Ipv4 | Type::Ipv6 if self.dice.chance(40) => {
                if self.dice.chance(50) {
                    Type::Ipv4
                } else {
                    Type::Ipv6
                }
            }
            _ => sample.ty.clone(),
        };
        let value = self.dice.bits(128);
        match ty {
            Type::Bytes => Constant::bytes(sample.bits / 8, value),
            ty => Constant::new(self.program, ty, value),
        }
    }

    /// A use of a definition, which is declared for it.
    fn definition(&mut self, anchor: &Sketch<'_>) -> String {
        let name = self.name("d");
        let operand = self.operand(anchor);
        let parameter = type_name(self.program, &operand.ty);
        match (self.dice.below(4), parameter) {
            (0, Some(ty)) if operand.is_number() => {
                let other = self.number(anchor);
                let sum = operand.sample.value.saturating_add(other.sample.value) as u64;
                self.declarations.push(format!("def {name}(a: {ty}, b: u64) = a + b >= {sum};"));
                format!("{name}({}, {})", operand.text, other.text)
            }
            (0 | 1, Some(ty)) => {
                let parameter = Operand { text: "a".into(), ..operand.clone() };
                let body = self.test(&parameter);
                self.declarations.push(format!("def {name}(a: {ty}) = {body};"));
                format!("{name}({})", operand.text)
            }
            (2, _) => {
                let number = self.number(anchor);
                let computed = self.computed(&number, anchor);
                self.declarations.push(format!("def {name} = {};", computed.text));
                self.test(&Operand { text: name, ..computed })
            }
            _ => {
                let body = self.condition(1, anchor);
                self.declarations.push(format!("def {name} = {body};"));
                name
            }
        }
    }

    /// Any of a repeated header's instances.
    fn any(&mut self, anchor: &Sketch<'_>) -> String {
        for _ in 0..50 {
            let operand = self.operand(anchor);
            let Some((name, field)) = operand.text.split_once('.') else { continue };
            let name = name.split('[').next().unwrap_or(name).to_owned();
            let headers = self.program.headers.values().map(|it| (&it.name, it.repeats));
            let unions = self.program.unions.values().map(|it| (&it.name, it.repeats.unwrap_or(1)));
            let is_repeated = headers.chain(unions).any(|(it, repeats)| *it == name && repeats > 1);
            if is_repeated && !operand.is_sum {
                let text = format!("{name}[any].{field}");
                return self.test(&Operand { text, ..operand });
            }
        }
        self.presence(anchor)
    }

    /// `!=` or `not in`, where the operand is certain.
    fn negative(&mut self, anchor: &Sketch<'_>) -> Condition {
        if let Some(operand) = self.dice.pick(&self.certain).cloned()
            && self.dice.chance(60)
        {
            return Condition::Atom(self.difference(&operand));
        }
        let operand = self.operand(anchor);
        let Some(guard) = operand.guard.clone() else { return Condition::Atom(self.test(&operand)) };
        let operand = if operand.is_number() && self.dice.chance(20) {
            let computed = self.computed(&operand, anchor);
            if computed.guard.is_some() && !computed.text.contains('.') { computed } else { operand }
        } else {
            operand
        };
        let mut parts = vec![Condition::Atom(guard), Condition::Atom(self.difference(&operand))];
        if self.dice.chance(30) {
            parts.reverse();
        }
        Condition::All(parts)
    }

    fn difference(&mut self, operand: &Operand) -> String {
        if self.dice.chance(50) {
            return self.membership(operand, "not in");
        }
        let constant = operand.sample.near(&mut self.dice);
        let constant = self.constant(&constant);
        format!("{} != {constant}", operand.text)
    }
}

/// The type as it is written; none for bytes, whose number is part of it.
fn type_name(program: &Program, ty: &Type) -> Option<String> {
    match ty {
        Type::Bytes | Type::Tuple(_) => None,
        _ => Some(program.type_text(ty)),
    }
}
