//! What came of a file's tests, and how people read it.

use std::fmt::Write;

use pktc_diagnostics::{Diagnostic, SourceMap, Span, printable, render};

/// What came of one test.
#[derive(Clone, Debug)]
pub enum TestResult {
    /// All is as expected.
    Passed,
    /// What is not.
    Failed(Vec<Diagnostic>),
    /// It could not be run here: why.
    Ignored(String),
}

/// One test and what came of it.
#[derive(Clone, Debug)]
pub struct TestReport {
    /// Its name.
    pub name: String,
    /// Where its name stands.
    pub span: Span,
    /// What came of it.
    pub result: TestResult,
}

/// What came of a file's tests.
#[derive(Clone, Debug)]
pub struct Report {
    /// The tests in order.
    pub tests: Vec<TestReport>,
    /// Snapshots that belong to no test; they fail the run.
    pub orphans: Vec<String>,
    /// What the user is to know besides: damaged captures and the like.
    pub notices: Vec<String>,
}

impl Report {
    /// Whether no test failed and no snapshot is an orphan.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        let failed = |test: &TestReport| matches!(test.result, TestResult::Failed(_));
        self.orphans.is_empty() && !self.tests.iter().any(failed)
    }

    /// A line a test, what is wrong under each that failed, orphans, totals.
    #[must_use]
    pub fn text(&self, sources: &SourceMap, color: bool) -> String {
        let (mut text, [mut passed, mut failed, mut ignored]) = (String::new(), [0; 3]);
        for TestReport { name, result, .. } in &self.tests {
            let (word, count) = match result {
                TestResult::Passed => ("ok".to_owned(), &mut passed),
                TestResult::Failed(_) => ("FAILED".to_owned(), &mut failed),
                TestResult::Ignored(reason) => (format!("ignored, {reason}"), &mut ignored),
            };
            *count += 1;
            add(&mut text, format_args!("test {} ... {word}\n", printable(name)));
            if let TestResult::Failed(diagnostics) = result {
                add(&mut text, format_args!("\n{}\n", render(sources, diagnostics, color).trim_end()));
                text.push('\n');
            }
        }
        for orphan in &self.orphans {
            add(&mut text, format_args!("{orphan} belongs to no test: delete it, or bring its test back\n"));
        }
        add(&mut text, format_args!("{passed} passed, {failed} failed, {ignored} ignored"));
        if !self.orphans.is_empty() {
            add(&mut text, format_args!(", {} orphaned", self.orphans.len()));
        }
        text.push('\n');
        text
    }
}

fn add(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(line);
}
