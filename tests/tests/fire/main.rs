//! The loop under fire: what breaks, breaks here. One test binary, so that it is linked once.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod fail_points;
mod kill;
