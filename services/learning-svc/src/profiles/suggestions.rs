//! What users did, and the entries that are suggested from it. A generator is asked outside units of work; what it answers is
//! checked, and checked again under the user's lock against what is stored by then.

use std::collections::HashSet;

use emend_base::Error;
use emend_core::{
    Candidate, CandidateId, Event, Kind, Namespace, ProfileEntry, Refusal, ResourceKey, ResourceValue,
    Revision, Status, UserId,
    contest::ContestState,
    kinds::Learned,
    outputs::{Activity, Suggested, SuggestionMaterial},
    resource::proposal_of,
};
use emend_serve::auth::Access;
use jiff::Timestamp;
use learning_store::{
    actor::Actor,
    contests::CandidatePosition,
    profiles::{StoredProfile, SuggestionDetails, SuggestionRecord},
};

use crate::{
    decisions::{
        numbering::RevisionChoice,
        open::Attribution,
        review::{Review, Reviewed},
        users::lock_user,
    },
    failure::{Failure, refused, subject},
    profiles::Profiles,
};

/// Activities that a generator is shown at most, the newest ones.
const SHOWN_ACTIVITIES: u32 = 500;
/// Suggestions made at once at most.
const MAX_SUGGESTIONS: usize = 50;

/// What to make suggestions from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestionsAsked {
    /// The search application.
    pub namespace: Namespace,
    /// The user.
    pub user: UserId,
    /// Only what was done since then.
    pub since: Option<Timestamp>,
    /// Whether years of experience may be suggested.
    pub include_experience: bool,
    /// The client, on behalf of the user.
    pub actor: Actor,
}

/// A user's decision on a suggestion.
#[derive(Debug, Clone)]
pub struct SuggestionDecided {
    /// The user.
    pub user: UserId,
    /// The decision.
    pub review: Review,
}

/// A suggested entry and where it would be.
struct Fit {
    key: ResourceKey,
    value: ResourceValue,
    suggested: Suggested,
}

impl Fit {
    /// A suggestion as an entry of a user's profile.
    fn of(asked: &SuggestionsAsked, suggested: Suggested) -> Result<Self, String> {
        let field = suggested.suggestion.field();
        let entry = match &suggested.entry {
            ProfileEntry::Text(text) => text.as_str(),
            ProfileEntry::Years(_) => "",
        };
        let key = entry_key(&asked.namespace, &asked.user, field, entry)?;
        Ok(Self {
            key,
            value: ResourceValue::of(Learned::ProfileEntry(suggested.entry.clone())),
            suggested,
        })
    }

    /// The proposal's own bytes: the same entry is the same proposal, however it is written.
    fn bytes(&self) -> Vec<u8> {
        match self.suggested.entry {
            ProfileEntry::Years(years) => years.to_le_bytes().to_vec(),
            ProfileEntry::Text(_) => self.key.qualifier.as_bytes().to_vec(),
        }
    }

    /// Whether it is new: the profile does not have it, nothing waits in its place, and it was not decided on before. An entry that
    /// the user removed is not suggested again.
    fn is_new(&self, contest: &ContestState) -> bool {
        if matches!(self.suggested.entry, ProfileEntry::Text(_)) {
            return contest.candidates.is_empty();
        }
        let current = contest.versions.current;
        let applies = contest.resource.as_ref().map(|resource| &resource.value);
        let waits = |candidate: &Candidate| {
            candidate.status == Status::AwaitingReview
                && candidate
                    .proposal
                    .is_some_and(|proposal| proposal.base == current)
        };
        let id = proposal_of(contest.id(), current, &self.bytes());
        applies != Some(&self.value)
            && contest.candidate(id).is_none()
            && !contest.candidates.iter().any(waits)
    }
}

/// The key of an entry; the error says why there is none.
pub(crate) fn entry_key(
    namespace: &Namespace,
    user: &UserId,
    field: &str,
    entry: &str,
) -> Result<ResourceKey, String> {
    let key = ResourceKey::parse(
        namespace.as_str(),
        Some(Kind::Profile),
        field,
        entry,
        user.as_str(),
    );
    let key = key.map_err(|violations| {
        let first = violations.into_vec().into_iter().next();
        first.map_or_else(String::new, |violation| violation.description)
    })?;
    key.check_new().map_err(|(_, invalid)| invalid.0)?;
    Ok(key)
}

impl Profiles {
    /// Stores what a user did, each activity once. Returns how many were new.
    pub async fn record_activities(
        &self,
        namespace: &Namespace,
        user: &UserId,
        activities: &[Activity],
    ) -> Result<u64, Error> {
        let recorded = self
            .decisions
            .retry(|| async {
                let mut tx = self.database.begin_whole().await?;
                lock_user(&mut *tx, namespace, user).await?;
                let recorded = tx.profiles().record(namespace, user, activities).await?;
                tx.commit().await?;
                Ok(recorded)
            })
            .await?;
        self.metrics.recorded(recorded);
        Ok(recorded)
    }

    /// Suggests entries from what a user did. Returns the new suggestions, the surest first.
    pub async fn generate_suggestions(
        &self,
        asked: &SuggestionsAsked,
    ) -> Result<Vec<SuggestionRecord>, Error> {
        let SuggestionsAsked { namespace, user, .. } = asked;
        let store = self.stored();
        let activities = store
            .activities(namespace, user, asked.since, SHOWN_ACTIVITIES)
            .await?;
        if activities.is_empty() {
            return Ok(Vec::new());
        }
        let material = SuggestionMaterial {
            profile: store.stored_profile(namespace, user).await?.profile(),
            activities,
            include_experience: asked.include_experience,
        };
        let suggested = self.generator.suggest(&material).await;
        let suggested = suggested.map_err(|error| {
            self.metrics.failed();
            error.logged(&*self.generator, "suggestions")
        })?;
        for why in &suggested.unusable {
            self.suggestion_unusable(why);
        }
        let fits = self.fits(asked, &material, suggested.usable);
        let made = self.decisions.retry(|| self.try_suggest(asked, &fits)).await?;
        self.metrics.proposed(made.len());
        Ok(made)
    }

    fn suggestion_unusable(&self, why: &str) {
        let generator = self.generator.name();
        tracing::warn!(generator, why, "a suggestion can't be used");
        self.metrics.unusable();
    }

    /// What of a generator's answer can be suggested, each entry once, the surest first.
    fn fits(
        &self,
        asked: &SuggestionsAsked,
        material: &SuggestionMaterial,
        mut suggested: Vec<Suggested>,
    ) -> Vec<Fit> {
        suggested.sort_by_key(|suggested| std::cmp::Reverse(suggested.confidence));
        let mut keys = HashSet::new();
        let mut fits = Vec::new();
        for suggested in suggested {
            let fit = material.check(&suggested).map_err(|invalid| invalid.0);
            match fit.and_then(|()| Fit::of(asked, suggested)) {
                Ok(fit) if keys.insert(fit.key.clone()) => fits.push(fit),
                Ok(_) => {}
                Err(why) => {
                    self.suggestion_unusable(&why);
                }
            }
        }
        fits
    }

    async fn try_suggest(
        &self,
        asked: &SuggestionsAsked,
        fits: &[Fit],
    ) -> Result<Vec<SuggestionRecord>, Failure> {
        let mut tx = self.database.begin_whole().await?;
        lock_user(&mut *tx, &asked.namespace, &asked.user).await?;
        let sources: Vec<(String, String)> = fits
            .iter()
            .map(|fit| (fit.suggested.source_type.clone(), fit.suggested.source_id.clone()))
            .collect();
        let profiles = tx.profiles();
        let known = profiles.known(&asked.namespace, &asked.user, &sources).await?;
        // The user may have been erased while the generator was at work.
        let is_known = sources.iter().map(|source| known.contains(source));
        let fits: Vec<&Fit> = fits
            .iter()
            .zip(is_known)
            .filter_map(|(fit, known)| known.then_some(fit))
            .collect();
        let keys = fits.iter().map(|fit| fit.key.clone());
        let mut unit = self.decisions.open(&mut *tx, keys).await?;
        let attribution = Attribution::by(asked.actor.clone(), "");
        let mut made: Vec<(&Fit, CandidateId)> = Vec::new();
        for fit in fits {
            let contest = fit.key.contest_id();
            let is_new = unit.state(contest).is_some_and(|state| fit.is_new(state));
            if !is_new || unit.check_size(&fit.key, &fit.value).is_err() || made.len() == MAX_SUGGESTIONS {
                continue;
            }
            let event = Event::Proposed {
                proposal: fit.bytes(),
                value: fit.value.clone(),
            };
            match unit.decide(contest, &event, &attribution, RevisionChoice::Own) {
                Ok(decided) => made.extend(decided.subject.map(|candidate| (fit, candidate))),
                Err(Refusal::RejectedForGood) => {}
                Err(refusal) => return Err(refused(&refusal, &subject(&fit.key)).into()),
            }
        }
        unit.finish(&mut *tx).await?;
        let details = |fit: &Fit| SuggestionDetails::from(&fit.suggested);
        let kept: Vec<_> = made
            .iter()
            .map(|(fit, candidate)| (fit.key.contest_id(), *candidate, details(fit)))
            .collect();
        tx.profiles().save(&kept).await?;
        tx.commit().await?;
        let records = made.iter().filter_map(|(fit, candidate)| {
            Some(SuggestionRecord {
                record: unit.record(fit.key.contest_id(), *candidate)?,
                details: details(fit),
            })
        });
        Ok(records.collect())
    }

    /// A page of what is suggested to a user, the newest first, and whether there is more.
    pub async fn list_suggestions(
        &self,
        namespace: &Namespace,
        user: &UserId,
        statuses: &[Status],
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<(Vec<SuggestionRecord>, bool), Error> {
        let store = self.stored();
        let mut page = store
            .suggestions(namespace, user, statuses, after, limit + 1)
            .await?;
        let more = page.len() > limit as usize;
        page.truncate(limit as usize);
        Ok((page, more))
    }

    /// Carries out a user's decision on a suggestion of the user's own. Returns the suggestion, the profile, and the revision
    /// written.
    pub async fn decide_suggestion(
        &self,
        decided: &SuggestionDecided,
        access: &Access,
    ) -> Result<(SuggestionRecord, StoredProfile, Revision), Error> {
        let SuggestionDecided { user, review } = decided;
        let (namespace, id) = (&review.namespace, review.candidate);
        let unknown = || Error::not_found("suggestion", id.to_string());
        // A candidate never changes its contest, and what it was suggested for.
        let details = self.database.suggestion(id).await?.ok_or_else(unknown)?;
        let record = self
            .decisions
            .candidate(namespace, id)
            .await
            .map_err(|error| match error {
                Error::NotFound { .. } => unknown(),
                other => other,
            })?;
        if record.key.kind != Kind::Profile || record.key.user.as_ref() != Some(user) {
            return Err(unknown());
        }
        let Reviewed { candidate, revision } = self.decisions.review(review, access).await?;
        let suggestion = SuggestionRecord {
            record: candidate,
            details,
        };
        Ok((suggestion, self.profile(namespace, user).await?, revision))
    }
}
