//! Rolling restarts of everything, under load. The stream audit checks that they cost no subscriber a snapshot.

use std::time::Duration;

use emend_client::{Observed, SubscriberEvent};
use emend_tests::{
    faults::{Fleet, Run, bounded, rounds, runs::allow_many_open_files},
    harness::{eventually, node::Node, system::Service, wait::holds},
    load::Plan,
};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_everything_loses_nothing_and_costs_no_snapshot() {
    bounded(async {
        let Some(fleet) = Fleet::postgres(2, 2).await else {
            return;
        };
        let mut run = Run::begin("rolling", fleet).await;
        for _ in 0..rounds(1, 12) {
            for index in 0..2 {
                run.goes_on().await;
                run.fleet.learning[index].stop().await;
                run.goes_on().await;
                run.fleet.learning[index].start().await;
                run.fleet.feedback[index].stop().await;
                run.goes_on().await;
                run.fleet.feedback[index].start().await;
            }
        }
        run.goes_on().await;
        run.ends_well().await;
    })
    .await;
}

/// What a node has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    snapshots: usize,
    drained: usize,
    /// Streams that ended in another way, and events missed by a late reader.
    otherwise: Vec<String>,
}

/// Records what happens to a node.
#[derive(Debug)]
struct Witness {
    seen: watch::Receiver<Seen>,
    _watching: AbortOnDropHandle<()>,
}

impl Witness {
    fn of(node: &Node) -> Self {
        let mut events = node.watch();
        let (seen, kept) = watch::channel(Seen::default());
        let watching = tokio::spawn(async move {
            while let Some(observed) = events.next().await {
                seen.send_modify(|seen| match observed {
                    Observed::Missed(missed) => seen.otherwise.push(format!("{missed} events were missed")),
                    Observed::Event(event) => match &*event {
                        SubscriberEvent::Snapshot { .. } => seen.snapshots += 1,
                        SubscriberEvent::Disconnected { reason, .. }
                            if reason == "drained by the server: SHUTDOWN" =>
                        {
                            seen.drained += 1;
                        }
                        SubscriberEvent::Disconnected { reason, .. } => seen.otherwise.push(reason.clone()),
                        _ => {}
                    },
                });
            }
        });
        Self {
            seen: kept,
            _watching: AbortOnDropHandle::new(watching),
        }
    }

    fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }
}

/// A connection to a service's schema, and its name.
async fn schema_of(fleet: &Fleet, service: Service) -> (PgConnection, &'static str) {
    let mut connection = PgConnection::connect(&fleet.storage.url(service)).await.unwrap();
    let schema = match service {
        Service::Feedback => "emend_feedback",
        Service::Learning => "emend_learning",
    };
    let path = format!("SET search_path TO {schema}; SET lock_timeout TO '3s'");
    connection.execute(AssertSqlSafe(path)).await.unwrap();
    (connection, schema)
}

/// What the first replica of the next release would do: add a column to every table, and the record of that migration.
async fn migrate_as_the_next_release(fleet: &Fleet, service: Service) {
    let (mut connection, schema) = schema_of(fleet, service).await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT tablename::text FROM pg_tables WHERE schemaname = $1 AND tablename NOT LIKE '\\_%'",
    )
    .bind(schema)
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert!(tables.len() > 3, "{tables:?}");
    for table in tables {
        let more = format!("ALTER TABLE \"{table}\" ADD COLUMN of_the_next_release TEXT");
        connection.execute(AssertSqlSafe(more)).await.unwrap();
    }
    let noted = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9999, 'of the next release', true, '\\x00', 0)";
    connection.execute(noted).await.unwrap();
}

/// Removes all trace of that release except the columns: an audit accepts only its own schema version.
async fn forget_the_next_release(fleet: &Fleet, service: Service) {
    let (mut connection, _) = schema_of(fleet, service).await;
    connection
        .execute("DELETE FROM _sqlx_migrations WHERE version = 9999")
        .await
        .unwrap();
}

/// In the order of deploy/k8s: both Deployments at once, one replica of each after the other; a new one is ready, and
/// receives new connections, before an old one is asked to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_moves_each_stream_by_drain_and_loses_nothing() {
    bounded(async {
        let streams = rounds(90, 1_000);
        if streams > 90 {
            allow_many_open_files().await;
        }
        let Some(fleet) = Fleet::postgres(3, 3).await else {
            return;
        };
        let plan = Plan {
            reporters: 2,
            pause: Duration::from_millis(60),
            ..Plan::default()
        };
        let mut run = Run::begin_with("upgrade", fleet, plan).await;
        let mut witnesses = Vec::new();
        for index in 0..streams {
            let front = run.fleet.learning[index % 3].front.address();
            let node = Node::start(front, &format!("upgrade-{index}")).await;
            witnesses.push(Witness::of(&node));
            run.nodes.push(node);
        }
        let head = run.fleet.learning_clients()[0].head().await;
        for node in &run.nodes {
            node.until(head).await;
        }

        run.goes_on().await;
        for service in [Service::Learning, Service::Feedback] {
            migrate_as_the_next_release(&run.fleet, service).await;
        }
        for index in 0..3 {
            run.goes_on().await;
            let Fleet {
                learning, feedback, ..
            } = &mut run.fleet;
            tokio::join!(learning[index].roll(), feedback[index].roll());
        }
        run.goes_on().await;
        eventually("every node has moved", || async {
            let waiting = witnesses
                .iter()
                .filter(|witness| witness.seen().drained == 0)
                .count();
            holds(waiting == 0, || format!("{waiting} have not"))
        })
        .await;
        let moved = Seen {
            snapshots: 1,
            drained: 1,
            otherwise: Vec::new(),
        };
        for service in [Service::Learning, Service::Feedback] {
            forget_the_next_release(&run.fleet, service).await;
        }
        run.ends_well().await;
        for witness in &witnesses {
            assert_eq!(
                witness.seen(),
                moved,
                "one snapshot, one Drain, and no other end of a stream"
            );
        }
    })
    .await;
}
