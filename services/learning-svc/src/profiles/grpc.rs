//! The profile service. Every call is about one user; that the caller may act for users is checked before any other thing.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod parse;

use emend_base::Error;
use emend_core::{
    Namespace, Profile, UserId,
    outputs::{Learning, rank_learnings},
};
use emend_proto::learning::v1::{self as pb, profile_service_server::ProfileService};
use emend_serve::{auth::Call, caller::caller_of};
use emend_wire::page;
use learning_store::{
    contests::CandidatePosition,
    profiles::{StoredProfile, SuggestionRecord},
};
use tonic::{Request, Response, Status};

use crate::{
    etag,
    grpc::candidates::{self, token},
    profiles::{Profiles, suggestions::SuggestionDecided},
    roles::open,
};

/// Serves the use cases of profiles.
#[derive(Debug, Clone)]
pub struct ProfileHandler {
    profiles: Profiles,
}

impl ProfileHandler {
    /// Serves the use cases of `profiles`.
    pub fn new(profiles: Profiles) -> Self {
        Self { profiles }
    }
}

#[tonic::async_trait]
impl ProfileService for ProfileHandler {
    async fn get_profile(
        &self,
        request: Request<pb::GetProfileRequest>,
    ) -> Result<Response<pb::GetProfileResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let (namespace, user) = parse::whose(&request.namespace, &request.user_id).map_err(Error::from)?;
        let stored = self.profiles.profile(&namespace, &user).await?;
        Ok(Response::new(pb::GetProfileResponse {
            profile: Some(profile(&namespace, &user, &stored)),
        }))
    }

    async fn rank_learnings(
        &self,
        request: Request<pb::RankLearningsRequest>,
    ) -> Result<Response<pb::RankLearningsResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let (namespace, user, learnings) = parse::learnings(request).map_err(Error::from)?;
        let profile = self.profiles.profile(&namespace, &user).await?.profile();
        let (shown, left_out) = split_learnings(&profile, learnings);
        Ok(Response::new(pb::RankLearningsResponse {
            ids: shown,
            left_out_ids: left_out,
        }))
    }

    async fn update_profile(
        &self,
        request: Request<pb::UpdateProfileRequest>,
    ) -> Result<Response<pb::UpdateProfileResponse>, Status> {
        let caller = caller_of(&request);
        let Call { message: request, .. } = open(request)?;
        let update = parse::update(&caller, &request).map_err(Error::from)?;
        let (stored, revision) = self.profiles.update_profile(&update).await?;
        Ok(Response::new(pb::UpdateProfileResponse {
            profile: Some(profile(&update.namespace, &update.user, &stored)),
            revision: revision.0,
        }))
    }

    async fn record_activity(
        &self,
        request: Request<pb::RecordActivityRequest>,
    ) -> Result<Response<pb::RecordActivityResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let (namespace, user, activities) =
            parse::activities(&request, self.profiles.decisions.clock.now()).map_err(Error::from)?;
        let recorded = self
            .profiles
            .record_activities(&namespace, &user, &activities)
            .await?;
        Ok(Response::new(pb::RecordActivityResponse {
            recorded: i32::try_from(recorded).unwrap_or(i32::MAX),
        }))
    }

    async fn generate_suggestions(
        &self,
        request: Request<pb::GenerateSuggestionsRequest>,
    ) -> Result<Response<pb::GenerateSuggestionsResponse>, Status> {
        let caller = caller_of(&request);
        let Call { message: request, .. } = open(request)?;
        let asked = parse::asked(&caller, &request).map_err(Error::from)?;
        let made = self.profiles.generate_suggestions(&asked).await?;
        Ok(Response::new(pb::GenerateSuggestionsResponse {
            suggestions: made.iter().map(suggestion).collect(),
        }))
    }

    async fn list_suggestions(
        &self,
        request: Request<pb::ListSuggestionsRequest>,
    ) -> Result<Response<pb::ListSuggestionsResponse>, Status> {
        let Call { message: request, .. } = open(request)?;
        let query = parse::query(&request);
        let list = parse::list(&request, query).map_err(Error::from)?;
        let (records, more) = self
            .profiles
            .list_suggestions(
                &list.namespace,
                &list.user,
                &list.statuses,
                list.after,
                list.limit,
            )
            .await?;
        let (suggestions, was_cut) = page::cut(records.iter().map(suggestion).collect());
        let newest = records.iter().take(suggestions.len()).next_back();
        let next = newest.filter(|_| more || was_cut);
        let next = next.map(|of| token(query, CandidatePosition::of(&of.record)));
        Ok(Response::new(pb::ListSuggestionsResponse {
            suggestions,
            next_page_token: next.unwrap_or_default(),
        }))
    }

    async fn accept_suggestion(
        &self,
        request: Request<pb::AcceptSuggestionRequest>,
    ) -> Result<Response<pb::AcceptSuggestionResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let accepted = parse::accepted(&caller, &message).map_err(Error::from)?;
        let (record, stored, revision) = self.profiles.decide_suggestion(&accepted, &access).await?;
        let SuggestionDecided { user, review } = &accepted;
        Ok(Response::new(pb::AcceptSuggestionResponse {
            suggestion: Some(suggestion(&record)),
            profile: Some(profile(&review.namespace, user, &stored)),
            revision: revision.0,
        }))
    }

    async fn reject_suggestion(
        &self,
        request: Request<pb::RejectSuggestionRequest>,
    ) -> Result<Response<pb::RejectSuggestionResponse>, Status> {
        let caller = caller_of(&request);
        let Call { access, message } = open(request)?;
        let rejected = parse::rejected(&caller, &message).map_err(Error::from)?;
        let (record, ..) = self.profiles.decide_suggestion(&rejected, &access).await?;
        Ok(Response::new(pb::RejectSuggestionResponse {
            suggestion: Some(suggestion(&record)),
        }))
    }
}

/// The ids of what to show, in order, and of what is left out, in the order given.
fn split_learnings(profile: &Profile, learnings: Vec<Learning<String>>) -> (Vec<String>, Vec<String>) {
    let places = learnings.iter().enumerate().map(|(place, learning)| Learning {
        item: place,
        topics: learning.topics.clone(),
        level: learning.level,
    });
    let ranked = rank_learnings(profile, places);
    let mut ids: Vec<Option<String>> = learnings
        .into_iter()
        .map(|learning| Some(learning.item))
        .collect();
    let shown = ranked
        .into_iter()
        .filter_map(|learning| ids.get_mut(learning.item)?.take())
        .collect();
    (shown, ids.into_iter().flatten().collect())
}

fn profile(namespace: &Namespace, user: &UserId, stored: &StoredProfile) -> pb::Profile {
    let Profile {
        experience_years,
        specialties,
        known_technologies,
        learning_goals,
    } = stored.profile();
    pb::Profile {
        namespace: namespace.to_string(),
        user_id: user.to_string(),
        experience_years: experience_years.map(|years| i32::try_from(years).unwrap_or(i32::MAX)),
        specialties: specialties.into_values().collect(),
        known_technologies: known_technologies.into_values().collect(),
        learning_goals: learning_goals.into_values().collect(),
        etag: etag::of_revision(stored.revision.0),
        revision: stored.revision.0,
    }
}

fn suggestion(of: &SuggestionRecord) -> pb::ProfileSuggestion {
    pb::ProfileSuggestion {
        candidate: Some(candidates::candidate(&of.record)),
        suggestion: Some(candidates::suggestion(&of.details)),
    }
}
