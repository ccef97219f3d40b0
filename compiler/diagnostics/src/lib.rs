//! Spans, sources and diagnostics: what every stage uses to talk to the user.
//!
//! A stage never stops at its first mistake: it pushes [`Diagnostic`]s and goes on; whoever shows them
//! sorts them by position ([`sort`]) and renders them once ([`render`]).

mod code;
mod diagnostic;
mod excerpt;
mod render;
mod source;

pub use code::{Code, codes};
pub use diagnostic::{Diagnostic, Label, Severity, has_errors, sort};
pub use excerpt::printable;
pub use render::render;
pub use source::{FileId, LineColumn, SourceMap, Span};
