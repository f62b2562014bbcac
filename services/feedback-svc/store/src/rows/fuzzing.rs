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

fn feedback(of: &mut Unstructured<'_>) -> arbitrary::Result<FeedbackRow> {
    let correction = Correction {
        correction: Some(Oneof::PhraseMapping(PhraseMapping {
            phrase: or(of, "set up a CSA".to_owned())?,
            verb: or(of, "create_csa".to_owned())?,
        })),
    };
    Ok(FeedbackRow {
        accept_order: or(of, 7)?,
        feedback_id: or(of, vec![1; 16])?,
        namespace: or(of, "fund-admin".to_owned())?,
        caller: or(of, "anonymous".to_owned())?,
        request_id: or(of, "a-1".to_owned())?,
        scope: or(of, 1)?,
        correction: or(of, correction.encode_to_vec())?,
        received_at: or(of, 1_700_000_000_000_000)?,
        reporter_id: or(of, "jane".to_owned())?,
        session_id: or(of, String::new())?,
        client: or(of, "search/1".to_owned())?,
        client_key: or(of, String::new())?,
        query_id: or(of, String::new())?,
        reason: or(of, "because".to_owned())?,
        context: or(of, r#"{"topic":"derivatives"}"#.to_owned())?,
        retract_reason: or(of, String::new())?,
        rated: or(of, Vec::new())?,
        delivery_state: or(of, 1)?,
        outcome: or(of, None)?,
        retracted_at: or(of, None)?,
        redacted_at: or(of, None)?,
        voter: or(of, None)?,
        identified: or(of, None)?,
        rating: RatingColumns {
            context_state: or(of, Some(1))?,
            query_type: or(of, Some("SEMANTIC".to_owned()))?,
            embedding_version: or(of, Some("e5".to_owned()))?,
            index_version: or(of, Some("7".to_owned()))?,
            variant: or(of, Some(String::new()))?,
            known_at_once: or(of, Some(0))?,
            tags: or(of, Some(" low_recall ".to_owned()))?,
            processed: or(of, Some(0))?,
            replaced_by: or(of, None)?,
            query: or(of, Some(Vec::new()))?,
        },
    })
}

fn claimed(of: &mut Unstructured<'_>) -> arbitrary::Result<ClaimedRow> {
    Ok(ClaimedRow {
        event_id: or(of, vec![2; 16])?,
        accept_order: or(of, 7)?,
        event_number: or(of, 8)?,
        occurred_at: or(of, 1_700_000_000_000_000)?,
        attempts: or(of, 1)?,
        payload: or(of, vec![3; 3])?,
    })
}

fn dead(of: &mut Unstructured<'_>) -> arbitrary::Result<DeadLetterRow> {
    Ok(DeadLetterRow {
        event_id: or(of, vec![2; 16])?,
        feedback_id: or(of, vec![1; 16])?,
        namespace: or(of, "fund-admin".to_owned())?,
        attempts: or(of, 12)?,
        code: or(of, 3)?,
        error: or(of, "refused".to_owned())?,
        dead_at: or(of, 1_700_000_000_000_000)?,
    })
}
