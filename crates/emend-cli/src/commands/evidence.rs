//! `emend evidence`: puts pages, fragments, claims and edges into the evidence graph, takes a task out of it, and shows what was
//! done to it.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::Subcommand;
use emend_core::Kind;
use emend_proto::learning::v1::{
    EvidenceEvent, ExportMaterialsRequest, ImportError, ListEvidenceEventsRequest, UpsertEvidenceRequest,
};
use indicatif::ProgressBar;
use prost_types::Timestamp;
use serde_json::json;

use super::{
    export::write_to,
    import::{MAX_REPORTED, Source, import_error, progress_bar, report_bad_rows},
};
use crate::{
    context::{Context, pages},
    failure::{Failure, Result},
    output::{Column, Output, Table},
    transfer::{
        RowError,
        materials::{Material, Sort},
    },
    view, words,
};

/// Nodes and edges in one request at most.
const BATCH: usize = 1_000;
/// Bytes of lines in one request at most, but for a single longer line: messages have a bound.
const BATCH_BYTES: usize = 1 << 20;

/// Import, export, or show what was done.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence import graph.jsonl
  emend evidence export t1 --out t1.jsonl
  emend evidence events --claim claim:12
  emend evidence events --task t1 --from 2026-01-31

  $ cat graph.jsonl
  {\"page\":{\"page_id\":\"page:1\",\"domain\":\"blog.example\",\"title\":\"On coffee\"}}
  {\"claim\":{\"claim_id\":\"claim:1\",\"task_id\":\"t1\",\"text\":\"Coffee dehydrates.\"}}
  {\"edge\":{\"edge_id\":\"e7\",\"task_id\":\"t1\",\"relation\":\"refutes\",\"source\":\"page:1\",\"target\":\"claim:1\"}}

A file has one such object per line, in any order; docs/evidence.md shows every field. An end of an
edge is an id that begins with page:, fragment: or claim:, or an object such as
{\"fragment\": \"abc123\"}. An import is safe to repeat: what is known is replaced, and what people
corrected stays corrected. An export has the edges that name the task. It can be imported.

With authentication, import needs the role evidence-writer; export and events need reviewer.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add nodes and edges from a file, or replace what is known of them
    Import {
        /// The file, one JSON object per line; - for standard input
        file: PathBuf,
    },
    /// Write a task's pages, fragments, claims and edges as JSON lines, as corrected
    Export {
        /// The task's id
        task: String,
        /// The file to write [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List what was done to domains, claims and edges, newest first
    Events(Events),
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("about").args(["claim", "edge", "domain"]))]
struct Events {
    /// Only what was done to this claim
    #[arg(long, value_name = "ID")]
    claim: Option<String>,
    /// Only what was done to this edge
    #[arg(long, value_name = "ID")]
    edge: Option<String>,
    /// Only what was done to this pattern of domains
    #[arg(long, value_name = "PATTERN")]
    domain: Option<String>,
    /// Only what was done in this task
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    task: String,
    /// Only what this authenticated caller did
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    caller: String,
    #[command(flatten)]
    period: Period,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

/// From when to when.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Period {
    /// Only at or after this time or date
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    pub(super) from: Option<Timestamp>,
    /// Only before this time or date
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    pub(super) to: Option<Timestamp>,
}

/// Imports, exports or lists.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::Import { file } => import(&file, context, output).await,
        Action::Export { task, out } => {
            let request = ExportMaterialsRequest {
                namespace: context.namespace(),
                task_id: task,
            };
            let mut client = context.evidence().await?;
            let request = context.request_without_deadline(request);
            let mut lines = client.export_materials(request).await?.into_inner();
            write_to(out.as_deref(), "lines", output, async |to| {
                let mut to = BufWriter::new(to);
                let progress = ProgressBar::new_spinner();
                let mut count = 0;
                while let Some(line) = lines.message().await? {
                    let Some(material) = view::evidence::material(&line) else {
                        eprintln!("emend: not exported: this version does not know the sort of a line");
                        continue;
                    };
                    writeln!(to, "{material}")?;
                    count += 1;
                    progress.inc(1);
                }
                to.flush()?;
                progress.finish_and_clear();
                Ok(count)
            })
            .await
        }
        Action::Events(events) => list_events(events, context, output).await,
    }
}

/// Checks the whole file, then sends it sort by sort, so that each line names only what is known.
async fn import(file: &Path, context: &Context, output: &mut Output<'_>) -> Result {
    let source = Source::open(file)?;
    let Checked { counts, bad } = check(source.path())?;
    if !bad.is_empty() {
        report_bad_rows(&bad);
        return Err(bad_lines(bad.len(), "nothing was imported"));
    }
    let total = counts.iter().sum();
    let mut client = context.evidence().await?;
    let progress = progress_bar(total);
    let (mut done, mut added, mut arrived) = (0_u64, 0_i64, 0_i64);
    for (sort, count) in Sort::ALL.into_iter().zip(counts) {
        let mut batches = Batches::of(source.path(), sort)?;
        while let Some(batch) = (count > 0).then(|| batches.next()).transpose()?.flatten() {
            let request = UpsertEvidenceRequest {
                namespace: context.namespace(),
                ..batch.request
            };
            let upserted = client.upsert_evidence(context.request(request)).await;
            let upserted = upserted.map_err(|status| refusal(status.into(), sort, &batch.lines, done));
            let upserted = upserted
                .inspect_err(|_| progress.finish_and_clear())?
                .into_inner();
            done += batch.lines.len() as u64;
            added += i64::from(upserted.added);
            arrived += i64::from(upserted.corrections_arrived);
            progress.set_position(done);
        }
    }
    progress.finish_and_clear();
    let json = json!({"lines": total, "added": added, "corrections_arrived": arrived});
    output.result(&json, || match arrived {
        0 => format!("{total} lines imported, {added} of them new"),
        _ => format!("{total} lines imported, {added} of them new; corrections that took effect: {arrived}"),
    })
}

struct Checked {
    /// How many lines there are of each sort, in the order of [`Sort::ALL`].
    counts: [u64; Sort::ALL.len()],
    bad: Vec<ImportError>,
}

fn check(path: &Path) -> Result<Checked> {
    let mut checked = Checked {
        counts: [0; Sort::ALL.len()],
        bad: Vec::new(),
    };
    let mut lines = Lines::of(path)?;
    while let Some((line, text)) = lines.next()? {
        match Material::parse(text) {
            Ok(material) => checked.counts[material.sort() as usize] += 1,
            Err(error) if checked.bad.len() < MAX_REPORTED => checked.bad.push(import_error(line, error)),
            Err(_) => {}
        }
    }
    Ok(checked)
}

/// The lines of a file that are not empty, with their numbers.
struct Lines {
    file: BufReader<File>,
    line: u64,
    text: String,
}

impl Lines {
    fn of(path: &Path) -> Result<Self> {
        Ok(Self {
            file: BufReader::new(File::open(path)?),
            line: 0,
            text: String::new(),
        })
    }

    fn next(&mut self) -> Result<Option<(u64, &str)>> {
        loop {
            self.text.clear();
            if self.file.read_line(&mut self.text)? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if !self.text.trim().is_empty() {
                return Ok(Some((self.line, self.text.trim_start_matches('\u{FEFF}'))));
            }
        }
    }
}

/// What is sent at once, and the lines that it is from.
struct Batch {
    request: UpsertEvidenceRequest,
    lines: Vec<u64>,
}

/// A file's lines of one sort, in batches.
struct Batches {
    lines: Lines,
    sort: Sort,
}

impl Batches {
    fn of(path: &Path, sort: Sort) -> Result<Self> {
        Ok(Self {
            lines: Lines::of(path)?,
            sort,
        })
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        let (mut request, mut lines, mut bytes) = (UpsertEvidenceRequest::default(), Vec::new(), 0);
        while lines.len() < BATCH && bytes < BATCH_BYTES {
            let Some((line, text)) = self.lines.next()? else {
                break;
            };
            // Every line was read before.
            let Ok(material) = Material::parse(text) else {
                continue;
            };
            if material.sort() == self.sort {
                bytes += text.len();
                lines.push(line);
                material.add_to(&mut request);
            }
        }
        Ok((!lines.is_empty()).then_some(Batch { request, lines }))
    }
}

/// Reports a refused batch: violations of fields by the lines that they are in.
fn refusal(failure: Failure, sort: Sort, lines: &[u64], done: u64) -> Failure {
    let before = match done {
        0 => "nothing was imported".to_owned(),
        1 => "1 line was imported before; it is safe to import the whole file again".to_owned(),
        _ => format!("{done} lines were imported before; it is safe to import the whole file again"),
    };
    let bad: Vec<ImportError> = match &failure {
        Failure::Refused(explained) => explained
            .field_violations
            .iter()
            .filter_map(|violation| line_error(sort, lines, &violation.field, &violation.description))
            .collect(),
        _ => Vec::new(),
    };
    if bad.is_empty() {
        eprintln!("emend: {before}");
        return failure;
    }
    report_bad_rows(&bad);
    bad_lines(bad.len(), &before)
}

fn bad_lines(count: usize, then: &str) -> Failure {
    let lines = if count == 1 { "line" } else { "lines" };
    Failure::usage(format!("{count} bad {lines}; {then}"))
}

/// A violation of a field of the request, such as `edges[3].target`, by its line.
fn line_error(sort: Sort, lines: &[u64], field: &str, description: &str) -> Option<ImportError> {
    let (index, rest) = field
        .strip_prefix(sort.list())?
        .strip_prefix('[')?
        .split_once(']')?;
    let line = *lines.get(index.parse::<usize>().ok()?)?;
    let error = RowError::field(&format!("{}{rest}", sort.name()), description);
    Some(import_error(line, error))
}

async fn list_events(args: Events, context: &Context, output: &mut Output<'_>) -> Result {
    let about = [
        (Kind::ClaimState, args.claim),
        (Kind::EdgeLabel, args.edge),
        (Kind::DomainRule, args.domain),
    ];
    let about = about
        .into_iter()
        .find_map(|(kind, target)| Some((kind.number(), target?)));
    let (kind, target) = about.unwrap_or_default();
    let request = ListEvidenceEventsRequest {
        namespace: context.namespace(),
        target,
        kind,
        task_id: args.task,
        caller: args.caller,
        from: args.period.from,
        to: args.period.to,
        ..ListEvidenceEventsRequest::default()
    };
    let is_filtered = request
        != ListEvidenceEventsRequest {
            namespace: context.namespace(),
            ..ListEvidenceEventsRequest::default()
        };
    let client = context.evidence().await?;
    let (events, more) = pages(args.limit, 1_000, |page_size, page_token| {
        let request = ListEvidenceEventsRequest {
            page_size,
            page_token,
            ..request.clone()
        };
        let mut client = client.clone();
        async move {
            let page = client
                .list_evidence_events(context.request(request))
                .await?
                .into_inner();
            Ok((page.events, page.next_page_token))
        }
    })
    .await?;
    output.results(
        &events,
        view::evidence::evidence_event,
        table,
        &context.none_found("events", is_filtered),
    )?;
    super::candidates::note_more(more);
    Ok(())
}

fn table(events: &[EvidenceEvent]) -> Table {
    Table::new([
        ("AT", Column::Fixed),
        ("ACTION", Column::Fixed),
        ("KIND", Column::Fixed),
        ("TARGET", Column::Text),
        ("CHANGE", Column::Text),
        ("BY", Column::Text),
        ("REPORTER", Column::Text),
        ("REASON", Column::Text),
    ])
    .with_rows(events, |event| {
        let key = event.key.clone().unwrap_or_default();
        let actor = event.actor.clone().unwrap_or_default();
        let kind = words::kind_name(key.kind);
        [
            view::short_time(event.at.as_ref()),
            view::evidence::action(event.action).unwrap_or_default(),
            kind.split('_').next().unwrap_or_default().to_owned(),
            key.key,
            change(event),
            if actor.on_behalf_of.is_empty() {
                actor.caller
            } else {
                actor.on_behalf_of
            },
            event.reporter.clone(),
            event.reason.clone(),
        ]
    })
}

/// What an event changed, or that it changed nothing.
fn change(event: &EvidenceEvent) -> String {
    let or_none = |word: &str| if word.is_empty() { "–" } else { word }.to_owned();
    let (before, after) = (or_none(&event.before), or_none(&event.after));
    match &*event.proposed {
        _ if before != after => format!("{before} → {after}"),
        "" => format!("{after}, as before"),
        proposed if proposed == after => format!("{after}, as before"),
        proposed => format!("{after}, not {proposed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sent_sort_by_sort_whatever_their_order() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let page = |id: &str| format!("{{\"page\": {{\"page_id\": \"{id}\"}}}}\n");
        let claim = "{\"claim\": {\"claim_id\": \"claim:1\"}}\n";
        let text = format!("\u{FEFF}{claim}\n{}{claim}{}", page("page:1"), page("page:2"));
        std::fs::write(file.path(), text).unwrap();
        let checked = check(file.path()).unwrap();
        assert_eq!((checked.counts, checked.bad.len()), ([2, 0, 2, 0], 0));
        let mut pages = Batches::of(file.path(), Sort::Page).unwrap();
        let first = pages.next().unwrap().unwrap();
        assert_eq!((first.lines, first.request.pages.len()), (vec![3, 5], 2));
        assert!(first.request.claims.is_empty());
        assert!(pages.next().unwrap().is_none());
    }

    #[test]
    fn a_batch_has_a_bound_by_count_and_by_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let sizes = |text: String| {
            std::fs::write(file.path(), text).unwrap();
            let mut batches = Batches::of(file.path(), Sort::Claim).unwrap();
            let mut sizes = Vec::new();
            while let Some(batch) = batches.next().unwrap() {
                sizes.push(batch.lines.len());
            }
            sizes
        };
        let claim = |text: &str| format!("{{\"claim\": {{\"claim_id\": \"c\", \"text\": \"{text}\"}}}}\n");
        assert_eq!(sizes(claim("short").repeat(2_001)), [1_000, 1_000, 1]);
        assert_eq!(sizes(claim(&"x".repeat(BATCH_BYTES / 2)).repeat(5)), [2, 2, 1]);
    }

    #[test]
    fn what_the_service_refuses_is_named_by_its_line() {
        let of = |field| line_error(Sort::Edge, &[4, 9], field, "is not known");
        let error = of("edges[1].source.fragment_id").unwrap();
        assert_eq!((error.line, &*error.field), (9, "edge.source.fragment_id"));
        for elsewhere in ["namespace", "edges[2].source", "claims[0].text", "edges"] {
            assert!(of(elsewhere).is_none(), "{elsewhere}");
        }
    }

    #[test]
    fn one_bad_line_is_not_called_lines() {
        let said = |count| bad_lines(count, "nothing was imported").to_string();
        assert_eq!(said(1), "1 bad line; nothing was imported");
        assert_eq!(said(2), "2 bad lines; nothing was imported");
    }

    #[test]
    fn an_event_says_what_it_changed_or_why_nothing() {
        let event = |before: &str, after: &str, proposed: &str| {
            change(&EvidenceEvent {
                before: before.into(),
                after: after.into(),
                proposed: proposed.into(),
                ..EvidenceEvent::default()
            })
        };
        assert_eq!(event("", "refutes", "refutes"), "– → refutes");
        assert_eq!(event("refutes", "", ""), "refutes → –");
        assert_eq!(event("refutes", "refutes", "refutes"), "refutes, as before");
        assert_eq!(event("refutes", "refutes", "neutral"), "refutes, not neutral");
        assert_eq!(event("", "", "neutral"), "–, not neutral");
    }
}
