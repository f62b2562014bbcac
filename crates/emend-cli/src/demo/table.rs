//! Prints the day in at most 80 columns, or as JSON lines.

use std::time::Duration;

use emend_base::lines::all_wrapped;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::{
    day::{StepResult, Summary},
    script::{Answer, Step},
};

/// How wide the story is, behind the time.
const STORY: usize = 73;
/// How wide a column of answers is.
const CHOICE: usize = 16;

/// The text above the steps.
pub(super) fn heading() -> String {
    format!(
        "A day in fund administration: two services, two search nodes, one stream.\n\n{}",
        line("NODE", "BEFORE", "AFTER", "COMMIT→", "SENT→")
    )
}

/// What one node answers, below the story.
fn line(node: &str, before: &str, after: &str, commit: &str, sent: &str) -> String {
    let [before, after] =
        [before, after].map(|text| format!("{text}{:1$}", "", CHOICE.saturating_sub(text.width())));
    format!("       {node:<6}  {before}  {after}  {commit:>7}  {sent:>6}")
        .trim_end()
        .to_owned()
}

/// A step: what happens, a line for each node, and what commands show.
pub(super) fn step(step: &Step, result: &StepResult) -> String {
    let story = wrapped(step.story, STORY);
    let mut lines: Vec<String> = story
        .iter()
        .enumerate()
        .map(|(row, story)| format!("{:<5}  {story}", if row == 0 { step.at } else { "" }))
        .collect();
    lines.extend(result.nodes.iter().map(|node| {
        line(
            node.node,
            &shown(&node.before),
            &shown(&node.after),
            &millis(node.since_commit),
            &millis(node.since_feedback),
        )
    }));
    let shown = all_wrapped(&result.shown.join("\n"), STORY);
    lines.extend(
        shown
            .lines()
            .map(|line| format!("       {line}").trim_end().to_owned()),
    );
    let deviations = result.deviations.iter();
    lines.extend(deviations.map(|deviation| format!("       NOT AS EXPECTED: {deviation}")));
    lines.join("\n")
}

/// A step as JSON.
pub(super) fn step_json(step: &Step, result: &StepResult) -> Value {
    let answer = |answer: &Answer| json!({"choice": answer.choice, "learned": answer.learned});
    let micros = |span: Option<Duration>| span.map(|span| span.as_secs_f64() * 1_000.0);
    let nodes: Vec<_> = result
        .nodes
        .iter()
        .map(|node| {
            json!({
                "node": node.node,
                "before": answer(&node.before),
                "after": answer(&node.after),
                "commitToAppliedMs": micros(node.since_commit),
                "feedbackToAppliedMs": micros(node.since_feedback),
            })
        })
        .collect();
    json!({
        "at": step.at,
        "story": step.story,
        "phrase": step.ask.phrase,
        "revision": result.revision,
        "shown": result.shown,
        "nodes": nodes,
        "expected": answer(&step.expect),
        "asExpected": result.deviations.is_empty(),
    })
}

/// The text below the steps.
pub(super) fn end(end: &Summary) -> String {
    let confidence = end.claim.confidence.unwrap_or_default();
    format!(
        "\n● learned   ○ the backend's own answer\n\
         COMMIT→   milliseconds from the commit of a change to the node's answer with it\n\
         SENT→     the same from the receipt of its correction; –: there was none\n\n\
         The claim “{}” has {} pages for it (independent\n\
         sources: {}) and {} against it.\n\
         That is a confidence of {:.3} ± {:.3}, whoever is trusted or blocked.\n\n\
         Both nodes and the database are at revision {}, with {} resources,\n\
         and their digests agree.",
        end.claim.text,
        confidence.supporting_count,
        confidence.independent_sources,
        confidence.refuting_count,
        confidence.confidence,
        confidence.uncertainty,
        end.revision,
        end.resources
    )
}

fn shown(answer: &Answer) -> String {
    format!("{} {}", answer.choice, if answer.learned { '●' } else { '○' })
}

fn millis(span: Option<Duration>) -> String {
    span.map_or_else(
        || "–".into(),
        |span| {
            let millis = span.as_secs_f64() * 1_000.0;
            if millis < 1_000.0 {
                format!("{millis:.1}")
            } else {
                format!("{millis:.0}")
            }
        },
    )
}

/// Breaks a text at spaces into lines of at most `width` columns.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last().map_or(0, |line| line.width());
        if last > 0 && last + 1 + word.width() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{
        day::{NODES, NodeResult},
        script,
    };

    #[test]
    fn every_step_fits_into_eighty_columns() {
        for step in script::day() {
            let nodes = NODES
                .into_iter()
                .map(|node| NodeResult {
                    node,
                    before: step.expect.clone(),
                    after: step.expect.clone(),
                    since_commit: Some(Duration::from_millis(1_234)),
                    since_feedback: Some(Duration::from_millis(12_345)),
                })
                .collect();
            let result = StepResult {
                nodes,
                revision: Some(1),
                shown: vec![],
                deviations: vec![],
            };
            let text = super::step(&step, &result);
            assert!(text.lines().all(|line| line.width() <= 80), "{text}");
            assert_eq!(
                text.lines().count(),
                2 + wrapped(step.story, STORY).len(),
                "{text}"
            );
        }
        assert!(heading().lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn a_story_is_wrapped_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("onetwothree four", 7), ["onetwothree", "four"]);
        assert_eq!(wrapped("一つ 二つ", 7), ["一つ", "二つ"]);
    }

    #[test]
    fn the_backend_has_an_answer_to_every_question() {
        for step in script::day() {
            let own = script::backend(step.ask).len();
            let is_a_choice = step.ask.kind.rules().is_answer;
            assert!(own > usize::from(is_a_choice), "{}", step.story);
        }
    }
}
