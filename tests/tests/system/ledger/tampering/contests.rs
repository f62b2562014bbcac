//! Contests, and what they decide.

use emend_tests::harness::system::Service::Learning;

use super::Case;

pub(super) const CASES: &[Case] = &[
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
        "UPDATE contests SET key_hash = key_hash + 1 WHERE key = 'set up a csa'",
    ),
    (
        "ROW_CORRUPT",
        Learning,
        "UPDATE inbox SET event_id = {no_id} WHERE event_id = (SELECT event_id FROM inbox ORDER BY event_id LIMIT 1)",
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
    // As if it were of another contest: nobody would find it by its id.
    (
        "CANDIDATE_ID",
        Learning,
        "UPDATE candidates SET candidate_id = (SELECT o.candidate_id FROM candidates AS o WHERE o.kind = 1 ORDER BY o.candidate LIMIT 1)
         WHERE proposal_version = 2",
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
    ("QUEUE_WAITING", Learning, "DELETE FROM waiting_candidates"),
    (
        "QUEUE_WAITING",
        Learning,
        "UPDATE waiting_candidates SET reporters = reporters + 1",
    ),
    (
        "QUEUE_WAITING",
        Learning,
        "UPDATE waiting_candidates SET controversy = controversy - 1",
    ),
    (
        "QUEUE_WAITING",
        Learning,
        "UPDATE candidates SET status = 4 WHERE status = 2",
    ),
    (
        "QUEUE_LEASE",
        Learning,
        "INSERT INTO review_leases (candidate_id, caller, on_behalf_of, expires_at)
         SELECT k.candidate_id, 'mia', '', d.now + 3600000000 FROM candidates AS k, database_clock AS d",
    ),
    (
        "QUEUE_DAY",
        Learning,
        "INSERT INTO queue_days (namespace, day, kind, received, applied, rejected, withdrawn) VALUES ('other', 1, 1, 0, -1, 0, 0)",
    ),
    (
        "QUEUE_DAY",
        Learning,
        "UPDATE transitions SET made_at = made_at + 86400000000 WHERE to_status = 3",
    ),
    (
        "QUEUE_CHANGE",
        Learning,
        "UPDATE queue_changes SET to_status = 99",
    ),
    ("QUEUE_CHANGE", Learning, "UPDATE queue_changes SET contest = -1"),
    ("RATING_LIVE", Learning, "UPDATE ratings SET live = 1 - live"),
    ("RATED_OUTPUT", Learning, "UPDATE rated_outputs SET good = good + 1"),
    ("RATED_OUTPUT", Learning, "DELETE FROM rated_outputs"),
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
    (
        "IMPROVEMENT",
        Learning,
        "UPDATE improvements SET base_version = 7",
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
];
