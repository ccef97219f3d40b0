//! The two intermediate forms: rule IR ([`rule`]) and flow IR ([`flow`]), and how one becomes the other.

pub mod build;
pub mod cursor;
pub mod decide;
pub mod facts;
pub mod flow;
pub mod graph;
pub mod layout;
pub mod passes;
pub mod print;
pub mod ranges;
pub mod rule;
pub mod specialise;
pub mod verify;
