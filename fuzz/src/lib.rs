//! Fuzzing of everything that reads untrusted input: requests, rows, tokens, streams, files, headers.
//!
//! A [`Target`] is a function over bytes with a memory bound that depends on the input's length. [`run::check`] gives
//! it one input and detects panics and excess memory. The same targets run in two ways:
//!
//! * **short**, with `cargo test`: every input of the stored corpus (`fuzz/corpus/TARGET/`), then a seeded number of
//!   [mutations](mutate) of them;
//! * **long**, with `cargo xtask fuzz`: libFuzzer, guided by code coverage (`src/bin/guided.rs`).
//!
//! Private parts of a crate are reached through its `fuzzing` module, which is built only with its feature `fuzzing`.

pub mod corpus;
pub mod mutate;
pub mod run;
pub mod seeds;
pub mod targets;

pub use targets::{TARGETS, Target};
