//! What the clients of Emend in other languages share. Everything that a node or a backend does is `emend-client`'s; here is
//! only what a foreign language needs around it:
//!
//! * [`NodeSettings`] and [`ConnectionSettings`]: settings as a language's own objects say them, with errors that name the
//!   field and its bound;
//! * [`background`]: one runtime in the background, which notices when the process was forked;
//! * [`Node`]: a node whose answers are structs with the names of the wire contract ([`answers`]), and its [`Changes`];
//! * [`Client`]: every method of both services by its name, with the request and the answer as JSON, and [`Recorder`];
//! * [`log`]: what this library logs, for the logging of the language.
//!
//! It knows no language: no type of Python or Node is in it.

pub mod answers;
pub mod background;
mod changes;
mod client;
mod contract;
mod error;
mod json;
pub mod log;
mod node;
mod per_process;
mod recorder;
mod settings;

pub use changes::{Change, ChangedResource, Changes};
pub use client::{Answers, Client, Upload};
pub use contract::FieldNames;
pub use error::{Error, Failure, Precondition, Violation};
pub use node::Node;
pub use recorder::Recorder;
pub use settings::{ConnectionSettings, MirrorSettings, NodeSettings};
