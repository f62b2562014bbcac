//! How the contract suite damages a database behind the store's back, in SQL.

use emend_core::ContestId;
use emend_store::sql::Statement;

use crate::store::SqlStore;
use crate::store::database::push_contests;

/// Gives every contest another key than the one that gives its id.
pub(crate) async fn rename_all_contests(store: &SqlStore, key: &str) {
    sql(store, format!("UPDATE contests SET key = '{key}'")).await;
}

/// Gives the candidates of a contest an unknown status.
pub(crate) async fn corrupt_candidates_of(store: &SqlStore, contest: ContestId) {
    sql_of(
        store,
        "UPDATE candidates SET status = 99 WHERE contest = ",
        contest,
    )
    .await;
}

/// Stops counting all ballots of a contest, without leaving a trace.
pub(crate) async fn retract_ballots_of(store: &SqlStore, contest: ContestId) {
    sql_of(
        store,
        "UPDATE ballots SET retracted = 1 WHERE contest = ",
        contest,
    )
    .await;
}

/// Makes the candidates of a contest look newly written.
pub(crate) async fn touch_candidates_of(store: &SqlStore, contest: ContestId) {
    sql_of(
        store,
        "UPDATE candidates SET version = version + 1 WHERE contest = ",
        contest,
    )
    .await;
}

async fn sql_of(store: &SqlStore, statement: &'static str, contest: ContestId) {
    let mut query = Statement::new(statement);
    query.push("(SELECT contest FROM contests WHERE ");
    push_contests(&mut query, [contest]);
    query.push(")");
    let mut transaction = store.begin_write().await.unwrap();
    transaction.execute(query).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn sql(store: &SqlStore, statement: String) {
    let mut transaction = store.begin_write().await.unwrap();
    transaction.execute(Statement::new(statement)).await.unwrap();
    transaction.commit().await.unwrap();
}
