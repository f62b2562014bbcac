//! Candidates as text for people: tables, and the details of one.

use std::fmt::Write as _;

use emend_proto::learning::v1::{Candidate, GetCandidateResponse, Proposal, Suggestion};

use crate::{
    commands::outputs::{improvement_text, suggests},
    output::{Cell, Column, Table, counted},
    view, words,
};

/// A candidate in short: `set up a CSA → create_isda`, and whose it is if it is one user's own.
pub(super) fn subject(candidate: &Candidate) -> Cell {
    let user_id = candidate.key.as_ref().map_or("", |key| &key.user_id);
    view::value_cell(candidate.value.as_ref(), &view::for_user(user_id))
}

/// A row for each.
pub(super) fn table(candidates: &[Candidate]) -> Table {
    Table::new([
        ("CANDIDATE", Column::Id),
        ("WHAT", Column::Text),
        ("STATUS", Column::Fixed),
        ("VOTERS", Column::Number),
        ("NET", Column::Number),
        ("THRESHOLD", Column::Number),
    ])
    .with_rows(candidates, |candidate| {
        [
            candidate.candidate_id.clone().into(),
            subject(candidate),
            words::status_name(candidate.status).into(),
            candidate.reporter_count.to_string().into(),
            net(candidate).into(),
            candidate.threshold.to_string().into(),
        ]
    })
}

/// The votes for a candidate less those for its strongest rival; where it has none there is nothing to weigh.
fn net(candidate: &Candidate) -> String {
    match candidate.reporter_count {
        0 => "–".into(),
        _ => candidate.net_confirmations.to_string(),
    }
}

/// One candidate with its votes, rivals, feedback and history.
pub(super) fn details_text(details: &GetCandidateResponse, width: usize, coloured: bool) -> String {
    let candidate = details.candidate.clone().unwrap_or_default();
    let key = candidate.key.clone().unwrap_or_default();
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{name:<11} {value}");
        }
    };
    line("candidate", &candidate.candidate_id);
    line("what", &view::value_pair(candidate.value.as_ref()));
    line("kind", &words::kind_name(key.kind));
    line("user", &key.user_id);
    let reason = match candidate.status_reason.as_str() {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    line(
        "status",
        &format!("{}{reason}", words::status_name(candidate.status)),
    );
    line("risk", &words::risk_name(candidate.risk_level));
    if let Some(proposal) = &candidate.proposal {
        proposal_lines(proposal, &mut line);
    } else {
        line("votes", &votes_text(&candidate));
    }
    if let Some(suggestion) = &details.suggestion {
        suggestion_lines(suggestion, &mut line);
    }
    if candidate.contest_pinned {
        line(
            "pinned",
            "a person set the applied value; votes do not replace it",
        );
    }
    if let Some(actor) = &candidate.decided_by {
        line(
            "decided by",
            format!("{} {}", actor.caller, actor.on_behalf_of).trim(),
        );
    }
    line("reason", &candidate.decision_reason);
    if let Some(first) = &candidate.first_approval {
        let actor = first.actor.clone().unwrap_or_default();
        line(
            "approved by",
            &format!("{}; another reviewer has to, too", view::actor(&actor)),
        );
    }
    if let Some(question) = &candidate.second_opinion {
        let asker = question.actor.clone().unwrap_or_default();
        let whom = if question.asked.is_empty() {
            "anybody else"
        } else {
            &question.asked
        };
        line("asked", &format!("{} asks {whom}", view::actor(&asker)));
    }
    if let Some(lease) = &candidate.lease {
        line("open", &view::actor(&lease.actor.clone().unwrap_or_default()));
    }
    line("edited from", &candidate.edited_from);
    if candidate.applied_revision > 0 {
        line("applied at", &format!("revision {}", candidate.applied_revision));
    }
    line("proposed", &view::short_time(candidate.created_at.as_ref()));
    line("etag", &candidate.etag);
    if let Some(improvement) = &details.improvement {
        text += "\nImprovement\n";
        text += &improvement_text(improvement, coloured);
    }
    for (heading, table) in [
        (
            "Rivals",
            (!details.rivals.is_empty()).then(|| table(&details.rivals)),
        ),
        ("Votes", votes(details)),
        ("Feedback", feedback(details)),
        ("Comments", comments(details)),
        ("History", history(details)),
    ] {
        if let Some(table) = table {
            let _ = write!(text, "\n{heading}\n{}", table.render(width));
        }
    }
    text
}

fn votes_text(candidate: &Candidate) -> String {
    if candidate.reporter_count == 0 {
        return match candidate.confirmations_needed {
            0 => "none".to_owned(),
            needed => format!("none; it takes {needed} to apply it without a person"),
        };
    }
    format!(
        "{}, proposed {}; net confirmations: {} of {}, {} missing",
        counted(candidate.reporter_count, "voter", "voters"),
        counted(candidate.occurrence_count, "time", "times"),
        candidate.net_confirmations,
        candidate.threshold,
        candidate.confirmations_needed,
    )
}

fn proposal_lines(proposal: &Proposal, line: &mut impl FnMut(&str, &str)) {
    let made_for = match proposal.base_version {
        0 => "no version was current".to_owned(),
        version => format!("made for version {version}"),
    };
    line("version", &format!("{} ({made_for})", proposal.version));
    if proposal.redacted_count > 0 {
        line(
            "redacted",
            &format!(
                "{} of the ratings that it was made of; approve it with --accept-redacted",
                proposal.redacted_count
            ),
        );
    }
    for (name, at) in [
        ("approved", &proposal.approved_at),
        ("rejected", &proposal.rejected_at),
    ] {
        if at.is_some() {
            line(name, &view::short_time(at.as_ref()));
        }
    }
}

fn suggestion_lines(suggestion: &Suggestion, line: &mut impl FnMut(&str, &str)) {
    line("suggests", &suggests(suggestion));
    line("why", &suggestion.reason);
    line(
        "from",
        &format!("{} {}", suggestion.source_type, suggestion.source_id),
    );
}

fn votes(details: &GetCandidateResponse) -> Option<Table> {
    let columns = [
        ("REPORTER", Column::Text),
        ("CALLER", Column::Text),
        ("FEEDBACK", Column::Id),
        ("AT", Column::Time),
    ];
    (!details.votes.is_empty()).then(|| {
        Table::new(columns).with_rows(&details.votes, |vote| {
            [
                if vote.identified {
                    vote.reporter_id.clone()
                } else {
                    "(not named)".into()
                },
                vote.caller.clone(),
                vote.feedback_id.clone(),
                view::short_time(vote.received_at.as_ref()),
            ]
        })
    })
}

fn feedback(details: &GetCandidateResponse) -> Option<Table> {
    let columns = [
        ("FEEDBACK", Column::Id),
        ("SYSTEM CHOSE", Column::Text),
        ("REASON", Column::Text),
        ("", Column::Fixed),
    ];
    (!details.feedback.is_empty()).then(|| {
        Table::new(columns).with_rows(&details.feedback, |feedback| {
            [
                feedback.feedback_id.clone().into(),
                Cell::whole(feedback.system_choice.clone()),
                feedback.reason.clone().into(),
                if feedback.retracted { "retracted" } else { "" }
                    .to_owned()
                    .into(),
            ]
        })
    })
}

fn comments(details: &GetCandidateResponse) -> Option<Table> {
    let columns = [
        ("AT", Column::Time),
        ("BY", Column::Text),
        ("ASKS", Column::Text),
        ("COMMENT", Column::Text),
    ];
    (!details.comments.is_empty()).then(|| {
        Table::new(columns).with_rows(&details.comments, |comment| {
            let asks = match (comment.asks, &*comment.asked) {
                (false, _) => "",
                (true, "") => "anybody",
                (true, asked) => asked,
            };
            [
                view::short_time(comment.written_at.as_ref()),
                view::actor(&comment.actor.clone().unwrap_or_default()),
                asks.to_owned(),
                comment.comment.clone(),
            ]
        })
    })
}

fn history(details: &GetCandidateResponse) -> Option<Table> {
    let columns = [
        ("AT", Column::Time),
        ("FROM", Column::Fixed),
        ("TO", Column::Fixed),
        ("CAUSE", Column::Fixed),
        ("BY", Column::Text),
        ("REASON", Column::Text),
        ("REVISION", Column::Number),
    ];
    (!details.history.is_empty()).then(|| {
        Table::new(columns).with_rows(&details.history, |transition| {
            let actor = transition.actor.clone().unwrap_or_default();
            [
                view::short_time(transition.at.as_ref()),
                if transition.from == 0 {
                    "–".into()
                } else {
                    words::status_name(transition.from)
                },
                words::status_name(transition.to),
                words::cause_name(transition.cause),
                format!("{} {}", actor.caller, actor.on_behalf_of),
                transition.reason.clone(),
                if transition.revision == 0 {
                    String::new()
                } else {
                    transition.revision.to_string()
                },
            ]
        })
    })
}

#[cfg(test)]
mod tests {
    use emend_proto::common::v1::{ResourceKey, ResourceValue};

    use super::*;

    #[test]
    fn what_a_reporter_hid_in_a_phrase_is_shown_to_reviewers_as_escapes() {
        let candidate = Candidate {
            value: Some(ResourceValue {
                display: "pay\u{202E}\u{E0041} now".into(),
                ..ResourceValue::default()
            }),
            ..Candidate::default()
        };
        let shown = table(&[candidate]).render(100);
        assert!(shown.contains("pay\\u{202E}\\u{E0041} now"), "{shown}");
    }

    #[test]
    fn a_candidate_of_one_user_says_whose_it_is() {
        let mut candidate = Candidate {
            key: Some(ResourceKey::default()),
            value: Some(ResourceValue {
                display: "my pack".into(),
                ..ResourceValue::default()
            }),
            ..Candidate::default()
        };
        assert_eq!(subject(&candidate).text(), "my pack");
        candidate.key.get_or_insert_default().user_id = "mia".into();
        assert_eq!(subject(&candidate).text(), "my pack (for mia)");
    }

    #[test]
    fn a_candidate_without_votes_is_not_weighed_against_its_rivals() {
        let mut candidate = Candidate {
            net_confirmations: -1,
            threshold: 3,
            confirmations_needed: 4,
            ..Candidate::default()
        };
        assert_eq!(net(&candidate), "–");
        assert_eq!(
            votes_text(&candidate),
            "none; it takes 4 to apply it without a person"
        );
        candidate.confirmations_needed = 0;
        assert_eq!(votes_text(&candidate), "none");
        candidate.reporter_count = 1;
        assert_eq!(net(&candidate), "-1");
    }
}
