//! Converts between the wire contract and the rules: [`parse`] turns messages into values that exist only if they are
//! valid, naming every violation at once; [`render`] turns values into messages; [`kinds`] does both for the messages of
//! each kind; [`value`] is the stored form of learned values; [`page`] makes page tokens; [`ubi`] reads what
//! OpenSearch notes of searches.
//!
//! Both services and the client use it, so each message is read and written in one place. It must know nothing of
//! storage or of serving.

pub mod kinds;
pub mod outputs;
pub mod page;
pub mod parse;
pub mod preview;
pub mod rated_targets;
pub mod render;
pub mod search;
pub mod ubi;
pub mod value;
