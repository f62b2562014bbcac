//! Emend's rules as pure code: ids, normalisation, corrections, policies and decisions.
//!
//! Nothing here does IO, waits, reads a clock or draws a random number, and nothing here knows gRPC, protobuf or SQL.
//! Callers pass in the facts and get back what follows from them, so every rule can be tested in a line.
//!
//! * [`ids`] and [`violation`]: values that exist only if they are valid, and descriptions of what is invalid.
//! * [`mod@normalize`]: one normal form for all spellings of a phrase.
//! * [`kinds`] and [`resource`]: what can be learned.
//! * [`correction`] and [`reporter`]: what people say is wrong, what they propose instead, and who they are.
//! * [`policy`], [`contest`], [`mod@decide`]: what it takes to learn something.
//! * [`evidence`]: sources and how far they are trusted, and how far evidence speaks for a claim.
//! * [`outputs`]: ratings of what an AI made, and the examples that they become.
//! * [`outcome`]: what a reporter is told when a correction is evaluated. [`standing`]: what has become of it since.
//! * [`lookup`]: what a node answers. [`search`]: what it makes of a query's text.
//! * [`digest`]: whether two parties hold the same resources.
//! * [`personal_data`]: what must not be stored or learned without review.

pub mod ballots;
pub mod contest;
pub mod correction;
pub mod decide;
pub mod digest;
pub mod evidence;
pub mod ids;
pub mod kinds;
pub mod lookup;
pub mod normalize;
pub mod outcome;
pub mod outputs;
pub mod personal_data;
pub mod policy;
pub mod reporter;
pub mod resource;
pub mod search;
pub mod standing;
pub mod text;
pub mod violation;

pub use ballots::{Ballot, Ballots};
pub use contest::{Candidate, ContestState, Hold, Origin, Ruling, Status, TakenBack, Target, Voter};
pub use correction::{Correction, Proposal, Scope};
pub use decide::{Cause, Decision, Event, Refusal, Refused, ResourceChange, Transition, decide};
pub use digest::Digest;
pub use evidence::{DomainPattern, EdgeRelation, Layer, TrustLevel, WorkId};
pub use ids::{
    AcceptOrder, Caller, CandidateId, ContestId, Epoch, EventId, FeedbackId, InstallationId, Namespace,
    NodeId, OperationId, QueryId, ReporterId, RequestId, Revision, UserId,
};
pub use kinds::{
    ClaimState, DomainDecision, DomainRule, DomainRuleValue, EdgeLabel, Example, FewShotSet, Kind, Learned,
    ProfileEntry, Prompt, Relation, Rule, SearchTuning, Synonym,
};
pub use normalize::{NORMALIZATION_VERSION, NormalizedKey, normalize};
pub use outcome::{Outcome, OutcomeState, Reason};
pub use outputs::{Language, OutputTally, Profile, Rated, RatedId, RatedTexts, Rating, RatingClass};
pub use policy::{
    Counting, Policy, ReviewPolicy, RiskLevel, Role, Roles, RulingPolicy, VotesPolicy, WindowPolicy,
};
pub use reporter::Reporter;
pub use resource::{Key, ResourceKey, ResourceValue, key_hash};
pub use standing::Standing;
pub use violation::{FieldViolation, Invalid, Violations};
