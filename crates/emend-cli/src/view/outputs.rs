//! Prompts, improvements of them, and profiles.

use emend_proto::{
    common::v1::{ProfileValue, PromptSetting, PromptValue, RatingClass, profile_value},
    learning::v1::{
        CandidateStatus, GetOutputStatsResponse, Improvement, PreviewImprovementResponse, Profile,
        PromptDecision, PromptVersion, RenderPromptResponse, Suggestion, SuggestionType,
    },
};
use serde_json::{Value, json};

use super::{
    learning::{candidate, transition},
    name, present, time,
};
use crate::words;

pub(super) fn prompt(prompt: &PromptValue) -> Value {
    let variables = prompt
        .variables
        .iter()
        .map(|variable| present(json!({"name": variable.name, "defaultValue": variable.default_value})));
    json!({
        "version": prompt.version,
        "text": prompt.text,
        "variables": variables.collect::<Vec<_>>(),
        "settings": settings(&prompt.settings),
    })
}

fn settings(settings: &[PromptSetting]) -> Value {
    let settings = settings.iter();
    settings
        .map(|setting| json!({"name": setting.name, "value": setting.value}))
        .collect()
}

pub(super) fn profile_entry(entry: &ProfileValue) -> Value {
    match &entry.value {
        Some(profile_value::Value::Entry(entry)) => json!({"entry": entry}),
        Some(profile_value::Value::Years(years)) => json!({"years": years}),
        None => json!({}),
    }
}

/// What people call a proposal's status: pending, approved, rejected.
pub fn standing_word(of: &emend_proto::learning::v1::Candidate) -> String {
    let proposal = of.proposal.unwrap_or_default();
    match CandidateStatus::try_from(of.status) {
        Ok(CandidateStatus::AwaitingReview) => "pending".into(),
        _ if proposal.rejected_at.is_some() => "rejected".into(),
        _ if proposal.approved_at.is_some() => "approved".into(),
        Ok(CandidateStatus::Applied) => "approved".into(),
        _ => words::status_name(of.status),
    }
}

/// A version of a prompt.
pub fn prompt_version(version: &PromptVersion) -> Value {
    let of = version.candidate.clone().unwrap_or_default();
    json!({
        "candidate": candidate(&of),
        "standing": standing_word(&of),
        "labels": version.labels,
        "redactedCount": version.redacted_count,
        "history": version.history.iter().map(prompt_decision).collect::<Vec<_>>(),
    })
}

/// What was decided about a version under a label.
fn prompt_decision(decision: &PromptDecision) -> Value {
    present(json!({
        "label": decision.label,
        "transition": decision.transition.as_ref().map(transition),
    }))
}

/// What is kept of a generated prompt.
pub fn improvement(improvement: &Improvement) -> Value {
    json!({
        "label": improvement.label,
        "previousText": improvement.previous_text,
        "text": improvement.text,
        "diff": improvement.diff,
        "ratingCount": improvement.rating_count,
        "goodCount": improvement.good_count,
        "neutralCount": improvement.neutral_count,
        "badCount": improvement.bad_count,
        "reason": improvement.reason,
        "generator": improvement.generator,
        "redactedCount": improvement.redacted_count,
    })
}

/// What an improvement would change on inputs that were rated.
pub fn preview(preview: &PreviewImprovementResponse) -> Value {
    let inputs = preview.inputs.iter().map(|input| {
        json!({
            "feedbackId": input.feedback_id,
            "input": input.input,
            "output": input.output,
            "ratedAs": name(
                RatingClass::try_from(input.rated_as).ok().map(|class| class.as_str_name()),
                input.rated_as,
            ),
            "corrected": input.corrected,
            "issues": input.issues,
            "previousPrompt": input.previous_prompt,
            "prompt": input.prompt,
            "previousRun": input.previous_run,
            "run": input.run,
            "runError": input.run_error,
        })
    });
    present(json!({
        "improvement": preview.improvement.as_ref().map(improvement),
        "inputs": inputs.collect::<Vec<_>>(),
        "wasRun": preview.was_run,
    }))
}

/// A prompt as it is sent to the AI.
pub fn rendered(rendered: &RenderPromptResponse) -> Value {
    json!({
        "text": rendered.text,
        "version": rendered.version,
        "settings": settings(&rendered.settings),
        "goodExamples": rendered.good_examples,
        "badExamples": rendered.bad_examples,
        "revision": rendered.revision,
    })
}

/// The ratings of a target.
pub fn output_stats(stats: &GetOutputStatsResponse) -> Value {
    let versions = stats.versions.iter().map(|version| {
        present(json!({
            "promptVersion": version.prompt_version,
            "good": version.good,
            "neutral": version.neutral,
            "bad": version.bad,
            "firstRatedAt": time(version.first_rated_at.as_ref()),
            "lastRatedAt": time(version.last_rated_at.as_ref()),
        }))
    });
    present(json!({
        "versions": versions.collect::<Vec<_>>(),
        "goodSinceProposal": stats.good_since_proposal,
        "neutralSinceProposal": stats.neutral_since_proposal,
        "badSinceProposal": stats.bad_since_proposal,
        "proposedAt": time(stats.proposed_at.as_ref()),
        "badMissing": stats.bad_missing,
        "canGenerate": stats.can_generate,
        "cannotReason": stats.cannot_reason,
        "openCandidateId": stats.open_candidate_id,
    }))
}

/// What a user knows and wants to learn.
pub fn profile(profile: &Profile) -> Value {
    present(json!({
        "namespace": profile.namespace,
        "userId": profile.user_id,
        "experienceYears": profile.experience_years,
        "specialties": profile.specialties,
        "knownTechnologies": profile.known_technologies,
        "learningGoals": profile.learning_goals,
        "etag": profile.etag,
        "revision": profile.revision,
    }))
}

/// What is kept of a suggested entry of a profile.
pub fn suggestion(suggestion: &Suggestion) -> Value {
    json!({
        "type": name(
            SuggestionType::try_from(suggestion.r#type).ok().map(|of| of.as_str_name()),
            suggestion.r#type,
        ),
        "reason": suggestion.reason,
        "sourceType": suggestion.source_type,
        "sourceId": suggestion.source_id,
        "confidence": suggestion.confidence,
    })
}
