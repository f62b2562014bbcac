//! `emend search evaluate`: how good ranked results are against judged queries, before and after a change.

mod each;
mod judgements;
mod node;
mod preview;
mod ratings;
pub(super) mod synonyms;
pub(super) mod tuning;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use emend_lab::evaluate::{
    BadLine, Queries,
    chart::{self, p_value},
    report::{self, Group, Report},
    runs::{self, Run},
};
use serde_json::{Value, json};

use self::{
    judgements::Format,
    node::{Answers, Node, With},
    ratings::Counts,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table, counted},
    transfer::source,
};

/// So many changed queries can be significant at 0.05: 2 of 2⁶ exchanges are as far apart if all changed alike.
const FEW: usize = 6;

/// Measure runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend search evaluate --judgements judged.jsonl --before monday.run --svg measures.svg
  emend search evaluate --judgements qrels.txt --format trec --before a.run --after b.run
  emend search evaluate --judgements cases.csv --format quepid --before a.jsonl --after b.jsonl -k 5
  emend search evaluate --judgements judged.jsonl --node 127.0.0.1:7421 --queries
  emend search evaluate --judgements judged.jsonl --node 127.0.0.1:7421 --save now.jsonl
  emend search evaluate --ratings --min-ratings 3 --rated-from 2026-03-01 --node 127.0.0.1:7421

Prints precision, recall and nDCG of the first K results and the mean reciprocal rank, over all
queries and by query type. With two runs, p says how probable a difference at least as large is if
both are equally good (Fisher's paired randomisation test): 0.25 or more while only 3 queries
changed, and below 0.05 from 6 on at the earliest. A search node that serves
emend.search.v1.SearchService is asked what it finds, and without --before also what it would find
if nothing had been learned.

Judgements have grades: 0 is not relevant, more is better. A line of the format jsonl:
  {\"query_id\": \"q1\", \"query\": \"draw a card\", \"query_type\": \"HYBRID\",
   \"judgements\": [{\"id\": \"card:1\", \"grade\": 2}]}
A node is asked the query; where there is none, the query_id.
A run is a TREC run file (query Q0 document rank score tag) or JSON lines:
  {\"query_id\": \"q1\", \"results\": [\"card:1\", \"card:7\"]}
A query that a run does not have found nothing in it. A run that has none of the judged queries, or
none of the judged ids among its results, is refused: it is of other queries or of other records.

With --ratings, or a file of them (--format ratings), users judge. Searches with one text and type
are one query, whose query_id is the text. A result's grade is the mean over its searches: 2 where
it was clicked, 1 where it was the best of a search that was rated up without a click, 0 where it
was shown, not clicked, in a search that was rated down. Only what was shown is judged so.")]
pub(super) struct Args {
    /// The file of judgements
    #[arg(long, value_name = "FILE", required_unless_present = "ratings")]
    judgements: Option<PathBuf>,
    /// How the judgements are written
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    #[command(flatten)]
    ratings: ratings::Source,
    /// The results, or those before the change
    #[arg(long, value_name = "RUN", required_unless_present = "node")]
    before: Option<PathBuf>,
    /// The results after the change
    #[arg(long, value_name = "RUN", requires = "before", conflicts_with = "node")]
    after: Option<PathBuf>,
    /// A search node to ask for the results after the change
    #[arg(long, value_name = "HOST:PORT")]
    node: Option<String>,
    /// Write what the node finds into this file, as JSON lines
    #[arg(long, value_name = "FILE", requires = "node")]
    save: Option<PathBuf>,
    /// How many results of a query count
    #[arg(short, value_name = "K", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    k: u16,
    /// Also show each query, those that changed first
    #[arg(long)]
    queries: bool,
    /// Also draw the measures, into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Measures, prints, and draws.
pub(super) async fn run(args: &Args, context: &Context, output: &mut Output<'_>) -> Result {
    let (queries, by) = queries(args, context).await?;
    let Runs {
        before,
        after,
        namespace,
    } = runs(args, context, &queries).await?;
    let report = report::measure(&queries, &before, after.as_ref(), args.k.into());
    if report.each.is_empty() {
        let counts = by.map_or_else(String::new, |by| format!("\n{by}"));
        return Err(Failure::failed(format!(
            "no query is left to measure: {}{counts}",
            left_out(report.without_relevant)
        )));
    }
    if let Some(path) = &args.svg {
        std::fs::write(path, chart::draw(&report)).map_err(|error| unwritable(path, &error))?;
    }
    let width = output.width();
    let mut json = to_json(&report);
    if let Some(by) = &by {
        json["judgedBy"] = by.json();
    }
    if args.queries {
        json["each"] = each::json(&report);
    }
    if !namespace.is_empty() {
        json["namespace"] = namespace.as_str().into();
    }
    output.result(&json, || {
        let mut text = String::new();
        if let Some(by) = &by {
            let _ = write!(text, "{by}\n\n");
        }
        if !namespace.is_empty() {
            let _ = write!(text, "The node serves the namespace {namespace:?}.\n\n");
        }
        text += &to_text(&report, width);
        if args.queries {
            let _ = write!(text, "\n\n{}", each::table(&report).render(width));
        }
        text
    })
}

/// The judged queries, and by what users judged them.
async fn queries(args: &Args, context: &Context) -> Result<(Queries, Option<Counts>)> {
    let by = match &args.judgements {
        None => ratings::fetch(context, &args.ratings).await?,
        Some(path) if args.format == Format::Ratings => {
            let min_ratings = args.ratings.min_ratings.into();
            ratings::parse(&read(path)?, min_ratings).map_err(|bad| unreadable(path, &bad))?
        }
        Some(_) if args.ratings.min_ratings > 1 => {
            return Err(Failure::usage(
                "--min-ratings needs --ratings or --format ratings",
            ));
        }
        Some(path) => return Ok((judged(path, args.format)?, None)),
    };
    if by.queries.is_empty() {
        let why = if by.counts.is_empty() {
            context.none_found("ratings of search answers", args.ratings.is_filtered())
        } else {
            by.counts.to_string()
        };
        return Err(Failure::failed(format!("no query is judged: {why}")));
    }
    Ok((by.queries, Some(by.counts)))
}

/// The judged queries of a file, at least one.
fn judged(path: &Path, format: Format) -> Result<Queries> {
    let queries = judgements::judgements(&read(path)?, format).map_err(|bad| unreadable(path, &bad))?;
    if queries.is_empty() {
        return Err(Failure::usage(format!("{} judges no query", path.display())));
    }
    Ok(queries)
}

/// What is compared.
#[derive(Default)]
struct Runs {
    /// The run before the change.
    before: Run,
    /// The one after it.
    after: Option<Run>,
    /// What the node that was asked serves; empty: none was asked, or it does not say.
    namespace: String,
}

async fn runs(args: &Args, context: &Context, queries: &Queries) -> Result<Runs> {
    let run = |path: &Path| runs::parse(&read(path)?).map_err(|bad| unreadable(path, &bad));
    let before = args.before.as_deref().map(run).transpose()?;
    let after = args.after.as_deref().map(run).transpose()?;
    for (path, run) in [(&args.before, &before), (&args.after, &after)] {
        if let (Some(path), Some(run)) = (path, run) {
            runs::check(run, queries).map_err(|why| Failure::failed(format!("{}: {why}", path.display())))?;
        }
    }
    let Some(address) = &args.node else {
        return Ok(Runs {
            before: before.unwrap_or_default(),
            after,
            ..Runs::default()
        });
    };
    let mut node = Node::connect(context, address).await?;
    if args.judgements.is_none() {
        // The namespace's users judge.
        node = node.of_namespace();
    }
    let before = match before {
        Some(before) => before,
        None => node::run(&node.ask(queries, |_| With::Nothing).await?),
    };
    let after = node.ask(queries, |_| With::Learned).await?;
    let found = node::run(&after);
    // It may find nothing that is judged before it has learned, but not before and after.
    if runs::check(&before, queries).is_err() {
        runs::check(&found, queries).map_err(|why| Failure::failed(format!("{address}: {why}")))?;
    }
    if let Some(path) = &args.save {
        std::fs::write(path, lines(queries, &after)).map_err(|error| unwritable(path, &error))?;
    }
    Ok(Runs {
        before,
        after: Some(found),
        namespace: node::namespace(&after).to_owned(),
    })
}

/// A run as JSON lines, in the order of its queries.
fn lines(queries: &Queries, answers: &Answers) -> String {
    let line = |id: &String| {
        let results = answers.get(id).map_or(&[][..], |answer| &answer.results);
        let ids: Value = results.iter().map(|result| &*result.id).collect();
        let scores: Value = results.iter().map(|result| result.score).collect();
        format!("{}\n", json!({"query_id": id, "results": ids, "scores": scores}))
    };
    queries.keys().map(line).collect()
}

/// The bytes of a file at most.
const MAX_BYTES: u64 = 1 << 30;

fn read(path: &Path) -> Result<String> {
    source::text(path, MAX_BYTES)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} cannot be written: {error}", path.display()))
}

fn unreadable(path: &Path, bad: &BadLine) -> Failure {
    Failure::usage(format!("{}, {bad}", path.display()))
}

fn to_json(report: &Report) -> Value {
    let group = |group: &Group| {
        let measures = group.measures.iter().map(|measure| {
            json!({
                "name": measure.name,
                "before": measure.before,
                "after": measure.after.map(|(after, _)| after),
                "p": measure.after.map(|(_, p)| p),
            })
        });
        json!({
            "queryType": group.query_type,
            "queries": group.queries,
            "measures": measures.collect::<Value>(),
        })
    };
    json!({
        "k": report.k,
        "withoutRelevant": report.without_relevant,
        "groups": report.groups.iter().map(group).collect::<Value>(),
    })
}

fn to_text(report: &Report, width: usize) -> String {
    let rows: Vec<_> = report
        .groups
        .iter()
        .flat_map(|group| group.measures.iter().map(move |measure| (group, measure)))
        .collect();
    let name = |group: &Group| match &*group.query_type {
        "" => "all".to_owned(),
        query_type => query_type.to_owned(),
    };
    let is_compared = rows.iter().any(|(_, measure)| measure.after.is_some());
    let table = if is_compared {
        Table::new([
            ("QUERIES", Column::Text),
            ("COUNT", Column::Number),
            ("MEASURE", Column::Fixed),
            ("BEFORE", Column::Number),
            ("AFTER", Column::Number),
            ("P", Column::Fixed),
        ])
        .with_rows(&rows, |(group, measure)| {
            let (after, p) = measure.after.unwrap_or_default();
            [
                name(group),
                group.queries.to_string(),
                measure.name.clone(),
                format!("{:.3}", measure.before),
                format!("{after:.3}"),
                p_value(p),
            ]
        })
    } else {
        Table::new([
            ("QUERIES", Column::Text),
            ("COUNT", Column::Number),
            ("MEASURE", Column::Fixed),
            ("VALUE", Column::Number),
        ])
        .with_rows(&rows, |(group, measure)| {
            [
                name(group),
                group.queries.to_string(),
                measure.name.clone(),
                format!("{:.3}", measure.before),
            ]
        })
    };
    let mut text = table.render(width);
    if let Some(changed @ 1..FEW) = report.changed() {
        // Of so many equal differences each exchange but two is less far apart.
        let least = 0.5f64.powi(i32::try_from(changed).unwrap_or_default() - 1);
        let queries = counted(changed, "query", "queries");
        let _ = write!(
            text,
            "\n{queries} changed: of so few, p is never below {least:.3}"
        );
    }
    if report.without_relevant > 0 {
        let _ = write!(text, "\n{}", left_out(report.without_relevant));
    }
    text
}

/// Says of so many queries why they do not count.
fn left_out(count: usize) -> String {
    match count {
        1 => "1 query was left out: nothing is relevant to it".to_owned(),
        count => format!("{count} queries were left out: nothing is relevant to them"),
    }
}
