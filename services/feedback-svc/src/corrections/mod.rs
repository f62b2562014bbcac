//! Corrections: taking feedback, reading and retracting it.
//!
//! [`feedback`] is what is kept of it, [`day`] says when a day begins, [`group_commit`] stores concurrent submissions together, [`present`] asks learning-svc
//! what has become of it, [`store`] is the port, and [`grpc`] the service.

pub(crate) mod day;
pub(crate) mod feedback;
pub(crate) mod group_commit;
pub(crate) mod grpc;
pub(crate) mod present;
pub(crate) mod read;
pub(crate) mod retract;
pub(crate) mod store;
pub(crate) mod submit;
