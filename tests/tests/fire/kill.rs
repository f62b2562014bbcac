//! Either service killed without warning at any moment.

use emend_tests::faults::{Fleet, Run, bounded, rounds};

async fn either_service_is_killed(name: &str, fleet: Fleet) {
    let mut run = Run::begin(name, fleet).await;
    for _ in 0..rounds(5, 50) {
        run.goes_on().await;
        let feedback = run.dice.chance(0.5);
        let both = run.dice.chance(0.2);
        if feedback || both {
            run.fleet.feedback[0].kill().await;
        }
        if !feedback || both {
            run.fleet.learning[0].kill().await;
        }
        run.fleet.start_all().await;
    }
    run.ends_well().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_loses_and_doubles_nothing_on_sqlite() {
    bounded(async {
        either_service_is_killed("kill-sqlite", Fleet::sqlite().await).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_loses_and_doubles_nothing_on_postgresql() {
    bounded(async {
        if let Some(fleet) = Fleet::postgres(1, 1).await {
            either_service_is_killed("kill-postgres", fleet).await;
        }
    })
    .await;
}
