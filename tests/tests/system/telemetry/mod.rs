//! What can be seen of a running pair from outside: metrics, logs, traces.

mod metrics;
