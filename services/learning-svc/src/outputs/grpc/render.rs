//! Renders prompts and what is said of them as messages.

use std::time::Duration;

use emend_core::text::cut;
use emend_proto::learning::v1 as pb;
use emend_wire::{outputs::settings, render};
use learning_store::outputs::improvements::{VersionRecord, VersionStats};
use prost::Message as _;
use similar::TextDiff;

use crate::{
    grpc::{
        candidates::{candidate, transition},
        render::small,
    },
    outputs::{
        preview::{Preview, Previewed},
        rendered::Rendered,
        stats::OutputStats,
        versions::Improvement,
    },
};

/// Lines around a change.
const CONTEXT: usize = 3;
/// How long is sought for a shorter diff.
const PATIENCE: Duration = Duration::from_millis(100);
/// The most bytes of a preview: it fits a message.
const MAX_BYTES: usize = 3 * 1024 * 1024;
/// The most characters that a preview shows of what was rated, and of a prompt with it.
const PREVIEWED_CHARS: usize = 32_768;

pub(crate) fn rendered(rendered: Rendered) -> pb::RenderPromptResponse {
    pb::RenderPromptResponse {
        text: rendered.text,
        version: small(rendered.prompt.version),
        settings: settings(&rendered.prompt),
        good_examples: count(rendered.examples.0),
        bad_examples: count(rendered.examples.1),
        revision: rendered.revision,
    }
}

pub(crate) fn stats(stats: OutputStats) -> pb::GetOutputStatsResponse {
    pb::GetOutputStatsResponse {
        versions: stats.versions.into_iter().map(version_stats).collect(),
        good_since_proposal: many(stats.since.good),
        neutral_since_proposal: many(stats.since.neutral),
        bad_since_proposal: many(stats.since.bad),
        proposed_at: stats.proposed_at.map(render::timestamp),
        bad_missing: i32::try_from(stats.missing).unwrap_or(i32::MAX),
        can_generate: stats.hindrance.is_none(),
        cannot_reason: stats.hindrance.unwrap_or_default().to_owned(),
        open_candidate_id: stats.open.map(|id| id.to_string()).unwrap_or_default(),
        current_version: small(stats.current),
        good_counted: many(stats.counted.good),
        neutral_counted: many(stats.counted.neutral),
        bad_counted: many(stats.counted.bad),
    }
}

fn version_stats(stats: VersionStats) -> pb::OutputVersionStats {
    pb::OutputVersionStats {
        prompt_version: stats.prompt_version,
        good: many(stats.counts.good),
        neutral: many(stats.counts.neutral),
        bad: many(stats.counts.bad),
        first_rated_at: Some(render::timestamp(stats.first)),
        last_rated_at: Some(render::timestamp(stats.last)),
    }
}

/// A version, and how many of the ratings that it was made of have been redacted.
pub(crate) fn version((version, redacted): &(VersionRecord, u64)) -> pb::PromptVersion {
    pb::PromptVersion {
        candidate: Some(candidate(&version.record)),
        labels: version.labels.clone(),
        redacted_count: i32::try_from(*redacted).unwrap_or(i32::MAX),
        history: version
            .history
            .iter()
            .map(|(label, decided)| pb::PromptDecision {
                label: label.clone(),
                transition: Some(transition(decided.clone())),
            })
            .collect(),
    }
}

pub(crate) fn improvement(of: Improvement) -> pb::Improvement {
    let counts = of.record.counts;
    let class = |count: u64| i32::try_from(count).unwrap_or(i32::MAX);
    pb::Improvement {
        diff: diff(&of.previous_text, &of.text),
        label: of.label,
        previous_text: of.previous_text,
        text: of.text,
        rating_count: class(counts.good + counts.neutral + counts.bad),
        good_count: class(counts.good),
        neutral_count: class(counts.neutral),
        bad_count: class(counts.bad),
        reason: of.record.reason,
        generator: of.record.generator,
        redacted_count: class(of.record.redacted),
    }
}

fn diff(previous: &str, text: &str) -> String {
    TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(previous, text)
        .unified_diff()
        .context_radius(CONTEXT)
        .to_string()
}

/// A preview; inputs are dropped from its end until it fits a message.
pub(crate) fn preview(preview: Preview) -> pb::PreviewImprovementResponse {
    let mut response = pb::PreviewImprovementResponse {
        improvement: preview.improvement.map(improvement),
        inputs: preview.inputs.into_iter().map(previewed).collect(),
        was_run: preview.was_run,
    };
    while response.encoded_len() > MAX_BYTES && response.inputs.pop().is_some() {}
    response
}

fn previewed(previewed: Previewed) -> pb::PreviewedInput {
    let Previewed {
        rated,
        prompts: [mut previous_prompt, mut prompt],
        runs,
    } = previewed;
    let mut texts = rated.texts;
    for text in [
        &mut texts.input,
        &mut texts.output,
        &mut texts.corrected,
        &mut previous_prompt,
        &mut prompt,
    ] {
        cut(text, PREVIEWED_CHARS);
    }
    let corrected = if texts.corrected.is_empty() {
        texts.judgement
    } else {
        texts.corrected
    };
    let mut message = pb::PreviewedInput {
        feedback_id: rated.feedback.to_string(),
        input: texts.input,
        output: texts.output,
        rated_as: rated.class.number(),
        corrected,
        issues: texts.issues,
        previous_prompt,
        prompt,
        ..pb::PreviewedInput::default()
    };
    let [previous, new] = runs.unwrap_or_else(|| [Ok(String::new()), Ok(String::new())]);
    for (run, made) in [(previous, &mut message.previous_run), (new, &mut message.run)] {
        match run {
            Ok(text) => *made = text,
            Err(why) => message.run_error = why,
        }
    }
    message
}

fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn many(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
