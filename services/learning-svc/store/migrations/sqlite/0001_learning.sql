-- learning-svc on SQLite. The same tables as on PostgreSQL; portable SQL reads and writes both.
--
-- Conventions. A column named *_at is microseconds since 1970-01-01T00:00:00Z, by the database's clock where a comment
-- says nothing else. Ids are the 16 bytes of a UUID; inside, rows refer to contests and candidates by integer keys. A text
-- that is not there is '', an id that is not there NULL. There are no foreign keys: all rows that belong together are
-- written in one transaction, and checking them again at every insert would cost more than the insert; `emend doctor`
-- checks them. Personal parts (reporter, free text, context) sit in tables of their own, apart from what counts, so that
-- they can be erased and leave votes, counts and the log as they are.

-- The database's clock, in one place.
CREATE VIEW database_clock AS
SELECT CAST(round(unixepoch('now', 'subsec') * 1000000) AS INTEGER) AS now;

-- The head of the one revision log. One row; locked last by every transaction that writes revisions, so that revisions are
-- gap-free and committed in their order with any number of replicas.
CREATE TABLE head (
    id                INTEGER PRIMARY KEY CHECK (id = 1),
    -- Minted once, when the database is created; kept by backups and by a new epoch.
    installation_id   BLOB NOT NULL CHECK (length(installation_id) = 16),
    epoch             BLOB NOT NULL CHECK (length(epoch) = 16),
    revision          INTEGER NOT NULL,
    -- Deletions at or below this revision may be forgotten: a cursor older than it gets a snapshot.
    tombstone_horizon INTEGER NOT NULL,
    created_at        INTEGER NOT NULL
) STRICT;

-- Events that were applied, with their outcome. Never pruned. Event ids are UUIDv7: new rows go to the end.
CREATE TABLE inbox (
    event_id    BLOB PRIMARY KEY,
    feedback_id BLOB NOT NULL,
    -- By the service's clock.
    applied_at  INTEGER NOT NULL,
    -- An encoded emend.common.v1.Outcome.
    outcome     BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Retractions that overtook their feedback, and all others: a feedback with a mark never counts.
CREATE TABLE retraction_marks (
    feedback_id BLOB PRIMARY KEY,
    event_id    BLOB NOT NULL,
    caller      TEXT NOT NULL,
    -- The roles of who retracted it, joined by commas.
    sender_roles TEXT NOT NULL,
    -- By feedback-svc's database.
    marked_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Redactions that overtook their feedback, and all others: of a feedback with a mark no personal part is stored.
CREATE TABLE redaction_marks (
    feedback_id BLOB PRIMARY KEY,
    event_id    BLOB NOT NULL,
    caller      TEXT NOT NULL,
    -- By feedback-svc's database.
    marked_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Everything proposed for one resource key. Only this table has the key's parts: where the log need no longer name
-- an erased user, its changes are moved to a contest whose user is a pseudonym.
CREATE TABLE contests (
    contest              INTEGER PRIMARY KEY,
    -- Derived from the key's parts, ending with the hash of the key; rows are locked in the order of these ids.
    contest_id           BLOB NOT NULL,
    namespace            TEXT NOT NULL,
    -- emend.common.v1.ResourceKind.
    kind                 INTEGER NOT NULL,
    key                  TEXT NOT NULL,
    -- The last 24 bits of the id, which are the hash of the key alone.
    key_hash             INTEGER NOT NULL,
    qualifier            TEXT NOT NULL,
    user_id              TEXT NOT NULL,
    pinned               INTEGER NOT NULL,
    -- Kept when the contest is cleared or deleted.
    highest_accept_order INTEGER NOT NULL,
    -- The policy version by which it was last evaluated; what is pending below the policy's version is evaluated anew.
    policy_version       INTEGER NOT NULL,
    -- Whether anything in it waits: 1 while a candidate is PENDING or AWAITING_REVIEW, and always where a window of ratings
    -- decides, which shows another part of them as soon as the policy is another.
    pending              INTEGER NOT NULL,
    -- Whether what the key names is known, where rulings need that; 2: it is, and nobody corrects it.
    target_known         INTEGER NOT NULL,
    -- Where the kind is decided by review: the number of the version that is current (0: none), and the last number given; where
    -- several contests count their versions together, only that of one of them.
    current_version      INTEGER NOT NULL,
    last_version         INTEGER NOT NULL,
    -- How many decisions it has seen, after which no earlier one can be undone.
    decisions            INTEGER NOT NULL DEFAULT 0,
    -- By the service's clock.
    created_at           INTEGER NOT NULL
) STRICT;
-- By id, which says the hash, and lists of candidates and of revisions by key alone. One index for both, as each new row lies
-- at random in it.
CREATE UNIQUE INDEX contests_by_key ON contests (key_hash, contest_id);
-- Targets for which improvements may be generated without a request: kind 9 is PROMPT.
CREATE INDEX contests_of_prompts ON contests (namespace, contest) WHERE kind = 9 AND current_version > 0;
-- What an AI is asked for, as far as it was rated or has a prompt: kind 6 is FEW_SHOT_SET.
CREATE INDEX contests_of_outputs ON contests (namespace, key) WHERE kind IN (6, 9);
-- What a user has alone, for its erasure.
CREATE INDEX contests_of_users ON contests (namespace, user_id) WHERE user_id <> '';
-- What a changed policy has left to evaluate; asked for all the time, and hardly ever anything.
CREATE INDEX contests_to_reevaluate ON contests (namespace, kind, policy_version, contest) WHERE pending = 1;
-- What waits for a claim or an edge.
CREATE INDEX contests_without_target ON contests (key_hash) WHERE target_known = 0;
-- The same, to find those whose target has arrived; asked for all the time.
CREATE INDEX contests_to_arrive ON contests (contest_id) WHERE target_known = 0;

-- Proposed values.
CREATE TABLE candidates (
    candidate         INTEGER PRIMARY KEY,
    -- Derived from contest and value, ending with the hash of the contest's key.
    candidate_id      BLOB NOT NULL,
    contest           INTEGER NOT NULL,
    -- Those of its contest, repeated for lists.
    namespace         TEXT NOT NULL,
    kind              INTEGER NOT NULL,
    -- NULL: that of the change of its contest by the revision that applied it, where it was imported.
    value             BLOB,
    status            INTEGER NOT NULL,
    status_reason     TEXT NOT NULL,
    origin            INTEGER NOT NULL,
    edited_from       BLOB,
    hold              TEXT NOT NULL,
    decision_reason   TEXT NOT NULL,
    decided_caller    TEXT NOT NULL,
    decided_for       TEXT NOT NULL,
    occurrences       INTEGER NOT NULL,
    reporters         INTEGER NOT NULL,
    net               INTEGER NOT NULL,
    risk              INTEGER NOT NULL,
    threshold         INTEGER NOT NULL,
    policy_version    INTEGER NOT NULL,
    -- 0: a person applied it, or nobody.
    applied_threshold INTEGER NOT NULL,
    applied_revision  INTEGER NOT NULL,
    -- What is kept of a ruling: its accept order (0: it is none), its sender's roles joined by commas, whether a person
    -- decided it or approved it, and whether it was taken back (0 no, 1 by somebody not entitled, 2 by somebody entitled,
    -- 3 by a revert).
    ruling_order      INTEGER NOT NULL,
    ruling_roles      TEXT NOT NULL,
    ruling_approved   INTEGER NOT NULL,
    ruling_taken_back INTEGER NOT NULL,
    -- What is kept of a proposal under review: the number of its version (0: it is none) and of the version it was made for,
    -- what was decided (1 open, 2 approved, 3 rejected, 4 closed), and when a person approved or rejected it, by the service's
    -- clock (0: nobody did).
    proposal_version  INTEGER NOT NULL,
    proposal_base     INTEGER NOT NULL,
    proposal_verdict  INTEGER NOT NULL,
    proposal_decided_at INTEGER NOT NULL,
    -- Both by the service's clock.
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    -- How many transitions it has had; the next one's sequence.
    transitions       INTEGER NOT NULL,
    -- Grows with each change; the etag.
    version           INTEGER NOT NULL
) STRICT;
-- Every decision reads the candidates of its contests. By id alone, they are looked up in the contests that the id may be of.
CREATE UNIQUE INDEX candidates_by_contest ON candidates (contest, candidate_id);
-- Where a proposal is decided by review, only those that are open or applied are read. Without its last column SQLite would take
-- the next index, and read all versions.
CREATE INDEX candidates_under_review ON candidates (contest, status, proposal_version) WHERE proposal_version > 0;
-- The versions of a prompt, without what they say.
CREATE INDEX candidates_by_version ON candidates (contest, proposal_version) WHERE proposal_version > 0;
-- Lists, newest first, by any set of kinds and statuses: the newest of each kind and status, merged. Also what there is of
-- each kind and status is counted here, not on the table with its values. A vote that changes no status does not touch it.
CREATE INDEX candidates_listed ON candidates (namespace, kind, status, created_at, candidate_id);
-- What one reviewer approved, where it takes two.
CREATE INDEX candidates_approved_once ON candidates (namespace, candidate) WHERE status_reason = 'SECOND_REVIEWER';

-- One correction's support of a candidate; one ballot for each of its effects. Of a voter's ballots in a contest that were not retracted the newest by accept
-- order is the live vote. A ballot names its candidate by id, because one whose retraction came first has a candidate that
-- need not exist. Feedback ids are UUIDv7: new rows go to the end.
CREATE TABLE ballots (
    feedback_id   BLOB NOT NULL,
    contest       INTEGER NOT NULL,
    candidate_id  BLOB NOT NULL,
    accept_order  INTEGER NOT NULL,
    -- A pseudonym.
    voter         BLOB NOT NULL,
    identified    INTEGER NOT NULL,
    caller        TEXT NOT NULL,
    -- By feedback-svc's database.
    received_at   INTEGER NOT NULL,
    retracted     INTEGER NOT NULL,
    system_choice TEXT NOT NULL,
    traceparent   TEXT NOT NULL,
    PRIMARY KEY (feedback_id, contest)
) STRICT, WITHOUT ROWID;
-- The newest ballots of a contest, for decisions, without passing over what was retracted; those of one candidate are picked
-- from them.
CREATE INDEX ballots_by_contest ON ballots (contest, retracted, accept_order);

-- What a redaction erases.
CREATE TABLE ballot_details (
    feedback_id BLOB PRIMARY KEY,
    reporter_id TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    client      TEXT NOT NULL,
    client_key  TEXT NOT NULL,
    query_id    TEXT NOT NULL,
    reason      TEXT NOT NULL,
    -- A JSON object of strings.
    context     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Ratings of what an AI made, for contests decided by a window of ratings. Of the ratings of one output by one voter the newest
-- that is not excluded is live. Feedback ids are UUIDv7: new rows go to the end.
CREATE TABLE ratings (
    -- Grows within a contest in the order in which its ratings arrived: its row is locked by whoever adds one.
    rating       INTEGER PRIMARY KEY,
    feedback_id  BLOB NOT NULL UNIQUE,
    contest      INTEGER NOT NULL,
    accept_order INTEGER NOT NULL,
    -- Pseudonyms of who rated, and of what was rated.
    voter        BLOB NOT NULL,
    rated        BLOB NOT NULL,
    -- 1 good, 2 neutral, 3 bad.
    class        INTEGER NOT NULL,
    -- Of the prompt that made the output; may be empty.
    prompt_version TEXT NOT NULL,
    -- By feedback-svc's database.
    received_at  INTEGER NOT NULL,
    -- 1: it was retracted or redacted, and never counts again.
    excluded     INTEGER NOT NULL,
    live         INTEGER NOT NULL
) STRICT;
-- What is said of an output, the newest first.
CREATE INDEX ratings_of_output ON ratings (contest, rated, class, accept_order, feedback_id) WHERE live = 1;
-- What arrived since an improvement was begun.
CREATE INDEX ratings_arrived ON ratings (contest, class, rating) WHERE live = 1;
-- How many ratings each version of a prompt has, and since when.
CREATE INDEX ratings_by_version ON ratings (contest, prompt_version, class, received_at) WHERE live = 1;
-- Which rating of an output by a voter is live, and which was before it.
CREATE INDEX ratings_by_voter ON ratings (contest, voter, rated, accept_order, feedback_id) WHERE excluded = 0;

-- What the live ratings of each output come to; one row for each output that was rated, however many rated it.
CREATE TABLE rated_outputs (
    contest      INTEGER NOT NULL,
    -- A pseudonym of what was rated.
    rated        BLOB NOT NULL,
    -- How many live ratings say that it is good, and that it is bad.
    good         INTEGER NOT NULL,
    bad          INTEGER NOT NULL,
    -- What more of them say: 1 good, 3 bad; 0: neither is more.
    class        INTEGER NOT NULL,
    -- The newest live rating of that class; NULL where it has none.
    accept_order INTEGER,
    feedback_id  BLOB,
    PRIMARY KEY (contest, rated)
) STRICT, WITHOUT ROWID;
-- What is shown, and what takes its place.
CREATE INDEX rated_outputs_by_class ON rated_outputs (contest, class, accept_order, feedback_id);

-- What ratings say, masked, of those that are not excluded.
CREATE TABLE rating_texts (
    feedback_id BLOB PRIMARY KEY,
    input       TEXT NOT NULL,
    output      TEXT NOT NULL,
    corrected   TEXT NOT NULL,
    judgement   TEXT NOT NULL,
    -- A JSON array of strings.
    issues      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Since when the version of a prompt is current that is: what arrived after it is for the next improvement, whichever version it
-- says. A row for each contest of a prompt that ever had one.
CREATE TABLE current_prompts (
    contest      INTEGER PRIMARY KEY,
    version      INTEGER NOT NULL,
    -- The last rating that had arrived.
    since_rating INTEGER NOT NULL
) STRICT;

-- Better prompts that were generated, and those that are being generated: of a target, one at a time. Not pruned.
CREATE TABLE improvements (
    improvement    INTEGER PRIMARY KEY,
    -- The bytes of the proposal that it is.
    improvement_id BLOB NOT NULL UNIQUE,
    -- The contest that counts the versions of its target, and the contest that it is proposed in.
    target         INTEGER NOT NULL,
    contest        INTEGER NOT NULL,
    -- The version that it was made for.
    base_version   INTEGER NOT NULL,
    -- While it is generated: a random token of whoever does so, and until when others leave it alone, by the database's clock.
    lease          BLOB,
    leased_until   INTEGER NOT NULL,
    -- NULL: it is being generated.
    candidate_id   BLOB UNIQUE,
    -- What generated it, and why it is better in the generator's words.
    generator      TEXT NOT NULL,
    reason         TEXT NOT NULL,
    -- The ratings that it was made of.
    good_count     INTEGER NOT NULL,
    neutral_count  INTEGER NOT NULL,
    bad_count      INTEGER NOT NULL,
    -- The last of them to arrive: what arrived after it is for the next one, whenever it was accepted.
    newest_rating  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX improvements_running ON improvements (target) WHERE candidate_id IS NULL;
CREATE INDEX improvements_by_target ON improvements (target, improvement);

-- The ratings that improvements were made of: what a redacted one said may still be in the text of a prompt.
CREATE TABLE improvement_ratings (
    improvement INTEGER NOT NULL,
    feedback_id BLOB NOT NULL,
    PRIMARY KEY (improvement, feedback_id)
) STRICT, WITHOUT ROWID;

-- What users did, as their applications told it, masked; from it entries of profiles are suggested. Personal, and in this table
-- alone: erased with the user. Of each user the newest 10,000 are kept, for as long as the service's setting says.
CREATE TABLE activities (
    namespace        TEXT NOT NULL,
    user_id          TEXT NOT NULL,
    source_type      TEXT NOT NULL,
    source_id        TEXT NOT NULL,
    -- As the application says.
    occurred_at      INTEGER NOT NULL,
    summary          TEXT NOT NULL,
    -- JSON arrays of strings.
    technologies     TEXT NOT NULL,
    topics           TEXT NOT NULL,
    goals            TEXT NOT NULL,
    -- -1: it shows none.
    experience_years INTEGER NOT NULL,
    -- When it was stored.
    recorded_at      INTEGER NOT NULL,
    PRIMARY KEY (namespace, user_id, source_type, source_id)
) STRICT, WITHOUT ROWID;
-- A user's newest, and the oldest beyond them.
CREATE INDEX activities_newest ON activities (namespace, user_id, occurred_at, source_type, source_id);
-- What has been kept for long enough.
CREATE INDEX activities_by_age ON activities (recorded_at);

-- What is kept of candidates that suggest an entry of a profile.
CREATE TABLE suggestions (
    candidate   INTEGER PRIMARY KEY,
    -- emend.learning.v1.SuggestionType.
    type        INTEGER NOT NULL,
    reason      TEXT NOT NULL,
    source_type TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    -- In thousandths.
    confidence  INTEGER NOT NULL
) STRICT;

-- Changes of candidates' statuses, in order.
CREATE TABLE transitions (
    candidate      INTEGER NOT NULL,
    sequence       INTEGER NOT NULL,
    -- 0: it was created.
    from_status    INTEGER NOT NULL,
    to_status      INTEGER NOT NULL,
    cause          INTEGER NOT NULL,
    reason         TEXT NOT NULL,
    caller         TEXT NOT NULL,
    on_behalf_of   TEXT NOT NULL,
    -- By the service's clock.
    made_at        INTEGER NOT NULL,
    -- 0: no resource changed.
    revision       INTEGER NOT NULL,
    policy_version INTEGER NOT NULL,
    PRIMARY KEY (candidate, sequence)
) STRICT, WITHOUT ROWID;
-- What reviewers decided of late.
CREATE INDEX transitions_by_people ON transitions (made_at) WHERE cause IN (2, 3, 5, 9);

-- The candidates that await review, with what lists of them are ordered by. Apart from candidates, because each vote changes
-- that: an index there would be written for every vote on whatever gathers votes.
CREATE TABLE waiting_candidates (
    candidate    INTEGER PRIMARY KEY,
    namespace    TEXT NOT NULL,
    kind         INTEGER NOT NULL,
    reporters    INTEGER NOT NULL,
    -- How little its support differs from that of its strongest rival; 1000000000: it has none.
    controversy  INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    candidate_id BLOB NOT NULL
) STRICT;
CREATE INDEX waiting_by_votes ON waiting_candidates (namespace, kind, reporters, candidate_id);
CREATE INDEX waiting_by_controversy ON waiting_candidates (namespace, kind, controversy, candidate_id);
CREATE INDEX waiting_by_age ON waiting_candidates (namespace, kind, created_at);

-- The newest approval or rejection of each contest by a person, for as long as it can be undone. A row for each contest; dropped
-- some minutes later.
CREATE TABLE undoable_decisions (
    contest        INTEGER PRIMARY KEY,
    -- The candidate that was decided on, and the one that was applied or rejected: another one where the value was edited.
    candidate_id   BLOB NOT NULL,
    subject_id     BLOB NOT NULL,
    -- The number of the decision in the contest: it is the last one while the contest has seen no more.
    number         INTEGER NOT NULL,
    -- What was before: whether the contest was pinned, how often anything had been proposed in it, and by which policy.
    pinned         INTEGER NOT NULL,
    occurrences    INTEGER NOT NULL,
    policy_version INTEGER NOT NULL,
    caller         TEXT NOT NULL,
    on_behalf_of   TEXT NOT NULL,
    made_at        INTEGER NOT NULL
) STRICT;
CREATE INDEX undoable_decisions_by_age ON undoable_decisions (made_at);

-- The candidates that such a decision changed, as they were before it.
CREATE TABLE undoable_changes (
    contest           INTEGER NOT NULL,
    candidate_id      BLOB NOT NULL,
    -- Its status since.
    status_after      INTEGER NOT NULL,
    -- 0: the decision created it, and nothing else of it is kept.
    status            INTEGER NOT NULL,
    status_reason     TEXT NOT NULL,
    hold              TEXT NOT NULL,
    decision_reason   TEXT NOT NULL,
    -- 0: a person had applied it, or nobody.
    applied_threshold INTEGER NOT NULL,
    -- NULL: the same as since.
    value             BLOB,
    -- Of a ruling: whether a person had approved it.
    ruling_approved   INTEGER NOT NULL,
    -- Of a proposal under review: as in candidates; 0: it is none.
    proposal_verdict  INTEGER NOT NULL,
    proposal_decided_at INTEGER NOT NULL,
    PRIMARY KEY (contest, candidate_id)
) STRICT, WITHOUT ROWID;

-- Who has a candidate open for review: some thousands of rows at most, dropped once they have expired.
CREATE TABLE review_leases (
    candidate_id BLOB PRIMARY KEY,
    caller       TEXT NOT NULL,
    on_behalf_of TEXT NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX review_leases_by_expiry ON review_leases (expires_at);

-- What reviewers write about candidates for each other: questions for a second opinion, answers and other comments.
CREATE TABLE review_comments (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    candidate    INTEGER NOT NULL,
    -- That of its contest, repeated for lists.
    namespace    TEXT NOT NULL,
    caller       TEXT NOT NULL,
    on_behalf_of TEXT NOT NULL,
    comment      TEXT NOT NULL,
    -- 1: it asks for a second opinion, of whom (empty: of anybody else), and whether nobody has answered.
    asks         INTEGER NOT NULL,
    asked        TEXT NOT NULL,
    is_open      INTEGER NOT NULL,
    written_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX review_comments_of_candidate ON review_comments (candidate, number);
-- What a reviewer wrote of late.
CREATE INDEX review_comments_by_time ON review_comments (namespace, written_at);
CREATE INDEX review_comments_open ON review_comments (namespace, candidate) WHERE is_open = 1;

-- How much happened in the review queue: corrections received, and candidates applied, rejected and withdrawn. A row for each
-- unit of work, kind and UTC day (in days since 1970), because one row for all would hold up whoever decides at the same time.
-- Soon added to queue_days.
CREATE TABLE queue_counts (
    number    INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    day       INTEGER NOT NULL,
    kind      INTEGER NOT NULL,
    received  INTEGER NOT NULL,
    applied   INTEGER NOT NULL,
    rejected  INTEGER NOT NULL,
    withdrawn INTEGER NOT NULL
) STRICT;
CREATE INDEX queue_counts_by_day ON queue_counts (namespace, day);

-- The same, added up. Dropped after some months.
CREATE TABLE queue_days (
    namespace TEXT NOT NULL,
    day       INTEGER NOT NULL,
    kind      INTEGER NOT NULL,
    received  INTEGER NOT NULL,
    applied   INTEGER NOT NULL,
    rejected  INTEGER NOT NULL,
    withdrawn INTEGER NOT NULL,
    PRIMARY KEY (namespace, day, kind)
) STRICT, WITHOUT ROWID;

-- What changes in the review queue, for those who watch it; dropped some minutes later. Written with what it tells.
CREATE TABLE queue_changes (
    change       INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The transaction that wrote it. Changes are read in the order of transactions once no older one is running; there is only
    -- one at a time on SQLite.
    xact         INTEGER NOT NULL DEFAULT 0,
    candidate_id BLOB NOT NULL,
    contest      INTEGER NOT NULL,
    -- 0: it was created.
    from_status  INTEGER NOT NULL,
    -- 0: only who has it open, or what reviewers wrote about it, changed.
    to_status    INTEGER NOT NULL,
    caller       TEXT NOT NULL,
    on_behalf_of TEXT NOT NULL,
    -- 0: no resource changed.
    revision     INTEGER NOT NULL,
    made_at      INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('now', 'subsec') * 1000000) AS INTEGER))
) STRICT;
CREATE INDEX queue_changes_in_order ON queue_changes (xact, change);
CREATE INDEX queue_changes_by_age ON queue_changes (made_at);

-- What applies now.
CREATE TABLE resources (
    contest        INTEGER PRIMARY KEY,
    revision       INTEGER NOT NULL,
    -- NULL: that of its change in the log, where it was imported.
    value          BLOB,
    -- XXH3-64 of the value.
    value_checksum INTEGER NOT NULL,
    committed_at   INTEGER NOT NULL
) STRICT;

-- How many resources of a kind a namespace holds.
CREATE TABLE resource_counts (
    namespace TEXT NOT NULL,
    kind      INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind)
) STRICT, WITHOUT ROWID;

-- The log. Not pruned.
CREATE TABLE revisions (
    revision     INTEGER PRIMARY KEY,
    -- The import or bulk action it is part of.
    operation_id BLOB,
    cause        INTEGER NOT NULL,
    caller       TEXT NOT NULL,
    on_behalf_of TEXT NOT NULL,
    reason       TEXT NOT NULL,
    committed_at INTEGER NOT NULL
) STRICT;
-- Lists of an operation's revisions.
CREATE INDEX revisions_by_operation ON revisions (operation_id, revision) WHERE operation_id IS NOT NULL;

-- Which revisions changed something of a kind in a namespace: lists, newest first, however rare the kind is. One row for
-- all changes of a revision, where an index on changes would have one for each.
CREATE TABLE revision_kinds (
    namespace TEXT NOT NULL,
    kind      INTEGER NOT NULL,
    revision  INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, revision)
) STRICT, WITHOUT ROWID;

-- What each revision changed; at most one change per key and revision.
CREATE TABLE changes (
    revision             INTEGER NOT NULL,
    ordinal              INTEGER NOT NULL,
    contest              INTEGER NOT NULL,
    -- NULL: the resource was deleted. Empty: there was a value, of which only the checksum is kept. So are the values before
    -- the newest where a window of ratings decides, and those of erased users.
    value                BLOB,
    -- XXH3-64 of the value; 0 if there is none.
    value_checksum       INTEGER NOT NULL,
    -- NULL: there was nothing before. Empty: there was a value that is not kept.
    before_value         BLOB,
    -- The candidate that was applied or removed.
    candidate            INTEGER,
    -- The feedback that caused it, and when feedback-svc's database received that; 0: no feedback did.
    feedback_id          BLOB,
    feedback_received_at INTEGER NOT NULL,
    traceparent          TEXT NOT NULL,
    -- 0: a person decided.
    policy_version       INTEGER NOT NULL,
    PRIMARY KEY (revision, ordinal)
) STRICT, WITHOUT ROWID;
-- A resource's newest change, and whether there is a newer one.
CREATE INDEX changes_by_contest ON changes (contest, revision);
-- Tombstones.
CREATE INDEX changes_deletions ON changes (revision, ordinal) WHERE value IS NULL;

-- Policies that were set; the newest version of each is in force, the others are history.
CREATE TABLE policies (
    namespace            TEXT NOT NULL,
    kind                 INTEGER NOT NULL,
    version              INTEGER NOT NULL,
    risk                 INTEGER NOT NULL,
    threshold            INTEGER NOT NULL,
    counting             INTEGER NOT NULL,
    -- Seconds; 0: votes do not decay.
    half_life            INTEGER NOT NULL,
    max_derived_voters   INTEGER NOT NULL,
    max_resources        INTEGER NOT NULL,
    max_value_bytes      INTEGER NOT NULL,
    max_counted_feedback INTEGER NOT NULL,
    -- Whose rulings are effective at once: 1 reporter, 2 reviewer, 3 operator, 4 admin.
    entitled             INTEGER NOT NULL,
    -- How many examples a window shows of each class, after how many characters their texts are cut, and the language
    -- around them (1 en, 2 ja).
    window_good          INTEGER NOT NULL,
    window_bad           INTEGER NOT NULL,
    window_max_text_chars INTEGER NOT NULL,
    window_language      INTEGER NOT NULL,
    -- How many bad ratings an improvement of a prompt needs, and whether one is generated without a request.
    review_min_bad       INTEGER NOT NULL,
    review_automatic     INTEGER NOT NULL,
    -- How many reviewers have to approve what a person applies, 1 or 2.
    reviewers_needed     INTEGER NOT NULL,
    -- Corrections put nothing into force.
    frozen               INTEGER NOT NULL,
    caller               TEXT NOT NULL,
    on_behalf_of         TEXT NOT NULL,
    reason               TEXT NOT NULL,
    -- By the service's clock.
    updated_at           INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, version)
) STRICT, WITHOUT ROWID;

-- Policies of namespaces as a whole, every version that was ever set.
CREATE TABLE namespace_policies (
    namespace         TEXT NOT NULL,
    version           INTEGER NOT NULL,
    -- emend.learning.v1.Combining.
    combining         INTEGER NOT NULL,
    min_claims        INTEGER NOT NULL,
    rejected_permille INTEGER NOT NULL,
    caller            TEXT NOT NULL,
    on_behalf_of      TEXT NOT NULL,
    reason            TEXT NOT NULL,
    -- By the service's clock.
    updated_at        INTEGER NOT NULL,
    PRIMARY KEY (namespace, version)
) STRICT;

-- Users who were erased, by the pseudonym under which their votes count: what was said for such a user alone before the
-- erasure is not learned, also if it arrives later.
CREATE TABLE erased_users (
    voter        BLOB PRIMARY KEY,
    accept_order INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Contests of erased users, until the deletions of their resources have expired and the log need no longer name them.
CREATE TABLE erased_contests (
    contest   INTEGER PRIMARY KEY,
    pseudonym TEXT NOT NULL,
    -- The log names the user up to this revision.
    revision  INTEGER NOT NULL
) STRICT;

-- Search nodes as last seen, some thousands at most: no index by time. A node id belongs to the caller that opened its
-- stream.
CREATE TABLE nodes (
    node_id      TEXT NOT NULL,
    caller       TEXT NOT NULL,
    -- An encoded emend.learning.v1.NodeInfo: what it said of itself when it subscribed.
    info         BLOB NOT NULL,
    -- An encoded emend.learning.v1.ReportStatusRequest: what it reported last. Empty before the first report.
    report       BLOB NOT NULL,
    -- The running replica that holds its stream, or held it last.
    replica      TEXT NOT NULL,
    connected    INTEGER NOT NULL,
    connected_at INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL,
    PRIMARY KEY (node_id, caller)
) STRICT, WITHOUT ROWID;

-- The evidence graph. Inside, nodes refer to each other by integer keys; the backends' own ids are unique in their namespace.
-- Pages, fragments, claims and edges may be deleted; namespaces, domains, hosts and tasks stay.

-- Namespaces that have evidence or rules about domains. Who adds domains locks the row shared; who changes rules about domains, who
-- brings levels up to date, and who changes what edges of others depend on (ids of works, what was upserted wrongly, deletions)
-- exclusively: so no domain keeps a level that a rule has changed meanwhile, and no edge is added unseen.
CREATE TABLE evidence_spaces (
    space     INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL UNIQUE,
    -- How often rules about domains changed.
    rules     INTEGER NOT NULL,
    -- The namespace's policy changed: its domains after this name are to be verified anew. NULL: none are.
    verify_after TEXT
) STRICT;
CREATE INDEX evidence_spaces_to_verify ON evidence_spaces (space) WHERE verify_after IS NOT NULL;

-- Registrable domains: what the system blocks or raises by what their claims came to.
CREATE TABLE evidence_domains (
    domain INTEGER PRIMARY KEY,
    space  INTEGER NOT NULL,
    name   TEXT NOT NULL,
    -- 1: a claim or a rule changed, and what follows for the domain is to be computed anew.
    stale  INTEGER NOT NULL,
    UNIQUE (space, name)
) STRICT;
CREATE INDEX evidence_domains_stale ON evidence_domains (domain) WHERE stale = 1;

-- Hosts of pages, with how far they are trusted now.
CREATE TABLE evidence_hosts (
    host      INTEGER PRIMARY KEY,
    space     INTEGER NOT NULL,
    -- With its labels in reverse, "org.example.www", so that all hosts below a name are together.
    reversed  TEXT NOT NULL,
    domain    INTEGER NOT NULL,
    -- Levels by their numbers on the wire: by all layers, and by the layers human and file only.
    level     INTEGER NOT NULL,
    set_level INTEGER NOT NULL,
    -- The layer that decided: 0 none, 1 human, 2 file, 3 verified.
    layer     INTEGER NOT NULL,
    UNIQUE (space, reversed)
) STRICT;
CREATE INDEX evidence_hosts_by_level ON evidence_hosts (space, level, host);
CREATE INDEX evidence_hosts_by_domain ON evidence_hosts (domain);

-- Names of which rules changed: the levels of the hosts at and below them are brought up to date in batches.
CREATE TABLE evidence_stale_names (
    stale    INTEGER PRIMARY KEY,
    space    INTEGER NOT NULL,
    reversed TEXT NOT NULL,
    -- Hosts up to this one are done.
    done     TEXT NOT NULL
) STRICT;
CREATE INDEX evidence_stale_names_by_space ON evidence_stale_names (space, stale);

-- Tasks that claims and edges belong to.
CREATE TABLE evidence_tasks (
    task    INTEGER PRIMARY KEY,
    space   INTEGER NOT NULL,
    task_id TEXT NOT NULL,
    UNIQUE (space, task_id)
) STRICT;

-- Pages of sources.
CREATE TABLE evidence_pages (
    page     INTEGER PRIMARY KEY,
    space    INTEGER NOT NULL,
    page_id  TEXT NOT NULL,
    -- 0: none.
    host     INTEGER NOT NULL,
    url      TEXT NOT NULL,
    title    TEXT NOT NULL,
    -- Canonical: "10.1000/x", "12345", "2101.00001".
    doi      TEXT NOT NULL,
    pmid     TEXT NOT NULL,
    arxiv_id TEXT NOT NULL,
    -- The work that it publishes; 0: none that has an id.
    work     INTEGER NOT NULL,
    UNIQUE (space, page_id)
) STRICT;
CREATE INDEX evidence_pages_by_work ON evidence_pages (work) WHERE work <> 0;

-- Works: pages that share an id, also by way of other pages. Of two that an upsert joins, the one of fewer pages takes the key of
-- the other: so a page seldom gets another key, however many there are of its work.
CREATE TABLE evidence_works (
    work  INTEGER PRIMARY KEY,
    space INTEGER NOT NULL,
    -- How many pages it has.
    pages INTEGER NOT NULL
) STRICT;

-- Which work an id is of: "doi:10.1000/x". An id that no page has any more has no row.
CREATE TABLE evidence_identities (
    space    INTEGER NOT NULL,
    identity TEXT NOT NULL,
    work     INTEGER NOT NULL,
    PRIMARY KEY (space, identity)
) STRICT, WITHOUT ROWID;
CREATE INDEX evidence_identities_by_work ON evidence_identities (work);

-- Parts of pages.
CREATE TABLE evidence_fragments (
    fragment    INTEGER PRIMARY KEY,
    space       INTEGER NOT NULL,
    fragment_id TEXT NOT NULL,
    page        INTEGER NOT NULL,
    text        TEXT NOT NULL,
    UNIQUE (space, fragment_id)
) STRICT;
CREATE INDEX evidence_fragments_by_page ON evidence_fragments (page, fragment);

-- Claims.
CREATE TABLE evidence_claims (
    claim      INTEGER PRIMARY KEY,
    space      INTEGER NOT NULL,
    claim_id   TEXT NOT NULL,
    -- 0: none.
    task       INTEGER NOT NULL,
    -- 0: none.
    page       INTEGER NOT NULL,
    -- The host of that page; 0: none.
    host       INTEGER NOT NULL,
    text       TEXT NOT NULL,
    -- 1 adopted, 2 not adopted.
    adoption   INTEGER NOT NULL,
    -- A JSON array of the names of dangerous patterns.
    patterns   TEXT NOT NULL,
    -- What people decided: 0 nothing, 1 rejected, 2 restored.
    ruled      INTEGER NOT NULL,
    -- 1 pending, 2 verified, 3 rejected.
    status     INTEGER NOT NULL,
    -- 1: its edges or their sources changed, and whether it is verified is to be computed anew.
    stale      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (space, claim_id)
) STRICT;
CREATE INDEX evidence_claims_by_task ON evidence_claims (task, claim) WHERE task <> 0;
CREATE INDEX evidence_claims_by_status ON evidence_claims (space, status, claim);
CREATE INDEX evidence_claims_stale ON evidence_claims (claim) WHERE stale = 1;
CREATE INDEX evidence_claims_by_page ON evidence_claims (page, claim) WHERE page <> 0;
-- For what a domain is blocked.
CREATE INDEX evidence_claims_dangerous ON evidence_claims (host) WHERE patterns <> '[]';

-- Edges.
CREATE TABLE evidence_edges (
    edge        INTEGER PRIMARY KEY,
    space       INTEGER NOT NULL,
    edge_id     TEXT NOT NULL,
    -- 0: none.
    task        INTEGER NOT NULL,
    -- Sorts of nodes: 1 page, 2 fragment, 3 claim.
    source_sort INTEGER NOT NULL,
    source      INTEGER NOT NULL,
    target_sort INTEGER NOT NULL,
    target      INTEGER NOT NULL,
    -- The page of the source, and its host; 0: none.
    page        INTEGER NOT NULL,
    host        INTEGER NOT NULL,
    -- Relations by their numbers on the wire: as upserted, as the model says (0: it did not say), and how sure it is.
    given       INTEGER NOT NULL,
    label       INTEGER NOT NULL,
    confidence  REAL,
    -- What a person says is right; 0: nobody reviewed it. When that was accepted, and the feedback that it was.
    ruled       INTEGER NOT NULL,
    ruled_at    INTEGER NOT NULL,
    ruled_by    BLOB,
    -- What the model's confidence weighs, in millionths. Then what follows: what the edge is, and what it weighs.
    model_weight INTEGER NOT NULL,
    relation    INTEGER NOT NULL,
    weight      INTEGER NOT NULL,
    UNIQUE (space, edge_id)
) STRICT;
CREATE INDEX evidence_edges_by_target ON evidence_edges (target, edge) WHERE target_sort = 3;
CREATE INDEX evidence_edges_by_source ON evidence_edges (source, edge) WHERE source_sort = 3;
CREATE INDEX evidence_edges_by_cited ON evidence_edges (target, edge) WHERE target_sort = 1;
CREATE INDEX evidence_edges_by_page ON evidence_edges (page, edge);
CREATE INDEX evidence_edges_by_host ON evidence_edges (host, edge);
CREATE INDEX evidence_edges_by_task ON evidence_edges (task, edge) WHERE task <> 0;
CREATE INDEX evidence_edges_reviewed ON evidence_edges (space, ruled_at, edge) WHERE ruled <> 0;

-- What was done to domains, claims and edges, also what had no effect, and what of the graph was replaced or deleted. Not pruned.
CREATE TABLE evidence_events (
    event        INTEGER PRIMARY KEY,
    namespace    TEXT NOT NULL,
    -- 0: an element of the graph was replaced or deleted.
    contest      INTEGER NOT NULL,
    -- 0: a decision is told. 1 page, 2 fragment, 3 claim, 4 edge.
    element_sort INTEGER NOT NULL,
    element_id   TEXT NOT NULL,
    -- emend.learning.v1.EvidenceAction.
    action       INTEGER NOT NULL,
    task_id      TEXT NOT NULL,
    caller       TEXT NOT NULL,
    on_behalf_of TEXT NOT NULL,
    -- Of operators and reviewers; that of a reporter is with the feedback.
    reason       TEXT NOT NULL,
    -- What was in force before and after, and what was asked for, as one word; '': nothing.
    value_before TEXT NOT NULL,
    value_after  TEXT NOT NULL,
    proposed     TEXT NOT NULL,
    feedback_id  BLOB,
    candidate_id BLOB,
    -- 0: it changed nothing.
    revision     INTEGER NOT NULL,
    -- By the service's clock.
    made_at      INTEGER NOT NULL
) STRICT;
-- Of one contest or task in the order of what happened; the others by time, so that a period is a range.
CREATE INDEX evidence_events_listed ON evidence_events (namespace, made_at, event);
CREATE INDEX evidence_events_by_contest ON evidence_events (contest, event);
CREATE INDEX evidence_events_by_element ON evidence_events (namespace, element_sort, element_id, event) WHERE element_sort <> 0;
CREATE INDEX evidence_events_by_task ON evidence_events (namespace, task_id, event) WHERE task_id <> '';
CREATE INDEX evidence_events_by_caller ON evidence_events (namespace, caller, made_at, event);

-- Trust files: the version of each namespace that is in force.
CREATE TABLE trust_files (
    namespace    TEXT PRIMARY KEY,
    version      INTEGER NOT NULL,
    -- XXH3-64 of the file's text.
    checksum     INTEGER NOT NULL,
    operation_id BLOB NOT NULL,
    applied_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
