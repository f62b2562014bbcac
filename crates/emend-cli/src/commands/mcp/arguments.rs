//! The arguments of the tools. Their doc comments are what an assistant reads in the schemas.

mod corrections;
mod evidence;
mod ratings;
mod review;

pub(super) use self::{
    corrections::{
        FeedbackArguments, FeedbackType, ResolveArguments, ResolveType, RetractArguments, ScopeArgument,
    },
    evidence::{EvidenceAction, EvidenceArguments, EvidenceDetails, MaterialsArguments, StatusArguments},
    ratings::{PromptArguments, RateArguments, RatingArgument, SearchArguments},
    review::{ApproveArguments, ExplainArguments, ListArguments, RejectArguments, StatusArgument},
};
