//! Every check of the audit, made to fail.

use std::collections::BTreeSet;

use emend_audit::audit;
use emend_store::audit::IgnoreProgress;
use emend_tests::{
    faults::runs::is_long,
    harness::{
        System,
        system::Service::{self, Feedback, Learning},
        tamper::{Copy, Frozen},
    },
};

use super::a_bit_of_everything;

/// The oldest feedback.
macro_rules! oldest {
    () => {
        "(SELECT min(accept_order) FROM feedback)"
    };
}

/// Feedback whose ballot counts.
macro_rules! counting {
    () => {
        "(SELECT feedback_id FROM ballots WHERE retracted = 0 ORDER BY feedback_id LIMIT 1)"
    };
}

/// The code of the check that must notice, and what is done. Other checks may notice too.
const CASES: &[Case] = &[
    (
        "ROW_CORRUPT",
        Learning,
        "UPDATE candidates SET status = 99 WHERE status = 3",
    ),
    (
        "ROW_CORRUPT",
        Learning,
        "UPDATE contests SET key = 'another' WHERE key = 'set up a csa'",
    ),
    (
        "ROW_CORRUPT",
        Learning,
        "UPDATE inbox SET event_id = {no_id} WHERE event_id = (SELECT event_id FROM inbox ORDER BY event_id LIMIT 1)",
    ),
    (
        "OUTCOME_DIFFERS",
        Learning,
        "UPDATE inbox SET outcome = {touched:outcome}",
    ),
    (
        "ROW_CORRUPT",
        Feedback,
        concat!("UPDATE feedback SET caller = '' WHERE accept_order = ", oldest!()),
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        concat!("DELETE FROM feedback_personal WHERE accept_order = ", oldest!()),
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        concat!("DELETE FROM feedback_status WHERE accept_order = ", oldest!()),
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        concat!(
            "UPDATE feedback_status SET namespace = 'other' WHERE accept_order = ",
            oldest!()
        ),
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        "UPDATE request_ids SET request_id = 'other'",
    ),
    (
        "FEEDBACK_KIND",
        Feedback,
        concat!("UPDATE feedback SET kind = 2 WHERE accept_order = ", oldest!()),
    ),
    (
        "FEEDBACK_KIND",
        Feedback,
        concat!("UPDATE feedback SET rating = 'GOOD' WHERE accept_order = ", oldest!()),
    ),
    (
        "FEEDBACK_REDACTED",
        Feedback,
        concat!(
            "UPDATE feedback_status SET redacted_at = 1, redacted_by = 'anonymous' WHERE accept_order = ",
            oldest!(),
            "; UPDATE feedback_personal SET voter = {new_id}, identified = 1 WHERE accept_order = ",
            oldest!()
        ),
    ),
    (
        "FEEDBACK_STATUS",
        Feedback,
        concat!(
            "UPDATE feedback_status SET event_count = 2 WHERE accept_order = ",
            oldest!()
        ),
    ),
    (
        "FEEDBACK_STATUS",
        Feedback,
        concat!(
            "UPDATE feedback_status SET outcome = NULL WHERE accept_order = ",
            oldest!()
        ),
    ),
    (
        "OUTBOX_STATE",
        Feedback,
        concat!(
            "UPDATE feedback_status SET delivery_state = 1 WHERE accept_order = ",
            oldest!()
        ),
    ),
    ("OUTBOX_STATE", Feedback, "DELETE FROM outbox"),
    ("OUTBOX_ENTRY", Feedback, "UPDATE outbox SET namespace = 'other'"),
    ("OUTBOX_ENTRY", Feedback, "UPDATE outbox SET event_number = 7"),
    (
        "OUTBOX_ENTRY",
        Feedback,
        "UPDATE outbox SET payload = {touched:payload}",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        "UPDATE search_ratings SET rating = 0 WHERE rating = -1",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        "UPDATE search_ratings SET rater = {new_id} WHERE rating = 1",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        "UPDATE search_ratings SET replaced_by = NULL",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        "UPDATE search_ratings SET replaced_by = accept_order",
    ),
    (
        "SEARCH_RATING",
        Feedback,
        "DELETE FROM search_ratings WHERE rating = 0",
    ),
    (
        "FEEDBACK_PARTS",
        Feedback,
        "UPDATE search_ratings SET accept_order = accept_order - 1 WHERE rating = 0",
    ),
    (
        "REQUEST_ID_TAKEN_TWICE",
        Feedback,
        "UPDATE feedback SET request_id = 'own' WHERE accept_order = (SELECT max(accept_order) FROM feedback)",
    ),
    ("HEAD", Learning, "DELETE FROM head"),
    ("LOG_GAP", Learning, "DELETE FROM revisions WHERE revision = 2"),
    ("LOG_GAP", Learning, "UPDATE head SET revision = revision - 1"),
    ("LOG_GAP", Learning, "UPDATE head SET revision = revision + 2"),
    (
        "REVISION_CHANGES",
        Learning,
        "DELETE FROM changes WHERE revision = 2",
    ),
    (
        "REVISION_CHANGES",
        Learning,
        "DELETE FROM revisions WHERE revision = 2",
    ),
    (
        "REVISION_CHANGES",
        Learning,
        "UPDATE changes SET ordinal = ordinal + 1 WHERE revision = 2",
    ),
    (
        "TOMBSTONE_HORIZON",
        Learning,
        "UPDATE head SET tombstone_horizon = revision + 1",
    ),
    (
        "CHANGE_CHECKSUM",
        Learning,
        "UPDATE changes SET value_checksum = value_checksum + 1 WHERE revision = 1",
    ),
    (
        "CHANGE_CHECKSUM",
        Learning,
        "UPDATE changes SET value = {touched:value} WHERE revision = 1",
    ),
    (
        "CHANGE_BEFORE",
        Learning,
        "UPDATE changes SET before_value = value WHERE revision = 1",
    ),
    (
        "CHANGE_BEFORE",
        Learning,
        "UPDATE changes SET before_value = NULL WHERE contest IN (SELECT contest FROM contests WHERE key = 'book the trade') AND before_value IS NOT NULL",
    ),
    (
        "RESOURCE_REPLAY",
        Learning,
        "DELETE FROM resources WHERE contest IN (SELECT contest FROM contests WHERE key = 'set up a csa')",
    ),
    (
        "RESOURCE_REPLAY",
        Learning,
        "UPDATE resources SET revision = 1 WHERE contest IN (SELECT contest FROM contests WHERE key = 'book the trade')",
    ),
    (
        "RESOURCE_REPLAY",
        Learning,
        "UPDATE resources SET value = {touched:value} WHERE contest IN (SELECT contest FROM contests WHERE key = 'book the trade')",
    ),
    (
        "RESOURCE_REPLAY",
        Learning,
        "DELETE FROM changes WHERE contest IN (SELECT contest FROM contests WHERE key = 'set up a csa')",
    ),
    (
        "LOG_DIGEST",
        Learning,
        "UPDATE resources SET value = {touched:value} WHERE contest IN (SELECT contest FROM contests WHERE key = 'book the trade')",
    ),
    (
        "LOG_DIGEST",
        Learning,
        "UPDATE resources SET revision = revision - 1 WHERE contest IN (SELECT contest FROM contests WHERE user_id = 'ann')",
    ),
    (
        "RESOURCE_CHECKSUM",
        Learning,
        "UPDATE resources SET value = {touched:value} WHERE contest IN (SELECT contest FROM contests WHERE key = 'book the trade')",
    ),
    (
        "RESOURCE_COMMITTED",
        Learning,
        "UPDATE resources SET committed_at = committed_at + 1 WHERE contest IN (SELECT contest FROM contests WHERE key = 'book the trade')",
    ),
    (
        "RESOURCE_COUNT",
        Learning,
        "UPDATE resource_counts SET count = count + 1 WHERE kind = 2",
    ),
    (
        "RESOURCE_COUNT",
        Learning,
        "DELETE FROM resource_counts WHERE kind = 2",
    ),
    (
        "RESOURCE_APPLIED",
        Learning,
        "UPDATE candidates SET applied_revision = applied_revision + 1 WHERE status = 3",
    ),
    (
        "RESOURCE_APPLIED",
        Learning,
        "DELETE FROM resources WHERE contest IN (SELECT contest FROM contests WHERE key = 'set up a csa')",
    ),
    (
        "RESOURCE_APPLIED",
        Learning,
        "UPDATE candidates SET status = 5 WHERE status = 3",
    ),
    (
        "RESOURCE_APPLIED",
        Learning,
        "UPDATE changes SET candidate = -1 WHERE contest IN (SELECT contest FROM contests WHERE key = 'set up a csa')",
    ),
    (
        "CONTEST_MISSING",
        Learning,
        "DELETE FROM contests WHERE key = 'set up a csa'",
    ),
    (
        "CONTEST_ROW",
        Learning,
        "UPDATE contests SET pending = 1 - pending",
    ),
    (
        "CONTEST_ROW",
        Learning,
        "UPDATE contests SET highest_accept_order = 1",
    ),
    ("CONTEST_ROW", Learning, "UPDATE contests SET pinned = 1 - pinned"),
    // As if waiting candidates had not been evaluated under the newest policy, although marked so.
    (
        "CONTEST_DECIDED",
        Learning,
        "UPDATE policies SET threshold = 1 WHERE version > 0",
    ),
    // As if votes had been counted without checking whether they are enough.
    (
        "CONTEST_DECIDED",
        Learning,
        "UPDATE candidates SET status = 1 WHERE status = 3 AND applied_threshold > 0",
    ),
    (
        "CANDIDATE_ID",
        Learning,
        "UPDATE candidates SET value = (SELECT value FROM candidates WHERE kind = 1 ORDER BY candidate_id LIMIT 1) WHERE kind = 1",
    ),
    (
        "CANDIDATE_ID",
        Learning,
        "UPDATE candidates SET namespace = 'other'",
    ),
    (
        "CANDIDATE_OCCURRENCES",
        Learning,
        "UPDATE candidates SET occurrences = occurrences + 1 WHERE kind = 1",
    ),
    (
        "CANDIDATE_OCCURRENCES",
        Learning,
        concat!("DELETE FROM ballots WHERE feedback_id = ", counting!()),
    ),
    (
        "CANDIDATE_VOTES",
        Learning,
        "UPDATE candidates SET reporters = reporters + 1 WHERE kind = 1",
    ),
    (
        "CANDIDATE_VOTES",
        Learning,
        "UPDATE candidates SET net = net + 1 WHERE kind = 1",
    ),
    (
        "CANDIDATE_VOTES",
        Learning,
        "UPDATE ballots SET voter = (SELECT voter FROM ballots ORDER BY voter LIMIT 1)",
    ),
    ("CANDIDATE_VOTES", Learning, "DELETE FROM policies"),
    (
        "CANDIDATE_VOTES",
        Learning,
        "UPDATE candidates SET net = 1 WHERE ruling_order > 0",
    ),
    ("RATING_LIVE", Learning, "UPDATE ratings SET live = 1 - live"),
    (
        "PROPOSAL_VERSION",
        Learning,
        "UPDATE contests SET current_version = 1 WHERE current_version = 2",
    ),
    (
        "PROPOSAL_VERSION",
        Learning,
        "UPDATE contests SET last_version = 1 WHERE last_version = 2",
    ),
    (
        "PROPOSAL_VERSION",
        Learning,
        "UPDATE candidates SET proposal_version = 1 WHERE proposal_version = 2",
    ),
    (
        "PROPOSAL_VERSION",
        Learning,
        "UPDATE candidates SET value = (SELECT o.value FROM candidates AS o WHERE o.proposal_version = 2)
         WHERE proposal_version = 1 AND status = 3",
    ),
    (
        "PROPOSAL_VERDICT",
        Learning,
        "UPDATE candidates SET proposal_verdict = 4 WHERE proposal_version = 2",
    ),
    (
        "PROPOSAL_VERDICT",
        Learning,
        "UPDATE candidates SET proposal_decided_at = 0 WHERE proposal_version > 0",
    ),
    ("IMPROVEMENT", Learning, "DELETE FROM improvements"),
    ("IMPROVEMENT", Learning, "DELETE FROM improvement_ratings"),
    ("IMPROVEMENT", Learning, "UPDATE improvements SET base_version = 7"),
    (
        "RESOURCE_WINDOW",
        Learning,
        "UPDATE ratings SET class = 4 - class",
    ),
    (
        "RATING_TEXTS",
        Learning,
        "UPDATE ratings SET excluded = 1 - excluded",
    ),
    (
        "RATING_EXCLUDED",
        Learning,
        "UPDATE ratings SET excluded = 1 - excluded",
    ),
    ("SUGGESTION", Learning, "DELETE FROM suggestions"),
    ("SUGGESTION", Learning, "UPDATE suggestions SET type = 4"),
    (
        "SUGGESTION",
        Learning,
        "INSERT INTO suggestions (candidate, type, reason, source_type, source_id, confidence)
         SELECT candidate, 3, 'r', 'GITHUB', 's', 1 FROM candidates WHERE kind = 1",
    ),
    (
        "SUGGESTION",
        Learning,
        "INSERT INTO suggestions (candidate, type, reason, source_type, source_id, confidence)
         VALUES (-1, 3, 'r', 'GITHUB', 's', 1)",
    ),
    (
        "CANDIDATE_ID",
        Learning,
        "UPDATE candidates SET proposal_version = 0 WHERE kind = 10",
    ),
    (
        "LOG_WINDOW",
        Learning,
        "UPDATE changes SET before_value = (SELECT value FROM resources LIMIT 1)
         WHERE contest IN (SELECT contest FROM contests WHERE kind = 6)",
    ),
    (
        "CANDIDATE_RULING",
        Learning,
        "UPDATE candidates SET ruling_roles = 'reporter' WHERE ruling_order > 0",
    ),
    (
        "RULING_ORDER",
        Learning,
        "UPDATE candidates SET ruling_order = ruling_order - 1 WHERE ruling_order > 0 AND status = 5",
    ),
    (
        "RULING_RETRACTED",
        Learning,
        "UPDATE candidates SET ruling_taken_back = 0 WHERE ruling_taken_back > 0",
    ),
    (
        "RULING_RETRACTED",
        Learning,
        "UPDATE candidates SET ruling_taken_back = 1 WHERE ruling_order > 0",
    ),
    (
        "CONTEST_DECIDED",
        Learning,
        "UPDATE candidates SET ruling_taken_back = 2 WHERE ruling_order > 0 AND status = 3",
    ),
    (
        "CONTEST_DECIDED",
        Learning,
        "UPDATE candidates SET ruling_order = 1 WHERE ruling_order > 0 AND status = 3",
    ),
    (
        "EVIDENCE_RULING",
        Learning,
        "UPDATE evidence_edges SET ruled_at = ruled_at + 1 WHERE ruled <> 0",
    ),
    (
        "EVIDENCE_RULING",
        Learning,
        "UPDATE evidence_edges SET ruled_by = NULL",
    ),
    (
        "EVIDENCE_RULING",
        Learning,
        "UPDATE evidence_edges SET ruled = 0, ruled_at = 0, ruled_by = NULL, relation = given, weight = model_weight",
    ),
    (
        "EVIDENCE_RULING",
        Learning,
        "UPDATE evidence_claims SET ruled = 0, status = 1 WHERE ruled = 1",
    ),
    (
        "EVIDENCE_RULING",
        Learning,
        "UPDATE evidence_claims SET claim_id = 'another', ruled = 0, status = 1 WHERE ruled = 1",
    ),
    (
        "EVIDENCE_DERIVED",
        Learning,
        "UPDATE evidence_edges SET weight = weight - 1",
    ),
    (
        "EVIDENCE_DERIVED",
        Learning,
        "UPDATE evidence_edges SET model_weight = 1",
    ),
    (
        "EVIDENCE_DERIVED",
        Learning,
        "UPDATE evidence_edges SET relation = 3",
    ),
    (
        "EVIDENCE_DERIVED",
        Learning,
        "UPDATE evidence_claims SET status = 3 WHERE ruled = 0",
    ),
    (
        "EVIDENCE_EDGE",
        Learning,
        "UPDATE evidence_edges SET host = host + 1",
    ),
    (
        "EVIDENCE_EDGE",
        Learning,
        "DELETE FROM evidence_fragments",
    ),
    (
        "EVIDENCE_EDGE",
        Learning,
        "DELETE FROM evidence_tasks",
    ),
    (
        "EVIDENCE_EDGE",
        Learning,
        "DELETE FROM evidence_spaces",
    ),
    (
        "EVIDENCE_EDGE",
        Learning,
        "UPDATE evidence_pages SET host = -1",
    ),
    (
        "EVIDENCE_TARGET",
        Learning,
        "UPDATE contests SET target_known = 0",
    ),
    (
        "EVIDENCE_TARGET",
        Learning,
        "UPDATE contests SET target_known = 1",
    ),
    (
        "EVIDENCE_TARGET",
        Learning,
        "UPDATE contests SET target_known = 2",
    ),
    (
        "EVIDENCE_EVENT",
        Learning,
        "UPDATE evidence_events SET contest = -1",
    ),
    (
        "EVIDENCE_EVENT",
        Learning,
        "UPDATE evidence_events SET revision = 1000000 WHERE revision > 0",
    ),
    (
        "EVIDENCE_STATUS",
        Learning,
        "UPDATE evidence_claims SET status = 2, stale = 0 WHERE claim_id = 'c3'",
    ),
    (
        "EVIDENCE_VERIFIED",
        Learning,
        "DELETE FROM evidence_stale_names; UPDATE evidence_hosts SET level = 1 WHERE reversed = 'net.example.www'",
    ),
    (
        "EVIDENCE_VERIFIED",
        Learning,
        "DELETE FROM evidence_stale_names; UPDATE evidence_domains SET stale = 0; \
         UPDATE evidence_claims SET stale = 0; UPDATE evidence_claims SET patterns = '[\"x\"]', status = 3 WHERE claim_id = 'c3'",
    ),
    (
        "CANDIDATE_HISTORY",
        Learning,
        "DELETE FROM transitions WHERE sequence = 0",
    ),
    (
        "CANDIDATE_HISTORY",
        Learning,
        "DELETE FROM transitions WHERE to_status = 3",
    ),
    (
        "CANDIDATE_HISTORY",
        Learning,
        "UPDATE transitions SET revision = 1000000 WHERE revision > 0",
    ),
    (
        "CANDIDATE_HISTORY",
        Learning,
        "DELETE FROM candidates WHERE status = 3",
    ),
    (
        "BALLOT_CANDIDATE",
        Learning,
        concat!(
            "UPDATE ballots SET candidate_id = {new_id} WHERE feedback_id = ",
            counting!()
        ),
    ),
    (
        "BALLOT_RETRACTED",
        Learning,
        concat!(
            "UPDATE ballots SET retracted = 1 WHERE feedback_id = ",
            counting!()
        ),
    ),
    ("BALLOT_RETRACTED", Learning, "DELETE FROM retraction_marks"),
    (
        "BALLOT_DETAILS",
        Learning,
        concat!("DELETE FROM ballot_details WHERE feedback_id = ", counting!()),
    ),
    (
        "BALLOT_DETAILS",
        Learning,
        "INSERT INTO redaction_marks (feedback_id, event_id, caller, marked_at)
         SELECT DISTINCT feedback_id, feedback_id, 'anonymous', 1 FROM inbox",
    ),
    (
        "INBOX_EFFECT",
        Learning,
        concat!("DELETE FROM ballots WHERE feedback_id = ", counting!()),
    ),
    (
        "EFFECT_INBOX",
        Learning,
        concat!("DELETE FROM inbox WHERE feedback_id = ", counting!()),
    ),
    (
        "EFFECT_INBOX",
        Learning,
        "UPDATE retraction_marks SET event_id = {new_id}",
    ),
    (
        "INBOX_FEEDBACK",
        Feedback,
        concat!(
            "DELETE FROM feedback_personal WHERE accept_order = ",
            oldest!(),
            "; DELETE FROM feedback_status WHERE accept_order = ",
            oldest!(),
            "; DELETE FROM request_ids WHERE accept_order = ",
            oldest!(),
            "; DELETE FROM feedback WHERE accept_order = ",
            oldest!(),
        ),
    ),
    (
        "INBOX_MISSING",
        Learning,
        concat!("DELETE FROM inbox WHERE feedback_id = ", counting!()),
    ),
    (
        "INBOX_MISSING",
        Learning,
        "DELETE FROM inbox WHERE event_id IN (SELECT event_id FROM retraction_marks)",
    ),
    (
        "INBOX_SURPLUS",
        Learning,
        "INSERT INTO inbox (event_id, feedback_id, applied_at, outcome)
         SELECT {new_id}, feedback_id, applied_at, outcome FROM inbox LIMIT 1",
    ),
    (
        "BALLOT_MISSING",
        Learning,
        concat!("DELETE FROM ballots WHERE feedback_id = ", counting!()),
    ),
    (
        "BALLOT_DIFFERS",
        Learning,
        "UPDATE ballots SET voter = (SELECT voter FROM ballots ORDER BY voter LIMIT 1)",
    ),
    (
        "BALLOT_DIFFERS",
        Learning,
        concat!(
            "UPDATE ballots SET accept_order = 1 WHERE feedback_id = ",
            counting!()
        ),
    ),
    (
        "BALLOT_DIFFERS",
        Learning,
        "UPDATE ballots SET received_at = received_at + 1",
    ),
    ("BALLOT_DIFFERS", Learning, "UPDATE ballots SET identified = 0"),
    (
        "BALLOT_DIFFERS",
        Learning,
        "UPDATE ballots SET system_choice = 'other'",
    ),
    (
        "RETRACTION_DIFFERS",
        Learning,
        "INSERT INTO retraction_marks (feedback_id, event_id, caller, sender_roles, marked_at)
         SELECT DISTINCT feedback_id, feedback_id, 'anonymous', '', 1 FROM inbox
         WHERE feedback_id NOT IN (SELECT feedback_id FROM retraction_marks)",
    ),
    ("RETRACTION_DIFFERS", Learning, "DELETE FROM retraction_marks"),
    (
        "OUTCOME_DIFFERS",
        Feedback,
        "UPDATE feedback_status SET outcome = (SELECT outcome FROM feedback_status ORDER BY accept_order LIMIT 1)
         WHERE outcome IS NOT NULL",
    ),
];

/// What takes SQL of one database.
const SQLITE_CASES: &[Case] = &[("ACCEPT_ORDER", Feedback, "UPDATE accept_order SET last = 1")];
const POSTGRES_CASES: &[Case] = &[("ACCEPT_ORDER", Feedback, "SELECT setval('accept_order', 1)")];

async fn codes_found(copy: &Copy) -> BTreeSet<&'static str> {
    let report = audit(copy.databases(), &mut IgnoreProgress, &mut |_| {})
        .await
        .unwrap();
    report.findings.counts().keys().copied().collect()
}

type Case = (&'static str, Service, &'static str);

/// All cases, or only the first of each code, because copies of a PostgreSQL database take a while. `EMEND_TEST_LONG=1`
/// asks for all.
fn cases(own: &[Case], all: bool) -> Vec<Case> {
    let mut codes = BTreeSet::new();
    let cases = CASES.iter().chain(own).copied();
    cases.filter(|(code, ..)| codes.insert(*code) || all).collect()
}

async fn every_check_notices(frozen: &Frozen, cases: &[Case]) {
    let sound = frozen.copy().await;
    let report = audit(sound.databases(), &mut IgnoreProgress, &mut |_| {})
        .await
        .unwrap();
    assert_eq!(report.findings.kept(), [], "nobody tampered with it");
    assert_eq!(
        (report.feedback, report.undelivered),
        (34, 1),
        "it looked at everything"
    );
    assert!(report.learning.digests.len() > 3, "{:?}", report.learning);
    sound.close().await;

    let mut noticed: BTreeSet<&str> = BTreeSet::new();
    let mut missed = Vec::new();
    for (code, service, sql) in cases {
        let copy = frozen.copy().await;
        copy.tamper(*service, sql).await;
        let found = codes_found(&copy).await;
        if !found.contains(code) {
            missed.push(format!("{code} did not notice {sql:?}; noticed: {found:?}"));
        }
        noticed.insert(code);
        copy.close().await;
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    let never: Vec<&str> = emend_audit::checks()
        .map(|check| check.code)
        .filter(|code| !noticed.contains(code))
        .collect();
    assert_eq!(never, [""; 0], "these checks were never seen to fail");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_reports_its_violation_on_sqlite() {
    let frozen = a_bit_of_everything(System::sqlite().await).await;
    every_check_notices(&frozen, &cases(SQLITE_CASES, true)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_reports_its_violation_on_postgresql() {
    if let Some(system) = System::postgres(1, 1).await {
        let frozen = a_bit_of_everything(system).await;
        every_check_notices(&frozen, &cases(POSTGRES_CASES, is_long())).await;
    }
}
