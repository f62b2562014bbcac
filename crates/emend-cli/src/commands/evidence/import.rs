//! `emend evidence import`: puts pages, fragments, claims and edges into the evidence graph.

use std::{
    collections::BTreeSet,
    fmt,
    fs::File,
    io::{BufRead, BufReader},
    path::PathBuf,
};

use emend_proto::learning::v1::{ImportError, UpsertEvidenceRequest};
use serde_json::json;

use crate::{
    commands::{
        import::{MAX_REPORTED, import_error, progress_bar, report_bad_rows},
        refused,
    },
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted},
    transfer::{
        RowError,
        materials::{Material, Sort},
        source::{Lines, Source},
    },
    words::BadRows,
};

/// Nodes and edges in one request at most.
const BATCH: usize = 1_000;
/// Bytes in one request at most, but for a single longer line: messages have a bound.
const BATCH_BYTES: usize = 1 << 20;

/// What to import, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence import graph.jsonl
  emend evidence import graph.jsonl --mode skip-invalid

  $ cat graph.jsonl
  {\"page\":{\"page_id\":\"page:1\",\"domain\":\"blog.example\",\"title\":\"On coffee\"}}
  {\"claim\":{\"claim_id\":\"claim:1\",\"task_id\":\"t1\",\"text\":\"Coffee dehydrates.\"}}
  {\"edge\":{\"edge_id\":\"e7\",\"task_id\":\"t1\",\"relation\":\"refutes\",\"source\":\"page:1\",\"target\":\"claim:1\"}}

A file has one such object per line, in any order; docs/evidence.md shows every field. An end of an
edge is an id that begins with page:, fragment: or claim:, or an object such as
{\"fragment\": \"abc123\"}. An import is safe to repeat: what is known is replaced, and what people
corrected stays corrected. With --mode skip-invalid bad lines are reported, also those that the
service refuses, and the others are imported.

With authentication it needs the role evidence-writer.")]
pub(super) struct Args {
    /// The file, one JSON object per line; - for standard input
    file: PathBuf,
    /// What to do with bad lines
    #[arg(long, value_enum, default_value_t = BadRows::AllOrNothing)]
    mode: BadRows,
    /// Also replace a page's domain, a fragment's or claim's page, and an edge's ends
    #[arg(long)]
    replace: bool,
}

/// Checks the whole file, then sends it sort by sort, so that each line names only what is known.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let Args { file, mode, replace } = args;
    let source = Source::open(&file)?;
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
        let lines = counted(self.lines, "line", "lines");
        write!(f, "{lines} imported, {} of them new", self.added)?;
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
    Failure::usage(format!("{}; {then}", counted(count, "bad line", "bad lines")))
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
}
