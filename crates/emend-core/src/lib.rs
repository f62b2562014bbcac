//! Emend's rules, pure: ids, normalisation, corrections, policies and deciding.
//!
//! Nothing here does IO, waits, reads a clock or draws a random number, and nothing here knows gRPC, protobuf or SQL:
//! whoever calls passes in what is so and gets back what follows. That is why every rule can be tested in a line.
//!
//! * [`ids`] and [`violation`]: values that exist only if they are valid, and what was wrong where they are not.
//! * [`mod@normalize`]: one form for every way of writing a phrase.
//! * [`kinds`] and [`resource`]: what can be learned.
//! * [`correction`] and [`reporter`]: what people say is wrong, what it proposes, and who they are.
//! * [`policy`], [`contest`], [`mod@decide`]: how much it takes to learn something.
//! * [`outcome`]: what a reporter is told.
//! * [`lookup`]: what a node answers.
//! * [`digest`]: whether two parties hold the same.
//! * [`personal_data`]: what must not be stored or learned unseen.

pub mod ballots;
pub mod contest;
pub mod correction;
pub mod decide;
pub mod digest;
pub mod ids;
pub mod kinds;
pub mod lookup;
pub mod normalize;
pub mod outcome;
pub mod personal_data;
pub mod policy;
pub mod reporter;
pub mod resource;
pub mod violation;

pub use ballots::{Ballot, Ballots};
pub use contest::{Candidate, ContestState, Hold, Origin, Status, Voter};
pub use correction::{Correction, Proposal, Scope};
pub use decide::{Cause, Decision, Event, Refusal, Refused, ResourceChange, Transition, decide};
pub use digest::Digest;
pub use ids::{
    AcceptOrder, Caller, CandidateId, ContestId, Epoch, EventId, FeedbackId, Namespace, NodeId, OperationId,
    ReporterId, RequestId, Revision, UserId,
};
pub use kinds::Kind;
pub use normalize::{NORMALIZATION_VERSION, NormalizedKey, normalize};
pub use outcome::{Outcome, OutcomeState, Reason};
pub use policy::{Counting, Policy, RiskLevel};
pub use reporter::Reporter;
pub use resource::{Learned, ResourceKey, ResourceValue};
pub use violation::{FieldViolation, Invalid, Violations};
