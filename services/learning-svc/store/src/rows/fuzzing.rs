//! Rows as a damaged database might return them.

use arbitrary::{Arbitrary, Result, Unstructured};
use emend_core::{Kind, Learned, ResourceKey, ResourceValue, evidence::Evidence};

use super::{CountRow, KeyRow};
use crate::{
    codes,
    contests::rows::{
        BallotRow, CandidateRecordRow, CandidateRow, ContestRow, FeedbackRow, KnownBallotRow, ResourceRow,
        TransitionRow,
    },
    evidence::{
        listing_rows::{EventRow, FragmentRow, PageRow, ReviewRow},
        rows::{ClaimRow, EdgeRow},
    },
    ingest::rows::SeenRow,
    log::rows::{ChangeRow, RevisionRow, WrittenChangeRow},
    policies::rows::PolicyRow,
};

const ID: u128 = 0x0192_d3c5_7a0e_7b51_9c55_3d5f_0a4e_8f10;
const AT: i64 = 1_700_000_000_000_000;

/// Makes a row of the bytes, most of its columns good, and parses it; the first byte chooses the table. With no further
/// bytes, all columns are good.
pub fn row(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    let mut columns = Unstructured::new(bytes);
    let parsed = parsed(*which, &mut columns).expect("columns are made of anything");
    assert!(!bytes.is_empty() || parsed, "a row of table {which} is good");
}

/// Whether it could be parsed.
fn parsed(which: u8, of: &mut Unstructured<'_>) -> Result<bool> {
    Ok(match which % 20 {
        0 => candidate(of)?.parse().is_ok(),
        1 => candidate_record(of)?.parse().is_ok(),
        2 => {
            let row = ballot(of)?;
            row.parse().is_ok()
        }
        3 => {
            let key = key(of)?;
            let row = KnownBallotRow {
                ballot: ballot(of)?,
                retracted: or(of, 0)?,
                contest_id: key.contest_id,
                namespace: key.namespace,
                kind: key.kind,
                key: key.key,
                qualifier: key.qualifier,
                user_id: key.user_id,
            };
            row.parse().is_ok()
        }
        4 => contest(of)?.parse().is_ok(),
        5 => policy(of)?.parse().is_ok(),
        6 => {
            let row = ResourceRow {
                contest: or(of, 3)?,
                revision: or(of, 7)?,
                value: Some(value(of)?),
                committed_at: or(of, AT)?,
            };
            row.parse().is_ok()
        }
        7 => {
            let row = CountRow {
                namespace: text(of, "fund-admin")?,
                kind: or(of, 1)?,
                count: or(of, 9)?,
            };
            row.parse().is_ok()
        }
        8 => feedback(of)?.parse().is_ok(),
        9 => transition(of)?.parse().is_ok(),
        10 => revision(of)?.parse().is_ok(),
        11 => change(of)?.parse().is_ok(),
        12 => {
            let row = WrittenChangeRow {
                key: key(of)?,
                before_value: Some(value(of)?),
                newest: or(of, 8)?,
                newest_operation: Some(id(of, ID)?),
                cause: or(of, 3)?,
            };
            row.parse().is_ok()
        }
        13 => {
            let row = SeenRow {
                what: or(of, 1)?,
                id: id(of, ID)?,
                outcome: or(of, None)?,
                roles: text(of, "reviewer,operator")?,
            };
            row.event().is_ok() & row.feedback().is_ok() & row.roles().is_ok()
        }
        14 => event(of)?.parse().is_ok(),
        15 => {
            let row = ReviewRow {
                predicted: or(of, 1)?,
                ruled: or(of, 2)?,
                edges: or(of, 3)?,
            };
            row.parse().is_ok()
        }
        16 => page(of)?.parse().is_ok(),
        17 => {
            let row = FragmentRow {
                fragment_id: text(of, "f1")?,
                page_id: or(of, Some("p1".to_owned()))?,
                text: text(of, "what it says")?,
            };
            row.parse().is_ok()
        }
        18 => {
            let sources = or(of, 2)?;
            claim(of)?.parse(Evidence::default(), sources).is_ok()
        }
        _ => edge(of)?.parse().is_ok(),
    })
}

/// The good value, or, one time in eight, anything.
fn or<'a, T: Arbitrary<'a>>(columns: &mut Unstructured<'a>, good: T) -> Result<T> {
    if columns.int_in_range(0..=7)? == 7 {
        columns.arbitrary()
    } else {
        Ok(good)
    }
}

fn text(columns: &mut Unstructured<'_>, good: &str) -> Result<String> {
    or(columns, good.to_owned())
}

fn id(columns: &mut Unstructured<'_>, good: u128) -> Result<Vec<u8>> {
    or(columns, good.to_be_bytes().to_vec())
}

fn value(columns: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let good = ResourceValue::new("Set up a CSA", Learned::Verb("create_csa".to_owned()));
    or(columns, emend_wire::value::encode(&good).to_vec())
}

fn key(of: &mut Unstructured<'_>) -> Result<KeyRow> {
    let (key, user_id) = (text(of, "set up a csa")?, text(of, "")?);
    // The id that the key gives, so that not every changed key is rejected for its id.
    let id = ResourceKey::parse("fund-admin", Some(Kind::InvocationPhrase), &key, "", &user_id)
        .map_or(ID, |key| key.contest_id().0.as_u128());
    Ok(KeyRow {
        contest_id: self::id(of, id)?,
        namespace: text(of, "fund-admin")?,
        kind: or(of, 1)?,
        key,
        qualifier: text(of, "")?,
        user_id,
    })
}

fn contest(of: &mut Unstructured<'_>) -> Result<ContestRow> {
    Ok(ContestRow {
        contest: or(of, 3)?,
        key: key(of)?,
        pinned: or(of, 0)?,
        highest_accept_order: or(of, 5)?,
        policy_version: or(of, 0)?,
        pending: or(of, 1)?,
        target_known: or(of, 1)?,
        current_version: or(of, 0)?,
        last_version: or(of, 0)?,
        locked_at: or(of, AT)?,
    })
}

fn candidate(of: &mut Unstructured<'_>) -> Result<CandidateRow> {
    Ok(CandidateRow {
        candidate: or(of, 4)?,
        candidate_id: id(of, ID)?,
        contest: or(of, 3)?,
        value: Some(value(of)?),
        status: of.int_in_range(1..=6)?,
        status_reason: text(of, codes::reason(None))?,
        origin: or(of, 1)?,
        edited_from: or(of, None)?,
        hold: text(of, codes::hold(None))?,
        decision_reason: text(of, "")?,
        decided_caller: text(of, "system")?,
        decided_for: text(of, "")?,
        occurrences: or(of, 3)?,
        reporters: or(of, 2)?,
        net: or(of, 1)?,
        risk: or(of, 2)?,
        threshold: or(of, 3)?,
        policy_version: or(of, 0)?,
        applied_threshold: or(of, 0)?,
        applied_revision: or(of, 0)?,
        ruling_order: or(of, 0)?,
        ruling_roles: text(of, "reviewer")?,
        ruling_approved: or(of, 0)?,
        ruling_taken_back: or(of, 0)?,
        proposal_version: or(of, 0)?,
        proposal_base: or(of, 0)?,
        proposal_verdict: or(of, 1)?,
        proposal_decided_at: or(of, 0)?,
        created_at: or(of, AT)?,
        updated_at: or(of, AT)?,
        transitions: or(of, 1)?,
        version: or(of, 1)?,
    })
}

fn candidate_record(of: &mut Unstructured<'_>) -> Result<CandidateRecordRow> {
    let key = key(of)?;
    Ok(CandidateRecordRow {
        candidate: candidate(of)?,
        contest_id: key.contest_id,
        namespace: key.namespace,
        kind: key.kind,
        key: key.key,
        qualifier: key.qualifier,
        user_id: key.user_id,
        pinned: or(of, 0)?,
    })
}

fn ballot(of: &mut Unstructured<'_>) -> Result<BallotRow> {
    Ok(BallotRow {
        feedback_id: id(of, ID)?,
        contest: or(of, 3)?,
        candidate_id: id(of, ID)?,
        accept_order: or(of, 5)?,
        voter: id(of, ID)?,
        identified: or(of, 1)?,
        caller: text(of, "anonymous")?,
        received_at: or(of, AT)?,
    })
}

fn policy(of: &mut Unstructured<'_>) -> Result<PolicyRow> {
    Ok(PolicyRow {
        namespace: text(of, "fund-admin")?,
        kind: or(of, 1)?,
        version: or(of, 4)?,
        risk: or(of, 2)?,
        threshold: or(of, 3)?,
        counting: or(of, 1)?,
        half_life: or(of, 86_400)?,
        max_derived_voters: or(of, 1)?,
        max_resources: or(of, 1_000)?,
        max_value_bytes: or(of, 1_000)?,
        max_counted_feedback: or(of, 1_000)?,
        entitled: or(of, 2)?,
        window_good: or(of, 5)?,
        window_bad: or(of, 3)?,
        window_max_text_chars: or(of, 2_000)?,
        window_language: or(of, 1)?,
        review_min_bad: or(of, 3)?,
        review_automatic: or(of, 0)?,
        frozen: or(of, 0)?,
        updated_at: or(of, AT)?,
    })
}

fn feedback(of: &mut Unstructured<'_>) -> Result<FeedbackRow> {
    Ok(FeedbackRow {
        feedback_id: id(of, ID)?,
        system_choice: text(of, "")?,
        received_at: or(of, AT)?,
        retracted: or(of, 0)?,
        reason: or(of, None)?,
        context: or(of, Some(r#"{"topic":"derivatives"}"#.to_owned()))?,
        query_id: or(of, None)?,
    })
}

fn transition(of: &mut Unstructured<'_>) -> Result<TransitionRow> {
    Ok(TransitionRow {
        candidate_id: id(of, ID)?,
        sequence: or(of, 1)?,
        from_status: or(of, 0)?,
        to_status: or(of, 1)?,
        cause: or(of, 1)?,
        reason: text(of, "")?,
        caller: text(of, "system")?,
        on_behalf_of: text(of, "")?,
        made_at: or(of, AT)?,
        revision: or(of, 0)?,
        policy_version: or(of, 0)?,
    })
}

fn revision(of: &mut Unstructured<'_>) -> Result<RevisionRow> {
    Ok(RevisionRow {
        revision: or(of, 7)?,
        operation_id: or(of, None)?,
        cause: or(of, 1)?,
        caller: text(of, "system")?,
        on_behalf_of: text(of, "")?,
        reason: text(of, "")?,
        committed_at: or(of, AT)?,
    })
}

fn change(of: &mut Unstructured<'_>) -> Result<ChangeRow> {
    Ok(ChangeRow {
        key: key(of)?,
        revision: or(of, 7)?,
        value: Some(value(of)?),
        value_checksum: or(of, 7)?,
        before_value: or(of, None)?,
        candidate_id: or(of, None)?,
        feedback_id: or(of, None)?,
        policy_version: or(of, 0)?,
    })
}

fn event(of: &mut Unstructured<'_>) -> Result<EventRow> {
    let about = if or(of, true)? { Some(key(of)?) } else { None };
    Ok(EventRow {
        first: or(of, 0)?,
        event: or(of, 7)?,
        action: or(of, 1)?,
        task_id: text(of, "t1")?,
        caller: text(of, "backend")?,
        on_behalf_of: text(of, "")?,
        reason: text(of, "")?,
        value_before: text(of, "")?,
        value_after: text(of, "block")?,
        proposed: text(of, "block")?,
        feedback_id: or(of, None)?,
        candidate_id: or(of, Some(ID.to_be_bytes().to_vec()))?,
        revision: or(of, 7)?,
        made_at: or(of, AT)?,
        element_sort: or(of, 0)?,
        element_id: text(of, "e1")?,
        contest_id: about.as_ref().map(|key| key.contest_id.clone()),
        namespace: about.as_ref().map(|key| key.namespace.clone()),
        kind: about.as_ref().map(|key| key.kind),
        key: about.as_ref().map(|key| key.key.clone()),
        qualifier: about.as_ref().map(|key| key.qualifier.clone()),
        user_id: about.map(|key| key.user_id),
        said: or(of, None)?,
        reporter: or(of, None)?,
    })
}

fn page(of: &mut Unstructured<'_>) -> Result<PageRow> {
    Ok(PageRow {
        page_id: text(of, "p1")?,
        url: text(of, "https://example.org/")?,
        title: text(of, "")?,
        doi: text(of, "10.1000/x")?,
        pmid: text(of, "")?,
        arxiv_id: text(of, "")?,
        reversed: or(of, Some("org.example".to_owned()))?,
        level: or(of, Some(6))?,
    })
}

fn claim(of: &mut Unstructured<'_>) -> Result<ClaimRow> {
    Ok(ClaimRow {
        claim: or(of, 3)?,
        claim_id: text(of, "c1")?,
        text: text(of, "what it says")?,
        adoption: or(of, 2)?,
        patterns: text(of, "[]")?,
        ruled: or(of, 0)?,
        status: or(of, 1)?,
        created_at: or(of, AT)?,
        updated_at: or(of, AT)?,
        task_id: or(of, None)?,
        page_id: or(of, None)?,
        reversed: or(of, Some("org.example".to_owned()))?,
        level: or(of, Some(6))?,
    })
}

fn edge(of: &mut Unstructured<'_>) -> Result<EdgeRow> {
    Ok(EdgeRow {
        edge: or(of, 3)?,
        edge_id: text(of, "e1")?,
        given: or(of, 1)?,
        label: or(of, 0)?,
        confidence: or(of, Some(0.9))?,
        ruled: or(of, 2)?,
        ruled_at: or(of, AT)?,
        ruled_by: or(of, Some(ID.to_be_bytes().to_vec()))?,
        relation: or(of, 2)?,
        source_sort: or(of, 2)?,
        target_sort: or(of, 3)?,
        source_id: or(of, Some("f1".to_owned()))?,
        target_id: or(of, Some("c1".to_owned()))?,
        task_id: or(of, None)?,
        source_host: or(of, Some("org.example".to_owned()))?,
        source_level: or(of, Some(6))?,
        target_host: or(of, None)?,
        target_level: or(of, None)?,
        reason: or(of, None)?,
    })
}
