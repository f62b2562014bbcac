//! The evidence graph.

use emend_tests::harness::system::Service::Learning;

use super::Case;

pub(super) const CASES: &[Case] = &[
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
    ("EVIDENCE_EDGE", Learning, "DELETE FROM evidence_fragments"),
    ("EVIDENCE_EDGE", Learning, "DELETE FROM evidence_tasks"),
    ("EVIDENCE_EDGE", Learning, "DELETE FROM evidence_spaces"),
    ("EVIDENCE_EDGE", Learning, "UPDATE evidence_pages SET host = -1"),
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
         UPDATE evidence_claims SET stale = 0; UPDATE evidence_claims SET patterns = '[\"x\"]', status = 3, \
         page = (SELECT max(page) FROM evidence_pages), \
         host = (SELECT p.host FROM evidence_pages AS p ORDER BY p.page DESC LIMIT 1) WHERE claim_id = 'c3'",
    ),
    (
        "EVIDENCE_WORK",
        Learning,
        "INSERT INTO evidence_works (space, pages) SELECT space, 1 FROM evidence_spaces",
    ),
    (
        "EVIDENCE_WORK",
        Learning,
        "UPDATE evidence_pages SET doi = '10.1000/x'",
    ),
];
