//! What the `emend` command computes beside its calls: users who are simulated and the report of them ([`replay`]), measures
//! of ranked results ([`evaluate`]), papers that cite each other ([`citations`]), and pictures of them ([`svg`]).
//!
//! The command parses arguments, calls the services and prints. It links this crate, which knows nothing of it, so the two
//! are built beside each other.

pub mod citations;
pub mod evaluate;
pub mod generalise;
pub mod replay;
pub mod svg;
