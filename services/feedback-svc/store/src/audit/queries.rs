//! Whether recorded queries, what is counted of them and what was mined from them goes together.

use emend_core::normalize;
use emend_proto::{
    common::v1::correction::Correction,
    learning::v1::{Event, event},
};
use emend_store::{StoreError, audit::Findings};
use futures::StreamExt as _;
use prost::Message as _;

use crate::{
    audit::{AHEAD, DATED_AHEAD, MINED_REWORDING, QUERY_CLICK, QUERY_COUNT, QUERY_PARTS},
    records::mining::MIN_SESSIONS,
    rows::audit::{MinedRow, Wrong},
    sql::Reading,
};

/// Checks all of them.
pub(super) async fn check(reading: &mut Reading, findings: &mut Findings) -> Result<(), StoreError> {
    let mut queries = reading.queries();
    while let Some(query) = queries.next().await {
        findings.readable(query)?;
    }
    drop(queries);
    let mut interactions = reading.interactions();
    while let Some(interaction) = interactions.next().await {
        findings.readable(interaction)?;
    }
    drop(interactions);
    for (wrong, evidence) in reading.wrong_queries(AHEAD).await? {
        let (check, message) = match wrong {
            Wrong::Parts => (
                QUERY_PARTS,
                "the query, or its personal part, is without the other",
            ),
            Wrong::Day => (QUERY_COUNT, "fewer queries are counted than there are"),
            Wrong::Term => (
                QUERY_COUNT,
                "a term is counted in more queries than there were, or in none",
            ),
            Wrong::Click => (QUERY_CLICK, "whether it is a click is not what its action says"),
            Wrong::Ahead => (DATED_AHEAD, "it is dated more than an hour after now"),
        };
        findings.add(check, evidence, message);
    }
    let mut mined = reading.mined();
    while let Some(mined) = mined.next().await {
        let mined = mined?;
        if let Some(message) = wrong_with(&mined) {
            let evidence = format_args!("accept order {}", mined.accept_order);
            findings.add(MINED_REWORDING, evidence, message);
        }
    }
    Ok(())
}

fn wrong_with(mined: &MinedRow) -> Option<&'static str> {
    if mined.worked.is_empty() {
        let payload = mined.payload.as_deref()?;
        return (!tells(payload, mined)).then_some("its event does not tell of the query");
    }
    let wordings = [&mined.failed, &mined.worked];
    let is_normal = |wording: &&String| !wording.is_empty() && normalize(wording) == **wording;
    if mined.failed == mined.worked || !wordings.iter().all(is_normal) {
        return Some("it is no rewording in normal form");
    }
    let payload = mined.payload.as_deref()?;
    (!proposes(payload, mined)).then_some("its event does not propose it")
}

/// Whether the event tells of a query that found nothing.
fn tells(payload: &[u8], mined: &MinedRow) -> bool {
    let Ok(message) = Event::decode(payload) else {
        return false;
    };
    let Some(event::Event::Unanswered(query)) = message.event else {
        return false;
    };
    message.namespace == mined.namespace && normalize(&query.query_text) == mined.failed
}

/// Whether the event proposes that who searches for what failed shall find what worked.
fn proposes(payload: &[u8], mined: &MinedRow) -> bool {
    let Ok(message) = Event::decode(payload) else {
        return false;
    };
    let Some(event::Event::Mined(proposal)) = message.event else {
        return false;
    };
    let is_enough = usize::try_from(proposal.session_count).is_ok_and(|count| count >= MIN_SESSIONS);
    let correction = proposal.correction.and_then(|it| it.correction);
    let Some(Correction::Term(term)) = correction else {
        return false;
    };
    let [equivalent] = &term.equivalents[..] else {
        return false;
    };
    is_enough
        && message.namespace == mined.namespace
        && message.feedback_id.is_empty()
        && normalize(&term.term) == mined.worked
        && normalize(equivalent) == mined.failed
}
