//! Transcripts: `pktc` is run as a user runs it, in a directory of its own, and what it prints to both streams and
//! its exit code are compared with what was written here by hand.

mod arguments;
mod build;
mod check;
mod example;
mod frames;
mod link;
mod load;
mod run;
mod session;
mod test;
