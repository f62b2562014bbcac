//! A rolling restart of everything, with load. That it costs no subscriber a snapshot is what the stream's audit sees to.

use emend_tests::faults::{Fleet, Run, bounded, rounds};

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
