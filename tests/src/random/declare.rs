//! Random header declarations: a user's own protocols, behind what stdlib has.

use super::dice::Dice;

/// Widths of the fields that together form whole bytes.
const SHAPES: [&[u32]; 9] = [&[8], &[16], &[32], &[4, 4], &[1, 7], &[3, 13], &[1, 1, 2, 4], &[48], &[12, 20]];
/// Types of whole bytes that are no numbers.
const WIDE: [&str; 5] = ["mac_addr", "ipv4_addr", "ipv6_addr", "bytes[3]", "ip_proto"];

/// Declares one or two headers, and binds them to ports, EtherTypes or IP protocols that stdlib leaves alone.
pub(super) fn headers(dice: &mut Dice) -> Vec<String> {
    let mut declarations = Vec::new();
    for at in 0..dice.between(1, 2) {
        let name = format!("own{at}");
        declarations.push(header(&name, dice));
        declarations.push(bind(at, &name, dice));
        if at > 0 {
            declarations.push(format!("bind own0.kind {} => {name};", dice.between(0, 3)));
        }
    }
    declarations
}

fn bind(at: usize, name: &str, dice: &mut Dice) -> String {
    let port = 7000 + at;
    match dice.below(6) {
        0 => format!("bind ether_type {:#x} => {name};", 0x88b5 + at),
        1 => format!("bind ip_proto {} => {name};", 253 + at),
        2 => format!("bind tcp.port {port} => {name};"),
        3 => format!("bind udp.dport {port} => {name};"),
        4 => format!("bind udp.sport {port}, {} => {name};", port + 10),
        _ => format!("bind udp.port {port} => {name};"),
    }
}

fn header(name: &str, dice: &mut Dice) -> String {
    let mut fields = vec!["kind: u8".to_owned()];
    let mut parts = vec!["next by kind".to_owned()];
    let is_long = dice.chance(40);
    let claims = dice.chance(30);
    if is_long {
        fields.push("size: u8".into());
    }
    if claims {
        fields.push("total: u16".into());
    }
    plain_fields(&mut fields, dice);
    if dice.chance(20) {
        parts.push(format!("needs {}", dice.between(1, 2)));
    } else if dice.chance(50) {
        conditional_fields(&mut fields, dice);
    }
    if is_long {
        parts.push(format!("length size * {}", dice.pick(&[1, 2, 4]).unwrap_or(&1)));
    }
    if claims {
        parts.push((*dice.pick(&["claims total", "claims total when total != 0"]).unwrap_or(&"")).to_owned());
    }
    if dice.chance(30) {
        let valid = ["kind < 200", "kind & 0xc0 == 0", "kind != 7 or flag", "kind in { 0-9, 20-250 }"];
        parts.extend(dice.pick(&valid).map(|valid| format!("valid {valid}")));
        fields.push("flag: u1".into());
        fields.push("_: u7".into());
    }
    if dice.chance(15) {
        parts.push("repeats 3".into());
    }
    let lines = fields.iter().chain(&parts).map(|line| format!("    {line};\n"));
    format!("header {name} {{\n{}}}", lines.collect::<String>())
}

fn plain_fields(fields: &mut Vec<String>, dice: &mut Dice) {
    for group in 0..dice.between(1, 3) {
        if dice.chance(30) {
            fields.extend(dice.pick(&WIDE).map(|ty| format!("wide{group}: {ty}")));
            continue;
        }
        for (at, bits) in dice.pick(&SHAPES).into_iter().copied().flatten().enumerate() {
            fields.push(format!("part{group}_{at}: u{bits}"));
        }
    }
}

fn conditional_fields(fields: &mut Vec<String>, dice: &mut Dice) {
    let whens = ["kind & 1 == 1", "kind == 2", "kind in { 1, 3, 100-200 }", "kind > 1"];
    let types = ["u8", "u16", "u32", "ipv4_addr"];
    for at in 0..dice.between(1, 2) {
        if let (Some(ty), Some(when)) = (dice.pick(&types).copied(), dice.pick(&whens)) {
            fields.push(format!("some{at}: {ty} when {when}"));
        }
    }
}
