//! `emend search queries`: what was searched, as backends recorded it.

mod import;

use std::{path::PathBuf, time::Duration};

use clap::{Subcommand, ValueEnum};
use emend_core::search::is_click;
use emend_proto::feedback::v1::{
    DropReason, ListNegativeTermsRequest, ListQueriesRequest, NegativeTerm, Query, QueryInteraction,
    QueryResult, RecordInteractionRequest, RecordQueryRequest, query_service_client::QueryServiceClient,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    context::{Connection, Context},
    failure::{Failure, Result},
    output::{Column, Output, Table},
    view, words,
};

/// Queries or interactions in one request.
const BATCH: usize = 100;
/// How long an import goes on trying when the service has no room.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(250);

/// List, record or import.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend search queries list --without-hits
  emend search queries list --type SEMANTIC --from 2026-03-01 --before 2026-03-02 --json
  emend search queries record q-17 \"cards that draw\" --type SEMANTIC --hits 0 --session s-1
  emend search queries interact q-17 card-3 --position 1
  emend search queries terms --limit 20
  emend search queries import --format ubi ubi_queries.jsonl ubi_events.jsonl

Backends record their queries themselves, with emend-client's QueryRecorder or the RPC RecordQuery.
What is recorded is stored, and listed, within 250 ms. Queries are kept for a day unless the
settings say otherwise: emend settings set --query-retention.

HITS are unknown where the backend did not say them; CLICKS counts clicks, no impressions.

A query that found nothing, and then in the same session, within 2 minutes, another one with a
click, are a rewording that worked. After three sessions it is proposed as a synonym: `emend
candidates list`. feedback-svc looks for them when it starts and then every five minutes.

UBI files hold the documents of OpenSearch's indexes ubi_queries and ubi_events, as JSON lines or
CSV, or as the _bulk API takes them, with a line for each action. Several documents of one query are
one query: the earliest one's text, session and time, and the results of all. A query without
query_response_hit_ids has unknown hits; one with an empty text is browsing, no search, and is
passed over. Importing a file twice changes nothing while its queries are kept.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List recorded queries, newest first
    List {
        /// Only the query with this id
        #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
        query_id: String,
        /// Only queries of this type
        #[arg(
            long = "type",
            value_name = "TYPE",
            default_value = "",
            hide_default_value = true
        )]
        query_type: String,
        /// Only queries that are known to have found nothing
        #[arg(long)]
        without_hits: bool,
        /// Only queries searched at this time or later
        #[arg(long, value_name = "TIME", value_parser = words::instant)]
        from: Option<prost_types::Timestamp>,
        /// Only queries searched before this time
        #[arg(long, value_name = "TIME", value_parser = words::instant)]
        before: Option<prost_types::Timestamp>,
        /// List at most this many; 0 for all
        #[arg(long, default_value_t = 50, value_name = "COUNT")]
        limit: usize,
    },
    /// Record one query
    Record(Box<Record>),
    /// Record what a user did with a result
    Interact {
        /// The query
        query_id: String,
        /// The result's id in the index
        object_id: String,
        /// What was done
        #[arg(long, value_name = "NAME", default_value = "click")]
        action: String,
        /// The place of the result in the list, the first being 1; 0: not known
        #[arg(long, value_name = "PLACE", default_value_t = 0)]
        position: i32,
    },
    /// List the words that stand out in queries whose results were rated -1
    Terms {
        /// Only ratings of queries of this type
        #[arg(
            long = "type",
            value_name = "TYPE",
            default_value = "",
            hide_default_value = true
        )]
        query_type: String,
        /// List at most this many, up to 500
        #[arg(long, default_value_t = 50, value_name = "COUNT")]
        limit: i32,
    },
    /// Import queries and interactions from files
    Import {
        /// The files; - for JSON lines on standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// What the files are
        #[arg(long, value_enum)]
        format: Format,
        /// Import the good rows even if there are bad ones
        #[arg(long)]
        skip_invalid: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Record {
    /// The backend's id of the query
    query_id: String,
    /// What was searched for
    query_text: String,
    /// How it was searched
    #[arg(
        long = "type",
        value_name = "TYPE",
        default_value = "",
        hide_default_value = true
    )]
    query_type: String,
    /// How many results there were; without it as many as are given with --result, and without those it is not known
    #[arg(long, value_name = "COUNT")]
    hits: Option<i32>,
    /// A result: its id, title and score; may be repeated
    #[arg(long = "result", value_name = "ID=TITLE:SCORE", value_parser = result)]
    results: Vec<QueryResult>,
    /// From which score on results were taken, 0.0 to 1.0
    #[arg(long, value_name = "SCORE")]
    min_score: Option<f64>,
    /// Where in the index was searched; may be repeated
    #[arg(long = "searched-in", value_name = "NAME")]
    searched_in: Vec<String>,
    /// The user's session
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    session: String,
    /// Which variant of an experiment the user saw
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    variant: String,
    /// Which model made the embeddings
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    embedding_version: String,
    /// Which index was searched
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    index_version: String,
}

/// What files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Documents of User Behavior Insights, version 1
    Ubi,
}

/// Runs the command.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::List {
            query_id,
            query_type,
            without_hits,
            from,
            before,
            limit,
        } => {
            let is_filtered = without_hits
                || from.is_some()
                || before.is_some()
                || !query_id.is_empty()
                || !query_type.is_empty();
            let request = ListQueriesRequest {
                namespace: context.namespace(),
                query_id,
                query_type,
                only_without_hits: without_hits,
                searched_from: from,
                searched_before: before,
                ..ListQueriesRequest::default()
            };
            let (queries, more) = context.list(&request, limit).await?;
            let none = context.none_found("queries", is_filtered);
            output.list(&queries, more, view::message, table, &none)
        }
        Action::Record(record) => {
            let mut sender = Sender::new(context).await?;
            sender.queries(vec![query(*record)]).await?;
            output.result(&json!({"recordedCount": 1}), || {
                "1 query is recorded, and listed within 250 ms".into()
            })
        }
        Action::Interact {
            query_id,
            object_id,
            action,
            position,
        } => {
            let interaction = QueryInteraction {
                query_id,
                object_id,
                action,
                position,
                acted_at: None,
            };
            let mut sender = Sender::new(context).await?;
            sender.interactions(vec![interaction]).await?;
            output.result(&json!({"recordedCount": 1}), || {
                "1 interaction is recorded, and listed within 250 ms".into()
            })
        }
        Action::Terms { query_type, limit } => {
            let none = context.none_found("negative terms", !query_type.is_empty());
            let request = ListNegativeTermsRequest {
                namespace: context.namespace(),
                query_type,
                page_size: limit,
                ..ListNegativeTermsRequest::default()
            };
            let mut client = context.queries().await?;
            let answer = client.list_negative_terms(context.request(request)).await?;
            let answer = answer.into_inner();
            output.results(&answer.terms, view::message, terms_table, &none)?;
            if answer.undercount == 0 || output.is_json() {
                return Ok(());
            }
            output.line(&format!(
                "Rare words are forgotten at times: of all queries up to {} more may have a word.",
                answer.undercount
            ))
        }
        Action::Import {
            files,
            format: Format::Ubi,
            skip_invalid,
        } => import::run(files, skip_invalid, context, output).await,
    }
}

fn table(queries: &[Query]) -> Table {
    Table::new([
        ("SEARCHED", Column::Time),
        ("QUERY", Column::Fixed),
        ("TYPE", Column::Text),
        ("HITS", Column::Number),
        ("CLICKS", Column::Number),
        ("TEXT", Column::Text),
    ])
    .with_rows(queries, |query| {
        [
            view::short_time(query.searched_at.as_ref()),
            query.query_id.clone(),
            query.query_type.clone(),
            query
                .hit_count
                .map_or_else(|| "unknown".to_owned(), |hits| hits.to_string()),
            clicks(query).to_string(),
            query.query_text.clone(),
        ]
    })
}

/// How many of what users did with its results are clicks.
fn clicks(query: &Query) -> usize {
    let interactions = query.interactions.iter();
    interactions
        .filter(|interaction| is_click(&interaction.action))
        .count()
}

fn terms_table(terms: &[NegativeTerm]) -> Table {
    Table::new([
        ("TERM", Column::Text),
        ("SCORE", Column::Number),
        ("NEGATIVE", Column::Number),
        ("QUERIES", Column::Number),
    ])
    .with_rows(terms, |term| {
        [
            term.term.clone(),
            format!("{:.3}", term.score),
            term.negative_count.to_string(),
            term.query_count.to_string(),
        ]
    })
}

fn query(record: Record) -> Query {
    Query {
        query_id: record.query_id,
        query_text: record.query_text,
        query_type: record.query_type,
        hit_count: record.hits,
        top_results: record.results,
        min_score: record.min_score,
        namespaces: record.searched_in,
        session_id: record.session,
        variant: record.variant,
        embedding_version: record.embedding_version,
        index_version: record.index_version,
        ..Query::default()
    }
}

/// A result as it is written: `ID=TITLE:SCORE`.
fn result(text: &str) -> Result<QueryResult, String> {
    let form = "must be ID=TITLE:SCORE, for example card-3=Storm:0.71";
    let (object_id, rest) = text.split_once('=').ok_or(form)?;
    let (title, score) = rest.rsplit_once(':').ok_or(form)?;
    Ok(QueryResult {
        title: title.to_owned(),
        score: score.trim().parse().map_err(|_| form)?,
        object_id: object_id.to_owned(),
    })
}

/// Sends what is recorded, in batches, and again what found no room.
struct Sender<'a> {
    context: &'a Context,
    client: QueryServiceClient<Connection>,
    until: Instant,
}

impl<'a> Sender<'a> {
    async fn new(context: &'a Context) -> Result<Self> {
        Ok(Self {
            context,
            client: context.queries().await?,
            until: Instant::now() + PATIENCE,
        })
    }

    async fn queries(&mut self, mut queries: Vec<Query>) -> Result {
        while !queries.is_empty() {
            let request = RecordQueryRequest {
                namespace: self.context.namespace(),
                queries: queries.clone(),
            };
            let answer = self
                .client
                .record_query(self.context.request(request))
                .await?
                .into_inner();
            let stored = self
                .after(queries.len(), answer.dropped_count, answer.drop_reason())
                .await?;
            queries.drain(..stored);
        }
        Ok(())
    }

    async fn interactions(&mut self, mut interactions: Vec<QueryInteraction>) -> Result {
        while !interactions.is_empty() {
            let request = RecordInteractionRequest {
                namespace: self.context.namespace(),
                interactions: interactions.clone(),
            };
            let request = self.context.request(request);
            let answer = self.client.record_interaction(request).await?.into_inner();
            let stored = self
                .after(interactions.len(), answer.dropped_count, answer.drop_reason())
                .await?;
            interactions.drain(..stored);
        }
        Ok(())
    }

    /// How many of so many were recorded; where some were not, after a pause.
    async fn after(&mut self, sent: usize, dropped: i32, reason: DropReason) -> Result<usize> {
        let dropped = usize::try_from(dropped).unwrap_or_default().min(sent);
        if dropped == 0 {
            self.until = Instant::now() + PATIENCE;
        } else if Instant::now() >= self.until {
            let why = match reason {
                DropReason::Stopping => "it is stopping",
                _ => "too much waits to be stored",
            };
            return Err(Failure::failed(format!("feedback-svc takes no more: {why}")));
        } else {
            sleep(PAUSE).await;
        }
        Ok(sent - dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_of_clicks_counts_clicks_alone() {
        let actions = ["click", "impression", "item_click", "hover", "click_through"];
        let interactions = actions.map(|action| QueryInteraction {
            action: action.into(),
            ..QueryInteraction::default()
        });
        let query = Query {
            query_id: "q-17".into(),
            query_type: "SEMANTIC".into(),
            hit_count: Some(5),
            query_text: "draw".into(),
            interactions: interactions.into(),
            ..Query::default()
        };
        let text = table(&[query]).render(80);
        let cells: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(cells, ["–", "q-17", "SEMANTIC", "5", "3", "draw"]);
    }

    #[test]
    fn a_result_is_its_id_title_and_score() {
        let parsed = result("card-3=Storm: the end:0.71").unwrap();
        assert_eq!(
            (parsed.object_id.as_str(), parsed.title.as_str(), parsed.score),
            ("card-3", "Storm: the end", 0.71)
        );
        for wrong in ["card-3", "card-3=Storm", "card-3=Storm:high"] {
            assert!(result(wrong).is_err(), "{wrong}");
        }
    }
}
