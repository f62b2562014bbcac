//! Rows as a damaged database might return them.

use arbitrary::{Arbitrary, Unstructured};
use emend_proto::common::v1::{Correction, PhraseMapping, correction::Correction as Oneof};
use prost::Message as _;

use crate::{
    ports::Claimed,
    records::{feedback::Feedback, outbox::DeadLetter},
    rows::{ClaimedRow, DeadLetterRow, FeedbackRow, RatingColumns, accepted, feedback_id},
};

/// Makes rows from the bytes, most of their columns good, and parses them. Without any bytes, all columns are good.
pub fn row(bytes: &[u8]) {
    let mut columns = Unstructured::new(bytes);
    let row = feedback(&mut columns).expect("columns are made of anything");
    let claimed = claimed(&mut columns).expect("columns are made of anything");
    let dead = dead(&mut columns).expect("columns are made of anything");
    let order: i64 = columns.arbitrary().unwrap_or_default();
    let parsed = (
        Feedback::try_from(row),
        Claimed::try_from(claimed),
        DeadLetter::try_from(dead),
    );
    if bytes.is_empty() {
        assert!(
            parsed.0.is_ok() && parsed.1.is_ok() && parsed.2.is_ok(),
            "{parsed:?}"
        );
    }
    let rest = columns.take_rest();
    assert_eq!(feedback_id("feedback", order, rest).is_ok(), rest.len() == 16);
    // A time either round-trips or is refused.
    if let Ok(accepted) = accepted("feedback", 1, order) {
        assert_eq!(accepted.at.as_microsecond(), order);
    }
}

/// The good value, or, one time in eight, anything.
fn or<'a, T: Arbitrary<'a>>(columns: &mut Unstructured<'a>, good: T) -> arbitrary::Result<T> {
    if columns.int_in_range(0..=7)? == 7 {
        columns.arbitrary()
    } else {
        Ok(good)
    }
}

fn feedback(columns: &mut Unstructured<'_>) -> arbitrary::Result<FeedbackRow> {
    let correction = Correction {
        correction: Some(Oneof::PhraseMapping(PhraseMapping {
            phrase: or(columns, "set up a CSA".to_owned())?,
            verb: or(columns, "create_csa".to_owned())?,
        })),
    };
    Ok(FeedbackRow {
        accept_order: or(columns, 7)?,
        feedback_id: or(columns, vec![1; 16])?,
        namespace: or(columns, "fund-admin".to_owned())?,
        caller: or(columns, "anonymous".to_owned())?,
        request_id: or(columns, "a-1".to_owned())?,
        scope: or(columns, 1)?,
        correction: or(columns, correction.encode_to_vec())?,
        received_at: or(columns, 1_700_000_000_000_000)?,
        reporter_id: or(columns, "jane".to_owned())?,
        session_id: or(columns, String::new())?,
        client: or(columns, "search/1".to_owned())?,
        client_key: or(columns, String::new())?,
        query_id: or(columns, String::new())?,
        reason: or(columns, "because".to_owned())?,
        context: or(columns, r#"{"topic":"derivatives"}"#.to_owned())?,
        retract_reason: or(columns, String::new())?,
        rated: or(columns, Vec::new())?,
        delivery_state: or(columns, 1)?,
        outcome: or(columns, None)?,
        retracted_at: or(columns, None)?,
        redacted_at: or(columns, None)?,
        voter: or(columns, None)?,
        identified: or(columns, None)?,
        rating: RatingColumns {
            context_state: or(columns, Some(1))?,
            query_type: or(columns, Some("SEMANTIC".to_owned()))?,
            embedding_version: or(columns, Some("e5".to_owned()))?,
            index_version: or(columns, Some("7".to_owned()))?,
            variant: or(columns, Some(String::new()))?,
            known_at_once: or(columns, Some(0))?,
            tags: or(columns, Some(" low_recall ".to_owned()))?,
            processed: or(columns, Some(0))?,
            replaced_by: or(columns, None)?,
            query: or(columns, Some(Vec::new()))?,
        },
    })
}

fn claimed(columns: &mut Unstructured<'_>) -> arbitrary::Result<ClaimedRow> {
    Ok(ClaimedRow {
        event_id: or(columns, vec![2; 16])?,
        accept_order: or(columns, 7)?,
        event_number: or(columns, 8)?,
        occurred_at: or(columns, 1_700_000_000_000_000)?,
        attempts: or(columns, 1)?,
        payload: or(columns, vec![3; 3])?,
    })
}

fn dead(columns: &mut Unstructured<'_>) -> arbitrary::Result<DeadLetterRow> {
    Ok(DeadLetterRow {
        event_id: or(columns, vec![2; 16])?,
        feedback_id: or(columns, vec![1; 16])?,
        namespace: or(columns, "fund-admin".to_owned())?,
        attempts: or(columns, 12)?,
        code: or(columns, 3)?,
        error: or(columns, "refused".to_owned())?,
        dead_at: or(columns, 1_700_000_000_000_000)?,
    })
}
