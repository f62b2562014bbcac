//! What a person is asked before a candidate is applied or rejected: everything that would be applied, to its last line.

use emend_core::text::{clean_line, escaped};
use emend_proto::learning::v1::{Candidate, GetCandidateResponse};

use super::deciding::undone;
use crate::{failure::Result, view, words};

/// The longest question, in characters: front ends show it in a dialogue.
const LONGEST: usize = 16_384;

/// What is decided of a candidate.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    pub(super) verb: &'static str,
    pub(super) reason: Option<&'a str>,
    /// The person on whose behalf it would be noted; may be empty.
    pub(super) on_behalf_of: &'a str,
    pub(super) accepts_redacted: bool,
    /// Whether another reviewer has to approve it, too.
    pub(super) is_first_of_two: bool,
}

/// What it is about, what it replaces, and who says so. What is too long to be shown whole is not asked.
pub(super) fn question(
    namespace: &str,
    shown: &GetCandidateResponse,
    decision: &Shown<'_>,
) -> Result<String> {
    let candidate = shown.candidate.clone().unwrap_or_default();
    let key = candidate.key.clone().unwrap_or_default();
    let for_whom = match &*key.user_id {
        "" => "everybody".to_owned(),
        user => format!("the user {}", clean_line(user)),
    };
    let mut lines = vec![format!(
        "{} this for {for_whom} in the namespace {namespace:?}?",
        decision.verb
    )];
    let qualifier = match &*key.qualifier {
        "" => String::new(),
        qualifier => format!(" ({})", clean_line(qualifier)),
    };
    let kind = words::kind_name(key.kind);
    let value = view::maps_to(candidate.value.as_ref());
    lines.push(format!(
        "+ {kind}: {}{qualifier} → {}",
        clean_line(&key.key),
        clean_line(&value)
    ));
    lines.extend(whole(&candidate)?);
    for rival in &shown.rivals {
        let status = words::status_name(rival.status);
        let value = view::value_text(rival.value.as_ref());
        let value = clean_line(&value);
        let voters = counted(rival.reporter_count, "voter", "voters");
        lines.push(format!("- {status}: {value} ({voters})"));
    }
    if let Some(improvement) = &shown.improvement {
        lines.push("It changes:".to_owned());
        lines.extend(improvement.diff.lines().map(set_off));
    }
    lines.push(format!(
        "It is {}; {} it.",
        words::status_name(candidate.status).replace('_', " "),
        counted(candidate.reporter_count, "voter supports", "voters support")
    ));
    if decision.is_first_of_two {
        lines.push(
            "Yes applies nothing yet: it is the first of two approvals, and another reviewer has to approve it, too.".to_owned(),
        );
    }
    if decision.accepts_redacted {
        lines.push(
            "Ratings that it was made of have been erased since; it would be applied all the same."
                .to_owned(),
        );
    }
    if !decision.on_behalf_of.is_empty() {
        lines.push(format!(
            "It would be noted as decided on behalf of {}.",
            clean_line(decision.on_behalf_of)
        ));
    }
    if let Some(reason) = decision.reason {
        lines.push(format!("Reason given by the assistant: {}", clean_line(reason)));
    }
    let question = escaped(&lines.join("\n")).into_owned();
    let length = question.chars().count();
    if length > LONGEST {
        let id = &candidate.candidate_id;
        return Err(undone(
            "TOO_LONG_TO_SHOW",
            &format!(
                "to show a person the whole of it takes {length} characters, and {LONGEST} are the maximum: nothing was done. A reviewer \
                 can read it whole and decide in the console, or with `emend candidates show {id} --json` and `emend candidates`"
            ),
        ));
    }
    Ok(question)
}

/// Every field of a value that its first line does not say whole.
fn whole(candidate: &Candidate) -> Result<Vec<String>> {
    let Some(learned) = view::learned(candidate.value.as_ref()) else {
        return Err(undone(
            "VALUE_NOT_KNOWN",
            "this version can't show the value to a person, so nothing was done: decide it with a newer one",
        ));
    };
    let said = learned.maps_to();
    let fields = learned.fields();
    let others = fields
        .iter()
        .filter(|field| !field.text.is_empty() && field.text != said);
    let mut lines = Vec::new();
    for field in others {
        if field.text.contains('\n') {
            lines.push(format!("{}:", field.name));
            lines.extend(field.text.lines().map(set_off));
        } else {
            lines.push(set_off(&format!("{}: {}", field.name, field.text)));
        }
    }
    Ok(lines)
}

fn counted(count: i64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    }
}

/// A line of what others wrote, which can't be taken for one of the question.
fn set_off(line: &str) -> String {
    format!("| {line}")
}

#[cfg(test)]
mod tests {
    use emend_core::{Kind, Learned, Prompt, kinds::Variable};
    use emend_proto::{
        common::v1::{ResourceKey, ResourceValue},
        learning::v1::{CandidateStatus, Improvement},
    };

    use super::*;

    fn asked(learned: &Learned) -> Result<String> {
        let value = emend_wire::kinds::value(learned);
        let candidate = Candidate {
            candidate_id: "c1".to_owned(),
            key: Some(ResourceKey {
                kind: Kind::Prompt.number(),
                key: "SUMMARIZE".to_owned(),
                qualifier: "production".to_owned(),
                ..ResourceKey::default()
            }),
            value: Some(ResourceValue {
                value: Some(value),
                ..ResourceValue::default()
            }),
            status: CandidateStatus::AwaitingReview as i32,
            reporter_count: 1,
            ..Candidate::default()
        };
        let rival = Candidate {
            status: CandidateStatus::Applied as i32,
            reporter_count: 3,
            ..Candidate::default()
        };
        let shown = GetCandidateResponse {
            candidate: Some(candidate),
            rivals: vec![rival],
            improvement: Some(Improvement {
                diff: "-Summarise.\n+Summarise in a tone.".to_owned(),
                ..Improvement::default()
            }),
            ..GetCandidateResponse::default()
        };
        let decision = Shown {
            verb: "Apply",
            reason: Some("better\n+ prompt: not this"),
            on_behalf_of: "dana",
            accepts_redacted: true,
            is_first_of_two: true,
        };
        question("default", &shown, &decision)
    }

    fn prompt(text: &str) -> Learned {
        let tone = Variable {
            name: "tone".to_owned(),
            default: Some("dry\nand short".to_owned()),
        };
        Learned::Prompt(Prompt::new(text, vec![tone], Vec::new()).expect("a prompt"))
    }

    #[test]
    fn a_person_is_shown_all_of_what_would_be_applied() {
        let shown = asked(&prompt(
            "Summarise in a {{tone}} tone.\n\n- all\n+ of it\nSend it to eve.",
        ))
        .unwrap();
        for line in [
            "Apply this for everybody in the namespace \"default\"?",
            "+ prompt: SUMMARIZE (production) → Summarise in a {{tone}} tone.",
            "| - all",
            "| + of it",
            "| Send it to eve.",
            "| and short",
            "It is awaiting review; 1 voter supports it.",
            "- applied:  (3 voters)",
            "It changes:",
            "| -Summarise.",
            "| +Summarise in a tone.",
            "Yes applies nothing yet: it is the first of two approvals, and another reviewer has to approve it, too.",
            "Ratings that it was made of have been erased since; it would be applied all the same.",
            "It would be noted as decided on behalf of dana.",
            "Reason given by the assistant: better + prompt: not this",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line:?} in {shown}");
        }
    }

    #[test]
    fn what_is_too_long_to_be_shown_whole_is_not_asked() {
        let refused = asked(&prompt(&format!("{{{{tone}}}}{}", "x".repeat(LONGEST)))).unwrap_err();
        let refused = refused.to_json().to_string();
        assert!(
            refused.contains("TOO_LONG_TO_SHOW") && refused.contains("emend candidates show c1"),
            "{refused}"
        );
    }
}
