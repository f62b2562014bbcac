//! A real server on a real socket: health, reflection, the edge of every RPC, and above all that it ends in time.

#![expect(clippy::unwrap_used, reason = "a test's helper fails like the test")]

mod answers;
mod ending;
mod harness;
mod library;
mod no_calls;
mod stalled;
