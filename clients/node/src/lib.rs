//! What `@emend/client`, the Node package, is made of in Rust: a thin layer between JavaScript and `emend-binding`.
//!
//! Look-ups are called on JavaScript's thread and wait for nothing. Whatever waits is a promise, answered by the runtime in the
//! background that all threads of the process share. What is answered is JSON (`{"ok": …}` or `{"error": …}`), but on the way of
//! a look-up of a phrase.
//!
//! There is nothing of it in a test build of cargo: `napi` registers nothing there, so all would be dead code. Its tests
//! are in JavaScript.

#![cfg(not(test))]
#![expect(
    clippy::needless_pass_by_value,
    reason = "JavaScript's strings are copied into Rust's own"
)]

mod answer;
mod client;
mod log;
mod node;
mod recorder;
mod running;

use napi_derive::napi;

/// The normal form of a phrase.
#[napi]
pub fn normalize(phrase: String) -> String {
    emend_client::normalize(&phrase)
}

/// A new id for something that can be cancelled, unique in the process.
#[napi]
pub fn next_id() -> u32 {
    running::next_id()
}

/// Ends what runs under this id; nothing if it has ended.
#[napi]
pub fn cancel(id: u32) {
    running::cancel(id);
}
