//! Auditors: after whatever was done to a system, they say which promises were not kept.

pub mod ledger;
