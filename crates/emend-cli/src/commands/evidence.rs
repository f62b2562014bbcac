//! `emend evidence`: puts pages, fragments, claims and edges into the evidence graph, takes a task out of it, and shows what was
//! done to it.

use std::{
    collections::BTreeSet,
    fmt,
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::Subcommand;
use emend_core::Kind;
use emend_proto::learning::v1::{
    DeleteEvidenceRequest, DeleteEvidenceResponse, EvidenceElement, EvidenceEvent, ExportMaterialsRequest,
    ImportError, ListEvidenceEventsRequest, UpsertEvidenceRequest, evidence_element::Element,
};
use indicatif::ProgressBar;
use prost_types::Timestamp;
use serde_json::json;

use super::{
    export::write_to,
    import::{MAX_REPORTED, import_error, progress_bar, report_bad_rows},
    refused,
};
use crate::{
    context::{Context, pages},
    failure::{Failure, Result},
    output::{Column, Output, Table, json_escaped},
    transfer::{
        RowError,
        materials::{Material, Sort},
        source::{Lines, Source},
    },
    view,
    words::{self, BadRows},
};

/// Nodes and edges in one request at most.
const BATCH: usize = 1_000;
/// Bytes in one request at most, but for a single longer line: messages have a bound.
const BATCH_BYTES: usize = 1 << 20;

/// Import, export, or show what was done.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence import graph.jsonl
  emend evidence export t1 --out t1.jsonl
  emend evidence delete --page page:1 --edge e7 --reason \"the page is gone\"
  emend evidence events --claim claim:12
  emend evidence events --task t1 --from 2026-01-31

  $ cat graph.jsonl
  {\"page\":{\"page_id\":\"page:1\",\"domain\":\"blog.example\",\"title\":\"On coffee\"}}
  {\"claim\":{\"claim_id\":\"claim:1\",\"task_id\":\"t1\",\"text\":\"Coffee dehydrates.\"}}
  {\"edge\":{\"edge_id\":\"e7\",\"task_id\":\"t1\",\"relation\":\"refutes\",\"source\":\"page:1\",\"target\":\"claim:1\"}}

A file has one such object per line, in any order; docs/evidence.md shows every field. An end of an
edge is an id that begins with page:, fragment: or claim:, or an object such as
{\"fragment\": \"abc123\"}. An import is safe to repeat: what is known is replaced, and what people
corrected stays corrected. With --mode skip-invalid bad lines are reported, also those that the
service refuses, and the others are imported. An export has the edges that name the task. It can be
imported.

With authentication, import and delete need the role evidence-writer; export and events need reviewer.")]
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
        /// What to do with bad lines
        #[arg(long, value_enum, default_value_t = BadRows::AllOrNothing)]
        mode: BadRows,
        /// Also replace a page's domain, a fragment's or claim's page, and an edge's ends
        #[arg(long)]
        replace: bool,
    },
    /// Delete pages, fragments, claims and edges with what hangs on them
    Delete(Delete),
    /// Write a task's pages, fragments, claims and edges as JSON lines, as corrected
    Export {
        /// The task's id
        task: String,
        /// The file to write [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List what was done to domains, pages, fragments, claims and edges, newest first
    Events(Events),
}

/// What to delete.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").args(["page", "fragment", "claim", "edge"]).required(true).multiple(true))]
struct Delete {
    /// A page, with its fragments and all edges of these; repeatable
    #[arg(long, value_name = "ID")]
    page: Vec<String>,
    /// A fragment, with its edges; repeatable
    #[arg(long, value_name = "ID")]
    fragment: Vec<String>,
    /// A claim, with the edges from and to it; repeatable
    #[arg(long, value_name = "ID")]
    claim: Vec<String>,
    /// An edge; repeatable
    #[arg(long, value_name = "ID")]
    edge: Vec<String>,
    /// Why; kept with the events
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("about").args(["claim", "edge", "domain", "page", "fragment"]))]
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
    /// Only what was replaced or deleted of this page
    #[arg(long, value_name = "ID")]
    page: Option<String>,
    /// Only what was replaced or deleted of this fragment
    #[arg(long, value_name = "ID")]
    fragment: Option<String>,
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
        Action::Import { file, mode, replace } => import(&file, mode, replace, context, output).await,
        Action::Delete(delete) => delete_elements(delete, context, output).await,
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
                    writeln!(to, "{}", json_escaped(&material.to_string()))?;
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
async fn import(
    file: &Path,
    mode: BadRows,
    replace: bool,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let source = Source::open(file)?;
    let Checked {
        counts,
        bad,
        bad_count,
        ends,
    } = check(&source)?;
    report_bad_rows(&source, &bad);
    if ends {
        return Err(Failure::usage(format!(
            "{source} can't be read; nothing was imported"
        )));
    }
    if bad_count > 0 && mode == BadRows::AllOrNothing {
        return Err(bad_lines(bad_count, "nothing was imported"));
    }
    let mut sent = Sent {
        rejected: bad_count,
        ..Sent::default()
    };
    let mut client = context.evidence().await?;
    let progress = progress_bar(counts.iter().sum());
    for (sort, count) in Sort::ALL.into_iter().zip(counts) {
        let mut batches = Batches::of(&source, sort)?;
        while let Some(mut batch) = (count > 0).then(|| batches.next()).flatten() {
            // Of many lines that are refused, an answer names the first: the others are sent until none is.
            while !batch.is_empty() {
                let mut request = UpsertEvidenceRequest {
                    namespace: context.namespace(),
                    replace,
                    ..UpsertEvidenceRequest::default()
                };
                for (_, material) in &batch {
                    material.clone().add_to(&mut request);
                }
                let failure = match client.upsert_evidence(context.request(request)).await {
                    Ok(upserted) => {
                        let upserted = upserted.into_inner();
                        sent.lines += batch.len() as u64;
                        sent.added += i64::from(upserted.added);
                        sent.arrived += i64::from(upserted.corrections_arrived);
                        sent.applied += i64::from(upserted.corrections_applied);
                        break;
                    }
                    Err(status) => Failure::from(status),
                };
                let items = refused::items(&failure, sort.list(), sort.name());
                let Some((errors, good)) = refused::without(std::mem::take(&mut batch), items) else {
                    progress.finish_and_clear();
                    eprintln!("emend: {}", sent.before());
                    return Err(failure);
                };
                progress.suspend(|| report_bad_rows(&source, &errors));
                if mode == BadRows::AllOrNothing {
                    progress.finish_and_clear();
                    return Err(bad_lines(errors.len() as u64, &sent.before()));
                }
                let lines: BTreeSet<i64> = errors.iter().map(|error| error.line).collect();
                sent.rejected += lines.len() as u64;
                batch = good;
            }
            progress.set_position(sent.lines);
        }
    }
    progress.finish_and_clear();
    let json = json!({
        "lines": sent.lines,
        "added": sent.added,
        "corrections_arrived": sent.arrived,
        "corrections_applied": sent.applied,
        "rejected": sent.rejected,
    });
    output.result(&json, || sent.to_string())
}

/// What was imported so far.
#[derive(Debug, Default)]
struct Sent {
    lines: u64,
    added: i64,
    arrived: i64,
    applied: i64,
    rejected: u64,
}

impl Sent {
    /// What of a file is in place when its next line is refused.
    fn before(&self) -> String {
        match self.lines {
            0 => "nothing was imported".to_owned(),
            1 => "1 line was imported before; it is safe to import the whole file again".to_owned(),
            lines => format!("{lines} lines were imported before; it is safe to import the whole file again"),
        }
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines imported, {} of them new", self.lines, self.added)?;
        if self.rejected > 0 {
            write!(f, ", {} rejected", self.rejected)?;
        }
        if self.arrived > 0 {
            write!(
                f,
                "; corrections that had waited: {}, of which {} took effect",
                self.arrived, self.applied
            )?;
        }
        Ok(())
    }
}

/// Deletes elements with what hangs on them.
async fn delete_elements(args: Delete, context: &Context, output: &mut Output<'_>) -> Result {
    let request = DeleteEvidenceRequest {
        namespace: context.namespace(),
        page_ids: args.page,
        fragment_ids: args.fragment,
        claim_ids: args.claim,
        edge_ids: args.edge,
        reason: args.reason,
        on_behalf_of: String::new(),
    };
    let mut client = context.evidence().await?;
    let request = context.request_without_deadline(request);
    let DeleteEvidenceResponse {
        pages,
        fragments,
        claims,
        edges,
    } = client.delete_evidence(request).await?.into_inner();
    let json = json!({"pages": pages, "fragments": fragments, "claims": claims, "edges": edges});
    output.result(&json, || match pages + fragments + claims + edges {
        0 => "nothing was deleted: none of these is known".to_owned(),
        _ => format!("deleted: {pages} pages, {fragments} fragments, {claims} claims, {edges} edges"),
    })
}

struct Checked {
    /// How many lines there are of each sort, in the order of [`Sort::ALL`].
    counts: [u64; Sort::ALL.len()],
    /// The first bad lines, of so many.
    bad: Vec<ImportError>,
    bad_count: u64,
    /// Whether the file could be read only up to the last bad line.
    ends: bool,
}

fn check(source: &Source) -> Result<Checked> {
    let mut checked = Checked {
        counts: [0; Sort::ALL.len()],
        bad: Vec::new(),
        bad_count: 0,
        ends: false,
    };
    let mut lines = Lines::of(source.reader()?);
    while let Some((line, material)) = next(&mut lines) {
        match material {
            Ok(material) => checked.counts[material.sort() as usize] += 1,
            Err(error) => {
                checked.bad_count += 1;
                checked.ends |= error.ends_file();
                if checked.bad.len() < MAX_REPORTED || error.ends_file() {
                    checked.bad.push(import_error(line, error));
                }
            }
        }
    }
    Ok(checked)
}

/// The next line that is not empty.
fn next(lines: &mut Lines<impl BufRead>) -> Option<(u64, Result<Material, RowError>)> {
    loop {
        let (line, text) = lines.next_text()?;
        if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        return Some((line, text.and_then(Material::parse)));
    }
}

/// A file's lines of one sort, in batches.
struct Batches {
    lines: Lines<BufReader<File>>,
    sort: Sort,
}

impl Batches {
    fn of(source: &Source, sort: Sort) -> Result<Self> {
        Ok(Self {
            lines: Lines::of(source.reader()?),
            sort,
        })
    }

    /// What is sent at once, each with its line.
    fn next(&mut self) -> Option<Vec<(u64, Material)>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some((line, material)) = next(&mut self.lines) else {
                break;
            };
            // Every line was read before.
            let Ok(material) = material else {
                continue;
            };
            if material.sort() == self.sort {
                bytes += material.encoded_len();
                batch.push((line, material));
            }
        }
        (!batch.is_empty()).then_some(batch)
    }
}

fn bad_lines(count: u64, then: &str) -> Failure {
    let lines = if count == 1 { "line" } else { "lines" };
    Failure::usage(format!("{count} bad {lines}; {then}"))
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
    let page = args.page.map(Element::PageId);
    let element = page.or(args.fragment.map(Element::FragmentId));
    let element = element.map(|element| EvidenceElement {
        element: Some(element),
    });
    let request = ListEvidenceEventsRequest {
        namespace: context.namespace(),
        target,
        kind,
        element,
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
        let (kind, target) = view::evidence::element(event).map_or(
            (kind.split('_').next().unwrap_or_default(), key.key.as_str()),
            |of| of,
        );
        [
            view::short_time(event.at.as_ref()),
            view::evidence::action(event.action).unwrap_or_default(),
            kind.to_owned(),
            target.to_owned(),
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

    fn file(text: &str) -> Source {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Source::Copied(file)
    }

    #[test]
    fn lines_are_sent_sort_by_sort_whatever_their_order() {
        let page = |id: &str| format!("{{\"page\": {{\"page_id\": \"{id}\"}}}}\n");
        let claim = "{\"claim\": {\"claim_id\": \"claim:1\"}}\n";
        let file = file(&format!(
            "\u{FEFF}{claim}\n{}{claim}{}",
            page("page:1"),
            page("page:2")
        ));
        let checked = check(&file).unwrap();
        assert_eq!((checked.counts, checked.bad_count), ([2, 0, 2, 0], 0));
        let mut pages = Batches::of(&file, Sort::Page).unwrap();
        let first = pages.next().unwrap();
        let lines: Vec<u64> = first.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [3, 5]);
        assert!(first.iter().all(|(_, material)| material.sort() == Sort::Page));
        assert!(pages.next().is_none());
    }

    #[test]
    fn a_batch_has_a_bound_by_count_and_by_bytes() {
        let sizes = |text: String| {
            let file = file(&text);
            let mut batches = Batches::of(&file, Sort::Claim).unwrap();
            let mut sizes = Vec::new();
            while let Some(batch) = batches.next() {
                sizes.push(batch.len());
            }
            sizes
        };
        let claim = |text: &str| format!("{{\"claim\": {{\"claim_id\": \"c\", \"text\": \"{text}\"}}}}\n");
        assert_eq!(sizes(claim("short").repeat(2_001)), [1_000, 1_000, 1]);
        assert_eq!(sizes(claim(&"x".repeat(BATCH_BYTES / 2)).repeat(5)), [2, 2, 1]);
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
