//! `emend queries import`: queries and interactions that were recorded elsewhere.

use std::{
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use emend_proto::feedback::v1::{Query, QueryInteraction};
use serde_json::json;

use super::{BATCH, Sender};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    transfer::{
        RowError,
        ubi::{self, Document},
    },
};

/// Documents in one import.
const MAX_DOCUMENTS: usize = 1_000_000;
/// The most bad rows that are shown.
const MAX_SHOWN: usize = 20;

/// What was read from files.
#[derive(Debug, Default)]
struct Documents {
    queries: Vec<Query>,
    interactions: Vec<QueryInteraction>,
    passed_over: usize,
    bad: Vec<String>,
    bad_count: usize,
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
    for bad in &documents.bad {
        eprintln!("emend: {bad}");
    }
    if documents.bad_count > 0 && !skip_invalid {
        return Err(Failure::failed(format!(
            "{} rows can't be read and nothing is imported; --skip-invalid imports the others",
            documents.bad_count
        )));
    }
    let (queries, interactions) = (documents.queries.len(), documents.interactions.len());
    let mut sender = Sender::new(context).await?;
    for batch in documents.queries.chunks(BATCH) {
        sender.queries(batch.to_vec()).await?;
    }
    for batch in documents.interactions.chunks(BATCH) {
        sender.interactions(batch.to_vec()).await?;
    }
    let (passed_over, bad) = (documents.passed_over, documents.bad_count);
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

fn read(files: &[PathBuf]) -> Result<Documents> {
    let mut documents = Documents::default();
    for file in files {
        let name = file.display().to_string();
        let mut take = |line: u64, document: Result<Document, RowError>| {
            match document {
                Ok(Document::Query(query)) => documents.queries.push(*query),
                Ok(Document::Interaction(interaction)) => documents.interactions.push(interaction),
                Ok(Document::Other) => documents.passed_over += 1,
                Err(error) => {
                    documents.bad_count += 1;
                    if documents.bad.len() < MAX_SHOWN {
                        documents.bad.push(format!("{name}:{line}: {error}"));
                    }
                }
            }
            documents.queries.len() + documents.interactions.len() <= MAX_DOCUMENTS
        };
        if file == Path::new("-") {
            ubi::read_jsonl(io::stdin().lock(), &mut take);
            continue;
        }
        let opened = File::open(file).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        let opened = BufReader::new(opened);
        if file
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
        {
            ubi::read_csv(opened, &mut take);
        } else {
            ubi::read_jsonl(opened, &mut take);
        }
    }
    if documents.queries.len() + documents.interactions.len() > MAX_DOCUMENTS {
        return Err(Failure::usage(format!(
            "there are more than {MAX_DOCUMENTS} documents; import them in parts"
        )));
    }
    Ok(documents)
}
