//! What is suggested to a user, and what the user decides about it.

use emend_proto::learning::v1::{
    AcceptSuggestionRequest, CandidateStatus, GenerateSuggestionsRequest, ListSuggestionsRequest,
    ProfileSuggestion, RejectSuggestionRequest, Suggestion, SuggestionType,
};
use prost_types::Timestamp;
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::{User, text};
use crate::{
    commands::ids,
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table},
    view,
    words::{self, Reviewed},
};

#[derive(Debug, clap::Args)]
pub(super) struct SuggestArgs {
    #[command(flatten)]
    user: User,
    /// Only from what was done since then: RFC 3339, or a date
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    since: Option<Timestamp>,
    /// Also suggest how many years of experience the user has
    #[arg(long)]
    experience: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    user: User,
    /// Only suggestions with this status; may be given several times
    #[arg(long, value_enum, default_value = "awaiting_review")]
    status: Vec<Reviewed>,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

#[derive(Debug, clap::Args)]
pub(super) struct AcceptArgs {
    #[command(flatten)]
    user: User,
    /// The suggestion's candidate id
    candidate_id: String,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct RejectArgs {
    #[command(flatten)]
    user: User,
    /// The suggestion's candidate id
    candidate_id: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
}

/// A limit of time of the caller's own ends the generating: it says how to wait longer.
fn given_up(status: Status) -> Failure {
    if status.code() != Code::DeadlineExceeded {
        return status.into();
    }
    Failure::Unavailable(
        "there was no answer within --timeout, and what was being generated is given up: without --timeout the command waits \
         as long as the service does"
            .to_owned(),
    )
}

pub(super) async fn suggest(args: SuggestArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = GenerateSuggestionsRequest {
        namespace: context.namespace(),
        user_id: args.user.user,
        since: args.since,
        include_experience: args.experience,
    };
    let mut client = context.profiles().await?;
    let response = client
        .generate_suggestions(context.request_of_model(request))
        .await
        .map_err(given_up)?
        .into_inner();
    output.results(
        &response.suggestions,
        suggestion_json,
        table,
        "Nothing new to suggest from what is recorded.",
    )
}

pub(super) async fn list(args: ListArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let statuses = args
        .status
        .iter()
        .map(|status| CandidateStatus::from(*status) as i32);
    let statuses: Vec<i32> = statuses.collect();
    let (suggestions, more) = context
        .list(
            &ListSuggestionsRequest {
                namespace: context.namespace(),
                user_id: args.user.user.clone(),
                statuses,
                ..ListSuggestionsRequest::default()
            },
            args.limit,
        )
        .await?;
    let none = context.none_found(&format!("suggestions for the user {:?}", args.user.user), true)
        + Reviewed::none_gathers_votes(&args.status);
    output.list(&suggestions, more, suggestion_json, table, &none)
}

pub(super) async fn accept(args: AcceptArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = AcceptSuggestionRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, &args.user.user).await?,
        user_id: args.user.user,
        etag: args.etag,
    };
    let mut client = context.profiles().await?;
    let response = client
        .accept_suggestion(context.request(request))
        .await?
        .into_inner();
    let (suggestion, profile) = (
        response.suggestion.unwrap_or_default(),
        response.profile.unwrap_or_default(),
    );
    let json = json!({
        "suggestion": suggestion_json(&suggestion),
        "profile": view::message(&profile),
        "revision": response.revision,
    });
    output.result(&json, || {
        let entry = entry(&suggestion);
        format!(
            "Accepted {entry} (revision {})\n\n{}",
            response.revision,
            text(&profile)
        )
    })
}

pub(super) async fn reject(args: RejectArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = RejectSuggestionRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, &args.user.user).await?,
        user_id: args.user.user,
        reason: args.reason,
        etag: args.etag,
    };
    let mut client = context.profiles().await?;
    let response = client
        .reject_suggestion(context.request(request))
        .await?
        .into_inner();
    let suggestion = response.suggestion.unwrap_or_default();
    output.result(&suggestion_json(&suggestion), || {
        format!("Rejected {}; it is not suggested again", entry(&suggestion))
    })
}

/// What a suggestion changes, and how sure it is: `technology (85 % sure)`.
pub(in crate::commands) fn suggests(suggestion: &Suggestion) -> String {
    format!(
        "{} ({:.0} % sure)",
        kind(suggestion),
        suggestion.confidence * 100.0
    )
}

fn kind(suggestion: &Suggestion) -> &'static str {
    match SuggestionType::try_from(suggestion.r#type) {
        Ok(SuggestionType::AddTechnology) => "technology",
        Ok(SuggestionType::AddSpecialty) => "specialty",
        Ok(SuggestionType::AddGoal) => "goal",
        Ok(SuggestionType::UpdateExperience) => "experience",
        Ok(SuggestionType::Unspecified) | Err(_) => "?",
    }
}

/// The entry that is suggested.
fn entry(suggestion: &ProfileSuggestion) -> String {
    let candidate = suggestion.candidate.as_ref();
    view::value_text(candidate.and_then(|candidate| candidate.value.as_ref()))
}

fn suggestion_json(suggestion: &ProfileSuggestion) -> Value {
    json!({
        "candidate": suggestion.candidate.as_ref().map(view::message),
        "suggestion": suggestion.suggestion.as_ref().map(view::message),
    })
}

fn table(suggestions: &[ProfileSuggestion]) -> Table {
    Table::new([
        ("CANDIDATE", Column::Id),
        ("WHAT", Column::Fixed),
        ("ENTRY", Column::Text),
        ("STATUS", Column::Fixed),
        ("SURE", Column::Number),
        ("FROM", Column::Text),
        ("WHY", Column::Text),
    ])
    .with_rows(suggestions, |suggested| {
        let candidate = suggested.candidate.clone().unwrap_or_default();
        let suggestion = suggested.suggestion.clone().unwrap_or_default();
        [
            candidate.candidate_id.clone(),
            kind(&suggestion).into(),
            entry(suggested),
            words::status_name(candidate.status),
            format!("{:.2}", suggestion.confidence),
            format!("{} {}", suggestion.source_type, suggestion.source_id),
            suggestion.reason,
        ]
    })
}
