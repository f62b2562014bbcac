//! Between the wire contract and the rules: [`parse`] turns messages into values that exist only if they are valid, with every
//! violation named at once; [`render`] turns values into messages; [`value`] is the stored form of what was learned;
//! [`page`] makes page tokens.
//!
//! Both services and the client use it, so that each message is read and written in one place. It must know nothing of
//! storage or of serving.

pub mod page;
pub mod parse;
pub mod render;
pub mod value;
