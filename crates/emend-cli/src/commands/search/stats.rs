//! `emend search stats`: what ratings and queries say of search.

mod chart;
mod recent;
mod worst;

use std::path::PathBuf;

use clap::ValueEnum;
use emend_proto::feedback::v1::{
    GetFeedbackStatsRequest, GetFeedbackStatsResponse, RatingShare, StatsCompared, StatsComparison,
    StatsDimension,
};

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table, counted},
    view, words,
};

/// Differences that chance makes less often than this are called significant.
const SIGNIFICANT: f64 = 0.05;

/// Which ratings to count.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend search stats
  emend search stats --from 2026-03-01 --type SEMANTIC --svg negative.svg
  emend search stats --compare variant --one A --other B
  emend search stats --compare index-version --one 7 --other 8 --json
  emend search stats --from 2026-03-29 --top 20

The share of ratings that are negative, with its 95 % confidence interval (Wilson). Ratings that
were replaced or retracted do not count. A name that is – is not known, as of ratings whose query
was never recorded. Below it the share of queries that found nothing, of those of which it is known
how many results they found; the others are counted as UNKNOWN. Then what was searched most, with the
share of searches in which a result was clicked: of the queries that are still kept. Then what most
people rated down and nobody has dealt with: whoever rated a query several times is one person.")]
pub(super) struct Args {
    /// Only ratings stored at this time or later
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    from: Option<prost_types::Timestamp>,
    /// Only ratings stored before this time
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    before: Option<prost_types::Timestamp>,
    /// Only ratings of queries of this type
    #[arg(
        long = "type",
        value_name = "TYPE",
        default_value = "",
        hide_default_value = true
    )]
    query_type: String,
    /// Compare two names of this
    #[arg(long, value_enum, requires = "one", requires = "other")]
    compare: Option<Dimension>,
    /// The one to compare, for example the version before
    #[arg(long, value_name = "NAME", requires = "compare")]
    one: Option<String>,
    /// The other
    #[arg(long, value_name = "NAME", requires = "compare")]
    other: Option<String>,
    /// List at most this many of the queries that were searched most, up to 500
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=500))]
    top: i32,
    /// List at most this many of the queries that most people rated down, up to 500
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=500))]
    worst: i32,
    /// Also draw the shares with their intervals, into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// By what ratings are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Dimension {
    /// The type of the query
    Type,
    /// Which model made the embeddings
    EmbeddingVersion,
    /// Which index was searched
    IndexVersion,
    /// Which variant of an experiment the user saw
    Variant,
}

impl From<Dimension> for StatsDimension {
    fn from(dimension: Dimension) -> Self {
        match dimension {
            Dimension::Type => Self::QueryType,
            Dimension::EmbeddingVersion => Self::EmbeddingVersion,
            Dimension::IndexVersion => Self::IndexVersion,
            Dimension::Variant => Self::Variant,
        }
    }
}

/// Prints what ratings say.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let compare = args.compare.map(|by| StatsComparison {
        by: StatsDimension::from(by).into(),
        one: args.one.unwrap_or_default(),
        other: args.other.unwrap_or_default(),
    });
    let is_filtered = args.from.is_some() || args.before.is_some() || !args.query_type.is_empty();
    let request = GetFeedbackStatsRequest {
        namespace: context.namespace(),
        rated_from: args.from,
        rated_before: args.before,
        query_type: args.query_type,
        compare,
        top_query_count: args.top,
        worst_query_count: args.worst,
    };
    let mut client = context.queries().await?;
    let response = client.get_feedback_stats(context.request(request)).await?;
    let stats = response.into_inner();
    let Some(total) = &stats.total else {
        return Err(Failure::failed("feedback-svc answered without the statistics"));
    };
    let none = (total.rating_count == 0 && total.query_count == 0)
        .then(|| context.none_found("ratings of search answers", is_filtered));
    if let Some(path) = &args.svg {
        std::fs::write(path, chart::draw(&stats))
            .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))?;
    }
    let width = output.width();
    output.result(&view::message(&stats), || {
        none.unwrap_or_else(|| text(&stats, width))
    })
}

/// Which names a list leaves out.
const FEWER: &str = "with fewer ratings";

fn text(stats: &GetFeedbackStatsResponse, width: usize) -> String {
    let groups: [(&str, &[RatingShare]); 6] = [
        ("all", stats.total.as_slice()),
        ("week", &stats.weeks),
        ("type", &stats.query_types),
        ("embedding", &stats.embedding_versions),
        ("index", &stats.index_versions),
        ("variant", &stats.variants),
    ];
    let mut table = Table::new([
        ("BY", Column::Fixed),
        ("NAME", Column::Text),
        ("RATINGS", Column::Number),
        ("NEGATIVE", Column::Number),
        ("SHARE", Column::Number),
        ("95 %", Column::Fixed),
        ("QUERIES", Column::Number),
    ]);
    for (by, shares) in groups {
        for share in shares {
            table.row([
                by.to_owned(),
                if by == "all" { String::new() } else { name(share) },
                share.rating_count.to_string(),
                share.negative_count.to_string(),
                share.negative_share.map(percent).unwrap_or_default(),
                interval(share.negative_share_low, share.negative_share_high),
                share.query_count.to_string(),
            ]);
        }
    }
    let mut text = table.render(width);
    let left_out = stats.left_out.unwrap_or_default();
    for (count, one, many, which) in [
        (left_out.week_count, "week", "weeks", "the oldest"),
        (left_out.query_type_count, "query type", "query types", FEWER),
        (
            left_out.embedding_version_count,
            "embedding version",
            "embedding versions",
            FEWER,
        ),
        (
            left_out.index_version_count,
            "index version",
            "index versions",
            FEWER,
        ),
        (left_out.variant_count, "variant", "variants", FEWER),
    ] {
        if count > 0 {
            let more = counted(count, &format!("more {one}"), &format!("more {many}"));
            text = format!(
                "{}\nNot listed, but counted in \"all\": {more}, {which}.",
                text.trim_end()
            );
        }
    }
    if stats.total.as_ref().is_some_and(|total| total.query_count > 0) {
        text = format!("{}\n\n{}", text.trim_end(), found_nothing(&groups).render(width));
    }
    if let Some(searched) = stats
        .recent
        .as_ref()
        .and_then(|recent| recent::text(recent, width))
    {
        text = format!("{}\n\n{searched}", text.trim_end());
    }
    if let Some(rated_down) = stats.worst.as_ref().and_then(|worst| worst::text(worst, width)) {
        text = format!("{}\n\n{rated_down}", text.trim_end());
    }
    if let Some(compared) = &stats.compared {
        text = format!("{}\n\n{}", text.trim_end(), verdict(compared));
    }
    text
}

/// How many queries found nothing, of those of which that is known.
fn found_nothing(groups: &[(&str, &[RatingShare])]) -> Table {
    let mut table = Table::new([
        ("BY", Column::Fixed),
        ("NAME", Column::Text),
        ("QUERIES", Column::Number),
        ("UNKNOWN", Column::Number),
        ("NO HITS", Column::Number),
        ("SHARE", Column::Number),
        ("95 %", Column::Fixed),
    ]);
    for (by, shares) in groups {
        for share in shares.iter().filter(|share| share.query_count > 0) {
            table.row([
                (*by).to_owned(),
                if *by == "all" { String::new() } else { name(share) },
                share.query_count.to_string(),
                share.unknown_hit_count.to_string(),
                share.zero_hit_count.to_string(),
                share.zero_hit_share.map(percent).unwrap_or_default(),
                interval(share.zero_hit_share_low, share.zero_hit_share_high),
            ]);
        }
    }
    table
}

fn name(share: &RatingShare) -> String {
    if share.name.is_empty() {
        "–".to_owned()
    } else {
        share.name.clone()
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn interval(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{:.1} to {:.1} %", low * 100.0, high * 100.0),
        _ => String::new(),
    }
}

/// Whether two shares differ, in words.
fn verdict(compared: &StatsCompared) -> String {
    let (one, other) = (
        compared.one.clone().unwrap_or_default(),
        compared.other.clone().unwrap_or_default(),
    );
    let says = |share: &RatingShare| {
        let negative = share.negative_share.map_or_else(
            || "no ratings".to_owned(),
            |share| format!("{} negative", percent(share)),
        );
        format!("{}: {negative}", name(share))
    };
    let verdict = |p_value: Option<f64>, none: &str| match p_value {
        None => format!("They can't be compared: {none}."),
        Some(p) if p < SIGNIFICANT => format!("They differ by more than chance (p = {p:.4})."),
        Some(p) => format!("The difference may be chance (p = {p:.4})."),
    };
    let of_ratings = format!(
        "{}, {}. {}",
        says(&one),
        says(&other),
        verdict(compared.p_value, "a side has no ratings")
    );
    let (Some(of_one), Some(of_other)) = (one.zero_hit_share, other.zero_hit_share) else {
        return of_ratings;
    };
    format!(
        "{}: {} without hits, {}: {} without hits. {}\n{of_ratings}",
        name(&one),
        percent(of_one),
        name(&other),
        percent(of_other),
        verdict(compared.zero_hit_p_value, "of a side no hits are known")
    )
}

#[cfg(test)]
pub(super) mod tests {
    use emend_proto::feedback::v1::StatsLeftOut;

    use super::*;

    pub(super) fn share(name: &str, negative: i64, ratings: i64) -> RatingShare {
        RatingShare {
            name: name.into(),
            rating_count: ratings,
            negative_count: negative,
            negative_share: Some(0.25),
            negative_share_low: Some(0.1),
            negative_share_high: Some(0.5),
            query_count: 100,
            ..RatingShare::default()
        }
    }

    #[test]
    fn shares_are_shown_in_one_table_and_compared_in_words() {
        let stats = GetFeedbackStatsResponse {
            total: Some(share("", 5, 20)),
            variants: vec![share("A", 5, 20), share("", 1, 4)],
            left_out: Some(StatsLeftOut {
                query_type_count: 1,
                variant_count: 3,
                ..StatsLeftOut::default()
            }),
            compared: Some(StatsCompared {
                one: Some(share("A", 5, 20)),
                other: Some(RatingShare {
                    name: "B".into(),
                    ..RatingShare::default()
                }),
                ..StatsCompared::default()
            }),
            ..GetFeedbackStatsResponse::default()
        };
        let text = text(&stats, 100);
        assert!(text.contains("10.0 to 50.0 %"), "{text}");
        assert!(text.contains("variant  –"), "{text}");
        for left_out in ["1 more query type", "3 more variants"] {
            let told = format!("\nNot listed, but counted in \"all\": {left_out}, with fewer ratings.");
            assert!(text.contains(&told), "{told}: {text}");
        }
        assert!(
            text.lines().next().is_some_and(|heading| heading.len() < 80),
            "{text}"
        );
        assert!(
            text.ends_with(
                "A: 25.0 % negative, B: no ratings. They can't be compared: a side has no ratings."
            ),
            "{text}"
        );
        assert!(!text.contains("without hits"), "of B no hits are known: {text}");
        let compared = |p_value| {
            verdict(&StatsCompared {
                p_value: Some(p_value),
                ..StatsCompared::default()
            })
        };
        assert!(compared(0.01).ends_with("They differ by more than chance (p = 0.0100)."));
        assert!(compared(0.2).ends_with("The difference may be chance (p = 0.2000)."));
    }

    #[test]
    fn queries_that_found_nothing_are_shown_apart_from_those_of_which_it_is_unknown() {
        let share = |name: &str, nothing: i64, unknown: i64, share: Option<f64>| RatingShare {
            zero_hit_count: nothing,
            unknown_hit_count: unknown,
            zero_hit_share: share,
            zero_hit_share_low: share.map(|share| share - 0.1),
            zero_hit_share_high: share.map(|share| share + 0.1),
            ..self::share(name, 5, 20)
        };
        let (one, other) = (share("A", 40, 20, Some(0.5)), share("B", 0, 100, None));
        let stats = GetFeedbackStatsResponse {
            total: Some(one.clone()),
            weeks: vec![share("2026-03-30", 30, 40, Some(0.5))],
            variants: vec![one.clone(), other],
            compared: Some(StatsCompared {
                one: Some(one.clone()),
                other: Some(RatingShare {
                    name: "C".into(),
                    ..one
                }),
                p_value: Some(0.5),
                zero_hit_p_value: Some(0.01),
            }),
            ..GetFeedbackStatsResponse::default()
        };
        let text = text(&stats, 100);
        let shown = |name: &str| {
            text.lines()
                .any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") == name)
        };
        assert!(shown("week 2026-03-30 100 40 30 50.0 % 40.0 to 60.0 %"), "{text}");
        assert!(shown("variant A 100 20 40 50.0 % 40.0 to 60.0 %"), "{text}");
        assert!(shown("variant B 100 100 0"), "{text}");
        assert!(
            text.contains("A: 50.0 % without hits, C: 50.0 % without hits. They differ by more than chance (p = 0.0100)."),
            "{text}"
        );
    }
}
