//! Profiles in SQL.

use std::collections::HashSet;

use async_trait::async_trait;
use emend_core::{CandidateId, ContestId, Kind, Namespace, Status, UserId, outputs::Activity};
use emend_store::StoreError;
use emend_store::sql::Statement;
use jiff::Timestamp;

use crate::SqlStore;
use crate::contests::lists_sql::CANDIDATE_COLUMNS;
use crate::contests::lists_sql::push_after;
use crate::contests::lists_sql::push_numbers;
use crate::database::push_candidates;
use crate::work::Work;
use crate::work::only;
use crate::{
    batches::batches,
    codes,
    contests::CandidatePosition,
    profiles::{
        EntryRepository, KEPT_ACTIVITIES, ProfileRepository, ProfileStore, StoredProfile, SuggestionDetails,
        SuggestionRecord, SuggestionStore,
        rows::{ActivityRow, EntryRow, SuggestionRecordRow, SuggestionRow},
    },
};

type Result<T> = std::result::Result<T, StoreError>;

/// The columns of a suggestion `s`.
const SUGGESTION_COLUMNS: &str = "s.candidate AS suggested, s.type AS suggestion_type, s.reason AS suggestion_reason, \
     s.source_type, s.source_id, s.confidence";

/// A user's entries, with the newest revision of each: one statement, so that all of it is one state.
fn entries(namespace: &Namespace, user: &UserId) -> Statement {
    let mut query = Statement::new(
        "SELECT c.contest_id, c.namespace, c.kind, c.key, c.qualifier, c.user_id, r.value, \
         (SELECT max(h.revision) FROM changes AS h WHERE h.contest = c.contest) AS changed \
         FROM contests AS c LEFT JOIN resources AS r ON r.contest = c.contest WHERE ",
    );
    of_user(&mut query, namespace, user);
    query
}

/// Appends the condition that contest `c` is an entry of a user's profile.
fn of_user(query: &mut Statement, namespace: &Namespace, user: &UserId) {
    query
        .push("c.namespace = ")
        .push_bind(namespace.as_str().to_owned());
    query.push(" AND c.user_id <> '' AND c.user_id = ");
    query.push_bind(user.as_str().to_owned());
    query.push(" AND c.kind = ").push_bind(Kind::Profile.number());
}

#[async_trait]
impl EntryRepository for Work {
    async fn stored(&mut self, namespace: &Namespace, user: &UserId) -> Result<StoredProfile> {
        EntryRow::profile(&self.rows(entries(namespace, user)).await?)
    }
}

#[async_trait]
impl ProfileRepository for Work {
    async fn record(&mut self, namespace: &Namespace, user: &UserId, activities: &[Activity]) -> Result<u64> {
        let mut recorded = 0;
        for activities in batches(activities) {
            let mut query = Statement::new(
                "INSERT INTO activities (namespace, user_id, source_type, source_id, occurred_at, summary, \
                 technologies, topics, goals, experience_years, recorded_at) ",
            );
            query.push_values(activities, |mut row, activity| {
                row.push_bind(namespace.as_str())
                    .push_bind(user.as_str())
                    .push_bind(activity.source_type.as_str())
                    .push_bind(activity.source_id.as_str())
                    .push_bind(activity.occurred_at.as_microsecond())
                    .push_bind(activity.summary.as_str())
                    .push_bind(json(&activity.technologies))
                    .push_bind(json(&activity.topics))
                    .push_bind(json(&activity.goals))
                    .push_bind(
                        activity
                            .experience_years
                            .and_then(|years| i32::try_from(years).ok())
                            .unwrap_or(-1),
                    )
                    .push("(SELECT now FROM database_clock)");
            });
            query.push(" ON CONFLICT (namespace, user_id, source_type, source_id) DO NOTHING");
            recorded += self.run(query).await?;
        }
        self.forget_oldest(namespace, user).await?;
        Ok(recorded)
    }

    async fn known(
        &mut self,
        namespace: &Namespace,
        user: &UserId,
        sources: &[(String, String)],
    ) -> Result<HashSet<(String, String)>> {
        let mut known = HashSet::new();
        for sources in batches(sources) {
            let mut query =
                Statement::new("SELECT source_type, source_id FROM activities WHERE namespace = ");
            query.push_bind(namespace.as_str());
            query.push(" AND user_id = ").push_bind(user.as_str());
            query.push(" AND (source_type, source_id) IN (");
            query.push_values(sources, |mut row, (source_type, source_id)| {
                row.push_bind(source_type.as_str()).push_bind(source_id.as_str());
            });
            query.push(")");
            known.extend(self.rows::<(String, String)>(query).await?);
        }
        Ok(known)
    }

    async fn save(&mut self, suggestions: &[(ContestId, CandidateId, SuggestionDetails)]) -> Result<()> {
        for suggestions in batches(suggestions) {
            let mut rows = Vec::with_capacity(suggestions.len());
            for (contest, candidate, details) in suggestions {
                rows.push((self.keys.candidate(*contest, *candidate)?, details));
            }
            let mut query = Statement::new(
                "INSERT INTO suggestions (candidate, type, reason, source_type, source_id, confidence) ",
            );
            query.push_values(rows, |mut row, (candidate, details)| {
                row.push_bind(candidate)
                    .push_bind(details.suggestion.number())
                    .push_bind(details.reason.as_str())
                    .push_bind(details.source_type.as_str())
                    .push_bind(details.source_id.as_str())
                    .push_bind(i32::from(details.confidence));
            });
            self.run(query).await?;
        }
        Ok(())
    }
}

impl Work {
    /// Deletes what a user did longest ago, beyond what is kept.
    async fn forget_oldest(&mut self, namespace: &Namespace, user: &UserId) -> Result<()> {
        let mut query = Statement::new("DELETE FROM activities WHERE namespace = ");
        query.push_bind(namespace.as_str());
        query.push(" AND user_id = ").push_bind(user.as_str());
        query.push(
            " AND (occurred_at, source_type, source_id) <= (SELECT a.occurred_at, a.source_type, a.source_id \
             FROM activities AS a WHERE a.namespace = ",
        );
        query.push_bind(namespace.as_str());
        query.push(" AND a.user_id = ").push_bind(user.as_str());
        query.push(" ORDER BY a.occurred_at DESC, a.source_type DESC, a.source_id DESC LIMIT 1 OFFSET ");
        query.push_bind(i64::from(KEPT_ACTIVITIES)).push(")");
        self.run(query).await?;
        Ok(())
    }
}

#[async_trait]
impl SuggestionStore for SqlStore {
    async fn suggestion(&self, candidate: CandidateId) -> Result<Option<SuggestionDetails>> {
        let row = only(
            self.rows::<SuggestionRow>(suggestion(candidate)).await?,
            candidate,
        )?;
        row.map(SuggestionRow::parse).transpose()
    }
}

#[async_trait]
impl ProfileStore for SqlStore {
    async fn stored_profile(&self, namespace: &Namespace, user: &UserId) -> Result<StoredProfile> {
        EntryRow::profile(&self.rows(entries(namespace, user)).await?)
    }

    async fn activities(
        &self,
        namespace: &Namespace,
        user: &UserId,
        since: Option<Timestamp>,
        limit: u32,
    ) -> Result<Vec<Activity>> {
        let mut query = Statement::new(
            "SELECT source_type, source_id, occurred_at, summary, technologies, topics, goals, experience_years \
             FROM activities WHERE namespace = ",
        );
        query.push_bind(namespace.as_str());
        query.push(" AND user_id = ").push_bind(user.as_str());
        if let Some(since) = since {
            query
                .push(" AND occurred_at >= ")
                .push_bind(since.as_microsecond());
        }
        query.push(" ORDER BY occurred_at DESC, source_type DESC, source_id DESC LIMIT ");
        query.push_bind(i64::from(limit));
        let rows = self.rows::<ActivityRow>(query).await?;
        rows.into_iter().map(ActivityRow::parse).collect()
    }

    async fn suggestions(
        &self,
        namespace: &Namespace,
        user: &UserId,
        statuses: &[Status],
        after: Option<CandidatePosition>,
        limit: u32,
    ) -> Result<Vec<SuggestionRecord>> {
        let mut query = Statement::new(CANDIDATE_COLUMNS);
        query.push(", ").push(SUGGESTION_COLUMNS);
        // Start from the user's contests, which are few; SQLite would not choose that plan by itself.
        query.push(
            " FROM contests AS c CROSS JOIN candidates AS k CROSS JOIN suggestions AS s \
             WHERE k.contest = c.contest AND s.candidate = k.candidate AND ",
        );
        of_user(&mut query, namespace, user);
        let statuses = statuses.iter().map(|status| codes::status(*status));
        push_numbers(&mut query, " AND k.status IN (", statuses);
        push_after(&mut query, "k", after);
        query.push(" ORDER BY k.created_at DESC, k.candidate_id DESC LIMIT ");
        query.push_bind(i64::from(limit));
        let rows = self.rows::<SuggestionRecordRow>(query).await?;
        rows.into_iter().map(SuggestionRecordRow::parse).collect()
    }
}

/// What is kept of the suggestion that a candidate is.
pub(crate) fn suggestion(candidate: CandidateId) -> Statement {
    let mut query = Statement::new("SELECT ");
    query.push(SUGGESTION_COLUMNS);
    query.push(" FROM candidates AS k JOIN suggestions AS s ON s.candidate = k.candidate WHERE ");
    push_candidates(&mut query, [candidate]);
    query
}

fn json(texts: &[String]) -> String {
    serde_json::to_string(texts).expect("invariant: a list of strings is always a JSON array")
}
