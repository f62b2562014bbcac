//! `emend evidence samples`: how often a model's labels were wrong, and the corrections as samples to train it with.

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::{Subcommand, ValueEnum};
use emend_core::evidence::EdgeRelation;
use emend_proto::learning::v1::{
    CorrectionSample, ExportCorrectionsRequest, GetReviewStatsRequest, GetReviewStatsResponse,
};
use indicatif::ProgressBar;
use serde_json::Value;

use super::events::Period;
use crate::{
    commands::export::write_to,
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table, json_escaped},
    view, words,
};

/// Count, or export.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence samples stats
  emend evidence samples stats --task t-17 --predicted supports --from 2026-01-01
  emend evidence samples export --split train --out train.jsonl
  emend evidence samples export --split test --out test.jsonl
  emend evidence samples export --label refutes --test-percent 10 --out refuted.csv

A reviewed edge is one that a person gave a label; a corrected one is one whose label is not the
model's. The error rate is corrected / reviewed. There is one sample for each corrected edge: the
texts, the model's label and confidence, and the right label. Whether a sample belongs to the
training or the test part depends on the edge's id alone, so it is the same in every export.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Count reviewed and corrected edges
    Stats {
        /// Only edges of this task
        #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
        task: String,
        /// Only edges that the model gave this label
        #[arg(long, value_name = "LABEL", value_parser = words::one_of(&EdgeRelation::LABELS, EdgeRelation::name))]
        predicted: Option<EdgeRelation>,
        #[command(flatten)]
        period: Period,
    },
    /// Write what was corrected as samples for training
    Export(Export),
}

#[derive(Debug, clap::Args)]
struct Export {
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The file format [default: by the file's extension, else jsonl]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Which part to write
    #[arg(long, value_enum, default_value_t = Part::All)]
    split: Part,
    /// Of 100 samples, about how many are test samples, 0 to 99 [default: 20]
    #[arg(long, value_name = "COUNT")]
    test_percent: Option<i32>,
    /// Only edges of this task
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    task: String,
    /// Only samples with this right label; may be given several times
    #[arg(long, value_name = "LABEL", value_parser = words::one_of(&EdgeRelation::LABELS, EdgeRelation::name))]
    label: Vec<EdgeRelation>,
    #[command(flatten)]
    period: Period,
}

/// A format of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values with a header line
    Csv,
}

impl Format {
    fn of(file: Option<&Path>, given: Option<Self>) -> Self {
        let is_csv = |file: &Path| {
            file.extension()
                .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
        };
        given.unwrap_or(if file.is_some_and(is_csv) {
            Self::Csv
        } else {
            Self::Jsonl
        })
    }
}

/// Which samples of the split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Those to train with
    Train,
    /// Those to test with
    Test,
    /// Both
    All,
}

impl Part {
    fn has(self, sample: &CorrectionSample) -> bool {
        match self {
            Self::Train => !sample.is_test,
            Self::Test => sample.is_test,
            Self::All => true,
        }
    }
}

/// Counts or exports.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let mut client = context.evidence().await?;
    match args.action {
        Action::Stats {
            task,
            predicted,
            period,
        } => {
            let all = GetReviewStatsRequest {
                namespace: context.namespace(),
                ..GetReviewStatsRequest::default()
            };
            let request = GetReviewStatsRequest {
                task_id: task,
                predicted_label: predicted.map_or(0, EdgeRelation::number),
                from: period.from,
                to: period.to,
                ..all.clone()
            };
            let none = context.none_found("reviewed edges", request != all);
            let stats = client
                .get_review_stats(context.request(request))
                .await?
                .into_inner();
            let width = output.width();
            output.result(&view::evidence::review_stats(&stats), || {
                text(&stats, &none, width)
            })
        }
        Action::Export(args) => {
            let request = ExportCorrectionsRequest {
                namespace: context.namespace(),
                task_id: args.task,
                correct_labels: args.label.iter().map(|label| label.number()).collect(),
                from: args.period.from,
                to: args.period.to,
                test_percent: args.test_percent,
            };
            let request = context.request_without_deadline(request);
            let mut samples = client.export_corrections(request).await?.into_inner();
            let out = args.out.as_deref();
            let format = Format::of(out, args.format);
            write_to(out, ("sample", "samples"), output, async |to| {
                let mut writer = Writer::new(format, to)?;
                let progress = ProgressBar::new_spinner();
                let mut count = 0;
                while let Some(message) = samples.message().await? {
                    if let Some(sample) = message.sample.filter(|sample| args.split.has(sample)) {
                        writer.write(&view::evidence::sample(&sample))?;
                        count += 1;
                        progress.inc(1);
                    }
                }
                progress.finish_and_clear();
                writer.finish()?;
                Ok(count)
            })
            .await
        }
    }
}

/// The fields of a sample as columns.
const COLUMNS: [&str; 12] = [
    "sample_id",
    "edge_id",
    "task_id",
    "split",
    "premise",
    "hypothesis",
    "predicted_label",
    "predicted_confidence",
    "correct_label",
    "reason",
    "reporter",
    "corrected_at",
];

/// Writes samples one by one.
enum Writer<W: Write> {
    Jsonl(BufWriter<W>),
    Csv(Box<csv::Writer<W>>),
}

impl<W: Write> Writer<W> {
    fn new(format: Format, to: W) -> Result<Self> {
        Ok(match format {
            Format::Jsonl => Self::Jsonl(BufWriter::new(to)),
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(to);
                writer.write_record(COLUMNS).map_err(failed)?;
                Self::Csv(Box::new(writer))
            }
        })
    }

    fn write(&mut self, sample: &Value) -> Result {
        match self {
            Self::Jsonl(to) => writeln!(to, "{}", json_escaped(&sample.to_string()))?,
            Self::Csv(writer) => {
                let cells = COLUMNS.map(|name| match &sample[name] {
                    Value::String(text) => text.clone(),
                    Value::Null => String::new(),
                    other => other.to_string(),
                });
                writer.write_record(cells).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result {
        match self {
            Self::Jsonl(mut to) => to.flush()?,
            Self::Csv(mut writer) => writer.flush()?,
        }
        Ok(())
    }
}

/// Keeps I/O errors apart, so that a reader that has closed its end does not count as a failure.
fn failed(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        kind => Failure::failed(format!("{kind:?}")),
    }
}

/// Statistics; `none` where nothing was reviewed.
fn text(stats: &GetReviewStatsResponse, none: &str, width: usize) -> String {
    if stats.reviewed == 0 {
        return none.to_owned();
    }
    let table = Table::new([
        ("THE MODEL SAID", Column::Fixed),
        ("PEOPLE SAY", Column::Fixed),
        ("EDGES", Column::Number),
    ])
    .with_rows(&stats.labels, |pair| {
        [
            view::evidence::relation(pair.predicted_label).unwrap_or_default(),
            view::evidence::relation(pair.correct_label).unwrap_or_default(),
            pair.edges.to_string(),
        ]
    });
    format!(
        "{} of {} reviewed edges were corrected: an error rate of {:.1} %\n\n{}",
        stats.corrected,
        stats.reviewed,
        stats.error_rate * 100.0,
        table.render(width)
    )
}

#[cfg(test)]
mod tests {
    use emend_proto::{common::v1::EdgeRelation as Label, learning::v1::LabelStats};

    use super::*;

    fn sample() -> CorrectionSample {
        CorrectionSample {
            sample_id: "s-1".into(),
            edge_id: "edge:7".into(),
            premise: "No, \"never\"\nhere".into(),
            predicted_label: Label::Supports.into(),
            correct_label: Label::Refutes.into(),
            is_test: true,
            ..CorrectionSample::default()
        }
    }

    fn written(format: Format) -> String {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(format, &mut bytes).unwrap();
        writer.write(&view::evidence::sample(&sample())).unwrap();
        writer.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_sample_has_the_same_fields_as_json_and_as_csv() {
        let json: Value = serde_json::from_str(&written(Format::Jsonl)).unwrap();
        let fields = json.as_object().unwrap();
        assert_eq!(fields.len(), COLUMNS.len());
        assert!(COLUMNS.iter().all(|name| fields.contains_key(*name)), "{json}");
        assert_eq!(json["predicted_confidence"], Value::Null, "the model did not say");
        let csv = written(Format::Csv);
        let mut rows = csv::Reader::from_reader(csv.as_bytes());
        assert_eq!(rows.headers().unwrap(), &COLUMNS[..]);
        let row = rows.records().next().unwrap().unwrap();
        let expected = [
            "s-1",
            "edge:7",
            "",
            "test",
            "No, \"never\"\nhere",
            "",
            "supports",
            "",
            "refutes",
        ];
        assert_eq!(row.iter().take(9).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_sample_is_in_one_part_of_the_split() {
        let test = sample();
        let train = CorrectionSample {
            is_test: false,
            ..sample()
        };
        let parts = |sample| [Part::Train, Part::Test, Part::All].map(|part| part.has(sample));
        assert_eq!(
            (parts(&test), parts(&train)),
            ([false, true, true], [true, false, true])
        );
    }

    #[test]
    fn the_format_is_that_of_the_extension_unless_it_is_given() {
        let format = |file: &str, given| Format::of(Some(Path::new(file)), given);
        assert_eq!(format("a.CSV", None), Format::Csv);
        assert_eq!(format("a.csv", Some(Format::Jsonl)), Format::Jsonl);
        assert_eq!(
            (format("a.txt", None), Format::of(None, None)),
            (Format::Jsonl, Format::Jsonl)
        );
    }

    #[test]
    fn the_error_rate_is_a_sentence_above_a_table_of_labels() {
        let pair = |correct: Label, edges| LabelStats {
            predicted_label: Label::Supports.into(),
            correct_label: correct.into(),
            edges,
        };
        let stats = GetReviewStatsResponse {
            reviewed: 12,
            corrected: 3,
            error_rate: 0.25,
            labels: vec![pair(Label::Supports, 9), pair(Label::Refutes, 3)],
        };
        let expected = "\
3 of 12 reviewed edges were corrected: an error rate of 25.0 %

THE MODEL SAID  PEOPLE SAY  EDGES
supports        supports        9
supports        refutes         3
";
        assert_eq!(text(&stats, "none", 100), expected);
        assert_eq!(text(&GetReviewStatsResponse::default(), "none", 100), "none");
    }
}
