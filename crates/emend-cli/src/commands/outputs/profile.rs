//! `emend outputs profile`: what a user knows and wants to learn.

use clap::{Subcommand, ValueEnum};
use emend_core::kinds::{EXPERIENCE_YEARS, KNOWN_TECHNOLOGIES, LEARNING_GOALS, SPECIALTIES};
use emend_proto::learning::v1::{
    AcceptSuggestionRequest, Activity, CandidateStatus, GenerateSuggestionsRequest, GetProfileRequest,
    ListSuggestionsRequest, Profile, ProfileSuggestion, RecordActivityRequest, RejectSuggestionRequest,
    Suggestion, SuggestionType, UpdateProfileRequest,
};
use prost_types::{FieldMask, Timestamp};
use serde_json::{Value, json};

use crate::{
    commands::ids,
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table},
    view::{self, standing_word},
    words,
};

/// Show, change, or complete it from what the user did.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend outputs profile set --user mia --years 5 --technology Rust --goal Kubernetes
  emend outputs profile show --user mia
  emend outputs profile record --user mia --source GITHUB --id pr-17 --technology Go --goal Helm
  emend outputs profile suggest --user mia
  emend outputs profile suggestions --user mia
  emend outputs profile accept --user mia 0e939fab-e5c7-8140-b875-9d80da3294c0
  emend outputs profile reject --user mia 0e939fab-e5c7-8140-b875-9d80da3294c0 --reason \"used once\"

What is suggested waits until its user accepts it. What was rejected is not suggested again.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show a user's profile
    Show {
        #[command(flatten)]
        user: User,
    },
    /// Change a profile, as its user's own decision
    Set(Box<SetArgs>),
    /// Suggest entries from what the user did
    Suggest(SuggestArgs),
    /// List suggestions, newest first
    Suggestions(ListArgs),
    /// Accept a suggestion: it becomes an entry of the profile
    Accept(AcceptArgs),
    /// Reject a suggestion; it is not made again
    Reject(RejectArgs),
    /// Record something that the user did
    Record(Box<RecordArgs>),
}

#[derive(Debug, clap::Args)]
struct User {
    /// Whose profile it is
    #[arg(long, value_name = "ID")]
    user: String,
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    #[command(flatten)]
    user: User,
    /// Years of experience, 0 to 80
    #[arg(long, value_name = "YEARS")]
    years: Option<i32>,
    /// What the user is a specialist in; all of them, one option for each
    #[arg(long = "specialty", value_name = "NAME")]
    specialties: Vec<String>,
    /// The technologies that the user knows; all of them, one option for each
    #[arg(long = "technology", value_name = "NAME")]
    technologies: Vec<String>,
    /// What the user wants to learn; all of them, one option for each
    #[arg(long = "goal", value_name = "NAME")]
    goals: Vec<String>,
    /// Make this field empty; may be given several times
    #[arg(long, value_enum, value_name = "FIELD")]
    clear: Vec<ProfileField>,
    /// Only if the profile still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

/// A field of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProfileField {
    Years,
    Specialties,
    Technologies,
    Goals,
}

impl ProfileField {
    fn name(self) -> &'static str {
        match self {
            Self::Years => EXPERIENCE_YEARS,
            Self::Specialties => SPECIALTIES,
            Self::Technologies => KNOWN_TECHNOLOGIES,
            Self::Goals => LEARNING_GOALS,
        }
    }
}

#[derive(Debug, clap::Args)]
struct SuggestArgs {
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
struct ListArgs {
    #[command(flatten)]
    user: User,
    /// Only suggestions with this status; may be given several times
    #[arg(long, value_enum, default_value = "pending")]
    status: Vec<Standing>,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

/// What became of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Standing {
    /// The user has not decided
    Pending,
    /// It is an entry of the profile
    Accepted,
    /// It is not made again
    Rejected,
}

impl From<Standing> for CandidateStatus {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Pending => Self::AwaitingReview,
            Standing::Accepted => Self::Applied,
            Standing::Rejected => Self::Rejected,
        }
    }
}

#[derive(Debug, clap::Args)]
struct AcceptArgs {
    #[command(flatten)]
    user: User,
    /// The suggestion's candidate id
    candidate_id: String,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
}

#[derive(Debug, clap::Args)]
struct RejectArgs {
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

#[derive(Debug, clap::Args)]
struct RecordArgs {
    #[command(flatten)]
    user: User,
    /// What tells of it
    #[arg(
        long,
        value_name = "NAME",
        help = "What tells of it: CLAUDE_CODE, LEARNING, GITHUB or an own name"
    )]
    source: String,
    /// Its id there; what is recorded already is kept as it is
    #[arg(long, value_name = "ID")]
    id: String,
    /// When it was done: RFC 3339, or a date [default: now]
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    at: Option<Timestamp>,
    /// What was done, in words
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    summary: String,
    /// A technology that was used; may be given several times
    #[arg(long = "technology", value_name = "NAME")]
    technologies: Vec<String>,
    /// A field that it belongs to; may be given several times
    #[arg(long = "topic", value_name = "NAME")]
    topics: Vec<String>,
    /// What the user said to want to learn; may be given several times
    #[arg(long = "goal", value_name = "NAME")]
    goals: Vec<String>,
    /// The years of experience that it shows
    #[arg(long, value_name = "YEARS")]
    years: Option<i32>,
}

/// Shows or changes a profile, or decides about suggestions.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::Show { user } => show(user.user, context, output).await,
        Action::Set(args) => set(*args, context, output).await,
        Action::Suggest(args) => suggest(args, context, output).await,
        Action::Suggestions(args) => list(args, context, output).await,
        Action::Accept(args) => accept(args, context, output).await,
        Action::Reject(args) => reject(args, context, output).await,
        Action::Record(args) => record(*args, context, output).await,
    }
}

async fn show(user_id: String, context: &Context, output: &mut Output<'_>) -> Result {
    let request = GetProfileRequest {
        namespace: context.namespace(),
        user_id,
    };
    let mut client = context.profiles().await?;
    let response = client.get_profile(context.request(request)).await?.into_inner();
    let profile = response.profile.unwrap_or_default();
    output.result(&view::message(&profile), || text(&profile))
}

async fn set(args: SetArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let is_given = |field: ProfileField| match field {
        ProfileField::Years => args.years.is_some(),
        ProfileField::Specialties => !args.specialties.is_empty(),
        ProfileField::Technologies => !args.technologies.is_empty(),
        ProfileField::Goals => !args.goals.is_empty(),
    };
    let is_cleared = |field: ProfileField| args.clear.contains(&field);
    let fields = ProfileField::value_variants().iter().copied();
    if let Some(both) = fields
        .clone()
        .find(|field| is_given(*field) && is_cleared(*field))
    {
        return Err(Failure::usage(format!("--clear: {} is given too", both.name())));
    }
    let paths: Vec<String> = fields
        .filter(|field| is_given(*field) || is_cleared(*field))
        .map(|field| field.name().to_owned())
        .collect();
    if paths.is_empty() {
        return Err(Failure::usage(
            "nothing to set: pass --years, --specialty, --technology, --goal or --clear",
        ));
    }
    let request = UpdateProfileRequest {
        profile: Some(Profile {
            namespace: context.namespace(),
            user_id: args.user.user,
            experience_years: args.years,
            specialties: args.specialties,
            known_technologies: args.technologies,
            learning_goals: args.goals,
            etag: args.etag,
            revision: 0,
        }),
        update_mask: Some(FieldMask { paths }),
        reason: args.reason,
    };
    let mut client = context.profiles().await?;
    let response = client
        .update_profile(context.request(request))
        .await?
        .into_inner();
    let profile = response.profile.unwrap_or_default();
    let json = json!({"profile": view::message(&profile), "revision": response.revision});
    output.result(&json, || text(&profile))
}

async fn suggest(args: SuggestArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = GenerateSuggestionsRequest {
        namespace: context.namespace(),
        user_id: args.user.user,
        since: args.since,
        include_experience: args.experience,
    };
    let mut client = context.profiles().await?;
    let response = client
        .generate_suggestions(context.request(request))
        .await?
        .into_inner();
    output.results(
        &response.suggestions,
        suggestion_json,
        table,
        "Nothing new to suggest from what is recorded.",
    )
}

async fn list(args: ListArgs, context: &Context, output: &mut Output<'_>) -> Result {
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
                statuses: statuses.clone(),
                ..ListSuggestionsRequest::default()
            },
            args.limit,
        )
        .await?;
    let none = format!("No such suggestions for the user {:?}.", args.user.user);
    output.list(&suggestions, more, suggestion_json, table, &none)
}

async fn accept(args: AcceptArgs, context: &Context, output: &mut Output<'_>) -> Result {
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

async fn reject(args: RejectArgs, context: &Context, output: &mut Output<'_>) -> Result {
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

async fn record(args: RecordArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = RecordActivityRequest {
        namespace: context.namespace(),
        user_id: args.user.user,
        activities: vec![Activity {
            source_type: args.source,
            source_id: args.id,
            occurred_at: args.at,
            summary: args.summary,
            technologies: args.technologies,
            topics: args.topics,
            goals: args.goals,
            experience_years: args.years,
        }],
    };
    let mut client = context.profiles().await?;
    let response = client
        .record_activity(context.request(request))
        .await?
        .into_inner();
    output.result(&json!({"recorded": response.recorded}), || {
        match response.recorded {
            0 => "It was recorded before, and stays as it is".into(),
            _ => "Recorded".into(),
        }
    })
}

fn text(profile: &Profile) -> String {
    let or_dash = |text: String| if text.is_empty() { "–".to_owned() } else { text };
    let years = profile
        .experience_years
        .map_or_else(String::new, |years| format!("{years} years"));
    let rows = [
        ("user", profile.user_id.clone()),
        ("experience", years),
        ("specialties", profile.specialties.join(", ")),
        ("knows", profile.known_technologies.join(", ")),
        ("wants to learn", profile.learning_goals.join(", ")),
        ("revision", profile.revision.to_string()),
    ];
    let lines = rows.map(|(name, value)| format!("{name:<15} {}", or_dash(value)));
    lines.join("\n")
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
            standing_word(&candidate),
            format!("{:.2}", suggestion.confidence),
            format!("{} {}", suggestion.source_type, suggestion.source_id),
            suggestion.reason,
        ]
    })
}
