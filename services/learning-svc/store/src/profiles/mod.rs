//! What is stored of profiles beside their entries, which are resources: what users did, and what is kept of suggested
//! entries. And a user's entries, which an index by user finds.

pub(crate) mod rows;
pub(crate) mod sql;

use std::collections::HashSet;

use async_trait::async_trait;
use emend_core::{
    CandidateId, ContestId, Namespace, Profile, ResourceKey, ResourceValue, Revision, Status, UserId,
    kinds::Learned,
    outputs::{Activity, Suggested, SuggestionType},
};
use emend_store::StoreError;
use jiff::Timestamp;

use crate::contests::{CandidatePosition, CandidateRecord};

type Result<T> = std::result::Result<T, StoreError>;

/// The activities kept of each user, the newest ones.
pub const KEPT_ACTIVITIES: u32 = 10_000;

/// The entries of a profile in one consistent state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredProfile {
    /// The entries.
    pub entries: Vec<(ResourceKey, ResourceValue)>,
    /// The newest revision that changed any, also one that is gone; 0: none did.
    pub revision: Revision,
}

impl StoredProfile {
    /// The profile that the entries make up.
    pub fn profile(&self) -> Profile {
        let mut profile = Profile::default();
        for (key, value) in &self.entries {
            if let Learned::ProfileEntry(entry) = &value.learned {
                profile.set(key.key.as_str(), &key.qualifier, Some(entry));
            }
        }
        profile
    }
}

/// What is kept of a suggested entry beside its candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestionDetails {
    /// What it changes.
    pub suggestion: SuggestionType,
    /// Why, in the generator's words.
    pub reason: String,
    /// The activity that it comes from: what tells of it.
    pub source_type: String,
    /// Its id there.
    pub source_id: String,
    /// How sure the generator is, in thousandths.
    pub confidence: u16,
}

impl From<&Suggested> for SuggestionDetails {
    fn from(suggested: &Suggested) -> Self {
        Self {
            suggestion: suggested.suggestion,
            reason: suggested.reason.clone(),
            source_type: suggested.source_type.clone(),
            source_id: suggested.source_id.clone(),
            confidence: suggested.confidence,
        }
    }
}

/// A suggested entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestionRecord {
    /// The candidate.
    pub record: CandidateRecord,
    /// What is kept of it as a suggestion.
    pub details: SuggestionDetails,
}

/// The entries of profiles in a unit of work.
#[async_trait]
pub trait EntryRepository: Send {
    /// A user's entries.
    async fn stored(&mut self, namespace: &Namespace, user: &UserId) -> Result<StoredProfile>;
}

/// What users did and what is suggested to them, in a unit of work.
#[async_trait]
pub trait ProfileRepository: Send {
    /// Stores activities that are not known, each different from the others, and forgets the oldest ones beyond those that are
    /// kept. Returns how many were new.
    async fn record(&mut self, namespace: &Namespace, user: &UserId, activities: &[Activity]) -> Result<u64>;

    /// Of these activities, by source type and id, those that are stored.
    async fn known(
        &mut self,
        namespace: &Namespace,
        user: &UserId,
        sources: &[(String, String)],
    ) -> Result<HashSet<(String, String)>>;

    /// Keeps what is known of suggested entries, whose candidates are written.
    async fn save(&mut self, suggestions: &[(ContestId, CandidateId, SuggestionDetails)]) -> Result<()>;
}

/// What is kept of candidates as suggestions.
#[async_trait]
pub trait SuggestionStore: Send + Sync {
    /// What is kept of a candidate as a suggestion; none of one that was not suggested.
    async fn suggestion(&self, candidate: CandidateId) -> Result<Option<SuggestionDetails>>;
}

/// Profiles outside units of work.
#[async_trait]
pub trait ProfileStore: Send + Sync {
    /// A user's entries.
    async fn stored_profile(&self, namespace: &Namespace, user: &UserId) -> Result<StoredProfile>;

    /// What a user did, not before `since`: the newest first, at most `limit`.
    async fn activities(
        &self,
        namespace: &Namespace,
        user: &UserId,
        since: Option<Timestamp>,
        limit: u32,
    ) -> Result<Vec<Activity>>;

    /// What is suggested to a user in one of these statuses (none: any), after `after`: the newest first, at most `limit`.
    async fn suggestions(
        &self,
        namespace: &Namespace,
        user: &UserId,
        statuses: &[Status],
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Vec<SuggestionRecord>>;
}
