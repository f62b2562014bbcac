-- The feedback service on PostgreSQL, in the schema that the search path names. The same tables as on SQLite; portable SQL
-- reads and writes both.
--
-- Conventions. A column named *_at is microseconds since 1970-01-01T00:00:00Z, by the database's clock. Ids are the 16
-- bytes of a UUID; inside, the rows of one feedback share its accept order, which is given when it is stored and grows:
-- inserts go to the end of every table. A text that is not there is ''. There are no foreign keys: all rows of a feedback
-- are written in one statement or transaction, and checking them again at every insert would cost more than the insert;
-- `emend doctor` checks them.

-- The database's clock, in one place.
CREATE VIEW database_clock AS
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT AS now;

-- Holds the last accept order given. Only draw_accept_orders() moves it.
CREATE SEQUENCE accept_order AS BIGINT CACHE 1;

-- Gives the next accept orders, so many in a row, and returns the first: at least now, so that they can be compared with the
-- orders that learning-svc gives to what people decide by the clock. Reading and raising the sequence must not be interrupted
-- by another drawing, and the lock must not be held until the transaction ends, or replicas would wait for each other's
-- commits. So the lock is taken in a subtransaction that is rolled back: that releases it, whatever happens; sequences and
-- variables stay as they are.
CREATE FUNCTION draw_accept_orders(how_many BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    first_order BIGINT;
BEGIN
    BEGIN
        PERFORM pg_advisory_xact_lock('accept_order'::regclass::oid::BIGINT);
        SELECT greatest(last_value + 1, (SELECT now FROM database_clock)) INTO first_order FROM accept_order;
        PERFORM setval('accept_order', first_order + how_many - 1);
        RAISE EXCEPTION SQLSTATE 'EM000';
    EXCEPTION WHEN SQLSTATE 'EM000' THEN
        NULL;
    END;
    RETURN first_order;
END
$$;

-- The installation of learning-svc to which events are delivered. One row from the first start on.
CREATE TABLE installation (
    one         BIGINT PRIMARY KEY CHECK (one = 1),
    -- NULL until learning-svc has answered for the first time.
    delivers_to BYTEA  CHECK (length(delivers_to) = 16),
    begun_at    BIGINT NOT NULL
);

-- The ledger: what was said is never changed.
CREATE TABLE feedback (
    accept_order BIGINT PRIMARY KEY,
    feedback_id  BYTEA  NOT NULL UNIQUE CHECK (length(feedback_id) = 16),
    namespace    TEXT   NOT NULL,
    caller       TEXT   NOT NULL,
    request_id   TEXT   NOT NULL,
    -- emend.common.v1.ResourceKind; 0 where a correction teaches no resource.
    kind         BIGINT NOT NULL,
    -- emend.common.v1.Scope.
    scope        BIGINT NOT NULL,
    -- An encoded emend.common.v1.Correction; of a rating, without its texts, which can be erased.
    correction   BYTEA  NOT NULL,
    -- What a rating is of, and its value; '' where it is none.
    target       TEXT   NOT NULL,
    rating       TEXT   NOT NULL,
    traceparent  TEXT   NOT NULL,
    received_at  BIGINT NOT NULL
);
CREATE INDEX feedback_by_namespace ON feedback (namespace, accept_order);
-- Lists of one kind, newest first, find what they show and pass over nothing else, however rare the kind is.
CREATE INDEX feedback_by_kind ON feedback (namespace, kind, accept_order);
-- The same for ratings of one target, and for those with one value; and those of a period, however long ago it was.
CREATE INDEX ratings_by_target ON feedback (namespace, target, accept_order) WHERE target <> '';
CREATE INDEX ratings_by_value ON feedback (namespace, target, rating, accept_order) WHERE target <> '';
CREATE INDEX ratings_by_time ON feedback (namespace, received_at, target, rating) WHERE target <> '';
-- Rows lie in the order of time, so that a range of it is found by a very small index.
CREATE INDEX feedback_by_time ON feedback USING brin (received_at);

CREATE FUNCTION refuse_change() RETURNS TRIGGER LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the feedback ledger is append-only'; END $$;
CREATE TRIGGER feedback_is_not_changed BEFORE UPDATE OR DELETE ON feedback
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What can be erased: the reporter, free text, context. Free text is masked before it comes here.
CREATE TABLE feedback_personal (
    accept_order   BIGINT PRIMARY KEY,
    namespace      TEXT   NOT NULL,
    reporter_id    TEXT   NOT NULL,
    session_id     TEXT   NOT NULL,
    client         TEXT   NOT NULL,
    client_key     TEXT   NOT NULL,
    query_id       TEXT   NOT NULL,
    reason         TEXT   NOT NULL,
    -- A JSON object of texts.
    context        TEXT   NOT NULL,
    retract_reason TEXT   NOT NULL,
    -- What a rating says, an encoded emend.common.v1.Rating of its texts alone; empty where there is none.
    rated          BYTEA  NOT NULL,
    -- Once it is redacted: the pseudonym under which its vote counts, and whether its reporter was known by an id.
    voter          BYTEA,
    identified     BIGINT
);
CREATE INDEX feedback_by_reporter ON feedback_personal (namespace, reporter_id, accept_order) WHERE reporter_id <> '';
CREATE INDEX feedback_by_voter ON feedback_personal (voter) WHERE voter IS NOT NULL;

-- What becomes of it. Every row is updated once soon after its insert: room for that is left on its page.
CREATE TABLE feedback_status (
    accept_order   BIGINT PRIMARY KEY,
    namespace      TEXT   NOT NULL,
    -- emend.feedback.v1.DeliveryState of the newest event.
    delivery_state BIGINT NOT NULL CHECK (delivery_state IN (1, 2, 3)),
    -- How many events there were so far; the newest has this number.
    event_count    BIGINT NOT NULL,
    -- An encoded emend.common.v1.Outcome, as learning-svc answered; null until it has.
    outcome        BYTEA,
    -- The number of the event whose outcome it is; an older event's outcome never replaces it.
    outcome_of     BIGINT NOT NULL,
    retracted_at   BIGINT,
    retracted_by   TEXT   NOT NULL,
    -- The strongest role of who retracted it: 1 reporter to 4 admin, 0 none.
    retract_role   BIGINT NOT NULL,
    -- Its personal parts are erased.
    redacted_at    BIGINT,
    redacted_by    TEXT
) WITH (fillfactor = 60);
CREATE INDEX feedback_undelivered ON feedback_status (namespace, delivery_state, accept_order) WHERE delivery_state <> 2;

-- Events on their way to learning-svc. A row is deleted, its payload with it, once its event is delivered. Event ids are
-- UUIDv7: new rows go to the end.
CREATE TABLE outbox (
    event_id     BYTEA  PRIMARY KEY CHECK (length(event_id) = 16),
    accept_order BIGINT NOT NULL,
    feedback_id  BYTEA  NOT NULL CHECK (length(feedback_id) = 16),
    namespace    TEXT   NOT NULL,
    -- 1 for the first event of a feedback, and so on.
    event_number BIGINT NOT NULL,
    occurred_at  BIGINT NOT NULL,
    -- An encoded emend.learning.v1.Event without what the database gives: accept order and time. It holds the reporter,
    -- free text and context until it is delivered, a dead letter's without end: a redaction has to rewrite the payload of
    -- what is still here. The columns above suffice to find it.
    payload      BYTEA  NOT NULL,
    -- 1 pending, 3 dead letter.
    state        BIGINT NOT NULL CHECK (state IN (1, 3)),
    attempts     BIGINT NOT NULL,
    -- Before this time nobody claims it: the end of a lease, or of a back-off.
    due_at       BIGINT NOT NULL,
    -- Whose lease it is; a failure is noted only under the same token.
    lease_token  BYTEA,
    -- The last refusal: a google.rpc.Code, and in words.
    code         BIGINT NOT NULL,
    error        TEXT   NOT NULL,
    dead_at      BIGINT
-- Nearly every row is deleted within moments: the dead ones are to be cleared before the table grows.
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX outbox_pending ON outbox (accept_order, event_number) WHERE state = 1;
CREATE INDEX outbox_dead ON outbox (dead_at, event_id) WHERE state = 3;

-- What makes submissions safe to repeat; pruned after the retention.
CREATE TABLE request_ids (
    accept_order BIGINT PRIMARY KEY,
    namespace    TEXT   NOT NULL,
    caller       TEXT   NOT NULL,
    request_id   TEXT   NOT NULL,
    -- XXH3-128 of the parsed request.
    request_hash BYTEA  NOT NULL CHECK (length(request_hash) = 16),
    feedback_id  BYTEA  NOT NULL CHECK (length(feedback_id) = 16),
    created_at   BIGINT NOT NULL,
    UNIQUE (namespace, caller, request_id)
);

-- Reporters about whom everything is to be erased.
CREATE TABLE reporter_erasures (
    accept_order BIGINT PRIMARY KEY,
    -- The event that tells learning-svc, in the outbox until it is delivered.
    event_id     BYTEA  NOT NULL,
    namespace    TEXT   NOT NULL,
    -- '' once all feedback of the reporter is redacted.
    reporter_id  TEXT   NOT NULL,
    voter        BYTEA  NOT NULL,
    caller       TEXT   NOT NULL,
    begun_at     BIGINT NOT NULL
);
CREATE INDEX erasures_unfinished ON reporter_erasures (accept_order) WHERE reporter_id <> '';
CREATE INDEX erasures_by_voter ON reporter_erasures (voter);

-- Queries as backends record them, kept for a short time. What is neither looked for nor counted is in details.
CREATE TABLE queries (
    number            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace         TEXT   NOT NULL,
    -- The backend's own id.
    query_id          TEXT   NOT NULL,
    caller            TEXT   NOT NULL,
    query_type        TEXT   NOT NULL,
    embedding_version TEXT   NOT NULL,
    index_version     TEXT   NOT NULL,
    variant           TEXT   NOT NULL,
    -- How many results it found; NULL: not known.
    hit_count         BIGINT,
    -- An encoded emend.feedback.v1.Query of its results, parts of the index, least score, client version and build alone.
    details           BYTEA  NOT NULL,
    searched_at       BIGINT NOT NULL,
    recorded_at       BIGINT NOT NULL,
    -- What tells apart the results that documents of the query named: XXH3-64 of their ids, 8 bytes each, at most 100. NULL: it was
    -- recorded whole, and no document adds to it.
    named_results     BYTEA,
    UNIQUE (namespace, query_id)
);
CREATE INDEX queries_by_namespace ON queries (namespace, number);

-- What a query tells of a person, apart; as old as the query. Texts are masked before they come here.
CREATE TABLE query_personal (
    number         BIGINT PRIMARY KEY,
    namespace      TEXT   NOT NULL,
    session_id     TEXT   NOT NULL,
    query_text     TEXT   NOT NULL,
    answer_text    TEXT   NOT NULL,
    classification TEXT   NOT NULL
);
CREATE INDEX queries_by_session ON query_personal (namespace, session_id, number) WHERE session_id <> '';

-- What users did with results. It may come before its query.
CREATE TABLE query_interactions (
    number      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace   TEXT   NOT NULL,
    query_id    TEXT   NOT NULL,
    action      TEXT   NOT NULL,
    object_id   TEXT   NOT NULL,
    -- Whether the action is a click: what ratings keep, and what says that a rewording worked.
    is_click    BIGINT NOT NULL CHECK (is_click IN (0, 1)),
    -- 1 for the first result; 0: not known.
    position    BIGINT NOT NULL,
    acted_at    BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    UNIQUE (namespace, query_id, action, object_id, position)
);
CREATE INDEX interactions_by_namespace ON query_interactions (namespace, number);

-- Queries and sessions whose texts were erased, by pseudonyms: what is recorded of them within 90 days after that is erased,
-- too.
CREATE TABLE erased_queries (
    pseudonym BYTEA PRIMARY KEY CHECK (length(pseudonym) = 16),
    erased_at BIGINT  NOT NULL
);
CREATE INDEX erased_queries_by_time ON erased_queries (erased_at);

-- Rewordings that worked, and other spellings of what was clicked, that were proposed as synonyms, each once: what found nothing and
-- what was searched for instead, in normal form. They outlive the queries. And queries that found nothing, with nothing searched for instead: those that were told
-- lately, or whose event is still in the outbox. The others are told again as long as they find nothing.
CREATE TABLE mined_rewrites (
    namespace    TEXT   NOT NULL,
    failed       TEXT   NOT NULL,
    worked       TEXT   NOT NULL,
    -- That of its event.
    accept_order BIGINT NOT NULL,
    -- When that was stored.
    told_at      BIGINT NOT NULL,
    PRIMARY KEY (namespace, failed, worked)
);
CREATE INDEX mined_by_order ON mined_rewrites (accept_order);

-- In how many of all queries a word was. It outlives the queries; the rarest words are pruned.
CREATE TABLE query_terms (
    namespace TEXT   NOT NULL,
    term      TEXT   NOT NULL,
    queries   BIGINT NOT NULL,
    PRIMARY KEY (namespace, term)
);

-- How many queries there were a day, in days since 1970-01-01 in UTC. It outlives the queries for two years.
CREATE TABLE query_days (
    namespace         TEXT   NOT NULL,
    day               BIGINT NOT NULL,
    query_type        TEXT   NOT NULL,
    embedding_version TEXT   NOT NULL,
    index_version     TEXT   NOT NULL,
    variant           TEXT   NOT NULL,
    queries           BIGINT NOT NULL,
    -- Of these queries those that found nothing, and those of which it is not known what they found.
    zero_hits         BIGINT NOT NULL,
    unknown_hits      BIGINT NOT NULL,
    PRIMARY KEY (namespace, day, query_type, embedding_version, index_version, variant)
);

-- What the two tables above no longer hold: the queries of days that are too long ago, how many words were pruned because
-- they were rare, and by how much the count of a word may be too low for that.
CREATE TABLE query_counts_pruned (
    namespace  TEXT   PRIMARY KEY,
    queries    BIGINT  NOT NULL,
    words      BIGINT  NOT NULL,
    undercount BIGINT  NOT NULL
);

-- What is known of ratings of search answers beside what was said.
CREATE TABLE search_ratings (
    accept_order  BIGINT PRIMARY KEY,
    namespace     TEXT   NOT NULL,
    -- A pseudonym of who rates, by which the limits are counted; NULL once it is redacted.
    rater         BYTEA  CHECK (length(rater) = 16),
    -- That of the feedback; '' once it is redacted.
    query_id      TEXT   NOT NULL,
    rating        BIGINT NOT NULL CHECK (rating IN (-1, 0, 1)),
    -- emend.feedback.v1.ContextState.
    context_state BIGINT NOT NULL CHECK (context_state IN (1, 2, 3)),
    -- Whether the query was recorded before the rating was stored; 0 while it is not known.
    known_at_once BIGINT NOT NULL CHECK (known_at_once IN (0, 1)),
    -- What is known of the query; '' until it is.
    query_type    TEXT   NOT NULL,
    embedding_version TEXT NOT NULL,
    index_version TEXT   NOT NULL,
    variant       TEXT   NOT NULL,
    -- The query as it was recorded, an encoded emend.feedback.v1.Query whose interactions are its clicks alone, one for each
    -- result. It outlives the query, and is erased with the rating and with the personal parts of the query; '' then.
    query         BYTEA NOT NULL,
    -- What tells texts of queries apart: XXH3-128 of the text in normal form. NULL while the text is not known, empty or erased.
    query_key     BYTEA   CHECK (length(query_key) = 16),
    -- The query's session, by which the copy is found to be erased; '' if there is none or it is erased.
    session_id    TEXT   NOT NULL,
    -- In alphabetical order, each between spaces: ' low_recall synonym_miss '. '' if there are none.
    tags          TEXT   NOT NULL,
    processed     BIGINT NOT NULL CHECK (processed IN (0, 1)),
    -- The accept order of the newer rating of the same query by the same rater that counts instead.
    replaced_by   BIGINT,
    rated_at      BIGINT NOT NULL
);
CREATE INDEX search_ratings_by_namespace ON search_ratings (namespace, accept_order);
CREATE INDEX search_ratings_by_value ON search_ratings (namespace, rating, accept_order);
CREATE INDEX search_ratings_by_type ON search_ratings (namespace, query_type, accept_order);
CREATE INDEX search_ratings_by_time ON search_ratings (namespace, rated_at);
CREATE INDEX search_ratings_by_text ON search_ratings (namespace, query_key, accept_order) WHERE query_key IS NOT NULL;
-- What was rated down and nobody has dealt with, for the queries that most people rated so. The columns that are always the same
-- let SQLite prefer it to the indexes above.
CREATE INDEX search_ratings_open ON search_ratings (namespace, rating, processed, rated_at)
    WHERE rating = -1 AND processed = 0 AND replaced_by IS NULL;
CREATE INDEX search_ratings_by_query ON search_ratings (namespace, query_id) WHERE query_id <> '';
CREATE INDEX search_ratings_by_session ON search_ratings (namespace, session_id) WHERE session_id <> '';
CREATE INDEX search_ratings_pending ON search_ratings (rated_at) WHERE context_state = 1;
CREATE INDEX search_ratings_by_rater ON search_ratings (rater, rated_at) WHERE rater IS NOT NULL;

-- The key by which end users' addresses are hashed, drawn once; no row while none was needed.
CREATE TABLE rating_key (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    key BYTEA  NOT NULL CHECK (length(key) = 32)
);

-- Settings of namespaces; the newest version is in force, the others are history.
CREATE TABLE settings (
    namespace          TEXT   NOT NULL,
    version            BIGINT NOT NULL,
    -- How long personal parts are kept, in microseconds; NULL: until they are redacted.
    personal_retention BIGINT,
    -- What can be rated beside what can be rated everywhere: an encoded emend.feedback.v1.Settings of its rated_targets alone.
    rated_targets      BYTEA  NOT NULL,
    -- How long queries are kept, in microseconds, and how many; NULL: the defaults.
    query_retention    BIGINT,
    max_queries        BIGINT,
    -- How often one rater of search answers may rate; NULL: as often as by default.
    ratings_per_minute BIGINT,
    ratings_per_hour   BIGINT,
    caller             TEXT   NOT NULL,
    on_behalf_of       TEXT   NOT NULL,
    reason             TEXT   NOT NULL,
    updated_at         BIGINT NOT NULL,
    PRIMARY KEY (namespace, version)
);

-- Up to where all feedback of a namespace is redacted by age.
CREATE TABLE retention_progress (
    namespace    TEXT   PRIMARY KEY,
    accept_order BIGINT NOT NULL
);
