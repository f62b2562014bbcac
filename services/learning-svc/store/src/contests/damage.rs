//! How the contract suite damages what is stored behind the store's back.

use async_trait::async_trait;
use emend_core::ContestId;
use emend_store::sql::Statement;

use crate::database::push_contests;
use crate::{SqlStore, Store};

/// A store whose contents can be damaged behind its back.
#[async_trait]
pub trait Damage: Store + Clone {
    /// Gives every contest another key than the one that gives its id.
    async fn rename_all_contests(&self, key: &str);

    /// Gives the candidates of a contest an unknown status.
    async fn corrupt_candidates_of(&self, contest: ContestId);

    /// Stops counting all ballots of a contest, without leaving a trace.
    async fn retract_ballots_of(&self, contest: ContestId);

    /// Makes the candidates of a contest look newly written.
    async fn touch_candidates_of(&self, contest: ContestId);
}

#[async_trait]
impl Damage for SqlStore {
    async fn rename_all_contests(&self, key: &str) {
        sql(self, Statement::new(format!("UPDATE contests SET key = '{key}'"))).await;
    }

    async fn corrupt_candidates_of(&self, contest: ContestId) {
        sql_of(
            self,
            "UPDATE candidates SET status = 99 WHERE contest = ",
            contest,
        )
        .await;
    }

    async fn retract_ballots_of(&self, contest: ContestId) {
        sql_of(self, "UPDATE ballots SET retracted = 1 WHERE contest = ", contest).await;
    }

    async fn touch_candidates_of(&self, contest: ContestId) {
        let touch = "UPDATE candidates SET version = version + 1 WHERE contest = ";
        sql_of(self, touch, contest).await;
    }
}

async fn sql_of(store: &SqlStore, statement: &'static str, contest: ContestId) {
    let mut query = Statement::new(statement);
    query.push("(SELECT contest FROM contests WHERE ");
    push_contests(&mut query, [contest]);
    query.push(")");
    sql(store, query).await;
}

async fn sql(store: &SqlStore, statement: Statement) {
    let mut transaction = store.begin_write().await.expect("the test's database answers");
    transaction
        .execute(statement)
        .await
        .expect("the test's database answers");
    transaction.commit().await.expect("the test's database answers");
}
