//! What would be answered differently: the queries of the last days and those that were judged, and the answers that would change.

use std::path::{Path, PathBuf};

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

/// What answers are tried on.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Tried {
    /// Try it on the queries of so many days, 1 to 365
    #[arg(long, default_value_t = 7, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(1..=365))]
    days: i64,
    /// And on these queries, whose right answers are known: a CSV file with a header, of each row a phrase and a choice that is right
    /// for it
    #[arg(long, value_name = "FILE")]
    judged: Option<PathBuf>,
}

/// The queries that were recorded lately, each once, with how they were rated, and those that were judged.
pub(super) async fn searched(context: &Context, tried: &Tried) -> Result<Vec<PreviewQuery>> {
    let judged = tried.judged.as_deref().map(judged).transpose()?;
    let before = SignedDuration::from_hours(24 * tried.days);
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
    let recorded = preview::queries(&queries, &ratings);
    Ok(preview::with_judged(recorded, judged.unwrap_or_default()))
}

/// The judged queries of a file, each with a choice that is right for it.
fn judged(file: &Path) -> Result<Vec<(String, String)>> {
    let failed = |error: csv::Error| Failure::usage(format!("--judged {}: {error}", file.display()));
    let mut reader = csv::Reader::from_path(file).map_err(failed)?;
    let rows: std::result::Result<Vec<(String, String)>, _> = reader.deserialize().collect();
    let rows = rows.map_err(failed)?;
    if rows.len() > preview::MOST {
        let (file, rows, most) = (file.display(), rows.len(), preview::MOST);
        return Err(Failure::usage(format!(
            "--judged {file} has {rows} rows; {most} can be tried at once"
        )));
    }
    Ok(rows)
}

/// What would change, for people; as wide as the terminal.
pub(super) fn text(changes: &PreviewedChanges, tried: &Tried, width: usize) -> String {
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
    if tried.judged.is_some() {
        lines.push(format!(
            "judged: {} for the change, {} against",
            changes.judged_for_count, changes.judged_against_count
        ));
    }
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
            (answer.rated_for_count + answer.corrected_for_count + answer.judged_for_count).to_string(),
            (answer.rated_against_count + answer.corrected_against_count + answer.judged_against_count)
                .to_string(),
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
