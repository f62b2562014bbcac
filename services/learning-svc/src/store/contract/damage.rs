//! How the contract suite damages a database behind the store's back, in SQL.

use emend_core::ContestId;
use sqlx::AssertSqlSafe;

use super::Backend;

/// Gives every contest another key than the one that gives its id.
pub(super) async fn rename_all_contests(store: &Backend, key: &str) {
    sql(store, format!("UPDATE contests SET key = '{key}'")).await;
}

/// Gives the candidates of a contest an unknown status.
pub(super) async fn corrupt_candidates_of(store: &Backend, contest: ContestId) {
    sql(
        store,
        format!("UPDATE candidates SET status = 99 WHERE contest_id = '{contest}'"),
    )
    .await;
}

/// Stops counting all ballots of a contest, without leaving a trace.
pub(super) async fn retract_ballots_of(store: &Backend, contest: ContestId) {
    sql(
        store,
        format!("UPDATE ballots SET retracted = 1 WHERE contest_id = '{contest}'"),
    )
    .await;
}

/// Makes the candidates of a contest look newly written.
pub(super) async fn touch_candidates_of(store: &Backend, contest: ContestId) {
    sql(
        store,
        format!("UPDATE candidates SET version = version + 1 WHERE contest_id = '{contest}'"),
    )
    .await;
}

async fn sql(store: &Backend, statement: String) {
    let mut transaction = store.begin_write().await.unwrap();
    sqlx::query(AssertSqlSafe(statement))
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}
