//! What can be seen of a running pair from outside: metrics, logs, traces; and what must not be.

mod metrics;
mod pair;
mod privacy;
mod traces;
