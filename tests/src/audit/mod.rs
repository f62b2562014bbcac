//! Auditors: given what happened in a run and what the databases hold after it, they say which promise was broken.
//!
//! Apart from reading they are pure: every run is judged alike, whoever wrote it and whatever broke in it.

pub mod ledger;
pub mod stream;
