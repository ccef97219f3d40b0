//! What other tools and a second `pktc load` say of the object.

use crate::machine::{Object, json, metadata, output, pktc, run};
use crate::network::{INTERFACE, Pair};
use crate::traffic::Tool;

/// `pktc load` of another program names the one that is there and changes nothing; a newer version of that one takes
/// its place, and `pktc unload` takes it away, whoever loaded it.
pub(crate) fn busy(_: &Pair, object: &Object) {
    Tool::Ip.attach(object);
    let before = pktc_loader::attached(INTERFACE).unwrap();
    let pktc = pktc().unwrap();
    let other = object.source().replace("edge.pkt", "other.pkt");
    std::fs::copy(object.source(), &other).unwrap();
    for (path, mode) in [(&other, "native"), (&object.object(), "skb")] {
        let refused = output(&[pktc, "load", path, "--iface", INTERFACE, "--mode", mode]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        let names = format!("program `{}` (id {}) is on {INTERFACE} ", object.program, before[0].id);
        assert!(said.contains(&names), "{said}");
        assert_eq!(pktc_loader::attached(INTERFACE).unwrap(), before);
    }
    run(&[pktc, "load", &object.object(), "--iface", INTERFACE]);
    let after = pktc_loader::attached(INTERFACE).unwrap();
    assert!(after.len() == 1 && after[0].id != before[0].id, "{after:?}");
    run(&[pktc, "unload", "--iface", INTERFACE]);
    assert_eq!(pktc_loader::attached(INTERFACE).unwrap(), []);
    let nothing = output(&[pktc, "unload", "--iface", INTERFACE]);
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
}

/// The loaded program's listing names the source's lines.
pub(crate) fn lines(_: &Pair, object: &Object) {
    Tool::Pktc.attach(object);
    let id = object.id().expect("the program is loaded").to_string();
    let text = run(&["bpftool", "prog", "dump", "xlated", "id", &id, "linum"]);
    let source = std::fs::read_to_string(object.source()).unwrap();
    for (number, line) in (1..).zip(source.lines()).filter(|(_, line)| line.contains("rule ")) {
        let place = format!("; {} [file:{} line_num:{number} ", line.trim(), object.source());
        assert!(text.contains(&place), "no {place:?} in\n{text}");
    }
    let info = metadata(id.parse().unwrap());
    assert_eq!(info.source.path, object.source());
    let lines: Vec<_> = info.programs[0].rules.iter().map(|rule| (rule.name.as_str(), rule.line)).collect();
    assert_eq!(lines, [("default", 2), ("port", 3), ("v6", 4), ("errors", 5)]);
}

/// Two objects, each with the function that fills windows, become one that has it once, and that libbpf takes.
pub(crate) fn linked(_: &Pair, object: &Object) {
    let pktc = pktc().unwrap();
    let (name, other, all) =
        (format!("{}o", object.program), object.object() + "_other", object.object() + "_all");
    let source = object.source().replace("edge.pkt", "other.pkt");
    let rules = format!("xdp {name} {{ default pass; rule late: tcp.dport == 7003 => drop; }}\n");
    std::fs::write(&source, rules).unwrap();
    run(&[pktc, "build", &source, "--access", "auto", "-o", &other]);
    let program = format!("{}a", object.program);
    run(&[pktc, "link", &object.object(), &other, "-o", &all, "--name", &program]);
    let pin = format!("/sys/fs/bpf/{program}");
    run(&["bpftool", "prog", "load", &all, &pin]);
    let code = run(&["bpftool", "prog", "dump", "xlated", "pinned", &pin]);
    std::fs::remove_file(&pin).unwrap();
    assert_eq!(code.matches("int pktc_refill(").count(), 1, "{code}");
}

/// `bpftool` makes a skeleton of the object, with its program and its counters, and lists its types.
pub(crate) fn skeleton(_: &Pair, object: &Object) {
    let skeleton = output(&["bpftool", "gen", "skeleton", &object.object()]);
    let (header, said) =
        (String::from_utf8_lossy(&skeleton.stdout), String::from_utf8_lossy(&skeleton.stderr));
    assert!(skeleton.status.success() && said.is_empty(), "{said}");
    assert!(header.contains(&format!("struct bpf_program *{};", object.program)), "{header}");
    assert!(header.contains("struct bpf_map *pktc_counters;"), "{header}");
    let types = json(&["bpftool", "-j", "btf", "dump", "file", &object.object()]).to_string();
    assert!(types.contains(&format!("\"name\":\"{}\"", object.program)), "{types}");
}
