//! Erasure of personal parts: reporter, session, client, query id, reason, context, and the reason of a retraction.
//!
//! Redacting one feedback erases its personal parts here, in the events that still wait for delivery, and by an event of
//! its own in learning-svc. The correction stays, and its vote counts under the voter's pseudonym. Erasing a reporter is
//! the same for all feedback of that reporter, and an event that what was learned for that user alone is deleted. What is
//! older than the namespace's settings allow is redacted in the same way.
//!
//! [`redact`] has the use cases, [`worker`] goes on with what a call or a process left and [`grpc`]
//! parses and renders. Everything may be repeated: what is erased already stays as it is.

pub(crate) mod grpc;
pub(crate) mod redact;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod worker;
