//! `emend export`: writes learned resources in a format that `emend import` reads, or ratings of search answers.

mod merged;

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::{
    ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use emend_proto::{
    common::v1::Resource,
    feedback::v1::{
        ExportFeedbackRequest, ExportFeedbackResponse, ExportFormat, UpdateFeedbackLabelsRequest,
    },
    learning::v1::{ListResourcesRequest, NodeInfo, SubscribeRequest, subscribe_response::Message},
};
use indicatif::ProgressBar;
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::time::timeout;

use self::merged::{Judgements, Preferences};
use super::{feedback::SearchRatings, import::format_of};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Output, counted, on_standard_error},
    transfer::{Format, Record, Writer},
    words::{self, Kind},
};

/// Which file to write, and what to export.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  emend export learned.csv
  emend export --format yaml --kind prohibition
  emend export everything.csv --all-users
  emend export --format jsonl --namespace a | emend import - --format jsonl --namespace b
  emend export ratings --format csv --rating down --processed false --mark-processed
  emend export ratings judged.qrels --format qrels

Written to a file, the file is replaced whole or not at all, and --json prints {\"file\",
\"count\"}. Without a file the rows go to standard output. Exported is what applies to everybody;
with --user what is one user's own, with --all-users also what is each user's own."
)]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// The file to write [default: standard output]
    file: Option<PathBuf>,
    /// The file format [default: by the file's extension]
    #[arg(long, value_parser = exported())]
    format: Option<Format>,
    /// Only resources of this kind; may be given several times
    #[arg(long, value_enum)]
    kind: Vec<Kind>,
    /// Export this user's own resources instead of everybody's
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    user: String,
    /// Export everybody's resources and each user's own
    #[arg(long, conflicts_with = "user")]
    all_users: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Export ratings of search answers that count: neither replaced nor retracted
    Ratings(RatingsArgs),
}

#[derive(Debug, clap::Args)]
struct RatingsArgs {
    /// The file to write [default: standard output]
    file: Option<PathBuf>,
    /// csv, jsonl, pairs for training (query, positive, negative), or TREC qrels
    #[arg(long, value_enum)]
    format: RatingsFormat,
    #[command(flatten)]
    ratings: SearchRatings,
    /// Only ratings stored at this time or later
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    from: Option<prost_types::Timestamp>,
    /// Only ratings stored before this time
    #[arg(long, value_name = "TIME", value_parser = words::instant)]
    before: Option<prost_types::Timestamp>,
    /// Mark the ratings that are in the export as processed; not those of which only pairs are left out
    #[arg(long)]
    mark_processed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RatingsFormat {
    Csv,
    Jsonl,
    Pairs,
    Qrels,
}

impl From<RatingsFormat> for ExportFormat {
    fn from(format: RatingsFormat) -> Self {
        match format {
            RatingsFormat::Csv => Self::Csv,
            RatingsFormat::Jsonl => Self::Jsonl,
            RatingsFormat::Pairs => Self::Pairs,
            RatingsFormat::Qrels => Self::Qrels,
        }
    }
}

/// Exports ratings.
async fn run_ratings(args: RatingsArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let file = args.file.as_deref().filter(|file| *file != Path::new("-"));
    // Which pairs are left out is known only once all are there: what was given is marked then.
    let marks_pairs = args.mark_processed && args.format == RatingsFormat::Pairs;
    let request = ExportFeedbackRequest {
        namespace: context.namespace(),
        search_ratings: args.ratings.filter(),
        format: ExportFormat::from(args.format).into(),
        mark_processed: args.mark_processed && !marks_pairs,
        received_from: args.from,
        received_before: args.before,
    };
    write_to(file, ("rating", "ratings"), output, async |to| {
        let (mut judgements, mut preferences) = (Judgements::default(), Preferences::default());
        let count = parts(context, request, |part| {
            match args.format {
                RatingsFormat::Qrels => judgements.add(&part.text),
                RatingsFormat::Pairs => preferences.add(part)?,
                RatingsFormat::Csv | RatingsFormat::Jsonl => to.write_all(part.text.as_bytes())?,
            }
            Ok(())
        })
        .await?;
        write!(to, "{judgements}{preferences}")?;
        let count = if args.format == RatingsFormat::Pairs {
            preferences.given().count() as u64
        } else {
            count
        };
        if marks_pairs {
            to.flush()?;
            mark(context, preferences.given()).await?;
        }
        match preferences.ties() {
            0 => {}
            1 => eprintln!("emend: 1 pair was left out: as many ratings say the opposite"),
            ties => eprintln!("emend: {ties} pairs left out: as many ratings say the opposite"),
        }
        Ok(count)
    })
    .await
}

/// Marks ratings as processed.
async fn mark(context: &Context, ids: impl Iterator<Item = &str>) -> Result {
    let mut client = context.feedback().await?;
    for id in ids {
        let request = UpdateFeedbackLabelsRequest {
            namespace: context.namespace(),
            feedback_id: id.to_owned(),
            processed: Some(true),
            ..UpdateFeedbackLabelsRequest::default()
        };
        client.update_feedback_labels(context.request(request)).await?;
    }
    Ok(())
}

/// Takes an export of ratings part by part, and says how many ratings are in it.
pub(super) async fn parts(
    context: &Context,
    request: ExportFeedbackRequest,
    mut take: impl FnMut(&ExportFeedbackResponse) -> Result,
) -> Result<u64> {
    let mut client = context.queries().await?;
    let mut parts = client
        .export_feedback(context.request(request))
        .await?
        .into_inner();
    let mut count = 0;
    while let Some(part) = parts.message().await? {
        take(&part)?;
        count += u64::try_from(part.rating_count).unwrap_or(0);
    }
    Ok(count)
}

const FORMATS: &str = "csv, jsonl or yaml";

/// Takes the formats that can be written.
fn exported() -> impl TypedValueParser<Value = Format> {
    let formats = Format::value_variants()
        .iter()
        .filter(|format| format.is_for_export());
    PossibleValuesParser::new(formats.filter_map(ValueEnum::to_possible_value))
        .try_map(|name| Format::from_str(&name, false))
}

/// Exports the resources.
pub async fn run(mut args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    if let Some(Other::Ratings(ratings)) = args.other.take() {
        return run_ratings(ratings, context, output).await;
    }
    let file = args.file.as_deref().filter(|file| *file != Path::new("-"));
    let format = match (file, args.format) {
        (Some(file), given) => format_of(file, given, FORMATS)?,
        (None, Some(format)) => format,
        (None, None) => {
            let why = format!("writing to standard output needs --format {FORMATS}");
            return Err(Failure::usage(why));
        }
    };
    write_to(file, ("row", "rows"), output, async |to| {
        let mut writer = format.writer(Box::new(BufWriter::new(to)))?;
        let count = write(&args, context, &mut writer).await?;
        io_result(writer.finish())?;
        Ok(count)
    })
    .await
}

/// Writes to the file, which is replaced whole or not at all, and says how much, in the words for one and for many; without a file to
/// standard output.
pub(super) async fn write_to(
    file: Option<&Path>,
    (one, many): (&str, &str),
    output: &mut Output<'_>,
    write: impl AsyncFnOnce(&mut (dyn Write + Send)) -> Result<u64>,
) -> Result {
    let Some(file) = file else {
        if write(output).await? == 0 {
            // On standard error, so that it is not mistaken for a result.
            eprintln!("emend: there are no such {many} to export");
        }
        return Ok(());
    };
    let directory = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut temporary = NamedTempFile::new_in(directory)
        .map_err(|error| Failure::usage(format!("{}: {error}", directory.display())))?;
    let count = write(temporary.as_file_mut()).await?;
    temporary.as_file_mut().flush()?;
    temporary
        .persist(file)
        .map_err(|error| Failure::from(error.error))?;
    output.result(
        &json!({"file": file.display().to_string(), "count": count}),
        || format!("{} written to {}", counted(count, one, many), file.display()),
    )
}

async fn write(args: &Args, context: &Context, writer: &mut Writer<'_>) -> Result<u64> {
    let progress = ProgressBar::new_spinner();
    let mut count = 0;
    let take = |resources: &[Resource]| {
        for resource in resources {
            count += u64::from(write_one(resource, writer)?);
        }
        progress.set_message(counted(count, "row", "rows"));
        progress.tick();
        Ok(())
    };
    if args.all_users {
        of_all_users(args, context, take).await?;
    } else {
        of_one(args, context, take).await?;
    }
    progress.finish_and_clear();
    Ok(count)
}

/// Writes a resource, or says why it can't be exported. Returns whether it was written.
fn write_one(resource: &Resource, writer: &mut Writer<'_>) -> Result<bool> {
    if let Some(record) = Record::of_resource(resource) {
        io_result(writer.write(&record))?;
        return Ok(true);
    }
    let key = resource.key.clone().unwrap_or_default();
    let hint = format!(
        "emend: not exported: {} {}: {}",
        words::kind_name(key.kind),
        key.key,
        match emend_core::Kind::from_number(key.kind) {
            Some(emend_core::Kind::DomainRule) => "the system keeps the rules of this layer",
            Some(_) => "ratings decide it; they are listed by `emend outputs ratings list`",
            None => "this version does not know its kind",
        }
    );
    eprintln!("{}", on_standard_error(&hint));
    Ok(false)
}

/// Lists what is everybody's, or what is one user's own.
async fn of_one(args: &Args, context: &Context, mut take: impl FnMut(&[Resource]) -> Result) -> Result {
    let mut client = context.resources().await?;
    let mut request = ListResourcesRequest {
        namespace: context.namespace(),
        kinds: words::kind_numbers(&args.kind),
        user_id: args.user.clone(),
        page_size: 1_000,
        ..Default::default()
    };
    loop {
        let page = client
            .list_resources(context.request(request.clone()))
            .await?
            .into_inner();
        take(&page.resources)?;
        if page.next_page_token.is_empty() {
            return Ok(());
        }
        request.page_token = page.next_page_token;
    }
}

/// Takes a snapshot, as a search node does: no list has what is every user's own.
async fn of_all_users(args: &Args, context: &Context, mut take: impl FnMut(&[Resource]) -> Result) -> Result {
    let id = context.entropy.uuid_v4().simple().to_string();
    let request = SubscribeRequest {
        node: Some(NodeInfo {
            id: format!("export-{}", &id[..8]),
            version: concat!("emend-cli/", env!("CARGO_PKG_VERSION")).into(),
            transient: true,
            ..NodeInfo::default()
        }),
        namespaces: vec![context.namespace()],
        kinds: words::kind_numbers(&args.kind),
        include_user_scoped: true,
        ..SubscribeRequest::default()
    };
    let mut client = context.subscriptions().await?;
    let request = context.request_without_deadline(request);
    let mut stream = client.subscribe(request).await?.into_inner();
    loop {
        let next = timeout(context.timeout(), stream.message()).await;
        let next = next.map_err(|_| Failure::Unavailable("the snapshot stalled; try again".into()))??;
        match next.and_then(|next| next.message) {
            Some(Message::SnapshotChunk(part)) => take(&part.into_resources().collect::<Vec<_>>())?,
            Some(Message::SnapshotEnd(_)) => return Ok(()),
            Some(Message::SnapshotBegin(_)) => {}
            _ => {
                let why = "learning-svc ended the snapshot before it was complete; try again";
                return Err(Failure::Unavailable(why.into()));
            }
        }
    }
}

/// Keeps I/O errors apart, so that a reader that has closed its end does not count as a failure.
fn io_result(written: anyhow::Result<()>) -> Result {
    written.map_err(|error| match error.downcast::<std::io::Error>() {
        Ok(error) => error.into(),
        Err(error) => error.into(),
    })
}
