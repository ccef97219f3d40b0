//! Which packets of real captures, and which frames that broke other tools, a condition drops: by the reference
//! evaluator, against lists that people drew up with tshark and tcpdump.
//!
//! The files are not part of the project: `PKTC_SHARED` names the folder that holds `captures/` and `cases/`.
//! Without it the tests are reported as ignored, with that reason; so is a condition whose headers or operators
//! stdlib's first part does not have.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use pktc_semantics::typed::Verdict;
use pktc_testing::capture;
use serde_json::Value;
use support::{Checked, hex, run};

/// Headers and operators of later parts; a condition with one of these words is ignored.
const LATER: [&str; 20] = [
    "mpls",
    "pppoe",
    "pppoe_discovery",
    "igmp",
    "dns",
    "ntp",
    "quic",
    "gre",
    "vxlan",
    "geneve",
    "gtpu",
    "wireguard",
    "esp",
    "inner",
    "quoted",
    "option",
    "options",
    "mss",
    "l2tp",
    "teredo",
];

fn main() {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, trials()).exit();
}

fn trials() -> Vec<Trial> {
    let Some(shared) = std::env::var_os("PKTC_SHARED").map(PathBuf::from) else {
        let name =
            "shared verdicts (ignored: PKTC_SHARED does not name the folder with captures/ and cases/)";
        return vec![Trial::test(name, || Ok(())).with_ignored_flag(true)];
    };
    let trials = captures(&shared).and_then(|mut trials| {
        trials.extend(bug_frames(&shared)?);
        Ok(trials)
    });
    trials.unwrap_or_else(|reason| vec![Trial::test("shared verdicts", move || Err(reason.into()))])
}

fn json(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A test that is ignored, and says so, where the condition needs a later part.
fn trial(name: String, condition: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    match later_word(condition) {
        Some(word) => {
            Trial::test(format!("{name} (ignored: `{word}` comes later)"), test).with_ignored_flag(true)
        }
        None => Trial::test(name, test),
    }
}

/// The first word that only a later part of the language gives a meaning; the value behind `==` is none.
fn later_word(condition: &str) -> Option<&str> {
    let mut before = "";
    condition.split([' ', '.', '(', ')', '[']).filter(|word| !word.is_empty()).find(|word| {
        let is_value = before == "==";
        before = word;
        !is_value && LATER.contains(word)
    })
}

fn dropped_by(condition: &str, frames: &[Vec<u8>]) -> BTreeSet<usize> {
    let text = format!("xdp t {{ default pass; rule m: {condition} => drop; }}");
    let mut engine = Checked::new(&text).engine();
    let dropped = |frame: &Vec<u8>| run(&mut engine, frame).verdict == Verdict::Drop;
    let verdicts: Vec<_> = frames.iter().map(dropped).collect();
    verdicts.iter().enumerate().filter_map(|(at, dropped)| dropped.then_some(at)).collect()
}

fn captures(shared: &Path) -> Result<Vec<Trial>, String> {
    let folder = shared.join("captures");
    let expected = json(&folder.join("expected.json"))?;
    let entries = expected["expect"].as_array().filter(|list| !list.is_empty()).ok_or("`expect` is empty")?;
    let conditions = entries.iter().filter(|entry| entry["pkt"].is_string());
    let trials = conditions.map(|entry| {
        let text = |key: &str| entry[key].as_str().map(str::to_owned).ok_or(format!("no `{key}` in {entry}"));
        let (file, condition) = (text("file")?, text("pkt")?);
        let packets = text("packets_pkt").or_else(|_| text("packets"))?;
        let name = format!("{file} {}: {condition}", text("name")?);
        let path = folder.join(file);
        Ok(trial(name, &condition.clone(), move || {
            let capture = capture::read(&std::fs::read(path)?).map_err(|error| error.to_string())?;
            let frames: Vec<_> = capture.packets.into_iter().map(|packet| packet.data).collect();
            // People count packets from 1.
            let dropped: BTreeSet<_> = dropped_by(&condition, &frames).iter().map(|at| at + 1).collect();
            let expected = ranges(&packets)?;
            if dropped == expected {
                Ok(())
            } else {
                Err(format!("dropped {dropped:?}, not {expected:?}").into())
            }
        }))
    });
    trials.collect()
}

/// The numbers in `1-3,7`.
fn ranges(text: &str) -> Result<BTreeSet<usize>, String> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|error| format!("{text}: {error}"));
        numbers.extend(number(low)?..=number(high)?);
    }
    Ok(numbers)
}

fn bug_frames(shared: &Path) -> Result<Vec<Trial>, String> {
    let frames = json(&shared.join("cases/bugframes-open.json"))?;
    let rules = json(&shared.join("cases/bugframes-open-rules.json"))?;
    let frames = frames.as_array().ok_or("the frames are no list")?;
    let mut trials = Vec::new();
    for (case, rule) in rules.as_object().ok_or("the rules are no table")? {
        let also = rule["also"].as_array().map(Vec::as_slice).unwrap_or_default();
        for rule in std::iter::once(rule).chain(also) {
            trials.push(bug_frame(case, rule, frames)?);
        }
    }
    Ok(trials)
}

fn bug_frame(case: &str, rule: &Value, frames: &[Value]) -> Result<Trial, String> {
    let condition = rule["pkt"].as_str().ok_or("a rule without `pkt`")?.to_owned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_case = frames.iter().filter(|frame| frame["case"] == case);
    let (names, bytes): (Vec<_>, Vec<_>) =
        of_case.map(|frame| (text(&frame["frame"]), hex(&text(&frame["hex"])))).unzip();
    let matches = rule["match"].as_array().ok_or("a rule without `match`")?;
    let expected: BTreeSet<_> = matches.iter().map(text).collect();
    Ok(trial(format!("{case}: {condition}"), &condition.clone(), move || {
        if let Some(unknown) = expected.iter().find(|name| !names.contains(name)) {
            return Err(format!("no frame is called {unknown}").into());
        }
        let dropped: BTreeSet<_> =
            dropped_by(&condition, &bytes).iter().map(|&at| names[at].clone()).collect();
        if dropped == expected {
            Ok(())
        } else {
            Err(format!("dropped {dropped:?}, not {expected:?}").into())
        }
    }))
}
