//! `emend queries import`: queries and interactions that were recorded elsewhere.

use std::{collections::BTreeSet, path::PathBuf};

use emend_core::text::escaped;
use emend_proto::feedback::v1::{Query, QueryInteraction};
use serde_json::json;

use super::{BATCH, Sender};
use crate::{
    commands::{import::report_bad_rows, refused},
    context::Context,
    failure::{Failure, Result},
    output::Output,
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

/// What was read from one file, each with its line.
#[derive(Debug, Default)]
struct Documents {
    file: String,
    queries: Vec<(u64, Query)>,
    interactions: Vec<(u64, QueryInteraction)>,
    passed_over: usize,
    bad: Vec<String>,
    bad_count: usize,
    /// Whether the file could be read only up to its last bad row.
    ends: bool,
}

impl Documents {
    fn count(&self) -> usize {
        self.queries.len() + self.interactions.len()
    }
}

/// Runs `emend queries import`.
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
    for bad in documents.iter().flat_map(|file| &file.bad).take(MAX_SHOWN) {
        eprintln!("{}", escaped(&bad.to_string()));
    }
    if let Some(file) = documents.iter().find(|file| file.ends) {
        return Err(Failure::usage(format!(
            "{} can't be read; nothing was imported",
            file.file
        )));
    }
    let bad: usize = documents.iter().map(|file| file.bad_count).sum();
    if bad > 0 && !skip_invalid {
        return Err(Failure::usage(format!(
            "{bad} rows can't be read and nothing is imported; --skip-invalid imports the others"
        )));
    }
    let passed_over: usize = documents.iter().map(|file| file.passed_over).sum();
    let mut import = Import {
        sender: Sender::new(context).await?,
        skip_invalid,
        queries: 0,
        interactions: 0,
        bad,
    };
    // A query comes before what was done with its results, whatever file that is in.
    let mut interactions = Vec::new();
    for file in documents {
        import.queries(&file.file, file.queries).await?;
        interactions.push((file.file, file.interactions));
    }
    for (file, interactions) in interactions {
        import.interactions(&file, interactions).await?;
    }
    let Import {
        queries,
        interactions,
        bad,
        ..
    } = import;
    let result = json!({
        "queryCount": queries,
        "interactionCount": interactions,
        "passedOverCount": passed_over,
        "badCount": bad,
    });
    output.result(&result, || {
        format!(
            "{queries} queries and {interactions} interactions are recorded; {passed_over} events about no result were passed \
             over, {bad} rows were bad"
        )
    })
}

/// What is sent, and what has become of it.
struct Import<'a> {
    sender: Sender<'a>,
    skip_invalid: bool,
    queries: usize,
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
                        self.queries += batch.len();
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
            "{} rows are refused; {} queries and {} interactions were recorded before. Importing the files again is safe; \
             --skip-invalid imports the others",
            lines.len(),
            self.queries,
            self.interactions
        )))
    }
}

fn next_batch<T>(rows: &mut Vec<T>) -> Vec<T> {
    let others = rows.split_off(rows.len().min(BATCH));
    std::mem::replace(rows, others)
}

fn read(files: &[PathBuf]) -> Result<Vec<Documents>> {
    let mut all: Vec<Documents> = Vec::new();
    for file in files {
        let before: usize = all.iter().map(Documents::count).sum();
        let source = Source::open(file)?;
        let mut documents = Documents {
            file: source.to_string(),
            ..Documents::default()
        };
        let mut take = |line: u64, document: Result<Document, RowError>| {
            match document {
                Ok(Document::Query(query)) => documents.queries.push((line, *query)),
                Ok(Document::Interaction(interaction)) => documents.interactions.push((line, interaction)),
                Ok(Document::Other) => documents.passed_over += 1,
                Err(error) => {
                    documents.bad_count += 1;
                    documents.ends |= error.ends_file();
                    if documents.bad.len() < MAX_SHOWN || error.ends_file() {
                        documents
                            .bad
                            .push(format!("{}, line {line}: {error}", documents.file));
                    }
                }
            }
            before + documents.count() <= MAX_DOCUMENTS
        };
        let is_csv = file
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        if is_csv {
            ubi::read_csv(source.reader()?, &mut take);
        } else {
            ubi::read_jsonl(source.reader()?, &mut take);
        }
        if before + documents.count() > MAX_DOCUMENTS {
            return Err(Failure::usage(format!(
                "there are more than {MAX_DOCUMENTS} documents; import them in parts"
            )));
        }
        all.push(documents);
    }
    Ok(all)
}
