//! `emend outputs ratings import`: few-shot examples as ratings.

use std::path::PathBuf;

use emend_base::status::from_item_status;
use emend_proto::{
    common::v1::{Correction, Reporter, correction::Correction as Variant},
    feedback::v1::{BatchSubmitFeedbackRequest, SubmitFeedbackRequest},
    learning::v1::ImportError,
};
use prost::Message as _;
use serde_json::json;

use crate::{
    commands::{
        feedback::rating_value,
        import::{import_error, progress_bar, report_bad_rows},
    },
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted},
    transfer::{
        RowError,
        few_shot::Example,
        source::{Lines, Source},
    },
    words::{self, BadRows},
};

/// Ratings in one request at most.
const BATCH: usize = 100;
/// Bytes in one request at most, but for a single longer rating: messages have a bound.
const BATCH_BYTES: usize = 1 << 20;

/// What to import, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend outputs ratings import examples.jsonl --target INTERPRET --reporter ana

  $ cat examples.jsonl
  {\"input\": \"how was Monday?\", \"output\": \"NAV 101.2 (+0.4 %).\"}
  {\"input\": \"and Tuesday?\", \"output\": \"Quiet.\", \"value\": \"BAD\", \"issues\": [\"no figures\"]}

Each line is one rating. Its fields are input and output, and may be target, value, target_id,
issues, corrected, judgement, prompt_version, reason and reporter. Without a value it is good. Read
are also {\"prompt\", \"completion\"}, a conversation ({\"messages\": [{\"role\", \"content\"}, …]}: its last
answer), and {\"prompt\", \"chosen\", \"rejected\"}: a bad output with its correction. The examples of
a target are the newest: the file's last lines. Importing a file twice changes nothing.")]
pub(super) struct Args {
    /// The file, one JSON object per line; - for standard input
    file: PathBuf,
    /// The target of lines that name none
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// The person or agent who says it, where a line names none
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    reporter: String,
    /// What to do with bad lines
    #[arg(long, value_enum, default_value_t = BadRows::AllOrNothing)]
    mode: BadRows,
}

/// Checks the whole file, then sends it in batches.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let source = Source::open(&args.file)?;
    let (examples, bad) = read(&source, &args, context)?;
    let mut rejected = bad.len();
    report_bad_rows(&source, &bad);
    if rejected > 0 && args.mode == BadRows::AllOrNothing {
        return Err(refused(rejected));
    }
    let progress = progress_bar(examples.len() as u64);
    let (mut imported, mut added) = (0_u64, 0_u64);
    let mut rest = examples.into_iter().peekable();
    let mut client = context.feedback().await?;
    while rest.peek().is_some() {
        let (mut lines, mut requests, mut bytes) = (Vec::new(), Vec::new(), 0);
        while requests.len() < BATCH
            && bytes < BATCH_BYTES
            && let Some((line, request)) = rest.next()
        {
            bytes += request.encoded_len();
            lines.push(line);
            requests.push(request);
        }
        let request = BatchSubmitFeedbackRequest {
            requests,
            wait: words::wait(true) as i32,
        };
        let answered = client.batch_submit_feedback(context.request(request)).await?;
        let mut errors = Vec::new();
        for (line, result) in lines.into_iter().zip(answered.into_inner().results) {
            match result.status.as_ref().and_then(from_item_status) {
                None => {
                    imported += 1;
                    // What has become of it since is said only of what was stored before.
                    let stored = result.feedback.unwrap_or_default();
                    added += u64::from(stored.present.is_none());
                }
                Some(status) => errors.extend(of_line(line, status.into())),
            }
        }
        progress.suspend(|| report_bad_rows(&source, &errors));
        let lines: std::collections::BTreeSet<i64> = errors.iter().map(|error| error.line).collect();
        rejected += lines.len();
        progress.set_position(imported);
    }
    progress.finish_and_clear();
    let json = json!({"imported": imported, "added": added, "rejected": rejected});
    output.result(&json, || {
        let rejected = match rejected {
            0 => String::new(),
            count => format!(", {count} rejected"),
        };
        let imported = counted(imported, "rating", "ratings");
        format!("{imported} imported, {added} of them new{rejected}")
    })?;
    if rejected > 0 && args.mode == BadRows::AllOrNothing {
        return Err(Failure::usage(format!(
            "{} refused; after a change it is safe to import the whole file again",
            counted(rejected as u64, "line was", "lines were")
        )));
    }
    Ok(())
}

/// What to send, each with its line, and what is wrong with the other lines.
type Read = (Vec<(u64, SubmitFeedbackRequest)>, Vec<ImportError>);

fn read(source: &Source, args: &Args, context: &Context) -> Result<Read> {
    let (mut examples, mut bad) = (Vec::new(), Vec::new());
    let mut lines = Lines::of(source.reader()?);
    while let Some((line, text)) = lines.next_text() {
        if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        match text.and_then(|text| Example::parse(text, args.target.as_deref())) {
            Ok(example) => examples.push((line, request(example, &args.reporter, context))),
            Err(error) => {
                let ends = error.ends_file();
                bad.push(import_error(line, error));
                if ends {
                    report_bad_rows(source, &bad);
                    return Err(Failure::usage(format!(
                        "{source} can't be read; nothing was imported"
                    )));
                }
            }
        }
    }
    Ok((examples, bad))
}

fn request(example: Example, reporter: &str, context: &Context) -> SubmitFeedbackRequest {
    let mut rating = example.rating;
    rating.value = rating_value(&rating.target, &rating.value);
    let id = Some(example.reporter).filter(|id| !id.is_empty());
    SubmitFeedbackRequest {
        request_id: example.request_id,
        namespace: context.namespace(),
        reporter: Some(Reporter {
            id: id.unwrap_or_else(|| reporter.to_owned()),
            client: concat!("emend-cli/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..Reporter::default()
        }),
        reason: example.reason,
        correction: Some(Correction {
            correction: Some(Variant::Rating(rating)),
        }),
        ..SubmitFeedbackRequest::default()
    }
}

/// What a service says of a line, field by field.
fn of_line(line: u64, failure: Failure) -> Vec<ImportError> {
    let Failure::Refused(explained) = failure else {
        return vec![import_error(line, RowError::row(failure.to_string()))];
    };
    if explained.field_violations.is_empty() {
        return vec![import_error(line, RowError::row(explained.to_string()))];
    }
    let violations = explained.field_violations.iter().map(|violation| {
        let field = violation.field.strip_prefix("correction.rating.");
        let field = field.unwrap_or(&violation.field);
        import_error(line, RowError::field(field, violation.description.clone()))
    });
    violations.collect()
}

fn refused(count: usize) -> Failure {
    let lines = counted(count as u64, "bad line", "bad lines");
    Failure::usage(format!(
        "{lines}; nothing was imported (--mode skip-invalid imports the others)"
    ))
}
