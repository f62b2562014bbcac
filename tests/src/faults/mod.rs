//! Fault runs: services as processes under load, something that breaks, and the same questions at the end of each run.
//! Did everything recover without help? Is what was acknowledged stored and learned exactly once? Does every node hold
//! what the database holds?
//!
//! A run consists of a [`Fleet`] (which programs on which database) and a [`Run`] (load, nodes, seed, rounds, and the
//! questions). A fault is whatever a test does between two calls of [`Run::goes_on`]. Runs are short;
//! `EMEND_TEST_LONG=1` makes them long, and `EMEND_TEST_SEED` repeats a run from its printed seed.

pub mod clock;
pub mod disk;
pub mod fleet;
pub mod outbox;
pub mod postgres;
pub mod proxy;
pub mod run;
pub mod runs;

pub use fleet::{Fleet, Member, Storage};
pub use postgres::Server;
pub use run::{Run, bounded, rounds};
