//! What is visible of a running pair from outside: metrics, logs, traces; and what must not be.

mod export;
mod metrics;
mod pair;
mod privacy;
mod traces;
