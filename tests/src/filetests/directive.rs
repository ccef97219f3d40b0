//! What a case says of itself: lines `//@ NAME: VALUE`.

use crate::engines::from_hex;

use super::Stage;

/// The directives of one case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Directives {
    /// `about`: the behaviour, in a sentence.
    pub(super) about: String,
    /// `hex`: frames and what becomes of them.
    pub(super) hex: Vec<HexLine>,
    /// `counter`: what counters hold after all packets of the file.
    pub(super) counters: Vec<CounterLine>,
    /// `later`: machine code of it is not compiled yet.
    pub(super) later: bool,
    /// `frame`: named frames.
    pub(super) frames: Vec<(String, Vec<u8>)>,
    /// `drops`: which named frames a program drops.
    pub(super) drops: Vec<(String, Vec<String>)>,
}

/// `//@ hex: 0200… => drop by amp`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HexLine {
    pub(super) frame: Vec<u8>,
    pub(super) verdict: String,
    /// The deciding rule; none: whichever.
    pub(super) rule: Option<String>,
}

/// `//@ counter: amp = 3 packets, 180 bytes`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CounterLine {
    pub(super) name: String,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// The directives that a stage knows.
fn known(stage: Stage) -> &'static [&'static str] {
    match stage {
        Stage::Run => &["about", "hex", "counter", "later"],
        Stage::Frames => &["about", "frame", "drops"],
        Stage::Diag | Stage::Ir | Stage::Flow | Stage::Asm => &["about"],
    }
}

/// Reads the directives of a case.
///
/// # Errors
/// A directive that the stage does not know or that cannot be read; no `about`.
pub(super) fn parse(stage: Stage, text: &str) -> Result<Directives, String> {
    let mut directives = Directives::default();
    for (index, line) in text.lines().enumerate() {
        let Some(directive) = line.trim_start().strip_prefix("//@") else { continue };
        let at = |problem: String| format!("line {}: {problem}", index + 1);
        let (name, value) = directive.split_once(':').ok_or_else(|| at("no `:` in a directive".into()))?;
        let (name, value) = (name.trim(), value.trim());
        if !known(stage).contains(&name) {
            let known = known(stage).join(", ");
            return Err(at(format!("unknown directive `{name}`; {} has {known}", stage.folder())));
        }
        add(&mut directives, name, value).map_err(at)?;
    }
    if directives.about.is_empty() {
        return Err("no `//@ about: …` says which behaviour this is".into());
    }
    Ok(directives)
}

fn add(directives: &mut Directives, name: &str, value: &str) -> Result<(), String> {
    match name {
        "about" if !directives.about.is_empty() => return Err("a second `about`".into()),
        "about" => directives.about = value.into(),
        "hex" => directives.hex.push(hex_line(value)?),
        "counter" => directives.counters.push(counter_line(value)?),
        "later" if value == "machine code" => directives.later = true,
        "later" => return Err(format!("`{value}` is not `machine code`")),
        "frame" => {
            let (name, frame) = split(value, "=")?;
            directives.frames.push((name.into(), from_hex(frame)?));
        }
        _ => {
            let (program, frames) = split(value, "=")?;
            directives.drops.push((program.into(), frames.split_whitespace().map(str::to_owned).collect()));
        }
    }
    Ok(())
}

fn split<'a>(text: &'a str, at: &str) -> Result<(&'a str, &'a str), String> {
    let (left, right) = text.split_once(at).ok_or_else(|| format!("no `{at}` in `{text}`"))?;
    Ok((left.trim(), right.trim()))
}

fn hex_line(value: &str) -> Result<HexLine, String> {
    let (frame, outcome) = split(value, "=>")?;
    let (verdict, rule) = match split(outcome, " by ") {
        Ok((verdict, rule)) => (verdict, Some(rule.to_owned())),
        Err(_) => (outcome, None),
    };
    if !["pass", "drop", "abort", "tx"].contains(&verdict) {
        return Err(format!("`{verdict}` is no verdict"));
    }
    Ok(HexLine { frame: from_hex(frame)?, verdict: verdict.into(), rule })
}

fn counter_line(value: &str) -> Result<CounterLine, String> {
    let (name, counts) = split(value, "=")?;
    let (packets, bytes) = split(counts, ",")?;
    let number = |text: &str, unit: &str| {
        let digits = text.strip_suffix(unit).map(str::trim);
        digits
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| format!("`{text}` is no number of {unit}"))
    };
    Ok(CounterLine {
        name: name.into(),
        packets: number(packets, "packets")?,
        bytes: number(bytes, "bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Stage, parse};

    #[test]
    fn lines_are_read() {
        let text = "//@ about: x\n//@ hex: 02 00 => drop by amp\n//@ hex: 03 => pass\n\
                    //@ counter: seen = 3 packets, 180 bytes\n";
        let directives = parse(Stage::Run, text).unwrap();
        assert_eq!(directives.hex[0].frame, [2, 0]);
        assert_eq!(directives.hex[0].rule.as_deref(), Some("amp"));
        assert_eq!((directives.hex[1].verdict.as_str(), &directives.hex[1].rule), ("pass", &None));
        assert_eq!((directives.counters[0].packets, directives.counters[0].bytes), (3, 180));
        let text = "//@ about: x\n//@ frame: a = 0102\n//@ drops: t = a b\n";
        let directives = parse(Stage::Frames, text).unwrap();
        assert_eq!(directives.frames, [("a".to_owned(), vec![1, 2])]);
        assert_eq!(directives.drops, [("t".to_owned(), vec!["a".to_owned(), "b".to_owned()])]);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let refused = |stage, text: &str| parse(stage, &format!("//@ about: x\n{text}")).unwrap_err();
        assert_eq!(
            refused(Stage::Diag, "//@ hex: 02 => drop"),
            "line 2: unknown directive `hex`; diag has about"
        );
        assert_eq!(refused(Stage::Run, "//@ hexx 02"), "line 2: no `:` in a directive");
        assert_eq!(refused(Stage::Run, "//@ hex: 02 => dropped"), "line 2: `dropped` is no verdict");
        assert_eq!(
            refused(Stage::Run, "//@ hex: 2 => drop"),
            "line 2: `2` is not whole bytes in hexadecimal"
        );
        assert_eq!(refused(Stage::Run, "//@ about: y"), "line 2: a second `about`");
        assert_eq!(refused(Stage::Run, "//@ counter: a = 3, 4 bytes"), "line 2: `3` is no number of packets");
        assert!(parse(Stage::Run, "xdp t { default pass; }").is_err());
    }
}
