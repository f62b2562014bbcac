//! What goes wrong on purpose, seeded, so that a run can be had again.

pub mod proxy;
pub mod runs;
