//! What an audit reads of the review queue, in SQL.

use emend_core::{Kind, Status};
use emend_store::sql::{Statement, Transaction};

use super::{Result, WrongDay, WrongWaiting};
use crate::{
    codes,
    contests::UNRIVALLED,
    integers::micros,
    queue::{LEASED_FOR, MAX_DAYS},
};

const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// `$1`: the status of what waits, `$2`: the controversy of what has no rival, `$3`: how long a lease lasts.
const WAITING: &str = "
    SELECT k.candidate_id AS id, 1 AS what FROM candidates AS k
    WHERE k.status = $1 AND NOT EXISTS (SELECT 1 FROM waiting_candidates AS w WHERE w.candidate = k.candidate)
    UNION ALL SELECT w.candidate_id, 2 FROM waiting_candidates AS w
    WHERE NOT EXISTS (SELECT 1 FROM candidates AS k WHERE k.candidate = w.candidate AND k.status = $1)
    UNION ALL SELECT k.candidate_id, 3 FROM waiting_candidates AS w JOIN candidates AS k ON k.candidate = w.candidate
    WHERE w.namespace <> k.namespace OR w.kind <> k.kind OR w.reporters <> k.reporters OR w.created_at <> k.created_at
      OR w.candidate_id <> k.candidate_id
      OR w.controversy <> CASE WHEN k.ruling_order = 0 AND k.proposal_version = 0 AND k.net < k.reporters
         THEN CASE WHEN abs(k.net) < $2 THEN abs(k.net) ELSE $2 - 1 END ELSE $2 END
    UNION ALL SELECT l.candidate_id, 4 FROM review_leases AS l, database_clock AS d WHERE l.expires_at > d.now + $3
    LIMIT 1000";

/// `$1` to `$3`: the statuses applied, rejected and withdrawn, `$4`: a day in microseconds, `$5`: how many days are kept for sure,
/// `$6`: the kind that is not counted.
const DAYS: &str = "
    SELECT t.namespace, t.kind, t.day FROM (
        SELECT k.namespace, k.kind, t.made_at / $4 AS day,
               sum(CASE WHEN t.to_status = $1 THEN 1 ELSE 0 END) AS applied,
               sum(CASE WHEN t.to_status = $2 THEN 1 ELSE 0 END) AS rejected,
               sum(CASE WHEN t.to_status = $3 THEN 1 ELSE 0 END) AS withdrawn
        FROM transitions AS t JOIN candidates AS k ON k.candidate = t.candidate
        WHERE k.kind <> $6 AND t.made_at / $4 > (SELECT now FROM database_clock) / $4 - $5
        GROUP BY k.namespace, k.kind, t.made_at / $4
    ) AS t
    LEFT JOIN (
        SELECT namespace, kind, day, sum(applied) AS applied, sum(rejected) AS rejected, sum(withdrawn) AS withdrawn
        FROM (SELECT namespace, kind, day, applied, rejected, withdrawn FROM queue_days
              UNION ALL SELECT namespace, kind, day, applied, rejected, withdrawn FROM queue_counts) AS counted
        GROUP BY namespace, kind, day
    ) AS q ON q.namespace = t.namespace AND q.kind = t.kind AND q.day = t.day
    WHERE coalesce(q.applied, 0) < t.applied OR coalesce(q.rejected, 0) < t.rejected
       OR coalesce(q.withdrawn, 0) < t.withdrawn
    UNION ALL SELECT namespace, kind, day FROM queue_days WHERE received < 0 OR applied < 0 OR rejected < 0 OR withdrawn < 0
    LIMIT 1000";

/// `$1`: the highest number of a status.
const CHANGES: &str = "
    SELECT q.change FROM queue_changes AS q
    WHERE NOT EXISTS (SELECT 1 FROM contests AS c WHERE c.contest = q.contest)
       OR q.from_status NOT BETWEEN 0 AND $1 OR q.to_status NOT BETWEEN 0 AND $1
    ORDER BY q.change LIMIT 1000";

pub(super) async fn waiting(transaction: &mut Transaction) -> Result<Vec<WrongWaiting>> {
    let query = Statement::new(WAITING)
        .bind(codes::status(Status::AwaitingReview))
        .bind(UNRIVALLED)
        .bind(micros(LEASED_FOR));
    transaction.rows(query).await
}

pub(super) async fn days(transaction: &mut Transaction) -> Result<Vec<WrongDay>> {
    let query = Statement::new(DAYS)
        .bind(codes::status(Status::Applied))
        .bind(codes::status(Status::Rejected))
        .bind(codes::status(Status::Withdrawn))
        .bind(DAY)
        // The day on which older ones are dropped may have changed since.
        .bind(i64::from(MAX_DAYS) - 1)
        .bind(Kind::Profile.number());
    transaction.rows(query).await
}

pub(super) async fn changes(transaction: &mut Transaction) -> Result<Vec<i64>> {
    let highest = codes::STATUSES.map(codes::status).into_iter().max();
    let query = Statement::new(CHANGES).bind(highest.unwrap_or_default());
    transaction.values(query).await
}
