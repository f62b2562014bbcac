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
fn parsed(which: u8, columns: &mut Unstructured<'_>) -> Result<bool> {
    Ok(match which % 20 {
        0 => candidate(columns)?.parse().is_ok(),
        1 => candidate_record(columns)?.parse().is_ok(),
        2 => {
            let row = ballot(columns)?;
            row.parse().is_ok()
        }
        3 => {
            let key = key(columns)?;
            let row = KnownBallotRow {
                ballot: ballot(columns)?,
                retracted: or(columns, 0)?,
                contest_id: key.contest_id,
                namespace: key.namespace,
                kind: key.kind,
                key: key.key,
                qualifier: key.qualifier,
                user_id: key.user_id,
            };
            row.parse().is_ok()
        }
        4 => contest(columns)?.parse().is_ok(),
        5 => policy(columns)?.parse().is_ok(),
        6 => {
            let row = ResourceRow {
                contest: or(columns, 3)?,
                revision: or(columns, 7)?,
                value: Some(value(columns)?),
                committed_at: or(columns, AT)?,
            };
            row.parse().is_ok()
        }
        7 => {
            let row = CountRow {
                namespace: text(columns, "fund-admin")?,
                kind: or(columns, 1)?,
                count: or(columns, 9)?,
            };
            row.parse().is_ok()
        }
        8 => feedback(columns)?.parse().is_ok(),
        9 => transition(columns)?.parse().is_ok(),
        10 => revision(columns)?.parse().is_ok(),
        11 => change(columns)?.parse().is_ok(),
        12 => {
            let row = WrittenChangeRow {
                key: key(columns)?,
                before_value: Some(value(columns)?),
                newest: or(columns, 8)?,
                newest_operation: Some(id(columns, ID)?),
                cause: or(columns, 3)?,
            };
            row.parse().is_ok()
        }
        13 => {
            let row = SeenRow {
                what: or(columns, 1)?,
                id: id(columns, ID)?,
                outcome: or(columns, None)?,
                roles: text(columns, "reviewer,operator")?,
            };
            row.event().is_ok() & row.feedback().is_ok() & row.roles().is_ok()
        }
        14 => event(columns)?.parse().is_ok(),
        15 => {
            let row = ReviewRow {
                predicted: or(columns, 1)?,
                ruled: or(columns, 2)?,
                edges: or(columns, 3)?,
            };
            row.parse().is_ok()
        }
        16 => page(columns)?.parse().is_ok(),
        17 => {
            let row = FragmentRow {
                fragment_id: text(columns, "f1")?,
                page_id: or(columns, Some("p1".to_owned()))?,
                text: text(columns, "what it says")?,
            };
            row.parse().is_ok()
        }
        18 => {
            let sources = or(columns, 2)?;
            claim(columns)?.parse(Evidence::default(), None, sources).is_ok()
        }
        _ => edge(columns)?.parse().is_ok(),
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

fn key(columns: &mut Unstructured<'_>) -> Result<KeyRow> {
    let (key, user_id) = (text(columns, "set up a csa")?, text(columns, "")?);
    // The id that the key gives, so that not every changed key is rejected for its id.
    let id = ResourceKey::parse("fund-admin", Some(Kind::InvocationPhrase), &key, "", &user_id)
        .map_or(ID, |key| key.contest_id().0.as_u128());
    Ok(KeyRow {
        contest_id: self::id(columns, id)?,
        namespace: text(columns, "fund-admin")?,
        kind: or(columns, 1)?,
        key,
        qualifier: text(columns, "")?,
        user_id,
    })
}

fn contest(columns: &mut Unstructured<'_>) -> Result<ContestRow> {
    Ok(ContestRow {
        contest: or(columns, 3)?,
        key: key(columns)?,
        pinned: or(columns, 0)?,
        highest_accept_order: or(columns, 5)?,
        policy_version: or(columns, 0)?,
        pending: or(columns, 1)?,
        target_known: or(columns, 1)?,
        current_version: or(columns, 0)?,
        last_version: or(columns, 0)?,
        decisions: or(columns, 0)?,
        locked_at: or(columns, AT)?,
    })
}

fn candidate(columns: &mut Unstructured<'_>) -> Result<CandidateRow> {
    Ok(CandidateRow {
        candidate: or(columns, 4)?,
        candidate_id: id(columns, ID)?,
        contest: or(columns, 3)?,
        value: Some(value(columns)?),
        status: columns.int_in_range(1..=6)?,
        status_reason: text(columns, codes::reason(None))?,
        origin: or(columns, 1)?,
        edited_from: or(columns, None)?,
        hold: text(columns, codes::hold(None))?,
        decision_reason: text(columns, "")?,
        decided_caller: text(columns, "system")?,
        decided_for: text(columns, "")?,
        occurrences: or(columns, 3)?,
        reporters: or(columns, 2)?,
        net: or(columns, 1)?,
        risk: or(columns, 2)?,
        threshold: or(columns, 3)?,
        policy_version: or(columns, 0)?,
        applied_threshold: or(columns, 0)?,
        applied_revision: or(columns, 0)?,
        ruling_order: or(columns, 0)?,
        ruling_roles: text(columns, "reviewer")?,
        ruling_approved: or(columns, 0)?,
        ruling_taken_back: or(columns, 0)?,
        proposal_version: or(columns, 0)?,
        proposal_base: or(columns, 0)?,
        proposal_verdict: or(columns, 1)?,
        proposal_decided_at: or(columns, 0)?,
        created_at: or(columns, AT)?,
        updated_at: or(columns, AT)?,
        transitions: or(columns, 1)?,
        version: or(columns, 1)?,
    })
}

fn candidate_record(columns: &mut Unstructured<'_>) -> Result<CandidateRecordRow> {
    let key = key(columns)?;
    Ok(CandidateRecordRow {
        candidate: candidate(columns)?,
        contest_id: key.contest_id,
        namespace: key.namespace,
        kind: key.kind,
        key: key.key,
        qualifier: key.qualifier,
        user_id: key.user_id,
        pinned: or(columns, 0)?,
    })
}

fn ballot(columns: &mut Unstructured<'_>) -> Result<BallotRow> {
    Ok(BallotRow {
        feedback_id: id(columns, ID)?,
        contest: or(columns, 3)?,
        candidate_id: id(columns, ID)?,
        accept_order: or(columns, 5)?,
        voter: id(columns, ID)?,
        identified: or(columns, 1)?,
        caller: text(columns, "anonymous")?,
        received_at: or(columns, AT)?,
    })
}

fn policy(columns: &mut Unstructured<'_>) -> Result<PolicyRow> {
    Ok(PolicyRow {
        namespace: text(columns, "fund-admin")?,
        kind: or(columns, 1)?,
        version: or(columns, 4)?,
        risk: or(columns, 2)?,
        threshold: or(columns, 3)?,
        counting: or(columns, 1)?,
        half_life: or(columns, 86_400)?,
        max_derived_voters: or(columns, 1)?,
        max_resources: or(columns, 1_000)?,
        max_value_bytes: or(columns, 1_000)?,
        max_counted_feedback: or(columns, 1_000)?,
        entitled: or(columns, 2)?,
        window_good: or(columns, 5)?,
        window_bad: or(columns, 3)?,
        window_max_text_chars: or(columns, 2_000)?,
        window_language: or(columns, 1)?,
        review_min_bad: or(columns, 3)?,
        review_automatic: or(columns, 0)?,
        reviewers_needed: or(columns, 1)?,
        frozen: or(columns, 0)?,
        updated_at: or(columns, AT)?,
    })
}

fn feedback(columns: &mut Unstructured<'_>) -> Result<FeedbackRow> {
    Ok(FeedbackRow {
        feedback_id: id(columns, ID)?,
        system_choice: text(columns, "")?,
        received_at: or(columns, AT)?,
        retracted: or(columns, 0)?,
        reason: or(columns, None)?,
        context: or(columns, Some(r#"{"topic":"derivatives"}"#.to_owned()))?,
        query_id: or(columns, None)?,
    })
}

fn transition(columns: &mut Unstructured<'_>) -> Result<TransitionRow> {
    Ok(TransitionRow {
        candidate_id: id(columns, ID)?,
        sequence: or(columns, 1)?,
        from_status: or(columns, 0)?,
        to_status: or(columns, 1)?,
        cause: or(columns, 1)?,
        reason: text(columns, "")?,
        caller: text(columns, "system")?,
        on_behalf_of: text(columns, "")?,
        made_at: or(columns, AT)?,
        revision: or(columns, 0)?,
        policy_version: or(columns, 0)?,
    })
}

fn revision(columns: &mut Unstructured<'_>) -> Result<RevisionRow> {
    Ok(RevisionRow {
        revision: or(columns, 7)?,
        operation_id: or(columns, None)?,
        cause: or(columns, 1)?,
        caller: text(columns, "system")?,
        on_behalf_of: text(columns, "")?,
        reason: text(columns, "")?,
        committed_at: or(columns, AT)?,
    })
}

fn change(columns: &mut Unstructured<'_>) -> Result<ChangeRow> {
    Ok(ChangeRow {
        key: key(columns)?,
        revision: or(columns, 7)?,
        value: Some(value(columns)?),
        value_checksum: or(columns, 7)?,
        before_value: or(columns, None)?,
        candidate_id: or(columns, None)?,
        feedback_id: or(columns, None)?,
        policy_version: or(columns, 0)?,
        changed_since: or(columns, 0)?,
    })
}

fn event(columns: &mut Unstructured<'_>) -> Result<EventRow> {
    let about = if or(columns, true)? {
        Some(key(columns)?)
    } else {
        None
    };
    Ok(EventRow {
        first: or(columns, 0)?,
        event: or(columns, 7)?,
        action: or(columns, 1)?,
        task_id: text(columns, "t1")?,
        caller: text(columns, "backend")?,
        on_behalf_of: text(columns, "")?,
        reason: text(columns, "")?,
        value_before: text(columns, "")?,
        value_after: text(columns, "block")?,
        proposed: text(columns, "block")?,
        feedback_id: or(columns, None)?,
        candidate_id: or(columns, Some(ID.to_be_bytes().to_vec()))?,
        revision: or(columns, 7)?,
        made_at: or(columns, AT)?,
        element_sort: or(columns, 0)?,
        element_id: text(columns, "e1")?,
        contest_id: about.as_ref().map(|key| key.contest_id.clone()),
        namespace: about.as_ref().map(|key| key.namespace.clone()),
        kind: about.as_ref().map(|key| key.kind),
        key: about.as_ref().map(|key| key.key.clone()),
        qualifier: about.as_ref().map(|key| key.qualifier.clone()),
        user_id: about.map(|key| key.user_id),
        said: or(columns, None)?,
        reporter: or(columns, None)?,
    })
}

fn page(columns: &mut Unstructured<'_>) -> Result<PageRow> {
    Ok(PageRow {
        page_id: text(columns, "p1")?,
        url: text(columns, "https://example.org/")?,
        title: text(columns, "")?,
        doi: text(columns, "10.1000/x")?,
        pmid: text(columns, "")?,
        arxiv_id: text(columns, "")?,
        reversed: or(columns, Some("org.example".to_owned()))?,
        level: or(columns, Some(6))?,
    })
}

fn claim(columns: &mut Unstructured<'_>) -> Result<ClaimRow> {
    Ok(ClaimRow {
        claim: or(columns, 3)?,
        claim_id: text(columns, "c1")?,
        text: text(columns, "what it says")?,
        adoption: or(columns, 2)?,
        patterns: text(columns, "[]")?,
        ruled: or(columns, 0)?,
        status: or(columns, 1)?,
        created_at: or(columns, AT)?,
        updated_at: or(columns, AT)?,
        task_id: or(columns, None)?,
        page_id: or(columns, None)?,
        reversed: or(columns, Some("org.example".to_owned()))?,
        level: or(columns, Some(6))?,
    })
}

fn edge(columns: &mut Unstructured<'_>) -> Result<EdgeRow> {
    Ok(EdgeRow {
        edge: or(columns, 3)?,
        edge_id: text(columns, "e1")?,
        given: or(columns, 1)?,
        label: or(columns, 0)?,
        confidence: or(columns, Some(0.9))?,
        ruled: or(columns, 2)?,
        ruled_at: or(columns, AT)?,
        ruled_by: or(columns, Some(ID.to_be_bytes().to_vec()))?,
        relation: or(columns, 2)?,
        source_sort: or(columns, 2)?,
        target_sort: or(columns, 3)?,
        source_id: or(columns, Some("f1".to_owned()))?,
        target_id: or(columns, Some("c1".to_owned()))?,
        task_id: or(columns, None)?,
        source_host: or(columns, Some("org.example".to_owned()))?,
        source_level: or(columns, Some(6))?,
        target_host: or(columns, None)?,
        target_level: or(columns, None)?,
        reason: or(columns, None)?,
    })
}
