//! Improvements, versions and statistics in SQL.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use async_trait::async_trait;
use emend_core::{
    CandidateId, ContestId, Kind, Namespace, OutputTally, Rated, RatingClass, ResourceKey, ResourceValue,
    key_hash,
    ratings::{Place, RATED_TEXT_BYTES, voices},
};
use emend_store::sql::Statement;
use emend_store::{CorruptRow, StoreError};

use crate::SqlStore;
use crate::contests::lists_sql::CANDIDATE_COLUMNS;
use crate::database::bytes;
use crate::database::push_contests;
use crate::outputs::sql::OUTPUT;
use crate::outputs::sql::of_outputs;
use crate::work::Work;
use crate::{
    batches::batches,
    contests::{CandidateRecord, TransitionWrite, rows::CandidateRecordRow},
    integers::small,
    outputs::{
        OfOutput,
        improvement_rows::{
            ArrivedRow, ClassCountRow, CurrentVersionRow, DecisionRow, ImprovementRow, ProgressRow,
            VersionStatsRow,
        },
        improvements::{
            Arrival, Begun, Counts, CurrentVersion, DECISIONS, Finished, ImprovementRecord,
            ImprovementRepository, Lease, OutputStore, Progress, Redactions, VersionRecord, VersionStats,
        },
        rows::{OutputRow, RatingRow},
    },
    rows::{At, KeyRow, StoredId},
};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl ImprovementRepository for Work {
    async fn progress(&mut self, target: ContestId) -> Result<Progress> {
        ProgressRow::progress(&self.rows(newest(target)).await?)
    }

    async fn current_version(&mut self, contest: ContestId) -> Result<Option<CurrentVersion>> {
        CurrentVersionRow::parse(contest, self.rows(current(contest)).await?.pop())
    }

    async fn count_for(&mut self, window: ContestId, version: CurrentVersion) -> Result<Counts> {
        ClassCountRow::counts(&self.rows(counted_for(window, version)).await?)
    }

    async fn newest_for(
        &mut self,
        window: ContestId,
        version: CurrentVersion,
        wanted: &[(RatingClass, u32)],
    ) -> Result<Vec<(Arrival, Rated)>> {
        let rows: Vec<ArrivedRow> = self.rows(newest_for(window, version, wanted)).await?;
        let mut room: HashMap<RatingClass, u32> = wanted.iter().copied().collect();
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let (arrival, rated) = row.parse()?;
            // Those that name the version are read beside those that arrived since: as many of each.
            if let Some(left) = room.get_mut(&rated.class).filter(|left| **left > 0) {
                *left -= 1;
                found.push((arrival, rated));
            }
        }
        Ok(found)
    }

    async fn begin(&mut self, begun: &Begun, lease: Duration) -> Result<()> {
        let target = self.keys.contest(begun.target)?;
        let contest = self.keys.contest(begun.contest)?;
        self.transaction()
            .await?
            .execute(
                Statement::new("DELETE FROM improvements WHERE target = $1 AND candidate_id IS NULL")
                    .bind(target),
            )
            .await?;
        self.transaction().await?.execute(Statement::new("INSERT INTO improvements (improvement_id, target, contest, base_version, lease, leased_until, generator, \
             reason, good_count, neutral_count, bad_count, newest_rating) \
             VALUES ($1, $2, $3, $4, $5, (SELECT now FROM database_clock) + $6, $7, '', 0, 0, 0, 0)")
        .bind(bytes(begun.lease.improvement))
        .bind(target)
        .bind(contest)
        .bind(small(begun.base))
        .bind(bytes(begun.lease.token))
        .bind(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX))
        .bind(begun.generator.as_str()))
        .await?;
        Ok(())
    }

    async fn finish(&mut self, lease: Lease, finished: &Finished) -> Result<bool> {
        let mut query =
            Statement::new("UPDATE improvements SET lease = NULL, leased_until = 0, candidate_id = ");
        query.push_bind(bytes(finished.candidate.0));
        query.push(", reason = ").push_bind(finished.reason.as_str());
        for (column, count) in [
            ("good_count", finished.counts.good),
            ("neutral_count", finished.counts.neutral),
            ("bad_count", finished.counts.bad),
        ] {
            query.push(format_args!(", {column} = "));
            query.push_bind(i32::try_from(count).unwrap_or(i32::MAX));
        }
        query
            .push(", newest_rating = ")
            .push_bind(finished.newest_rating.0);
        query.push(" WHERE ");
        push_lease(&mut query, lease);
        query.push(" RETURNING improvement");
        let Some((improvement,)) = self.rows::<(i64,)>(query).await?.pop() else {
            return Ok(false);
        };
        for feedback in batches(&finished.feedback) {
            let mut query = Statement::new("INSERT INTO improvement_ratings (improvement, feedback_id) ");
            query.push_values(feedback, |mut row, feedback| {
                row.push_bind(improvement).push_bind(bytes(feedback.0));
            });
            self.run(query).await?;
        }
        Ok(true)
    }

    async fn give_up(&mut self, lease: Lease) -> Result<()> {
        let mut query = Statement::new("DELETE FROM improvements WHERE ");
        push_lease(&mut query, lease);
        self.run(query).await?;
        Ok(())
    }

    async fn version(&mut self, target: &ResourceKey, version: u32) -> Result<Option<CandidateRecord>> {
        let query = versions(target, Some(version.saturating_add(1)), Some(version), 1);
        let row = self.rows::<CandidateRecordRow>(query).await?.pop();
        row.map(CandidateRecordRow::parse).transpose()
    }
}

#[async_trait]
impl Redactions for Work {
    async fn redacted(&mut self, candidate: CandidateId) -> Result<u64> {
        let row = self
            .rows::<ImprovementRow>(improvements_of(&[candidate]))
            .await?
            .pop();
        row.map_or(Ok(0), |row| row.parse().map(|(_, record)| record.redacted))
    }
}

#[async_trait]
impl OutputStore for SqlStore {
    async fn progress(&self, target: ContestId) -> Result<Progress> {
        ProgressRow::progress(&self.rows(newest(target)).await?)
    }

    async fn count_ratings(&self, window: ContestId, after: Arrival) -> Result<Counts> {
        ClassCountRow::counts(&self.rows(counted(window, after)).await?)
    }

    async fn count_for(&self, window: ContestId, version: CurrentVersion) -> Result<Counts> {
        ClassCountRow::counts(&self.rows(counted_for(window, version)).await?)
    }

    async fn targets(&self, namespace: &Namespace, after: &str, limit: u32) -> Result<Vec<String>> {
        let found = self
            .rows::<(String,)>(targets_after(namespace, after, limit))
            .await?;
        Ok(found.into_iter().map(|(target,)| target).collect())
    }

    async fn version_stats(&self, window: ContestId, limit: u32) -> Result<Vec<VersionStats>> {
        // All live ratings of a target are counted.
        let mut reader = self.browser().await?;
        let rows: Vec<VersionStatsRow> = reader.rows(by_version(window, limit)).await?;
        rows.into_iter().map(VersionStatsRow::parse).collect()
    }

    async fn newest_ratings(&self, window: ContestId, wanted: &[(RatingClass, u32)]) -> Result<Vec<Rated>> {
        parse_ratings(self.rows(newest_of(window, Arrival::default(), wanted)).await?)
    }

    async fn outputs_after(
        &self,
        window: ContestId,
        classes: &[RatingClass],
        after: Option<Place>,
        limit: u32,
    ) -> Result<Vec<(OutputTally, Vec<Rated>)>> {
        let mut transaction = self.begin_read().await?;
        let rows: Vec<OutputRow> = transaction.rows(following(window, classes, after, limit)).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            found.push((row.parse()?, Vec::new()));
        }
        if let Some(contest) = rows.first().map(|row| row.contest) {
            let wanted: Vec<OfOutput> = found
                .iter()
                .filter_map(|(output, _)| Some((output.rated, output.class()?)))
                .map(|(rated, class)| OfOutput {
                    contest: window,
                    rated,
                    class,
                    limit: voices(class),
                })
                .collect();
            let contests = HashMap::from([(window, contest)]);
            // As many characters as there may be bytes.
            let whole = u32::try_from(RATED_TEXT_BYTES).unwrap_or(u32::MAX);
            let rows: Vec<RatingRow> = transaction.rows(of_outputs(&wanted, &contests, whole)).await?;
            for rated in parse_ratings(rows)? {
                if let Some((_, ratings)) = found.iter_mut().find(|(output, _)| output.rated == rated.rated) {
                    ratings.push(rated);
                }
            }
            for (_, ratings) in &mut found {
                ratings.sort_unstable_by_key(|rated| Reverse(rated.place()));
            }
        }
        transaction.rollback().await?;
        Ok(found)
    }

    async fn improvements(
        &self,
        candidates: &[CandidateId],
    ) -> Result<HashMap<CandidateId, ImprovementRecord>> {
        let mut found = HashMap::with_capacity(candidates.len());
        for candidates in batches(candidates) {
            for row in self.rows::<ImprovementRow>(improvements_of(candidates)).await? {
                let (candidate, record) = row.parse()?;
                found.insert(candidate, record);
            }
        }
        Ok(found)
    }

    async fn current_version(&self, contest: ContestId) -> Result<Option<CurrentVersion>> {
        CurrentVersionRow::parse(contest, self.rows(current(contest)).await?.pop())
    }

    async fn version_value(&self, contest: ContestId, version: u32) -> Result<Option<ResourceValue>> {
        let query = version_value(contest, version);
        let row = self.rows::<(Vec<u8>, Vec<u8>)>(query).await?.pop();
        row.map(|(id, value)| {
            let at = At {
                table: "candidates",
                id: &StoredId(&id),
            };
            at.value("value", &value)
        })
        .transpose()
    }

    async fn versions(
        &self,
        target: &ResourceKey,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<VersionRecord>> {
        let rows: Vec<CandidateRecordRow> = self.rows(versions(target, before, None, limit)).await?;
        let versions = self.with_decisions(&target.namespace, rows).await?;
        Ok(versions.into_iter().map(|(_, version)| version).collect())
    }

    async fn redacted_versions(
        &self,
        namespace: &Namespace,
        target: Option<&ResourceKey>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, VersionRecord)>> {
        // All improvements are looked at.
        let mut reader = self.browser().await?;
        let rows: Vec<CandidateRecordRow> = reader
            .rows(redacted_versions(namespace, target, after, limit))
            .await?;
        drop(reader);
        self.with_decisions(namespace, rows).await
    }

    async fn automatic_namespaces(&self) -> Result<Vec<Namespace>> {
        let query = Statement::new(format!(
            "SELECT p.namespace FROM policies AS p WHERE p.kind = {} AND p.review_automatic = 1 AND p.version = \
             (SELECT max(n.version) FROM policies AS n WHERE n.namespace = p.namespace AND n.kind = p.kind) \
             ORDER BY p.namespace",
            Kind::Prompt.number()
        ));
        let found = self.rows::<(String,)>(query).await?.into_iter().map(|(name,)| {
            Namespace::parse(&name)
                .map_err(|invalid| CorruptRow::new("policies", "namespace", name, invalid).into())
        });
        found.collect()
    }

    async fn current_prompts(
        &self,
        namespace: &Namespace,
        label: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, ResourceKey)>> {
        let query = current_prompts(namespace, label, after, limit);
        let found = self.rows::<CurrentRow>(query).await?;
        let found = found
            .iter()
            .map(|row| Ok((row.contest, row.key.parse("contests")?)));
        found.collect()
    }
}

impl SqlStore {
    /// Versions of prompts in a namespace with the labels under which each is current, and what was decided about it.
    async fn with_decisions(
        &self,
        namespace: &Namespace,
        rows: Vec<CandidateRecordRow>,
    ) -> Result<Vec<(i64, VersionRecord)>> {
        let mut hashes: Vec<i64> = rows.iter().map(|row| key_hash(&row.key)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let mut query = Statement::new(format!(
            "SELECT c.key, c.qualifier, c.current_version FROM contests AS c WHERE c.current_version > 0 AND c.kind = {} \
             AND c.namespace = ",
            Kind::Prompt.number()
        ));
        query.push_bind(namespace.as_str().to_owned());
        query.push(" AND c.key_hash IN ");
        query.push_list(hashes.iter().copied());
        query.push(" ORDER BY c.qualifier");
        let current: Vec<(String, String, i32)> = self.rows(query).await?;
        let mut numbers: Vec<i64> = rows
            .iter()
            .map(|row| row.candidate.proposal_version.into())
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut decided: HashMap<(String, i32), Vec<(String, TransitionWrite)>> = HashMap::new();
        for row in self
            .rows::<DecisionRow>(decisions(namespace, &hashes, &numbers))
            .await?
        {
            let of = decided.entry((row.key, row.proposal_version)).or_default();
            of.push((row.qualifier, row.transition.parse()?));
        }
        let found = rows.into_iter().map(|row| {
            let version = row.candidate.proposal_version;
            let labels = current
                .iter()
                .filter(|(target, _, of)| *target == row.key && *of == version);
            let labels = labels.map(|(_, label, _)| label.clone()).collect();
            let place = row.candidate.candidate;
            let history = decided.get(&(row.key.clone(), version));
            Ok((
                place,
                VersionRecord {
                    labels,
                    history: history.cloned().unwrap_or_default(),
                    record: row.parse()?,
                },
            ))
        });
        found.collect()
    }
}

#[derive(Debug, sqlx_macros::FromRow)]
struct CurrentRow {
    contest: i64,
    #[sqlx(flatten)]
    key: KeyRow,
}

fn parse_ratings(rows: Vec<RatingRow>) -> Result<Vec<Rated>> {
    rows.into_iter().map(RatingRow::parse).collect()
}

fn push_lease(query: &mut Statement, lease: Lease) {
    query
        .push("candidate_id IS NULL AND improvement_id = ")
        .push_bind(bytes(lease.improvement));
    query.push(" AND lease = ").push_bind(bytes(lease.token));
}

/// The key of a contest within the database.
fn push_contest(query: &mut Statement, contest: ContestId) {
    query.push("(SELECT contest FROM contests WHERE ");
    push_contests(query, [contest]);
    query.push(")");
}

/// That a contest is one of a prompt's, under whichever label.
fn push_target(query: &mut Statement, of: &str, target: &ResourceKey) {
    query.push(format_args!("{of}.key_hash = "));
    query.push_bind(key_hash(target.key.as_str()));
    query.push(format_args!(" AND {of}.key = "));
    query.push_bind(target.key.as_str().to_owned());
    query.push(format_args!(" AND {of}.namespace = "));
    query.push_bind(target.namespace.as_str().to_owned());
    query.push(format_args!(" AND {of}.kind = "));
    query.push_bind(target.kind.number());
}

/// The newest improvement that is a candidate, and the one before which it is that is being generated.
pub(crate) fn newest(target: ContestId) -> Statement {
    let mut query = Statement::new(
        "SELECT i.improvement_id, i.candidate_id, i.newest_rating, k.proposal_verdict, k.created_at, \
         CASE WHEN i.leased_until > (SELECT now FROM database_clock) THEN 1 ELSE 0 END AS leased \
         FROM improvements AS i LEFT JOIN candidates AS k ON k.contest = i.contest AND k.candidate_id = i.candidate_id WHERE i.target = ",
    );
    push_contest(&mut query, target);
    query.push(" ORDER BY i.improvement DESC LIMIT 2");
    query
}

/// The version of a prompt that is current.
pub(crate) fn current(contest: ContestId) -> Statement {
    let mut query = Statement::new(
        "SELECT c.current_version, COALESCE(s.since_rating, 0) AS since_rating FROM contests AS c \
         LEFT JOIN current_prompts AS s ON s.contest = c.contest AND s.version = c.current_version \
         WHERE c.current_version > 0 AND ",
    );
    push_contests(&mut query, [contest]);
    query
}

/// How many live ratings of each class arrived after another: a range of an index for each.
pub(crate) fn counted(window: ContestId, after: Arrival) -> Statement {
    let mut query = Statement::new("");
    push_counted(&mut query, window, after);
    query
}

/// How many live ratings of each class arrived since a version is current, or name it: a range of an index for each.
pub(crate) fn counted_for(window: ContestId, version: CurrentVersion) -> Statement {
    let mut query = Statement::new("");
    push_counted(&mut query, window, version.since);
    for class in RatingClass::ALL {
        query.push(format_args!(
            " UNION ALL SELECT {} AS class, count(*) AS count",
            class.number()
        ));
        query.push(" FROM ratings AS r WHERE r.live = 1 AND r.contest = ");
        push_contest(&mut query, window);
        push_named(&mut query, class, version);
    }
    query
}

fn push_counted(query: &mut Statement, window: ContestId, after: Arrival) {
    for (index, class) in RatingClass::ALL.into_iter().enumerate() {
        query.push(if index > 0 { " UNION ALL " } else { "" });
        query.push(format_args!(
            "SELECT {} AS class, count(*) AS count",
            class.number()
        ));
        query.push(" FROM ratings AS r WHERE r.live = 1 AND r.contest = ");
        push_contest(query, window);
        query.push(format_args!(" AND r.class = {} AND r.rating > ", class.number()));
        query.push_bind(after.0);
    }
}

/// That a rating of a class names a version, and arrived before that was made current.
fn push_named(query: &mut Statement, class: RatingClass, version: CurrentVersion) {
    query
        .push(" AND r.prompt_version = ")
        .push_bind(version.number.to_string());
    // An expression, so that the index by version is used and not that by arrival.
    query.push(format_args!(
        " AND r.class = {} AND +r.rating <= ",
        class.number()
    ));
    query.push_bind(version.since.0);
}

/// The ratings of each version of a prompt, counted in an index alone.
pub(crate) fn by_version(window: ContestId, limit: u32) -> Statement {
    let mut query = Statement::new("SELECT r.prompt_version");
    for class in RatingClass::ALL {
        query.push(format_args!(
            ", CAST(SUM(CASE WHEN r.class = {} THEN 1 ELSE 0 END) AS BIGINT) AS {}",
            class.number(),
            class.name().to_lowercase()
        ));
    }
    query.push(
        ", min(r.received_at) AS first_at, max(r.received_at) AS last_at FROM ratings AS r WHERE r.live = 1 \
         AND r.contest = ",
    );
    push_contest(&mut query, window);
    query.push(" GROUP BY r.prompt_version ORDER BY last_at DESC, r.prompt_version LIMIT ");
    query.push_limit(limit);
    query
}

const RATED: &str = "SELECT r.rating, r.feedback_id, r.contest, r.accept_order, r.voter, r.rated, r.class, r.prompt_version, \
     r.received_at, r.excluded, r.live, t.input, t.output, t.corrected, t.judgement, t.issues FROM ratings AS r \
     LEFT JOIN rating_texts AS t ON t.feedback_id = r.feedback_id WHERE r.live = 1 AND r.contest = ";

/// The last live ratings of each class to arrive: one bounded read for each, by an index that holds them in this order.
pub(crate) fn newest_of(window: ContestId, after: Arrival, wanted: &[(RatingClass, u32)]) -> Statement {
    let mut query = Statement::new("SELECT * FROM (");
    for (index, (class, limit)) in wanted.iter().enumerate() {
        query
            .push(if index > 0 { " UNION ALL " } else { "" })
            .push("SELECT * FROM (")
            .push(RATED);
        push_contest(&mut query, window);
        query.push(" AND r.class = ").push_bind(class.number());
        query.push(" AND r.rating > ").push_bind(after.0);
        query.push(" ORDER BY r.rating DESC LIMIT ");
        query.push_limit(*limit);
        query.push(format_args!(") AS of_{index}"));
    }
    query.push(") AS newest ORDER BY rating DESC");
    query
}

/// The last live ratings of each class to arrive since a version is current, and of those before that name it: one bounded read for
/// each.
pub(crate) fn newest_for(
    window: ContestId,
    version: CurrentVersion,
    wanted: &[(RatingClass, u32)],
) -> Statement {
    let mut query = Statement::new("SELECT * FROM (");
    for (index, (class, limit)) in wanted.iter().enumerate() {
        query
            .push(if index > 0 { " UNION ALL " } else { "" })
            .push("SELECT * FROM (")
            .push(RATED);
        push_contest(&mut query, window);
        query.push(" AND r.class = ").push_bind(class.number());
        query.push(" AND r.rating > ").push_bind(version.since.0);
        query.push(" ORDER BY r.rating DESC LIMIT ");
        query.push_limit(*limit);
        query.push(format_args!(") AS since_{index} UNION ALL SELECT * FROM ("));
        query.push(RATED);
        push_contest(&mut query, window);
        push_named(&mut query, *class, version);
        query.push(" ORDER BY r.received_at DESC, r.rating DESC LIMIT ");
        query.push_limit(*limit);
        query.push(format_args!(") AS named_{index}"));
    }
    query.push(") AS newest ORDER BY rating DESC");
    query
}

/// The targets of a namespace that were rated or have a prompt, after one of them.
pub(crate) fn targets_after(namespace: &Namespace, after: &str, limit: u32) -> Statement {
    let mut query = Statement::new(format!(
        "SELECT DISTINCT key FROM contests WHERE kind IN ({}, {}) AND namespace = ",
        Kind::FewShotSet.number(),
        Kind::Prompt.number()
    ));
    query.push_bind(namespace.as_str().to_owned());
    query.push(" AND key > ").push_bind(after.to_owned());
    query.push(" ORDER BY key LIMIT ");
    query.push_limit(limit);
    query
}

/// The outputs of each class after a place: one bounded read for each, by an index that holds them in this order.
pub(crate) fn following(
    window: ContestId,
    classes: &[RatingClass],
    after: Option<Place>,
    limit: u32,
) -> Statement {
    let mut query = Statement::new("SELECT * FROM (");
    for (index, class) in classes.iter().enumerate() {
        query
            .push(if index > 0 { " UNION ALL " } else { "" })
            .push("SELECT * FROM (")
            .push(OUTPUT);
        push_contest(&mut query, window);
        query.push(" AND o.class = ").push_bind(class.number());
        if let Some((order, feedback)) = after {
            query.push(" AND (o.accept_order, o.feedback_id) > (");
            query
                .push_bind(order.0)
                .push(", ")
                .push_bind(bytes(feedback.0))
                .push(")");
        }
        query.push(" ORDER BY o.accept_order, o.feedback_id LIMIT ");
        query.push_limit(limit);
        query.push(format_args!(") AS of_{index}"));
    }
    query.push(") AS following ORDER BY accept_order, feedback_id LIMIT ");
    query.push_limit(limit);
    query
}

/// What was decided about versions with these numbers, of prompts whose keys have these hashes, under each label: the newest of
/// each, the oldest first.
pub(crate) fn decisions(namespace: &Namespace, hashes: &[i64], numbers: &[i64]) -> Statement {
    let mut query = Statement::new(format!(
        "SELECT * FROM (SELECT c.key, c.qualifier, k.proposal_version, k.candidate_id, t.candidate, t.sequence, \
         t.from_status, t.to_status, t.cause, t.reason, t.caller, t.on_behalf_of, t.made_at, t.revision, \
         t.policy_version, row_number() OVER (PARTITION BY c.key, k.proposal_version \
         ORDER BY t.made_at DESC, t.candidate DESC, t.sequence DESC) AS newest \
         FROM contests AS c JOIN candidates AS k ON k.contest = c.contest \
         JOIN transitions AS t ON t.candidate = k.candidate WHERE k.proposal_version > 0 AND c.kind = {} \
         AND c.namespace = ",
        Kind::Prompt.number()
    ));
    query.push_bind(namespace.as_str().to_owned());
    query.push(" AND c.key_hash IN ");
    query.push_list(hashes.iter().copied());
    query.push(" AND k.proposal_version IN ");
    query.push_list(numbers.iter().copied());
    query.push(format_args!(
        ") AS decided WHERE newest <= {DECISIONS} ORDER BY made_at, candidate, sequence"
    ));
    query
}

/// What a version in a contest says.
pub(crate) fn version_value(contest: ContestId, version: u32) -> Statement {
    let mut query = Statement::new("SELECT candidate_id, value FROM candidates WHERE contest = ");
    push_contest(&mut query, contest);
    query
        .push(" AND proposal_version > 0 AND proposal_version = ")
        .push_bind(small(version));
    query
}

/// The versions of a prompt below a number, or that number alone. A version that is used under several labels is a candidate
/// in the contest of each; the first is where it was proposed.
pub(crate) fn versions(
    target: &ResourceKey,
    before: Option<u32>,
    only: Option<u32>,
    limit: u32,
) -> Statement {
    let mut query = Statement::new(CANDIDATE_COLUMNS);
    query.push(
        " FROM (SELECT min(n.candidate) AS candidate, n.proposal_version FROM contests AS o \
         CROSS JOIN candidates AS n WHERE n.contest = o.contest AND n.proposal_version > 0 AND ",
    );
    push_target(&mut query, "o", target);
    if let Some(before) = before {
        query.push(" AND n.proposal_version < ").push_bind(small(before));
    }
    if let Some(only) = only {
        query.push(" AND n.proposal_version = ").push_bind(small(only));
    }
    query.push(" GROUP BY n.proposal_version ORDER BY n.proposal_version DESC LIMIT ");
    query.push_limit(limit);
    query.push(
        ") AS found CROSS JOIN candidates AS k CROSS JOIN contests AS c WHERE k.candidate = found.candidate \
         AND c.contest = k.contest ORDER BY k.proposal_version DESC",
    );
    query
}

/// What is kept of these candidates as improvements.
fn improvements_of(candidates: &[CandidateId]) -> Statement {
    let mut query = Statement::new(
        "SELECT i.candidate_id, i.generator, i.reason, i.good_count, i.neutral_count, i.bad_count, \
         (SELECT count(*) FROM improvement_ratings AS r JOIN redaction_marks AS m \
         ON m.feedback_id = r.feedback_id WHERE r.improvement = i.improvement) AS redacted \
         FROM improvements AS i WHERE i.candidate_id IN ",
    );
    query.push_list(candidates.iter().map(|id| id.0).map(bytes));
    query
}

/// The versions that were generated from ratings redacted since, and those edited from them.
fn redacted_versions(
    namespace: &Namespace,
    target: Option<&ResourceKey>,
    after: Option<i64>,
    limit: u32,
) -> Statement {
    let mut query = Statement::new(CANDIDATE_COLUMNS);
    query.push(
        " FROM improvements AS i CROSS JOIN contests AS c CROSS JOIN candidates AS k WHERE c.contest = i.contest \
         AND i.candidate_id IS NOT NULL AND EXISTS (SELECT 1 FROM improvement_ratings AS r JOIN redaction_marks AS m \
         ON m.feedback_id = r.feedback_id WHERE r.improvement = i.improvement) AND k.contest = c.contest \
         AND (k.candidate_id = i.candidate_id OR k.edited_from = i.candidate_id) AND ",
    );
    match target {
        Some(target) => push_target(&mut query, "c", target),
        None => {
            query
                .push("c.namespace = ")
                .push_bind(namespace.as_str().to_owned());
        }
    }
    if let Some(after) = after {
        query.push(" AND k.candidate < ").push_bind(after);
    }
    query.push(" ORDER BY k.candidate DESC LIMIT ");
    query.push_limit(limit);
    query
}

/// The prompts that are current under a label.
pub(crate) fn current_prompts(namespace: &Namespace, label: &str, after: i64, limit: u32) -> Statement {
    let mut query = Statement::new(format!(
        "SELECT contest, contest_id, namespace, kind, key, qualifier, user_id FROM contests \
         WHERE kind = {} AND current_version > 0 AND namespace = ",
        Kind::Prompt.number()
    ));
    query.push_bind(namespace.as_str().to_owned());
    query.push(" AND qualifier = ").push_bind(label.to_owned());
    query.push(" AND contest > ").push_bind(after);
    query.push(" ORDER BY contest LIMIT ");
    query.push_limit(limit);
    query
}
