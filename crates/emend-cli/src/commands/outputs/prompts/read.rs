//! What is read about prompts: lists, versions, differences, previews and ratings.

use std::collections::HashMap;

use emend_client::prompt_files::PromptFile;
use emend_core::{Kind, ratings::target_name};
use emend_proto::learning::v1::{
    Candidate, CandidateStatus, GetCandidateRequest, GetCandidateResponse, ListCandidatesRequest,
    ListPromptVersionsRequest, PreviewImprovementRequest, PromptVersion,
};
use serde_json::json;

use super::{
    Current, Label, current, current_of, diff as differences, numbered, prompt_of,
    text::{
        current_table, history_text, improvement_text, preview_text, proposals_table, redacted_table,
        version_of, versions_table,
    },
    versions,
};
use crate::{
    commands::ids,
    context::Context,
    failure::{Failure, Result},
    output::Output,
    view::{self, short_time, version_status},
    words::{self, Reviewed},
};

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// List the versions of this target's prompt, the newest first [default: the current prompts]
    #[arg(value_parser = words::target)]
    target: Option<String>,
    /// Only versions, or, without a target, proposals with this status; may be given several times
    #[arg(long, value_enum)]
    status: Vec<Reviewed>,
    /// Only prompts that are current or proposed under this label
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// List versions and proposals, of all targets if none is named, that were generated from ratings redacted since: what those
    /// said may still be in the texts
    #[arg(long)]
    redacted: bool,
    /// List at most this many versions or proposals; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

pub(super) async fn list(args: ListArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let wanted: Vec<CandidateStatus> = args.status.iter().map(|status| (*status).into()).collect();
    if args.target.is_some() || args.redacted {
        let request = ListPromptVersionsRequest {
            namespace: context.namespace(),
            target: args.target.clone().unwrap_or_default(),
            only_redacted: args.redacted,
            ..ListPromptVersionsRequest::default()
        };
        let (all, more) = context.list(&request, args.limit).await?;
        let has_label = |version: &PromptVersion| {
            args.label
                .as_ref()
                .is_none_or(|label| version.labels.contains(label))
        };
        let is_wanted =
            |version: &PromptVersion| wanted.is_empty() || wanted.contains(&version_status(version));
        let shown: Vec<PromptVersion> = all
            .into_iter()
            .filter(|version| is_wanted(version) && has_label(version))
            .collect();
        let none = match &args.target {
            Some(target) => {
                let is_filtered = !wanted.is_empty() || args.label.is_some() || args.redacted;
                context.none_found(&format!("versions of a prompt for {target:?}"), is_filtered)
            }
            None => context.none_found("versions of prompts", true),
        } + Reviewed::none_gathers_votes(&args.status);
        let table = if args.redacted {
            redacted_table
        } else {
            versions_table
        };
        return output.list(&shown, more, view::prompt_version, table, &none);
    }
    if args.status.is_empty() {
        let prompts = decided(current(context, args.label.as_deref()).await?, context, output).await;
        let json = |(current, _): &(Current, Option<PromptVersion>)| view::message(&current.resource);
        let none = context.none_found("prompts", args.label.is_some());
        return output.results(&prompts, json, current_table, &none);
    }
    let (proposals, more) = proposals(&args, &wanted, context).await?;
    output.list(
        &proposals,
        more,
        view::message,
        proposals_table,
        &(context.none_found("proposed prompts", true) + Reviewed::none_gathers_votes(&args.status)),
    )
}

/// Current prompts with what was decided about their versions, as far as the caller may know it: for people alone.
async fn decided(
    prompts: Vec<Current>,
    context: &Context,
    output: &Output<'_>,
) -> Vec<(Current, Option<PromptVersion>)> {
    let mut all: HashMap<String, Vec<PromptVersion>> = HashMap::new();
    let mut found = Vec::with_capacity(prompts.len());
    for prompt in prompts {
        if !output.is_json() && !all.contains_key(&prompt.target) {
            let of_target = versions(context, &prompt.target, 0).await;
            all.insert(prompt.target.clone(), of_target.unwrap_or_default().0);
        }
        let number = i32::try_from(prompt.prompt.version).unwrap_or(i32::MAX);
        let version = all.get(&prompt.target).and_then(|versions| {
            let is_it = |version: &&PromptVersion| {
                let proposal = version
                    .candidate
                    .as_ref()
                    .and_then(|candidate| candidate.proposal);
                proposal.is_some_and(|proposal| proposal.version == number)
            };
            versions.iter().find(is_it).cloned()
        });
        found.push((prompt, version));
    }
    found
}

async fn proposals(
    args: &ListArgs,
    statuses: &[CandidateStatus],
    context: &Context,
) -> Result<(Vec<Candidate>, bool)> {
    let statuses = statuses.iter().map(|status| i32::from(*status)).collect();
    let (candidates, more) = context
        .list(
            &ListCandidatesRequest {
                namespace: context.namespace(),
                kinds: vec![Kind::Prompt.number()],
                statuses,
                ..ListCandidatesRequest::default()
            },
            args.limit,
        )
        .await?;
    let has_label = |candidate: &Candidate| {
        let key = candidate.key.as_ref();
        let label = args.label.as_ref();
        label.is_none_or(|label| key.is_some_and(|key| key.qualifier == *label))
    };
    Ok((candidates.into_iter().filter(has_label).collect(), more))
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// What the AI is asked for
    #[arg(value_parser = words::target)]
    target: String,
    /// Show this version instead of the current one
    #[arg(value_name = "VERSION")]
    number: Option<u32>,
    #[command(flatten)]
    label: Label,
}

pub(super) async fn show(args: ShowArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let target = &args.target;
    let Some(number) = args.number else {
        let current = current_of(context, target, &args.label.label).await?;
        return output.result(&view::message(&current.resource), || {
            format!(
                "{target}, version {}: current under {} since {} (revision {})\n\n{}",
                current.prompt.version,
                current.label,
                short_time(current.resource.committed_at.as_ref()),
                current.resource.revision,
                PromptFile::of(target, &current.prompt)
            )
        });
    };
    let (all, _) = versions(context, target, 0).await?;
    let (version, prompt) = numbered(&all, target, number)?;
    output.result(&view::prompt_version(version), || {
        let candidate = version.candidate.clone().unwrap_or_default();
        let labels = match &version.labels[..] {
            [] => String::new(),
            labels => format!(", current under {}", labels.join(", ")),
        };
        format!(
            "{target}, version {number}: {}{labels} (candidate {})\n{}\n{}",
            words::status_name(version_status(version).into()),
            candidate.candidate_id,
            history_text(version),
            PromptFile::of(target, &prompt)
        )
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// A proposal's candidate id, or a target
    #[arg(value_name = "CANDIDATE|TARGET")]
    target: String,
    /// Of a target: from this version to the next argument, or, with no next, from the current version to this one [default: what its
    /// open proposal changes, else from the version before to the current one]
    #[arg(value_name = "VERSION")]
    from: Option<u32>,
    /// Of a target: to this version
    #[arg(value_name = "VERSION")]
    to: Option<u32>,
    #[command(flatten)]
    label: Label,
}

pub(super) async fn diff(args: DiffArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let coloured = output.is_coloured();
    if args.from.is_none() && ids::is_candidate(&args.target) {
        let details = candidate(context, args.target).await?;
        return proposal_diff(&details, context, output).await;
    }
    let target = target_name(&args.target);
    let (all, _) = versions(context, target, 0).await?;
    let (before, after) = match (args.from, args.to) {
        (None, _) => {
            let label = &args.label.label;
            if let Some(open) = all.iter().find_map(|version| open_proposal(version, label)) {
                let details = candidate(context, open).await?;
                return proposal_diff(&details, context, output).await;
            }
            let after = current_of(context, target, label).await?.prompt;
            let before = after.version.saturating_sub(1);
            if before == 0 {
                (None, after)
            } else {
                (Some(numbered(&all, target, before)?.1), after)
            }
        }
        (Some(to), None) => {
            let before = current_of(context, target, &args.label.label).await?.prompt;
            (Some(before), numbered(&all, target, to)?.1)
        }
        (Some(from), Some(to)) => (
            Some(numbered(&all, target, from)?.1),
            numbered(&all, target, to)?.1,
        ),
    };
    let from = before.as_ref().map_or(0, |before| before.version);
    let diff = differences::prompts(target, before.as_ref(), &after);
    let json = json!({"target": target, "from": from, "to": after.version, "diff": diff});
    output.result(&json, || match &*diff {
        "" => format!("versions {from} and {} say the same", after.version),
        diff => differences::painted(diff, coloured),
    })
}

/// The candidate id of a version that awaits approval under a label.
fn open_proposal(version: &PromptVersion, label: &str) -> Option<String> {
    let candidate = version.candidate.as_ref()?;
    let has_label = candidate.key.as_ref().is_some_and(|key| key.qualifier == label);
    let is_open = candidate.status() == CandidateStatus::AwaitingReview;
    (is_open && has_label).then(|| candidate.candidate_id.clone())
}

/// What a proposal changes: as it was generated, else from the version that it was made for.
async fn proposal_diff(details: &GetCandidateResponse, context: &Context, output: &mut Output<'_>) -> Result {
    let candidate = details.candidate.clone().unwrap_or_default();
    let after = prompt_of(candidate.value.as_ref())
        .ok_or_else(|| Failure::usage(format!("{} is not a version of a prompt", candidate.candidate_id)))?;
    let target = candidate.key.clone().unwrap_or_default().key;
    let coloured = output.is_coloured();
    let head = format!(
        "{}: {}",
        version_of(&candidate),
        words::status_name(candidate.status)
    );
    if let Some(improvement) = &details.improvement {
        let json = json!({
            "target": target, "candidateId": candidate.candidate_id, "diff": improvement.diff,
            "improvement": view::message(improvement),
        });
        return output.result(&json, || {
            format!("{head}\n{}", improvement_text(improvement, coloured))
        });
    }
    let base = u32::try_from(candidate.proposal.unwrap_or_default().base_version).unwrap_or_default();
    let before = match base {
        0 => None,
        base => {
            let (all, _) = versions(context, &target, 0).await?;
            Some(numbered(&all, &target, base)?.1)
        }
    };
    let diff = differences::prompts(&target, before.as_ref(), &after);
    let json = json!({"target": target, "candidateId": candidate.candidate_id, "diff": diff});
    output.result(&json, || {
        format!("{head}\n\n{}", differences::painted(&diff, coloured))
    })
}

pub(super) async fn candidate(context: &Context, candidate_id: String) -> Result<GetCandidateResponse> {
    let request = GetCandidateRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, candidate_id, "").await?,
    };
    let mut client = context.candidates().await?;
    Ok(client.get_candidate(context.request(request)).await?.into_inner())
}

#[derive(Debug, clap::Args)]
pub(super) struct PreviewArgs {
    /// The proposal's candidate id
    candidate_id: String,
    /// On how many of the newest rated inputs, 1 to 20
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..=20))]
    inputs: i32,
    /// Also show the old and the new prompt as they would be sent with each input
    #[arg(long)]
    as_sent: bool,
}

pub(super) async fn preview(args: PreviewArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = PreviewImprovementRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, "").await?,
        inputs: args.inputs,
    };
    let mut client = context.outputs().await?;
    let preview = client
        .preview_improvement(context.request_of_model(request))
        .await?
        .into_inner();
    let coloured = output.is_coloured();
    output.result(&view::message(&preview), || {
        preview_text(&preview, args.as_sent, coloured)
    })
}
