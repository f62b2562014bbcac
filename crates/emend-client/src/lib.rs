//! Emend for search nodes and backends.
//!
//! A **search node** embeds a [`Subscriber`], which keeps a [`LearnedView`] of what was learned in memory and up to
//! date. For every query the node asks the view first, before its own search. A look-up never waits for the network or
//! for updates being applied. A **backend** submits corrections with a [`FeedbackClient`].
//!
//! ```no_run
//! use std::time::Duration;
//! use emend_client::{FeedbackClient, Kind, Lifecycle, Namespace, Submission, Subscriber};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let lifecycle = Lifecycle::new();
//! let node = Subscriber::builder("http://127.0.0.1:7402", "search-1")
//!     .copy("/var/lib/search/learned.emend")
//!     .spawn(&lifecycle)
//!     .await?;
//!
//! // Ask what was learned, with what the backend would answer by itself.
//! let fund_admin = Namespace::parse("fund-admin")?;
//! let candidates = [("create_isda", 0.71), ("create_csa", 0.69)];
//! let answer = node.view().resolve(&fund_admin, Kind::InvocationPhrase, "Set up a CSA", None, candidates)?;
//! match answer.found {
//!     Some(learned) => println!("{} (revision {})", learned.value, learned.revision),
//!     None => println!("not learned; leave out {:?}; ask the user: {}", answer.prohibited, answer.feedback_hint),
//! }
//!
//! // The user says it was wrong.
//! let feedback = FeedbackClient::new("http://127.0.0.1:7401")?;
//! let recorded = feedback
//!     .submit(
//!         Submission::verb("fund-admin", "Set up a CSA", "create_csa")
//!             .system_choice("create_isda")
//!             .reporter("jane")
//!             .wait_evaluated(),
//!     )
//!     .await?;
//! // Read what was written, if it is applied already.
//! if let Some(revision) = recorded.applied_revision() {
//!     tokio::time::timeout(Duration::from_secs(5), node.view().wait_for_revision(revision)).await?;
//! }
//!
//! println!("how stale is it? {:?}", node.view().staleness());
//! lifecycle.shutdown(Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! ```
//!
//! * [`subscriber`]: connects, resumes, verifies, repairs itself, reports, and keeps a copy on disk.
//! * [`replica`]: the stream's protocol as a pure state machine.
//! * [`view`]: what a node answers from. Where every nanosecond counts, normalise once and use a [`Reader`] per thread.
//! * [`cache`]: the copy on disk.
//! * [`prompt_files`]: prompts as files.
//! * [`feedback`]: submitting corrections, and recording what was searched.
//!
//! A program that uses this crate needs no other crate of Emend: what the interface is made of is exported again here,
//! from the rules ([`Kind`], [`Namespace`], …), the wire contract ([`proto`] has all of it), and the libraries for gRPC
//! and time.

mod address;
mod background;
pub mod cache;
#[cfg(test)]
mod conformance;
pub mod feedback;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod keyed_hash;
pub mod prompt_files;
pub mod replica;
#[cfg(test)]
#[path = "../tests/support/server_log.rs"]
mod server_log;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod subscriber;
pub mod view;

pub use address::ServerAddress;
pub use emend_base::{
    BackoffConfig, Clock, Entropy, Lifecycle, ManualClock, SharedClock, SystemClock,
    lifecycle::Shutdown,
    status::Explained,
    tls::{ClientTls, TlsError},
};
pub use emend_core::{
    ClaimState, Digest, DomainDecision, DomainRule, DomainRuleValue, EdgeLabel, EdgeRelation, Example,
    FeedbackId, FewShotSet, FieldViolation, InstallationId, Invalid, Kind, Language, Layer, Learned,
    Namespace, NodeId, NormalizedKey, Profile, ProfileEntry, Prompt, Relation, RequestId, ResourceValue,
    Revision, Scope, Synonym, TrustLevel, UserId, Violations,
    generalise::{Near, Neighbour, Vectors},
    kinds::{ReasonCode, Setting, Variable},
    lookup::Match,
    normalize::normalize,
    outputs::{Learning, LearningLevel, rank_learnings, render as render_prompt, render_for},
    search::{Attempt, ExpandMode, ExpandedText, OrGroup, RetryPlan, RetryStep, Step, Tuning, TuningFields},
};
pub use emend_proto::{
    common::v1::{Cause, Outcome, OutcomeState, Rating, ResourceKey},
    feedback::v1::{Feedback, Query, QueryInteraction, QueryResult},
    learning::v1::{Cursor, SnapshotReason},
};
pub use feedback::{
    CallError, Effect, EncodedCall, FeedbackClient, QueryRecorder, Recorded, RecorderCounts, Submission,
};
pub use jiff::{SignedDuration, Timestamp};
pub use replica::{Applied, AppliedChange, Installed, Rejection, State};
pub use subscriber::{
    ConfigError, Confirmed, Events, LearnedResource, LearnedState, NodeHandle, Observed, Refused, Subscriber,
    SubscriberBuilder, SubscriberEvent,
};
pub use tonic::{
    Code, Status,
    metadata::{MetadataMap, MetadataValue},
    transport::Endpoint,
};
pub use view::{
    ClaimDecided, DomainDecided, EdgeDecided, Expansion, LEARNED_SCORE, LearnedAnswer, LearnedView, Lookup,
    LookupKey, NearStatus, Origin, PromptInForce, Reader, Reading, RenderOptions, Rendered, Resolution,
    Source, SourceTrust, Staleness, StandsFor, tuning_to_try,
};

/// The messages of the wire contract, for requests that have no form of their own here: a
/// [`SubmitFeedbackRequest`](proto::feedback::v1::SubmitFeedbackRequest) becomes a [`Submission`], a
/// [`ListFeedbackRequest`](proto::feedback::v1::ListFeedbackRequest) is taken by [`FeedbackClient::list`].
pub mod proto {
    pub use emend_proto::{common, feedback, learning, search};
}

/// Compiles the README's example as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
