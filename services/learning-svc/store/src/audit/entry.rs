//! Whether the parts of what is stored about one feedback agree.

use emend_core::EventId;
use emend_store::audit::Findings;

use super::{BALLOT_DETAILS, BALLOT_RETRACTED, EFFECT_INBOX, INBOX_EFFECT, RATING_EXCLUDED};
use crate::audit::stored::Entry;
use crate::contests::imported_vote_id;

/// Whether a feedback is a vote cast by an import: its id says so, and no event brought it. feedback-svc does not know it.
pub fn is_imported(entry: &Entry) -> bool {
    entry.events.is_empty()
        && matches!(&*entry.ballots, [ballot] if {
            let cast = &ballot.ballot;
            entry.feedback == imported_vote_id(&cast.caller, ballot.contest, cast.candidate)
        })
}

/// Checks that the parts of what is stored about a feedback agree.
pub fn check_entry(entry: &Entry, findings: &mut Findings) {
    let id = format!("feedback {}", entry.feedback);
    for ballot in &entry.ballots {
        if ballot.retracted != entry.retraction.is_some() {
            let message = if ballot.retracted {
                "its ballot does not count, but it is not marked as retracted"
            } else {
                "it is marked as retracted, but its ballot counts"
            };
            findings.add(BALLOT_RETRACTED, &id, message);
        }
    }
    if !entry.ballots.is_empty() {
        if entry.details == entry.redaction.is_some() {
            let message = if entry.details {
                "its personal parts were to be erased, but still exist"
            } else {
                "its personal parts are missing, but were never erased"
            };
            findings.add(BALLOT_DETAILS, &id, message);
        }
    } else if entry.details {
        findings.add(BALLOT_DETAILS, &id, "it has personal parts, but no ballot");
    }
    let is_excluded = entry.rating.as_ref().is_none_or(|rating| rating.excluded);
    if !is_excluded && (entry.retraction.is_some() || entry.redaction.is_some()) {
        findings.add(
            RATING_EXCLUDED,
            &id,
            "it is marked as retracted or redacted, but its rating counts",
        );
    }
    let applied =
        |mark: Option<EventId>| mark.is_none_or(|mark| entry.events.iter().any(|event| event.id == mark));
    let marks = usize::from(entry.retraction.is_some()) + usize::from(entry.redaction.is_some());
    if !applied(entry.retraction) || !applied(entry.redaction) {
        findings.add(
            EFFECT_INBOX,
            &id,
            "the event of its retraction or redaction is not in the inbox",
        );
    } else if !entry.ballots.is_empty() && entry.events.len() <= marks && !is_imported(entry) {
        findings.add(EFFECT_INBOX, &id, "the event of its ballot is not in the inbox");
    } else if entry.rating.is_some() && entry.events.len() <= marks {
        findings.add(EFFECT_INBOX, &id, "the event of its rating is not in the inbox");
    }
    let has_effect = !entry.ballots.is_empty() || entry.rating.is_some();
    if !entry.events.is_empty() && !has_effect && marks == 0 && entry.refused() == 0 {
        findings.add(
            INBOX_EFFECT,
            &id,
            "one of its events was applied, but had no effect",
        );
    }
}
