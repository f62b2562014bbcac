//! How the contract suite damages a database behind the store's back, in SQL.

use emend_core::ContestId;
use sqlx::{AssertSqlSafe, QueryBuilder};

use super::{super::Backend, Db, push_contests};

/// Gives every contest another key than the one that gives its id.
pub(super) async fn rename_all_contests(store: &Backend, key: &str) {
    sql(store, format!("UPDATE contests SET key = '{key}'")).await;
}

/// Gives the candidates of a contest an unknown status.
pub(super) async fn corrupt_candidates_of(store: &Backend, contest: ContestId) {
    sql_of(
        store,
        "UPDATE candidates SET status = 99 WHERE contest = ",
        contest,
    )
    .await;
}

/// Stops counting all ballots of a contest, without leaving a trace.
pub(super) async fn retract_ballots_of(store: &Backend, contest: ContestId) {
    sql_of(
        store,
        "UPDATE ballots SET retracted = 1 WHERE contest = ",
        contest,
    )
    .await;
}

/// Makes the candidates of a contest look newly written.
pub(super) async fn touch_candidates_of(store: &Backend, contest: ContestId) {
    sql_of(
        store,
        "UPDATE candidates SET version = version + 1 WHERE contest = ",
        contest,
    )
    .await;
}

async fn sql_of(store: &Backend, statement: &'static str, contest: ContestId) {
    let mut query = QueryBuilder::<Db>::new(statement);
    query.push("(SELECT contest FROM contests WHERE ");
    push_contests(&mut query, [contest]);
    query.push(")");
    let mut transaction = store.begin_write().await.unwrap();
    query.build().execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn sql(store: &Backend, statement: String) {
    let mut transaction = store.begin_write().await.unwrap();
    sqlx::query(AssertSqlSafe(statement))
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}
