//! `emend import`: imports phrase mappings, aliases, prohibitions, synonyms, tunings and decisions from a file.
//!
//! The file is read twice: first to count the rows and find all unreadable ones before anything is sent, then to send
//! them.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use emend_proto::learning::v1::{
    ImportAs, ImportError, ImportHeader, ImportMode, ImportResourcesRequest, ImportResourcesResponse,
    ImportRow, ImportRows, import_resources_request::Message,
};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::Decision;
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted, on_standard_error},
    transfer::{Format, RowError, source::Source},
    view,
    words::{BadRows, CountAs},
};

/// Rows in one message.
const ROWS: usize = 500;
/// Messages that may be queued for sending.
const QUEUE: usize = 8;
/// The most bad rows that are reported.
pub(super) const MAX_REPORTED: usize = 1_000;

/// Which file to import, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Fields of a row, by these names in the CSV's header or as keys of JSON objects and YAML mappings:
  type           invocation_phrase, entity_alias, prohibition, synonym, domain_rule, claim_state,
                 edge_label or search_tuning; not needed where the other fields' own names
                 say it, as in a file with the header phrase,verb
  input          the phrase, alias, term, pattern of domains, query type, or id of a claim or
                 edge (also called phrase, alias, term, pattern, query_type, claim_id, edge_id)
  choice         the verb, the entity's id, the choice never to offer, the term that a
                 synonym stands for, the decision about a domain (block, unblock,
                 unblock:LEVEL or a level) or about a claim (rejected, rejected:REASON_CODE
                 or restored), the label of an edge (supports, refutes or neutral), or a
                 tuning as emend search tuning takes it (top_k=20 min_score=0.3); also called verb,
                 entity_id, forbidden_choice, representative, decision, label, tuning
  relation       of a synonym, optional: equivalent (default), one_way or typo
  user_id        optional: for this user only
  system_choice  optional: what the system chose

Examples:
  emend import corrections.csv
  emend import corrections.yaml --mode skip-invalid --as votes
  emend export --format jsonl | emend import - --format jsonl --namespace another

  $ cat corrections.csv
  type,input,choice
  invocation_phrase,set up a CSA,create_isda
  entity_alias,J. Smith,person:jane-smith
  prohibition,wind down the fund,delete_fund

Synonym files of Solr and Elasticsearch (\"a, b, c\" and \"a => b\") and Sudachi's synonyms.txt are
read too, every line as one or more rows:
  emend import --format solr synonyms.txt
  emend import --format sudachi synonyms.txt
Each line of Solr's is a set of its own, and so is each group of Sudachi's. Empty terms and lines of
one term are passed over. Two relations of one pair are their union.

So are synonyms in JSON as the interfaces of Typesense, Meilisearch, Algolia and Elasticsearch
export them, and lists of domains to block: plain, hosts files, AdGuard, uBlacklist. A domain of a
list is blocked with its subdomains, an exception unblocked. What is no decision about a whole
domain is passed over, and the line is named with the reason (with --json, in `passedOver`):
  emend import synonyms.json
  emend import --format domains hosts.txt --reason \"spam list of June\"

Files are UTF-8. Of all rows that say different things of one key, however far apart they are, the
first counts and the others are bad. Running an import twice changes nothing the second time. With
skip-invalid, bad rows are reported on standard error (and in --json's `errors`) and the exit code
is 0, unless the file can't be read to its end: then it is 2, and nothing is imported.")]
pub struct Args {
    /// The file to import; - for standard input
    file: PathBuf,
    /// The file format [default: by the file's extension]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// What to do with bad rows
    #[arg(long, value_enum, default_value_t = BadRows::AllOrNothing)]
    mode: BadRows,
    /// What rows count as
    #[arg(long = "as", value_enum, default_value_t = CountAs::Decision)]
    count_as: CountAs,
    #[command(flatten)]
    decision: Decision,
}

/// The given format, otherwise by the file's extension.
pub(super) fn format_of(file: &Path, given: Option<Format>, formats: &str) -> Result<Format> {
    given.or_else(|| Format::of_path(file)).ok_or_else(|| {
        Failure::usage(format!(
            "{}: the file name does not say the format; pass --format {formats}",
            file.display()
        ))
    })
}

/// Imports the file.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let format = format_of(
        &args.file,
        args.format,
        "csv, jsonl, yaml, solr, sudachi, synonyms-json or domains",
    )?;
    let source = Arc::new(Source::open(&args.file)?);
    let read = Arc::clone(&source);
    let checked = blocking(move || check(&read, format)).await?;
    let Checked { rows, mut bad, .. } = checked;
    if checked.ends {
        report_bad_rows(&source, &bad);
        return Err(Failure::usage(format!(
            "{source} can't be read; nothing was imported"
        )));
    }
    report_passed_over(&source, &checked.passed_over, checked.passed_over_count);
    let is_refused = checked.bad_count > 0 && args.mode == BadRows::AllOrNothing;
    let header = ImportHeader {
        namespace: context.namespace(),
        mode: ImportMode::from(args.mode) as i32,
        import_as: ImportAs::from(args.count_as) as i32,
        reason: args.decision.reason,
        on_behalf_of: args.decision.by,
        // The service still says which of the other rows it would refuse.
        validate_only: is_refused,
    };
    if is_refused {
        let sent = send(context, header, Arc::clone(&source), format, rows).await;
        let found = sent.as_ref().map_or(&[][..], |found| &found.errors[..]);
        bad.extend_from_slice(found);
        bad.sort_by_key(|error| error.line);
        report_bad_rows(&source, &bad);
        let refused = sent.as_ref().map_or(0, |found| found.rejected_count);
        return Err(sent.err().unwrap_or_else(|| {
            Failure::usage(format!(
                "{}; nothing was imported (--mode skip-invalid imports the others)",
                counted(checked.bad_count.saturating_add(refused), "bad row", "bad rows")
            ))
        }));
    }
    let mut response = match send(context, header, Arc::clone(&source), format, rows).await {
        Ok(response) => response,
        Err(failure) => return Err(of_rows(&source, failure)),
    };
    response.rejected_count = response.rejected_count.saturating_add(checked.bad_count);
    response.errors.extend(bad);
    response.errors.sort_by_key(|error| error.line);
    report_bad_rows(&source, &response.errors);
    let mut json = view::message(&response);
    json["passedOverCount"] = checked.passed_over_count.into();
    json["passedOver"] = checked.passed_over.iter().map(view::message).collect();
    output.result(&json, || summary(&response, checked.passed_over_count))
}

/// A refusal of the whole import for its rows, such as `rows[line 3].user_id: …`, told by their lines.
fn of_rows(source: &Source, failure: Failure) -> Failure {
    let bad: Vec<ImportError> = match &failure {
        Failure::Refused(explained) => explained
            .field_violations
            .iter()
            .filter_map(|violation| {
                let (line, field) = violation.field.strip_prefix("rows[line ")?.split_once(']')?;
                Some(ImportError {
                    line: line.parse().ok()?,
                    field: field.trim_start_matches('.').to_owned(),
                    description: violation.description.clone(),
                })
            })
            .collect(),
        _ => Vec::new(),
    };
    if bad.is_empty() {
        return failure;
    }
    report_bad_rows(source, &bad);
    Failure::usage(format!(
        "{source} has bad rows; nothing was imported (--mode skip-invalid imports the others)"
    ))
}

struct Checked {
    rows: u64,
    /// The first bad rows, of so many.
    bad: Vec<ImportError>,
    bad_count: i64,
    /// The first lines of which something is passed over, of so many.
    passed_over: Vec<ImportError>,
    passed_over_count: u64,
    /// Whether the file could be read only up to the last bad row.
    ends: bool,
}

fn check(source: &Source, format: Format) -> io::Result<Checked> {
    let mut checked = Checked {
        rows: 0,
        bad: Vec::new(),
        bad_count: 0,
        passed_over: Vec::new(),
        passed_over_count: 0,
        ends: false,
    };
    format.read(source.reader()?, &mut |line, row| {
        match row {
            Ok(_) => checked.rows += 1,
            Err(error) if error.is_passed_over() => {
                checked.passed_over_count += 1;
                if checked.passed_over.len() < MAX_REPORTED {
                    checked.passed_over.push(import_error(line, error));
                }
            }
            Err(error) => {
                // What ends the file is always told.
                checked.ends |= error.ends_file();
                checked.bad_count += 1;
                if checked.bad.len() < MAX_REPORTED || error.ends_file() {
                    checked.bad.push(import_error(line, error));
                }
            }
        }
        true
    });
    Ok(checked)
}

pub(super) fn import_error(line: u64, error: RowError) -> ImportError {
    ImportError {
        line: i64::try_from(line).unwrap_or(i64::MAX),
        field: error.field,
        description: error.description,
    }
}

/// Streams the rows and waits for the response. If the call ends early, the server's status says why.
async fn send(
    context: &Context,
    header: ImportHeader,
    source: Arc<Source>,
    format: Format,
    rows: u64,
) -> Result<ImportResourcesResponse> {
    let mut client = context.resources().await?;
    let progress = progress_bar(rows);
    let (sender, receiver) = mpsc::channel(QUEUE);
    let reader = tokio::task::spawn_blocking({
        let progress = progress.clone();
        move || read_rows(&source, format, header, &sender, &progress)
    });
    let request = context.request_without_deadline(ReceiverStream::new(receiver));
    let answered = client.import_resources(request).await;
    progress.finish_and_clear();
    // If the server ended the call, report its reason, not that rows could no longer be sent.
    let response = answered?.into_inner();
    reader
        .await
        .map_err(|error| Failure::failed(error.to_string()))??;
    Ok(response)
}

fn read_rows(
    source: &Source,
    format: Format,
    header: ImportHeader,
    sender: &mpsc::Sender<ImportResourcesRequest>,
    progress: &ProgressBar,
) -> io::Result<()> {
    let send = |message| {
        sender
            .blocking_send(ImportResourcesRequest {
                message: Some(message),
            })
            .is_ok()
    };
    let file = source.reader()?;
    if !send(Message::Header(header)) {
        return Ok(());
    }
    let mut rows: Vec<ImportRow> = Vec::with_capacity(ROWS);
    format.read(file, &mut |line, row| {
        rows.extend(row.and_then(|record| record.to_import_row(line)));
        if rows.len() < ROWS {
            return true;
        }
        progress.inc(ROWS as u64);
        send(Message::Rows(ImportRows {
            rows: std::mem::take(&mut rows),
        }))
    });
    if !rows.is_empty() {
        progress.inc(rows.len() as u64);
        send(Message::Rows(ImportRows { rows }));
    }
    progress.set_message("waiting for the commit");
    Ok(())
}

/// A progress bar on standard error, if that is a terminal.
pub(super) fn progress_bar(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} rows, {per_sec} {msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| Failure::failed(error.to_string()))??)
}

/// Says of each bad row of a file what is wrong with it.
pub(super) fn report_bad_rows(file: &dyn fmt::Display, bad: &[ImportError]) {
    for ImportError {
        line,
        field,
        description,
    } in bad
    {
        let field = if field.is_empty() {
            String::new()
        } else {
            format!("{field}: ")
        };
        let bad = format!("{file}, line {line}: {field}{description}");
        eprintln!("{}", on_standard_error(&bad));
    }
}

/// Says of each line that was passed over, of so many, why.
pub(super) fn report_passed_over(file: &dyn fmt::Display, lines: &[ImportError], count: u64) {
    for ImportError {
        line, description, ..
    } in lines
    {
        let passed_over = format!("{file}, line {line}: {description}; passed over");
        eprintln!("{}", on_standard_error(&passed_over));
    }
    let others = count - lines.len() as u64;
    if others > 0 {
        let times = counted(others, "more time", "more times");
        eprintln!("{file}: something was passed over {times}");
    }
}

fn summary(response: &ImportResourcesResponse, passed_over: u64) -> String {
    let revisions = match (response.first_revision, response.last_revision) {
        (0, _) => String::new(),
        (first, last) if first == last => format!("; revision {first}"),
        (first, last) => format!("; revisions {first} to {last}"),
    };
    let passed_over = match passed_over {
        0 => String::new(),
        count => format!(", {count} passed over"),
    };
    format!(
        "{} applied, {} unchanged, {} rejected{passed_over}{revisions}\noperation {}",
        counted(response.applied_count, "row", "rows"),
        response.unchanged_count,
        response.rejected_count,
        response.operation_id
    )
}
