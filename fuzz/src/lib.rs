//! Fuzzing of everything that reads what others wrote: requests, rows, tokens, streams, files, headers.
//!
//! A [`Target`] is one function over bytes, and what memory it may take for so many of them. [`run::check`] gives it one
//! input and finds panics and memory beyond that bound. The same targets run in two ways:
//!
//! * **short**, with `cargo test`: every input of the kept corpus (`fuzz/corpus/TARGET/`), then a seeded number of
//!   [mutations](mutate) of them;
//! * **long**, with `cargo xtask fuzz`: libFuzzer, guided by which code an input reaches (`src/bin/guided.rs`).
//!
//! What of a crate is private is reached through its `fuzzing` module, which only its feature `fuzzing` builds.

pub mod corpus;
pub mod mutate;
pub mod run;
pub mod seeds;
pub mod targets;

pub use targets::{TARGETS, Target};
