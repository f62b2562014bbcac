//! `emend outputs ratings`: what an AI made, rated.

mod import;

use clap::Subcommand;
use emend_core::{Kind, ratings::RatingClass};
use emend_proto::{
    common::v1::{Rating, correction::Correction as Variant},
    feedback::v1::{Feedback, ListFeedbackRequest},
};

use crate::{
    commands::{
        feedback::{self, Rated, rating_value},
        submit::Sender,
    },
    context::Context,
    failure::Result,
    output::{Column, Output, Table},
    view, words,
};

/// Submit, or list.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend outputs ratings submit INTERPRET good query-17 --input \"how was Monday?\" --output \"Quiet.\"
  emend outputs ratings submit INTERPRET bad query-18 --input \"…\" --output \"…\" --issue evasive
  emend outputs ratings submit EVALUATE missed claim-4 --input \"…\" --output \"…\" --judgement \"no\"
  emend outputs ratings submit TASK_EXTRACT rejected task-9 --input \"…\" --output \"…\" --issue done
  emend outputs ratings import examples.jsonl --target INTERPRET --reporter ana
  emend outputs ratings list
  emend outputs ratings list --target INTERPRET --value bad --day 2026-03-29 --time-zone Asia/Tokyo

Beside INTERPRET, SUMMARIZE_HOURLY, SUMMARIZE_DAILY, EVALUATE and TASK_EXTRACT, an application can
name targets of its own: emend settings set --rated-target. Why a task is rejected is an --issue:
the AI is shown it with the example; --reason is for people.

The newest good and bad ratings of a target are its examples: emend outputs examples. To take one
away, retract or redact its rating (emend retract, emend redact).")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Rate what an AI made
    Submit(Box<Submit>),
    /// Import few-shot examples, one JSON object per line, as ratings
    Import(import::Args),
    /// List ratings, newest first
    List {
        /// Only ratings by this reporter
        #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
        reporter: String,
        #[command(flatten)]
        rated: Rated,
        /// List at most this many; 0 for all
        #[arg(long, default_value_t = 50, value_name = "COUNT")]
        limit: usize,
    },
}

#[derive(Debug, clap::Args)]
struct Submit {
    /// What the AI was asked for
    #[arg(value_parser = words::target)]
    target: String,
    /// How its output is: one of the target's values, such as good, bad or neutral
    value: String,
    /// The output's id in the application
    target_id: String,
    /// What the AI was given
    #[arg(long, value_name = "TEXT")]
    input: String,
    /// What it made of it
    #[arg(long, value_name = "TEXT")]
    output: String,
    /// What is wrong with the output; may be repeated
    #[arg(long = "issue", value_name = "TEXT")]
    issues: Vec<String>,
    /// What it should have been
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    corrected: String,
    /// The right judgement, where the output is one
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    judgement: String,
    /// The version of the prompt
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    prompt_version: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    #[command(flatten)]
    sender: Sender,
}

/// Submits a rating and prints the outcome, or lists.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::Submit(rating) => submit(*rating, context, output).await,
        Action::Import(args) => import::run(args, context, output).await,
        Action::List {
            reporter,
            rated,
            limit,
        } => list(reporter, rated, limit, context, output).await,
    }
}

async fn submit(rating: Submit, context: &Context, output: &mut Output<'_>) -> Result {
    let variant = Variant::Rating(Rating {
        value: rating_value(&rating.target, &rating.value),
        target: rating.target,
        target_id: rating.target_id,
        input_text: rating.input,
        output_text: rating.output,
        prompt_version: rating.prompt_version,
        issues: rating.issues,
        corrected_text: rating.corrected,
        correct_judgement: rating.judgement,
        ..Rating::default()
    });
    rating
        .sender
        .submit(variant, rating.reason, context, output)
        .await
}

async fn list(
    reporter: String,
    rated: Rated,
    limit: usize,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let request = ListFeedbackRequest {
        namespace: context.namespace(),
        reporter_id: reporter,
        kind: Kind::FewShotSet.number(),
        ..rated.request()
    };
    let all = ListFeedbackRequest {
        namespace: context.namespace(),
        kind: Kind::FewShotSet.number(),
        ..ListFeedbackRequest::default()
    };
    let none = context.none_found("ratings", request != all);
    let (ratings, more) = context.list(&request, limit).await?;
    output.list(&ratings, more, view::message, ratings_table, &none)
}

/// The value, and what it counts as unless that is the same word.
fn value(rating: &Rating) -> String {
    match RatingClass::from_number(rating.counts_as).map_or("?", RatingClass::name) {
        class if class == rating.value => rating.value.clone(),
        class => format!("{} ({class})", rating.value),
    }
}

fn ratings_table(ratings: &[Feedback]) -> Table {
    Table::new([
        ("FEEDBACK", Column::Id),
        ("RECEIVED", Column::Time),
        ("TARGET", Column::Text),
        ("VALUE", Column::Fixed),
        ("OF", Column::Text),
        ("OUTPUT", Column::Text),
        ("", Column::Fixed),
    ])
    .with_rows(ratings, |feedback| {
        let rating = match feedback
            .correction
            .as_ref()
            .and_then(|correction| correction.correction.as_ref())
        {
            Some(Variant::Rating(rating)) => rating.clone(),
            _ => Rating::default(),
        };
        [
            feedback.feedback_id.clone(),
            view::short_time(feedback.received_at.as_ref()),
            rating.target.clone(),
            value(&rating),
            rating.target_id,
            rating.output_text,
            feedback::marks(feedback),
        ]
    })
}
