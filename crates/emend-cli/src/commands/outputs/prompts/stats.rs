//! How what an AI makes is rated, and whether its prompts can be improved.

use std::fmt::Write as _;

use emend_proto::learning::v1::{
    GetOutputStatsRequest, GetOutputStatsResponse, ListOutputStatsRequest, TargetStats,
};

use super::targets::Targets;
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table},
    view::{self, short_time},
    words,
};

/// Count ratings, and say whether an improvement can be generated.
#[derive(Debug, clap::Args)]
pub(in crate::commands::outputs) struct Args {
    /// Count by version of this target's prompt [default: all targets, one a line]
    #[arg(value_parser = words::target)]
    target: Option<String>,
    /// List at most this many targets; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT", conflicts_with = "target")]
    limit: usize,
}

/// Shows them.
pub(in crate::commands::outputs) async fn stats(
    args: Args,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let Some(target) = args.target else {
        let request = ListOutputStatsRequest {
            namespace: context.namespace(),
            ..ListOutputStatsRequest::default()
        };
        let (targets, more) = context.list(&request, args.limit).await?;
        let none = context.none_of("targets that were rated or have a prompt");
        return output.list(&targets, more, view::message, targets_table, &none);
    };
    let request = GetOutputStatsRequest {
        namespace: context.namespace(),
        target: target.clone(),
    };
    let mut client = context.outputs().await?;
    let stats = client
        .get_output_stats(context.request(request))
        .await?
        .into_inner();
    // Of a target that the settings no longer have, what was rated is still counted.
    if stats.versions.is_empty() && stats.current_version == 0 {
        Targets::read(context, [&*target])
            .await
            .check(&target)
            .map_err(Failure::usage)?;
    }
    let width = output.width();
    output.result(&view::message(&stats), || target_text(&target, &stats, width))
}

fn targets_table(targets: &[TargetStats]) -> Table {
    Table::new([
        ("TARGET", Column::Text),
        ("VERSION", Column::Number),
        ("GOOD", Column::Number),
        ("NEUTRAL", Column::Number),
        ("BAD", Column::Number),
        ("BAD COUNTED", Column::Number),
        ("IMPROVEMENT", Column::Fixed),
    ])
    .with_rows(targets, |target| {
        let stats = target.stats.clone().unwrap_or_default();
        let sum = |count: fn(&emend_proto::learning::v1::OutputVersionStats) -> i64| {
            stats.versions.iter().map(count).sum::<i64>().to_string()
        };
        let version = match stats.current_version {
            0 => "–".to_owned(),
            version => version.to_string(),
        };
        [
            target.target.clone(),
            version,
            sum(|version| version.good),
            sum(|version| version.neutral),
            sum(|version| version.bad),
            stats.bad_counted.to_string(),
            improvement(&stats),
        ]
    })
}

/// Whether an improvement can be generated, in few words.
fn improvement(stats: &GetOutputStatsResponse) -> String {
    match &*stats.cannot_reason {
        _ if stats.can_generate => "possible".into(),
        "TOO_FEW_RATINGS" => format!("needs {} bad", stats.bad_missing),
        "NO_PROMPT" => "no prompt".into(),
        "IMPROVEMENT_OPEN" if stats.open_candidate_id.is_empty() => "under way".into(),
        "IMPROVEMENT_OPEN" => "to be approved".into(),
        reason => reason.to_owned(),
    }
}

fn target_text(target: &str, stats: &GetOutputStatsResponse, width: usize) -> String {
    let mut text = if stats.versions.is_empty() {
        format!("{target} has no ratings.\n")
    } else {
        versions_table(stats).render(width)
    };
    let counted = match stats.current_version {
        0 => "No version is current; so far".to_owned(),
        version => format!("Of version {version}, or since it is current"),
    };
    // Writing to a String can't fail.
    let _ = writeln!(
        text,
        "\n{counted}: {} good, {} neutral, {} bad.",
        stats.good_counted, stats.neutral_counted, stats.bad_counted
    );
    if let Some(at) = &stats.proposed_at {
        let _ = writeln!(
            text,
            "Since the newest proposal ({}): {} good, {} neutral, {} bad.",
            short_time(Some(at)),
            stats.good_since_proposal,
            stats.neutral_since_proposal,
            stats.bad_since_proposal
        );
    }
    text + &next_step(target, stats)
}

/// Whether an improvement can be generated, and what is missing.
fn next_step(target: &str, stats: &GetOutputStatsResponse) -> String {
    match &*stats.cannot_reason {
        _ if stats.can_generate => {
            format!("An improvement can be generated: emend outputs prompts generate {target}")
        }
        "TOO_FEW_RATINGS" => format!("An improvement needs more bad ratings: {}.", stats.bad_missing),
        "NO_PROMPT" => format!("There is no prompt to improve: emend outputs prompts set {target} FILE"),
        "IMPROVEMENT_OPEN" if !stats.open_candidate_id.is_empty() => format!(
            "An improvement awaits approval: emend outputs prompts diff {}",
            stats.open_candidate_id
        ),
        reason => format!("No improvement can be generated: {reason}"),
    }
}

fn versions_table(stats: &GetOutputStatsResponse) -> Table {
    Table::new([
        ("VERSION", Column::Text),
        ("GOOD", Column::Number),
        ("NEUTRAL", Column::Number),
        ("BAD", Column::Number),
        ("FIRST RATED", Column::Time),
        ("LAST RATED", Column::Time),
    ])
    .with_rows(&stats.versions, |version| {
        [
            if version.prompt_version.is_empty() {
                "(not said)".into()
            } else {
                version.prompt_version.clone()
            },
            version.good.to_string(),
            version.neutral.to_string(),
            version.bad.to_string(),
            short_time(version.first_rated_at.as_ref()),
            short_time(version.last_rated_at.as_ref()),
        ]
    })
}
