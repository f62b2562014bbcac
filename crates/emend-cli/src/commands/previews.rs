//! What would be answered differently: the queries of the last days, and the answers that would change.

use emend_proto::{
    feedback::v1::{ListFeedbackRequest, ListQueriesRequest, SearchRatingFilter},
    learning::v1::{NearStatus, PreviewQuery, PreviewedAnswer, PreviewedChanges},
};
use emend_wire::{preview, render};
use jiff::SignedDuration;

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Table, counted},
};

/// The recorded queries that are read at most.
const QUERIES: usize = 10_000;

/// What was searched in so many days.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Period {
    /// Try it on the queries of so many days, 1 to 365
    #[arg(long, default_value_t = 7, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(1..=365))]
    days: i64,
}

/// The queries that were recorded in a period, each once, with how they were rated.
pub(super) async fn searched(context: &Context, period: &Period) -> Result<Vec<PreviewQuery>> {
    let before = SignedDuration::from_hours(24 * period.days);
    let from = context.clock.now().checked_sub(before);
    let from = from.map_err(|_| Failure::usage("--days is too long ago"))?;
    let queries = ListQueriesRequest {
        namespace: context.namespace(),
        searched_from: Some(render::timestamp(from)),
        ..ListQueriesRequest::default()
    };
    let ratings = ListFeedbackRequest {
        namespace: context.namespace(),
        received_from: Some(render::timestamp(from)),
        // One that was replaced by a newer rating counts no longer.
        search_ratings: Some(SearchRatingFilter {
            counting: true,
            ..SearchRatingFilter::default()
        }),
        ..ListFeedbackRequest::default()
    };
    let (queries, _) = context.list(&queries, QUERIES).await?;
    let (ratings, _) = context.list(&ratings, QUERIES).await?;
    Ok(preview::queries(&queries, &ratings))
}

/// What would change, for people; as wide as the terminal.
pub(super) fn text(changes: &PreviewedChanges, width: usize) -> String {
    let mut lines = vec![
        format!(
            "{} of {} would be answered differently, searched {}",
            changes.changed_query_count,
            counted(changes.query_count, "query", "queries"),
            counted(changes.changed_search_count, "time", "times"),
        ),
        format!(
            "ratings: {} for the change, {} against; corrections: {} for, {} against",
            changes.rated_for_count,
            changes.rated_against_count,
            changes.corrected_for_count,
            changes.corrected_against_count
        ),
    ];
    match changes.near_status() {
        NearStatus::Fitting => lines.push("near answers are left out: their model is being made".to_owned()),
        NearStatus::TooMany => lines.push("near answers are left out: too much was learned".to_owned()),
        _ => {}
    }
    if !changes.answers.is_empty() {
        lines.push(String::new());
        lines.push(table(&changes.answers).render(width));
    }
    lines.join("\n")
}

fn table(answers: &[PreviewedAnswer]) -> Table {
    Table::new([
        ("QUERY", Column::Text),
        ("SEARCHES", Column::Number),
        ("NOW", Column::Text),
        ("THEN", Column::Text),
        ("FOR", Column::Number),
        ("AGAINST", Column::Number),
    ])
    .with_rows(answers, |answer| {
        [
            answer.text.clone(),
            answer.search_count.to_string(),
            shown(&answer.before, answer.before_is_near),
            shown(&answer.after, answer.after_is_near),
            (answer.rated_for_count + answer.corrected_for_count).to_string(),
            (answer.rated_against_count + answer.corrected_against_count).to_string(),
        ]
    })
}

/// An answer, with `~` where only similar phrases were learned.
fn shown(choice: &str, is_near: bool) -> String {
    match (choice, is_near) {
        ("", _) => "–".to_owned(),
        (choice, true) => format!("~{choice}"),
        (choice, false) => choice.to_owned(),
    }
}
