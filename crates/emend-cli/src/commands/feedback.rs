//! `emend feedback`: shows corrections as stored, and labels ratings of search answers.

mod query;

use clap::Subcommand;
use emend_core::ratings::target_named;
use emend_proto::{
    common::v1::{Outcome, OutcomeState, correction::Correction as Variant},
    feedback::v1::{
        ContextState, DeliveryState, Feedback, GetFeedbackRequest, ListFeedbackRequest, SearchRatingFilter,
        SearchRatingState, UpdateFeedbackLabelsRequest,
    },
};

use super::{ids, search::Rating, submit::decision_reasons};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table},
    view,
    words::{self, Delivery, Kind},
};

/// List, get or label.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend feedback list --reporter ana --limit 10
  emend feedback list --delivery dead_letter
  emend feedback list --day 2026-03-29 --time-zone Europe/Berlin
  emend feedback list --target INTERPRET --value BAD
  emend feedback list --rating down --tag synonym_miss --processed false
  emend feedback label 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10 --set low_recall --processed true
  emend feedback get 0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10 --json")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List corrections, newest first, with their outcome and what has become of them since
    List(ListArgs),
    /// Get one correction with its outcome and what has become of it since
    Get {
        /// The feedback's id
        feedback_id: String,
    },
    /// Label a rating of a search answer
    Label(LabelArgs),
}

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("labels").required(true).multiple(true)
    .args(["set", "clear", "processed"])))]
struct LabelArgs {
    /// The feedback's id
    feedback_id: String,
    /// Set this tag, such as `synonym_miss`; may be given several times
    #[arg(long, value_name = "TAG")]
    set: Vec<String>,
    /// Clear this tag; may be given several times
    #[arg(long, value_name = "TAG")]
    clear: Vec<String>,
    /// Whether somebody has dealt with it
    #[arg(long, value_name = "BOOL")]
    processed: Option<bool>,
}

/// Which ratings of search answers.
#[derive(Debug, clap::Args)]
pub(super) struct SearchRatings {
    /// Only ratings of search answers with this value
    #[arg(long, value_enum)]
    rating: Option<Rating>,
    /// Only ratings of queries of this type
    #[arg(long, visible_alias = "type", value_name = "TYPE")]
    query_type: Option<String>,
    /// Only ratings with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only ratings that somebody has dealt with, or that nobody has
    #[arg(long, value_name = "BOOL")]
    processed: Option<bool>,
}

impl SearchRatings {
    /// The filter; none if no rating is asked for.
    pub(super) fn filter(self) -> Option<SearchRatingFilter> {
        let is_asked = self.rating.is_some()
            || self.query_type.is_some()
            || self.tag.is_some()
            || self.processed.is_some();
        is_asked.then(|| SearchRatingFilter {
            value: self.rating.map_or(0, Rating::number),
            query_type: self.query_type.unwrap_or_default(),
            tag: self.tag.unwrap_or_default(),
            processed: self.processed,
            ..SearchRatingFilter::default()
        })
    }
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only corrections by this reporter
    #[arg(long, value_name = "ID")]
    reporter: Option<String>,
    /// Only corrections that propose a resource of this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Only corrections with this state of delivery to learning-svc
    #[arg(long, value_enum)]
    delivery: Option<Delivery>,
    #[command(flatten)]
    rated: Rated,
    #[command(flatten)]
    search_ratings: SearchRatings,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

/// What ratings are of, and when feedback came.
#[derive(Debug, clap::Args)]
pub(super) struct Rated {
    /// Only ratings of this target
    #[arg(long, value_name = "TARGET", default_value = "", hide_default_value = true)]
    target: String,
    /// Only ratings with this value
    #[arg(
        long,
        value_name = "VALUE",
        requires = "target",
        default_value = "",
        hide_default_value = true
    )]
    value: String,
    /// Only what came on this day, as YYYY-MM-DD
    #[arg(long, value_name = "DATE", default_value = "", hide_default_value = true)]
    day: String,
    /// The time zone of the day, by its IANA name, such as Asia/Tokyo; UTC unless it is given
    #[arg(
        long,
        value_name = "ZONE",
        requires = "day",
        default_value = "",
        hide_default_value = true
    )]
    time_zone: String,
}

impl Rated {
    /// A request for these.
    pub(super) fn request(self) -> ListFeedbackRequest {
        ListFeedbackRequest {
            rating_value: rating_value(&self.target, &self.value),
            rating_target: self.target,
            day: self.day,
            time_zone: self.time_zone,
            ..ListFeedbackRequest::default()
        }
    }
}

/// A value as it is sent: those of targets that every namespace has may be written in lower case.
pub(super) fn rating_value(target: &str, value: &str) -> String {
    if target_named(target).is_some() {
        value.to_ascii_uppercase()
    } else {
        value.to_owned()
    }
}

/// Lists, gets or labels.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::Get { feedback_id } => {
            let request = GetFeedbackRequest {
                namespace: context.namespace(),
                feedback_id: ids::feedback(context, feedback_id).await?,
            };
            let mut client = context.feedback().await?;
            let response = client.get_feedback(context.request(request)).await?;
            print(response.into_inner().feedback, output)
        }
        Action::Label(label) => {
            let request = UpdateFeedbackLabelsRequest {
                namespace: context.namespace(),
                feedback_id: ids::feedback(context, label.feedback_id).await?,
                set_tags: label.set,
                clear_tags: label.clear,
                processed: label.processed,
            };
            let mut client = context.feedback().await?;
            let response = client.update_feedback_labels(context.request(request)).await?;
            print(response.into_inner().feedback, output)
        }
        Action::List(list) => {
            let request = ListFeedbackRequest {
                namespace: context.namespace(),
                reporter_id: list.reporter.unwrap_or_default(),
                kind: list.kind.map_or(0, Kind::number),
                search_ratings: list.search_ratings.filter(),
                delivery_state: list.delivery.map_or(0, |state| DeliveryState::from(state) as i32),
                ..list.rated.request()
            };
            let (feedback, more) = context.list(&request, list.limit).await?;
            let (table, none): (fn(&[Feedback]) -> Table, _) = match &request.search_ratings {
                Some(_) => (search_ratings_table, "ratings of search answers"),
                None => (table, "feedback"),
            };
            let all = ListFeedbackRequest {
                namespace: context.namespace(),
                ..ListFeedbackRequest::default()
            };
            let none = context.none_found(none, request != all);
            output.list(&feedback, more, view::message, table, &none)
        }
    }
}

/// The feedback of an answer.
pub(super) fn required(feedback: Option<Feedback>) -> Result<Feedback> {
    feedback.ok_or_else(|| Failure::failed("feedback-svc answered without the feedback"))
}

fn print(feedback: Option<Feedback>, output: &mut Output<'_>) -> Result {
    let feedback = required(feedback)?;
    output.result(&view::message(&feedback), || details(&feedback))
}

fn table(feedback: &[Feedback]) -> Table {
    Table::new([
        ("FEEDBACK", Column::Id),
        ("REPORTER", Column::Text),
        ("WHAT", Column::Text),
        ("WHEN EVALUATED", Column::Fixed),
        ("NOW", Column::Fixed),
        ("", Column::Fixed),
    ])
    .with_rows(feedback, |feedback| {
        [
            feedback.feedback_id.clone().into(),
            feedback
                .reporter
                .as_ref()
                .map(|reporter| reporter.id.clone())
                .unwrap_or_default()
                .into(),
            view::correction_cell(feedback.correction.as_ref()),
            feedback
                .outcome
                .as_ref()
                .map_or_else(|| "pending".into(), |outcome| words::outcome_name(outcome.state))
                .into(),
            now(feedback).into(),
            marks(feedback).into(),
        ]
    })
}

/// Where what it proposed stands now. What had no effect proposed nothing, so learning-svc knows of none.
fn now(feedback: &Feedback) -> String {
    let evaluated = feedback.outcome.as_ref().map(Outcome::state);
    match &feedback.present {
        Some(present) => words::outcome_name(present.state),
        None if evaluated == Some(OutcomeState::NoEffect) => {
            words::outcome_name(OutcomeState::NoEffect.into())
        }
        None => "unknown".into(),
    }
}

/// What was searched, where it is known, and what was said of it.
fn search_ratings_table(feedback: &[Feedback]) -> Table {
    Table::new([
        ("FEEDBACK", Column::Id),
        ("RATING", Column::Fixed),
        ("QUERY", Column::Text),
        ("REASON", Column::Text),
        ("LABELS", Column::Text),
        ("", Column::Fixed),
    ])
    .with_rows(feedback, |feedback| {
        let rating = feedback
            .correction
            .as_ref()
            .and_then(|correction| correction.correction.as_ref());
        let rating = match rating {
            Some(Variant::SearchRating(rating)) => Rating::name(rating.value()),
            _ => "",
        };
        let state = feedback.search_rating.clone().unwrap_or_default();
        let text = state.query.as_ref().map(|query| query.query_text.clone());
        let text = text.filter(|text| !text.is_empty());
        [
            feedback.feedback_id.clone(),
            rating.to_owned(),
            text.unwrap_or_else(|| feedback.query_id.clone()),
            feedback.reason.clone(),
            labels(&state),
            marks(feedback),
        ]
    })
}

/// Tags, and what else is noted of a rating.
fn labels(state: &SearchRatingState) -> String {
    let mut labels = state.tags.clone();
    labels.extend(state.processed.then(|| "(processed)".to_owned()));
    labels.extend(
        state
            .replaced
            .then(|| "(a newer rating counts instead)".to_owned()),
    );
    labels.join(" ")
}

/// Whether it was retracted, redacted, or both.
pub(super) fn marks(feedback: &Feedback) -> String {
    let marks = [
        feedback.retracted_at.map(|_| "retracted"),
        feedback.redacted_at.map(|_| "redacted"),
    ];
    marks.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn correction_text(feedback: &Feedback) -> String {
    view::correction_text(feedback.correction.as_ref())
}

fn details(feedback: &Feedback) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "feedback  {}\nwhat      {}\n",
        feedback.feedback_id,
        correction_text(feedback)
    );
    let reporter = feedback.reporter.clone().unwrap_or_default();
    let context: Vec<_> = feedback
        .context
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    for (name, value) in [
        ("reporter", reporter.id),
        ("caller", feedback.caller.clone()),
        ("reason", feedback.reason.clone()),
        ("query", feedback.query_id.clone()),
        ("context", context.join(" ")),
        ("received", view::short_time(feedback.received_at.as_ref())),
    ] {
        if !value.is_empty() {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{name:<9} {value}");
        }
    }
    if let Some(state) = &feedback.search_rating {
        let query = match state.context_state() {
            ContextState::Complete => format!("known, of type {}", state.query_type),
            ContextState::Missing => "was not recorded".to_owned(),
            ContextState::Pending | ContextState::Unspecified => "not known yet".to_owned(),
        };
        let labels = labels(state);
        let _ = writeln!(text, "context   {query}");
        if let Some(query) = &state.query {
            text.push_str(&query::lines(query));
        }
        if !labels.is_empty() {
            let _ = writeln!(text, "labels    {labels}");
        }
    }
    if feedback.retracted_at.is_some() {
        let at = view::short_time(feedback.retracted_at.as_ref());
        let _ = writeln!(text, "retracted {at} {}", feedback.retract_reason);
    }
    if feedback.redacted_at.is_some() {
        let at = view::short_time(feedback.redacted_at.as_ref());
        let _ = writeln!(text, "redacted  {at}");
    }
    if let Some(outcome) = &feedback.outcome {
        let _ = writeln!(
            text,
            "outcome   when it was evaluated, {}: {}: {}",
            view::short_time(outcome.evaluated_at.as_ref()),
            words::outcome_name(outcome.state),
            outcome.message
        );
        for effect in &outcome.effects {
            let _ = writeln!(
                text,
                "effect    {}: {}",
                words::outcome_name(effect.state),
                effect.message
            );
        }
        for reason in decision_reasons(Some(outcome)) {
            let _ = writeln!(text, "rejected  {reason}");
        }
    }
    if let Some(present) = &feedback.present {
        let _ = writeln!(
            text,
            "now       {}: {}",
            words::outcome_name(present.state),
            present.message
        );
        for effect in &present.effects {
            let _ = writeln!(
                text,
                "effect    {}: {}",
                words::outcome_name(effect.state),
                effect.message
            );
        }
    }
    if let Some(outcome) = &feedback.outcome
        && !outcome.candidate_id.is_empty()
    {
        let _ = writeln!(text, "candidate {}", outcome.candidate_id);
    }
    text
}
