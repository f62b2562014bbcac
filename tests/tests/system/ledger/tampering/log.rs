//! The log and the resources that it leads to.

use emend_tests::harness::system::Service::Learning;

use super::Case;

pub(super) const CASES: &[Case] = &[
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
        "RESOURCE_WINDOW",
        Learning,
        "UPDATE ratings SET class = 4 - class",
    ),
    (
        "LOG_WINDOW",
        Learning,
        "UPDATE changes SET before_value = (SELECT value FROM resources LIMIT 1)
         WHERE contest IN (SELECT contest FROM contests WHERE kind = 6)",
    ),
];
