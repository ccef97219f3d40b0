//! A random program with its packets and what the reference says of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pktc_driver::options::Access;
use pktc_semantics::typed::{HeaderId, Program};

use super::compiled::{Compiled, Failure, checked, compile};
use super::compose::{Composer, Wish};
use super::damage::damage;
use super::declare;
use super::dice::Dice;
use super::engines::{Expected, Input, expect};
use super::program::draw;
use super::sketch::Sketch;
use super::source::Source;

/// Packets from the generator, and as many from captures.
const PACKETS: usize = 64;
/// Packets that are also run at every length that is shorter.
const CUT: usize = 8;
/// The longest packet that is.
const LONGEST_CUT: usize = 150;
/// Packets that are also run with a linear part of every length.
const SPLIT: usize = 8;
/// The most packets that a program takes constants from: programs are about a few kinds of packets.
const MOST_ANCHORS: usize = 5;
/// Programs that are drawn for one that the compiler takes.
const TRIES: usize = 30;

/// A program that was built, with its packets.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) seed: u64,
    pub(super) source: Source,
    pub(super) compiled: Compiled,
    pub(super) packets: Vec<Vec<u8>>,
    pub(super) expected: Expected,
}

/// What came of a seed.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) case: Option<Case>,
    /// How often the compiler refused a program with an error of this code.
    pub(super) refused: BTreeMap<&'static str, usize>,
    /// A refused program for each code, with the message.
    pub(super) examples: BTreeMap<&'static str, String>,
    /// A bug that showed before any engine ran, with the program.
    pub(super) bug: Option<String>,
}

/// Draws what `seed` stands for, and builds it with each strategy.
pub(super) fn draw_case(seed: u64, strategies: &[Access], captured: &[Vec<u8>]) -> Drawn {
    let mut drawn = Drawn::default();
    let mut dice = Dice::new(seed);
    for _ in 0..TRIES {
        let (declarations, world) = world(&mut dice, &mut drawn);
        let Some(world) = world else { continue };
        let theme = theme(&world, &declarations, &mut dice);
        let (whole, packets) = packets(&world, &theme, captured, &mut dice);
        let anchors: Vec<Sketch<'_>> = whole.iter().map(|packet| Sketch::new(&world, packet)).collect();
        let source = draw(&world, &declarations, &theme, &anchors, &mut dice);
        let text = source.to_string();
        keep_source(seed, &text);
        match compile(&text, strategies) {
            Err(Failure::Refused(codes, message)) => drawn.refuse(&codes, &text, &message),
            Err(Failure::Bug(what)) => {
                drawn.bug = Some(format!("seed {seed}: {what}\n{text}"));
                return drawn;
            }
            Ok(compiled) => {
                let inputs = inputs(&packets);
                let split = spread(packets.len(), SPLIT);
                match expect(&compiled, &packets, inputs, &split) {
                    Ok(expected) => drawn.case = Some(Case { seed, source, compiled, packets, expected }),
                    Err(difference) => {
                        drawn.bug = Some(format!("seed {seed}: {}\n{text}", difference.text));
                    }
                }
                return drawn;
            }
        }
    }
    drawn.bug = Some(format!("seed {seed}: {TRIES} programs, and the compiler took none"));
    drawn
}

/// Writes the program down before anything is done with it, where `PKTC_RANDOM_SOURCES` names a folder: so that one
/// that hangs the compiler can be looked at.
fn keep_source(seed: u64, text: &str) {
    if let Some(folder) = std::env::var_os("PKTC_RANDOM_SOURCES") {
        let path = Path::new(&folder).join(format!("{seed}.pkt"));
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

impl Case {
    /// Instructions of the longest of its objects.
    pub(super) fn longest(&self) -> usize {
        let programs = self.compiled.objects.iter().flat_map(|object| &object.built.module.programs);
        programs.map(|program| program.insns.len()).max().unwrap_or(0)
    }
}

impl Drawn {
    fn refuse(&mut self, codes: &[&'static str], text: &str, message: &str) {
        for code in codes {
            *self.refused.entry(code).or_default() += 1;
            self.examples.entry(code).or_insert_with(|| format!("{message}\n{text}"));
        }
    }
}

/// What programs may speak of: stdlib, and sometimes headers of their own.
fn world(dice: &mut Dice, drawn: &mut Drawn) -> (Vec<String>, Option<Program>) {
    let declarations = if dice.chance(30) { declare::headers(dice) } else { Vec::new() };
    let text = declarations.join("\n");
    match checked(&text) {
        Ok(checked) => (declarations, checked.program),
        Err(Failure::Refused(codes, message)) => {
            drawn.refuse(&codes, &text, &message);
            (declarations, None)
        }
        Err(Failure::Bug(what)) => {
            drawn.bug = Some(format!("{what}\n{text}"));
            (declarations, None)
        }
    }
}

/// The headers that this program and its packets are mostly about: its own and a few others.
fn theme(world: &Program, declarations: &[String], dice: &mut Dice) -> Vec<HeaderId> {
    let all: Vec<HeaderId> = world.headers.keys().collect();
    let is_own = |id: &HeaderId| {
        let start = format!("header {} ", world.headers[*id].name);
        declarations.iter().any(|declaration| declaration.starts_with(&start))
    };
    let mut theme: Vec<HeaderId> = all.iter().copied().filter(is_own).collect();
    for _ in 0..dice.between(2, 4) {
        theme.extend(dice.pick(&all));
    }
    theme
}

/// Packets without mistakes, from which constants are taken, and all those that the program is run on.
fn packets(
    world: &Program,
    theme: &[HeaderId],
    captured: &[Vec<u8>],
    dice: &mut Dice,
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let composer = Composer::new(world, theme, dice);
    let mut whole = Vec::new();
    let mut all = Vec::new();
    for _ in 0..PACKETS {
        let toward = if dice.chance(75) { dice.pick(theme).copied() } else { None };
        let repeated = if dice.chance(15) { dice.between(1, 12) } else { 0 };
        let mut packet = composer.packet(Wish { toward, repeated }, dice);
        whole.push(packet.clone());
        if dice.chance(35) {
            damage(world, &mut packet, dice);
        }
        all.push(packet);
    }
    whole.truncate(dice.between(1, MOST_ANCHORS));
    for _ in 0..PACKETS {
        all.extend(dice.pick(captured).cloned());
    }
    whole.extend(all[PACKETS..].first().cloned().filter(|_| dice.chance(50)));
    (whole, all)
}

/// All packets, and some of them at every length.
fn inputs(packets: &[Vec<u8>]) -> Vec<Input> {
    let all = packets.iter().enumerate().map(|(packet, bytes)| Input { packet, length: bytes.len() });
    let short: Vec<usize> = (0..packets.len()).filter(|&at| packets[at].len() <= LONGEST_CUT).collect();
    let cut = spread(short.len(), CUT).into_iter().map(|at| short[at]);
    let shorter =
        cut.flat_map(|packet| (0..packets[packet].len()).map(move |length| Input { packet, length }));
    all.chain(shorter).collect()
}

/// `wanted` places of a list, evenly spread; all of a shorter one.
pub(super) fn spread(length: usize, wanted: usize) -> Vec<usize> {
    let step = (length / wanted).max(1);
    (0..length).step_by(step).take(wanted).collect()
}
