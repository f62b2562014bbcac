//! Both services' database restored from yesterday's backup: with a new epoch or without, restarted or not, nodes end
//! equal to what it holds.

use emend_tests::{
    faults::{Fleet, Run, Server, Storage, bounded},
    harness::{
        NAMESPACE,
        process::{binary, run as run_to_its_end},
    },
};
use tokio::process::Command;

/// What else the operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterRestore {
    /// `emend admin new-epoch` before the services start again, as the manual says.
    NewEpoch,
    /// Nothing more: the services are stopped and started.
    Restarts,
    /// Nothing at all: the services keep running.
    None,
}

async fn backup_is_restored(name: &str, after_restore: AfterRestore) {
    let Some(mut server) = Server::start().await else {
        return;
    };
    let fleet = Fleet::start(Storage::Own(server.url()), 1, 2).await;
    let mut run = Run::begin(name, fleet).await;
    run.goes_on().await;
    run.stop_load().await;
    let feedback = run.fleet.feedback_clients().remove(0);
    feedback.all_delivered(NAMESPACE).await;
    let yesterday = run.record.clone();
    let yesterdays_head = run.fleet.storage.stored().head().await;
    let backup = server.back_up().await;

    run.start_load();
    run.load().goes_on_by(60).await;
    run.stop_load().await;
    feedback.all_delivered(NAMESPACE).await;
    let head = run.fleet.storage.stored().head().await;
    assert!(head > yesterdays_head, "there is a today");
    for node in &run.nodes {
        node.until(head).await;
    }

    if after_restore != AfterRestore::None {
        run.fleet.stop_all().await;
    }
    server.stop().await;
    server.restore(&backup).await;
    server.start_again().await;
    if after_restore == AfterRestore::NewEpoch {
        let mut new_epoch = Command::new(binary("emend").await);
        new_epoch.args(["admin", "new-epoch", "--database-url", &server.url()]);
        run_to_its_end("emend admin new-epoch", new_epoch).await.unwrap();
    }
    run.fleet.start_all().await;
    // Today is gone and can't be recovered. What counts is yesterday and what comes now.
    run.lost_its_tail(yesterday);
    run.start_load();
    run.goes_on().await;
    run.ends_well().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_equal_a_restored_database_with_a_new_epoch() {
    bounded(backup_is_restored("restore-epoch", AfterRestore::NewEpoch)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_equal_a_restored_database_under_services_that_start_again() {
    bounded(backup_is_restored("restore-restarts", AfterRestore::Restarts)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_equal_a_database_that_was_restored_behind_running_services() {
    bounded(backup_is_restored("restore-running", AfterRestore::None)).await;
}
