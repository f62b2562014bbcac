//! The loop under fire: what it promises, held against what was received and stored, while things break.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod shutdown;
mod slow;
mod stream_audit;
