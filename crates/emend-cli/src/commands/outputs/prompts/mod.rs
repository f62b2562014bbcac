//! `emend outputs prompts`: the prompts with which an AI is asked, their versions, and improvements of them.

mod diff;
mod files;
mod pulled;
mod read;
mod render;
mod review;
pub(super) mod stats;
mod targets;
mod text;

use std::path::Path;

use clap::Subcommand;
use emend_client::prompt_files::{FileError, PromptFile};
use emend_core::{Kind, Learned, Prompt, kinds::PRODUCTION};
use emend_proto::{
    common::v1::{Resource, ResourceKey, ResourceValue},
    learning::v1::{ListPromptVersionsRequest, ListResourcesRequest, PromptVersion, PutResourceRequest},
};

pub(in crate::commands) use self::text::improvement_text;
use crate::{
    commands::Decision,
    context::Context,
    failure::{Failure, Result},
    output::{Output, on_standard_error},
    transfer::source,
    view,
};

/// List, show, compare, improve, decide, render or exchange prompts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend outputs prompts set SUMMARIZE_DAILY daily.md --variable day --setting model=small
  emend outputs prompts stats SUMMARIZE_DAILY
  emend outputs prompts generate SUMMARIZE_DAILY
  emend outputs prompts list --status awaiting_review
  emend outputs prompts diff 0e939fab-e5c7-8140-b875-9d80da3294c0
  emend outputs prompts preview 0e939fab-e5c7-8140-b875-9d80da3294c0
  emend outputs prompts approve 0e939fab-e5c7-8140-b875-9d80da3294c0 --by dana
  emend outputs prompts use SUMMARIZE_DAILY 1 --label staging
  emend outputs prompts render SUMMARIZE_DAILY --variable day=Monday
  emend outputs prompts pull prompts && emend outputs prompts push prompts --dry-run

A version never changes. Which one is current is kept for each label; nodes follow one of them. A
file holds the text byte for byte, below its variables and settings, if it has any, between two
lines of three hyphens:
  ---
  variables:
    day:
    tone: \"dry\"
  settings:
    model: \"small\"
  ---
  Summarise {{day}} in a {{tone}} tone.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the prompts that are current, the versions of one, or proposals
    List(read::ListArgs),
    /// Show the current prompt of a target, or another version
    Show(read::ShowArgs),
    /// Show what a proposal changes, or how two versions differ
    Diff(read::DiffArgs),
    /// Generate a better prompt from ratings; it then awaits approval
    Generate(review::GenerateArgs),
    /// Approve a proposal: it becomes current
    Approve(review::ApproveArgs),
    /// Reject a proposal
    Reject(review::RejectArgs),
    /// Make a version current that was approved before
    Use(review::UseArgs),
    /// Set a new version, as a person's decision: it becomes current
    Set(review::SetArgs),
    /// Show a proposal beside the current prompt, on inputs that were rated
    Preview(read::PreviewArgs),
    /// Print a prompt as it is sent to the AI, with its examples
    Render(render::RenderArgs),
    /// Count the ratings of a target by version of its prompt, or those of all targets
    Stats(stats::Args),
    /// Print rated outputs for training, one JSON object a line
    Export(render::ExportArgs),
    /// Write the current prompts into a directory, as TARGET.md
    Pull(files::PullArgs),
    /// Set the prompts of a directory that differ from the current ones
    Push(files::PushArgs),
}

/// The label of a prompt.
#[derive(Debug, clap::Args)]
struct Label {
    /// The label under which a version is current
    #[arg(long, default_value = PRODUCTION, value_name = "LABEL")]
    label: String,
}

/// Does it.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    match args.action {
        Action::List(args) => read::list(args, context, output).await,
        Action::Show(args) => read::show(args, context, output).await,
        Action::Diff(args) => read::diff(args, context, output).await,
        Action::Generate(args) => review::generate(args, context, output).await,
        Action::Approve(args) => review::approve(args, context, output).await,
        Action::Reject(args) => review::reject(args, context, output).await,
        Action::Use(args) => review::use_version(args, context, output).await,
        Action::Set(args) => review::set(args, context, output).await,
        Action::Preview(args) => read::preview(args, context, output).await,
        Action::Render(args) => render::render(args, context, output).await,
        Action::Stats(args) => stats::stats(args, context, output).await,
        Action::Export(args) => render::export(args, context, output).await,
        Action::Pull(args) => files::pull(args, context, output).await,
        Action::Push(args) => files::push(args, context, output).await,
    }
}

/// A prompt that is current.
#[derive(Debug)]
struct Current {
    target: String,
    label: String,
    prompt: Prompt,
    resource: Resource,
}

/// The prompts that are current, under one label if one is given, in the order of their targets.
async fn current(context: &Context, label: Option<&str>) -> Result<Vec<Current>> {
    let request = ListResourcesRequest {
        namespace: context.namespace(),
        kinds: vec![Kind::Prompt.number()],
        ..ListResourcesRequest::default()
    };
    let (resources, _) = context.list(&request, 0).await?;
    let prompts = resources.into_iter().filter_map(|resource| {
        let key = resource.key.clone()?;
        let prompt = prompt_of(resource.value.as_ref())?;
        Some(Current {
            target: key.key,
            label: key.qualifier,
            prompt,
            resource,
        })
    });
    Ok(prompts
        .filter(|prompt| label.is_none_or(|label| label.trim() == prompt.label))
        .collect())
}

/// The prompt that is current for a target.
async fn current_of(context: &Context, target: &str, label: &str) -> Result<Current> {
    let prompts = current(context, Some(label)).await?;
    let found = prompts.into_iter().find(|prompt| prompt.target == target);
    found.ok_or_else(|| {
        Failure::NotFound(format!(
            "{target} has no prompt under the label {label} in the namespace {:?}\n  \
             emend outputs prompts set {target} FILE sets the first version",
            context.namespace()
        ))
    })
}

/// The prompt that a value says.
fn prompt_of(value: Option<&ResourceValue>) -> Option<Prompt> {
    match view::learned(value)? {
        Learned::Prompt(prompt) => Some(prompt),
        _ => None,
    }
}

/// All versions of a prompt, the newest first.
async fn versions(context: &Context, target: &str, limit: usize) -> Result<(Vec<PromptVersion>, bool)> {
    let request = ListPromptVersionsRequest {
        namespace: context.namespace(),
        target: target.to_owned(),
        ..ListPromptVersionsRequest::default()
    };
    context.list(&request, limit).await
}

/// The version with this number.
fn numbered<'v>(
    versions: &'v [PromptVersion],
    target: &str,
    number: u32,
) -> Result<(&'v PromptVersion, Prompt)> {
    let found = versions.iter().find_map(|version| {
        let prompt = prompt_of(version.candidate.as_ref()?.value.as_ref())?;
        (prompt.version == number).then_some((version, prompt))
    });
    found.ok_or_else(|| Failure::NotFound(format!("{target} has no version {number}")))
}

/// The request that makes a prompt current, as a person's decision.
fn put_request(context: &Context, target: &str, label: &str, prompt: &Prompt) -> PutResourceRequest {
    PutResourceRequest {
        key: Some(ResourceKey {
            namespace: context.namespace(),
            kind: Kind::Prompt.number(),
            key: target.to_owned(),
            qualifier: label.to_owned(),
            user_id: String::new(),
        }),
        value: Some(value(target, prompt)),
        ..PutResourceRequest::default()
    }
}

fn value(target: &str, prompt: &Prompt) -> ResourceValue {
    ResourceValue {
        display: target.to_owned(),
        value: Some(emend_wire::kinds::value(&Learned::Prompt(prompt.clone()))),
        ..ResourceValue::default()
    }
}

/// Says what of a file may not be meant.
fn warn(file: &Path, warnings: &[String]) {
    for warning in warnings {
        let hint = format!("emend: {}: {warning}", file.display());
        eprintln!("{}", on_standard_error(&hint));
    }
}

/// The bytes of a prompt's file at most: a prompt with its header is far shorter.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a prompt's file; `-` is standard input.
fn read_file(path: &Path) -> Result<PromptFile> {
    let contents = source::text(path, MAX_BYTES)?;
    PromptFile::parse(&contents)
        .map_err(|error: FileError| Failure::usage(format!("{}: {error}", path.display())))
}
