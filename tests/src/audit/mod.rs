//! Auditors: they are shown what happened in a run and what the databases hold after it, and say which promise was broken.
//!
//! They are pure but for reading: whoever wrote the run, and whatever broke in it, is judged alike.

pub mod ledger;
pub mod stream;
