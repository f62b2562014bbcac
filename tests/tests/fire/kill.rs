//! Either service killed without warning at any moment.

use emend_tests::{
    faults::{Fleet, Run, Storage, bounded, rounds},
    harness::{NAMESPACE, alias, says},
};

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

/// The dead replica's leases would outlast every wait here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_replica_had_leased_is_delivered_by_another_at_once() {
    bounded(async {
        let Some(storage) = Storage::postgres().await else {
            return;
        };
        let mut fleet = Fleet::stopped(storage, 2, 1).await;
        for replica in &mut fleet.feedback {
            replica
                .arguments
                .extend(["--relay-lease", "150s"].map(str::to_owned));
        }
        fleet.start_all().await;
        fleet.learning[0].stop().await;
        let [killed, other] = &fleet.feedback_clients()[..] else {
            panic!("there are two");
        };
        let mut submitted = Vec::new();
        for number in 0..20 {
            let request = says("left behind", alias("kept", &format!("person-{number}")));
            let answer = killed.service.clone().submit_feedback(request).await;
            submitted.push(answer.unwrap().into_inner().feedback.unwrap().feedback_id);
        }
        assert_eq!(fleet.leases().await.len(), submitted.len(), "all are leased");
        fleet.feedback[0].kill().await;
        fleet.learning[0].start().await;
        for id in &submitted {
            other.delivered(NAMESPACE, id).await;
        }
        fleet.stop_all().await;
    })
    .await;
}
