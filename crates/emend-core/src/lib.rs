//! Emend's rules as pure code: ids, normalisation, corrections, policies and decisions.
//!
//! Nothing here does IO, waits, reads a clock or draws a random number, and nothing here knows gRPC, protobuf or SQL.
//! Callers pass in the facts and get back what follows from them, so every rule can be tested in a line.
//!
//! The modules stand on each other in this order, from the bottom up. None uses one that comes later in the list.
//!
//! 1. [`text`], [`violation`]: what people do not see in a text, and descriptions of what is invalid.
//! 2. [`mod@normalize`]: one normal form for all spellings of a phrase.
//! 3. [`ids`]: values that exist only if they are valid.
//! 4. [`personal_data`]: what must not be stored or learned without review.
//! 5. [`roles`], [`voter`], [`reporter`]: who decides by itself, who votes, and who says something.
//! 6. [`evidence`]: sources and how far they are trusted, and how far evidence speaks for a claim.
//! 7. [`ratings`]: ratings of what an AI made, and the examples that they become.
//! 8. [`search`]: what a node makes of a query's text, and how queries are searched.
//! 9. [`kinds`]: what can be learned.
//! 10. [`policy`]: what it takes to learn something.
//! 11. [`resource`]: what nodes answer with.
//! 12. [`candidate`], [`ballots`], [`outcome`]: what is proposed, who supports it, and what its reporter is told.
//! 13. [`outputs`]: how prompts, examples and profiles are shown to an AI, and what makes a prompt better.
//! 14. [`contest`]: everything proposed for one key.
//! 15. [`correction`]: what people say is wrong and what they propose instead.
//! 16. [`mod@decide`]: what follows from an event in a contest.
//! 17. [`generalise`]: what a phrase that nobody corrected probably means, by what was learned for similar ones.
//!     [`digest`]: whether two parties hold the same resources. [`lookup`]: what a node answers. [`standing`]: what has become
//!     of a correction since it was evaluated.

pub mod ballots;
pub mod candidate;
pub mod contest;
pub mod correction;
pub mod decide;
pub mod digest;
pub mod evidence;
pub mod generalise;
pub mod ids;
pub mod kinds;
pub mod lookup;
pub mod normalize;
pub mod outcome;
pub mod outputs;
pub mod personal_data;
pub mod policy;
pub mod ratings;
pub mod reporter;
pub mod resource;
pub mod roles;
pub mod search;
pub mod standing;
pub mod text;
pub mod violation;
pub mod voter;

pub use ballots::{Ballot, Ballots};
pub use candidate::{Candidate, Hold, Origin, Reason, Ruling, Status, TakenBack};
pub use contest::{ContestState, Target};
pub use correction::{Correction, Proposal, Scope};
pub use decide::{
    Cause, Decision, Event, Refusal, Refused, ResourceChange, Transition, UndoableDecision, decide,
};
pub use digest::Digest;
pub use evidence::{
    DomainDecision, DomainPattern, DomainRule, DomainRuleValue, EdgeRelation, Layer, TrustLevel, WorkId,
};
pub use ids::{
    AcceptOrder, Caller, CandidateId, ContestId, Epoch, EventId, FeedbackId, InstallationId, Namespace,
    NodeId, OperationId, QueryId, ReporterId, RequestId, Revision, UserId,
};
pub use kinds::{
    ClaimState, EdgeLabel, Kind, Learned, NearLookup, NearMethod, ProfileEntry, Prompt, Relation, Rule,
    SearchTuning, Synonym,
};
pub use normalize::{NORMALIZATION_VERSION, NormalizedKey, normalize};
pub use outcome::{Outcome, OutcomeState};
pub use outputs::Profile;
pub use policy::{Counting, Policy, ReviewPolicy, RulingPolicy, VotesPolicy};
pub use ratings::{
    Example, FewShotSet, Language, OutputTally, Rated, RatedId, RatedTexts, Rating, RatingClass, WindowPolicy,
};
pub use reporter::Reporter;
pub use resource::{Key, ResourceKey, ResourceValue, key_hash};
pub use roles::{RiskLevel, Role, Roles};
pub use standing::Standing;
pub use violation::{FieldViolation, Invalid, Violations};
pub use voter::Voter;
