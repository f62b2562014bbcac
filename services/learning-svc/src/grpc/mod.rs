//! Requests in, one use case, responses out.

pub mod subscriptions;
