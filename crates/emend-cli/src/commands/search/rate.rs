//! `emend search rate`: what a search returned is good, or is not.

use emend_proto::{
    common::v1::{Correction, Reporter, SearchRating, SearchRatingValue, correction::Correction as Variant},
    feedback::v1::SubmitFeedbackRequest,
};

use crate::{commands::submit, context::Context, failure::Result, output::Output};

/// Which query, how it was found, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend search rate query-17 up --reporter ana
  emend search rate query-18 down --reporter ana --reason \"no card that returns to the hand\"

Nothing is learned from a rating alone: ratings show where search fails. Of one reporter's ratings
of one query the newest counts. `emend feedback list --rating down` lists them, `emend feedback
label` sorts them.")]
pub(super) struct Args {
    /// The query, by the id under which its backend recorded it
    query_id: String,
    /// How its results are
    #[arg(value_enum, ignore_case = true, allow_negative_numbers = true)]
    rating: Rating,
    /// Why, at most 300 characters
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// The person or agent who says it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    reporter: String,
    /// The session in which it was said
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    session: String,
    /// An id that makes it safe to repeat the command [default: a random one]
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

/// A rating of a search answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::commands) enum Rating {
    /// Good
    #[value(aliases = ["1", "+1"])]
    Up,
    /// Neither
    #[value(alias = "0")]
    Neutral,
    /// Not what was wanted
    #[value(alias = "-1")]
    Down,
}

impl Rating {
    /// Its name on command lines; empty for one that this version does not know.
    pub(in crate::commands) const fn name(value: SearchRatingValue) -> &'static str {
        match value {
            SearchRatingValue::Up => "up",
            SearchRatingValue::Neutral => "neutral",
            SearchRatingValue::Down => "down",
            SearchRatingValue::Unspecified => "",
        }
    }

    /// Its number on the wire.
    pub(in crate::commands) fn number(self) -> i32 {
        match self {
            Self::Up => SearchRatingValue::Up,
            Self::Neutral => SearchRatingValue::Neutral,
            Self::Down => SearchRatingValue::Down,
        }
        .into()
    }
}

/// Submits the rating and prints what is stored.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let rating = SearchRating {
        value: args.rating.number(),
    };
    let request = SubmitFeedbackRequest {
        request_id: args.request_id.unwrap_or_default(),
        reporter: Some(Reporter {
            id: args.reporter,
            session_id: args.session,
            ..Reporter::default()
        }),
        query_id: args.query_id,
        reason: args.reason,
        correction: Some(Correction {
            correction: Some(Variant::SearchRating(rating)),
        }),
        ..SubmitFeedbackRequest::default()
    };
    submit::submit(request, context, output).await
}
