//! `emend search queries import`: queries and interactions that were recorded elsewhere.

use std::{collections::BTreeSet, path::PathBuf};

use emend_proto::feedback::v1::{Query, QueryInteraction};
use emend_wire::ubi::Searches;
use serde_json::json;

use super::{BATCH, Sender};
use crate::{
    commands::{import::report_bad_rows, refused},
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted, on_standard_error},
    transfer::{
        RowError,
        source::Source,
        ubi::{self, Document},
    },
};

/// Documents in one import.
const MAX_DOCUMENTS: usize = 1_000_000;
/// The most bad rows that are shown.
const MAX_SHOWN: usize = 20;

/// Where a document was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The file, by its place among those that are read.
    file: usize,
    /// The line.
    line: u64,
}

/// What was read from files.
#[derive(Debug, Default)]
struct Documents {
    /// The names of the files.
    files: Vec<String>,
    searches: Searches<Place>,
    /// Documents of queries and of interactions.
    read: usize,
    /// Queries with an empty text.
    browsing: usize,
    /// Events about no result.
    passed_over: usize,
    bad: Vec<String>,
    bad_count: usize,
    /// The first file that could be read only up to its last bad row.
    ends: Option<String>,
}

/// Runs `emend search queries import`.
pub(super) async fn run(
    files: Vec<PathBuf>,
    skip_invalid: bool,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let reading = tokio::task::spawn_blocking(move || read(&files));
    let documents = reading
        .await
        .map_err(|error| Failure::failed(format!("the files can't be read: {error}")))??;
    for bad in &documents.bad {
        eprintln!("{}", on_standard_error(bad));
    }
    if let Some(file) = documents.ends {
        return Err(Failure::usage(format!(
            "{file} can't be read; nothing was imported"
        )));
    }
    let bad = documents.bad_count;
    if bad > 0 && !skip_invalid {
        return Err(Failure::usage(format!(
            "{}, and nothing is imported; --skip-invalid imports the others",
            counted(bad, "row can't be read", "rows can't be read")
        )));
    }
    let (queries, interactions) = documents.searches.into_rows();
    let mut import = Import {
        sender: Sender::new(context).await?,
        skip_invalid,
        queries: 0,
        zero: 0,
        unknown: 0,
        interactions: 0,
        bad,
    };
    // A query comes before what was done with its results, whatever file that is in.
    for (file, rows) in by_file(&documents.files, queries) {
        import.queries(file, rows).await?;
    }
    for (file, rows) in by_file(&documents.files, interactions) {
        import.interactions(file, rows).await?;
    }
    let Import {
        queries,
        zero,
        unknown,
        interactions,
        bad,
        ..
    } = import;
    let (browsing, passed_over) = (documents.browsing, documents.passed_over);
    let result = json!({
        "queryCount": queries,
        "zeroHitCount": zero,
        "unknownHitCount": unknown,
        "interactionCount": interactions,
        "browsingCount": browsing,
        "passedOverCount": passed_over,
        "badCount": bad,
    });
    output.result(&result, || {
        format!(
            "{} ({zero} found nothing, of {unknown} it is unknown) and {} are stored or were already known; \
             passed over: {} about no result and {} without a text; {}",
            counted(queries, "query", "queries"),
            counted(interactions, "interaction", "interactions"),
            counted(passed_over, "event", "events"),
            counted(browsing, "query", "queries"),
            counted(bad, "bad row", "bad rows"),
        )
    })
}

/// The rows of each file, with their lines.
fn by_file<T>(files: &[String], rows: Vec<(Place, T)>) -> Vec<(&str, Vec<(u64, T)>)> {
    let mut of_files: Vec<(&str, Vec<(u64, T)>)> =
        files.iter().map(|file| (file.as_str(), Vec::new())).collect();
    for (place, row) in rows {
        if let Some((_, rows)) = of_files.get_mut(place.file) {
            rows.push((place.line, row));
        }
    }
    of_files
}

/// What is sent, and what has become of it.
struct Import<'a> {
    sender: Sender<'a>,
    skip_invalid: bool,
    queries: usize,
    /// Of the queries those that found nothing.
    zero: usize,
    /// Of the queries those of which nobody said what they found.
    unknown: usize,
    interactions: usize,
    bad: usize,
}

impl Import<'_> {
    async fn queries(&mut self, file: &str, mut rows: Vec<(u64, Query)>) -> Result {
        while !rows.is_empty() {
            let mut batch = next_batch(&mut rows);
            while !batch.is_empty() {
                let messages = batch.iter().map(|(_, query)| query.clone()).collect();
                match self.sender.queries(messages).await {
                    Ok(()) => {
                        let with = |hits| batch.iter().filter(|(_, query)| query.hit_count == hits).count();
                        self.queries += batch.len();
                        self.zero += with(Some(0));
                        self.unknown += with(None);
                        break;
                    }
                    Err(failure) => batch = self.without_refused(file, "queries", batch, failure)?,
                }
            }
        }
        Ok(())
    }

    async fn interactions(&mut self, file: &str, mut rows: Vec<(u64, QueryInteraction)>) -> Result {
        while !rows.is_empty() {
            let mut batch = next_batch(&mut rows);
            while !batch.is_empty() {
                let messages = batch.iter().map(|(_, interaction)| interaction.clone()).collect();
                match self.sender.interactions(messages).await {
                    Ok(()) => {
                        self.interactions += batch.len();
                        break;
                    }
                    Err(failure) => batch = self.without_refused(file, "interactions", batch, failure)?,
                }
            }
        }
        Ok(())
    }

    /// The batch without the rows that the service refuses, which are bad rows like any other.
    fn without_refused<T>(
        &mut self,
        file: &str,
        list: &str,
        batch: Vec<(u64, T)>,
        failure: Failure,
    ) -> Result<Vec<(u64, T)>> {
        let items = refused::items(&failure, list, "");
        let Some((errors, good)) = refused::without(batch, items) else {
            return Err(failure);
        };
        report_bad_rows(&file, &errors);
        let lines: BTreeSet<i64> = errors.iter().map(|error| error.line).collect();
        self.bad += lines.len();
        if self.skip_invalid {
            return Ok(good);
        }
        Err(Failure::usage(format!(
            "refused: {}; before that {} and {} were stored or already known. Importing the files again is safe; \
             --skip-invalid imports the others",
            counted(lines.len(), "row", "rows"),
            counted(self.queries, "query", "queries"),
            counted(self.interactions, "interaction", "interactions"),
        )))
    }
}

fn next_batch<T>(rows: &mut Vec<T>) -> Vec<T> {
    let others = rows.split_off(rows.len().min(BATCH));
    std::mem::replace(rows, others)
}

fn read(files: &[PathBuf]) -> Result<Documents> {
    let mut documents = Documents::default();
    for (index, file) in files.iter().enumerate() {
        let source = Source::open(file)?;
        let name = source.to_string();
        let mut take = |line: u64, document: Result<Document, RowError>| {
            let place = Place { file: index, line };
            match document {
                Ok(Document::Query(query)) => {
                    documents.read += 1;
                    documents.searches.query(place, *query);
                }
                Ok(Document::Interaction(interaction)) => {
                    documents.read += 1;
                    documents.searches.interaction(place, interaction);
                }
                Ok(Document::Browsing) => documents.browsing += 1,
                Ok(Document::Other) => documents.passed_over += 1,
                Err(error) => {
                    documents.bad_count += 1;
                    if error.ends_file() {
                        documents.ends.get_or_insert_with(|| name.clone());
                    }
                    if documents.bad.len() < MAX_SHOWN || error.ends_file() {
                        documents.bad.push(format!("{name}, line {line}: {error}"));
                    }
                }
            }
            documents.read <= MAX_DOCUMENTS
        };
        let is_csv = file
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        if is_csv {
            ubi::read_csv(source.reader()?, &mut take);
        } else {
            ubi::read_jsonl(source.reader()?, &mut take);
        }
        if documents.read > MAX_DOCUMENTS {
            return Err(Failure::usage(format!(
                "there are more than {MAX_DOCUMENTS} documents; import them in parts"
            )));
        }
        documents.files.push(source.to_string());
    }
    Ok(documents)
}
