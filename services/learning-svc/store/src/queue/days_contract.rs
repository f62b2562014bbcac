//! What happened each day is added up, whoever noted it and whether or not it was added to its day already.

use emend_core::{Kind, Namespace};

use super::{DayFigures, QueueCount, QueueStore as _, days_sql::since};
use crate::{
    Store as _,
    testing::{TestDatabase, on_both},
};

async fn figures_of_days_are_added_up(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let namespace = Namespace::parse("fund-admin").unwrap();
    let mut reader = store.reader().await.unwrap();
    let now: i64 = reader
        .value(emend_store::sql::Statement::new("SELECT now FROM database_clock"))
        .await
        .unwrap();
    let today = now.div_euclid(86_400_000_000);
    let count = |namespace: &str, day: i64, kind: Kind, received: u64| QueueCount {
        namespace: Namespace::parse(namespace).unwrap(),
        day,
        kind,
        figures: DayFigures {
            received,
            applied: 1,
            rejected: 0,
            withdrawn: 2,
        },
    };
    let counts = [
        count("fund-admin", today, Kind::EntityAlias, 3),
        count("fund-admin", today, Kind::Prohibition, 1),
        count("elsewhere", today, Kind::EntityAlias, 5),
        count("fund-admin", today - 1, Kind::EntityAlias, 7),
        count("fund-admin", today - 95, Kind::EntityAlias, 9),
    ];
    for _ in 0..2 {
        let mut tx = store.begin().await.unwrap();
        tx.contests().count(&counts).await.unwrap();
        tx.commit().await.unwrap();
        let read = store.queue_days(&namespace, today - 1).await.unwrap();
        let received: Vec<_> = read
            .iter()
            .map(|count| (today - count.day, count.kind, count.figures.received))
            .collect();
        let times = read[0].figures.applied;
        assert_eq!(
            received,
            [
                (1, Kind::EntityAlias, 7 * times),
                (0, Kind::EntityAlias, 3 * times),
                (0, Kind::Prohibition, times)
            ]
        );
        assert_eq!(read[0].figures.withdrawn, 2 * times);
        assert_eq!(store.fold_queue_counts().await.unwrap(), 5);
        assert_eq!(store.queue_days(&namespace, today - 1).await.unwrap(), read);
    }
    assert_eq!(store.fold_queue_counts().await.unwrap(), 0);
    let all = store.queue_days(&namespace, 0).await.unwrap();
    assert_eq!(all.len(), 3, "what is older is dropped");

    if matches!(database, TestDatabase::Postgres) {
        reader.execute_text("SET enable_seqscan = off").await.unwrap();
    }
    let plan = reader.plan(since(&namespace, today)).await;
    for scan in ["Seq Scan", "SCAN queue_days", "SCAN queue_counts"] {
        assert!(!plan.contains(scan), "{plan}");
    }
}

on_both! { figures_of_days_are_added_up }
