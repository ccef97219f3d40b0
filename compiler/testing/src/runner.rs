//! The test runner: the `test` blocks of a file against any engine.
//!
//! Each test starts with a fresh engine. Its steps run in order; what an `expect` finds wrong is noted and the
//! test goes on, so that one run shows all; only what leaves nothing to judge (a packet that cannot be
//! composed, an engine that breaks down) ends it. A test that its engine cannot take is *ignored* with the
//! reason, never passed.

mod expect;
mod replay;
mod report;

use pktc_diagnostics::{Diagnostic, FileId, SourceMap, Span, codes};
use pktc_semantics::files::Files;
use pktc_semantics::rules::{RuleId, RuleTable};
use pktc_semantics::typed::{Packet, Program, StepKind, Subject, Test, Verdict};

pub use report::{Report, TestReport, TestResult};

use crate::compose::{Composed, compose};
use crate::engine::{Engine, EngineError, Env};
use crate::snapshot::Store;
use replay::Snapshots;

/// Why there is no engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoEngine {
    /// The machine lacks what it needs: the test is ignored.
    Missing(String),
    /// It should have been there: the test fails.
    Failed(String),
}

/// Makes a fresh engine for what a test is of.
pub type Engines<'a> = dyn FnMut(Subject) -> Result<Box<dyn Engine>, NoEngine> + 'a;

/// What a run of tests needs.
pub struct Setup<'a> {
    /// The checked program.
    pub program: &'a Program,
    /// Its texts.
    pub sources: &'a SourceMap,
    /// The file whose tests are run.
    pub file: FileId,
    /// Reads captures, by paths that start where the file's own path does.
    pub files: &'a dyn Files,
    /// Keeps snapshots.
    pub store: &'a mut dyn Store,
    /// Whether what differs from a snapshot becomes the snapshot.
    pub accept: bool,
}

/// Runs all tests of a file, each on an engine of its own.
#[must_use]
pub fn run_tests(setup: Setup<'_>, engines: &mut Engines<'_>) -> Report {
    let Setup { program, sources, file, files, store, accept } = setup;
    let mut snapshots = Snapshots::new(sources.name(file), files, store, accept);
    let mut tests = Vec::new();
    for test in program.tests.iter().filter(|test| test.span.file == file) {
        let result = run_test(program, sources, test, engines, &mut snapshots);
        tests.push(TestReport { name: test.name.clone(), span: test.span, result });
    }
    let (orphans, notices) = snapshots.finish();
    Report { tests, orphans, notices }
}

fn run_test(
    program: &Program,
    sources: &SourceMap,
    test: &Test,
    engines: &mut Engines<'_>,
    snapshots: &mut Snapshots<'_>,
) -> TestResult {
    snapshots.claim(test);
    let engine = match engines(test.of) {
        Ok(engine) => engine,
        Err(NoEngine::Missing(reason)) => return TestResult::Ignored(reason),
        Err(NoEngine::Failed(why)) => {
            let title = "there is no engine to run this test".to_owned();
            return TestResult::Failed(vec![Diagnostic::error(codes::ENGINE, title, test.span, why)]);
        }
    };
    let mut session =
        Session { program, rules: RuleTable::of(program, sources, test.of), of: test.of, engine };
    let mut failures = Vec::new();
    match session.steps(test, snapshots, &mut failures) {
        Err(Stopped::Unsupported(reason)) => return TestResult::Ignored(reason),
        Err(Stopped::Broken(diagnostic)) => failures.push(*diagnostic),
        Ok(()) => {}
    }
    if failures.is_empty() { TestResult::Passed } else { TestResult::Failed(failures) }
}

/// Why a test cannot go on.
enum Stopped {
    /// The engine does not take this packet.
    Unsupported(String),
    /// Nothing is left to judge.
    Broken(Box<Diagnostic>),
}

/// What became of a packet: without a verdict, the chain under test did not decide.
#[derive(Clone, Copy, Debug)]
struct Decision {
    verdict: Option<Verdict>,
    rule: RuleId,
}

/// What was sent last.
struct Sent {
    decisions: Vec<Decision>,
    span: Span,
}

/// One test on its engine.
struct Session<'a> {
    program: &'a Program,
    rules: RuleTable,
    of: Subject,
    engine: Box<dyn Engine>,
}

impl Session<'_> {
    fn steps(
        &mut self,
        test: &Test,
        snapshots: &mut Snapshots<'_>,
        failures: &mut Vec<Diagnostic>,
    ) -> Result<(), Stopped> {
        let mut sent = Sent { decisions: Vec::new(), span: test.span };
        for step in &test.steps {
            match &step.kind {
                StepKind::Send { repeat, packet } => {
                    sent = Sent { decisions: self.send(*repeat, packet, step.span)?, span: step.span };
                }
                StepKind::Expect { outcomes } => {
                    failures.extend(expect::judge(self, outcomes, &sent));
                }
                StepKind::Replay { file, span } => {
                    failures.extend(replay::replay(self, (file, *span), snapshots)?);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, repeat: u64, packet: &Packet, span: Span) -> Result<Vec<Decision>, Stopped> {
        let Composed { frame, ifindex, queue } = compose(self.program, packet).map_err(Stopped::Broken)?;
        let usual = Env::default();
        let env =
            Env { ifindex: ifindex.unwrap_or(usual.ifindex), queue: queue.unwrap_or(usual.queue), ..usual };
        (0..repeat).map(|_| self.run(&frame, &env, span)).collect()
    }

    fn run(&mut self, frame: &[u8], env: &Env, span: Span) -> Result<Decision, Stopped> {
        let outcome = self.engine.run(frame, env).map_err(|error| match error {
            EngineError::Unsupported(reason) => Stopped::Unsupported(reason),
            EngineError::Fault(what) => {
                let title = format!("the {} engine broke down on this packet", self.engine.name());
                let help = "This is a mistake in pktc, not in your file: please report it with this test.";
                Stopped::Broken(Box::new(Diagnostic::error(codes::ENGINE, title, span, what).with_help(help)))
            }
        })?;
        let undecided = matches!(self.of, Subject::Chain(_)) && outcome.rule == RuleId::DEFAULT;
        Ok(Decision { verdict: (!undecided).then_some(outcome.verdict), rule: outcome.rule })
    }

    /// Whether `rule` is what the test calls `name`: in a chain's own tests its rules need no prefix.
    fn is_called(&self, rule: RuleId, name: &str) -> bool {
        let called = &self.rules.info(rule).name;
        match self.of {
            Subject::Xdp(_) => called == name,
            Subject::Chain(chain) => {
                let chain = &self.program.chains[chain].name;
                called == name
                    || called.strip_prefix(chain).and_then(|rest| rest.strip_prefix('.')) == Some(name)
            }
        }
    }
}

/// How a verdict is written; `return` where a chain did not decide.
pub(crate) fn word(verdict: Option<Verdict>) -> &'static str {
    verdict.map_or("return", Verdict::word)
}
