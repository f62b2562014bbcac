//! Versions and improvements of prompts as text for people.

use std::fmt::Write as _;

use emend_core::ratings::RatingClass;
use emend_proto::{
    common::v1::{Actor, Cause},
    learning::v1::{
        Candidate, CandidateOrigin, CandidateStatus, Improvement, PreviewImprovementResponse, PreviewedInput,
        PromptVersion, Transition,
    },
};

use super::{Current, diff};
use crate::{
    output::{Cell, Column, Table, counted},
    view::{short_time, version_status},
    words,
};

/// The current prompts, each with the decision that made it current.
pub(super) fn current_table(prompts: &[(Current, Option<PromptVersion>)]) -> Table {
    Table::new([
        ("TARGET", Column::Text),
        ("LABEL", Column::Text),
        ("VERSION", Column::Number),
        ("DECIDED", Column::Time),
    ])
    .with_rows(prompts, |(current, version)| {
        let decided = version.as_ref().and_then(|version| {
            let under_label = |decision: &(&str, &Transition, &'static str)| decision.0 == current.label;
            newest_decision(version, under_label)
        });
        let since = || format!("since {}", short_time(current.resource.committed_at.as_ref()));
        [
            Cell::whole(current.target.clone()),
            Cell::whole(current.label.clone()),
            Cell::from(current.prompt.version.to_string()),
            Cell::whole(decided.unwrap_or_else(since)),
        ]
    })
}

pub(super) fn versions_table(versions: &[PromptVersion]) -> Table {
    Table::new([
        ("VERSION", Column::Number),
        ("STATUS", Column::Fixed),
        ("LABELS", Column::Text),
        ("DECIDED", Column::Time),
        ("CANDIDATE", Column::Id),
    ])
    .with_rows(versions, |version| {
        let candidate = version.candidate.clone().unwrap_or_default();
        let decided = newest_decision(version, |_| true);
        let proposed = || format!("proposed {}", short_time(candidate.created_at.as_ref()));
        [
            Cell::from(candidate.proposal.unwrap_or_default().version.to_string()),
            Cell::from(words::status_name(version_status(version).into())),
            Cell::whole(version.labels.join(", ")),
            Cell::whole(decided.unwrap_or_else(proposed)),
            Cell::from(candidate.candidate_id.clone()),
        ]
    })
}

/// The newest decision about a version itself that is asked for: what, by whom, when, and why. What others decided later, about
/// another version, only replaced it.
fn newest_decision(
    version: &PromptVersion,
    is_asked_for: impl Fn(&(&str, &Transition, &'static str)) -> bool,
) -> Option<String> {
    let mut decisions = decisions(version).into_iter().rev().filter(is_asked_for);
    let (_, transition, done) = decisions.find(|(_, transition, _)| {
        matches!(
            transition.to(),
            CandidateStatus::Applied | CandidateStatus::Rejected
        )
    })?;
    let at = short_time(transition.at.as_ref());
    let name = actor_name(transition.actor.as_ref());
    Some(decided(&format!("{done} by {name}, {at}"), &transition.reason))
}

/// A decision and its reason, if it has one.
fn decided(done: &str, reason: &str) -> String {
    match reason {
        "" => done.to_owned(),
        reason => format!("{done}: {reason}"),
    }
}

/// What was decided about a version, line by line, the oldest first: when, what, by whom, under which label, and why.
pub(super) fn history_text(version: &PromptVersion) -> String {
    let mut text = String::new();
    for (label, transition, done) in decisions(version) {
        let name = actor_name(transition.actor.as_ref());
        let done = decided(&format!("{done} by {name} under {label}"), &transition.reason);
        // Writing to a String can't fail.
        let _ = writeln!(text, "{}  {done}", short_time(transition.at.as_ref()));
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

fn actor_name(actor: Option<&Actor>) -> &str {
    let Some(actor) = actor else {
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
        (_, _, Cause::Undo) => "decision undone",
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
        ("CREATED", Column::Time),
        ("CANDIDATE", Column::Id),
    ])
    .with_rows(versions, |version| {
        let candidate = version.candidate.clone().unwrap_or_default();
        [
            candidate.key.clone().unwrap_or_default().key,
            candidate.proposal.unwrap_or_default().version.to_string(),
            words::status_name(version_status(version).into()),
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
        ("DECIDED", Column::Time),
    ])
    .with_rows(candidates, |candidate| {
        let key = candidate.key.clone().unwrap_or_default();
        let proposal = candidate.proposal.unwrap_or_default();
        [
            Cell::from(candidate.candidate_id.clone()),
            Cell::whole(key.key),
            Cell::whole(key.qualifier),
            Cell::from(proposal.version.to_string()),
            Cell::whole(proposal_decided(candidate)),
        ]
    })
}

/// What became of a proposal: by whom, when, and why; and whether what it was made of has been redacted since.
fn proposal_decided(candidate: &Candidate) -> String {
    let proposal = candidate.proposal.unwrap_or_default();
    let by = |done: &str, at| {
        let name = actor_name(candidate.decided_by.as_ref());
        format!("{done} by {name}, {}", short_time(Some(at)))
    };
    let approved = match candidate.origin() {
        CandidateOrigin::Operator => "set",
        CandidateOrigin::Review => "approved with changes",
        _ => "approved",
    };
    let done = match (&proposal.approved_at, &proposal.rejected_at) {
        (Some(at), _) => by(approved, at),
        (None, Some(at)) => by("rejected", at),
        (None, None) => format!(
            "{} since {}",
            words::status_name(candidate.status),
            short_time(candidate.created_at.as_ref())
        ),
    };
    let text = decided(&done, &candidate.decision_reason);
    match proposal.redacted_count {
        0 => text,
        count => format!("{text} ({count} of its ratings redacted since)"),
    }
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
        "made of   {}: {} good, {} neutral, {} bad\nby        {}\nwhy       {}\n",
        counted(improvement.rating_count, "rating", "ratings"),
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

#[cfg(test)]
mod tests {
    use emend_proto::learning::v1::{PromptDecision, Proposal};
    use prost_types::Timestamp;

    use super::*;

    #[test]
    fn who_decided_and_why_is_whole_at_80_columns() {
        let reason = "two sentences are enough for the board, and figures come first in each of them";
        let at = Some(Timestamp {
            seconds: 1_790_000_000,
            nanos: 0,
        });
        let dana = Some(Actor {
            caller: "console".into(),
            on_behalf_of: "dana".into(),
        });
        let candidate = Candidate {
            candidate_id: "0e939fab-e5c7-8140-b875-9d80da3294c0".into(),
            key: Some(emend_proto::common::v1::ResourceKey {
                key: "SUMMARIZE_DAILY".into(),
                qualifier: "production".into(),
                ..emend_proto::common::v1::ResourceKey::default()
            }),
            status: CandidateStatus::Applied.into(),
            created_at: at,
            decided_by: dana.clone(),
            decision_reason: reason.into(),
            proposal: Some(Proposal {
                version: 12,
                approved_at: at,
                ..Proposal::default()
            }),
            ..Candidate::default()
        };
        let version = PromptVersion {
            candidate: Some(candidate.clone()),
            labels: vec!["production".into()],
            history: vec![PromptDecision {
                label: "production".into(),
                transition: Some(Transition {
                    from: CandidateStatus::AwaitingReview.into(),
                    to: CandidateStatus::Applied.into(),
                    actor: dana,
                    at,
                    reason: reason.into(),
                    ..Transition::default()
                }),
            }],
            ..PromptVersion::default()
        };
        let set = {
            let (mut candidate, mut version) = (candidate.clone(), version.clone());
            candidate.origin = CandidateOrigin::Operator.into();
            version.candidate = Some(candidate.clone());
            let transition = version.history[0].transition.get_or_insert_default();
            transition.from = CandidateStatus::Unspecified.into();
            [versions_table(&[version]), proposals_table(&[candidate])]
        };
        for table in set {
            let shown = table.render(200);
            assert!(shown.contains("set by dana, 2026-09-21T14:13Z: two"), "{shown}");
        }
        for table in [versions_table(&[version]), proposals_table(&[candidate])] {
            let shown = table.render(80);
            assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
            let words: Vec<&str> = shown.split_whitespace().collect();
            for word in format!("approved by dana, 2026-09-21T14:13Z: {reason} production 12").split(' ') {
                assert!(words.contains(&word), "{word}: {shown}");
            }
        }
    }
}
