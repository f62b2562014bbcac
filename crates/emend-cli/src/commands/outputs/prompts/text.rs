//! Versions and improvements of prompts as text for people.

use std::fmt::Write as _;

use emend_core::ratings::RatingClass;
use emend_proto::{
    common::v1::Cause,
    learning::v1::{
        Candidate, CandidateStatus, GetOutputStatsResponse, Improvement, PreviewImprovementResponse,
        PreviewedInput, PromptVersion, Transition,
    },
};

use super::{Current, diff, prompt_of};
use crate::{
    output::{Column, Table},
    view::{self, short_time, standing_word},
};

pub(super) fn current_table(prompts: &[Current]) -> Table {
    Table::new([
        ("TARGET", Column::Text),
        ("LABEL", Column::Fixed),
        ("VERSION", Column::Number),
        ("PROMPT", Column::Text),
        ("REVISION", Column::Number),
        ("SINCE", Column::Fixed),
    ])
    .with_rows(prompts, |current| {
        [
            current.target.clone(),
            current.label.clone(),
            current.prompt.version.to_string(),
            first_line(current.prompt.text()),
            current.resource.revision.to_string(),
            short_time(current.resource.committed_at.as_ref()),
        ]
    })
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next().unwrap_or_default().to_owned()
}

pub(super) fn versions_table(versions: &[PromptVersion]) -> Table {
    Table::new([
        ("VERSION", Column::Number),
        ("STATUS", Column::Fixed),
        ("LABELS", Column::Text),
        ("PROMPT", Column::Text),
        ("CREATED", Column::Fixed),
        ("DECIDED", Column::Text),
        ("CANDIDATE", Column::Id),
    ])
    .with_rows(versions, |version| {
        let candidate = version.candidate.clone().unwrap_or_default();
        let prompt = prompt_of(candidate.value.as_ref());
        [
            candidate.proposal.unwrap_or_default().version.to_string(),
            standing_word(&candidate),
            version.labels.join(", "),
            prompt.map_or_else(String::new, |prompt| first_line(prompt.text())),
            short_time(candidate.created_at.as_ref()),
            newest_decision(version),
            candidate.candidate_id,
        ]
    })
}

/// The newest decision about a version itself: what others decided later, about another version, only replaced it.
fn newest_decision(version: &PromptVersion) -> String {
    let decided = decisions(version).into_iter().rev().find(|(_, transition, _)| {
        matches!(
            transition.to(),
            CandidateStatus::Applied | CandidateStatus::Rejected
        )
    });
    decided.map_or_else(String::new, |(_, transition, done)| {
        format!("{done} by {}", actor_name(transition))
    })
}

/// What was decided about a version, line by line, the oldest first: when, what, by whom, under which label, and why.
pub(super) fn history_text(version: &PromptVersion) -> String {
    let mut text = String::new();
    for (label, transition, done) in decisions(version) {
        let reason = match &*transition.reason {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "{}  {done} by {} under {label}{reason}",
            short_time(transition.at.as_ref()),
            actor_name(transition),
        );
    }
    text
}

/// What was decided about a version, the oldest first: under which label, and what it did. That a version was created only to be
/// applied at once is not told apart.
fn decisions(version: &PromptVersion) -> Vec<(&str, &Transition, &'static str)> {
    let mut decisions: Vec<(&str, &Transition, &'static str)> = Vec::new();
    for decision in &version.history {
        if let Some(transition) = &decision.transition
            && let Some(done) = done(transition, decisions.is_empty())
        {
            decisions.push((&decision.label, transition, done));
        }
    }
    decisions
}

fn actor_name(transition: &Transition) -> &str {
    let Some(actor) = &transition.actor else {
        return "?";
    };
    if actor.on_behalf_of.is_empty() {
        &actor.caller
    } else {
        &actor.on_behalf_of
    }
}

/// What a transition did, perhaps as the first of its version.
fn done(transition: &Transition, is_first: bool) -> Option<&'static str> {
    use CandidateStatus::{Applied, AwaitingReview, Pending, Rejected, Superseded, Unspecified, Withdrawn};
    Some(match (transition.from(), transition.to(), transition.cause()) {
        (Unspecified, Pending, _) => return None,
        (_, Applied, Cause::Revert) => "restored",
        (Unspecified | Pending, Applied, Cause::Review) => "approved with changes",
        (Unspecified | Pending, Applied, _) if is_first => "set",
        (Unspecified | Pending, Applied, _) => "made current",
        (AwaitingReview, Applied, _) => "approved",
        (_, Applied, _) => "made current again",
        (_, Rejected, _) => "rejected",
        (Unspecified | Pending, AwaitingReview, _) => "proposed",
        (AwaitingReview, Superseded, _) => "closed",
        (_, Superseded, _) => "replaced",
        (_, Withdrawn, _) => "taken away",
        _ => "held for review",
    })
}

/// Versions of several targets, with how many of the ratings that they were made of have been redacted.
pub(super) fn redacted_table(versions: &[PromptVersion]) -> Table {
    Table::new([
        ("TARGET", Column::Text),
        ("VERSION", Column::Number),
        ("STATUS", Column::Fixed),
        ("LABELS", Column::Text),
        ("REDACTED", Column::Number),
        ("CREATED", Column::Fixed),
        ("CANDIDATE", Column::Id),
    ])
    .with_rows(versions, |version| {
        let candidate = version.candidate.clone().unwrap_or_default();
        [
            candidate.key.clone().unwrap_or_default().key,
            candidate.proposal.unwrap_or_default().version.to_string(),
            standing_word(&candidate),
            version.labels.join(", "),
            version.redacted_count.to_string(),
            short_time(candidate.created_at.as_ref()),
            candidate.candidate_id,
        ]
    })
}

pub(super) fn proposals_table(candidates: &[Candidate]) -> Table {
    Table::new([
        ("CANDIDATE", Column::Id),
        ("TARGET", Column::Text),
        ("LABEL", Column::Text),
        ("VERSION", Column::Number),
        ("STATUS", Column::Fixed),
        ("REDACTED", Column::Number),
        ("CREATED", Column::Fixed),
    ])
    .with_rows(candidates, |candidate| {
        let key = candidate.key.clone().unwrap_or_default();
        let proposal = candidate.proposal.unwrap_or_default();
        [
            candidate.candidate_id.clone(),
            key.key,
            key.qualifier,
            proposal.version.to_string(),
            standing_word(candidate),
            proposal.redacted_count.to_string(),
            short_time(candidate.created_at.as_ref()),
        ]
    })
}

/// A version in short: `version 3 of SUMMARIZE_DAILY`.
pub(super) fn version_of(candidate: &Candidate) -> String {
    let target = candidate.key.as_ref().map_or("?", |key| &key.key);
    format!(
        "version {} of {target}",
        candidate.proposal.unwrap_or_default().version
    )
}

/// What an improvement is made of, why it is better, and what it changes.
pub(in crate::commands) fn improvement_text(improvement: &Improvement, coloured: bool) -> String {
    let mut text = format!(
        "made of   {} ratings: {} good, {} neutral, {} bad\nby        {}\nwhy       {}\n",
        improvement.rating_count,
        improvement.good_count,
        improvement.neutral_count,
        improvement.bad_count,
        improvement.generator,
        indented(&improvement.reason, 10),
    );
    if improvement.redacted_count > 0 {
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "redacted  {} of the ratings since: what they said may still be in the text",
            improvement.redacted_count
        );
    }
    text + "\n" + &diff::painted(&improvement.diff, coloured)
}

/// A text whose further lines stand below its first.
fn indented(text: &str, columns: usize) -> String {
    text.trim_end()
        .replace('\n', &format!("\n{}", " ".repeat(columns)))
}

pub(super) fn preview_text(preview: &PreviewImprovementResponse, as_sent: bool, coloured: bool) -> String {
    let mut text = String::new();
    if let Some(improvement) = &preview.improvement {
        text += &improvement_text(improvement, coloured);
    }
    for (index, input) in preview.inputs.iter().enumerate() {
        let rated = RatingClass::from_number(input.rated_as).map_or("?", RatingClass::name);
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "\nInput {} of {}, rated {rated} (feedback {})",
            index + 1,
            preview.inputs.len(),
            input.feedback_id
        );
        text += &input_text(input, preview.was_run, as_sent);
    }
    if preview.inputs.is_empty() {
        text += "\nNo rated inputs are stored to try it on.\n";
    } else if !preview.was_run {
        text += "\nThe prompts were not run: no model is configured.\n";
    }
    text
}

fn input_text(input: &PreviewedInput, was_run: bool, as_sent: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<17} {}", indented(value, 20));
        }
    };
    line("input", &input.input);
    line("output then", &input.output);
    for issue in &input.issues {
        line("issue", issue);
    }
    line("should have been", &input.corrected);
    if was_run {
        line("old prompt makes", &input.previous_run);
        line("new prompt makes", &input.run);
        line("not run", &input.run_error);
    }
    if as_sent {
        line("old prompt", &input.previous_prompt);
        line("new prompt", &input.prompt);
    }
    text
}

pub(super) fn stats_text(target: &str, stats: &GetOutputStatsResponse, width: usize) -> String {
    let mut text = if stats.versions.is_empty() {
        format!("{target} has no ratings.\n")
    } else {
        stats_table(stats).render(width)
    };
    let since = match &stats.proposed_at {
        Some(at) => format!("Since the newest proposal ({})", short_time(Some(at))),
        None => "Nothing was proposed yet; so far".into(),
    };
    // Writing to a String can't fail.
    let _ = writeln!(
        text,
        "\n{since}: {} good, {} neutral, {} bad.",
        stats.good_since_proposal, stats.neutral_since_proposal, stats.bad_since_proposal
    );
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

fn stats_table(stats: &GetOutputStatsResponse) -> Table {
    Table::new([
        ("VERSION", Column::Text),
        ("GOOD", Column::Number),
        ("NEUTRAL", Column::Number),
        ("BAD", Column::Number),
        ("FIRST RATED", Column::Fixed),
        ("LAST RATED", Column::Fixed),
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
            view::short_time(version.first_rated_at.as_ref()),
            view::short_time(version.last_rated_at.as_ref()),
        ]
    })
}
