//! What is decided about prompts: generated, approved, rejected, made current, set.

use std::path::PathBuf;

use emend_client::prompt_files::{FileError, PromptFile};
use emend_core::{
    Prompt,
    kinds::{Setting, Variable},
};
use emend_proto::learning::v1::{
    ApproveCandidateRequest, Candidate, GenerateImprovementRequest, RejectCandidateRequest,
    UsePromptVersionRequest,
};
use serde_json::json;
use tonic::{Code, Status};

use super::{
    Decision, Label, prompt_of, put_request,
    read::candidate,
    read_file,
    targets::Targets,
    text::{improvement_text, version_of},
    value, warn,
};
use crate::{
    commands::ids,
    context::Context,
    failure::{Failure, Result},
    output::{Output, on_standard_error},
    view, words,
};

#[derive(Debug, clap::Args)]
pub(super) struct GenerateArgs {
    /// What the AI is asked for
    #[arg(value_parser = words::target)]
    target: String,
    #[command(flatten)]
    label: Label,
    /// The person on whose behalf you do it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
}

/// A limit of time of the caller's own leaves the improvement being generated: it says where to find it.
fn still_generating(status: Status, target: &str) -> Failure {
    if !matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled) {
        return status.into();
    }
    Failure::Unavailable(format!(
        "there was no answer within --timeout, but the improvement goes on being generated: \
         `emend outputs prompts list {target}` shows it once it is proposed"
    ))
}

pub(super) async fn generate(args: GenerateArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let target = args.target;
    let request = GenerateImprovementRequest {
        namespace: context.namespace(),
        target: target.clone(),
        label: args.label.label,
        on_behalf_of: args.by,
    };
    let mut client = context.outputs().await?;
    let generated = client
        .generate_improvement(context.request_of_model(request))
        .await
        .map_err(|status| still_generating(status, &target))?
        .into_inner();
    let candidate = generated.candidate.unwrap_or_default();
    let improvement = generated.improvement.unwrap_or_default();
    let json = json!({
        "candidate": view::message(&candidate),
        "improvement": view::message(&improvement),
    });
    let coloured = output.is_coloured();
    output.result(&json, || {
        format!(
            "Proposed {}; it awaits approval (candidate {})\n{}",
            version_of(&candidate),
            candidate.candidate_id,
            improvement_text(&improvement, coloured)
        )
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArgs {
    /// The proposal's candidate id
    candidate_id: String,
    /// Approve this text instead: a file, or - for standard input. Without a header it keeps the variables and settings
    #[arg(long, value_name = "FILE")]
    edit: Option<PathBuf>,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    /// Also if ratings that it was made of have been redacted since: what they said may still be in its text
    #[arg(long)]
    accept_redacted: bool,
    #[command(flatten)]
    decision: Decision,
}

pub(super) async fn approve(args: ApproveArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let edited_value = match &args.edit {
        None => None,
        Some(path) => {
            let file = read_file(path)?;
            let proposed = candidate(context, args.candidate_id.clone()).await?.candidate;
            let proposed = proposed.unwrap_or_default();
            let prompt = prompt_of(proposed.value.as_ref()).ok_or_else(|| {
                Failure::usage(format!("{} is not a version of a prompt", args.candidate_id))
            })?;
            let edited = edited(&file, &prompt)
                .map_err(|error| Failure::usage(format!("--edit {}: {error}", path.display())))?;
            Some(value(&proposed.key.unwrap_or_default().key, &edited))
        }
    };
    let request = ApproveCandidateRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, "").await?,
        etag: args.etag,
        reason: args.decision.reason,
        edited_value,
        on_behalf_of: args.decision.by,
        accept_redacted: args.accept_redacted,
    };
    let mut client = context.candidates().await?;
    let approved = client
        .approve_candidate(context.request(request))
        .await?
        .into_inner();
    decided(
        "Approved",
        &approved.candidate.unwrap_or_default(),
        approved.revision,
        output,
    )
}

/// What a file makes of a proposal.
fn edited(file: &PromptFile, proposed: &Prompt) -> Result<Prompt, FileError> {
    match file.header {
        Some(_) => file.prompt(),
        None => proposed.with_text(&file.text).map_err(FileError::Prompt),
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct RejectArgs {
    /// The proposal's candidate id
    candidate_id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The person on whose behalf you do it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
    /// Only if it still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
}

pub(super) async fn reject(args: RejectArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = RejectCandidateRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, "").await?,
        etag: args.etag,
        reason: args.reason,
        on_behalf_of: args.by,
    };
    let mut client = context.candidates().await?;
    let rejected = client
        .reject_candidate(context.request(request))
        .await?
        .into_inner();
    decided(
        "Rejected",
        &rejected.candidate.unwrap_or_default(),
        rejected.revision,
        output,
    )
}

fn decided(done: &str, candidate: &Candidate, revision: i64, output: &mut Output<'_>) -> Result {
    let json = json!({"candidate": view::message(candidate), "revision": revision});
    output.result(&json, || {
        let label = candidate.key.as_ref().map_or("", |key| &key.qualifier);
        let effect = match revision {
            0 => "nothing changed for nodes".to_owned(),
            revision => format!("current under {label} at revision {revision}"),
        };
        format!("{done} {} ({effect})", version_of(candidate))
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct UseArgs {
    /// What the AI is asked for
    #[arg(value_parser = words::target)]
    target: String,
    /// The number of the version
    #[arg(value_name = "VERSION")]
    number: i32,
    #[command(flatten)]
    label: Label,
    #[command(flatten)]
    decision: Decision,
}

pub(super) async fn use_version(args: UseArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = UsePromptVersionRequest {
        namespace: context.namespace(),
        target: args.target.clone(),
        label: args.label.label.clone(),
        version: args.number,
        reason: args.decision.reason,
        on_behalf_of: args.decision.by,
    };
    let mut client = context.outputs().await?;
    let used = client
        .use_prompt_version(context.request(request))
        .await?
        .into_inner();
    for warning in &used.warnings {
        eprintln!("{}", on_standard_error(&format!("emend: {warning}")));
    }
    let json = json!({
        "version": used.version.as_ref().map(view::prompt_version),
        "revision": used.revision,
        "warnings": used.warnings,
    });
    output.result(&json, || {
        format!(
            "version {} of {} is current under {} (revision {})",
            args.number, args.target, args.label.label, used.revision
        )
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct SetArgs {
    /// What the AI is asked for
    #[arg(value_parser = words::target)]
    target: String,
    /// The prompt's file, or - for standard input
    file: PathBuf,
    #[command(flatten)]
    label: Label,
    /// A variable, as {{NAME}} or {{ NAME }} in the text, and what stands there where a call says nothing; may be given several times
    #[arg(long = "variable", value_name = "NAME[=DEFAULT]", value_parser = variable)]
    variables: Vec<Variable>,
    /// A setting of the model; may be given several times
    #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = words::key_value)]
    settings: Vec<(String, String)>,
    /// Only if the current prompt still has this etag
    #[arg(long, value_name = "ETAG", default_value = "", hide_default_value = true)]
    etag: String,
    #[command(flatten)]
    decision: Decision,
}

/// Parses `NAME` or `NAME=DEFAULT`.
#[expect(clippy::unnecessary_wraps, reason = "clap's form of a parser")]
fn variable(text: &str) -> Result<Variable, String> {
    Ok(match text.split_once('=') {
        Some((name, default)) => Variable {
            name: name.to_owned(),
            default: Some(default.to_owned()),
        },
        None => Variable {
            name: text.to_owned(),
            default: None,
        },
    })
}

pub(super) async fn set(args: SetArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let mut file = read_file(&args.file)?;
    let header = file.header.get_or_insert_default();
    header.variables.extend(args.variables);
    let settings = args.settings.into_iter();
    header
        .settings
        .extend(settings.map(|(name, value)| Setting { name, value }));
    let prompt = file
        .prompt()
        .map_err(|error| Failure::usage(format!("{}: {error}", args.file.display())))?;
    Targets::read(context, [&*args.target])
        .await
        .check(&args.target)
        .map_err(Failure::usage)?;
    let mut request = put_request(context, &args.target, &args.label.label, &prompt);
    request.etag = args.etag;
    request.reason = args.decision.reason;
    request.on_behalf_of = args.decision.by;
    let mut client = context.resources().await?;
    let response = client.put_resource(context.request(request)).await?.into_inner();
    let resource = response.resource.unwrap_or_default();
    warn(&args.file, &response.warnings);
    let json = json!({
        "resource": view::message(&resource),
        "revision": response.revision,
        "warnings": response.warnings,
    });
    output.result(&json, || {
        let version = prompt_of(resource.value.as_ref()).map_or(0, |prompt| prompt.version);
        let (target, label) = (&args.target, &args.label.label);
        match response.revision {
            0 => format!("version {version} of {target}, current under {label}, says this already"),
            revision => {
                format!("version {version} of {target} is current under {label} (revision {revision})")
            }
        }
    })
}
