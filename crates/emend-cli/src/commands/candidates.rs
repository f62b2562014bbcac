//! `emend candidates`: the review queue.

mod queue;
mod render;
mod talk;

use std::fmt::Write as _;

use clap::{Subcommand, ValueEnum as _};
use emend_base::status::from_item_status;
use emend_core::{Invalid, Learned, Relation, Synonym};
use emend_proto::{
    common::v1::ResourceValue,
    learning::v1::{
        ApproveCandidateRequest, BatchApproveCandidatesRequest, BatchRejectCandidatesRequest, CandidateOrder,
        CandidateStatus, GetCandidateRequest, GetCandidateResponse, ListCandidatesRequest,
        PreviewCandidateRequest, RejectCandidateRequest, ReviewResult, SecondOpinionFilter,
        UndoDecisionRequest,
    },
};

use jiff::Timestamp;

use self::render::{details_text, subject, table};
use super::{
    Decision, ids,
    previews::{self, Tried},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    view,
    words::{self, Kind, Status},
};

/// The most candidates in one batch.
const BATCH: usize = 100;

/// List, show, approve or reject, and undo that.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend candidates list
  emend candidates list --status pending --status applied
  emend candidates list --user mia
  emend candidates list --order votes --text csa --created-after 2026-01-01
  emend candidates list --asked tom
  emend candidates list --status applied --status rejected --decided-by tom
  emend candidates show 0e939fab-e5c7-8140-b875-9d80da3294c0
  emend candidates preview 0e939fab-e5c7-8140-b875-9d80da3294c0 --days 14
  emend candidates approve 0e939fab-e5c7-8140-b875-9d80da3294c0 --by dana --reason \"asked legal\"
  emend candidates approve 0e939fab-e5c7-8140-b875-9d80da3294c0 --instead create_isda_2002
  emend candidates reject 0e939fab-e5c7-8140-b875-9d80da3294c0 --reason \"that verb is retired\"
  emend candidates undo 0e939fab-e5c7-8140-b875-9d80da3294c0
  emend candidates ask 0e939fab-e5c7-8140-b875-9d80da3294c0 \"is that verb still in use?\" --of tom
  emend candidates comment 0e939fab-e5c7-8140-b875-9d80da3294c0 \"it is\"
  emend candidates stats --days 7
  emend candidates watch --json
  emend candidates approve $(emend candidates list --status pending --json | jq -r .candidateId)

Where the policy needs two reviewers, what one approves waits, with the reason SECOND_REVIEWER, for
another authenticated caller to approve the same value. What a person approves is pinned: votes do not replace it. What a person rejects, votes do not
re-open. Either can be undone for 10 minutes by who decided it or an operator, unless something
else was decided about the same phrase since: all is as it was before, and votes since then count. NET is a candidate's votes less those of its strongest rival; one without votes, such as a
synonym that was mined from queries (`emend search queries --help`), has none. What can be mined is
proposed within some five minutes. Of an id the first eight characters or more will do, as tables
show them where the terminal is narrow.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List candidates, newest first unless another order is asked for
    List(ListArgs),
    /// Show one candidate with its votes, rivals, feedback and history
    Show {
        /// The candidate's id
        candidate_id: String,
    },
    /// Show which answers to recorded queries would change if a candidate were applied
    Preview(PreviewArgs),
    /// Apply candidates and pin their contests
    Approve(ApproveArgs),
    /// Reject candidates; votes do not re-open them
    Reject(RejectArgs),
    /// Undo the last approval or rejection of a candidate, within 10 minutes
    Undo(UndoArgs),
    /// Ask another reviewer about a candidate that awaits review
    Ask(talk::AskArgs),
    /// Comment on a candidate, which answers what others asked you
    Comment(talk::CommentArgs),
    /// Show others for 60 s that you have a candidate open
    Open(queue::OpenArgs),
    /// Show that you do not have a candidate open any more
    Close(queue::OpenArgs),
    /// Show how much was received and decided each day, and what waits
    Stats(queue::StatsArgs),
    /// Print what changes in the queue, as it changes
    Watch(queue::WatchArgs),
}

/// The order of a list.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Order {
    /// By when they were first proposed, the newest first
    Newest,
    /// By when they were first proposed, the oldest first
    Oldest,
    /// By how many support them, most first; of what awaits review
    Votes,
    /// By how little their support differs from that of their rivals; of what awaits review
    Controversy,
}

impl From<Order> for CandidateOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Newest => Self::NewestFirst,
            Order::Oldest => Self::OldestFirst,
            Order::Votes => Self::MostVotes,
            Order::Controversy => Self::MostControversial,
        }
    }
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only candidates with this status; may be given several times
    #[arg(long, value_enum, default_value = "awaiting_review")]
    status: Vec<Status>,
    /// Only candidates of this kind; may be given several times
    #[arg(long, value_enum)]
    kind: Vec<Kind>,
    /// Only candidates for this phrase
    #[arg(long, value_name = "PHRASE")]
    key: Option<String>,
    /// In which order
    #[arg(long, value_enum, default_value = "newest")]
    order: Order,
    /// Only candidates whose phrase or value contains this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    text: String,
    /// Only candidates first proposed at or after this time
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    created_after: Option<Timestamp>,
    /// Only candidates first proposed before this time
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    created_before: Option<Timestamp>,
    /// Only candidates that one reviewer approved, where the policy needs two
    #[arg(long)]
    second_reviewer: bool,
    /// Only candidates for which others wait for this reviewer's answer, or for anybody's
    #[arg(long, value_name = "NAME")]
    asked: Option<String>,
    /// Only candidates about which this reviewer waits for an answer
    #[arg(long, value_name = "NAME")]
    asked_by: Option<String>,
    /// Only candidates that this person decided, set, deleted or reverted in the last 24 hours, and nobody changed since
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    decided_by: String,
    /// With --decided-by: since this time instead, at most 7 days ago
    #[arg(long, value_name = "TIME", value_parser = words::instant, requires = "decided_by")]
    decided_after: Option<Timestamp>,
    /// List what is this user's own: suggested entries of the profile, preferences
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    user: String,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

#[derive(Debug, clap::Args)]
struct PreviewArgs {
    /// The candidate's id
    candidate_id: String,
    #[command(flatten)]
    tried: Tried,
}

#[derive(Debug, clap::Args)]
struct ApproveArgs {
    /// The candidates' ids
    #[arg(required = true, value_name = "CANDIDATE_ID")]
    candidate_ids: Vec<String>,
    /// Apply this verb, entity or choice instead (of a synonym: this relation, of a prompt: this text); for a single candidate only
    #[arg(long, value_name = "CHOICE")]
    instead: Option<String>,
    #[command(flatten)]
    decision: Decision,
    /// Only if it still has this etag; for a single candidate only
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    /// Also proposals made of ratings that have been redacted since
    #[arg(long)]
    accept_redacted: bool,
}

#[derive(Debug, clap::Args)]
struct RejectArgs {
    /// The candidates' ids
    #[arg(required = true, value_name = "CANDIDATE_ID")]
    candidate_ids: Vec<String>,
    /// Why; shown to reporters who propose it again
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The person on whose behalf you do it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
    /// Only if it still has this etag; for a single candidate only
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
}

#[derive(Debug, clap::Args)]
struct UndoArgs {
    /// The id of the candidate that was approved or rejected
    candidate_id: String,
    /// The person on whose behalf you do it: the one who decided, unless you are an operator
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
}

/// Lists, shows, approves, rejects, or undoes that.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::List(args) => list(args, context, output).await,
        Action::Show { candidate_id } => {
            let details = get(context, candidate_id).await?;
            let (width, coloured) = (output.width(), output.is_coloured());
            output.result(&view::message(&details), || {
                details_text(&details, width, coloured)
            })
        }
        Action::Preview(args) => preview(args, context, output).await,
        Action::Approve(args) => approve(args, context, output).await,
        Action::Reject(args) => reject(args, context, output).await,
        Action::Undo(args) => undo(args, context, output).await,
        Action::Ask(args) => talk::ask(args, context, output).await,
        Action::Comment(args) => talk::comment(args, context, output).await,
        Action::Open(args) => queue::open(args, context, output).await,
        Action::Close(args) => queue::close(args, context, output).await,
        Action::Stats(args) => queue::stats(args, context, output).await,
        Action::Watch(args) => queue::watch(args, context, output).await,
    }
}

async fn list(args: ListArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let statuses: Vec<i32> = args
        .status
        .iter()
        .map(|&status| CandidateStatus::from(status) as i32)
        .collect();
    let (candidates, more) = context
        .list(
            &ListCandidatesRequest {
                namespace: context.namespace(),
                kinds: words::kind_numbers(&args.kind),
                statuses,
                key: args.key.clone().unwrap_or_default(),
                user_id: args.user.clone(),
                order: CandidateOrder::from(args.order) as i32,
                created_before: args.created_before.map(emend_wire::render::timestamp),
                created_after: args.created_after.map(emend_wire::render::timestamp),
                text: args.text.clone(),
                second_opinion: (args.asked.is_some() || args.asked_by.is_some()).then(|| {
                    SecondOpinionFilter {
                        asked: args.asked.clone().unwrap_or_default(),
                        asked_by: args.asked_by.clone().unwrap_or_default(),
                    }
                }),
                needs_second_reviewer: args.second_reviewer,
                decided_by: args.decided_by.clone(),
                decided_after: args.decided_after.map(emend_wire::render::timestamp),
                ..ListCandidatesRequest::default()
            },
            args.limit,
        )
        .await?;
    output.list(&candidates, more, view::message, table, &none(&args, context))
}

/// The text for an empty list: of which candidates there are none, and which others there may be.
fn none(args: &ListArgs, context: &Context) -> String {
    let name = |status: Status| words::status_name(CandidateStatus::from(status) as i32);
    let names = |statuses: Vec<Status>| statuses.into_iter().map(name).collect::<Vec<_>>();
    let what = format!(
        "candidates with the status {}",
        names(args.status.clone()).join(" or ")
    );
    let is_filtered = !args.kind.is_empty()
        || args.key.is_some()
        || !args.user.is_empty()
        || args.second_reviewer
        || !args.text.is_empty()
        || !args.decided_by.is_empty()
        || [&args.asked, &args.asked_by].into_iter().any(Option::is_some)
        || [&args.created_after, &args.created_before]
            .into_iter()
            .any(Option::is_some);
    let mut text = context.none_found(&what, is_filtered);
    let mut others = Status::value_variants().to_vec();
    others.retain(|status| !args.status.contains(status));
    if !others.is_empty() {
        let _ = write!(
            text,
            "\nFor others: --status {}",
            names(others).join(" --status ")
        );
    }
    text
}

async fn get(context: &Context, candidate_id: String) -> Result<GetCandidateResponse> {
    let candidate_id = ids::candidate(context, candidate_id, "").await?;
    let request = GetCandidateRequest {
        namespace: context.namespace(),
        candidate_id,
    };
    let response = context
        .candidates()
        .await?
        .get_candidate(context.request(request))
        .await?;
    Ok(response.into_inner())
}

async fn preview(args: PreviewArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = PreviewCandidateRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, "").await?,
        queries: previews::searched(context, &args.tried).await?,
    };
    let mut client = context.candidates().await?;
    let answer = client
        .preview_candidate(context.request(request))
        .await?
        .into_inner();
    let width = output.width();
    output.result(&view::message(&answer), || {
        previews::text(&answer.changes.clone().unwrap_or_default(), &args.tried, width)
    })
}

async fn approve(args: ApproveArgs, context: &Context, output: &mut Output<'_>) -> Result {
    only_for_a_single_candidate(
        &args.candidate_ids,
        !args.etag.is_empty() || args.instead.is_some(),
    )?;
    let candidate_ids = ids::candidates(context, args.candidate_ids, "").await?;
    let edited_value = match (&args.instead, candidate_ids.first()) {
        (Some(choice), Some(id)) => Some(edited(context, id.clone(), choice).await?),
        _ => None,
    };
    let requests: Vec<_> = candidate_ids
        .into_iter()
        .map(|candidate_id| ApproveCandidateRequest {
            namespace: context.namespace(),
            candidate_id,
            etag: args.etag.clone(),
            reason: args.decision.reason.clone(),
            edited_value: edited_value.clone(),
            on_behalf_of: args.decision.by.clone(),
            accept_redacted: args.accept_redacted,
        })
        .collect();
    let mut client = context.candidates().await?;
    let mut results = Vec::new();
    for requests in requests.chunks(BATCH) {
        let batch = BatchApproveCandidatesRequest {
            requests: requests.to_vec(),
        };
        results.extend(
            client
                .batch_approve_candidates(context.request(batch))
                .await?
                .into_inner()
                .results,
        );
    }
    print_results("Approved", &results, output)
}

/// The candidate's value with the choice replaced; for a synonym, whose choice is part of the key, with the relation.
async fn edited(context: &Context, candidate_id: String, choice: &str) -> Result<ResourceValue> {
    let candidate = get(context, candidate_id).await?.candidate.unwrap_or_default();
    let kind = candidate.key.map_or(0, |key| key.kind);
    let kind = emend_core::Kind::from_number(kind).ok_or_else(|| {
        Failure::usage(format!(
            "--instead: this version can't edit values of kind {kind}"
        ))
    })?;
    let learned = match view::learned(candidate.value.as_ref()) {
        Some(Learned::Synonym(synonym)) => Learned::Synonym(Synonym {
            relation: Relation::parse(choice)
                .map_err(|Invalid(why)| Failure::usage(format!("--instead: {why}")))?,
            ..synonym
        }),
        // Another text: variables and settings stay.
        Some(Learned::Prompt(prompt)) => Learned::Prompt(
            prompt
                .with_text(choice)
                .map_err(|violations| Failure::usage(format!("--instead: {violations}")))?,
        ),
        _ => Learned::of(kind, choice.to_owned())
            .map_err(|Invalid(why)| Failure::usage(format!("--instead: {why}")))?,
    };
    Ok(ResourceValue {
        value: Some(emend_wire::kinds::value(&learned)),
        ..candidate.value.unwrap_or_default()
    })
}

async fn reject(args: RejectArgs, context: &Context, output: &mut Output<'_>) -> Result {
    only_for_a_single_candidate(&args.candidate_ids, !args.etag.is_empty())?;
    let requests: Vec<_> = ids::candidates(context, args.candidate_ids, "")
        .await?
        .into_iter()
        .map(|candidate_id| RejectCandidateRequest {
            namespace: context.namespace(),
            candidate_id,
            etag: args.etag.clone(),
            reason: args.reason.clone(),
            on_behalf_of: args.by.clone(),
        })
        .collect();
    let mut client = context.candidates().await?;
    let mut results = Vec::new();
    for requests in requests.chunks(BATCH) {
        let batch = BatchRejectCandidatesRequest {
            requests: requests.to_vec(),
        };
        results.extend(
            client
                .batch_reject_candidates(context.request(batch))
                .await?
                .into_inner()
                .results,
        );
    }
    print_results("Rejected", &results, output)
}

async fn undo(args: UndoArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = UndoDecisionRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, "").await?,
        etag: args.etag,
        on_behalf_of: args.by,
    };
    let mut client = context.candidates().await?;
    let undone = client.undo_decision(context.request(request)).await?.into_inner();
    output.result(&view::message(&undone), || {
        let candidate = undone.candidate.clone().unwrap_or_default();
        let at = match undone.revision {
            0 => "no resource changed".into(),
            revision => format!("revision {revision}"),
        };
        format!(
            "Undone: {} is {} again ({}; {at})",
            subject(&candidate).text(),
            words::status_name(candidate.status),
            candidate.candidate_id
        )
    })
}

fn only_for_a_single_candidate(ids: &[String], asked: bool) -> Result {
    if asked && ids.len() > 1 {
        return Err(Failure::usage("--etag and --instead are for one candidate only"));
    }
    Ok(())
}

/// Prints the result of each item. The first failure gives the exit code.
fn print_results(done: &str, results: &[ReviewResult], output: &mut Output<'_>) -> Result {
    let mut failure = None;
    for result in results {
        let status = result.status.as_ref().and_then(from_item_status);
        if let Some(status) = status {
            if output.is_json() {
                output.result(&view::message(result), String::new)?;
            }
            let refused = Failure::from(status);
            if failure.is_none() {
                failure = Some(refused);
            } else {
                // Only the first failure is returned for the caller to report; the others are reported here.
                refused.report(output.is_json());
            }
            continue;
        }
        output.result(&view::message(result), || {
            let candidate = result.candidate.clone().unwrap_or_default();
            if candidate.status_reason == "SECOND_REVIEWER" && done == "Approved" {
                return format!(
                    "Approved {} ({}); another reviewer has to approve it, too",
                    subject(&candidate).text(),
                    candidate.candidate_id
                );
            }
            let at = match result.revision {
                0 => "nothing changed".into(),
                revision => format!("revision {revision}"),
            };
            format!(
                "{done} {} ({}; {at})",
                subject(&candidate).text(),
                candidate.candidate_id
            )
        })?;
    }
    failure.map_or(Ok(()), Err)
}
