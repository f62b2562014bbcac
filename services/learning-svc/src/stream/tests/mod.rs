//! The stream on an in-memory log.

mod sessions;
mod states;
