//! What is made of a prompt: the text that an AI is asked with, and examples to train one.

use std::collections::{BTreeMap, HashMap};

use clap::ValueEnum;
use emend_proto::learning::v1::{ExampleFormat, ExportExamplesRequest, RenderPromptRequest};
use tokio_stream::StreamExt as _;

use super::Label;
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    view,
    words::{self, InLanguage},
};

#[derive(Debug, clap::Args)]
pub(super) struct RenderArgs {
    /// What the AI is asked for
    #[arg(value_parser = words::target)]
    target: String,
    #[command(flatten)]
    label: Label,
    /// The text of a variable; may be given several times
    #[arg(long = "variable", value_name = "NAME=VALUE", value_parser = words::key_value)]
    variables: Vec<(String, String)>,
    /// Add the profile of this user
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    user: String,
    /// The language of headings [default: that of the examples]
    #[arg(long, value_enum)]
    language: Option<InLanguage>,
    /// Answer from a state no older than this revision
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    min_revision: i64,
}

pub(super) async fn render(args: RenderArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let given = args.variables.len();
    let variables: HashMap<String, String> = args.variables.into_iter().collect();
    if variables.len() < given {
        return Err(Failure::usage("--variable: a variable is given twice"));
    }
    let request = RenderPromptRequest {
        namespace: context.namespace(),
        target: args.target,
        label: args.label.label,
        variables,
        user_id: args.user,
        language: args.language.map_or(0, InLanguage::number),
        min_revision: args.min_revision,
    };
    let mut client = context.outputs().await?;
    let rendered = client.render_prompt(context.request(request)).await?.into_inner();
    if output.is_json() {
        output.json_line(&view::message(&rendered).to_string())
    } else {
        output.verbatim(&rendered.text)
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// What the AI is asked for
    #[arg(value_parser = words::target)]
    target: String,
    /// The form of the lines
    #[arg(long, value_enum)]
    format: Format,
    #[command(flatten)]
    label: Label,
}

/// A form of examples.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Messages of a system, a user and an assistant: good outputs, and what bad ones should have been
    Chat,
    /// What was chosen and what was rejected: bad outputs that were corrected
    Preference,
}

pub(super) async fn export(args: ExportArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let format = match args.format {
        Format::Chat => ExampleFormat::Chat,
        Format::Preference => ExampleFormat::Preference,
    };
    let request = ExportExamplesRequest {
        namespace: context.namespace(),
        target: args.target,
        format: format.into(),
        label: args.label.label,
    };
    let mut client = context.outputs().await?;
    let mut lines = client
        .export_examples(context.request_without_deadline(request))
        .await?
        .into_inner();
    let mut splits = BTreeMap::<String, usize>::new();
    while let Some(example) = lines.next().await {
        let line = example?.line;
        let parsed: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let split = parsed["split"].as_str().unwrap_or("unknown");
        *splits.entry(split.to_owned()).or_default() += 1;
        output.json_line(&line)?;
    }
    let counts: Vec<String> = splits
        .iter()
        .map(|(split, count)| format!("{count} {split}"))
        .collect();
    let counts = if counts.is_empty() {
        "none".to_owned()
    } else {
        counts.join(", ")
    };
    // To standard error, so that it is not mistaken for an example.
    eprintln!("emend: examples: {counts}");
    Ok(())
}
