//! A whole run: many programs, and what is said of them all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use pktc_driver::options::Access;
use pktc_testing::engine::Outcome;
use pktc_testing::hits::RuleCounters;

use super::case::{Case, Drawn, draw_case};
use super::census::{CONSTRUCTS, Census, count};
use super::compiled::{Compiled, Refusal, name};
use super::engines::{Machine, Tally, compare};
use super::{captures, shrink};

/// Threads that draw and compile.
const THREADS: usize = 2;
/// Differences that are made smaller and shown.
const SHOWN: usize = 3;
/// A run of so many programs is large enough for what holds of most.
const FULL: usize = 150;
/// Of 100 rules, so many must hold for some packet.
const RULES_HIT: usize = 30;
/// Of 100 programs, so many must both drop and let by.
const BOTH_VERDICTS: usize = 60;

/// Which programs are drawn: one for each seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seeds.
    pub seeds: Vec<u64>,
    /// How they are built. A program that the first cannot do is drawn again.
    pub strategies: Vec<Access>,
}

/// Programs with their packets and what the reference says of them.
#[derive(Debug)]
pub struct Run {
    pub(super) cases: Vec<Case>,
    bugs: Vec<String>,
    refused: BTreeMap<&'static str, usize>,
    examples: BTreeMap<&'static str, String>,
    captured: usize,
    /// Seconds that all programs took, and the slowest with its seed.
    seconds: f32,
    slowest: Option<(f32, u64)>,
}

impl Run {
    /// Draws and builds all programs, and asks the reference.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let started = Instant::now();
        let captured = captures::packets();
        let drawn = in_parallel(&plan.seeds, |&seed| {
            let started = Instant::now();
            let drawn = draw_case(seed, &plan.strategies, &captured);
            (started.elapsed().as_secs_f32(), drawn)
        });
        let times = drawn.iter().map(|(seconds, _)| *seconds).zip(plan.seeds.iter().copied());
        let mut run = Run {
            cases: Vec::new(),
            bugs: Vec::new(),
            refused: BTreeMap::new(),
            examples: BTreeMap::new(),
            captured: captured.len(),
            seconds: started.elapsed().as_secs_f32(),
            slowest: times.max_by(|a, b| a.0.total_cmp(&b.0)),
        };
        for (_, Drawn { case, refused, examples, bug }) in drawn {
            run.cases.extend(case);
            run.bugs.extend(bug);
            for (code, count) in refused {
                *run.refused.entry(code).or_default() += count;
            }
            for (code, example) in examples {
                run.examples.entry(code).or_insert(example);
            }
        }
        run
    }

    /// That every program was built, and the two builds of each are the same.
    ///
    /// # Errors
    /// The programs for which the compiler failed.
    pub fn compiles(&self) -> Result<(), String> {
        if self.bugs.is_empty() { Ok(()) } else { Err(self.bugs.join("\n")) }
    }

    /// That the userspace engine does what the reference says. How much it ran, for people.
    ///
    /// # Errors
    /// Where it does not, in small.
    pub fn vm(&self) -> Result<String, String> {
        self.machine(Machine::Vm)
    }

    /// That the running kernel takes every program and does what the reference says. How much it ran, for people.
    ///
    /// # Errors
    /// Where it does not, in small.
    pub fn kernel(&self) -> Result<String, String> {
        self.machine(Machine::Kernel)
    }

    fn machine(&self, machine: Machine) -> Result<String, String> {
        let started = Instant::now();
        let compared =
            in_parallel(&self.cases, |case| compare(&case.compiled, &case.packets, &case.expected, machine));
        let (mut tallies, mut different) = (Vec::new(), Vec::new());
        for (case, result) in self.cases.iter().zip(compared) {
            match result {
                Ok(of_objects) => tallies.extend(of_objects),
                Err(difference) => different.push((case, difference)),
            }
        }
        if different.is_empty() {
            let seconds = started.elapsed().as_secs_f32();
            return Ok(format!("{machine:?} in {seconds:.1} s: {}", ran(&tallies)));
        }
        let mut text = format!("{} of {} programs differ\n", different.len(), self.cases.len());
        let _ = writeln!(text, "the others: {}", ran(&tallies));
        for (case, difference) in different.iter().take(SHOWN) {
            let _ = writeln!(text, "{}", shrink::report(case, difference, machine));
        }
        for (case, difference) in different.iter().skip(SHOWN) {
            let first = difference.text.lines().next().unwrap_or_default();
            let _ = writeln!(text, "seed {}: {first}", case.seed);
        }
        Err(text)
    }

    /// What was drawn, for people.
    #[must_use]
    pub fn report(&self) -> String {
        let figures = self.figures();
        let packets: usize = self.cases.iter().map(|case| case.expected.inputs.len()).sum();
        let (programs, captured, seconds) = (self.cases.len(), self.captured, self.seconds);
        let mut text = format!("{programs} programs, drawn and built in {seconds:.1} s; ");
        let _ = writeln!(text, "{packets} packets run, captured ones drawn from {captured}");
        if let Some((seconds, seed)) = self.slowest {
            let _ = writeln!(text, "slowest to draw and build: seed {seed}, {seconds:.1} s");
        }
        let longest = self.cases.iter().map(|case| (case.longest(), case.seed)).max();
        if let Some((instructions, seed)) = longest {
            let _ = writeln!(text, "longest object: seed {seed}, {instructions} instructions");
        }
        let refused: Vec<String> =
            self.refused.iter().map(|(code, count)| format!("{code} {count}")).collect();
        let _ = writeln!(text, "refused and drawn again, by code: {}", refused.join(", "));
        let _ = writeln!(text, "{}", self.objects());
        let (hit, rules) = figures.hit;
        let _ = writeln!(text, "{hit} of {rules} rules hit, {} programs with both verdicts", figures.both);
        let _ = writeln!(text, "{} packets whose rule counters cannot tell", figures.untold);
        let constructs: Vec<String> = CONSTRUCTS
            .iter()
            .map(|name| format!("{name} × {}", figures.census.get(name).unwrap_or(&0)))
            .collect();
        let _ = writeln!(text, "constructs: {}", constructs.join(", "));
        text
    }

    /// How many objects there are of each kind, and why others are missing.
    fn objects(&self) -> String {
        let mut kinds: BTreeMap<String, (usize, BTreeMap<&str, usize>)> = BTreeMap::new();
        for Compiled { objects, refused, .. } in self.cases.iter().map(|case| &case.compiled) {
            for object in objects {
                kinds.entry(object.name()).or_default().0 += 1;
            }
            for (kind, code) in
                refused.iter().flat_map(|it| it.codes.iter().map(|code| (name(it.how), *code)))
            {
                *kinds.entry(kind).or_default().1.entry(code).or_default() += 1;
            }
        }
        let kind = |(name, (built, refused)): (&String, &(usize, BTreeMap<&str, usize>))| {
            let refused: String = refused.iter().map(|(code, count)| format!(", {code} {count}")).collect();
            format!("{name} {built}{refused}")
        };
        let kinds: Vec<String> = kinds.iter().map(kind).collect();
        format!("objects, and those refused by code: {}", kinds.join("; "))
    }

    /// An example of each kind of refusal, and each object that is missing, for whoever works on the generator.
    #[must_use]
    pub fn refusals(&self) -> String {
        let redrawn = self.examples.iter().map(|(code, example)| format!("{code}:\n{example}\n"));
        let refused = |case: &Case| {
            let of = |it: &Refusal| format!("seed {} by {}:\n{}\n", case.seed, name(it.how), it.message);
            case.compiled.refused.iter().map(of).collect::<String>()
        };
        redrawn.chain(self.cases.iter().map(refused)).collect()
    }

    /// That the generator draws programs that ask what packets have, and use all of the language.
    ///
    /// # Errors
    /// What it does too seldom. A run of few programs is not judged.
    pub fn is_wide(&self) -> Result<(), String> {
        if self.cases.len() < FULL {
            return Ok(());
        }
        let figures = self.figures();
        let (hit, rules) = figures.hit;
        let missing: Vec<_> =
            CONSTRUCTS.iter().filter(|name| !figures.census.contains_key(*name)).copied().collect();
        let mut wrong = Vec::new();
        if hit * 100 < rules * RULES_HIT {
            wrong.push(format!("only {hit} of {rules} rules were hit"));
        }
        if figures.both * 100 < self.cases.len() * BOTH_VERDICTS {
            wrong.push(format!("only {} programs have both verdicts", figures.both));
        }
        if !missing.is_empty() {
            wrong.push(format!("never drawn: {}", missing.join(", ")));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        for case in &self.cases {
            if let Some(program) = &case.compiled.checked.program {
                count(program, &case.source.to_string(), &mut figures.census);
            }
            let outcomes = &case.expected.outcomes;
            let rules = case.compiled.first().rules[0].rules().len();
            let mut hit = vec![false; rules];
            outcomes.iter().flat_map(|outcome| &outcome.hits).for_each(|rule| hit[rule.0 as usize] = true);
            figures.hit.0 += hit[1..].iter().filter(|&&hit| hit).count();
            figures.hit.1 += rules - 1;
            if let Some(rules) = RuleCounters::of(case.compiled.first(), 0) {
                let told = |outcome: &&Outcome| rules.decider(&outcome.hits) == outcome.rule;
                figures.untold += outcomes.len() - outcomes.iter().filter(told).count();
            }
            let verdicts = outcomes.first().map(|outcome| outcome.verdict);
            figures.both += usize::from(outcomes.iter().any(|outcome| Some(outcome.verdict) != verdicts));
        }
        figures
    }
}

#[derive(Default)]
struct Figures {
    census: Census,
    /// Rules that held for some packet, and all; without defaults.
    hit: (usize, usize),
    /// Programs with more than one verdict.
    both: usize,
    untold: usize,
}

/// How much a machine ran by each strategy.
pub(super) fn ran(tallies: &[(Access, Tally)]) -> String {
    let of = |access: Access| {
        let tally: Tally = tallies.iter().filter(|(of, _)| *of == access).map(|(_, tally)| *tally).sum();
        let Tally { whole, split, untaken } = tally;
        format!("{} {whole} whole packets, {split} in several buffers, {untaken} not taken", access.name())
    };
    Access::ALL.map(of).join("; ")
}

/// `work` on all items, on some threads; the results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some((at, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            done.push((at, work(item)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
