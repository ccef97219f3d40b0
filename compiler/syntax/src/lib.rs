//! Text to syntax tree: tokens, grammar, tree. Knows nothing of what names mean.

pub mod ast;
