-- What learning-svc keeps. Times are microseconds since 1970 by the database's clock unless a column says otherwise.
-- Personal parts (reporter, free text, context) sit in tables of their own, apart from what counts, so that they can be
-- erased and leave votes, counts and the log as they are.

-- The head of the one revision log. One row; locked last by every transaction that writes revisions, so that revisions are
-- gap-free and committed in their order with any number of replicas.
CREATE TABLE head (
    id                INTEGER PRIMARY KEY CHECK (id = 1),
    epoch             TEXT   NOT NULL,
    revision          INTEGER NOT NULL,
    -- Deletions at or below this revision may be forgotten: a cursor older than it gets a snapshot.
    tombstone_horizon INTEGER NOT NULL,
    created_at        INTEGER NOT NULL
);

-- Event ids that were applied, with their outcome. Never pruned.
CREATE TABLE inbox (
    event_id    TEXT   PRIMARY KEY,
    feedback_id TEXT   NOT NULL,
    applied_at  INTEGER NOT NULL,
    outcome     BLOB  NOT NULL
);

-- Retractions that overtook their feedback, and all others: a feedback with a mark never counts.
CREATE TABLE retraction_marks (
    feedback_id TEXT   PRIMARY KEY,
    event_id    TEXT   NOT NULL,
    caller      TEXT   NOT NULL,
    marked_at   INTEGER NOT NULL
);

-- Redactions that overtook their feedback, and all others: of a feedback with a mark no personal part is stored.
CREATE TABLE redaction_marks (
    feedback_id TEXT   PRIMARY KEY,
    event_id    TEXT   NOT NULL,
    caller      TEXT   NOT NULL,
    marked_at   INTEGER NOT NULL
);

-- Everything proposed for one resource key. The id is derived from the key's parts.
CREATE TABLE contests (
    contest_id           TEXT    PRIMARY KEY,
    namespace            TEXT    NOT NULL,
    kind                 INTEGER NOT NULL,
    key                  TEXT    NOT NULL,
    key_hash             INTEGER  NOT NULL,
    qualifier            TEXT    NOT NULL,
    user_id              TEXT    NOT NULL,
    pinned               INTEGER NOT NULL,
    -- Kept when the contest is cleared or deleted.
    highest_accept_order INTEGER  NOT NULL,
    -- The policy version by which it was last evaluated; what is pending below the policy's version is evaluated anew.
    policy_version       INTEGER  NOT NULL,
    -- Whether anything in it waits: 1 while a candidate is PENDING or AWAITING_REVIEW.
    pending              INTEGER NOT NULL,
    created_at           INTEGER  NOT NULL
);
CREATE INDEX contests_by_key ON contests (namespace, key_hash);
CREATE INDEX contests_to_reevaluate ON contests (namespace, kind, policy_version, contest_id) WHERE pending = 1;

-- Proposed values. The id is derived from contest and value.
CREATE TABLE candidates (
    candidate_id      TEXT    PRIMARY KEY,
    contest_id        TEXT    NOT NULL REFERENCES contests (contest_id),
    namespace         TEXT    NOT NULL,
    kind              INTEGER NOT NULL,
    value             BLOB   NOT NULL,
    status            INTEGER NOT NULL,
    status_reason     TEXT    NOT NULL,
    origin            INTEGER NOT NULL,
    edited_from       TEXT    NOT NULL,
    hold              TEXT    NOT NULL,
    decision_reason   TEXT    NOT NULL,
    decided_caller    TEXT    NOT NULL,
    decided_for       TEXT    NOT NULL,
    occurrences       INTEGER  NOT NULL,
    reporters         INTEGER  NOT NULL,
    net               INTEGER  NOT NULL,
    risk              INTEGER NOT NULL,
    threshold         INTEGER NOT NULL,
    policy_version    INTEGER  NOT NULL,
    -- 0: a person applied it, or nobody.
    applied_threshold INTEGER NOT NULL,
    applied_revision  INTEGER  NOT NULL,
    created_at        INTEGER  NOT NULL,
    updated_at        INTEGER  NOT NULL,
    -- How many transitions it has had; the next one's sequence.
    transitions       INTEGER  NOT NULL,
    -- Grows with each change; the etag.
    version           INTEGER  NOT NULL
);
CREATE INDEX candidates_by_contest ON candidates (contest_id);
CREATE INDEX candidates_newest ON candidates (namespace, created_at DESC, candidate_id DESC);
CREATE INDEX candidates_by_status ON candidates (namespace, status, created_at DESC, candidate_id DESC);

-- One correction's support of a candidate. Of a voter's ballots in a contest that were not retracted the newest by accept
-- order is the live vote. `voter` is a pseudonym.
CREATE TABLE ballots (
    feedback_id  TEXT    PRIMARY KEY,
    contest_id   TEXT    NOT NULL REFERENCES contests (contest_id),
    candidate_id TEXT    NOT NULL,
    accept_order INTEGER  NOT NULL,
    voter        TEXT    NOT NULL,
    identified   INTEGER NOT NULL,
    caller       TEXT    NOT NULL,
    received_at  INTEGER  NOT NULL,
    retracted    INTEGER NOT NULL,
    system_choice TEXT   NOT NULL,
    traceparent  TEXT    NOT NULL
);
CREATE INDEX ballots_newest ON ballots (contest_id, accept_order DESC, feedback_id) WHERE retracted = 0;
CREATE INDEX ballots_by_candidate ON ballots (candidate_id, accept_order DESC);

-- What a redaction erases.
CREATE TABLE ballot_details (
    feedback_id TEXT PRIMARY KEY,
    reporter_id TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    client      TEXT NOT NULL,
    client_key  TEXT NOT NULL,
    query_id    TEXT NOT NULL,
    reason      TEXT NOT NULL,
    -- A JSON object of strings.
    context     TEXT NOT NULL
);

-- Changes of candidates' statuses, in order.
CREATE TABLE transitions (
    candidate_id   TEXT    NOT NULL,
    sequence       INTEGER  NOT NULL,
    -- 0: it was created.
    from_status    INTEGER NOT NULL,
    to_status      INTEGER NOT NULL,
    cause          INTEGER NOT NULL,
    reason         TEXT    NOT NULL,
    caller         TEXT    NOT NULL,
    on_behalf_of   TEXT    NOT NULL,
    at             INTEGER  NOT NULL,
    -- 0: no resource changed.
    revision       INTEGER  NOT NULL,
    policy_version INTEGER  NOT NULL,
    PRIMARY KEY (candidate_id, sequence)
);

-- What applies now.
CREATE TABLE resources (
    contest_id     TEXT    PRIMARY KEY,
    namespace      TEXT    NOT NULL,
    kind           INTEGER NOT NULL,
    key            TEXT    NOT NULL,
    qualifier      TEXT    NOT NULL,
    user_id        TEXT    NOT NULL,
    revision       INTEGER  NOT NULL,
    value          BLOB   NOT NULL,
    value_checksum INTEGER  NOT NULL,
    committed_at   INTEGER  NOT NULL
);

-- How many resources of a kind a namespace holds.
CREATE TABLE resource_counts (
    namespace TEXT    NOT NULL,
    kind      INTEGER NOT NULL,
    count     INTEGER  NOT NULL,
    PRIMARY KEY (namespace, kind)
);

-- The log. Not pruned.
CREATE TABLE revisions (
    revision       INTEGER  PRIMARY KEY,
    operation_id   TEXT    NOT NULL,
    cause          INTEGER NOT NULL,
    caller         TEXT    NOT NULL,
    on_behalf_of   TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    committed_at   INTEGER  NOT NULL
);
CREATE INDEX revisions_by_operation ON revisions (operation_id) WHERE operation_id <> '';

-- What each revision changed; at most one change per key and revision.
CREATE TABLE changes (
    revision            INTEGER  NOT NULL REFERENCES revisions (revision),
    ordinal             INTEGER NOT NULL,
    contest_id          TEXT    NOT NULL,
    namespace           TEXT    NOT NULL,
    kind                INTEGER NOT NULL,
    key                 TEXT    NOT NULL,
    qualifier           TEXT    NOT NULL,
    user_id             TEXT    NOT NULL,
    -- Null: the resource was deleted.
    value               BLOB,
    value_checksum      INTEGER  NOT NULL,
    -- Null: there was nothing before.
    before_value        BLOB,
    candidate_id        TEXT    NOT NULL,
    feedback_id         TEXT    NOT NULL,
    -- 0: no feedback caused it.
    feedback_received_at INTEGER NOT NULL,
    traceparent         TEXT    NOT NULL,
    -- 0: a person decided.
    policy_version      INTEGER  NOT NULL,
    PRIMARY KEY (revision, ordinal)
);
CREATE INDEX changes_by_contest ON changes (contest_id, revision DESC);
CREATE INDEX changes_by_namespace ON changes (namespace, revision DESC);
CREATE INDEX changes_deletions ON changes (revision) WHERE value IS NULL;

-- Policies that were set; the newest version of each is in force, the others are history.
CREATE TABLE policies (
    namespace            TEXT    NOT NULL,
    kind                 INTEGER NOT NULL,
    version              INTEGER  NOT NULL,
    risk                 INTEGER NOT NULL,
    threshold            INTEGER NOT NULL,
    counting             INTEGER NOT NULL,
    -- Seconds; 0: votes do not decay.
    half_life            INTEGER  NOT NULL,
    max_derived_voters   INTEGER NOT NULL,
    max_resources        INTEGER  NOT NULL,
    max_value_bytes      INTEGER NOT NULL,
    max_counted_feedback INTEGER NOT NULL,
    caller               TEXT    NOT NULL,
    on_behalf_of         TEXT    NOT NULL,
    reason               TEXT    NOT NULL,
    updated_at           INTEGER  NOT NULL,
    PRIMARY KEY (namespace, kind, version)
);

-- Search nodes as last seen. A node id belongs to the caller that opened its stream.
CREATE TABLE nodes (
    caller          TEXT    NOT NULL,
    node_id         TEXT    NOT NULL,
    -- An encoded emend.learning.v1.NodeInfo: what it said of itself when it subscribed.
    info            BLOB   NOT NULL,
    -- An encoded emend.learning.v1.ReportStatusRequest: what it reported last. Empty before the first report.
    report          BLOB   NOT NULL,
    -- The running replica that holds its stream, or held it last.
    replica         TEXT    NOT NULL,
    connected       INTEGER NOT NULL,
    connected_at    INTEGER  NOT NULL,
    seen_at         INTEGER  NOT NULL,
    PRIMARY KEY (node_id, caller)
);
CREATE INDEX nodes_by_seen ON nodes (seen_at);
CREATE INDEX contests_of_users ON contests (namespace, user_id) WHERE user_id <> '';

-- Users who were erased, by the pseudonym under which their votes count: what was said for such a user alone before the
-- erasure is not learned, also if it arrives later.
CREATE TABLE erased_users (
    voter        TEXT   PRIMARY KEY,
    accept_order INTEGER NOT NULL
);

-- Contests of erased users, until the deletions of their resources have expired and the log need no longer name them.
CREATE TABLE erased_contests (
    contest_id TEXT   PRIMARY KEY,
    pseudonym  TEXT   NOT NULL,
    -- The log names the user up to this revision.
    revision   INTEGER NOT NULL
);
