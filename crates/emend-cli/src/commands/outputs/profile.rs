//! `emend outputs profile`: what a user knows and wants to learn.

mod learnings;
mod suggestions;

use clap::{Subcommand, ValueEnum};
use emend_core::kinds::{EXPERIENCE_YEARS, KNOWN_TECHNOLOGIES, LEARNING_GOALS, SPECIALTIES};
use emend_proto::learning::v1::{
    Activity, GetProfileRequest, Profile, RecordActivityRequest, UpdateProfileRequest,
};
use prost_types::{FieldMask, Timestamp};
use serde_json::json;

pub(in crate::commands) use self::suggestions::suggests;
use self::suggestions::{AcceptArgs, ListArgs, RejectArgs, SuggestArgs};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted},
    view, words,
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
  emend outputs profile rank --user mia courses.jsonl

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
    /// Order what there is to learn by a user's profile: goals first, without the basics of what is
    /// known
    Rank(learnings::Args),
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
        Action::Suggest(args) => suggestions::suggest(args, context, output).await,
        Action::Suggestions(args) => suggestions::list(args, context, output).await,
        Action::Accept(args) => suggestions::accept(args, context, output).await,
        Action::Reject(args) => suggestions::reject(args, context, output).await,
        Action::Rank(args) => learnings::rank(args, context, output).await,
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
        .map_or_else(String::new, |years| counted(years, "year", "years"));
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
