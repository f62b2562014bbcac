//! One of three learning-svc replicas is killed, with many streams spread over them: all continue at the others.

use std::time::Duration;

use emend_tests::{
    faults::{Fleet, Run, bounded, rounds, runs::allow_many_open_files},
    harness::node::Node,
    load::Plan,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_streams_of_a_killed_replica_continue_at_the_others() {
    bounded(async {
        let streams = rounds(300, 3_000);
        if streams > 300 {
            allow_many_open_files().await;
        }
        let Some(fleet) = Fleet::postgres(1, 3).await else {
            return;
        };
        let plan = Plan {
            reporters: 2,
            pause: Duration::from_millis(60),
            ..Plan::default()
        };
        let mut run = Run::begin_with("spread", fleet, plan).await;
        for index in 0..streams {
            let front = run.fleet.learning[index % 3].front.address();
            run.nodes
                .push(Node::start(front, &format!("spread-{index}")).await);
        }
        run.load().goes_on_by(20).await;
        let victim = run.dice.below(3);
        run.fleet.learning[victim].kill().await;
        // What a load balancer does once it notices.
        let other = run.fleet.learning[(victim + 1) % 3].front.address();
        run.fleet.learning[victim].front.lead_to(other);
        run.load().goes_on_by(20).await;
        run.ends_well().await;
    })
    .await;
}
