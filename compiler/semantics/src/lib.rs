//! What a program means: names resolved, types checked, headers laid out, the parse graph built.

pub mod files;
pub mod rules;
pub mod typed;
